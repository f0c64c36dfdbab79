//! Windows over some dimensions, one dimension at a time. The operations are associative and commutative, so
//! a window over several dimensions is a window over the last one, of the combined elements of the others.

use super::kernel::{adjacent_windows, combine_rows};
use super::spec::Axis;
use crate::Pool;
use crate::number::{Accumulator, Monoid};
use crate::scratch::Scratch;
use crate::view::SyncPtr;

/// The number of elements of a chunk's input, which take some microseconds.
const CHUNK: usize = 1 << 15;
/// The maximum number of elements of a chunk's scratch memory, if inner dimensions permit: within the
/// second-level cache.
const SLAB: usize = 1 << 14;

/// Reduces the windows of an array. `init` represents padding, but may be combined any number of times, not
/// once per position of padding.
///
/// # Safety
/// For as many elements as the axes specify, `src` must be readable and `dst` writable; nothing else may
/// access `dst`.
pub(super) unsafe fn slide<A: Accumulator, M: Monoid<A>>(
    pool: &Pool,
    axes: &[Axis],
    src: *const A,
    init: A,
    dst: *mut A,
) {
    let is_trivial = |a: &Axis| *a == Axis::new(a.input, 1, 1, 1, 1, (0, 0)).expect("a trivial window");
    // If there are no windows, a window of one element along a dimension of size one is equivalent.
    let one = Axis::new(1, 1, 1, 1, 1, (0, 0)).expect("a trivial window");
    let (leading, axis, inner) = match axes.iter().rposition(|a| !is_trivial(a)) {
        Some(last) => (&axes[..last], axes[last], axes[last + 1..].iter().map(|a| a.input).product()),
        None => (&axes[..0], one, axes.iter().map(|a| a.input).product::<usize>()),
    };
    let windowed = leading.iter().any(|a| !is_trivial(a));
    let rows = leading.iter().map(|a| a.outputs).product::<usize>();
    let (n, outputs) = (axis.input, axis.outputs);
    if rows == 0 || outputs == 0 || inner == 0 {
        return;
    }
    let width = (SLAB / n.max(1)).clamp(64, 1 << 12).min(inner);
    let tiles = inner.div_ceil(width);
    let taps = leading.iter().map(|a| a.size).product::<usize>() + axis.size;
    let per_chunk = (CHUNK / (n * width * taps).max(1)).max(1);
    let total = rows * tiles;
    let shared = (SyncPtr::from_raw(src.cast_mut().cast()), SyncPtr::from_raw(dst.cast()));
    let body = |chunk: usize| {
        let (src, dst) = (shared.0.get().cast::<A>().cast_const(), shared.1.get().cast::<A>());
        let mut slab = windowed.then(|| Scratch::new::<A>(n * width));
        let (mut offsets, mut sources) = (Vec::new(), Vec::new());
        for i in chunk * per_chunk..total.min((chunk + 1) * per_chunk) {
            let (row, first) = (i / tiles, i % tiles * width);
            let width = width.min(inner - first);
            leading_offsets(leading, row, n * inner, &mut offsets);
            // SAFETY: the offsets are those of rows of the input's leading dimensions; only this chunk writes
            // the columns `first` to `first + width` of the output row `row`.
            unsafe {
                let to = dst.add(row * outputs * inner + first);
                match &mut slab {
                    None => line::<A, M>(&axis, src.add(offsets[0] + first), inner, width, init, to, inner),
                    Some(slab) => {
                        let slab = slab.ptr::<A>();
                        let (runs, run) = if width == inner { (1, n * inner) } else { (n, width) };
                        for j in 0..runs {
                            sources.clear();
                            sources.extend(offsets.iter().map(|o| src.add(o + first + j * inner)));
                            combine_rows::<A, M>(&sources, run, slab.add(j * width));
                        }
                        line::<A, M>(&axis, slab, width, width, init, to, inner);
                    }
                }
            }
        }
    };
    let chunks = total.div_ceil(per_chunk);
    if chunks == 1 { body(0) } else { pool.run(chunks, &body) }
}

/// Computes the offsets of the input rows that output row `row` of the leading dimensions combines. A row has
/// `unit` elements.
fn leading_offsets(leading: &[Axis], mut row: usize, unit: usize, offsets: &mut Vec<usize>) {
    offsets.clear();
    offsets.push(0);
    let mut stride = unit;
    for axis in leading.iter().rev() {
        let o = row % axis.outputs;
        row /= axis.outputs;
        let before = offsets.len();
        for k in 0..axis.size {
            if let Some(i) = axis.position(o, k) {
                for j in 0..before {
                    offsets.push(offsets[j] + i * stride);
                }
            }
        }
        offsets.drain(..before);
        stride *= axis.input;
    }
}

/// Combines windows along one dimension of rows of `width` adjacent values.
///
/// # Safety
/// `axis.input` rows that are `src_row` apart must be readable, and `axis.outputs` rows that are `dst_row`
/// apart writable.
unsafe fn line<A: Accumulator, M: Monoid<A>>(
    axis: &Axis,
    src: *const A,
    src_row: usize,
    width: usize,
    init: A,
    dst: *mut A,
    dst_row: usize,
) {
    let mut o = 0;
    let mut rows = Vec::with_capacity(axis.size + 1);
    let adjacent = width == 1 && src_row == 1 && dst_row == 1 && axis.is_plain();
    // The windows that lie completely inside the input, if windows are adjacent.
    let inside = if adjacent { axis.inside() } else { 0..0 };
    while o < axis.outputs {
        // SAFETY: positions are rows of the input, and `o` is a row of the output. The windows inside the
        // input start at consecutive positions, and end before the input does.
        unsafe {
            if o == inside.start && !inside.is_empty() {
                let start = src.offset(o as isize - axis.low as isize);
                adjacent_windows::<A, M>(start, axis.size, inside.len(), init, dst.add(o));
                o = inside.end;
                continue;
            }
            if width == 1 {
                let mut acc = init;
                for k in 0..axis.size {
                    if let Some(i) = axis.position(o, k) {
                        acc = M::combine(acc, *src.add(i * src_row));
                    }
                }
                *dst.add(o * dst_row) = acc;
            } else {
                rows.clear();
                rows.extend((0..axis.size).filter_map(|k| axis.position(o, k)).map(|i| src.add(i * src_row)));
                let to = dst.add(o * dst_row);
                combine_rows::<A, M>(&rows, width, to);
                for i in 0..width {
                    *to.add(i) = M::combine(init, *to.add(i));
                }
            }
        }
        o += 1;
    }
}

/// Reduces windows whose padding matters: each position of padding or holes combines `init` once more.
///
/// # Safety
/// See [`slide`].
pub(super) unsafe fn slide_with_padding<A: Accumulator, M: Monoid<A>>(
    pool: &Pool,
    axes: &[Axis],
    src: *const A,
    init: A,
    dst: *mut A,
) {
    let total = axes.iter().map(|a| a.outputs).product::<usize>();
    let taps = axes.iter().map(|a| a.size).product::<usize>();
    let per_chunk = (CHUNK / taps.max(1)).max(1);
    let shared = (SyncPtr::from_raw(src.cast_mut().cast()), SyncPtr::from_raw(dst.cast()));
    pool.run(total.div_ceil(per_chunk), &|chunk| {
        let mut offsets = Vec::new();
        for o in chunk * per_chunk..total.min((chunk + 1) * per_chunk) {
            leading_offsets(axes, o, 1, &mut offsets);
            let mut acc = init;
            for _ in offsets.len()..taps {
                acc = M::combine(acc, init);
            }
            // SAFETY: the offsets are elements of the input, and only this chunk writes output `o`.
            unsafe {
                for offset in &offsets {
                    acc = M::combine(acc, *shared.0.get().cast::<A>().add(*offset));
                }
                *shared.1.get().cast::<A>().add(o) = acc;
            }
        }
    });
}
