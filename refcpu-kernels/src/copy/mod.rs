//! Kernels that move elements. They depend only on the size of the elements.
//!
//! Each kernel describes its work as a nest of strided loops. `strided` merges the loops, and copies runs,
//! fills and transposes blocks.

mod strided;
pub(crate) mod transpose;

use crate::few::Few;
use crate::view::SyncPtr;
use crate::{Dst, Pool, Src};
use std::ops::Range;
pub(crate) use strided::{Loop, Nest, Prepared, copy_nest};

/// Returns row-major strides, in elements.
pub(crate) fn strides_of(dims: &[usize]) -> Few<isize> {
    let mut strides = Few::from_elem(0isize, dims.len());
    let mut step = 1isize;
    for (s, d) in strides.iter_mut().zip(dims).rev() {
        *s = step;
        // Overflowing sizes belong to arrays with a zero-sized dimension, whose strides are never used.
        step = step.wrapping_mul(*d as isize);
    }
    strides
}

/// Checks that both arrays have the same element type.
#[track_caller]
pub(crate) fn check_same_type(what: &str, src: &Src<'_>, dst: &Dst<'_>) {
    assert_eq!(
        src.dtype(),
        dst.dtype(),
        "{what}: {:?}{:?} to {:?}{:?}",
        src.dtype(),
        src.dims(),
        dst.dtype(),
        dst.dims()
    );
}

/// Runs a nest whose source is in `src` and whose destination is in `dst`, starting at these elements.
///
/// # Safety
/// Every element that the nest reaches must are in its array, and no two iterations may write the same
/// element.
unsafe fn run_nest(pool: &Pool, src: &Src<'_>, from: isize, dst: &mut Dst<'_>, to: isize, nest: Nest) {
    let size = src.dtype().size();
    let source = src.as_ptr().wrapping_offset(from * size as isize);
    let target = dst.as_mut_ptr().wrapping_offset(to * size as isize);
    // SAFETY: guaranteed by the caller; `Src` and `Dst` views do not overlap unless a kernel is documented to
    // work in place, and these do not.
    unsafe { copy_nest(pool, size, source, SyncPtr::from_raw(target), nest) }
}

/// Copies `input` to `out`, which has as many elements of the same type. The shapes may differ.
///
/// # Panics
/// Panics if the numbers of elements or the types differ.
pub fn copy(pool: &Pool, input: Src<'_>, mut out: Dst<'_>) {
    check_same_type("copy", &input, &out);
    assert_eq!(
        input.len(),
        out.len(),
        "copy: {:?} and {:?} have different numbers of elements",
        input.dims(),
        out.dims()
    );
    let mut nest = Nest::new();
    nest.push(Loop { count: input.len(), src: 1, dst: 1 });
    // SAFETY: one loop over all elements of both arrays.
    unsafe { run_nest(pool, &input, 0, &mut out, 0, nest) }
}

/// Permutes dimensions: `out`'s dimension `i` is `input`'s dimension `permutation[i]` (StableHLO `transpose`).
///
/// # Panics
/// Panics if `permutation` is not a permutation of the dimensions, or if the shapes or types do not match.
pub fn transpose(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, permutation: &[usize]) {
    check_same_type("transpose", &input, &out);
    let rank = input.dims().len();
    let is_permutation = permutation.len() == rank && (0..rank).all(|d| permutation.contains(&d));
    assert!(
        is_permutation,
        "transpose: {permutation:?} is not a permutation of the dimensions {:?}",
        input.dims()
    );
    assert!(
        out.dims().len() == rank && permutation.iter().zip(out.dims()).all(|(p, d)| input.dims()[*p] == *d),
        "transpose: {:?} permuted by {permutation:?} does not have the shape {:?}",
        input.dims(),
        out.dims()
    );
    let (from, to) = (strides_of(input.dims()), strides_of(out.dims()));
    let mut nest = Nest::new();
    for (i, p) in permutation.iter().enumerate() {
        nest.push(Loop { count: out.dims()[i], src: from[*p], dst: to[i] });
    }
    // SAFETY: the loops run over every index of `out` once; the permuted index is an index of `input`.
    unsafe { run_nest(pool, &input, 0, &mut out, 0, nest) }
}

/// Copies every `stride[d]`-th element from `start[d]`, as many as `out` has (StableHLO `slice`).
///
/// # Panics
/// Panics if an element is out of range, or if the ranks or types do not match.
pub fn slice(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, start: &[usize], stride: &[usize]) {
    check_same_type("slice", &input, &out);
    let rank = input.dims().len();
    assert!(
        start.len() == rank && stride.len() == rank && out.dims().len() == rank,
        "slice: {:?} has no elements from {start:?} by {stride:?} for the shape {:?}",
        input.dims(),
        out.dims()
    );
    let (from, to) = (strides_of(input.dims()), strides_of(out.dims()));
    if out.is_empty() {
        return;
    }
    let mut nest = Nest::new();
    let mut first = 0;
    for d in 0..rank {
        let count = out.dims()[d];
        let last = (count - 1).checked_mul(stride[d]).and_then(|n| n.checked_add(start[d]));
        assert!(
            last.is_some_and(|n| n < input.dims()[d]),
            "slice: {:?} has no elements from {start:?} by {stride:?} for the shape {:?}",
            input.dims(),
            out.dims()
        );
        first += start[d] as isize * from[d];
        nest.push(Loop { count, src: from[d].wrapping_mul(stride[d] as isize), dst: to[d] });
    }
    // SAFETY: the last index of each dimension is in `input` (checked above); each element of `out` is
    // written once.
    unsafe { run_nest(pool, &input, first, &mut out, 0, nest) }
}

/// Writes `input` to every `stride[d]`-th position from `start[d]`: the inverse of [`slice`]. The elements
/// between these positions do not change.
pub(crate) fn spread(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, start: &[usize], stride: &[usize]) {
    check_same_type("spread", &input, &out);
    let rank = input.dims().len();
    let fits = start.len() == rank
        && stride.len() == rank
        && out.dims().len() == rank
        && (0..rank).all(|d| {
            let last = input.dims()[d].saturating_sub(1) * stride[d] + start[d];
            stride[d] > 0 && last < out.dims()[d]
        });
    assert!(fits, "spread: {:?} from {start:?} by {stride:?} in {:?}", input.dims(), out.dims());
    let (from, to) = (strides_of(input.dims()), strides_of(out.dims()));
    let mut nest = Nest::new();
    for d in 0..rank {
        nest.push(Loop { count: input.dims()[d], src: from[d], dst: to[d] * stride[d] as isize });
    }
    let first = (0..rank).map(|d| start[d] as isize * to[d]).sum();
    // SAFETY: the last position of each dimension is in `out` (checked above), and strides are positive, so
    // positions are distinct.
    unsafe { run_nest(pool, &input, 0, &mut out, first, nest) }
}

/// Reverses the order along `dims` (StableHLO `reverse`).
///
/// # Panics
/// Panics if the shapes or types differ, or if a dimension does not exist.
pub fn reverse(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, dims: &[usize]) {
    check_same_type("reverse", &input, &out);
    assert_eq!(input.dims(), out.dims(), "reverse");
    assert!(
        dims.iter().all(|d| *d < input.dims().len()),
        "reverse: {dims:?} are not dimensions of {:?}",
        input.dims()
    );
    if out.is_empty() {
        return;
    }
    let strides = strides_of(input.dims());
    let mut nest = Nest::new();
    let mut first = 0;
    for (d, count) in input.dims().iter().copied().enumerate() {
        let backwards = dims.contains(&d);
        if backwards {
            first += (count - 1) as isize * strides[d];
        }
        nest.push(Loop { count, src: if backwards { -strides[d] } else { strides[d] }, dst: strides[d] });
    }
    // SAFETY: reversed loops start at the last index of their dimension and end at index 0.
    unsafe { run_nest(pool, &input, first, &mut out, 0, nest) }
}

/// Repeats `input` along new or size-1 dimensions: `input`'s dimension `i` is `out`'s dimension `broadcast_dims[i]`
/// (StableHLO `broadcast_in_dim`).
///
/// # Panics
/// Panics if the shapes or types do not match.
pub fn broadcast_in_dim(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, broadcast_dims: &[usize]) {
    check_same_type("broadcast_in_dim", &input, &out);
    assert_eq!(
        broadcast_dims.len(),
        input.dims().len(),
        "broadcast_in_dim: expected one dimension of the result for each of {:?}, found {broadcast_dims:?}",
        input.dims()
    );
    if out.is_empty() {
        return;
    }
    let (from, to) = (strides_of(input.dims()), strides_of(out.dims()));
    let mut source = vec![0isize; out.dims().len()];
    for (i, d) in broadcast_dims.iter().enumerate() {
        let fits = *d < out.dims().len() && (input.dims()[i] == 1 || input.dims()[i] == out.dims()[*d]);
        let distinct = !broadcast_dims[..i].contains(d);
        assert!(
            fits && distinct,
            "broadcast_in_dim: {:?} cannot be broadcast along {broadcast_dims:?} to {:?}",
            input.dims(),
            out.dims()
        );
        if input.dims()[i] != 1 {
            source[*d] = from[i];
        }
    }
    let mut nest = Nest::new();
    for (d, count) in out.dims().iter().copied().enumerate() {
        nest.push(Loop { count, src: source[d], dst: to[d] });
    }
    // SAFETY: a loop only has a stride in `input` if it is along a dimension of the same size.
    unsafe { run_nest(pool, &input, 0, &mut out, 0, nest) }
}

/// Writes the single element of `value` to every element of `out`.
///
/// # Panics
/// Panics if `value` does not have one element, or if the types differ.
pub fn fill(pool: &Pool, value: Src<'_>, mut out: Dst<'_>) {
    check_same_type("fill", &value, &out);
    assert_eq!(value.len(), 1, "fill: expected one element, found the shape {:?}", value.dims());
    let mut nest = Nest::new();
    nest.push(Loop { count: out.len(), src: 0, dst: 1 });
    // SAFETY: reads the one element, writes each element once.
    unsafe { run_nest(pool, &value, 0, &mut out, 0, nest) }
}

/// Pads `input` with `padding_value`: `low` and `high` elements at the ends (negative numbers crop), and `interior` elements
/// between neighbors (StableHLO `pad`).
///
/// # Panics
/// Panics if the shapes or types do not match, or if a number of `interior` is negative.
pub fn pad(
    pool: &Pool,
    input: Src<'_>,
    padding_value: Src<'_>,
    mut out: Dst<'_>,
    low: &[i64],
    high: &[i64],
    interior: &[i64],
) {
    check_same_type("pad", &input, &out);
    let rank = input.dims().len();
    let describe = || format!("pad: {:?} by {low:?} {high:?} {interior:?} to {:?}", input.dims(), out.dims());
    assert!(
        low.len() == rank && high.len() == rank && interior.len() == rank && out.dims().len() == rank,
        "{}",
        describe()
    );
    let (from, to) = (strides_of(input.dims()), strides_of(out.dims()));
    let mut nest = Nest::new();
    let (mut first, mut target) = (0isize, 0isize);
    let mut inside = 1usize;
    for d in 0..rank {
        let (n, size) = (input.dims()[d] as i128, out.dims()[d] as i128);
        let (low, high, interior) = (low[d] as i128, high[d] as i128, interior[d] as i128);
        assert!(interior >= 0, "{}", describe());
        assert_eq!(size, (low + n + (n - 1).max(0) * interior + high).max(0), "{}", describe());
        // Element i of the input is written to position low + i * step. These are the first elements whose
        // positions are at least 0 and at least `size`.
        let step = interior + 1;
        let begin = ((-low).max(0) + step - 1) / step;
        let end = ((size - low).max(0) + step - 1) / step;
        let end = end.min(n);
        let count = (end - begin).max(0) as usize;
        inside *= count;
        if count > 0 {
            first += begin as isize * from[d];
            target += (low + begin * step) as isize * to[d];
        }
        nest.push(Loop { count, src: from[d], dst: (step as isize).wrapping_mul(to[d]) });
    }
    if out.is_empty() {
        return;
    }
    if inside < out.len() {
        fill(pool, padding_value, out.reborrow());
    }
    if inside > 0 {
        // SAFETY: `begin..end` are input indices whose positions are in `out`, and distinct indices have
        // distinct positions.
        unsafe { run_nest(pool, &input, first, &mut out, target, nest) }
    }
}

/// Concatenates `inputs` along `dim` (StableHLO `concatenate`).
///
/// # Panics
/// Panics if the dimension does not exist, or if the shapes or types do not match.
pub fn concatenate(pool: &Pool, inputs: &[Src<'_>], out: Dst<'_>, dim: usize) {
    let parts: Vec<_> = inputs.iter().map(|input| 0..input.dims().get(dim).copied().unwrap_or(0)).collect();
    concatenate_parts(pool, inputs, &parts, out, dim);
}

/// Concatenates parts of `inputs` along `dim`. `parts` are the indices along `dim` that `out` contains.
///
/// # Panics
/// Panics if the dimension does not exist, if a part exceeds its input, or if the shapes or types do not match.
pub fn concatenate_parts(
    pool: &Pool,
    inputs: &[Src<'_>],
    parts: &[Range<usize>],
    mut out: Dst<'_>,
    dim: usize,
) {
    let rank = out.dims().len();
    assert!(dim < rank, "concatenate: {dim} is not a dimension of {:?}", out.dims());
    let to = strides_of(out.dims());
    let mut offset = 0usize;
    assert_eq!(inputs.len(), parts.len(), "concatenate: each input must have a part");
    for (input, part) in inputs.iter().zip(parts) {
        check_same_type("concatenate", input, &out);
        let fits = input.dims().len() == rank
            && (0..rank).all(|d| d == dim || input.dims()[d] == out.dims()[d])
            && part.start <= part.end
            && part.end <= input.dims()[dim]
            && offset.checked_add(part.len()).is_some_and(|end| end <= out.dims()[dim]);
        assert!(
            fits,
            "concatenate: {part:?} of {:?} at {offset} along {dim} does not fit into {:?}",
            input.dims(),
            out.dims()
        );
        let from = strides_of(input.dims());
        let mut nest = Nest::new();
        for d in 0..rank {
            let count = if d == dim { part.len() } else { input.dims()[d] };
            nest.push(Loop { count, src: from[d], dst: to[d] });
        }
        if !input.is_empty() && !part.is_empty() {
            let first = part.start as isize * from[dim];
            // SAFETY: the part is in the input, and in `out` at `offset` along `dim` (checked above).
            unsafe { run_nest(pool, input, first, &mut out, offset as isize * to[dim], nest) }
        }
        offset += part.len();
    }
    assert_eq!(offset, out.dims()[dim], "concatenate: the parts do not fill {:?} along {dim}", out.dims());
}

#[cfg(test)]
mod tests;
