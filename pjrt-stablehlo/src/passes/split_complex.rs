//! Replacement of complex numbers by their real and imaginary parts.
//!
//! A value of a complex type becomes two values, of the real and of the imaginary parts. Rules have decomposed the functions of
//! complex numbers into those of parts before, so the remaining operations move elements, add them, multiply matrices of them, or
//! pass on values.

use super::rewrite::{Pass, Replacement, Rewriter, mismatch};
use crate::Error;
use crate::ir::{
    Body, Module, Op, OpCode, OpId, Operation, Reducer, RegionId, TensorType, Trait, Type, ValueId,
};

/// The operations whose real parts are those of the real parts of the operands, and whose imaginary parts are those of the
/// imaginary parts.
#[rustfmt::skip]
const BY_PARTS: &[OpCode] = &[
    OpCode::Add, OpCode::BroadcastInDim, OpCode::CollectiveBroadcast, OpCode::CollectivePermute, OpCode::Concatenate,
    OpCode::DynamicSlice, OpCode::DynamicUpdateSlice, OpCode::Gather, OpCode::Negate, OpCode::Pad, OpCode::Reshape,
    OpCode::Reshard, OpCode::Reverse, OpCode::Select, OpCode::SetDimensionSize, OpCode::ShardingConstraint, OpCode::Slice,
    OpCode::Subtract, OpCode::Transpose,
];

/// The operations with any number of values, which pass on parts as they pass on whole numbers.
#[rustfmt::skip]
const FLATTENED: &[OpCode] = &[
    OpCode::AllGather, OpCode::AllToAll, OpCode::Case, OpCode::FuncCall, OpCode::If, OpCode::OptimizationBarrier, OpCode::Reduce,
    OpCode::ReduceWindow, OpCode::Scatter, OpCode::While,
];

/// The other operations that the pass replaces.
#[rustfmt::skip]
const REPLACED: &[OpCode] = &[
    OpCode::AllReduce, OpCode::Complex, OpCode::Convolution, OpCode::DotGeneral, OpCode::GetDimensionSize, OpCode::Imag,
    OpCode::Real, OpCode::ReduceScatter, OpCode::Sort,
];

/// Returns `true` if an operation has a complex operand or result.
pub(super) fn is_complex(body: &Body, op: &Operation) -> bool {
    body.element_types(op).iter().any(|element| element.is_complex())
}

/// Returns `true` if the pass replaces an operation with complex operands or results. All others must be decomposed before.
pub(super) fn is_split(op: &Op) -> bool {
    let code = op.code();
    [BY_PARTS, FLATTENED, REPLACED].iter().any(|codes| codes.contains(&code))
        || code.info().has(Trait::Terminator)
}

/// The pass that replaces complex types. It keeps other operations.
pub(super) struct SplitComplex;

impl SplitComplex {
    /// Returns `true` if a value of the program has a complex type.
    pub(super) fn is_needed(module: &Module) -> bool {
        module.functions().iter().any(|function| {
            let types = function.ty.inputs.iter().chain(&function.ty.results);
            types.chain(function.body.values().map(|(_, value)| &value.ty)).any(has_parts)
        })
    }
}

impl Pass for SplitComplex {
    fn converted(&self, ty: &Type) -> Option<Vec<Type>> {
        let part = Type::from(part_type(ty)?);
        Some(vec![part.clone(), part])
    }

    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        if !is_complex(r.old_body(), op) {
            return Ok(Replacement::Copy);
        }
        let code = op.kind.code();
        let values = match &op.kind {
            Op::Complex(_) => r.flat(&op.operands),
            Op::Real(_) | Op::GetDimensionSize(_) | Op::Imag(_) => {
                let (real, imag) = parts(r, op.operand(0));
                match op.kind {
                    Op::Real(_) => vec![real],
                    Op::Imag(_) => vec![imag],
                    _ => {
                        let types = r.result_types(op);
                        r.b.op_of_types(op.kind.clone(), &[real], types)
                    }
                }
            }
            Op::DotGeneral(_) | Op::Convolution(_) => product(r, op),
            Op::Sort(_) => sort(r, op)?,
            _ if BY_PARTS.contains(&code) => by_parts(r, op, None)?,
            _ => match componentwise(r.old_body(), op) {
                Some(reducer) => by_parts(r, op, Some(reducer))?,
                None if FLATTENED.contains(&code) => return Ok(Replacement::Copy),
                None => return Err(mismatch(op)),
            },
        };
        Ok(Replacement::Values(values))
    }
}

/// Returns the type of the parts of a complex type.
fn part_type(ty: &Type) -> Option<TensorType> {
    let ty = ty.as_tensor()?;
    Some(ty.with_element_type(ty.element_type().complex_part()?))
}

fn has_parts(ty: &Type) -> bool {
    part_type(ty).is_some()
}

/// Returns the real and the imaginary part of an operand. A real operand is both.
fn parts(r: &Rewriter<'_>, operand: ValueId) -> (ValueId, ValueId) {
    match r.flat(&[operand])[..] {
        [real, imag] => (real, imag),
        ref values => (values[0], values[0]),
    }
}

/// The computation of a region that treats each part of its two arguments alone.
#[derive(Clone, Copy)]
enum Componentwise {
    /// Adds them.
    Add,
    /// Returns the second one.
    Second,
}

/// Returns the computation of an operation's region, if it treats each part of its arguments alone.
fn componentwise(body: &Body, op: &Operation) -> Option<Componentwise> {
    let is_combination = matches!(
        op.kind,
        Op::AllReduce(_) | Op::Reduce(_) | Op::ReduceScatter(_) | Op::ReduceWindow(_) | Op::Scatter(_)
    );
    let region = *op.regions.first().filter(|_| is_combination && op.results.len() == 1)?;
    match Reducer::of(body, region) {
        Some(Reducer::Add) => Some(Componentwise::Add),
        _ if returns_second(body, region) => Some(Componentwise::Second),
        _ => None,
    }
}

/// Returns `true` if a region returns its second argument.
fn returns_second(body: &Body, region: RegionId) -> bool {
    let [block] = body.region(region).blocks[..] else { return false };
    let block = body.block(block);
    let ([_, second], [end]) = (&block.arguments[..], &block.ops[..]) else { return false };
    *body.op(*end).operands == [*second]
}

/// Replaces an operation by one for the real parts and one for the imaginary parts.
fn by_parts(
    r: &mut Rewriter<'_>,
    op: &Operation,
    region: Option<Componentwise>,
) -> Result<Vec<ValueId>, Error> {
    let ty = part_type(r.old_type(op.result())).ok_or_else(|| mismatch(op))?;
    let pairs: Vec<(ValueId, ValueId)> = op.operands.iter().map(|operand| parts(r, *operand)).collect();
    let (real, imag): (Vec<ValueId>, Vec<ValueId>) = pairs.into_iter().unzip();
    let mut part = |operands: &[ValueId]| {
        let id = r.b.add_op(op.kind.clone(), operands, [Type::from(ty.clone())]);
        r.b.body.op_mut(id).attributes = op.attributes.clone();
        if let Some(region) = region {
            add_region(r, id, region, ty.with_dims([]));
        }
        r.b.result(id)
    };
    Ok(vec![part(&real), part(&imag)])
}

fn add_region(r: &mut Rewriter<'_>, id: OpId, region: Componentwise, scalar: TensorType) {
    match region {
        Componentwise::Add => r.b.combiner(id, OpCode::Add, scalar),
        Componentwise::Second => {
            let arguments = [scalar.clone().into(), scalar.into()];
            r.b.region(id, arguments, |_, arguments| vec![arguments[1]]);
        }
    }
}

/// Replaces a product of matrices or a convolution by products of the parts.
fn product(r: &mut Rewriter<'_>, op: &Operation) -> Vec<ValueId> {
    let types = r.result_types(op);
    let (left, right) = (op.operand(0), op.operand(1));
    let is_real = [left, right].map(|operand| !has_parts(r.old_type(operand)));
    let ((a, b), (c, d)) = (parts(r, left), parts(r, right));
    let mut of = |left: ValueId, right: ValueId| {
        let id = r.b.add_op(op.kind.clone(), &[left, right], [types[0].clone()]);
        r.b.body.op_mut(id).attributes = op.attributes.clone();
        r.b.result(id)
    };
    let (real, imag) = match is_real {
        [true, _] => return vec![of(a, c), of(a, d)],
        [_, true] => return vec![of(a, c), of(b, c)],
        _ => ([of(a, c), of(b, d)], [of(a, d), of(b, c)]),
    };
    vec![r.b.subtract(real[0], real[1]), r.b.add(imag[0], imag[1])]
}

/// Replaces `sort`, whose region has two arguments for each operand.
fn sort<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let (operands, types) = (r.flat(&op.operands), r.result_types(op));
    let scalars = types.iter().filter_map(Type::as_tensor).map(|ty| Type::from(ty.with_dims([])));
    let scalars: Vec<Type> = scalars.flat_map(|scalar| [scalar.clone(), scalar]).collect();
    let id = r.b.add_op(op.kind.clone(), &operands, types);
    let outer = r.b.begin_region(id, scalars);
    let (mut pairs, target) = (r.b.arguments(), r.b.block());
    r.b.set_block(outer);
    let mut arguments = Vec::with_capacity(pairs.len());
    for operand in &op.operands {
        let leaves: Vec<ValueId> = pairs.drain(..2 * r.leaf_count(r.old_type(*operand))).collect();
        arguments.extend(leaves.iter().step_by(2).chain(leaves.iter().skip(1).step_by(2)));
    }
    r.inline_region(op, 0, arguments, target, Box::new(|b, returned| b.return_values(&returned)))?;
    Ok(r.b.all_results(id))
}
