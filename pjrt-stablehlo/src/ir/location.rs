//! Source locations.

use std::fmt;
use std::sync::Arc;

use crate::limits::{MAX_LOCATION_NESTING, MAX_NESTING};

use super::{Attribute, Str};

/// Where in the user's program an operation comes from. One pointer; cheap to clone.
///
/// Displayed like MLIR prints locations, which is what JAX users see:
/// `"jit(f)/add"("model.py":12:4 to :19)`.
#[derive(Clone, Default, PartialEq)]
pub struct Location(Option<Arc<LocationKind>>);

/// What a [`Location`] says.
///
/// Names and files are UTF-8: where a program has other bytes in them, U+FFFD stands in their place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LocationKind {
    /// Nothing is known.
    Unknown,
    /// A range of a source file. Lines and columns count from 1; 0 is unknown.
    File {
        /// Path of the file.
        file: Str,
        /// First line.
        line: u32,
        /// First column.
        column: u32,
        /// Last line, equal to the first where only a position is known.
        end_line: u32,
        /// Last column, equal to the first where only a position is known.
        end_column: u32,
    },
    /// A name, usually the framework's name stack (`jit(f)/jit(main)/add`), and where it comes from.
    Name {
        /// The name.
        name: Str,
        /// The location that the name was given to.
        child: Location,
    },
    /// A call: `callee` inlined at `caller`.
    CallSite {
        /// Location inside the called function.
        callee: Location,
        /// Location of the call.
        caller: Location,
    },
    /// Several locations that one operation stands for.
    Fused {
        /// The locations.
        parts: Vec<Location>,
        /// What whoever fused them has to say about it.
        metadata: Option<Attribute>,
    },
}

impl Location {
    /// The location of which nothing is known.
    pub const UNKNOWN: Location = Location(None);

    /// The file name of locations that are places in the program's own text, which errors of programs without locations
    /// have.
    pub const PROGRAM_TEXT: &'static str = "program";

    /// A location of the given kind.
    pub fn new(kind: LocationKind) -> Self {
        match kind {
            LocationKind::Unknown => Location(None),
            kind => Location(Some(Arc::new(kind))),
        }
    }

    /// What the location says.
    pub fn kind(&self) -> &LocationKind {
        const UNKNOWN: &LocationKind = &LocationKind::Unknown;
        self.0.as_deref().unwrap_or(UNKNOWN)
    }

    /// Depth to which a location of this kind may nest: metadata is an attribute, with the limit of those.
    pub(crate) fn max_nesting(&self) -> u32 {
        match self.kind() {
            LocationKind::Fused { metadata: Some(_), .. } => MAX_NESTING,
            _ => MAX_LOCATION_NESTING,
        }
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        self.0.is_none()
    }

    /// The location for a message: of a chain of calls only the innermost, of fused locations only the first, as
    /// hosts can put whole call stacks into each location.
    pub fn brief(&self) -> BriefLocation<'_> {
        BriefLocation(self)
    }
}

/// How many calls of a chain [`BriefLocation`] shows, the operation's own place included.
const BRIEF_CALLS: usize = 3;

/// Displays a [`Location`] without most of its call stack: [`Location::brief`].
#[derive(Clone, Copy, Debug)]
pub struct BriefLocation<'a>(&'a Location);

impl fmt::Display for BriefLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind() {
            LocationKind::Name { name, child } if !child.is_unknown() => {
                super::fmt_quoted(f, name.as_bytes())?;
                write!(f, "({})", child.brief())
            }
            LocationKind::CallSite { callee, caller } => {
                write!(f, "{}", callee.brief())?;
                let mut caller = caller;
                for _ in 1..BRIEF_CALLS {
                    let LocationKind::CallSite { callee, caller: next } = caller.kind() else {
                        return write!(f, " called from {}", caller.brief());
                    };
                    write!(f, " called from {}", callee.brief())?;
                    caller = next;
                }
                f.write_str(" ...")
            }
            LocationKind::Fused { parts, .. } if parts.len() > 1 => {
                write!(f, "fused[{}, and {} more]", parts[0].brief(), parts.len() - 1)
            }
            LocationKind::Fused { parts, .. } if parts.len() == 1 => write!(f, "{}", parts[0].brief()),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl From<LocationKind> for Location {
    fn from(kind: LocationKind) -> Self {
        Location::new(kind)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            LocationKind::Unknown => f.write_str("unknown"),
            LocationKind::File { file, line, column, end_line, end_column } => {
                super::fmt_quoted(f, file.as_bytes())?;
                write!(f, ":{line}:{column}")?;
                match (end_line == line, end_column == column) {
                    (true, true) => Ok(()),
                    (true, false) => write!(f, " to :{end_column}"),
                    (false, _) => write!(f, " to {end_line}:{end_column}"),
                }
            }
            LocationKind::Name { name, child } => {
                super::fmt_quoted(f, name.as_bytes())?;
                if child.is_unknown() { Ok(()) } else { write!(f, "({child})") }
            }
            LocationKind::CallSite { callee, caller } => write!(f, "callsite({callee} at {caller})"),
            LocationKind::Fused { parts, metadata } => {
                f.write_str("fused")?;
                if let Some(metadata) = metadata {
                    write!(f, "<{metadata}>")?;
                }
                f.write_str("[")?;
                for (index, part) in parts.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { ", " })?;
                    write!(f, "{part}")?;
                }
                f.write_str("]")
            }
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "loc({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: u32) -> Location {
        Location::new(LocationKind::File {
            file: "a.py".into(),
            line,
            column: 1,
            end_line: line,
            end_column: 1,
        })
    }

    #[test]
    fn brief_locations_leave_out_most_of_a_call_stack() {
        let stack = (1..=40)
            .rev()
            .map(line)
            .reduce(|caller, callee| Location::new(LocationKind::CallSite { callee, caller }));
        let named = Location::new(LocationKind::Name { name: "jit(f)/add".into(), child: stack.unwrap() });
        let brief = r#""jit(f)/add"("a.py":1:1 called from "a.py":2:1 called from "a.py":3:1 ...)"#;
        assert_eq!(named.brief().to_string(), brief);
        let two = Location::new(LocationKind::CallSite { callee: line(1), caller: line(2) });
        assert_eq!(two.brief().to_string(), r#""a.py":1:1 called from "a.py":2:1"#);
        let fused = Location::new(LocationKind::Fused { parts: vec![two, line(3)], metadata: None });
        assert_eq!(fused.brief().to_string(), r#"fused["a.py":1:1 called from "a.py":2:1, and 1 more]"#);
    }

    #[test]
    fn displays_like_mlir() {
        let file = Location::new(LocationKind::File {
            file: "model.py".into(),
            line: 12,
            column: 4,
            end_line: 12,
            end_column: 19,
        });
        let named = Location::new(LocationKind::Name { name: "jit(f)/add".into(), child: file.clone() });
        assert_eq!(named.to_string(), "\"jit(f)/add\"(\"model.py\":12:4 to :19)");
        let call = Location::new(LocationKind::CallSite { callee: named, caller: Location::UNKNOWN });
        assert_eq!(call.to_string(), "callsite(\"jit(f)/add\"(\"model.py\":12:4 to :19) at unknown)");
        let fused = |metadata| {
            let parts = vec![file.clone(), Location::UNKNOWN];
            Location::new(LocationKind::Fused { parts, metadata }).to_string()
        };
        assert_eq!(fused(None), "fused[\"model.py\":12:4 to :19, unknown]");
        assert_eq!(fused(Some("inlined".into())), "fused<\"inlined\">[\"model.py\":12:4 to :19, unknown]");
    }
}
