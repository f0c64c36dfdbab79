//! Windows whose place is known only at run time.

use crate::copy::{Loop, Nest, check_same_type, copy, copy_nest, strides_of};
use crate::view::SyncPtr;
use crate::{Dst, Pool, Src};

/// The starts of a window of `window` elements in an array of `dims`, moved so that the window lies inside: what
/// StableHLO does for `dynamic_slice` and `dynamic_update_slice`.
///
/// # Panics
/// If the ranks differ or the window is larger than the array.
pub fn clamp_starts(starts: &mut [i64], dims: &[usize], window: &[usize]) {
    assert!(
        starts.len() == dims.len() && dims.len() == window.len(),
        "starts {starts:?} of {window:?} in {dims:?}"
    );
    for ((start, dim), size) in starts.iter_mut().zip(dims).zip(window) {
        assert!(size <= dim, "a window of {window:?} in {dims:?}");
        *start = (*start).clamp(0, (dim - size) as i64);
    }
}

/// Checks a window and gives the offset of its first element and the strides of `dims`.
#[track_caller]
fn window_offset(what: &str, starts: &[i64], window: &[usize], dims: &[usize]) -> (isize, Vec<isize>) {
    let inside = starts.len() == dims.len()
        && window.len() == dims.len()
        && starts.iter().zip(window).zip(dims).all(|((start, size), dim)| {
            usize::try_from(*start).ok().and_then(|s| s.checked_add(*size)).is_some_and(|end| end <= *dim)
        });
    assert!(inside, "{what}: {window:?} at {starts:?} in {dims:?}");
    let strides = strides_of(dims);
    let offset =
        starts.iter().zip(&strides).map(|(s, t)| (*s as isize).wrapping_mul(*t)).fold(0, isize::wrapping_add);
    (offset, strides)
}

/// Copies the window of `out`'s shape that begins at `starts`, which are in range already ([`clamp_starts`]).
pub fn dynamic_slice(pool: &Pool, operand: Src<'_>, starts: &[i64], mut out: Dst<'_>) {
    check_same_type("dynamic_slice", &operand, &out);
    let (offset, from) = window_offset("dynamic_slice", starts, out.dims(), operand.dims());
    if out.is_empty() {
        return;
    }
    let to = strides_of(out.dims());
    let mut nest = Nest::new();
    for (d, count) in out.dims().iter().copied().enumerate() {
        nest.push(Loop { count, src: from[d], dst: to[d] });
    }
    let size = operand.dtype().size();
    let source = operand.as_ptr().wrapping_offset(offset * size as isize);
    // SAFETY: the window lies in the operand (checked above), and `out` is covered once.
    unsafe { copy_nest(pool, size, source, SyncPtr::new(&mut out), nest) }
}

/// Writes `operand` to `out` with the window at `starts` replaced by `update`. `starts` are in range already
/// ([`clamp_starts`]).
///
/// `operand` may be the same array as `out`: then only the window is written.
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
    let (offset, to) = window_offset("dynamic_update_slice", starts, update.dims(), out.dims());
    if operand.as_ptr() != out.as_mut_ptr().cast_const() {
        if update.len() == out.len() {
            return copy(pool, update, out);
        }
        copy(pool, operand, out.reborrow());
    }
    if update.is_empty() {
        return;
    }
    let from = strides_of(update.dims());
    let mut nest = Nest::new();
    for (d, count) in update.dims().iter().copied().enumerate() {
        nest.push(Loop { count, src: from[d], dst: to[d] });
    }
    let size = out.dtype().size();
    let target = out.as_mut_ptr().wrapping_offset(offset * size as isize);
    // SAFETY: the window lies in `out` (checked above) and is covered once; `update` is not `out`.
    unsafe { copy_nest(pool, size, update.as_ptr(), SyncPtr::from_raw(target), nest) }
}
