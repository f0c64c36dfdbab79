//! Adds operations at a place of a program that is being built.

use std::collections::HashMap;
use std::sync::Arc;

use super::fold;
use crate::Bytes;
use crate::ir::ops::{BroadcastInDim, Compare, Constant, Iota, Reduce, Return, Slice, Transpose};
use crate::ir::{
    BlockId, Body, ComparisonDirection, ElementKind, ElementType, Literal, LiteralData, Location, Op, OpCode,
    OpId, TensorType, Type, ValueId,
};
use crate::text::float_bits;

/// A body, the block that operations are added to, and the location that they get.
///
/// Values that decompositions handle are tensors; [`Rewriter::operands`](super::rewriter::Rewriter::operands) has checked
/// that for those that come from the program.
pub(super) struct Builder {
    pub(super) body: Body,
    pub(super) block: BlockId,
    pub(super) location: Location,
    /// Elements of values that are known, by the index of the value.
    pub(super) known: Vec<Option<Arc<[i64]>>>,
    /// The splats of the block at hand: decompositions use the same numbers again and again.
    splats: HashMap<(TensorType, Vec<u8>), ValueId>,
    /// The block that they are in.
    splats_block: Option<BlockId>,
}

impl Builder {
    /// An empty body.
    pub(super) fn new() -> Self {
        let mut body = Body::new();
        let block = body.add_block(Body::ROOT);
        let (known, splats) = (Vec::new(), HashMap::new());
        Builder { body, block, location: Location::UNKNOWN, known, splats, splats_block: None }
    }

    /// The type of a tensor.
    pub(super) fn ty(&self, value: ValueId) -> TensorType {
        self.body.ty(value).as_tensor().expect("decompositions handle tensors").clone()
    }

    /// The sizes of a tensor.
    pub(super) fn dims(&self, value: ValueId) -> Vec<i64> {
        self.ty(value).dims().to_vec()
    }

    /// The element type of a tensor.
    pub(super) fn element(&self, value: ValueId) -> ElementType {
        self.ty(value).element_type()
    }

    /// Adds an operation.
    pub(super) fn add_op(&mut self, kind: Op, operands: &[ValueId], results: Vec<Type>) -> OpId {
        let id = self.body.add_op(self.block, kind, operands, results, self.location.clone());
        fold::note(self, id);
        id
    }

    /// Adds an operation with one result.
    pub(super) fn op(&mut self, kind: Op, operands: &[ValueId], result: TensorType) -> ValueId {
        let id = self.add_op(kind, operands, vec![result.into()]);
        self.body.op(id).result()
    }

    /// Adds an operation without attributes of its own.
    pub(super) fn plain(&mut self, code: OpCode, operands: &[ValueId], result: TensorType) -> ValueId {
        self.op(plain(code), operands, result)
    }

    /// Adds an operation without attributes of its own whose result has the type of its first operand.
    pub(super) fn same(&mut self, code: OpCode, operands: &[ValueId]) -> ValueId {
        let ty = self.ty(operands[0]);
        self.plain(code, operands, ty)
    }

    pub(super) fn add(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.same(OpCode::Add, &[x, y])
    }

    pub(super) fn sub(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.same(OpCode::Subtract, &[x, y])
    }

    pub(super) fn mul(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.same(OpCode::Multiply, &[x, y])
    }

    pub(super) fn div(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.same(OpCode::Divide, &[x, y])
    }

    pub(super) fn max(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.same(OpCode::Maximum, &[x, y])
    }

    pub(super) fn min(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.same(OpCode::Minimum, &[x, y])
    }

    pub(super) fn and(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.same(OpCode::And, &[x, y])
    }

    pub(super) fn or(&mut self, x: ValueId, y: ValueId) -> ValueId {
        self.same(OpCode::Or, &[x, y])
    }

    pub(super) fn neg(&mut self, x: ValueId) -> ValueId {
        self.same(OpCode::Negate, &[x])
    }

    pub(super) fn abs(&mut self, x: ValueId) -> ValueId {
        self.same(OpCode::Abs, &[x])
    }

    pub(super) fn sqrt(&mut self, x: ValueId) -> ValueId {
        self.same(OpCode::Sqrt, &[x])
    }

    pub(super) fn exp(&mut self, x: ValueId) -> ValueId {
        self.same(OpCode::Exponential, &[x])
    }

    pub(super) fn log(&mut self, x: ValueId) -> ValueId {
        self.same(OpCode::Log, &[x])
    }

    pub(super) fn log1p(&mut self, x: ValueId) -> ValueId {
        self.same(OpCode::LogPlusOne, &[x])
    }

    pub(super) fn floor(&mut self, x: ValueId) -> ValueId {
        self.same(OpCode::Floor, &[x])
    }

    /// `on_true` where the predicate holds, otherwise `on_false`.
    pub(super) fn select(&mut self, predicate: ValueId, on_true: ValueId, on_false: ValueId) -> ValueId {
        let ty = self.ty(on_true);
        self.plain(OpCode::Select, &[predicate, on_true, on_false], ty)
    }

    /// Compares in the natural order of the element type.
    pub(super) fn compare(&mut self, direction: ComparisonDirection, x: ValueId, y: ValueId) -> ValueId {
        let compare_type = crate::ir::ComparisonType::NoType;
        let ty = TensorType::new(ElementType::I1, self.dims(x));
        self.op(Op::Compare(Compare { comparison_direction: direction, compare_type }), &[x, y], ty)
    }

    /// Compares with a number.
    pub(super) fn compare_with(
        &mut self,
        direction: ComparisonDirection,
        x: ValueId,
        number: f64,
    ) -> ValueId {
        let number = self.number(number, x);
        self.compare(direction, x, number)
    }

    /// Converts elements to another type, unless they have it.
    pub(super) fn convert(&mut self, x: ValueId, element: ElementType) -> ValueId {
        let ty = self.ty(x);
        if ty.element_type() == element {
            return x;
        }
        self.plain(OpCode::Convert, &[x], TensorType::new(element, ty.dims()))
    }

    /// Reinterprets bits as another type of the same width.
    pub(super) fn bitcast(&mut self, x: ValueId, element: ElementType) -> ValueId {
        let dims = self.dims(x);
        self.plain(OpCode::BitcastConvert, &[x], TensorType::new(element, dims))
    }

    /// A tensor of one number everywhere, of the type of another value.
    pub(super) fn number(&mut self, number: f64, like: ValueId) -> ValueId {
        let ty = self.ty(like);
        self.splat(number, ty)
    }

    /// A tensor of one number everywhere.
    pub(super) fn splat(&mut self, number: f64, ty: TensorType) -> ValueId {
        let bytes = element_bytes(ty.element_type(), number);
        self.splat_bytes(bytes, ty)
    }

    /// A tensor of zeros of any type of elements.
    pub(super) fn splat_zero(&mut self, ty: TensorType) -> ValueId {
        self.splat_bytes(vec![0; ty.storage_type().byte_width()], ty)
    }

    /// A tensor of one integer everywhere.
    pub(super) fn integer(&mut self, value: i64, ty: TensorType) -> ValueId {
        let bytes = value.to_le_bytes()[..ty.element_type().byte_width().min(8)].to_vec();
        self.splat_bytes(bytes, ty)
    }

    fn splat_bytes(&mut self, bytes: Vec<u8>, ty: TensorType) -> ValueId {
        if self.splats_block != Some(self.block) {
            self.splats.clear();
            self.splats_block = Some(self.block);
        }
        let key = (ty, bytes);
        if let Some(&value) = self.splats.get(&key) {
            return value;
        }
        let literal = Literal::new(key.0.clone(), LiteralData::Splat(key.1.as_slice().into()));
        let value = self.constant(literal.expect("decompositions make constants of definite size"));
        self.splats.insert(key, value);
        value
    }

    /// A constant.
    pub(super) fn constant(&mut self, value: Literal) -> ValueId {
        let ty = value.ty().clone();
        self.op(Op::Constant(Constant { value }), &[], ty)
    }

    /// A vector of numbers.
    pub(super) fn numbers(&mut self, numbers: &[f64], element: ElementType) -> ValueId {
        let bytes: Vec<u8> = numbers.iter().flat_map(|&number| element_bytes(element, number)).collect();
        let ty = TensorType::new(element, [numbers.len() as i64]);
        let literal = Literal::new(ty, LiteralData::Dense(Bytes::from(bytes)));
        self.constant(literal.expect("as many bytes as the numbers have"))
    }

    /// Repeats a tensor: its dimensions become these dimensions of the result.
    pub(super) fn broadcast(&mut self, x: ValueId, dimensions: &[i64], dims: &[i64]) -> ValueId {
        let ty = self.ty(x);
        if ty.dims() == dims && dimensions.iter().copied().eq(0..dims.len() as i64) {
            return x;
        }
        let kind = Op::BroadcastInDim(BroadcastInDim { broadcast_dimensions: dimensions.into() });
        self.op(kind, &[x], ty.with_dims(dims))
    }

    /// Repeats a scalar, or gives a tensor of these sizes as it is.
    pub(super) fn broadcast_scalar(&mut self, x: ValueId, dims: &[i64]) -> ValueId {
        if self.ty(x).rank() == dims.len() { x } else { self.broadcast(x, &[], dims) }
    }

    /// The same elements with other sizes.
    pub(super) fn reshape(&mut self, x: ValueId, dims: &[i64]) -> ValueId {
        let ty = self.ty(x);
        if ty.dims() == dims { x } else { self.plain(OpCode::Reshape, &[x], ty.with_dims(dims)) }
    }

    /// Permutes dimensions.
    pub(super) fn transpose(&mut self, x: ValueId, permutation: &[i64]) -> ValueId {
        if permutation.iter().copied().eq(0..permutation.len() as i64) {
            return x;
        }
        let ty = self.ty(x);
        let dims: Vec<i64> = permutation.iter().map(|&dimension| ty.dims()[dimension as usize]).collect();
        self.op(Op::Transpose(Transpose { permutation: permutation.into() }), &[x], ty.with_dims(dims))
    }

    /// A slice without strides.
    pub(super) fn slice(&mut self, x: ValueId, start: &[i64], limit: &[i64]) -> ValueId {
        let ty = self.ty(x);
        let dims: Vec<i64> = start.iter().zip(limit).map(|(start, limit)| limit - start).collect();
        let strides = vec![1; start.len()].into();
        let kind = Op::Slice(Slice { start_indices: start.into(), limit_indices: limit.into(), strides });
        self.op(kind, &[x], ty.with_dims(dims))
    }

    /// Counts along a dimension.
    pub(super) fn iota(&mut self, element: ElementType, dims: &[i64], dimension: i64) -> ValueId {
        self.op(Op::Iota(Iota { iota_dimension: dimension }), &[], TensorType::new(element, dims))
    }

    /// Reduces dimensions with an operation, from a number.
    pub(super) fn reduce(&mut self, x: ValueId, dimensions: &[i64], code: OpCode, initial: f64) -> ValueId {
        let ty = self.ty(x);
        let scalar = TensorType::new(ty.element_type(), []);
        let initial = self.splat(initial, scalar.clone());
        let kept = (0..ty.rank()).filter(|&dimension| !dimensions.contains(&(dimension as i64)));
        let dims: Vec<i64> = kept.map(|dimension| ty.dims()[dimension]).collect();
        let kind = Op::Reduce(Reduce { dimensions: dimensions.into() });
        let reduce = self.add_op(kind, &[x, initial], vec![ty.with_dims(dims).into()]);
        self.combiner(reduce, code, scalar);
        self.body.op(reduce).result()
    }

    /// Gives an operation a region that combines two scalars with an operation.
    pub(super) fn combiner(&mut self, op: OpId, code: OpCode, scalar: TensorType) {
        let arguments = self.begin_region(op, &[scalar.clone().into(), scalar.into()]);
        let result = self.same(code, &arguments.values);
        self.end_region(arguments, &[result]);
    }

    /// Begins a region of an operation: what is added until [`Builder::end_region`] is in it.
    pub(super) fn begin_region(&mut self, op: OpId, arguments: &[Type]) -> OpenRegion {
        let region = self.body.add_region(Some(op));
        let outer = std::mem::replace(&mut self.block, self.body.add_block(region));
        let block = self.block;
        let values = arguments.iter().map(|ty| self.body.add_argument(block, ty.clone())).collect();
        OpenRegion { values, outer }
    }

    /// Ends a region with what it returns.
    pub(super) fn end_region(&mut self, region: OpenRegion, returned: &[ValueId]) {
        self.add_op(Op::Return(Return {}), returned, Vec::new());
        self.leave_region(&region);
    }

    /// Goes on outside of a region whose end is added later.
    pub(super) fn leave_region(&mut self, region: &OpenRegion) {
        self.block = region.outer;
    }
}

/// A region that is being built.
pub(super) struct OpenRegion {
    /// Its arguments.
    pub(super) values: Vec<ValueId>,
    outer: BlockId,
}

/// An operation all of whose attributes have defaults.
pub(super) fn plain(code: OpCode) -> Op {
    Op::from_attributes(code, &mut |_| None).expect("the operation's attributes have defaults")
}

/// The stored bytes of a number as an element.
pub(super) fn element_bytes(element: ElementType, number: f64) -> Vec<u8> {
    let width = element.byte_width();
    match element.kind() {
        ElementKind::Float => float_bits(element, number).to_le_bytes()[..width].to_vec(),
        ElementKind::Complex => {
            let part = element.complex_part().expect("complex numbers have parts");
            [element_bytes(part, number), element_bytes(part, 0.0)].concat()
        }
        ElementKind::Boolean => vec![u8::from(number != 0.0)],
        _ => (number as i64).to_le_bytes()[..width].to_vec(),
    }
}
