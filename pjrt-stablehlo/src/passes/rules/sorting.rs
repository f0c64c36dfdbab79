//! The rule for `sort`.

use super::movement::concatenate;
use super::order::{is_before, with_positions};
use super::selection::{is_total_order, num_read, selection};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{DynamicSlice, While};
use crate::ir::{ComparisonDirection as Cmp, ElementType, Op, Operation, TensorType, ValueId};
use crate::passes::rewrite::{Rewriter, mismatch};

/// Decomposes `sort`: Batcher's merge exchange, a loop in which each step exchanges elements at a distance that are in the wrong
/// order. For `n` elements, it takes about `log2(n)^2 / 2` steps. A selection takes its place if the program reads fewer elements
/// than that.
pub(super) fn sort<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let Op::Sort(sort) = &op.kind else { return Err(mismatch(op)) };
    let mut operands = r.tensors(op)?;
    let ty = r.result(op)?;
    let dimension = if sort.dimension < 0 { sort.dimension + ty.rank() as i64 } else { sort.dimension };
    let dimension = usize::try_from(dimension).map_err(|_| mismatch(op))?;
    let size = ty.dims().get(dimension).copied().unwrap_or(1);
    if size < 2 {
        return Ok(operands);
    }
    let count = operands.len();
    let steps = u64::from(size.ilog2() + 1).pow(2) / 2;
    let read = num_read(r.old_body(), op, dimension).unwrap_or(size);
    if (read as u64) < steps && is_total_order(r.old_body(), op) {
        let positions = with_positions(r, &mut operands, dimension);
        return selection(r, op, &operands, dimension, positions, read);
    }
    let positions = sort.is_stable.then(|| with_positions(r, &mut operands, dimension));
    // The numbers of a step are at most four times the size.
    let element = if size < 1 << 29 { ElementType::I32 } else { ElementType::I64 };
    let counter = TensorType::new(element, []);
    let one = r.b.integer(1, counter.clone());
    let state = [&[one, one], &*operands].concat();
    let types: Vec<_> = state.iter().map(|&value| r.b.ty(value).clone()).collect();
    let id = r.b.add_op(While {}, &state, types.clone());
    r.b.region(id, types.clone(), |b, state| {
        let size = b.integer(size, counter.clone());
        vec![b.compare(Cmp::Lt, state[0], size)]
    });
    let outer = r.b.begin_region(id, types);
    let state = r.b.arguments();
    let values = exchanged(r, op, [state[0], state[1]], &state[2..], dimension, positions)?;
    let next = next_distances(&mut r.b, state[0], state[1]);
    r.b.end_region(outer, &[&next[..], &values].concat());
    let mut sorted = r.b.all_results(id).split_off(2);
    sorted.truncate(count);
    Ok(sorted)
}

/// Returns the next half of the merged blocks' size and the next distance. The distances of a block of 8 are 4, 2 and 1.
fn next_distances(b: &mut Builder, half: ValueId, distance: ValueId) -> [ValueId; 2] {
    let (one, two) = (b.number(1.0, half), b.number(2.0, half));
    let is_last = b.compare(Cmp::Eq, distance, one);
    let (double, less) = (b.multiply(half, two), b.divide(distance, two));
    [b.select(is_last, double, half), b.select(is_last, double, less)]
}

/// Exchanges the elements at a distance that belong to one block and are in the wrong order.
fn exchanged<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    [half, distance]: [ValueId; 2],
    values: &[ValueId],
    dimension: usize,
    positions: Option<usize>,
) -> Result<Vec<ValueId>, Error> {
    let b = &mut r.b;
    let dims = b.dims(values[0]);
    let size = b.number(dims[dimension] as f64, distance);
    let back = b.subtract(size, distance);
    let joined: Vec<ValueId> =
        values.iter().map(|&value| concatenate(b, &[value, value], dimension)).collect();
    let above: Vec<ValueId> =
        joined.iter().map(|&value| slice_at(b, value, &dims, dimension, distance)).collect();
    let below: Vec<ValueId> =
        joined.iter().map(|&value| slice_at(b, value, &dims, dimension, back)).collect();
    let is_low = is_low(b, half, distance, &dims, dimension);
    let pairs = above.iter().zip(values).flat_map(|(&above, &value)| [above, value]);
    let is_wrong = is_before(r, op, &pairs.collect::<Vec<_>>(), positions)?;
    let b = &mut r.b;
    let from_above = b.and(is_wrong, is_low);
    let twice = concatenate(b, &[from_above, from_above], dimension);
    let from_below = slice_at(b, twice, &dims, dimension, back);
    let exchanged = values.iter().zip(above.iter().zip(&below)).map(|(&value, (&above, &below))| {
        let value = b.select(from_below, below, value);
        b.select(from_above, above, value)
    });
    Ok(exchanged.collect())
}

/// Returns where an element is the lower one of a pair. The pairs of a step begin at every other multiple of the distance, which
/// are the odd ones if the distance is less than half of the block, and do not leave their block. Both numbers are powers of two.
fn is_low(b: &mut Builder, half: ValueId, distance: ValueId, dims: &[i64], dimension: usize) -> ValueId {
    let two = b.number(2.0, half);
    let (block, zero) = (b.multiply(half, two), b.number(0.0, distance));
    let is_first = b.compare(Cmp::Eq, distance, half);
    let bit = b.select(is_first, zero, distance);
    let [block, bit, distance] = [block, bit, distance].map(|scalar| b.broadcast(scalar, &[], dims));
    let position = b.iota(b.element(distance), dims, dimension as i64);
    let other = b.add(position, distance);
    let (own_bit, differing_bits) = (b.and(position, distance), b.xor(position, other));
    let size = b.number(dims[dimension] as f64, position);
    let begins = b.compare(Cmp::Eq, own_bit, bit);
    let is_same_block = b.compare(Cmp::Lt, differing_bits, block);
    let is_within = b.compare(Cmp::Lt, other, size);
    let stays = b.and(is_same_block, is_within);
    b.and(begins, stays)
}

/// Returns the slice of these sizes that begins at an index of a dimension.
fn slice_at(b: &mut Builder, x: ValueId, dims: &[i64], dimension: usize, start: ValueId) -> ValueId {
    let zero = b.number(0.0, start);
    let starts = (0..dims.len()).map(|other| if other == dimension { start } else { zero });
    let operands: Vec<ValueId> = [x].into_iter().chain(starts).collect();
    b.op(DynamicSlice { slice_sizes: dims.into() }, &operands)
}
