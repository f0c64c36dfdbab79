//! Elementwise operations, and their fusion: an operation whose only user is elementwise too becomes part of its user's kernel.

use std::collections::HashMap;

use pjrt_plugin::{Error, Result};
use pjrt_stablehlo::ir::scalar::{self, Function, load};
use pjrt_stablehlo::ir::{Op, OpId, Operation, ValueId};

use crate::commands::Kind;
use crate::kernel::{Kernel, Source};
use crate::lowering::Lowering;
use crate::operations::is_elementwise;

impl Lowering<'_> {
    /// Translates an elementwise operation, or defers it to its only user.
    pub(crate) fn elementwise(&mut self, op: &Operation) -> Result<()> {
        let mut kernel = Kernel::default();
        let operands = op.operands.iter().map(|operand| self.source(&mut kernel, *operand)).collect();
        let result = kernel.step(self.function(op)?, operands);
        kernel.results.push(result);
        if self.has_one_elementwise_user(op) {
            self.deferred.insert(op.result(), kernel);
        } else {
            let reads = kernel.captured.clone();
            self.emit(Kind::Compute(kernel), reads, vec![op.result().index()]);
        }
        Ok(())
    }

    /// Returns the source of an operand: a deferred kernel, a scalar that was broadcast, or a value in memory.
    fn source(&mut self, kernel: &mut Kernel, operand: ValueId) -> Source {
        if let Some(deferred) = self.deferred.remove(&operand) {
            return kernel.fuse(deferred);
        }
        let maker = self.body.defining_op(operand).map(|maker| self.body.op(maker));
        match maker.filter(|maker| self.is_scalar_for_kernels(maker)) {
            Some(broadcast) => kernel.capture(broadcast.operand(0).index()),
            None => kernel.capture(operand.index()),
        }
    }

    fn has_one_elementwise_user(&self, op: &Operation) -> bool {
        let users = self.users.get(&op.result()).map_or(&[][..], Vec::as_slice);
        let is_possible = |user: &Operation| user.block == op.block && is_elementwise(&user.kind);
        matches!(users, [user] if is_possible(self.body.op(*user)))
    }

    /// Returns `true` if the operation broadcasts one element to elementwise operations only. Kernels read that element.
    pub(crate) fn is_scalar_for_kernels(&self, op: &Operation) -> bool {
        let is_kernel = |user: &OpId| {
            let user = self.body.op(*user);
            user.block == op.block && is_elementwise(&user.kind)
        };
        matches!(op.kind, Op::BroadcastInDim(_))
            && self.dims(op.operand(0)).iter().product::<i64>() == 1
            && self.users.get(&op.result()).is_some_and(|users| users.iter().all(is_kernel))
    }

    /// Returns the kernel of the region of a reduction, which computes with single elements.
    pub(crate) fn region_kernel(&self, id: OpId) -> Result<Kernel> {
        let block = self
            .body
            .region_block(self.body.op(id), 0)
            .ok_or_else(|| Error::internal("a reduction has no body"))?;
        let mut kernel = Kernel::default();
        let arguments = block.arguments.iter().enumerate();
        let mut sources: HashMap<ValueId, Source> =
            arguments.map(|(index, argument)| (*argument, Source::Parameter(index))).collect();
        for id in &block.ops {
            let op = self.body.op(*id);
            // A value from outside the body is a scalar in memory.
            let mut source =
                |value: &ValueId| *sources.entry(*value).or_insert_with(|| kernel.capture(value.index()));
            let operands: Vec<Source> = op.operands.iter().map(&mut source).collect();
            if let Op::Return(_) = op.kind {
                kernel.results = operands;
                break;
            }
            let step = kernel.step(self.function(op)?, operands);
            sources.insert(op.result(), step);
        }
        Ok(kernel)
    }

    fn function(&self, op: &Operation) -> Result<Function> {
        let ty = |value: ValueId| self.values[value.index()].ty;
        if let Op::Constant(constant) = &op.kind {
            let dense =
                constant.value.dense_bytes().map_err(|error| Error::resource_exhausted(error.to_string()))?;
            let element = load(&dense, ty(op.result()).byte_width())[0];
            return Ok(std::sync::Arc::new(move |_| element));
        }
        let operand = op.operands.last().copied().unwrap_or(op.result());
        scalar::function(&op.kind, ty(operand), ty(op.result()))
            .ok_or_else(|| Error::internal(format!("the accelerator cannot compute {}", op.kind.name())))
    }
}
