//! `select_and_scatter`: each window selects an element, with which the source is combined.

use super::kernel::{Ordered, Select, TILE, select_window};
use super::spec::Axis;
use crate::Pool;
use crate::view::SyncPtr;

/// The number of elements of a chunk's operand, which take some microseconds.
const CHUNK: usize = 1 << 14;

/// Runs the operation over undilated windows. `out` contains the initial value everywhere. Sources are added,
/// or combined by another function.
///
/// # Safety
/// For as many elements as the axes specify, `operand` and `source` must be readable, and `out` readable and
/// writable; nothing else may access `out`.
pub(super) unsafe fn run<A: Ordered, S: Select>(
    pool: &Pool,
    axes: &[Axis],
    operand: *const A,
    source: *const A,
    out: *mut A,
    combine: Option<fn(A, A) -> A>,
) {
    let is_trivial = |a: &Axis| *a == Axis::new(a.input, 1, 1, 1, 1, (0, 0)).expect("a trivial window");
    let end = axes.iter().rposition(|a| !is_trivial(a)).map_or(0, |last| last + 1);
    let inner: usize = axes[end..].iter().map(|a| a.input).product();
    let axes = &axes[..end];
    let windows: usize = axes.iter().map(|a| a.outputs).product();
    if windows == 0 || inner == 0 {
        return;
    }
    // The dimensions before the first one whose windows overlap can be divided among threads: their windows
    // are disjoint.
    let apart = axes.iter().position(|a| a.size > a.stride).unwrap_or(axes.len());
    let shared: usize = axes[..apart].iter().map(|a| a.outputs).product();
    let together = windows / shared;
    let tiles = inner.div_ceil(TILE);
    let taps: usize = axes.iter().map(|a| a.size).product();
    let per_chunk = (CHUNK / (together * taps * inner.min(TILE)).max(1)).max(1);
    let total = shared * tiles;
    let (operand, source, out) = (
        SyncPtr::from_raw(operand.cast_mut().cast()),
        SyncPtr::from_raw(source.cast_mut().cast()),
        SyncPtr::from_raw(out.cast()),
    );
    let body = |chunk: usize| {
        let mut offsets = Vec::with_capacity(taps);
        for i in chunk * per_chunk..total.min((chunk + 1) * per_chunk) {
            let (part, first) = (i / tiles, i % tiles * TILE);
            let width = TILE.min(inner - first);
            for window in part * together..(part + 1) * together {
                tap_offsets(axes, window, inner, first, &mut offsets);
                // SAFETY: the offsets are elements of the operand and the output, after which `width`
                // neighbors are in the innermost dimensions. Other chunks have other tiles of these, or
                // disjoint windows.
                unsafe {
                    let source = source.get().cast::<A>().cast_const().add(window * inner + first);
                    let (operand, out) = (operand.get().cast::<A>().cast_const(), out.get().cast::<A>());
                    match combine {
                        None => select_window::<A, S>(operand, &offsets, source, out, width),
                        Some(combine) => select_by::<A, S>(operand, &offsets, source, out, width, combine),
                    }
                }
            }
        }
    };
    let chunks = total.div_ceil(per_chunk);
    if chunks == 1 { body(0) } else { pool.run(chunks, &body) }
}

/// Returns the offsets of the elements of a window that are in the operand, in row-major order.
fn tap_offsets(axes: &[Axis], mut window: usize, unit: usize, first: usize, offsets: &mut Vec<usize>) {
    offsets.clear();
    offsets.push(first);
    let mut stride = unit;
    // The innermost dimension comes first, so that outer positions vary slowest.
    for axis in axes.iter().rev() {
        let o = window % axis.outputs;
        window /= axis.outputs;
        let before = offsets.len();
        for k in axis.undilated_range(o) {
            let i = (o * axis.stride + k) as i64 - axis.low;
            for j in 0..before {
                offsets.push(offsets[j] + i as usize * stride);
            }
        }
        offsets.drain(..before);
        stride *= axis.input;
    }
}

/// The same as [`select_window`], with any function that combines.
///
/// # Safety
/// See [`select_window`].
unsafe fn select_by<A: Ordered, S: Select>(
    operand: *const A,
    taps: &[usize],
    source: *const A,
    out: *mut A,
    width: usize,
    combine: fn(A, A) -> A,
) {
    // SAFETY: the caller guarantees `width` values at every tap and at `source`.
    unsafe {
        for i in 0..width {
            let better = |best: usize, tap: usize| {
                if S::keeps(*operand.add(best + i), *operand.add(tap + i)) { best } else { tap }
            };
            if let Some(tap) = taps.iter().copied().reduce(better) {
                let to = out.add(tap + i);
                *to = combine(*to, *source.add(i));
            }
        }
    }
}
