//! Regions and calls of the program that is being rewritten.

use std::collections::HashMap;

use super::errors::unsupported;
use super::rewriter::{Continuation, End, Frame, Rewriter, Values};
use crate::Error;
use crate::infer::Context;
use crate::ir::ops::FuncCall;
use crate::ir::{BlockId, Function, Op, OpId, Operation, RegionId, Str, Trait, Type, ValueId};

impl<'m> Rewriter<'m> {
    /// Copies all regions of the current operation to a new operation. The copies are made after the rule returns.
    pub(crate) fn copy_regions(&mut self, op: &'m Operation, id: OpId) {
        let first_frame = self.frames.len();
        for &region in &op.regions {
            self.copy_region(region, id);
        }
        // The frames form a stack, so the first region must be on top.
        self.frames[first_frame..].reverse();
    }

    /// Copies a region of the current operation to a new operation. The copy is made after the rule returns.
    pub(crate) fn copy_region(&mut self, region: RegionId, id: OpId) {
        let activation = self.frame().activation;
        let function: &'m Function = self.activations[activation].function;
        let target_region = self.b.body.add_region(Some(id));
        for &block in &function.body.region(region).blocks {
            let target = self.b.body.add_block(target_region);
            self.block_arguments(activation, block, target);
            self.pass.begin_region(&mut self.b, id, target);
            self.frames.push(Frame { activation, block, next: 0, target, end: End::Copy });
        }
    }

    /// Copies the block of a region of the current operation to the end of a block of the new body, with these values
    /// as its arguments, and then calls the continuation with the returned values. The copy is made after the rule
    /// returns.
    pub(crate) fn inline_region(
        &mut self,
        op: &'m Operation,
        index: usize,
        arguments: Vec<ValueId>,
        target: BlockId,
        then: Box<Continuation>,
    ) -> Result<(), Error> {
        let block = self.region_block(op, index)?;
        self.begin_block(block, arguments, target, End::Then(then))
    }

    /// Applies the computation of scalars in a region to whole tensors of one shape, element by element. Returns the values that
    /// the region returns.
    ///
    /// # Errors
    /// Returns an error if an operation of the region is not elementwise.
    pub(crate) fn apply_region(
        &mut self,
        op: &'m Operation,
        index: usize,
        arguments: &[ValueId],
    ) -> Result<Vec<ValueId>, Error> {
        let body = self.old_body();
        let block = body.block(self.region_block(op, index)?);
        if block.arguments.len() != arguments.len() {
            let message = format!(
                "expected a region with {} arguments, found {}",
                arguments.len(),
                block.arguments.len()
            );
            return Err(unsupported(message));
        }
        let dims = arguments.first().map_or_else(Vec::new, |&argument| self.b.dims(argument));
        let mut values: HashMap<ValueId, ValueId> =
            block.arguments.iter().copied().zip(arguments.iter().copied()).collect();
        for &id in &block.ops {
            let inner = body.op(id);
            let operands = self.whole_operands(&inner.operands, &values, &dims);
            if inner.info().has(Trait::Terminator) {
                return Ok(operands);
            }
            let results = self.applied(op, inner, &operands, &dims)?;
            values.extend(inner.results.zip(results));
        }
        Err(unsupported(format!("region {index} returns no values")))
    }

    /// Returns the tensors for operands in a region. Scalars from outside of the region are broadcast.
    fn whole_operands(
        &mut self,
        operands: &[ValueId],
        values: &HashMap<ValueId, ValueId>,
        dims: &[i64],
    ) -> Vec<ValueId> {
        let mut whole = Vec::with_capacity(operands.len());
        for operand in operands {
            match values.get(operand) {
                Some(&value) => whole.push(value),
                None => whole.extend(self.flat(&[*operand])),
            }
        }
        whole.into_iter().map(|value| self.b.broadcast_scalar(value, dims)).collect()
    }

    /// Adds an operation of a region of `outer`, whose scalars become tensors of these sizes. Returns its results.
    fn applied(
        &mut self,
        outer: &Operation,
        op: &Operation,
        operands: &[ValueId],
        dims: &[i64],
    ) -> Result<Vec<ValueId>, Error> {
        let is_constant = matches!(op.kind, Op::Constant(_));
        if !is_constant && !op.info().has(Trait::Elementwise) && !matches!(op.kind, Op::BitcastConvert(_)) {
            return Err(unsupported(format!(
                "the computation of '{outer}' can be decomposed only if all its operations are elementwise, found '{}'; \
                 keep '{outer}' in the set of core operations",
                op.kind.name(),
                outer = outer.kind.name()
            )));
        }
        let location = op.location.clone();
        let outer = std::mem::replace(&mut self.b.location, location);
        let types = self.result_types(op).into_iter().map(|ty| match ty {
            Type::Tensor(tensor) if !is_constant => tensor.with_dims(dims).into(),
            other => other,
        });
        let types: Vec<Type> = types.collect();
        let results = self.b.op_of_types(op.kind.clone(), operands, types);
        let results = results.into_iter().map(|value| self.b.broadcast_scalar(value, dims)).collect();
        self.b.location = outer;
        Ok(results)
    }

    /// Replaces an `async_start` by the operation in its region.
    pub(crate) fn start(&mut self, op: &'m Operation) -> Result<(), Error> {
        let block = self.region_block(op, 0)?;
        let (arguments, target) = (self.flat(&op.operands), self.b.block);
        self.begin_block(block, arguments, target, End::Results(op))
    }

    /// Returns the current operation, for the rules of the verifier.
    pub(crate) fn context(&self, op: &'m Operation) -> Context<'m> {
        let body = &self.activations[self.frame().activation].function.body;
        Context { module: self.module, body, op }
    }

    fn region_block(&self, op: &Operation, index: usize) -> Result<BlockId, Error> {
        let body = &self.activations[self.frame().activation].function.body;
        let region = op.regions.get(index).map(|&region| body.region(region));
        let block = region.and_then(|region| region.blocks.first().copied());
        block.ok_or_else(|| unsupported(format!("region {index} is missing or has no block")))
    }

    fn begin_block(
        &mut self,
        block: BlockId,
        arguments: Vec<ValueId>,
        target: BlockId,
        end: End<'m>,
    ) -> Result<(), Error> {
        let activation = self.frame().activation;
        let old = &self.activations[activation].function.body.block(block).arguments;
        self.bind_arguments(activation, old, arguments)?;
        self.frames.push(Frame { activation, block, next: 0, target, end });
        Ok(())
    }

    pub(crate) fn bind_arguments(
        &mut self,
        activation: usize,
        old: &[ValueId],
        new: Vec<ValueId>,
    ) -> Result<(), Error> {
        let body = &self.activations[activation].function.body;
        let counts: Vec<usize> = old.iter().map(|old| self.leaf_count(body.ty(*old))).collect();
        let expected: usize = counts.iter().sum();
        if expected != new.len() {
            let message = format!("expected a region with {} arguments, found {expected}", new.len());
            return Err(unsupported(message));
        }
        let mut rest = new.into_iter();
        for (old, count) in old.iter().zip(counts) {
            let values: Vec<ValueId> = rest.by_ref().take(count).collect();
            self.activations[activation].values[old.index()] = Some(Values::from(values));
        }
        Ok(())
    }

    /// Replaces an operation by a call of a function with the same operands and results.
    pub(crate) fn call(&mut self, op: &'m Operation, call: FuncCall) {
        let operands = self.flat(&op.operands);
        let results = self.result_types(op);
        let id = self.b.add_op(Op::FuncCall(call.into()), &operands, results);
        self.b.body.op_mut(id).attributes = op.attributes.clone();
        let values = self.b.body.op(id).results.collect();
        self.bind(op, values);
    }

    /// Replaces a call by the operations of the called function.
    pub(crate) fn inline_call(&mut self, op: &'m Operation, callee: &Str) -> Result<(), Error> {
        let index = self.module.function_index(callee);
        let index = index.ok_or_else(|| unsupported(format!("there is no function '{callee}'")))?;
        let function = &self.module.functions()[index];
        let Some(block) = function.body.entry() else {
            return Err(unsupported(format!("the called function '{callee}' has no body")));
        };
        let arguments = self.flat(&op.operands);
        let caller = self.b.location.clone();
        self.activate(index, function, caller);
        let activation = self.activations.len() - 1;
        self.bind_arguments(activation, &function.body.block(block).arguments, arguments)?;
        let target = self.b.block;
        self.frames.push(Frame { activation, block, next: 0, target, end: End::Inlined(op) });
        Ok(())
    }

    /// Adds a region with the operations of a function to a new operation.
    pub(super) fn function_as_region(&mut self, id: OpId, callee: &Str) -> Result<(), Error> {
        let index = self.module.function_index(callee);
        let index = index.ok_or_else(|| unsupported(format!("there is no function '{callee}'")))?;
        let function = &self.module.functions()[index];
        let Some(block) = function.body.entry() else {
            return Err(unsupported(format!("the called function '{callee}' has no body")));
        };
        let region = self.b.body.add_region(Some(id));
        let target = self.b.body.add_block(region);
        self.activate(index, function, self.b.location.clone());
        let activation = self.activations.len() - 1;
        self.block_arguments(activation, block, target);
        self.frames.push(Frame { activation, block, next: 0, target, end: End::Region });
        Ok(())
    }

    pub(super) fn block_arguments(&mut self, activation: usize, block: BlockId, target: BlockId) {
        let function: &'m Function = self.activations[activation].function;
        let old = function.body.block(block);
        for (index, &argument) in old.arguments.iter().enumerate() {
            let types = self.convert(function.body.ty(argument));
            let location = old.argument_locations.get(index).cloned().unwrap_or_default();
            let values: Vec<ValueId> = types
                .into_iter()
                .map(|ty| {
                    let value = self.b.body.add_argument(target, ty);
                    self.b.body.set_argument_location(value, location.clone());
                    value
                })
                .collect();
            self.activations[activation].values[argument.index()] = Some(Values::from(values));
        }
    }
}
