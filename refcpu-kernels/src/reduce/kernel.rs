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
    for i in 0..count {
        let row = src.wrapping_add(i * stride);
        // SAFETY: the caller guarantees `n` elements of each row, and `out`.
        unsafe {
            *out.add(i) = match n {
                0..8 => (0..n).fold(M::IDENTITY, |acc, j| M::combine(acc, (*row.add(j)).load())),
                8..LANES => row_of::<A, T, M, 8>(row, n),
                _ => row_of::<A, T, M, LANES>(row, n),
            };
        }
    }
}

/// # Safety
/// `n` elements at `row` must be readable.
#[inline(always)]
unsafe fn row_of<A: Accumulator, T: Load<A>, M: Monoid<A>, const L: usize>(row: *const T, n: usize) -> A {
    // The results of blocks are combined pairwise, like the carries of a binary counter. Memory cannot hold
    // enough elements for more than 48 levels.
    let mut levels = [M::IDENTITY; 48];
    let mut blocks = 0usize;
    let mut from = 0;
    loop {
        let len = (n - from).min(BLOCK);
        // SAFETY: `from + len` is at most `n`.
        let mut value = unsafe { block::<A, T, M, L>(row.add(from), len) };
        from += len;
        if from == n && blocks == 0 {
            return value;
        }
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
unsafe fn block<A: Accumulator, T: Load<A>, M: Monoid<A>, const L: usize>(row: *const T, n: usize) -> A {
    let mut acc = [M::IDENTITY; L];
    let whole = n - n % L;
    // SAFETY: indices stay below `n`.
    unsafe {
        for i in (0..whole).step_by(L) {
            for (l, acc) in acc.iter_mut().enumerate() {
                *acc = M::combine(*acc, (*row.add(i + l)).load());
            }
        }
        for i in whole..n {
            acc[i - whole] = M::combine(acc[i - whole], (*row.add(i)).load());
        }
    }
    let mut gap = L / 2;
    while gap > 0 {
        for l in 0..gap {
            acc[l] = M::combine(acc[l], acc[l + gap]);
        }
        gap /= 2;
    }
    acc[0]
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
