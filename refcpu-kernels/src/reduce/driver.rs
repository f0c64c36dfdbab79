//! Divides a reduction into chunks, and each chunk into runs of the inner loops.

use super::kernel::{TILE, columns, rows};
use crate::Pool;
use crate::few::Few;
use crate::number::{Accumulator, Load, Monoid, Store};
use crate::scratch::Scratch;
use crate::view::SyncPtr;
use std::ops::Range;

/// The number of elements of a chunk, which take some microseconds to read.
const CHUNK: usize = 1 << 16;
/// The number of elements below which the calling thread computes everything.
const INLINE: usize = 1 << 14;
/// The number of chunks that suffice to balance the threads, so that sums are not divided further.
const CHUNKS: usize = 32;
/// The maximum number of rows that are combined sequentially. Larger numbers are halved, so that sums are
/// pairwise.
const LEAF: usize = 512;
/// The maximum number of results per chunk if whole rows are reduced.
const RESULTS: usize = 256;

/// The dimensions of the input with their strides. Contiguous ones are merged, and those of size 1 are
/// removed.
#[derive(Clone, Debug, Default)]
struct Dims(Few<(usize, usize)>);

impl Dims {
    fn count(&self) -> usize {
        self.0.iter().map(|d| d.0).product()
    }

    /// Returns the offset of a flat index.
    fn offset(&self, mut i: usize) -> usize {
        let mut offset = 0;
        for (size, stride) in self.0.iter().rev() {
            offset += i % size * stride;
            i /= size;
        }
        offset
    }

    /// Calls `run` with offset, stride and count of each part of `range` that lies along the innermost
    /// dimension.
    fn runs(&self, range: Range<usize>, mut run: impl FnMut(usize, usize, usize)) {
        let (size, stride) = self.0.last().copied().unwrap_or((1, 0));
        let mut i = range.start;
        while i < range.end {
            let count = (size - i % size).min(range.end - i);
            run(self.offset(i), stride, count);
            i += count;
        }
    }
}

/// A reduction over `kept` outer dimensions, `reduced` outer dimensions and an innermost dimension of
/// adjacent elements.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    kept: Dims,
    reduced: Dims,
    /// The size of the innermost dimension.
    inner: usize,
    /// `true` if the innermost dimension is reduced.
    inner_reduced: bool,
}

impl Layout {
    /// Creates the layout of an array that is reduced along the dimensions for which `reduced` returns
    /// `true`.
    pub(super) fn new(dims: &[usize], reduced: impl Fn(usize) -> bool) -> Self {
        let mut merged: Few<(usize, usize, bool)> = Few::new();
        let mut stride = 1;
        for d in (0..dims.len()).rev().filter(|d| dims[*d] != 1) {
            match merged.last_mut() {
                Some(last) if last.2 == reduced(d) => last.0 *= dims[d],
                _ => merged.push((dims[d], stride, reduced(d))),
            }
            stride *= dims[d];
        }
        let (inner, inner_reduced) = merged.first().map_or((1, false), |d| (d.0, d.2));
        let pick =
            |r: bool| Dims(merged.iter().skip(1).rev().filter(|d| d.2 == r).map(|d| (d.0, d.1)).collect());
        Self { kept: pick(false), reduced: pick(true), inner, inner_reduced }
    }
}

/// The destination of the results.
pub(super) struct Results<A> {
    /// The first element of the output.
    pub ptr: SyncPtr,
    /// The function that stores results, if the elements of the output are not of type `A`.
    pub store: Option<Store<A>>,
    /// The initial value, which is combined with every result.
    pub init: A,
}

impl<A: Accumulator> Results<A> {
    /// Combines `init` with the values, and stores the results at element `at`.
    ///
    /// # Safety
    /// `n` values at `values` must be readable and writable, and nothing else may access the elements of the
    /// output.
    unsafe fn finish<M: Monoid<A>>(&self, values: *mut A, at: usize, n: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            for i in 0..n {
                *values.add(i) = M::combine(self.init, *values.add(i));
            }
            match self.store {
                Some(store) => (store.row)(values, self.ptr.get().add(at * store.size), n),
                None => std::ptr::copy_nonoverlapping(values, self.ptr.get().cast::<A>().add(at), n),
            }
        }
    }
}

/// Reduces the array at `src`.
///
/// # Safety
/// `src` must be readable according to the layout. The output must be writable, and nothing else may access
/// it.
pub(super) unsafe fn run<A: Accumulator, T: Load<A>, M: Monoid<A>>(
    pool: &Pool,
    layout: &Layout,
    src: *const T,
    results: &Results<A>,
) {
    let reduced = layout.reduced.count() * if layout.inner_reduced { layout.inner } else { 1 };
    let kept = layout.kept.count() * if layout.inner_reduced { 1 } else { layout.inner };
    let inline = Pool::inline();
    let pool = if reduced.saturating_mul(kept) < INLINE { &inline } else { pool };
    // SAFETY: guaranteed by the caller.
    unsafe {
        if layout.inner_reduced {
            reduce_rows::<A, T, M>(pool, layout, src, results);
        } else {
            reduce_columns::<A, T, M>(pool, layout, src, results);
        }
    }
}

/// Returns the number of equal parts into which each sum is divided, given the number of chunks without
/// division.
fn segments(chunks: usize, elements: usize, units: usize) -> usize {
    if chunks >= CHUNKS {
        1
    } else {
        (elements / chunks.max(1) / CHUNK).clamp(1, (4 * CHUNKS / chunks.max(1)).max(1)).min(units.max(1))
    }
}

/// Runs `part(segment, chunk, target)` for all segments and chunks, where `target` holds the segment's values
/// of all `kept` results, and combines the segments. If there is only one segment, `part` has no target and
/// stores the results.
///
/// # Safety
/// `part` must write the values of every result of its chunk to the target, and no other values.
unsafe fn in_segments<A: Accumulator, M: Monoid<A>>(
    pool: &Pool,
    chunks: usize,
    segments: usize,
    kept: usize,
    results: &Results<A>,
    part: &(dyn Fn(usize, usize, Option<*mut A>) + Sync),
) {
    if segments == 1 {
        pool.run(chunks, &|chunk| part(0, chunk, None));
        return;
    }
    let mut parts = Scratch::new::<A>(segments * kept);
    let ptr = SyncPtr::from_raw(parts.ptr());
    pool.run(chunks * segments, &|i| {
        let (segment, chunk) = (i % segments, i / segments);
        part(segment, chunk, Some(ptr.get().cast::<A>().wrapping_add(segment * kept)));
    });
    let values = parts.ptr::<A>();
    let mut gap = 1;
    while gap < segments {
        for s in (0..segments - gap).step_by(2 * gap) {
            for j in 0..kept {
                // SAFETY: both addresses are in the scratch memory, which the calls above have filled.
                unsafe {
                    let to = values.add(s * kept + j);
                    *to = M::combine(*to, *values.add((s + gap) * kept + j));
                }
            }
        }
        gap *= 2;
    }
    // SAFETY: the first segment holds all `kept` values.
    unsafe { results.finish::<M>(values, 0, kept) };
}

/// Reduces arrays whose innermost dimension is reduced: each result combines rows of adjacent elements.
///
/// # Safety
/// See [`run`].
unsafe fn reduce_rows<A: Accumulator, T: Load<A>, M: Monoid<A>>(
    pool: &Pool,
    layout: &Layout,
    src: *const T,
    results: &Results<A>,
) {
    let Layout { kept, reduced, inner, .. } = layout;
    let (inner, count) = (*inner, kept.count());
    // A row is divided into pieces; a unit is a piece of a row.
    let pieces = inner.div_ceil(CHUNK).max(1);
    let units = reduced.count() * pieces;
    let unit_size = inner.clamp(1, CHUNK);
    let per_chunk = (CHUNK / (unit_size * units).max(1)).clamp(1, RESULTS);
    let chunks = count.div_ceil(per_chunk);
    let segments = segments(chunks, count * units * unit_size, units);
    let src = SyncPtr::from_raw(src.cast_mut().cast());
    let part = |segment: usize, chunk: usize, target: Option<*mut A>| {
        let src = src.get().cast::<T>().cast_const();
        let range = units * segment / segments..units * (segment + 1) / segments;
        let (from, to) = (chunk * per_chunk, count.min(chunk * per_chunk + per_chunk));
        let mut values = [M::IDENTITY; RESULTS];
        let values = &mut values[..to - from];
        if units == 1 {
            let mut done = 0;
            kept.runs(from..to, |offset, stride, n| {
                // SAFETY: the rows of `n` results at `offset` are part of the input.
                unsafe { rows::<A, T, M>(src.add(offset), stride, n, inner, values[done..].as_mut_ptr()) };
                done += n;
            });
        } else {
            for (i, value) in values.iter_mut().enumerate() {
                // SAFETY: the units are those of result `from + i`.
                *value = unsafe {
                    unit_range::<A, T, M>(
                        src.add(kept.offset(from + i)),
                        reduced,
                        inner,
                        pieces,
                        range.clone(),
                    )
                };
            }
        }
        // SAFETY: only this chunk writes these results; the target has room for all of them.
        unsafe {
            match target {
                Some(target) => {
                    std::ptr::copy_nonoverlapping(values.as_ptr(), target.add(from), values.len())
                }
                None => results.finish::<M>(values.as_mut_ptr(), from, values.len()),
            }
        }
    };
    // SAFETY: `part` writes the values of its chunk's results.
    unsafe { in_segments::<A, M>(pool, chunks, segments, count, results, &part) };
}

/// Combines some units of a result pairwise.
///
/// # Safety
/// The units must be part of the input, and `src` must point to the first element of the result's.
unsafe fn unit_range<A: Accumulator, T: Load<A>, M: Monoid<A>>(
    src: *const T,
    reduced: &Dims,
    inner: usize,
    pieces: usize,
    units: Range<usize>,
) -> A {
    const MANY: usize = 64;
    if units.len() > MANY {
        let middle = units.start + units.len() / 2;
        // SAFETY: parts of the range.
        return unsafe {
            let left = unit_range::<A, T, M>(src, reduced, inner, pieces, units.start..middle);
            M::combine(left, unit_range::<A, T, M>(src, reduced, inner, pieces, middle..units.end))
        };
    }
    let mut values = [M::IDENTITY; MANY];
    let mut done = 0;
    if pieces == 1 {
        reduced.runs(units, |offset, stride, n| {
            // SAFETY: the rows are part of the input, as the caller guarantees.
            unsafe { rows::<A, T, M>(src.add(offset), stride, n, inner, values[done..].as_mut_ptr()) };
            done += n;
        });
    } else {
        for unit in units {
            let (row, from) = (unit / pieces, unit % pieces * CHUNK);
            let n = (inner - from).min(CHUNK);
            // SAFETY: as above, for a piece of a row.
            unsafe { rows::<A, T, M>(src.add(reduced.offset(row) + from), 0, 1, n, &mut values[done]) };
            done += 1;
        }
    }
    let mut left = done;
    while left > 1 {
        for i in 0..left / 2 {
            values[i] = M::combine(values[2 * i], values[2 * i + 1]);
        }
        if left % 2 == 1 {
            values[left / 2] = values[left - 1];
        }
        left = left.div_ceil(2);
    }
    values[0]
}

/// Returns the number of rows that are read at a time as one longer row, which is folded at the end: several
/// if rows are short and adjacent.
fn rows_per_unit(reduced: &Dims, inner: usize) -> usize {
    match reduced.0[..] {
        [(rows, stride)] if stride == inner && inner < TILE / 2 => (TILE / inner).min(rows / 8).max(1),
        _ => 1,
    }
}

/// Reduces arrays whose innermost dimension is kept: rows are combined element by element.
///
/// # Safety
/// See [`run`].
unsafe fn reduce_columns<A: Accumulator, T: Load<A>, M: Monoid<A>>(
    pool: &Pool,
    layout: &Layout,
    src: *const T,
    results: &Results<A>,
) {
    let Layout { kept, reduced, inner, .. } = layout;
    let (inner, outer) = (*inner, kept.count());
    let all_rows = reduced.count();
    let fold = rows_per_unit(reduced, inner);
    let units = all_rows / fold;
    let tiles = inner.div_ceil(TILE);
    let chunks = outer * tiles;
    let elements = outer * inner * all_rows;
    let segments = segments(chunks, elements, units.div_ceil(8));
    // Small results share a chunk.
    let per_chunk = (CHUNK / (all_rows * inner.min(TILE)).max(1)).clamp(1, chunks.max(1));
    let src = SyncPtr::from_raw(src.cast_mut().cast());
    let one = |segment: usize, chunk: usize, target: Option<*mut A>, acc: &mut [A; TILE]| {
        let (o, tile) = (chunk / tiles, chunk % tiles);
        let first = tile * TILE;
        let n = (inner - first).min(TILE);
        let range = units * segment / segments..units * (segment + 1) / segments;
        acc[..n * fold].fill(M::IDENTITY);
        // SAFETY: tile and rows are in the input; only this chunk writes the results of this tile.
        unsafe {
            let src = src.get().cast::<T>().cast_const().add(kept.offset(o) + first);
            if fold > 1 {
                let folded = Dims(Few::from_elem((units, fold * inner), 1));
                row_range::<A, T, M>(src, &folded, fold * inner, range, acc);
                if segment + 1 == segments {
                    columns::<A, T, M>(
                        src.add(units * fold * inner),
                        inner,
                        all_rows - units * fold,
                        inner,
                        acc.as_mut_ptr(),
                    );
                }
                for i in inner..fold * inner {
                    acc[i % inner] = M::combine(acc[i % inner], acc[i]);
                }
            } else {
                row_range::<A, T, M>(src, reduced, n, range, acc);
            }
            let at = o * inner + first;
            match target {
                Some(target) => std::ptr::copy_nonoverlapping(acc.as_ptr(), target.add(at), n),
                None => results.finish::<M>(acc.as_mut_ptr(), at, n),
            }
        }
    };
    let part = |segment: usize, group: usize, target: Option<*mut A>| {
        let mut acc = [M::IDENTITY; TILE];
        for chunk in group * per_chunk..chunks.min((group + 1) * per_chunk) {
            one(segment, chunk, target, &mut acc);
        }
    };
    // SAFETY: `part` writes the values of its chunks' results.
    unsafe { in_segments::<A, M>(pool, chunks.div_ceil(per_chunk), segments, outer * inner, results, &part) };
}

/// Combines some rows of `n` elements pairwise to `acc`.
///
/// # Safety
/// The rows must be part of the input, and `n` at most [`TILE`].
unsafe fn row_range<A: Accumulator, T: Load<A>, M: Monoid<A>>(
    src: *const T,
    reduced: &Dims,
    n: usize,
    range: Range<usize>,
    acc: &mut [A; TILE],
) {
    if range.len() > LEAF {
        let middle = range.start + range.len() / 2;
        let mut right = [M::IDENTITY; TILE];
        // SAFETY: parts of the range.
        unsafe {
            row_range::<A, T, M>(src, reduced, n, range.start..middle, acc);
            row_range::<A, T, M>(src, reduced, n, middle..range.end, &mut right);
        }
        for (a, b) in acc[..n].iter_mut().zip(right) {
            *a = M::combine(*a, b);
        }
        return;
    }
    reduced.runs(range, |offset, stride, count| {
        // SAFETY: the rows are part of the input, as the caller guarantees.
        unsafe { columns::<A, T, M>(src.add(offset), stride, count, n, acc.as_mut_ptr()) };
    });
}
