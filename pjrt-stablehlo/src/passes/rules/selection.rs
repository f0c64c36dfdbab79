//! The first elements of a sort, one after the other.

use super::order::is_before;
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{DynamicUpdateSlice, Reduce, While};
use crate::ir::{
    Body, ComparisonDirection as Cmp, ComparisonType, ElementType, Op, Operation, TensorType, Type, ValueId,
};
use crate::passes::rewrite::Rewriter;

/// Returns the number of elements that a program reads of each result of a sort, which are the first along the dimension.
/// Returns `None` if it may read all.
pub(super) fn num_read(body: &Body, sort: &Operation, dimension: usize) -> Option<i64> {
    let mut read = 0;
    for (_, op) in body.all_ops() {
        if !op.operands.iter().any(|operand| sort.results.clone().any(|result| result == *operand)) {
            continue;
        }
        let Op::Slice(slice) = &op.kind else { return None };
        read = read.max(*slice.limit_indices.get(dimension)?);
    }
    Some(read)
}

/// Returns `true` if the comparator of a sort is one comparison that orders all elements of an operand.
pub(super) fn is_total_order(body: &Body, sort: &Operation) -> bool {
    let Some([compare, _]) = body.region_block(sort, 0).map(|block| &block.ops[..]) else { return false };
    let compare = body.op(*compare);
    let Op::Compare(comparison) = &compare.kind else { return false };
    let is_strict = matches!(comparison.comparison_direction, Cmp::Lt | Cmp::Gt);
    let is_total = comparison.compare_type == ComparisonType::TotalOrder
        || body.element_types(compare).first().is_some_and(|element| element.is_integer());
    let arguments = body.region_block(sort, 0).map_or(&[][..], |block| &block.arguments);
    is_strict && is_total && arguments.chunks(2).any(|pair| *pair == *compare.operands)
}

/// Returns the first `k` elements of a sort by a total order, as results of the sort whose other elements are undefined: a loop
/// in which each step finds the first of those that come after the last one. The operand `positions` decides for equal elements.
pub(super) fn selection<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    operands: &[ValueId],
    dimension: usize,
    positions: usize,
    k: i64,
) -> Result<Vec<ValueId>, Error> {
    let b = &mut r.b;
    let types: Vec<TensorType> = operands.iter().map(|operand| b.tensor(*operand)).collect();
    let mut reduced = types[0].dims().to_vec();
    let size = reduced.remove(dimension);
    let counter = TensorType::new(ElementType::I32, []);
    let zero = b.integer(0, counter.clone());
    let last: Vec<ValueId> = types.iter().map(|ty| b.zeros(ty.with_dims(&*reduced))).collect();
    let found: Vec<ValueId> = types[..op.results.len()].iter().map(|ty| b.zeros(ty.clone())).collect();
    let state = [&[zero][..], &last, &found].concat();
    let state_types: Vec<Type> = state.iter().map(|&value| b.ty(value).clone()).collect();
    let id = b.add_op(While {}, &state, state_types.clone());
    b.region(id, state_types.clone(), |b, state| {
        let k = b.integer(k, counter);
        vec![b.compare(Cmp::Lt, state[0], k)]
    });
    let outer = b.begin_region(id, state_types);
    let state = b.arguments();
    let (step, (last, found)) = (state[0], state[1..].split_at(operands.len()));
    let remaining = remaining(r, op, operands, (step, last), (dimension, positions))?;
    let first = first(r, op, &remaining, (dimension, positions), size)?;
    let b = &mut r.b;
    let found = found.iter().zip(&first).map(|(&found, &first)| update_at(b, found, first, dimension, step));
    let mut next = found.collect::<Vec<_>>();
    let one = b.number(1.0, step);
    let step = b.add(step, one);
    next = [&[step][..], &first, &next].concat();
    b.end_region(outer, &next);
    Ok(r.b.all_results(id).split_off(1 + operands.len()))
}

/// Returns the operands of a selection, with the size of the dimension as the position of each element that was found before.
fn remaining<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    operands: &[ValueId],
    (step, last): (ValueId, &[ValueId]),
    (dimension, positions): (usize, usize),
) -> Result<Vec<ValueId>, Error> {
    let dims = r.b.dims(operands[0]);
    let others: Vec<i64> = (0..dims.len() as i64).filter(|other| *other != dimension as i64).collect();
    let pairs = last
        .iter()
        .zip(operands)
        .flat_map(|(&last, &operand)| [r.b.broadcast(last, &others, &dims), operand]);
    let pairs = pairs.collect::<Vec<_>>();
    let is_after = is_before(r, op, &pairs, Some(positions))?;
    let b = &mut r.b;
    let is_first_step = b.compare_with(Cmp::Eq, step, 0.0);
    let is_first_step = b.broadcast(is_first_step, &[], &dims);
    let remains = b.or(is_first_step, is_after);
    let size = b.number(dims[dimension] as f64, operands[positions]);
    let mut remaining = operands.to_vec();
    remaining[positions] = b.select(remains, operands[positions], size);
    Ok(remaining)
}

/// Returns the first of the remaining elements along a dimension.
fn first<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    operands: &[ValueId],
    (dimension, positions): (usize, usize),
    size: i64,
) -> Result<Vec<ValueId>, Error> {
    let b = &mut r.b;
    let scalars: Vec<TensorType> = operands.iter().map(|operand| b.tensor(*operand).with_dims([])).collect();
    let mut initial: Vec<ValueId> = scalars.iter().map(|ty| b.zeros(ty.clone())).collect();
    initial[positions] = b.integer(size, scalars[positions].clone());
    let reduced: Vec<i64> = b
        .dims(operands[0])
        .into_iter()
        .enumerate()
        .filter(|(at, _)| *at != dimension)
        .map(|(_, size)| size)
        .collect();
    let results: Vec<Type> = scalars.iter().map(|ty| ty.with_dims(&*reduced).into()).collect();
    let kind = Reduce { dimensions: vec![dimension as i64].into() };
    let id = b.add_op(kind, &[operands, &initial].concat(), results);
    let arguments: Vec<Type> = scalars.iter().chain(&scalars).cloned().map(Type::from).collect();
    let outer = b.begin_region(id, arguments);
    let arguments = b.arguments();
    let (lhs, rhs) = arguments.split_at(operands.len());
    let pairs = lhs.iter().zip(rhs).flat_map(|(&lhs, &rhs)| [lhs, rhs]).collect::<Vec<_>>();
    let is_before = is_before(r, op, &pairs, Some(positions))?;
    let b = &mut r.b;
    let lhs_remains = b.compare_with(Cmp::Lt, lhs[positions], size as f64);
    let rhs_was_found = b.compare_with(Cmp::Ge, rhs[positions], size as f64);
    let takes_lhs = b.or(rhs_was_found, is_before);
    let takes_lhs = b.and(lhs_remains, takes_lhs);
    let chosen: Vec<ValueId> =
        lhs.iter().zip(rhs).map(|(&lhs, &rhs)| b.select(takes_lhs, lhs, rhs)).collect();
    b.end_region(outer, &chosen);
    Ok(r.b.all_results(id))
}

/// Returns a tensor with other elements at an index of a dimension.
fn update_at(b: &mut Builder, x: ValueId, update: ValueId, dimension: usize, index: ValueId) -> ValueId {
    let mut dims = b.dims(x);
    let zero = b.number(0.0, index);
    let starts: Vec<ValueId> =
        (0..dims.len()).map(|other| if other == dimension { index } else { zero }).collect();
    dims[dimension] = 1;
    let update = b.reshape(update, &dims);
    b.op(DynamicUpdateSlice {}, &[&[x, update][..], &starts].concat())
}
