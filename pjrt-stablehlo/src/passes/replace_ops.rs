//! Replaces operations that are not in the set of core operations.

use std::collections::BTreeSet;

use super::CoreOps;
use super::functions::{called_functions, kept_functions};
use super::rewrite::{Pass, Replacement, Rewriter};
use super::rules::rewrite_of;
use crate::Error;
use crate::ir::{Function, Module, Op, OpCode, Operation, Str, Type};

/// Puts what the rules say in the place of operations that a set does not have.
pub(super) struct ReplaceOps<'c> {
    core: &'c CoreOps,
    /// Which functions stay, by their index.
    kept: Vec<bool>,
    /// Names of functions that are called.
    called: BTreeSet<Str>,
}

impl<'c> ReplaceOps<'c> {
    /// The pass for a program.
    pub(super) fn new(module: &Module, core: &'c CoreOps) -> Self {
        let calls_stay = core.contains(OpCode::FuncCall);
        let stays = |op: &Op| match op {
            Op::FuncCall(_) => calls_stay,
            Op::Composite(_) => calls_stay || core.contains_op(op),
            _ => true,
        };
        ReplaceOps { core, kept: kept_functions(module, stays), called: called_functions(module) }
    }

    /// Whether a function stays, which others can be inlined into.
    pub(super) fn keeps(&self, function: usize) -> bool {
        self.kept[function]
    }
}

impl Pass for ReplaceOps<'_> {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        if self.core.contains_op(&op.kind) {
            return Ok(Replacement::Copy);
        }
        let values = rewrite_of(&op.kind)?.apply(r, op)?;
        Ok(values.map_or(Replacement::Blocks, Replacement::Values))
    }

    fn end_function(&self, function: &mut Function) {
        if !self.called.contains(&function.name) {
            give_what_is_returned(function);
        }
    }

    fn decomposes(&self, op: &Op) -> bool {
        !self.core.contains_op(op)
    }

    fn inlines_calls(&self) -> bool {
        !self.core.contains(OpCode::FuncCall)
    }
}

/// Makes the types of a function's results those of the values that it returns, of which more sizes may be known.
fn give_what_is_returned(function: &mut Function) {
    let returned = function.returned().iter().map(|&value| function.body.ty(value).clone());
    let returned: Vec<Type> = returned.collect();
    if returned.len() == function.ty.results.len() {
        function.ty.results = returned;
    }
}
