//! Source locations from the metadata of instructions.

use std::collections::HashMap;

use super::proto;
use crate::ir::{Location, LocationKind, Str};

/// The maximum number of calls in a location. The outermost calls are omitted.
const MAX_FRAMES: usize = 64;

/// The locations of a module's instructions.
pub(super) struct Locations {
    index: proto::StackFrameIndex,
    /// The locations of stack frames, by id.
    frames: HashMap<i32, Location>,
}

impl Locations {
    pub(super) fn new(index: proto::StackFrameIndex) -> Self {
        Locations { index, frames: HashMap::new() }
    }

    /// Returns the location of an instruction: its name in the framework's program, or else the instruction's name, at
    /// its place in the source.
    pub(super) fn location(&mut self, instruction: &str, metadata: Option<&proto::Metadata>) -> Location {
        let name = metadata.map(|metadata| &*metadata.op_name).filter(|name| !name.is_empty());
        let name = name.unwrap_or(instruction);
        let child = metadata.map_or(Location::UNKNOWN, |metadata| self.source(metadata));
        if name.is_empty() { child } else { Location::new(LocationKind::Name { name: name.into(), child }) }
    }

    fn source(&mut self, metadata: &proto::Metadata) -> Location {
        if metadata.stack_frame_id > 0 {
            return self.frame(metadata.stack_frame_id);
        }
        if metadata.source_file.is_empty() {
            return Location::UNKNOWN;
        }
        let number = |value: i32| u32::try_from(value).unwrap_or(0);
        let (line, column) = (number(metadata.source_line), number(metadata.source_column));
        Location::new(LocationKind::File {
            file: (&*metadata.source_file).into(),
            line,
            column,
            end_line: number(metadata.source_end_line).max(line),
            end_column: if metadata.source_end_column > 0 {
                number(metadata.source_end_column)
            } else {
                column
            },
        })
    }

    /// Returns the location of a stack frame, including its callers.
    fn frame(&mut self, id: i32) -> Location {
        if let Some(known) = self.frames.get(&id) {
            return known.clone();
        }
        let mut callees = Vec::new();
        let mut next = id;
        while let Some(frame) = entry(&self.index.stack_frames, next).filter(|_| callees.len() < MAX_FRAMES) {
            callees.push(self.file(frame.file_location_id));
            next = frame.parent_frame_id;
        }
        let location = callees
            .into_iter()
            .rev()
            .reduce(|caller, callee| LocationKind::CallSite { callee, caller }.into());
        let location = location.unwrap_or_default();
        self.frames.insert(id, location.clone());
        location
    }

    fn file(&self, id: i32) -> Location {
        let Some(place) = entry(&self.index.file_locations, id) else { return Location::UNKNOWN };
        let number = |value: i32| u32::try_from(value).unwrap_or(0);
        let (line, column) = (number(place.line), number(place.column));
        let file: Str = entry(&self.index.file_names, place.file_name_id).map_or("", String::as_str).into();
        let child = LocationKind::File { file, line, column, end_line: line, end_column: column }.into();
        match entry(&self.index.function_names, place.function_name_id) {
            Some(function) => LocationKind::Name { name: function.as_str().into(), child }.into(),
            None => child,
        }
    }
}

/// Returns the entry with this id. Ids are counted from 1.
fn entry<T>(entries: &[T], id: i32) -> Option<&T> {
    entries.get(usize::try_from(id).ok()?.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(stack_frame_id: i32) -> proto::Metadata {
        proto::Metadata { op_name: "jit(f)/add".to_owned(), stack_frame_id, ..proto::Metadata::default() }
    }

    #[test]
    fn frames_become_call_sites() {
        let file = |function_name_id, line| proto::FileLocation {
            file_name_id: 1,
            function_name_id,
            line,
            column: 2,
        };
        let frame =
            |file_location_id, parent_frame_id| proto::StackFrame { file_location_id, parent_frame_id };
        let mut locations = Locations::new(proto::StackFrameIndex {
            file_names: vec!["model.py".to_owned()],
            function_names: vec!["f".to_owned()],
            file_locations: vec![file(1, 10), file(0, 20)],
            stack_frames: vec![frame(2, 0), frame(1, 1), frame(1, 3)],
        });
        assert_eq!(
            locations.location("add.1", Some(&metadata(2))).to_string(),
            r#""jit(f)/add"(callsite("f"("model.py":10:2) at "model.py":20:2))"#
        );
        // A cycle of frames is cut off.
        assert!(locations.location("add.1", Some(&metadata(3))).to_string().contains("callsite"));
        assert_eq!(locations.location("add.1", Some(&metadata(9))).to_string(), r#""jit(f)/add""#);
        assert_eq!(locations.location("add.1", None).to_string(), r#""add.1""#);
    }
}
