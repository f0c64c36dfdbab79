//! Replacement of operations that are not in the set of core operations.

use std::collections::BTreeSet;

use super::CoreOps;
use super::functions::{called_functions, kept_functions};
use super::rewrite::{Pass, Replacement, Rewriter, unsupported};
use super::rules::{is_core_by_default, rewrite_of};
use super::widen::{is_widened, widened};
use crate::Error;
use crate::ir::{Body, Function, Module, Op, OpCode, Operation, Str, Type};

/// The pass that replaces the operations outside a set according to the rules.
pub(super) struct ReplaceOps<'c> {
    core: &'c CoreOps,
    /// For each function by index, `true` if it remains.
    kept: Vec<bool>,
    /// The names of functions that are called.
    called: BTreeSet<Str>,
}

impl<'c> ReplaceOps<'c> {
    /// Creates the pass for a program.
    pub(super) fn new(module: &Module, core: &'c CoreOps) -> Self {
        let calls_stay = core.contains(OpCode::FuncCall);
        let stays = |op: &Op| match op {
            Op::FuncCall(_) => calls_stay,
            Op::Composite(_) => calls_stay || core.contains_op(op),
            _ => true,
        };
        ReplaceOps { core, kept: kept_functions(module, stays), called: called_functions(module) }
    }

    /// Returns `true` if the function remains in the program. Calls of other functions are inlined.
    pub(super) fn keeps(&self, function: usize) -> bool {
        self.kept[function]
    }
}

impl Pass for ReplaceOps<'_> {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        let Some(refusal) = self.core.refusal(r.old_body(), op) else { return Ok(Replacement::Copy) };
        if is_widened(self.core, r.old_body(), op) {
            return widened(self.core, r, op).map(Replacement::Values);
        }
        let rewrite = rewrite_of(r.old_body(), op)
            .ok_or_else(|| unsupported(format!("{refusal}, and it cannot be decomposed")))?;
        let values = rewrite.apply(r, op).map_err(|error| {
            // The reason of a rule for some operands only does not tell that the device lacks the operation.
            let message = match is_core_by_default(&op.kind) {
                true => format!("{refusal}; {}", error.message),
                false => error.message,
            };
            Error { message, ..error }
        })?;
        Ok(values.map_or(Replacement::Blocks, Replacement::Values))
    }

    fn end_function(&self, function: &mut Function) {
        if !self.called.contains(&function.name) {
            give_what_is_returned(function);
        }
    }

    fn decomposes(&self, body: &Body, op: &Operation) -> bool {
        !self.core.supports(body, op)
    }

    fn inlines_calls(&self) -> bool {
        !self.core.contains(OpCode::FuncCall)
    }
}

/// Sets the result types of a function to those of the values that it returns, which may have more static sizes.
fn give_what_is_returned(function: &mut Function) {
    let returned = function.returned().iter().map(|&value| function.body.ty(value).clone());
    let returned: Vec<Type> = returned.collect();
    if returned.len() == function.ty.results.len() {
        function.ty.results = returned;
    }
}
