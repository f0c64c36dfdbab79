//! Methods of [`Builder`] that add operations with regions, and calls.

use super::Builder;
use crate::ir::ops::{FuncCall, Reduce, Return, SdyReturn};
use crate::ir::{BlockId, Op, OpCode, OpId, Str, TensorType, Type, ValueId};

impl Builder {
    /// Adds an operation with regions, and infers the types of its results from the operands and regions. `regions`
    /// must add the regions to the operation.
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

    /// Adds a region to an operation. `build` receives the region's arguments, which have these types, and returns the
    /// values that the region returns.
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

    /// Begins a region of an operation: operations are added to the region until [`Builder::end_region`] ends it.
    /// Returns the current block, which `end_region` takes.
    pub fn begin_region(&mut self, op: OpId, arguments: impl IntoIterator<Item = Type>) -> BlockId {
        let region = self.body.add_region(Some(op));
        let block = self.body.add_block(region);
        for ty in arguments {
            self.body.add_argument(block, ty);
        }
        std::mem::replace(&mut self.block, block)
    }

    /// Terminates the current region with the values that it returns, and continues in the block `outer`.
    pub fn end_region(&mut self, outer: BlockId, returned: &[ValueId]) {
        self.return_values(returned);
        self.block = outer;
    }

    /// Terminates the current block, which is in a region of an operation, with the values that it returns.
    pub fn return_values(&mut self, returned: &[ValueId]) {
        let parent = self.body.region(self.body.block(self.block).region).parent;
        let is_shardy = parent.is_some_and(|op| self.body.op(op).kind.name().starts_with("sdy."));
        let kind: Op = if is_shardy { SdyReturn {}.into() } else { Return {}.into() };
        self.add_op(kind, returned, []);
    }

    /// Adds a region that combines two scalars with an operation such as [`OpCode::Add`].
    pub fn combiner(&mut self, op: OpId, code: OpCode, scalar: TensorType) {
        let arguments = [scalar.clone().into(), scalar.into()];
        self.region(op, arguments, |b, arguments| vec![b.apply(code, arguments)]);
    }

    /// Adds a `func.call` of a function with these operands and result types.
    pub fn call(
        &mut self,
        callee: impl Into<Str>,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> Vec<ValueId> {
        self.op_of_types(FuncCall::new(callee), operands, results)
    }

    /// Adds a `stablehlo.reduce` of dimensions with an operation, starting from `initial`.
    pub fn reduce(&mut self, operand: ValueId, dimensions: &[i64], code: OpCode, initial: f64) -> ValueId {
        let scalar = self.tensor(operand).with_dims([]);
        let initial = self.number_of_type(initial, scalar.clone());
        let kind = Reduce { dimensions: dimensions.into() };
        let op = self.op_with_regions(kind, &[operand, initial], |b, op| b.combiner(op, code, scalar));
        self.result(op)
    }
}
