//! Windows whose position is only known at run time.

use crate::copy::{Loop, Nest, check_same_type, copy, copy_nest, strides_of};
use crate::view::SyncPtr;
use crate::{Dst, Pool, Src};

/// The maximum size in bytes of contiguous windows that the calling thread copies at once.
const INLINE_BYTES: usize = 64 << 10;

/// Clamps the starts of a window of `window` elements in an array of `dims`, so that the window lies inside,
/// as StableHLO specifies for `dynamic_slice` and `dynamic_update_slice`.
///
/// # Panics
/// Panics if the ranks differ, or if the window is larger than the array.
pub fn clamp_starts(starts: &mut [i64], dims: &[usize], window: &[usize]) {
    assert!(
        starts.len() == dims.len() && dims.len() == window.len(),
        "starts {starts:?} of {window:?} in {dims:?}"
    );
    for ((start, dim), size) in starts.iter_mut().zip(dims).zip(window) {
        assert!(size <= dim, "a window of {window:?} does not fit into {dims:?}");
        *start = (*start).clamp(0, (dim - size) as i64);
    }
}

/// Checks a window, and returns the offset of its first element and whether it is a contiguous run.
#[track_caller]
fn place_window(what: &str, starts: &[i64], window: &[usize], dims: &[usize]) -> (usize, bool) {
    assert!(
        starts.len() == dims.len() && window.len() == dims.len(),
        "{what}: {window:?} at {starts:?} in {dims:?}"
    );
    let (mut offset, mut stride) = (0usize, 1usize);
    // If a dimension is not covered completely, the window must have size 1 in all outer ones.
    let (mut cut, mut contiguous) = (false, true);
    for d in (0..dims.len()).rev() {
        let start = usize::try_from(starts[d]).ok();
        let Some(start) = start.filter(|s| s.checked_add(window[d]).is_some_and(|end| end <= dims[d])) else {
            panic!("{what}: {window:?} at {starts:?} in {dims:?}");
        };
        offset = offset.wrapping_add(start.wrapping_mul(stride));
        stride = stride.wrapping_mul(dims[d]);
        contiguous &= !cut || window[d] == 1;
        cut |= window[d] != dims[d];
    }
    (offset, contiguous)
}

/// Returns a nest over a window. `make` receives the steps of the array that contains the window and those of
/// the window.
fn window_nest(window: &[usize], dims: &[usize], make: impl Fn(usize, isize, isize) -> Loop) -> Nest {
    let (array, own) = (strides_of(dims), strides_of(window));
    let mut nest = Nest::new();
    for (d, count) in window.iter().copied().enumerate() {
        nest.push(make(count, array[d], own[d]));
    }
    nest
}

/// Copies the window of `out`'s shape that begins at `starts`, which must be in range ([`clamp_starts`]).
///
/// # Panics
/// Panics if the window is out of range, or if the types differ.
pub fn dynamic_slice(pool: &Pool, operand: Src<'_>, starts: &[i64], mut out: Dst<'_>) {
    check_same_type("dynamic_slice", &operand, &out);
    let (offset, contiguous) = place_window("dynamic_slice", starts, out.dims(), operand.dims());
    if out.is_empty() {
        return;
    }
    let size = operand.dtype().size();
    let source = operand.as_ptr().wrapping_add(offset * size);
    if contiguous && out.len() * size <= INLINE_BYTES {
        // SAFETY: the window is a run of the operand (checked above) with the length of `out`, which does not
        // overlap it.
        unsafe { out.as_mut_ptr().copy_from_nonoverlapping(source, out.len() * size) };
        return;
    }
    let nest = window_nest(out.dims(), operand.dims(), |count, src, dst| Loop { count, src, dst });
    // SAFETY: the window is in the operand (checked above), and each element of `out` is written once.
    unsafe { copy_nest(pool, size, source, SyncPtr::new(&mut out), nest) }
}

/// Writes `operand` to `out`, with the window at `starts` replaced by `update`. `starts` must be in range
/// ([`clamp_starts`]).
///
/// `operand` may be the same array as `out`; then only the window is written.
///
/// # Panics
/// Panics if the window is out of range, or if the shapes or types do not match.
pub fn dynamic_update_slice(
    pool: &Pool,
    operand: Src<'_>,
    update: Src<'_>,
    starts: &[i64],
    mut out: Dst<'_>,
) {
    check_same_type("dynamic_update_slice", &operand, &out);
    check_same_type("dynamic_update_slice", &update, &out);
    assert_eq!(operand.dims(), out.dims(), "dynamic_update_slice");
    let (offset, contiguous) = place_window("dynamic_update_slice", starts, update.dims(), out.dims());
    if operand.as_ptr() != out.as_mut_ptr().cast_const() {
        if update.len() == out.len() {
            return copy(pool, update, out);
        }
        copy(pool, operand, out.reborrow());
    }
    if update.is_empty() {
        return;
    }
    let size = out.dtype().size();
    let target = out.as_mut_ptr().wrapping_add(offset * size);
    if contiguous && update.len() * size <= INLINE_BYTES {
        // SAFETY: the window is a run of `out` (checked above) with the length of `update`, which is another
        // array.
        unsafe { target.copy_from_nonoverlapping(update.as_ptr(), update.len() * size) };
        return;
    }
    let nest = window_nest(update.dims(), out.dims(), |count, dst, src| Loop { count, src, dst });
    // SAFETY: the window is in `out` (checked above), and each of its elements is written once; `update` is
    // not `out`.
    unsafe { copy_nest(pool, size, update.as_ptr(), SyncPtr::from_raw(target), nest) }
}
