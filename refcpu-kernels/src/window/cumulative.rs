//! Cumulative sums, products, minima and maxima: windows over all elements up to each position.

use super::kernel::{BLOCK, CHAINS, TILE, accumulate_chains, accumulate_rows};
use super::spec::Axis;
use crate::Pool;
use crate::number::{Accumulator, Monoid};
use crate::reduce::total;
use crate::scratch::Scratch;
use crate::view::SyncPtr;

/// The number of elements of a chain: few enough for sums in blocks, and enough to amortize the computation
/// of its start.
const CHAIN: usize = 1 << 10;
/// The number of elements of a chunk.
const CHUNK: usize = CHAIN * CHAINS;

/// A cumulative operation along the middle of three dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cumulative {
    outer: usize,
    pub(super) n: usize,
    pub(super) inner: usize,
    /// `true` if the operation runs from the end to the start.
    pub(super) reverse: bool,
}

impl Cumulative {
    /// Recognizes windows that cover all elements before (or after) each position along one dimension, and
    /// one element along all others.
    pub(super) fn of(axes: &[Axis]) -> Option<Self> {
        let is_single = |a: &Axis| {
            a.size == 1 && a.stride == 1 && a.base_dilation == 1 && a.low == 0 && a.outputs == a.input
        };
        let mut others = (0..axes.len()).filter(|d| !is_single(&axes[*d]));
        let (Some(d), None) = (others.next(), others.next()) else { return None };
        let a = &axes[d];
        let fits = a.is_plain() && a.outputs == a.input && a.size >= a.input && a.input > 1;
        // The last window starts at or before the first element (forward), or the first window starts there
        // and all windows reach the end (reverse).
        let forward = a.low == a.size as i64 - 1;
        let reverse = a.low == 0;
        (fits && (forward || reverse)).then(|| Self {
            outer: axes[..d].iter().map(|a| a.input).product(),
            n: a.input,
            inner: axes[d + 1..].iter().map(|a| a.input).product(),
            reverse,
        })
    }

    /// Runs the operation. Each result is also combined with `init`.
    ///
    /// # Safety
    /// For all elements, `src` must be readable and `dst` writable; nothing else may access `dst`.
    pub(super) unsafe fn run<A: Accumulator, M: Monoid<A>>(
        self,
        pool: &Pool,
        src: *const A,
        init: A,
        dst: *mut A,
    ) {
        if self.outer == 0 || self.inner == 0 {
            return;
        }
        let inline = Pool::inline();
        let elements = self.outer.saturating_mul(self.n * self.inner);
        let pool = if elements < CHUNK { &inline } else { pool };
        let arrays =
            Arrays { src: SyncPtr::from_raw(src.cast_mut().cast()), dst: SyncPtr::from_raw(dst.cast()) };
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.inner > 1 {
                self.across_rows::<A, M>(pool, arrays, init);
            } else {
                self.along_rows::<A, M>(pool, arrays, init);
            }
        }
    }

    /// Runs the operation along a dimension that is not the innermost one: rows are combined element by
    /// element.
    ///
    /// # Safety
    /// See [`Self::run`].
    unsafe fn across_rows<A: Accumulator, M: Monoid<A>>(self, pool: &Pool, arrays: Arrays, init: A) {
        let Self { outer, n, inner, reverse } = self;
        let tiles = inner.div_ceil(TILE);
        let per_chunk = (CHUNK / (n * inner.min(TILE))).max(1);
        pool.run((outer * tiles).div_ceil(per_chunk), &|chunk| {
            for i in chunk * per_chunk..(outer * tiles).min((chunk + 1) * per_chunk) {
                let (o, first) = (i / tiles, i % tiles * TILE);
                let row = if reverse { n - 1 } else { 0 };
                let step = if reverse { -(inner as isize) } else { inner as isize };
                let (src, dst) = arrays.at((o * n + row) * inner + first);
                // SAFETY: the rows are those of this chunk's tile, from the first or last one.
                unsafe { accumulate_rows::<A, M>(src, dst, step, n, TILE.min(inner - first), init) };
            }
        });
    }

    /// Runs the operation along the innermost dimension.
    ///
    /// # Safety
    /// See [`Self::run`].
    unsafe fn along_rows<A: Accumulator, M: Monoid<A>>(self, pool: &Pool, arrays: Arrays, init: A) {
        let pieces = self.n.div_ceil(CHAIN);
        let chains = self.outer * pieces;
        let mut starts = Scratch::new::<A>(if pieces > 1 { chains } else { 0 });
        let starts = SyncPtr::from_raw(starts.ptr());
        if pieces > 1 {
            // SAFETY: guaranteed by the caller; there is room for the start of each chain.
            unsafe { self.find_starts::<A, M>(pool, arrays, init, starts) };
        }
        let start_of = |c: usize| {
            // SAFETY: the starts of all chains were written above.
            if pieces > 1 { unsafe { *starts.get().cast::<A>().add(c) } } else { init }
        };
        let step = if self.reverse { -1 } else { 1 };
        // Rows are short, so a chunk has more than one group of chains.
        let per_chunk = (CHUNK / self.n.min(CHAIN)).next_multiple_of(CHAINS);
        pool.run(chains.div_ceil(per_chunk), &|chunk| {
            let mut c = chunk * per_chunk;
            let end = chains.min(c + per_chunk);
            while c < end {
                let len = self.chain(c).1;
                let alike = c + CHAINS <= end && (c..c + CHAINS).all(|c| self.chain(c).1 == len);
                // SAFETY: each chain is a piece of a row of the input and of the output, which belongs to
                // this chunk.
                unsafe {
                    if alike {
                        let places: [_; CHAINS] = std::array::from_fn(|i| arrays.at(self.chain(c + i).0));
                        let (src, dst) = (places.map(|p| p.0), places.map(|p| p.1));
                        let start = std::array::from_fn(|i| start_of(c + i));
                        accumulate_chains::<A, M>(&src, &dst, step, len, start);
                        c += CHAINS;
                    } else {
                        let (src, dst) = arrays.at(self.chain(c).0);
                        accumulate_chain::<A, M>(src, dst, step, len, start_of(c));
                        c += 1;
                    }
                }
            }
        });
    }

    /// Returns the start (in the order of the operation) and the length of a chain. Chains are pieces of
    /// rows. Each begins with the combination of all preceding pieces.
    #[inline(always)]
    fn chain(self, c: usize) -> (usize, usize) {
        let pieces = self.n.div_ceil(CHAIN);
        let (row, piece) = (c / pieces, c % pieces);
        let from = piece * CHAIN;
        let first = if self.reverse { self.n - 1 - from } else { from };
        (row * self.n + first, CHAIN.min(self.n - from))
    }

    /// Writes the values with which the chains begin to `starts`.
    ///
    /// # Safety
    /// See [`Self::run`]. There must be room for one value per chain, which nothing else accesses.
    unsafe fn find_starts<A: Accumulator, M: Monoid<A>>(
        self,
        pool: &Pool,
        arrays: Arrays,
        init: A,
        starts: SyncPtr,
    ) {
        let pieces = self.n.div_ceil(CHAIN);
        let chains = self.outer * pieces;
        pool.run(chains.div_ceil(CHAINS), &|chunk| {
            for c in chunk * CHAINS..chains.min((chunk + 1) * CHAINS) {
                let (at, len) = self.chain(c);
                let low = if self.reverse { at + 1 - len } else { at };
                // SAFETY: the piece is part of the input, and each chain has its own total.
                unsafe { *starts.get().cast::<A>().add(c) = total::<A, M>(arrays.at(low).0, len) };
            }
        });
        for row in 0..self.outer {
            let (mut far, mut near) = (init, M::IDENTITY);
            for piece in 0..pieces {
                if piece % BLOCK == 0 {
                    (far, near) = (M::combine(far, near), M::IDENTITY);
                }
                // SAFETY: the totals were written above.
                unsafe {
                    let start = starts.get().cast::<A>().add(row * pieces + piece);
                    near = M::combine(near, std::ptr::replace(start, M::combine(far, near)));
                }
            }
        }
    }
}

/// The first elements of the input and of the result.
#[derive(Clone, Copy)]
struct Arrays {
    src: SyncPtr,
    dst: SyncPtr,
}

impl Arrays {
    /// Returns the addresses of element `i`.
    #[inline(always)]
    fn at<A>(self, i: usize) -> (*const A, *mut A) {
        (self.src.get().cast::<A>().cast_const().wrapping_add(i), self.dst.get().cast::<A>().wrapping_add(i))
    }
}

/// Computes the cumulative combinations of one row of `n` values from `start`; see [`accumulate_chains`].
///
/// # Safety
/// The values must be readable, and their positions in `dst` writable.
#[inline(always)]
unsafe fn accumulate_chain<A: Accumulator, M: Monoid<A>>(
    src: *const A,
    dst: *mut A,
    step: isize,
    n: usize,
    start: A,
) {
    let mut done = M::IDENTITY;
    for block in (0..n).step_by(BLOCK) {
        let before = M::combine(start, done);
        let mut carry = M::IDENTITY;
        for i in block as isize..n.min(block + BLOCK) as isize {
            // SAFETY: guaranteed by the caller.
            unsafe {
                carry = M::combine(carry, *src.offset(i * step));
                *dst.offset(i * step) = M::combine(before, carry);
            }
        }
        done = M::combine(done, carry);
    }
}
