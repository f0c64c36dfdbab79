//! Rules for operations that move elements.

use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{Concatenate, Gather, Slice};
use crate::ir::{
    ComparisonDirection as Cmp, ElementType, GatherDimensionNumbers, Op, Operation, TensorType, ValueId,
};
use crate::passes::rewrite::{Rewriter, mismatch, unsupported};

/// The maximum size of a dimension that is reversed by slices.
const MAX_SLICES: i64 = 64;

/// The maximum size of a dimension along which `iota` becomes a constant.
const MAX_CONSTANT: i64 = 1 << 16;

/// Returns the operands joined along a dimension; a single one is returned unchanged.
pub(super) fn concatenate(b: &mut Builder, parts: &[ValueId], dimension: usize) -> ValueId {
    match *parts {
        [single] => single,
        _ => b.op(Concatenate { dimension: dimension as i64 }, parts),
    }
}

/// Returns every `stride`th of the elements `start..limit` along one dimension.
pub(super) fn strided_slice(
    b: &mut Builder,
    x: ValueId,
    dimension: usize,
    [start, limit, stride]: [i64; 3],
) -> ValueId {
    let mut limits = b.dims(x);
    let mut starts = vec![0; limits.len()];
    let mut strides = vec![1; limits.len()];
    (starts[dimension], limits[dimension], strides[dimension]) = (start, limit, stride);
    let kind = Slice { start_indices: starts.into(), limit_indices: limits.into(), strides: strides.into() };
    b.op(kind, &[x])
}

/// Returns a tensor of one element in place of a dimension's: `size` times the scalar `value`.
fn filling(b: &mut Builder, like: ValueId, dimension: usize, size: i64, value: ValueId) -> ValueId {
    let mut dims = b.dims(like);
    dims[dimension] = size;
    b.broadcast(value, &[], &dims)
}

/// Decomposes `pad`.
pub(super) fn pad(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Pad(pad) = &op.kind else { return Err(mismatch(op)) };
    let [mut x, value] = r.operands(op)?;
    let b = &mut r.b;
    for dimension in 0..b.dims(x).len() {
        let [low, high, interior] =
            [&pad.edge_padding_low, &pad.edge_padding_high, &pad.interior_padding].map(|all| all[dimension]);
        if interior > 0 {
            x = spread(b, x, dimension, interior, value);
        }
        let before = (low > 0).then(|| filling(b, x, dimension, low, value));
        let after = (high > 0).then(|| filling(b, x, dimension, high, value));
        let parts: Vec<ValueId> = before.into_iter().chain([x]).chain(after).collect();
        x = concatenate(b, &parts, dimension);
        let size = b.dims(x)[dimension];
        if low < 0 || high < 0 {
            x = b.slice_in_dim(x, dimension, 0.max(-low), size + high.min(0));
        }
    }
    Ok(x)
}

/// Inserts `interior` times `value` between the elements of a dimension.
fn spread(b: &mut Builder, x: ValueId, dimension: usize, interior: i64, value: ValueId) -> ValueId {
    let mut dims = b.dims(x);
    let size = dims[dimension];
    if size < 2 {
        return x;
    }
    dims.insert(dimension + 1, 1);
    let single = b.reshape(x, &dims);
    let filling = filling(b, single, dimension + 1, interior, value);
    let pairs = concatenate(b, &[single, filling], dimension + 1);
    dims.remove(dimension + 1);
    dims[dimension] = size * (interior + 1);
    let spread = b.reshape(pairs, &dims);
    b.slice_in_dim(spread, dimension, 0, size + (size - 1) * interior)
}

/// Decomposes `reverse`: slices of single elements in the opposite order, or a `gather` if there are many.
pub(super) fn reverse(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Reverse(reverse) = &op.kind else { return Err(mismatch(op)) };
    let [mut x] = r.operands(op)?;
    let b = &mut r.b;
    for &dimension in &reverse.dimensions {
        let size = b.dims(x)[dimension as usize];
        x = match size {
            0 | 1 => x,
            _ if size <= MAX_SLICES => {
                let at = |index| b.slice_in_dim(x, dimension as usize, index, index + 1);
                let slices: Vec<ValueId> = (0..size).rev().map(at).collect();
                concatenate(b, &slices, dimension as usize)
            }
            _ => reverse_by_gather(b, x, dimension),
        };
    }
    Ok(x)
}

fn reverse_by_gather(b: &mut Builder, x: ValueId, dimension: i64) -> ValueId {
    let ty = b.tensor(x);
    let size = ty.dims()[dimension as usize];
    let index = index_type(ty.dims());
    let positions = b.iota(index, &[size], 0);
    let last = b.integer(size - 1, TensorType::new(index, [size]));
    let indices = b.subtract(last, positions);
    let mut slice_sizes = ty.dims().to_vec();
    slice_sizes[dimension as usize] = 1;
    let dimension_numbers = GatherDimensionNumbers {
        offset_dims: (0..ty.rank() as i64).filter(|&other| other != dimension).collect(),
        collapsed_slice_dims: [dimension].into(),
        start_index_map: [dimension].into(),
        index_vector_dim: 1,
        ..GatherDimensionNumbers::default()
    };
    let kind = Op::Gather(Box::new(Gather {
        dimension_numbers,
        slice_sizes: slice_sizes.into(),
        indices_are_sorted: false,
    }));
    b.op_of_type(kind, &[x, indices], ty)
}

/// Returns an integer type for indices of dimensions with these sizes.
pub(super) fn index_type(dims: &[i64]) -> ElementType {
    let is_long = dims.iter().any(|&size| size > i64::from(i32::MAX));
    if is_long { ElementType::I64 } else { ElementType::I32 }
}

/// Decomposes `iota`: a constant of the numbers along its dimension.
pub(super) fn iota(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Iota(iota) = &op.kind else { return Err(mismatch(op)) };
    let result = r.result(op)?;
    if let Some(part) = result.element_type().complex_part() {
        let real = r.b.iota(part, result.dims(), iota.iota_dimension);
        let imag = r.b.number(0.0, real);
        return Ok(r.b.complex(real, imag));
    }
    let size = result.dims()[iota.iota_dimension as usize];
    if size > MAX_CONSTANT {
        return Err(unsupported(format!(
            "{} of {size} numbers cannot be decomposed into a constant, which would have more than {MAX_CONSTANT}",
            op.kind.name()
        )));
    }
    let element = result.element_type();
    if element == ElementType::F8E8M0FNU {
        // The type has no zero.
        return Err(mismatch(op));
    }
    let vector = if element.is_integer() {
        let integers: Vec<i64> = (0..size).collect();
        r.b.integers(&integers, element)
    } else {
        let numbers: Vec<f64> = (0..size).map(|number| number as f64).collect();
        r.b.numbers(&numbers, element)
    };
    Ok(r.b.broadcast(vector, &[iota.iota_dimension], result.dims()))
}

/// Returns the starts of a slice, clamped so that a slice of these sizes is within bounds: as constants if they are known.
fn clamped_starts(r: &mut Rewriter<'_>, starts: &[ValueId], dims: &[i64], sizes: &[i64]) -> Vec<Start> {
    let index = index_type(dims);
    let starts = starts.iter().zip(dims.iter().zip(sizes));
    starts
        .map(|(&start, (&dim, &size))| {
            let last = dim - size;
            match r.known(start) {
                _ if last == 0 => Start::Known(0),
                Some(known) => Start::Known(known[0].clamp(0, last)),
                None => Start::Value(clamped(&mut r.b, start, index, last)),
            }
        })
        .collect()
}

/// Returns an index limited to `0..=last`, as an integer of type `index` or wider.
fn clamped(b: &mut Builder, start: ValueId, index: ElementType, last: i64) -> ValueId {
    let is_wide = b.element(start).bits() >= index.bits();
    let start = if is_wide { start } else { b.convert(start, index) };
    let (first, last) = (b.number(0.0, start), b.integer(last, b.tensor(start)));
    let start = b.maximum(start, first);
    b.minimum(start, last)
}

/// The start of a slice in one dimension.
#[derive(Clone, Copy)]
enum Start {
    Known(i64),
    Value(ValueId),
}

/// Decomposes `dynamic_slice`: to slices at known starts, and rotations by each bit of the other starts.
pub(super) fn dynamic_slice(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let (operands, result) = (r.tensors(op)?, r.result(op)?);
    let [mut x, ref starts @ ..] = *operands else { return Err(mismatch(op)) };
    let dims = r.b.dims(x);
    for (dimension, start) in clamped_starts(r, starts, &dims, result.dims()).into_iter().enumerate() {
        let (size, b) = (result.dims()[dimension], &mut r.b);
        x = match start {
            Start::Known(start) if size == dims[dimension] && start == 0 => x,
            Start::Known(start) => b.slice_in_dim(x, dimension, start, start + size),
            Start::Value(start) => {
                let moved = rotated(b, x, dimension, start, dims[dimension] - size, true);
                b.slice_in_dim(moved, dimension, 0, size)
            }
        };
    }
    Ok(x)
}

/// Rotates a dimension by a number from 0 to `last`: to the left, so that the element at the number becomes the first one, or
/// to the right.
fn rotated(b: &mut Builder, x: ValueId, dimension: usize, by: ValueId, last: i64, is_left: bool) -> ValueId {
    let dims = b.dims(x);
    let size = dims[dimension];
    let (mut x, mut rest) = (x, by);
    for step in (0..=last.ilog2()).rev().map(|bit| 1i64 << bit) {
        let cut = if is_left { step } else { size - step };
        let head = b.slice_in_dim(x, dimension, 0, cut);
        let tail = b.slice_in_dim(x, dimension, cut, size);
        let moved = concatenate(b, &[tail, head], dimension);
        let limit = b.integer(step, b.tensor(rest));
        let is_more = b.compare(Cmp::Ge, rest, limit);
        let less = b.subtract(rest, limit);
        rest = b.select(is_more, less, rest);
        let is_more = b.broadcast_scalar(is_more, &dims);
        x = b.select(is_more, moved, x);
    }
    x
}

/// Decomposes `dynamic_update_slice`: to slices around the update at known starts; otherwise to a selection of the rotated
/// update.
pub(super) fn dynamic_update_slice(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let operands = r.tensors(op)?;
    r.result(op)?;
    let [x, update, ref starts @ ..] = *operands else { return Err(mismatch(op)) };
    let (dims, sizes) = (r.b.dims(x), r.b.dims(update));
    if sizes.contains(&0) {
        return Ok(x);
    }
    let starts = clamped_starts(r, starts, &dims, &sizes);
    let known = |start: &Start| match *start {
        Start::Known(start) => Some(start),
        Start::Value(_) => None,
    };
    if let Some(starts) = starts.iter().map(known).collect::<Option<Vec<i64>>>() {
        return Ok(replaced(&mut r.b, x, update, &starts, 0));
    }
    let b = &mut r.b;
    let index = index_type(&dims);
    let (mut moved, mut mask) = (update, None);
    for (dimension, start) in starts.into_iter().enumerate() {
        let (dim, size) = (dims[dimension], sizes[dimension]);
        if dim == size {
            continue;
        }
        let mut missing = b.dims(moved);
        missing[dimension] = dim - size;
        let zeros = b.zeros(b.tensor(moved).with_dims(missing));
        moved = concatenate(b, &[moved, zeros], dimension);
        let start = match start {
            Start::Known(start) => b.integer(start, TensorType::new(index, [])),
            Start::Value(start) => start,
        };
        moved = rotated(b, moved, dimension, start, dim - size, false);
        let element = b.element(start);
        let positions = b.iota(element, &dims, dimension as i64);
        let first = b.broadcast_scalar(start, &dims);
        let size = b.integer(size, b.tensor(first));
        let limit = b.add(first, size);
        let (is_after, is_before) =
            (b.compare(Cmp::Ge, positions, first), b.compare(Cmp::Lt, positions, limit));
        let is_inside = b.and(is_after, is_before);
        mask = Some(mask.map_or(is_inside, |mask| b.and(mask, is_inside)));
    }
    Ok(mask.map_or(moved, |mask| b.select(mask, moved, x)))
}

/// Replaces the part of `x` that starts at these indices, from one dimension on.
fn replaced(b: &mut Builder, x: ValueId, update: ValueId, starts: &[i64], dimension: usize) -> ValueId {
    let Some(&start) = starts.get(dimension) else { return update };
    let (size, length) = (b.dims(x)[dimension], b.dims(update)[dimension]);
    let end = start + length;
    let before = (start > 0).then(|| b.slice_in_dim(x, dimension, 0, start));
    let middle = if length == size { x } else { b.slice_in_dim(x, dimension, start, end) };
    let middle = replaced(b, middle, update, starts, dimension + 1);
    let after = (end < size).then(|| b.slice_in_dim(x, dimension, end, size));
    let parts: Vec<ValueId> = before.into_iter().chain([middle]).chain(after).collect();
    concatenate(b, &parts, dimension)
}
