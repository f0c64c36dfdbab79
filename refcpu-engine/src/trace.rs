//! Spans of what refcpu does, for hosts that trace. While none does, a span costs a look at a flag.

use crate::plan::Program;
use pjrt_stablehlo::ir::{Location, LocationKind};
use tracing::span::EnteredSpan;
use tracing::{Level, enabled, info_span};

/// Runs a pass of the compiler.
pub fn pass<T>(name: &'static str, run: impl FnOnce() -> T) -> T {
    let _span = info_span!("pass", otel.name = name).entered();
    run()
}

/// A program runs until the span is dropped.
pub fn program(name: &str) -> EnteredSpan {
    info_span!("program", otel.name = name).entered()
}

/// Whether a host traces, to be asked once for many steps.
pub(crate) fn is_on() -> bool {
    enabled!(Level::INFO)
}

/// A step of a program runs until the span is dropped. Its name is that of the operation in the program, if it has one.
pub(crate) fn step(program: &Program, at: usize) -> EnteredSpan {
    info_span!(
        "operation",
        otel.name = operation(program, at),
        op_name = op_name(&program.locations[at]),
        source = source(&program.locations[at]),
        kernel = program.steps[at].name(),
        results = program.steps[at].results(),
    )
    .entered()
}

/// The last part of an operation's name, which is what the framework calls it; without a name what the step does.
fn operation(program: &Program, at: usize) -> String {
    let name = op_name(&program.locations[at]).map(|name| name.trim_end_matches(':'));
    let name = name.and_then(|name| name.rsplit('/').find(|part| !part.is_empty()));
    name.map_or_else(|| program.steps[at].name(), str::to_owned)
}

/// The framework's name of an operation, such as `jit(f)/dot_general`.
fn op_name(location: &Location) -> Option<&str> {
    match location.kind() {
        LocationKind::Name { name, .. } => Some(name),
        LocationKind::CallSite { callee, .. } => op_name(callee),
        LocationKind::Fused { parts, .. } => parts.iter().find_map(op_name),
        _ => None,
    }
}

/// The file and line that an operation comes from.
fn source(location: &Location) -> Option<String> {
    match location.kind() {
        LocationKind::File { file, line, .. } => Some(format!("{file}:{line}")),
        LocationKind::Name { child, .. } => source(child),
        LocationKind::CallSite { callee, .. } => source(callee),
        LocationKind::Fused { parts, .. } => parts.iter().find_map(source),
        LocationKind::Unknown | _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_the_name_and_place_that_are_nearest_to_it() {
        let file = |file: &str, line| {
            let file = file.into();
            Location::new(LocationKind::File { file, line, column: 1, end_line: line, end_column: 1 })
        };
        let stack = LocationKind::CallSite { callee: file("a.py", 3), caller: file("b.py", 9) };
        let named = LocationKind::Name { name: "jit(f)/add".into(), child: Location::new(stack) };
        let fused = LocationKind::Fused {
            parts: vec![Location::UNKNOWN, Location::new(named), file("c.py", 1)],
            metadata: None,
        };
        let location = Location::new(fused);
        assert_eq!(op_name(&location), Some("jit(f)/add"));
        assert_eq!(source(&location).as_deref(), Some("a.py:3"));
        assert_eq!((op_name(&Location::UNKNOWN), source(&Location::UNKNOWN)), (None, None));
    }
}
