//! The inner loops of reductions: reductions of rows of adjacent elements, and of rows element by element.

use crate::isa::{Isa, multiversion};
use crate::number::{Accumulator, Load, Monoid};

/// The number of accumulators of a row: four vectors of f32.
const LANES: usize = 64;
/// The number of elements that are combined to a partial result, before these are combined pairwise.
const BLOCK: usize = LANES * 128;
/// The width of the widest tile that [`columns`] accumulates.
pub(super) const TILE: usize = 512;

multiversion! {
    /// Combines each of `count` rows of `n` adjacent elements, `stride` apart, to one value.
    ///
    /// # Safety
    /// The rows must be readable and `count` values at `out` writable.
    pub(super) unsafe fn rows<A: Accumulator, T: Load<A>, M: Monoid<A>>(src: *const T, stride: usize, count: usize, n: usize, out: *mut A) = rows_body
}

/// The number of rows whose last elements are combined together.
const GROUP: usize = 16;
/// The number of partial results of a row that are left for this.
const LAST: usize = 8;

/// # Safety
/// See [`rows`].
#[inline(always)]
unsafe fn rows_body<I: Isa, A: Accumulator, T: Load<A>, M: Monoid<A>>(
    src: *const T,
    stride: usize,
    count: usize,
    n: usize,
    out: *mut A,
) {
    let row = |i: usize| src.wrapping_add(i * stride);
    // SAFETY: the caller guarantees `n` elements of each row, and `out`.
    unsafe {
        match n {
            0..LAST => {
                for i in 0..count {
                    let row = row(i);
                    *out.add(i) = (0..n).fold(M::IDENTITY, |acc, j| M::combine(acc, (*row.add(j)).load()));
                }
            }
            LAST..=BLOCK => {
                for first in (0..count).step_by(GROUP) {
                    group::<A, T, M>(row(first), stride, GROUP.min(count - first), n, out.add(first));
                }
            }
            _ => (0..count).for_each(|i| *out.add(i) = row_of::<A, T, M>(row(i), n)),
        }
    }
}

/// Does the same for up to [`GROUP`] rows of [`LAST`] to [`BLOCK`] elements. The rows wait together for each step that combines
/// their partial results, which takes several cycles.
///
/// # Safety
/// See [`rows`].
#[inline(always)]
unsafe fn group<A: Accumulator, T: Load<A>, M: Monoid<A>>(
    src: *const T,
    stride: usize,
    count: usize,
    n: usize,
    out: *mut A,
) {
    let mut lanes = [[M::IDENTITY; LAST]; GROUP];
    for (i, lanes) in lanes[..count].iter_mut().enumerate() {
        let row = src.wrapping_add(i * stride);
        // SAFETY: guaranteed by the caller.
        *lanes =
            unsafe { if n < LANES { partial::<A, T, M, LAST>(row, n) } else { folded::<A, T, M>(row, n) } };
    }
    // SAFETY: guaranteed by the caller.
    unsafe { last::<A, M>(&mut lanes, count, out) };
}

/// Combines the partial results of rows.
///
/// # Safety
/// `count`, which is at most [`GROUP`], values at `out` must be writable.
#[inline(always)]
unsafe fn last<A: Accumulator, M: Monoid<A>>(lanes: &mut [[A; LAST]; GROUP], count: usize, out: *mut A) {
    for gap in [4, 2, 1] {
        for lanes in lanes.iter_mut() {
            for l in 0..gap {
                lanes[l] = M::combine(lanes[l], lanes[l + gap]);
            }
        }
    }
    for (i, lanes) in lanes[..count].iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { *out.add(i) = lanes[0] };
    }
}

/// Combines `n` elements in [`LANES`] lanes, and these to [`LAST`].
///
/// # Safety
/// `n` elements at `row` must be readable.
#[inline(always)]
unsafe fn folded<A: Accumulator, T: Load<A>, M: Monoid<A>>(row: *const T, n: usize) -> [A; LAST] {
    #[inline(always)]
    fn halves<A: Accumulator, M: Monoid<A>, const FROM: usize, const TO: usize>(x: &[A; FROM]) -> [A; TO] {
        std::array::from_fn(|l| M::combine(x[l], x[l + TO]))
    }
    // SAFETY: guaranteed by the caller.
    let lanes = unsafe { partial::<A, T, M, LANES>(row, n) };
    halves::<A, M, 16, 8>(&halves::<A, M, 32, 16>(&halves::<A, M, 64, 32>(&lanes)))
}

/// Combines `n` elements in `L` lanes.
///
/// # Safety
/// `n` elements at `row` must be readable.
#[inline(always)]
unsafe fn partial<A: Accumulator, T: Load<A>, M: Monoid<A>, const L: usize>(
    row: *const T,
    n: usize,
) -> [A; L] {
    let mut acc = [M::IDENTITY; L];
    let whole = n - n % L;
    // SAFETY: indices stay below `n`.
    unsafe {
        for i in (0..whole).step_by(L) {
            for (l, acc) in acc.iter_mut().enumerate() {
                *acc = M::combine(*acc, (*row.add(i + l)).load());
            }
        }
        if whole == n {
            return acc;
        }
        // In another array, so that the accumulators above need no memory.
        let mut rest = acc;
        for i in whole..n {
            rest[i - whole] = M::combine(rest[i - whole], (*row.add(i)).load());
        }
        rest
    }
}

/// # Safety
/// `n` elements at `row` must be readable.
#[inline(always)]
unsafe fn row_of<A: Accumulator, T: Load<A>, M: Monoid<A>>(row: *const T, n: usize) -> A {
    // The results of blocks are combined pairwise, like the carries of a binary counter. Memory cannot hold
    // enough elements for more than 48 levels.
    let mut levels = [M::IDENTITY; 48];
    let mut blocks = 0usize;
    let mut from = 0;
    loop {
        let len = (n - from).min(BLOCK);
        // SAFETY: `from + len` is at most `n`.
        let mut value = unsafe { block::<A, T, M>(row.add(from), len) };
        from += len;
        let mut level = 0;
        while blocks >> level & 1 == 1 {
            value = M::combine(levels[level], value);
            level += 1;
        }
        levels[level] = value;
        blocks += 1;
        if from == n {
            break;
        }
    }
    let mut result = M::IDENTITY;
    for (level, value) in levels.iter().enumerate() {
        if blocks >> level & 1 == 1 {
            result = M::combine(*value, result);
        }
    }
    result
}

/// # Safety
/// See [`row_of`].
#[inline(always)]
unsafe fn block<A: Accumulator, T: Load<A>, M: Monoid<A>>(row: *const T, n: usize) -> A {
    // SAFETY: guaranteed by the caller.
    let mut lanes = unsafe { folded::<A, T, M>(row, n) };
    for gap in [4, 2, 1] {
        for l in 0..gap {
            lanes[l] = M::combine(lanes[l], lanes[l + gap]);
        }
    }
    lanes[0]
}

multiversion! {
    /// Combines `count` rows of `n` adjacent elements, `stride` apart, element by element into `acc`.
    ///
    /// # Safety
    /// The rows must be readable. `n` values at `acc`, which must not overlap the rows, must be readable and
    /// writable; `n` must be at most [`TILE`].
    pub(super) unsafe fn columns<A: Accumulator, T: Load<A>, M: Monoid<A>>(src: *const T, stride: usize, count: usize, n: usize, acc: *mut A) = columns_body
}

/// # Safety
/// See [`columns`].
#[inline(always)]
unsafe fn columns_body<I: Isa, A: Accumulator, T: Load<A>, M: Monoid<A>>(
    src: *const T,
    stride: usize,
    count: usize,
    n: usize,
    acc: *mut A,
) {
    // SAFETY: the caller guarantees `n` elements of each row, and `acc`, which nothing else refers to.
    unsafe {
        let acc = std::slice::from_raw_parts_mut(acc, n);
        let mut i = 0;
        while i + 8 <= count {
            let r: [*const T; 8] = std::array::from_fn(|k| src.wrapping_add((i + k) * stride));
            for (j, acc) in acc.iter_mut().enumerate() {
                let x: [A; 8] = std::array::from_fn(|k| (*r[k].add(j)).load());
                let left = M::combine(M::combine(x[0], x[1]), M::combine(x[2], x[3]));
                let right = M::combine(M::combine(x[4], x[5]), M::combine(x[6], x[7]));
                *acc = M::combine(*acc, M::combine(left, right));
            }
            i += 8;
        }
        for i in i..count {
            let r = src.wrapping_add(i * stride);
            for (j, acc) in acc.iter_mut().enumerate() {
                *acc = M::combine(*acc, (*r.add(j)).load());
            }
        }
    }
}
