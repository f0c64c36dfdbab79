//! Errors of passes.

use crate::ir::{Operation, Str, TensorType};
use crate::{Error, ErrorKind};

/// An error about something that cannot be rewritten.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}

/// A rule was applied to an operation that it is not for, or that the verifier would not have let pass.
pub(crate) fn mismatch(op: &Operation) -> Error {
    unsupported(format!("there is no decomposition of {} for these operands", op.kind.name()))
}

/// An error in a part of a decomposed operation, which has its location.
pub(crate) fn part_of(mut error: Error, origin: Option<&Str>) -> Error {
    if let Some(origin) = origin {
        error.message.push_str(&format!("; '{origin}' is decomposed into it"));
    }
    error
}

/// Fails unless all sizes are known.
pub(crate) fn definite(ty: &TensorType) -> Result<(), Error> {
    if ty.num_elements().is_none() {
        return Err(unsupported(format!(
            "expected sizes that are known before the program runs, found {ty}"
        )));
    }
    Ok(())
}
