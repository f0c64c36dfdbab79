//! Operations that move the elements of tensors with bounded sizes; see [`replace_sizes`](super::replace_sizes).

use super::rewrite::{Rewriter, mismatch, unsupported};
use super::sized::{Sized, array, at_bounds, dim, masked, not_along, padded, result_type, same_op};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::{DynamicSlice, Gather, Pad, Slice};
use crate::ir::{ElementKind, ElementType, Op, Operation, TensorType, ValueId};

/// Returns the result of an operation that moves elements; `None` for other operations.
pub(super) fn moved(
    r: &mut Rewriter<'_>,
    op: &Operation,
    operands: &[Sized],
) -> Result<Option<Sized>, Error> {
    let result = match &op.kind {
        Op::BroadcastInDim(o) => broadcast_in_dim(r, op, &operands[0], &o.broadcast_dimensions, None)?,
        Op::DynamicBroadcastInDim(o) => {
            let [x, shape] = array(op, operands)?;
            broadcast_in_dim(r, op, x, &o.broadcast_dimensions, Some(shape.value))?
        }
        Op::Reshape(_) => reshape(r, op, &operands[0], None)?,
        Op::DynamicReshape(_) => {
            let [x, shape] = array(op, operands)?;
            reshape(r, op, x, Some(shape.value))?
        }
        Op::Transpose(o) => {
            let [x] = array(op, operands)?;
            let from = o.permutation.iter().map(|&d| dim(d)).collect::<Result<Vec<_>, Error>>()?;
            let value = r.b.transpose(x.value, &o.permutation);
            Sized::new(value, from.len(), |d| x.sizes[from[d]])
        }
        Op::Reverse(o) => {
            let [x] = array(op, operands)?;
            x.require_whole(o.dimensions.iter().map(|&d| dim(d)).collect::<Result<Vec<_>, Error>>()?)?;
            Sized { value: same_op(r, op, operands)?, sizes: x.sizes.clone() }
        }
        Op::DynamicIota(o) => {
            let [shape] = array(op, operands)?;
            let ty = at_bounds(&result_type(r, op, 0)?);
            let value = r.b.iota(ty.element_type(), ty.dims(), o.iota_dimension);
            with_shape(r, value, shape.value)
        }
        Op::Slice(o) => slice(r, op, operands, o)?,
        Op::RealDynamicSlice(_) => real_dynamic_slice(r, op, operands)?,
        Op::Pad(o) => pad(r, op, operands, o)?,
        Op::DynamicSlice(o) => {
            let (x, full) = (&operands[0], r.b.dims(operands[0].value));
            let value = same_op(r, op, operands)?;
            let is_whole = |d: usize| o.slice_sizes.get(d) == full.get(d);
            Sized::new(value, full.len(), |d| x.sizes[d].filter(|_| is_whole(d)))
        }
        Op::DynamicUpdateSlice(_) => {
            operands[1].require_whole(0..operands[1].sizes.len())?;
            Sized { value: same_op(r, op, operands)?, sizes: operands[0].sizes.clone() }
        }
        Op::Gather(o) => gather(r, op, operands, o)?,
        Op::Scatter(_) => scatter(r, op, operands)?,
        _ => return Ok(None),
    };
    Ok(Some(result))
}

/// Returns a tensor whose sizes are given by an operand.
fn with_shape(r: &mut Rewriter<'_>, value: ValueId, shape: ValueId) -> Sized {
    let rank = r.b.tensor(value).rank();
    let b = &mut r.b;
    Sized::new(value, rank, |d| Some(component(b, shape, d)))
}

/// Returns an element of a vector of integers, as a size.
fn component(b: &mut Builder, vector: ValueId, index: usize) -> ValueId {
    let index = index as i64;
    let one = b.slice(vector, &[index], &[index + 1]);
    let scalar = b.reshape(one, &[]);
    b.convert(scalar, ElementType::I32)
}

fn broadcast_in_dim(
    r: &mut Rewriter<'_>,
    op: &Operation,
    x: &Sized,
    to: &[i64],
    shape: Option<ValueId>,
) -> Result<Sized, Error> {
    let dims = at_bounds(&result_type(r, op, 0)?).dims().to_vec();
    let to_dims = to.iter().map(|&d| dim(d)).collect::<Result<Vec<_>, Error>>()?;
    let has = r.b.dims(x.value);
    // A dimension of size 1 is repeated; the size of any other equals that of the result.
    let mut fits = Vec::with_capacity(has.len());
    for (from, &d) in to_dims.iter().enumerate() {
        let size = *dims.get(d).ok_or_else(|| mismatch(op))?;
        fits.push(if has[from] == 1 && x.sizes[from].is_none() { 1 } else { size });
    }
    let fit = super::sized::fitted(&mut r.b, x.value, &fits)?;
    let value = r.b.broadcast(fit, to, &dims);
    let mut result = match shape {
        Some(shape) => with_shape(r, value, shape),
        None => Sized::new(value, dims.len(), |_| None),
    };
    for (from, &d) in to_dims.iter().enumerate() {
        result.sizes[d] = x.sizes[from].or(result.sizes[d]);
    }
    Ok(result)
}

/// Replaces `reshape`. Dimensions that are split or combined keep the order of elements only if just the first of them
/// has padding.
fn reshape(r: &mut Rewriter<'_>, op: &Operation, x: &Sized, shape: Option<ValueId>) -> Result<Sized, Error> {
    let from = r.b.dims(x.value);
    let to = at_bounds(&result_type(r, op, 0)?).dims().to_vec();
    let groups = groups(&from, &to).ok_or_else(|| {
        unsupported(format!("the bounds {to:?} of the result do not have as many elements as the bounds {from:?} of the operand"))
    })?;
    let value = r.b.reshape(x.value, &to);
    let mut result = match shape {
        Some(shape) => with_shape(r, value, shape),
        None => Sized::new(value, to.len(), |_| None),
    };
    for (old, new) in groups {
        let padded: Vec<usize> = old.clone().filter(|&d| x.sizes[d].is_some()).collect();
        let [d] = padded[..] else {
            match padded.first() {
                None => continue,
                Some(&d) => return Err(not_along(d)),
            }
        };
        if from[old.start..d].iter().any(|&size| size != 1) {
            return Err(not_along(d));
        }
        let Some(first) = new.clone().find(|&e| to[e] != 1).or_else(|| new.clone().next()) else { continue };
        let Some(size) = x.sizes[d] else { continue };
        let (inner, outer): (i64, i64) =
            (from[d + 1..old.end].iter().product(), to[first + 1..new.end].iter().product());
        let factor = |b: &mut Builder, by: i64| b.integer(by, TensorType::new(ElementType::I32, []));
        let elements = if inner == 1 {
            size
        } else {
            let by = factor(&mut r.b, inner);
            r.b.multiply(size, by)
        };
        let size = if outer == 1 {
            elements
        } else {
            let by = factor(&mut r.b, outer);
            r.b.divide(elements, by)
        };
        result.sizes[first] = Some(size);
    }
    Ok(result)
}

type Range = std::ops::Range<usize>;

/// Returns the dimensions of two shapes in groups with equal numbers of elements.
fn groups(from: &[i64], to: &[i64]) -> Option<Vec<(Range, Range)>> {
    let (mut i, mut j) = (0, 0);
    let mut groups = Vec::new();
    while i < from.len() || j < to.len() {
        let (old, new) = (i, j);
        let (mut has, mut wants) = (1i64, 1i64);
        let next = |dims: &[i64], at: &mut usize, product: &mut i64| {
            let size = *dims.get(*at)?;
            *at += 1;
            *product = product.checked_mul(size)?;
            Some(())
        };
        if i < from.len() {
            next(from, &mut i, &mut has)?;
        }
        if j < to.len() {
            next(to, &mut j, &mut wants)?;
        }
        while has != wants {
            if has < wants { next(from, &mut i, &mut has)? } else { next(to, &mut j, &mut wants)? }
        }
        groups.push((old..i, new..j));
    }
    Some(groups)
}

fn slice(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized], o: &Slice) -> Result<Sized, Error> {
    let [x] = array(op, operands)?;
    let full = r.b.dims(x.value);
    let value = same_slice(r, x.value, o);
    let number = |b: &mut Builder, n: i64| b.integer(n, TensorType::new(ElementType::I32, []));
    let mut sizes = Vec::with_capacity(full.len());
    for (d, &size) in x.sizes.iter().enumerate() {
        let at = |list: &[i64]| list.get(d).copied().ok_or_else(|| mismatch(op));
        let (start, limit, stride) = (at(&o.start_indices)?, at(&o.limit_indices)?, at(&o.strides)?);
        sizes.push(match size {
            Some(size) if (start, limit, stride) != (0, full[d], 1) => {
                let b = &mut r.b;
                let (start, limit, zero) = (number(b, start), number(b, limit), number(b, 0));
                let end = b.minimum(size, limit);
                let mut count = b.subtract(end, start);
                if stride != 1 {
                    let (more, stride) = (number(b, stride - 1), number(b, stride));
                    let up = b.add(count, more);
                    count = b.divide(up, stride);
                }
                Some(b.maximum(count, zero))
            }
            size => size,
        });
    }
    Ok(Sized { value, sizes })
}

fn same_slice(r: &mut Rewriter<'_>, x: ValueId, o: &Slice) -> ValueId {
    let ty = r.b.tensor(x);
    let ends = o.start_indices.iter().zip(&*o.limit_indices).zip(&*o.strides);
    let dims: Vec<i64> =
        ends.map(|((start, limit), stride)| (limit - start + stride - 1) / stride.max(&1)).collect();
    r.b.op_of_type(Op::Slice(o.clone()), &[x], ty.with_dims(dims))
}

/// Replaces `real_dynamic_slice` with strides of 1. The operand is padded so that the slice is in bounds.
fn real_dynamic_slice(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized]) -> Result<Sized, Error> {
    let [x, start, limit, strides] = array(op, operands)?;
    let steps = r.constant_integers(strides.value, "operand 'strides'")?;
    if steps.iter().any(|&step| step != 1) {
        return Err(unsupported(format!("expected strides of 1 along dynamic dimensions, found {steps:?}")));
    }
    let dims = at_bounds(&result_type(r, op, 0)?).dims().to_vec();
    let zero = r.b.zeros(r.b.tensor(x.value).with_dims([]));
    let roomy = padded(&mut r.b, x.value, zero, vec![0; dims.len()], dims.clone());
    let mut parts = vec![roomy];
    let mut sizes = Vec::with_capacity(dims.len());
    for d in 0..dims.len() {
        let (first, end) = (component(&mut r.b, start.value, d), component(&mut r.b, limit.value, d));
        parts.push(first);
        sizes.push(Some(r.b.subtract(end, first)));
    }
    let ty = r.b.tensor(x.value).with_dims(dims.clone());
    let value = r.b.op_of_type(Op::DynamicSlice(DynamicSlice { slice_sizes: dims.into() }), &parts, ty);
    Ok(Sized { value, sizes })
}

fn pad(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized], o: &Pad) -> Result<Sized, Error> {
    let [x, edge] = array(op, operands)?;
    let mut sizes = Vec::with_capacity(x.sizes.len());
    let mut grown = Vec::new();
    for (d, &size) in x.sizes.iter().enumerate() {
        let at = |list: &[i64]| list.get(d).copied().ok_or_else(|| mismatch(op));
        let (low, high) = (at(&o.edge_padding_low)?, at(&o.edge_padding_high)?);
        sizes.push(match size {
            Some(size) if (low, high) != (0, 0) || at(&o.interior_padding)? != 0 => {
                if low < 0 || high < 0 || at(&o.interior_padding)? != 0 {
                    return Err(not_along(d));
                }
                grown.push(d);
                let more = r.b.integer(low + high, TensorType::new(ElementType::I32, []));
                Some(r.b.add(size, more))
            }
            size => size,
        });
    }
    let value = masked(&mut r.b, x, grown, edge.value);
    let masked = [Sized { value, sizes: x.sizes.clone() }, edge.clone()];
    Ok(Sized { value: same_op(r, op, &masked)?, sizes })
}

/// Replaces `gather`. Batch dimensions have the sizes of the indices, and dimensions that are not sliced those of the
/// operand.
fn gather(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized], o: &Gather) -> Result<Sized, Error> {
    let [x, indices] = array(op, operands)?;
    let numbers = &o.dimension_numbers;
    let full = r.b.dims(x.value);
    let value = same_op(r, op, operands)?;
    let mut batches = (0..indices.sizes.len()).filter(|&d| d as i64 != numbers.index_vector_dim);
    let kept = (0..full.len()).filter(|&d| {
        let d = d as i64;
        !numbers.collapsed_slice_dims.contains(&d) && !numbers.operand_batching_dims.contains(&d)
    });
    let mut kept = kept;
    let rank = r.b.tensor(value).rank();
    Ok(Sized::new(value, rank, |d| {
        if numbers.offset_dims.contains(&(d as i64)) {
            let from = kept.next()?;
            x.sizes[from].filter(|_| o.slice_sizes.get(from) == full.get(from))
        } else {
            indices.sizes[batches.next()?]
        }
    }))
}

/// Replaces `scatter`. The indices of padding are out of bounds, so that no update is written.
fn scatter(r: &mut Rewriter<'_>, op: &Operation, operands: &[Sized]) -> Result<Sized, Error> {
    let Op::Scatter(o) = &op.kind else { return Err(mismatch(op)) };
    let [x, indices, updates] = array(op, operands)?;
    let numbers = &o.scatter_dimension_numbers;
    updates.require_whole(
        numbers.update_window_dims.iter().map(|&d| dim(d)).collect::<Result<Vec<_>, Error>>()?,
    )?;
    let batches: Vec<usize> =
        (0..indices.sizes.len()).filter(|&d| d as i64 != numbers.index_vector_dim).collect();
    // The number of updates may be known from the indices or from the updates.
    let mut indices = indices.clone();
    let from = (0..updates.sizes.len()).filter(|&d| !numbers.update_window_dims.contains(&(d as i64)));
    for (&d, e) in batches.iter().zip(from) {
        indices.sizes[d] = indices.sizes[d].or(updates.sizes[e]);
    }
    let ty = r.b.tensor(indices.value).with_dims([]);
    let outside = match ty.element_type().kind() {
        ElementKind::UnsignedInteger => {
            let zero = r.b.integer(0, ty);
            r.b.not(zero)
        }
        _ => r.b.integer(-1, ty),
    };
    if numbers.scatter_dims_to_operand_dims.is_empty() {
        indices.require_whole(batches.iter().copied())?;
    }
    indices.value = masked(&mut r.b, &indices, batches, outside);
    let value = same_op(r, op, &[x.clone(), indices, updates.clone()])?;
    Ok(Sized { value, sizes: x.sizes.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_taken_apart_into_as_many_elements() {
        assert_eq!(groups(&[4, 3], &[12]), Some(vec![(0..2, 0..1)]));
        assert_eq!(groups(&[4, 3, 5], &[12, 5]), Some(vec![(0..2, 0..1), (2..3, 1..2)]));
        assert_eq!(groups(&[6], &[1, 2, 3]), Some(vec![(0..1, 0..3)]));
        assert_eq!(groups(&[4, 1], &[4]), Some(vec![(0..1, 0..1), (1..2, 1..1)]));
        assert_eq!(groups(&[4], &[5]), None);
    }
}
