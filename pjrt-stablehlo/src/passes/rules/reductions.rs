//! Rules for `reduce`, `reduce_window` and `sort`, whose computations are applied to whole tensors.

use super::movement::{concatenate, strided_slice};
use crate::Error;
use crate::ir::ops::Pad;
use crate::ir::{Op, Operation, TensorType, ValueId};
use crate::passes::rewrite::{Rewriter, definite, mismatch};

/// Returns the inputs of a reduction and its initial values, converted to the element types in which its computation
/// works: those of the results.
fn inputs_and_initial(r: &mut Rewriter<'_>, op: &Operation) -> Result<(Vec<ValueId>, Vec<ValueId>), Error> {
    let mut values = r.tensors(op)?;
    let count = op.results.len();
    if values.len() != 2 * count {
        return Err(mismatch(op));
    }
    for (index, value) in values.iter_mut().enumerate() {
        definite(&r.b.tensor(*value))?;
        let element = r.nth_result(op, index % count)?.element_type();
        *value = r.b.convert(*value, element);
    }
    let initial = values.split_off(count);
    Ok((values, initial))
}

/// Combines two lists of tensors with the computation of an operation.
fn combined<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    lhs: &[ValueId],
    rhs: &[ValueId],
) -> Result<Vec<ValueId>, Error> {
    r.apply_region(op, 0, &[lhs, rhs].concat())
}

/// Combines the initial values of a reduction with tensors.
fn with_initial<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    initial: &[ValueId],
    values: &[ValueId],
) -> Result<Vec<ValueId>, Error> {
    let broadcast = initial.iter().zip(values).map(|(&initial, &value)| {
        let dims = r.b.dims(value);
        r.b.broadcast(initial, &[], &dims)
    });
    let initial: Vec<ValueId> = broadcast.collect();
    combined(r, op, &initial, values)
}

/// Decomposes `reduce`: neighbors along each dimension are combined until one is left.
pub(super) fn reduce<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let Op::Reduce(reduce) = &op.kind else { return Err(mismatch(op)) };
    let (mut values, initial) = inputs_and_initial(r, op)?;
    let dims = r.result(op)?.dims().to_vec();
    let input_dims = values.first().map_or_else(Vec::new, |&value| r.b.dims(value));
    if reduce.dimensions.iter().any(|&dimension| input_dims[dimension as usize] == 0) {
        return Ok(initial.iter().map(|&initial| r.b.broadcast(initial, &[], &dims)).collect());
    }
    for &dimension in &reduce.dimensions {
        let dimension = dimension as usize;
        let mut size = input_dims[dimension];
        while size > 1 {
            let even = size - size % 2;
            let part = |r: &mut Rewriter<'_>, bounds| -> Vec<ValueId> {
                values.iter().map(|&value| strided_slice(&mut r.b, value, dimension, bounds)).collect()
            };
            let (first, second) = (part(r, [0, even - 1, 2]), part(r, [1, even, 2]));
            let rest = part(r, [even, size, 1]);
            let pairs = combined(r, op, &first, &second)?;
            values = match size % 2 {
                0 => pairs,
                _ => {
                    let both = pairs.iter().zip(&rest);
                    both.map(|(&pair, &rest)| concatenate(&mut r.b, &[pair, rest], dimension)).collect()
                }
            };
            size = even / 2 + size % 2;
        }
    }
    let values: Vec<ValueId> = values.into_iter().map(|value| r.b.reshape(value, &dims)).collect();
    with_initial(r, op, &initial, &values)
}

/// Decomposes `reduce_window`: windows of twice the size consist of two windows, dimension by dimension.
pub(super) fn reduce_window<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let Op::ReduceWindow(o) = &op.kind else { return Err(mismatch(op)) };
    let (inputs, initial) = inputs_and_initial(r, op)?;
    let result = r.result(op)?;
    if result.num_elements() == Some(0) {
        let types = (0..op.results.len()).map(|index| r.nth_result(op, index));
        let types: Vec<TensorType> = types.collect::<Result<_, _>>()?;
        return Ok(types.into_iter().map(|ty| r.b.zeros(ty)).collect());
    }
    let kind = Pad {
        edge_padding_low: o.padding.iter().map(|pair| pair[0]).collect(),
        edge_padding_high: o.padding.iter().map(|pair| pair[1]).collect(),
        interior_padding: o.base_dilations.iter().map(|dilation| dilation - 1).collect(),
    };
    let padded =
        inputs.iter().zip(&initial).map(|(&input, &initial)| r.b.op(kind.clone(), &[input, initial]));
    let mut values: Vec<ValueId> = padded.collect();
    for (dimension, &count) in result.dims().iter().enumerate() {
        let (size, dilation) = (o.window_dimensions[dimension], o.window_dilations[dimension]);
        values = windows(r, op, values, dimension, [size, dilation])?;
        let stride = o.window_strides[dimension];
        let bounds = [0, (count - 1) * stride + 1, stride];
        values = values.into_iter().map(|value| strided_slice(&mut r.b, value, dimension, bounds)).collect();
    }
    with_initial(r, op, &initial, &values)
}

/// Reduces the windows of a size at every position of a dimension.
fn windows<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    values: Vec<ValueId>,
    dimension: usize,
    [size, dilation]: [i64; 2],
) -> Result<Vec<ValueId>, Error> {
    let length = values.first().map_or(0, |&value| r.b.dims(value)[dimension]);
    let part = |r: &mut Rewriter<'m>, values: &[ValueId], start: i64, count: i64| -> Vec<ValueId> {
        values.iter().map(|&value| r.b.slice_in_dim(value, dimension, start, start + count)).collect()
    };
    // The windows of `covered` elements, and those of a power of two, at every position.
    let mut covered: Option<(Vec<ValueId>, i64)> = None;
    let (mut power, mut width) = (values, 1);
    loop {
        let count = |width: i64| length - (width - 1) * dilation;
        if size & width != 0 {
            covered = Some(match covered {
                None => (power.clone(), width),
                Some((first, before)) => {
                    let all = count(before + width);
                    let (first, second) = (part(r, &first, 0, all), part(r, &power, before * dilation, all));
                    (combined(r, op, &first, &second)?, before + width)
                }
            });
        }
        if 2 * width > size {
            break;
        }
        let all = count(2 * width);
        let (first, second) = (part(r, &power, 0, all), part(r, &power, width * dilation, all));
        power = combined(r, op, &first, &second)?;
        width *= 2;
    }
    covered.map(|(values, _)| values).ok_or_else(|| mismatch(op))
}
