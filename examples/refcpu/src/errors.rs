//! Conversion of the engine's errors to those of PJRT.

use pjrt_plugin::Error;
use refcpu_engine::compile::{CompileError, CompileErrorKind};
use refcpu_engine::exec::{RunError, RunErrorKind};
use refcpu_engine::plan::Plan;
use refcpu_engine::storage::OutOfMemory;

/// The key of the payload with the name of the operation, for tools.
const OP_PAYLOAD: &str = "refcpu.op";

pub(crate) fn out_of_memory(error: &OutOfMemory) -> Error {
    Error::resource_exhausted(error.to_string())
}

pub(crate) fn compile_error(error: &CompileError) -> Error {
    let message = error.to_string();
    let status = match error.kind {
        CompileErrorKind::InvalidArgument => Error::invalid_argument(message),
        CompileErrorKind::Unimplemented => Error::unimplemented(message),
        CompileErrorKind::ResourceExhausted => Error::resource_exhausted(message),
        CompileErrorKind::Internal => Error::internal(message),
    };
    if error.op.is_empty() { status } else { status.with_payload(OP_PAYLOAD, error.op.as_bytes()) }
}

/// Converts the error of an execution of the plan of the program `name`.
pub(crate) fn run_error(error: &RunError, name: &str, plan: &Plan) -> Error {
    match error.kind {
        RunErrorKind::InvalidArgument => Error::invalid_argument(&error.message),
        RunErrorKind::ResourceExhausted => {
            Error::resource_exhausted(exhausted_while_running(&error.message, name, plan))
        }
        RunErrorKind::Cancelled => Error::cancelled(&error.message),
        RunErrorKind::Host | RunErrorKind::Internal => Error::internal(&error.message),
        RunErrorKind::DeadlineExceeded => Error::deadline_exceeded(&error.message)
            .with_hint("REFCPU_COLLECTIVE_TIMEOUT sets the time in seconds"),
        RunErrorKind::FailedPrecondition => Error::failed_precondition(&error.message),
        RunErrorKind::Unavailable => Error::unavailable(&error.message),
        RunErrorKind::Unimplemented => Error::unimplemented(&error.message),
    }
}

/// Returns the message of an error about memory during an execution of the plan of the program `name`.
pub(crate) fn exhausted_while_running(message: &str, name: &str, plan: &Plan) -> String {
    let mut message = format!("{message}, while running '{name}'");
    if let Some((view, kernel, location)) = plan.program.largest_write() {
        message += &format!(
            "; its largest array is {:?} {:?} ({} bytes), which {kernel} computes, at {}",
            view.dtype,
            view.dims,
            view.byte_len(),
            location.brief()
        );
    }
    message
}
