//! Products of a matrix and a vector. They are limited by the time to read the matrix once, so nothing is
//! packed.

use crate::Pool;
use crate::isa::{Isa, multiversion};
use crate::number::{Accumulator, Load};
use crate::scratch::Scratch;
use crate::view::SyncPtr;

/// The number of lanes of the accumulators of a row.
const LANES: usize = 16;
/// The number of columns whose accumulators stay in the first-level cache while rows are added to them.
const TILE: usize = 512;
/// The maximum length of a sequential sum of neighboring results. Longer sums are divided into parts.
const SEGMENT: usize = 1 << 14;
/// The maximum length of a part of a sum along a row. Parts are so short that their errors are small, and the
/// errors of adding the parts are compensated.
const PART: usize = 1 << 10;
/// The number of elements of the matrix per chunk, which take some microseconds to read.
const CHUNK: usize = 1 << 16;

/// A matrix to multiply by a vector. There are `count` results, each of which is the sum of `depth` products.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<T> {
    /// The first element.
    pub ptr: *const T,
    /// The number of results.
    pub count: usize,
    /// The length of the vector.
    pub depth: usize,
    /// The distance between elements of a sum, or between those of neighboring results, whichever is not 1.
    pub stride: usize,
    /// `true` if the elements of a sum are adjacent, `false` if those of neighboring results are.
    pub depth_adjacent: bool,
}

/// Computes `y = matrix x`.
///
/// # Safety
/// The matrix and `depth` elements at `x` must be readable. `count` elements at `y` must be writable, and
/// nothing else may access them.
pub(crate) unsafe fn multiply<U: Accumulator, T: Load<U>>(
    pool: &Pool,
    matrix: Matrix<T>,
    x: *const U,
    y: *mut U,
) {
    let Matrix { count, depth, .. } = matrix;
    if count == 0 {
        return;
    }
    let (tile, segment) = if matrix.depth_adjacent {
        ((CHUNK / depth.clamp(1, SEGMENT)).clamp(4, 1 << 12), depth.clamp(1, PART))
    } else {
        let tiles = count.div_ceil(TILE);
        // A few columns are divided by depth instead.
        let shared = (depth * tiles.min(8) / 8).max(CHUNK / TILE.min(count));
        (TILE, if tiles < 8 { shared.min(SEGMENT) } else { depth.clamp(1, SEGMENT) })
    };
    let (tiles, segments) = (count.div_ceil(tile), depth.div_ceil(segment).max(1));
    let per_chunk = (CHUNK / (segment * tile.min(count))).max(1);
    let mut parts = (segments > 1).then(|| Scratch::new::<U>(segments * count));
    let target = SyncPtr::from_raw(parts.as_mut().map_or(y, Scratch::ptr).cast());
    let shared = (SyncPtr::from_raw(matrix.ptr.cast_mut().cast()), SyncPtr::from_raw(x.cast_mut().cast()));
    let chunk_body = |chunk: usize| {
        let (first_segment, first) = (chunk / tiles * per_chunk, chunk % tiles * tile);
        let stride = matrix.stride;
        let ptr = shared.0.get().cast::<T>().cast_const();
        for s in first_segment..segments.min(first_segment + per_chunk) {
            let from = s * segment;
            let (k, n) = (depth.min(from + segment) - from, count.min(first + tile) - first);
            // SAFETY: the part of the matrix and the vector are within the memory that the caller guarantees;
            // each chunk has its own results.
            unsafe {
                let x = shared.1.get().cast::<U>().cast_const().add(from);
                let y = target.get().cast::<U>().add(s * count + first);
                if matrix.depth_adjacent {
                    dots::<U, T>(ptr.wrapping_add(first * stride + from), stride, n, k, x, y);
                } else {
                    axpys::<U, T>(ptr.wrapping_add(from * stride + first), stride, n, k, x, y);
                }
            }
        }
    };
    let chunks = tiles * segments.div_ceil(per_chunk);
    if count.saturating_mul(depth) < CHUNK / 2 {
        (0..chunks).for_each(chunk_body);
    } else {
        pool.run(chunks, &chunk_body);
    }
    if let Some(parts) = &mut parts {
        // SAFETY: every part was written above, and nothing else accesses `y`.
        unsafe { add_parts(parts.ptr::<U>(), segments, count, y) };
    }
}

/// Adds `parts` rows of `count` values to `y`, with compensation of the rounding errors.
///
/// # Safety
/// The rows must be readable, and `y` writable; nothing else may access `y`, and they must not overlap.
unsafe fn add_parts<U: Accumulator>(rows: *const U, parts: usize, count: usize, y: *mut U) {
    for j in 0..count {
        // SAFETY: `i` stays below `parts` and `j` below `count`.
        unsafe {
            let (mut sum, mut lost) = (*rows.add(j), U::ZERO);
            for i in 1..parts {
                let part = *rows.add(i * count + j);
                let next = sum.plus(part);
                lost = lost.plus(sum.lost_by_plus(part, next));
                sum = next;
            }
            *y.add(j) = sum.plus(lost);
        }
    }
}

multiversion! {
    /// Computes sums along rows that are adjacent in memory.
    ///
    /// # Safety
    /// `n` rows of `k` elements `stride` apart and `k` elements at `x` must be readable, `n` at `y` writable.
    unsafe fn dots<U: Accumulator, T: Load<U>>(a: *const T, stride: usize, n: usize, k: usize, x: *const U, y: *mut U) = dots_body
}

/// # Safety
/// See [`dots`].
#[inline(always)]
unsafe fn dots_body<I: Isa, U: Accumulator, T: Load<U>>(
    a: *const T,
    stride: usize,
    n: usize,
    k: usize,
    x: *const U,
    y: *mut U,
) {
    let mut i = 0;
    while i < n {
        // SAFETY: guaranteed by the caller, for the remaining rows.
        unsafe {
            let (a, y) = (a.wrapping_add(i * stride), y.add(i));
            if n - i >= 4 {
                some_dots::<I, U, T, 4>(a, stride, k, x, y);
                i += 4;
            } else {
                some_dots::<I, U, T, 1>(a, stride, k, x, y);
                i += 1;
            }
        }
    }
}

#[inline(always)]
fn fma<I: Isa, U: Accumulator>(acc: U, a: U, b: U) -> U {
    if I::FMA { acc.plus_product(a, b) } else { acc.plus(a.times(b)) }
}

/// # Safety
/// See [`dots`]; for `R` rows.
#[inline(always)]
unsafe fn some_dots<I: Isa, U: Accumulator, T: Load<U>, const R: usize>(
    a: *const T,
    stride: usize,
    k: usize,
    x: *const U,
    y: *mut U,
) {
    let mut acc = [[U::ZERO; LANES]; R];
    let whole = k - k % LANES;
    // SAFETY: indices stay below `k` in each of the `R` rows and in `x`; `R` results are written.
    unsafe {
        for i in (0..whole).step_by(LANES) {
            let xs: [U; LANES] = std::array::from_fn(|l| *x.add(i + l));
            for (r, acc) in acc.iter_mut().enumerate() {
                let row = a.wrapping_add(r * stride + i);
                for l in 0..LANES {
                    acc[l] = fma::<I, U>(acc[l], (*row.add(l)).load(), xs[l]);
                }
            }
        }
        for (r, acc) in acc.iter_mut().enumerate() {
            for i in whole..k {
                let l = i - whole;
                acc[l] = fma::<I, U>(acc[l], (*a.wrapping_add(r * stride + i)).load(), *x.add(i));
            }
            let mut gap = LANES / 2;
            while gap > 0 {
                for l in 0..gap {
                    acc[l] = acc[l].plus(acc[l + gap]);
                }
                gap /= 2;
            }
            *y.add(r) = acc[0];
        }
    }
}

multiversion! {
    /// Adds rows multiplied by elements of `x`, where neighboring results are adjacent in memory.
    ///
    /// # Safety
    /// `k` rows of `n` elements `stride` apart and `k` elements at `x` must be readable, `n` at `y` writable.
    unsafe fn axpys<U: Accumulator, T: Load<U>>(b: *const T, stride: usize, n: usize, k: usize, x: *const U, y: *mut U) = axpys_body
}

/// # Safety
/// See [`axpys`].
#[inline(always)]
unsafe fn axpys_body<I: Isa, U: Accumulator, T: Load<U>>(
    b: *const T,
    stride: usize,
    n: usize,
    k: usize,
    x: *const U,
    y: *mut U,
) {
    const ROWS: usize = 8;
    // SAFETY: indices are below `n` and `k`. Results are accumulated in a local array, whose separate memory
    // allows the loops to be vectorized.
    unsafe {
        let mut acc = [U::ZERO; TILE];
        let mut i = 0;
        while i + ROWS <= k {
            let xs: [U; ROWS] = std::array::from_fn(|r| *x.add(i + r));
            let rows: [*const T; ROWS] = std::array::from_fn(|r| b.wrapping_add((i + r) * stride));
            for (j, acc) in acc[..n].iter_mut().enumerate() {
                let mut sum = *acc;
                for r in 0..ROWS {
                    sum = fma::<I, U>(sum, (*rows[r].add(j)).load(), xs[r]);
                }
                *acc = sum;
            }
            i += ROWS;
        }
        for i in i..k {
            let (row, x) = (b.wrapping_add(i * stride), *x.add(i));
            for (j, acc) in acc[..n].iter_mut().enumerate() {
                *acc = fma::<I, U>(*acc, (*row.add(j)).load(), x);
            }
        }
        std::ptr::copy_nonoverlapping(acc.as_ptr(), y, n);
    }
}
