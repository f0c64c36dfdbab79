//! Computation of operations in a wider element type than that of their arrays.

use std::collections::HashMap;

use super::CoreOps;
use super::rewrite::{Rewriter, unsupported};
use super::rules::rewrite_of;
use crate::ir::ops::Constant;
use crate::ir::{
    Block, Body, ElementType, Literal, LiteralData, Op, OpCode, OpId, Operation, TensorType, Trait, Type,
    ValueId, float_bits, float_value,
};
use crate::{Bytes, Error};

/// The operations that can be computed in a wider type, besides elementwise ones. Rounding their results is their only rounding
/// in the narrow type.
#[rustfmt::skip]
const OPS: &[OpCode] = &[
    OpCode::AllGather, OpCode::AllReduce, OpCode::AllToAll, OpCode::BroadcastInDim, OpCode::Cholesky,
    OpCode::CollectiveBroadcast, OpCode::CollectivePermute, OpCode::CollectiveReduce, OpCode::Concatenate, OpCode::Constant,
    OpCode::Convolution, OpCode::DotGeneral, OpCode::DynamicSlice, OpCode::DynamicUpdateSlice, OpCode::Gather, OpCode::Iota,
    OpCode::Pad, OpCode::Reduce, OpCode::ReduceScatter, OpCode::ReduceWindow, OpCode::Reshape, OpCode::Reverse,
    OpCode::Scatter, OpCode::SelectAndScatter, OpCode::Slice, OpCode::Sort, OpCode::Transpose, OpCode::TriangularSolve,
];

/// Returns `true` if the set computes an operation, which it does not support as it is, in wider types: with the operation for
/// these types, or with its decomposition.
pub(super) fn is_widened(core: &CoreOps, body: &Body, op: &Operation) -> bool {
    let code = op.kind.code();
    let elements = body.element_types(op);
    let is_static = |value: ValueId| body.ty(value).as_tensor().is_some_and(|ty| ty.static_dims().is_some());
    elements.iter().any(|element| core.wider(*element).is_some())
        && (core.contains(code) || rewrite_of(body, op).is_some())
        && !core.is_conversion_to_wider(op, &elements)
        && !converts_integers(&op.kind, &elements)
        && (op.info().has(Trait::Elementwise) || OPS.contains(&code))
        && op.operands.iter().copied().chain(op.results).all(is_static)
        && op.regions.iter().all(
            |region| matches!(body.region(*region).blocks[..], [block] if is_simple(body, body.block(block))),
        )
}

/// Returns `true` if the operation converts integers, for which the rule of `convert` keeps the two steps apart.
fn converts_integers(op: &Op, elements: &[ElementType]) -> bool {
    matches!(op, Op::Convert(_)) && elements.first().is_some_and(|element| element.is_integer())
}

/// Returns `true` if all operations of a region are elementwise.
fn is_simple(body: &Body, block: &Block) -> bool {
    block.ops.iter().map(|id| body.op(*id)).all(|op| {
        let info = op.info();
        matches!(op.kind, Op::Constant(_)) || info.has(Trait::Elementwise) || info.has(Trait::Terminator)
    })
}

/// Adds the operation with wider types, and the conversions of its operands and results. Returns the results.
pub(super) fn widened<'m>(
    core: &CoreOps,
    r: &mut Rewriter<'m>,
    op: &'m Operation,
) -> Result<Vec<ValueId>, Error> {
    let operands =
        r.flat(&op.operands).into_iter().map(|operand| wide_value(core, r, operand)).collect::<Vec<_>>();
    let narrow = r.result_types(op);
    let values = if let Some(operand) = converted_already(core, r, op, &operands) {
        vec![operand]
    } else {
        let types = narrow.iter().map(|ty| wide_type(core, ty));
        let id = r.b.add_op(wide_kind(core, &op.kind)?, &operands, types.collect::<Vec<_>>());
        r.b.body.op_mut(id).attributes = op.attributes.clone();
        for region in &op.regions {
            let block = r.old_body().region(*region).blocks[0];
            copy_region(core, r, r.old_body().block(block), id)?;
        }
        r.b.all_results(id)
    };
    let to_narrow = values.into_iter().zip(&narrow).map(|(value, ty)| match ty.as_tensor() {
        Some(ty) => r.b.convert(value, ty.element_type()),
        None => value,
    });
    Ok(to_narrow.collect())
}

/// Copies a region, whose operations compute in the wider types.
fn copy_region(core: &CoreOps, r: &mut Rewriter<'_>, block: &Block, id: OpId) -> Result<(), Error> {
    let body = r.old_body();
    let types: Vec<Type> =
        block.arguments.iter().map(|argument| wide_type(core, body.ty(*argument))).collect();
    let (outer, location) = (r.b.begin_region(id, types), r.b.location.clone());
    let mut values: HashMap<ValueId, ValueId> =
        block.arguments.iter().copied().zip(r.b.arguments()).collect();
    for op in block.ops.iter().map(|id| body.op(*id)) {
        r.b.location = op.location.clone();
        let operands = op.operands.iter().map(|operand| match values.get(operand) {
            Some(value) => vec![*value],
            None => r.flat(&[*operand]),
        });
        let operands: Vec<ValueId> = operands.collect::<Vec<_>>().concat();
        let operands: Vec<ValueId> =
            operands.into_iter().map(|operand| wide_value(core, r, operand)).collect();
        if op.info().has(Trait::Terminator) {
            r.b.location = location;
            r.b.end_region(outer, &operands);
            return Ok(());
        }
        let results = match converted_already(core, r, op, &operands) {
            Some(operand) => vec![operand],
            None => {
                let types = op.results.map(|result| wide_type(core, body.ty(result)));
                r.b.op_of_types(wide_kind(core, &op.kind)?, &operands, types.collect::<Vec<_>>())
            }
        };
        values.extend(op.results.zip(results));
    }
    Err(unsupported("a region has no terminator"))
}

/// Returns the operand of a conversion that has the wider type of the result already.
fn converted_already(
    core: &CoreOps,
    r: &Rewriter<'_>,
    op: &Operation,
    operands: &[ValueId],
) -> Option<ValueId> {
    let (Op::Convert(_), [operand]) = (&op.kind, operands) else { return None };
    let result = wide_type(core, r.old_type(op.result()));
    (r.b.body.ty(*operand) == &result).then_some(*operand)
}

fn wide_value(core: &CoreOps, r: &mut Rewriter<'_>, value: ValueId) -> ValueId {
    let element = r.b.body.ty(value).as_tensor().map(TensorType::element_type);
    match element.and_then(|element| core.wider(element)) {
        Some(wide) => r.b.convert(value, wide),
        None => value,
    }
}

fn wide_type(core: &CoreOps, ty: &Type) -> Type {
    let wide = ty.as_tensor().and_then(|ty| Some(TensorType::new(core.wider(ty.element_type())?, ty.dims())));
    wide.map_or_else(|| ty.clone(), Type::from)
}

fn wide_kind(core: &CoreOps, kind: &Op) -> Result<Op, Error> {
    let Op::Constant(constant) = kind else { return Ok(kind.clone()) };
    let literal = &constant.value;
    let Some(wide) = core.wider(literal.ty().element_type()) else { return Ok(kind.clone()) };
    let (narrow, width) = (literal.ty().element_type(), wide.byte_width());
    let wide_bytes = |bytes: &[u8]| -> Bytes {
        let elements = bytes.chunks_exact(narrow.byte_width());
        let elements = elements.flat_map(|element| {
            let number =
                float_value(narrow, element.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)));
            float_bits(wide, number).to_le_bytes().into_iter().take(width)
        });
        elements.collect::<Vec<u8>>().into()
    };
    let data = match literal.data() {
        LiteralData::Dense(bytes) => LiteralData::Dense(wide_bytes(bytes)),
        LiteralData::Splat(bytes) => LiteralData::Splat(wide_bytes(bytes)),
        LiteralData::Bits(_) => return Ok(kind.clone()),
    };
    let value = Literal::new(TensorType::new(wide, literal.ty().dims()), data);
    Ok(Constant { value: value.map_err(|error| unsupported(error.to_string()))? }.into())
}
