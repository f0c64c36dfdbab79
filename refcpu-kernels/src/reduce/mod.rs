//! Reductions, which combine the elements along some dimensions.

mod arg;
mod driver;
mod kernel;
#[cfg(test)]
mod tests;
mod types;

use self::driver::Layout;
use crate::number::{Accumulator, Monoid, wrap_sub_byte};
use crate::{Dst, Pool, ReduceOp, Src};

/// Reduces `input` along `dims` (StableHLO's `reduce` with a body of one operation).
///
/// `init` has rank 0 and the type of `out`, and is combined with every result once. `out` has the dimensions
/// of `input` without `dims`, in the same order. Elements are converted to the type of `out` before they are
/// combined, so that a convert before a reduction needs no memory. 16-bit and smaller floats are accumulated
/// in f32, and rounded once.
///
/// Floating-point sums are pairwise over blocks whose size depends only on the shape, so results do not
/// depend on the number of threads. A reduction over no elements returns `init`.
///
/// # Panics
/// Panics if a shape or type does not match, if a dimension is out of range or repeated, or if the operation
/// is not defined on the type of `out`.
pub fn reduce(pool: &Pool, op: ReduceOp, input: Src<'_>, init: Src<'_>, mut out: Dst<'_>, dims: &[usize]) {
    let mut reduced = vec![false; input.dims().len()];
    for d in dims {
        let seen = reduced.get_mut(*d).map(|r| std::mem::replace(r, true));
        assert_eq!(seen, Some(false), "cannot reduce {:?} along {dims:?}", input.dims());
    }
    let kept = (0..reduced.len()).filter(|d| !reduced[*d]).map(|d| input.dims()[d]);
    assert!(
        out.dims().iter().copied().eq(kept) && init.dims().is_empty() && init.dtype() == out.dtype(),
        "reduce of {:?} along {dims:?} from {:?}{:?} into {:?}{:?}",
        input.dims(),
        init.dtype(),
        init.dims(),
        out.dtype(),
        out.dims(),
    );
    assert!(op.supports(out.dtype()), "{op:?} is not defined for {:?}", out.dtype());
    if input.is_empty() {
        let size = out.dtype().size();
        out.bytes_mut().chunks_exact_mut(size).for_each(|element| element.copy_from_slice(init.bytes()));
        return;
    }
    let layout = Layout::new(input.dims(), |d| reduced[d]);
    let op = op.for_storage(out.dtype());
    types::Reduction { pool, op, input, init, layout: &layout }.run(&mut out);
    wrap_sub_byte(out.dtype(), out.bytes_mut());
}

/// The extreme that [`arg_reduce`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgReduceOp {
    /// The smallest value.
    Minimum,
    /// The greatest value.
    Maximum,
}

/// Finds the minimum or maximum of `input` along `dim` and its index, as JAX's argmin and argmax do.
///
/// The first NaN takes precedence over all other values; among equal values, the lowest index does. `values`
/// has the type of `input`, and `indices` any integer type (the index wraps if it does not fit). Both have
/// the dimensions of `input` without `dim`.
///
/// # Panics
/// Panics if a shape or type does not match, if `input` is complex, or if `dim` has size zero and `values` is
/// not empty.
pub fn arg_reduce(
    pool: &Pool,
    op: ArgReduceOp,
    input: Src<'_>,
    values: Dst<'_>,
    indices: Dst<'_>,
    dim: usize,
) {
    let n = *input.dims().get(dim).unwrap_or_else(|| panic!("arg_reduce of {:?} along {dim}", input.dims()));
    let expected = input.dims().iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, n)| *n);
    assert!(
        values.dims().iter().copied().eq(expected)
            && indices.dims() == values.dims()
            && values.dtype() == input.dtype(),
        "arg_reduce of {:?}{:?} along {dim} into {:?}{:?} and {:?}",
        input.dtype(),
        input.dims(),
        values.dtype(),
        values.dims(),
        indices.dims(),
    );
    let index_type = indices.dtype();
    assert!(!input.dtype().is_complex() && !index_type.is_float() && !index_type.is_complex());
    if values.is_empty() {
        return;
    }
    assert!(n > 0, "arg_reduce of {:?} along {dim}: the dimension is empty", input.dims());
    arg::run(pool, op, input, values, indices, dim);
}

/// Combines `n` adjacent values.
///
/// # Safety
/// The values must be readable.
pub(crate) unsafe fn total<A: Accumulator, M: Monoid<A>>(values: *const A, n: usize) -> A {
    let mut result = M::IDENTITY;
    // SAFETY: guaranteed by the caller; the result is a local variable.
    unsafe { kernel::rows::<A, A, M>(values, n, 1, n, &mut result) };
    result
}
