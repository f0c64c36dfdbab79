//! Errors of passes.

use crate::ir::{Operation, Str, TensorType};
use crate::{Error, ErrorKind};

/// Returns an error about something that cannot be rewritten.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}

/// Returns the error of a rule for an operation that the verifier would not have accepted.
pub(crate) fn mismatch(op: &Operation) -> Error {
    unsupported(format!("there is no decomposition of {} for these operands", op.kind.name()))
}

/// Completes an error about an operation that is part of a decomposition with the decomposed operation.
pub(crate) fn part_of(mut error: Error, origin: Option<&Str>) -> Error {
    if let Some(origin) = origin {
        error.message.push_str(&format!("; '{origin}' is decomposed into it"));
    }
    error
}

/// Returns an error unless all sizes are static.
pub(crate) fn definite(ty: &TensorType) -> Result<(), Error> {
    if ty.num_elements().is_none() {
        return Err(unsupported(format!("expected static sizes, found {ty}")));
    }
    Ok(())
}
