//! The inner loops of windows.

use crate::isa::{Isa, multiversion};
use crate::number::{Accumulator, Monoid};

/// The number of values that are combined in registers or the first-level cache at a time.
const LANES: usize = 64;
/// The number of chains of a cumulative operation that run concurrently, to hide the latency of each.
pub(super) const CHAINS: usize = 8;
/// The number of values in a block of a cumulative operation. Blocks, and blocks of blocks, are combined
/// before the values that precede them, so that the errors of sums grow with the logarithm of their length.
pub(super) const BLOCK: usize = 32;
/// The width of the widest tile that [`accumulate_rows`] supports.
pub(super) const TILE: usize = 128;

multiversion! {
    /// Sets `dst[i]` to the combination of the identity and `rows[0][i]`, `rows[1][i]`, ....
    ///
    /// # Safety
    /// `n` values of each row must be readable, and `n` values at `dst`, which overlaps no row, writable.
    pub(super) unsafe fn combine_rows<A: Accumulator, M: Monoid<A>>(rows: &[*const A], n: usize, dst: *mut A) = combine_rows_body
}

/// # Safety
/// See [`combine_rows`].
#[inline(always)]
unsafe fn combine_rows_body<I: Isa, A: Accumulator, M: Monoid<A>>(rows: &[*const A], n: usize, dst: *mut A) {
    let mut i = 0;
    while i < n {
        let mut acc = [M::IDENTITY; LANES];
        let len = LANES.min(n - i);
        // SAFETY: the caller guarantees `n` values of each row and at `dst`.
        unsafe {
            for row in rows {
                let row = row.add(i);
                if len == LANES {
                    for (l, acc) in acc.iter_mut().enumerate() {
                        *acc = M::combine(*acc, *row.add(l));
                    }
                } else {
                    for (l, acc) in acc[..len].iter_mut().enumerate() {
                        *acc = M::combine(*acc, *row.add(l));
                    }
                }
            }
            std::ptr::copy_nonoverlapping(acc.as_ptr(), dst.add(i), len);
        }
        i += len;
    }
}

multiversion! {
    /// Combines windows of `size` adjacent values, one at each of `n` adjacent positions: sets `dst[o]` to
    /// `init` combined with `src[o]`, ..., `src[o + size - 1]`.
    ///
    /// # Safety
    /// `n + size - 1` values at `src` must be readable and `n` values at `dst`, which does not overlap them,
    /// writable.
    pub(super) unsafe fn adjacent_windows<A: Accumulator, M: Monoid<A>>(src: *const A, size: usize, n: usize, init: A, dst: *mut A) = adjacent_windows_body
}

/// # Safety
/// See [`adjacent_windows`].
#[inline(always)]
unsafe fn adjacent_windows_body<I: Isa, A: Accumulator, M: Monoid<A>>(
    src: *const A,
    size: usize,
    n: usize,
    init: A,
    dst: *mut A,
) {
    let mut o = 0;
    // SAFETY: indices stay below `n + size - 1` in `src` and below `n` in `dst`.
    unsafe {
        while o + LANES <= n {
            let mut acc = [init; LANES];
            for k in 0..size {
                for (l, acc) in acc.iter_mut().enumerate() {
                    *acc = M::combine(*acc, *src.add(o + k + l));
                }
            }
            std::ptr::copy_nonoverlapping(acc.as_ptr(), dst.add(o), LANES);
            o += LANES;
        }
        for o in o..n {
            *dst.add(o) = (0..size).fold(init, |acc, k| M::combine(acc, *src.add(o + k)));
        }
    }
}

multiversion! {
    /// Computes the cumulative combinations of [`CHAINS`] rows of `n` values concurrently, each from its own
    /// start. Values of a row are `step` apart in both arrays.
    ///
    /// # Safety
    /// The values must be readable, and their positions in `dst`, which overlap no source, writable.
    pub(super) unsafe fn accumulate_chains<A: Accumulator, M: Monoid<A>>(src: &[*const A; CHAINS], dst: &[*mut A; CHAINS], step: isize, n: usize, start: [A; CHAINS]) = accumulate_chains_body
}

/// # Safety
/// See [`accumulate_chains`].
#[inline(always)]
unsafe fn accumulate_chains_body<I: Isa, A: Accumulator, M: Monoid<A>>(
    src: &[*const A; CHAINS],
    dst: &[*mut A; CHAINS],
    step: isize,
    n: usize,
    start: [A; CHAINS],
) {
    let (src, dst) = (*src, *dst);
    let mut done = [M::IDENTITY; CHAINS];
    for block in (0..n).step_by(BLOCK) {
        let before: [A; CHAINS] = std::array::from_fn(|c| M::combine(start[c], done[c]));
        let mut carry = [M::IDENTITY; CHAINS];
        for i in block as isize..n.min(block + BLOCK) as isize {
            for c in 0..CHAINS {
                // SAFETY: the caller guarantees `n` values of each chain.
                unsafe {
                    carry[c] = M::combine(carry[c], *src[c].offset(i * step));
                    *dst[c].offset(i * step) = M::combine(before[c], carry[c]);
                }
            }
        }
        for c in 0..CHAINS {
            done[c] = M::combine(done[c], carry[c]);
        }
    }
}

multiversion! {
    /// Computes the cumulative combinations of rows, element by element: sets row `i` of `dst` to `init`
    /// combined with the first `i + 1` rows of `src`. Rows have `width` values and are `step` apart in both
    /// arrays.
    ///
    /// # Safety
    /// The rows must be readable, and those of `dst`, which overlap no source, writable; `width` must be at
    /// most [`TILE`].
    pub(super) unsafe fn accumulate_rows<A: Accumulator, M: Monoid<A>>(src: *const A, dst: *mut A, step: isize, rows: usize, width: usize, init: A) = accumulate_rows_body
}

/// # Safety
/// See [`accumulate_rows`].
#[inline(always)]
unsafe fn accumulate_rows_body<I: Isa, A: Accumulator, M: Monoid<A>>(
    src: *const A,
    dst: *mut A,
    step: isize,
    rows: usize,
    width: usize,
    init: A,
) {
    // The combinations of the values before the current block of blocks, before the current block, and of the
    // block.
    let (mut far, mut before, mut done) = ([init; TILE], [init; TILE], [M::IDENTITY; TILE]);
    let mut carry = [M::IDENTITY; TILE];
    for i in 0..rows {
        if i > 0 && i % BLOCK == 0 {
            for j in 0..width {
                done[j] = M::combine(done[j], carry[j]);
                carry[j] = M::IDENTITY;
                before[j] = M::combine(far[j], done[j]);
            }
            if i % (BLOCK * BLOCK) == 0 {
                far[..width].copy_from_slice(&before[..width]);
                done[..width].fill(M::IDENTITY);
            }
        }
        // SAFETY: the caller guarantees `width` values of each row.
        unsafe {
            let (src, dst) = (src.offset(i as isize * step), dst.offset(i as isize * step));
            for j in 0..width {
                carry[j] = M::combine(carry[j], *src.add(j));
                *dst.add(j) = M::combine(before[j], carry[j]);
            }
        }
    }
}

/// A real type.
pub(super) trait Ordered: Accumulator + PartialOrd {}
impl<A: Accumulator + PartialOrd> Ordered for A {}

/// The comparison of `select_and_scatter` as a Rust type.
pub(super) trait Select: Copy + Send + Sync + 'static {
    /// Returns `true` if the element selected so far is kept.
    fn keeps<A: PartialOrd>(selected: A, element: A) -> bool;
}

macro_rules! selects {
    ($($name:ident $op:tt;)*) => {$(
        /// The comparison of the same name.
        #[derive(Clone, Copy)]
        pub(super) struct $name;
        impl Select for $name {
            #[inline(always)]
            fn keeps<A: PartialOrd>(selected: A, element: A) -> bool {
                selected $op element
            }
        }
    )*};
}
selects! {
    Ge >=;
    Gt >;
    Le <=;
    Lt <;
}

multiversion! {
    /// Processes a window of `select_and_scatter` for `width` neighboring values. `taps` are the offsets of
    /// the window's elements in `operand` and `out` (for the first value). Adds each value of `source` to
    /// `out` at the tap that is selected for it.
    ///
    /// # Safety
    /// `width` values must be readable at each tap and at `source`, and those in `out` also writable; `width`
    /// must be at most [`TILE`].
    pub(super) unsafe fn select_window<A: Ordered, S: Select>(operand: *const A, taps: &[usize], source: *const A, out: *mut A, width: usize) = select_window_body
}

/// # Safety
/// See [`select_window`].
#[inline(always)]
unsafe fn select_window_body<I: Isa, A: Ordered, S: Select>(
    operand: *const A,
    taps: &[usize],
    source: *const A,
    out: *mut A,
    width: usize,
) {
    const PART: usize = 32;
    let Some((first, rest)) = taps.split_first() else { return };
    let mut from = 0;
    while from < width {
        let len = PART.min(width - from);
        let (mut best, mut at, mut add) = ([A::ZERO; PART], [0u32; PART], [A::ZERO; PART]);
        // SAFETY: the caller guarantees `width` values at every tap and at `source`; `from + len` is at most
        // that.
        unsafe {
            std::ptr::copy_nonoverlapping(operand.add(first + from), best.as_mut_ptr(), len);
            std::ptr::copy_nonoverlapping(source.add(from), add.as_mut_ptr(), len);
            for (t, tap) in rest.iter().enumerate() {
                let p = operand.add(tap + from);
                for l in 0..len {
                    let x = *p.add(l);
                    let keep = S::keeps(best[l], x);
                    best[l] = if keep { best[l] } else { x };
                    at[l] = if keep { at[l] } else { t as u32 + 1 };
                }
            }
            if len == 1 {
                let p = out.add(taps[at[0] as usize] + from);
                *p = (*p).plus(add[0]);
            } else {
                for (t, tap) in taps.iter().enumerate() {
                    let p = out.add(tap + from);
                    for l in 0..len {
                        let old = *p.add(l);
                        *p.add(l) = if at[l] == t as u32 { old.plus(add[l]) } else { old };
                    }
                }
            }
        }
        from += len;
    }
}
