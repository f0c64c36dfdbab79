//! Expands reductions, reductions over windows, and maps.

use super::loops::{all_flat, apply, element, elements, flat, for_each, integer, shaped, with_elements};
use super::{CompileError, Result, pitches, positions_of};
use crate::graph::{Builder, Constant, Graph, Op, Shape, ValueId, ops};
use refcpu_kernels::tile::TileOp;
use refcpu_kernels::window::WindowSpec;

/// Expands a map, which computes its elements in row-major order.
pub(super) fn map(b: &mut Builder, body: &Graph, operands: &[ValueId], shapes: &[Shape]) -> Vec<ValueId> {
    let count = shapes.first().map_or(0, |shape| if shape.is_empty() { 0 } else { shape.len() });
    let inputs = all_flat(b, operands);
    let nothing = |shape: &Shape| b.constant(Constant::zero(shape.with_dims(&[count])));
    let results: Vec<ValueId> = shapes.iter().map(nothing).collect();
    let results = for_each(b, count, &results, &inputs, |b, at, results, inputs| {
        let arguments = elements(b, inputs, at);
        let values = apply(b, body, &arguments);
        with_elements(b, results, at, &values)
    });
    shaped(b, &results, shapes)
}

/// Expands a reduction, which combines elements in row-major order, beginning with the initial values.
pub(in crate::compile) fn reduce(
    b: &mut Builder,
    body: &Graph,
    operands: &[ValueId],
    shapes: &[Shape],
    dims: &[usize],
) -> Vec<ValueId> {
    let (inputs, initial) = operands.split_at(shapes.len());
    let from = b.shape(inputs[0]).clone();
    if from.is_empty() || shapes[0].is_empty() {
        return initial.iter().zip(shapes).map(|(value, shape)| b.spread(*value, &shape.dims)).collect();
    }
    let kept = (0..from.rank()).filter(|d| !dims.contains(d));
    let permutation: Vec<usize> = kept.chain(dims.iter().copied()).collect();
    let rows = shapes[0].len();
    let inputs: Vec<ValueId> = inputs.iter().map(|x| b.transpose(*x, &permutation)).collect();
    let inputs = all_flat(b, &inputs);
    let sums: Vec<ValueId> = initial.iter().map(|value| b.spread(*value, &[rows])).collect();
    let length = from.len() / rows;
    let sums = for_each(b, from.len(), &sums, &inputs, |b, at, sums, inputs| {
        let length = integer(b, length);
        let row = b.tile(TileOp::Divide, &[at, length]);
        let values = elements(b, inputs, at);
        combined(b, body, sums, row, &values)
    });
    shaped(b, &sums, shapes)
}

/// Expands a reduction over windows, which combines the elements of each window in row-major order. Padding consists of the
/// initial values.
pub(super) fn reduce_window(
    b: &mut Builder,
    body: &Graph,
    operands: &[ValueId],
    shapes: &[Shape],
    window: &WindowSpec,
) -> Result<Vec<ValueId>> {
    let (inputs, initial) = operands.split_at(shapes.len());
    let sums: Vec<ValueId> =
        initial.iter().zip(shapes).map(|(value, shape)| b.spread(*value, &shape.dims)).collect();
    if shapes[0].is_empty() {
        return Ok(sums);
    }
    let padded = window.padded_dims(&b.shape(inputs[0]).dims);
    let too_large = || {
        CompileError::unimplemented(format!(
            "the padded operand of a reduction over windows, with dimensions {padded:?}, is too large"
        ))
    };
    let mut padded_inputs = Vec::new();
    for (input, value) in inputs.iter().zip(initial) {
        let shape = Shape::checked(b.shape(*input).dtype, &padded).ok_or_else(too_large)?;
        let pad = Op::Pad(ops::Pad {
            low: window.padding.iter().map(|(low, _)| *low).collect(),
            high: window.padding.iter().map(|(_, high)| *high).collect(),
            interior: window.base_dilations.iter().map(|d| *d as i64 - 1).collect(),
        });
        padded_inputs.push(b.add(pad, &[*input, *value], shape));
    }
    // The index of an element is the sum of the start of its window and its offset in the window.
    let pitches = pitches(&padded);
    let starts = positions(b, &shapes[0].dims, &pitches, &window.strides)?;
    let offsets = positions(b, &window.size, &pitches, &window.window_dilations)?;
    let length = b.shape(offsets).len();
    let count = b.shape(starts).len().checked_mul(length).filter(|n| i64::try_from(*n).is_ok());
    let count = count.ok_or_else(too_large)?;
    let inputs = all_flat(b, &padded_inputs);
    let sums = all_flat(b, &sums);
    let fixed = [&[starts, offsets], &inputs[..]].concat();
    let sums = for_each(b, count, &sums, &fixed, |b, turn, sums, fixed| {
        let length = integer(b, length);
        let row = b.tile(TileOp::Divide, &[turn, length]);
        let within = b.tile(TileOp::Remainder, &[turn, length]);
        let start = element(b, fixed[0], row);
        let offset = element(b, fixed[1], within);
        let at = b.tile(TileOp::Add, &[start, offset]);
        let values = elements(b, &fixed[2..], at);
        combined(b, body, sums, row, &values)
    });
    Ok(shaped(b, &sums, shapes))
}

/// Combines the accumulators at an index with values.
fn combined(
    b: &mut Builder,
    body: &Graph,
    sums: &[ValueId],
    at: ValueId,
    values: &[ValueId],
) -> Vec<ValueId> {
    let mut arguments = elements(b, sums, at);
    arguments.extend(values);
    let combined = apply(b, body, &arguments);
    with_elements(b, sums, at, &combined)
}

/// Returns, for all indices below `dims` in row-major order, the flat index of the element whose coordinates are these
/// multiplied by `steps`, in an array with these strides.
fn positions(b: &mut Builder, dims: &[usize], pitches: &[i64], steps: &[usize]) -> Result<ValueId> {
    let shape = positions_of(dims)?;
    let mut sum = b.constant(Constant::zero(shape.clone()));
    for (d, (pitch, step)) in pitches.iter().zip(steps).enumerate() {
        let coordinate = b.iota(shape.clone(), d);
        // Along a dimension of size one, the coordinate is 0 and the step may have any value.
        let step = integer(b, pitch.wrapping_mul(*step as i64) as usize);
        let step = b.spread(step, dims);
        let part = b.tile(TileOp::Multiply, &[coordinate, step]);
        sum = b.tile(TileOp::Add, &[sum, part]);
    }
    Ok(flat(b, sum))
}
