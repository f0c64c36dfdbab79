//! Source locations.

use std::fmt;
use std::sync::Arc;

use crate::limits::{MAX_LOCATION_NESTING, MAX_NESTING};

use super::{Attribute, Str};

/// The place in the user's program that an operation comes from. Takes the size of one pointer, and is cheap to clone.
///
/// `Display` writes the location as MLIR and thus JAX do: `"jit(f)/add"("model.py":12:4 to :19)`.
#[derive(Clone, Default, PartialEq)]
pub struct Location(Option<Arc<LocationKind>>);

/// The kinds of [`Location`]s.
///
/// Names and files are UTF-8. Readers replace other bytes with U+FFFD.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LocationKind {
    /// The location is not known.
    Unknown,
    /// A range of a source file. Lines and columns count from 1; 0 is unknown.
    File {
        /// The path of the file.
        file: Str,
        /// The first line.
        line: u32,
        /// The first column.
        column: u32,
        /// The last line. Equals `line` if the location is a single position.
        end_line: u32,
        /// The last column. Equals `column` if the location is a single position.
        end_column: u32,
    },
    /// A name, usually the framework's name stack (`jit(f)/jit(main)/add`), and the location that it names.
    Name {
        /// The name.
        name: Str,
        /// The named location.
        child: Location,
    },
    /// A call: the location `callee` was inlined at the location `caller`.
    CallSite {
        /// The location inside the called function.
        callee: Location,
        /// The location of the call.
        caller: Location,
    },
    /// The locations of several operations that were fused into one.
    Fused {
        /// The locations.
        parts: Vec<Location>,
        /// Information about the fusion.
        metadata: Option<Attribute>,
    },
}

impl Location {
    /// An unknown location.
    pub const UNKNOWN: Location = Location(None);

    /// The file name of locations that refer to the text of the program itself. Operations that have no location in the text
    /// get a location with this file name, so that errors can refer to the text.
    pub const PROGRAM_TEXT: &'static str = "program";

    /// Creates a location of the given kind.
    pub fn new(kind: LocationKind) -> Self {
        match kind {
            LocationKind::Unknown => Location(None),
            kind => Location(Some(Arc::new(kind))),
        }
    }

    /// Returns the kind of location.
    pub fn kind(&self) -> &LocationKind {
        const UNKNOWN: &LocationKind = &LocationKind::Unknown;
        self.0.as_deref().unwrap_or(UNKNOWN)
    }

    /// Returns the maximum nesting depth for a location of this kind. Metadata is an attribute, to which the lower
    /// limit for attributes applies.
    pub(crate) fn max_nesting(&self) -> u32 {
        match self.kind() {
            LocationKind::Fused { metadata: Some(_), .. } => MAX_NESTING,
            _ => MAX_LOCATION_NESTING,
        }
    }

    /// Returns `true` if the location is unknown.
    pub fn is_unknown(&self) -> bool {
        self.0.is_none()
    }

    /// Returns an abbreviated form for messages, because hosts can record whole call stacks in each location. It shows
    /// the innermost calls of a chain and the first of several fused locations.
    pub fn brief(&self) -> BriefLocation<'_> {
        BriefLocation(self)
    }
}

/// The number of locations of a call chain that [`BriefLocation`] shows, including the operation's own.
const BRIEF_CALLS: usize = 3;

/// Displays a [`Location`] without most of its call stack; see [`Location::brief`].
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
