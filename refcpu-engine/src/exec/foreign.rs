//! Calls of handlers that the host has registered.

use super::process::Process;
use super::{Cx, Result, RunError, RunErrorKind};
use crate::graph::ForeignCall;
use refcpu_kernels::{Dst, Src};

/// Who runs the handlers of custom calls, by their names.
pub trait ForeignHandlers {
    /// Runs a handler on arrays in the order of memory that it expects, and returns when it is done. Results hold what the
    /// call says about aliases.
    ///
    /// # Errors
    /// What the handler says, as [`RunErrorKind::Host`]; [`RunErrorKind::FailedPrecondition`] if there is no such handler.
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
            format!("the program calls the handler {:?}, and there are no handlers here", call.target),
        )
    })?;
    for (operand, result) in &call.aliases {
        results[*result].bytes_mut().copy_from_slice(operands[*operand].bytes());
    }
    handlers.call(process, call, operands, results)
}
