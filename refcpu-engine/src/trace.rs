//! Tracing spans of compiler passes, programs and operations. While no subscriber is active, a span costs one check of a flag.

use crate::plan::Program;
use pjrt_stablehlo::ir::{Location, LocationKind};
use tracing::span::EnteredSpan;
use tracing::{Level, enabled, info_span};

/// Runs a compiler pass in a span of this name.
pub fn pass<T>(name: &'static str, run: impl FnOnce() -> T) -> T {
    let _span = info_span!("pass", otel.name = name).entered();
    run()
}

/// Enters the span of a program's run, which ends when the returned value is dropped.
pub fn program(name: &str) -> EnteredSpan {
    info_span!("program", otel.name = name).entered()
}

/// Returns whether a subscriber records spans. Callers check this once for many steps.
pub(crate) fn is_on() -> bool {
    enabled!(Level::INFO)
}

/// Enters the span of a step, which ends when the returned value is dropped. The span is named after the operation in the
/// source program, or after the step's kernel if the operation has no name.
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

/// Returns the last component of an operation's name, which is the framework's name of the operation, or else the name of the
/// step.
fn operation(program: &Program, at: usize) -> String {
    let name = op_name(&program.locations[at]).map(|name| name.trim_end_matches(':'));
    let name = name.and_then(|name| name.rsplit('/').find(|part| !part.is_empty()));
    name.map_or_else(|| program.steps[at].name(), str::to_owned)
}

/// Returns the framework's name of an operation, such as `jit(f)/dot_general`.
fn op_name(location: &Location) -> Option<&str> {
    match location.kind() {
        LocationKind::Name { name, .. } => Some(name),
        LocationKind::CallSite { callee, .. } => op_name(callee),
        LocationKind::Fused { parts, .. } => parts.iter().find_map(op_name),
        _ => None,
    }
}

/// Returns the source file and line of an operation.
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
