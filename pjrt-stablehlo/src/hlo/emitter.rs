//! Adds operations to a body, each at the place where the reader is.

use std::sync::Arc;

use crate::ir::{
    BlockId, Body, ComparisonDirection, ComparisonType, ElementType, Literal, LiteralData, Location, Op,
    OpCode, OpId, Str, TensorType, Type, ValueId, ops,
};

/// A body and the place in it where operations are added.
#[derive(Default)]
pub(super) struct Emitter {
    pub(super) body: Body,
    pub(super) place: Option<BlockId>,
    pub(super) location: Location,
}

impl Emitter {
    /// An emitter at the start of a new body whose entry block takes values of these types.
    pub(super) fn new(arguments: impl IntoIterator<Item = Type>) -> Self {
        let mut body = Body::new();
        let entry = body.add_block(Body::ROOT);
        for ty in arguments {
            body.add_argument(entry, ty);
        }
        Emitter { body, place: Some(entry), location: Location::UNKNOWN }
    }

    /// The block that operations are added to.
    pub(super) fn block(&self) -> BlockId {
        self.place.expect("an emitter has a place once it has a body")
    }

    /// Arguments of the block that operations are added to.
    pub(super) fn arguments(&self) -> Vec<ValueId> {
        self.body.block(self.block()).arguments.clone()
    }

    /// Adds an operation.
    pub(super) fn add(
        &mut self,
        op: Op,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> OpId {
        self.body.add_op(self.block(), op, operands, results, self.location.clone())
    }

    /// Adds an operation and gives its results.
    pub(super) fn values(
        &mut self,
        op: Op,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> Vec<ValueId> {
        let op = self.add(op, operands, results);
        self.body.op(op).results.collect()
    }

    /// Adds an operation with one result.
    pub(super) fn value(&mut self, op: Op, operands: &[ValueId], result: impl Into<Type>) -> ValueId {
        let op = self.add(op, operands, [result.into()]);
        self.body.op(op).result()
    }

    /// Adds an elementwise operation whose result has the type of its last operand.
    pub(super) fn like(&mut self, op: Op, operands: &[ValueId]) -> ValueId {
        let ty = operands.last().map_or(Type::None, |&last| self.body.ty(last).clone());
        self.value(op, operands, ty)
    }

    /// Adds an operation without attributes, or with those that it has by default, whose result has the type of its last
    /// operand.
    pub(super) fn apply(&mut self, code: OpCode, operands: &[ValueId]) -> ValueId {
        let op = Op::from_attributes(code, &mut |_| None);
        self.like(op.expect("the operation needs no attributes"), operands)
    }

    /// Adds a region with one block to an operation, and moves there.
    pub(super) fn enter_region(
        &mut self,
        op: OpId,
        arguments: impl IntoIterator<Item = Type>,
    ) -> Vec<ValueId> {
        let region = self.body.add_region(Some(op));
        let block = self.body.add_block(region);
        self.place = Some(block);
        arguments.into_iter().map(|ty| self.body.add_argument(block, ty)).collect()
    }

    /// The tensor type of a value that is known to be a tensor.
    pub(super) fn tensor(&self, value: ValueId) -> TensorType {
        self.body.ty(value).as_tensor().cloned().unwrap_or_else(|| TensorType::new(ElementType::I1, []))
    }

    /// A constant that is zero everywhere.
    pub(super) fn zeros(&mut self, ty: &TensorType) -> ValueId {
        self.splat(ty, vec![0; ty.element_type().byte_width()])
    }

    /// A constant of 32- or 64-bit floats that is `value` everywhere.
    pub(super) fn number(&mut self, ty: &TensorType, value: f64) -> ValueId {
        let element = match ty.element_type() {
            ElementType::F32 => (value as f32).to_le_bytes().to_vec(),
            _ => value.to_le_bytes().to_vec(),
        };
        self.splat(ty, element)
    }

    /// A constant of integers that is `value` everywhere.
    pub(super) fn integer(&mut self, ty: &TensorType, value: i128) -> ValueId {
        self.splat(ty, value.to_le_bytes()[..ty.element_type().byte_width()].to_vec())
    }

    fn splat(&mut self, ty: &TensorType, element: Vec<u8>) -> ValueId {
        let scalar = TensorType::new(ty.element_type(), []);
        let literal = Literal::new(scalar.clone(), LiteralData::Splat(element.into()));
        let value = literal.expect("the element has the width of its type");
        let value = self.value(Op::Constant(ops::Constant { value }), &[], scalar);
        if ty.rank() == 0 { value } else { self.broadcast(value, ty.dims(), &[]) }
    }

    /// A one-dimensional constant.
    pub(super) fn integers(&mut self, values: &[i64]) -> ValueId {
        let ty = TensorType::new(ElementType::I64, [values.len() as i64]);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let literal = Literal::new(ty.clone(), LiteralData::Dense(bytes.into()));
        let value = literal.expect("the data has the length of the type");
        self.value(Op::Constant(ops::Constant { value }), &[], ty)
    }

    pub(super) fn reshape(&mut self, operand: ValueId, dims: &[i64]) -> ValueId {
        let ty = self.tensor(operand).with_dims(dims);
        self.value(Op::Reshape(ops::Reshape {}), &[operand], ty)
    }

    pub(super) fn transpose(&mut self, operand: ValueId, permutation: &[i64]) -> ValueId {
        let ty = self.tensor(operand);
        let dims: Vec<i64> = permutation.iter().map(|&dimension| ty.dims()[dimension as usize]).collect();
        let op = ops::Transpose { permutation: permutation.into() };
        self.value(Op::Transpose(op), &[operand], ty.with_dims(dims))
    }

    pub(super) fn broadcast(&mut self, operand: ValueId, dims: &[i64], dimensions: &[i64]) -> ValueId {
        let ty = self.tensor(operand).with_dims(dims);
        let op = ops::BroadcastInDim { broadcast_dimensions: dimensions.into() };
        self.value(Op::BroadcastInDim(op), &[operand], ty)
    }

    /// Elements `start..limit` of one dimension.
    pub(super) fn slice(&mut self, operand: ValueId, dimension: usize, start: i64, limit: i64) -> ValueId {
        let ty = self.tensor(operand);
        let mut starts = vec![0; ty.rank()];
        let mut limits = ty.dims().to_vec();
        (starts[dimension], limits[dimension]) = (start, limit);
        let mut dims = ty.dims().to_vec();
        dims[dimension] = limit - start;
        let op = ops::Slice {
            start_indices: starts.into(),
            limit_indices: limits.into(),
            strides: vec![1; ty.rank()].into(),
        };
        self.value(Op::Slice(op), &[operand], ty.with_dims(dims))
    }

    pub(super) fn convert(&mut self, operand: ValueId, element_type: ElementType) -> ValueId {
        let ty = TensorType::new(element_type, self.tensor(operand).dims());
        self.value(Op::Convert(ops::Convert {}), &[operand], ty)
    }

    /// The bits of the operand as another type. A boolean has 8 bits in HLO, of which 0 is false, and 1 in StableHLO.
    pub(super) fn cast_bits(&mut self, operand: ValueId, ty: TensorType) -> ValueId {
        let op = || Op::BitcastConvert(ops::BitcastConvert {});
        let is_boolean = |ty: &TensorType| ty.element_type() == ElementType::I1;
        match (is_boolean(&self.tensor(operand)), is_boolean(&ty)) {
            (true, false) => {
                let bytes = self.convert(operand, ElementType::Ui8);
                self.value(op(), &[bytes], ty)
            }
            (false, true) => {
                let bytes = TensorType::new(ElementType::Ui8, ty.dims());
                let value = self.value(op(), &[operand], bytes.clone());
                let zero = self.zeros(&bytes);
                self.compare(ComparisonDirection::Ne, value, zero)
            }
            _ => self.value(op(), &[operand], ty),
        }
    }

    pub(super) fn iota(&mut self, ty: &TensorType, dimension: usize) -> ValueId {
        let op = ops::Iota { iota_dimension: dimension as i64 };
        self.value(Op::Iota(op), &[], ty.clone())
    }

    pub(super) fn compare(&mut self, direction: ComparisonDirection, lhs: ValueId, rhs: ValueId) -> ValueId {
        let ty = TensorType::new(ElementType::I1, self.tensor(lhs).dims());
        let op = ops::Compare { comparison_direction: direction, compare_type: ComparisonType::NoType };
        self.value(Op::Compare(op), &[lhs, rhs], ty)
    }

    /// Elements where the predicate holds of `on_true`, others of `on_false`.
    pub(super) fn select(&mut self, predicate: ValueId, on_true: ValueId, on_false: ValueId) -> ValueId {
        self.like(Op::Select(ops::Select {}), &[predicate, on_true, on_false])
    }

    pub(super) fn call(&mut self, callee: &Str, operands: &[ValueId], results: Vec<Type>) -> Vec<ValueId> {
        self.values(Op::FuncCall(ops::FuncCall::new(callee.clone()).into()), operands, results)
    }

    /// A tuple of values.
    pub(super) fn tuple(&mut self, elements: &[ValueId]) -> ValueId {
        let types: Arc<[Type]> = elements.iter().map(|&element| self.body.ty(element).clone()).collect();
        self.value(Op::Tuple(ops::Tuple {}), elements, Type::Tuple(types))
    }
}
