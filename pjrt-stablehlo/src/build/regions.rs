//! Operations with regions, and calls.

use super::Builder;
use crate::ir::ops::{FuncCall, Reduce, Return, SdyReturn};
use crate::ir::{BlockId, Op, OpCode, OpId, Str, TensorType, Type, ValueId};

impl Builder {
    /// Adds an operation with regions, which `regions` adds; the types of its results follow from them and the operands.
    pub fn op_with_regions(
        &mut self,
        kind: impl Into<Op>,
        operands: &[ValueId],
        regions: impl FnOnce(&mut Builder, OpId),
    ) -> OpId {
        let op = self.add_op(kind, operands, []);
        let outer = self.block;
        regions(self, op);
        self.block = outer;
        let types = self.inferred(self.body.op(op));
        self.body.add_results(op, types);
        op
    }

    /// Adds a region to an operation that was added: takes arguments of these types, and returns what `build` gives.
    pub fn region(
        &mut self,
        op: OpId,
        arguments: impl IntoIterator<Item = Type>,
        build: impl FnOnce(&mut Builder, &[ValueId]) -> Vec<ValueId>,
    ) {
        let outer = self.begin_region(op, arguments);
        let arguments = self.arguments();
        let returned = build(self, &arguments);
        self.end_region(outer, &returned);
    }

    /// Begins a region of an operation, and gives the block to go on with after it: what is added until
    /// [`Builder::end_region`] is in the region.
    pub fn begin_region(&mut self, op: OpId, arguments: impl IntoIterator<Item = Type>) -> BlockId {
        let region = self.body.add_region(Some(op));
        let block = self.body.add_block(region);
        for ty in arguments {
            self.body.add_argument(block, ty);
        }
        std::mem::replace(&mut self.block, block)
    }

    /// Ends the region at hand with what it returns, and goes on in the block outside.
    pub fn end_region(&mut self, outer: BlockId, returned: &[ValueId]) {
        self.return_values(returned);
        self.block = outer;
    }

    /// Ends the block at hand, which is in a region of an operation.
    pub fn return_values(&mut self, returned: &[ValueId]) {
        let parent = self.body.region(self.body.block(self.block).region).parent;
        let is_shardy = parent.is_some_and(|op| self.body.op(op).kind.name().starts_with("sdy."));
        let kind: Op = if is_shardy { SdyReturn {}.into() } else { Return {}.into() };
        self.add_op(kind, returned, []);
    }

    /// Adds a region that combines two scalars by an operation, such as [`OpCode::Add`].
    pub fn combiner(&mut self, op: OpId, code: OpCode, scalar: TensorType) {
        let arguments = [scalar.clone().into(), scalar.into()];
        self.region(op, arguments, |b, arguments| vec![b.apply(code, arguments)]);
    }

    /// Adds `func.call` of a function by its name, which takes these operands and gives results of these types.
    pub fn call(
        &mut self,
        callee: impl Into<Str>,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> Vec<ValueId> {
        self.op_of_types(FuncCall::new(callee), operands, results)
    }

    /// Adds `stablehlo.reduce` of dimensions by an operation, from a number.
    pub fn reduce(&mut self, operand: ValueId, dimensions: &[i64], code: OpCode, initial: f64) -> ValueId {
        let scalar = self.tensor(operand).with_dims([]);
        let initial = self.number_of_type(initial, scalar.clone());
        let kind = Reduce { dimensions: dimensions.into() };
        let op = self.op_with_regions(kind, &[operand, initial], |b, op| b.combiner(op, code, scalar));
        self.result(op)
    }
}
