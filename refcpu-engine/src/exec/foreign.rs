//! Calls handlers that the host has registered.

use super::process::Process;
use super::{Cx, Result, RunError, RunErrorKind};
use crate::graph::ForeignCall;
use refcpu_kernels::{Dst, Src};

/// The handlers of custom calls, by name.
pub trait ForeignHandlers {
    /// Runs a handler and returns when it is done. The arrays have the memory layouts that the call states. A result that
    /// aliases an operand holds a copy of that operand.
    ///
    /// # Errors
    /// Returns [`RunErrorKind::Host`] with the error of the handler, or [`RunErrorKind::FailedPrecondition`] if there is no
    /// handler of this name.
    fn call(
        &self,
        process: Process,
        call: &ForeignCall,
        operands: &[Src<'_>],
        results: &mut [Dst<'_>],
    ) -> Result<()>;
}

pub(super) fn call(
    process: Process,
    call: &ForeignCall,
    operands: &[Src<'_>],
    results: &mut [Dst<'_>],
    cx: &Cx<'_>,
) -> Result<()> {
    if let Some(refusal) = &call.refusal {
        return Err(RunError::new(RunErrorKind::InvalidArgument, refusal));
    }
    let handlers = cx.foreign.ok_or_else(|| {
        RunError::new(
            RunErrorKind::FailedPrecondition,
            format!("the program calls the handler {:?}, but this run has no handlers", call.target),
        )
    })?;
    for (operand, result) in &call.aliases {
        results[*result].bytes_mut().copy_from_slice(operands[*operand].bytes());
    }
    handlers.call(process, call, operands, results)
}
