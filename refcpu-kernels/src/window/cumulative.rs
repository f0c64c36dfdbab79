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
    n: usize,
    inner: usize,
    /// `true` if the operation runs from the end to the start.
    reverse: bool,
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
        let Self { outer, n, inner, reverse } = self;
        if outer == 0 || inner == 0 {
            return;
        }
        let inline = Pool::inline();
        let pool = if outer.saturating_mul(n * inner) < CHUNK { &inline } else { pool };
        let (src, dst) = (SyncPtr::from_raw(src.cast_mut().cast()), SyncPtr::from_raw(dst.cast()));
        let place = move |i: usize| {
            (src.get().cast::<A>().cast_const().wrapping_add(i), dst.get().cast::<A>().wrapping_add(i))
        };
        if inner > 1 {
            let tiles = inner.div_ceil(TILE);
            let per_chunk = (CHUNK / (n * inner.min(TILE))).max(1);
            pool.run((outer * tiles).div_ceil(per_chunk), &|chunk| {
                for i in chunk * per_chunk..(outer * tiles).min((chunk + 1) * per_chunk) {
                    let (o, first) = (i / tiles, i % tiles * TILE);
                    let row = if reverse { n - 1 } else { 0 };
                    let step = if reverse { -(inner as isize) } else { inner as isize };
                    let (src, dst) = place((o * n + row) * inner + first);
                    // SAFETY: the rows are those of this chunk's tile, from the first or last one.
                    unsafe { accumulate_rows::<A, M>(src, dst, step, n, TILE.min(inner - first), init) };
                }
            });
            return;
        }
        // Chains are pieces of rows. Each starts from the combination of all preceding pieces.
        let pieces = n.div_ceil(CHAIN);
        let chains = outer * pieces;
        // The start (in the order of the operation) and the length of chain `c`.
        let chain = |c: usize| {
            let (row, piece) = (c / pieces, c % pieces);
            let from = piece * CHAIN;
            (row * n + if reverse { n - 1 - from } else { from }, CHAIN.min(n - from))
        };
        let mut starts = Scratch::new::<A>(if pieces > 1 { chains } else { 0 });
        let starts_at = SyncPtr::from_raw(starts.ptr());
        if pieces > 1 {
            pool.run(chains.div_ceil(CHAINS), &|chunk| {
                for c in chunk * CHAINS..chains.min((chunk + 1) * CHAINS) {
                    let (at, len) = chain(c);
                    let low = if reverse { at + 1 - len } else { at };
                    // SAFETY: the piece is part of the input, and each chain has its own total.
                    unsafe { *starts_at.get().cast::<A>().add(c) = total::<A, M>(place(low).0, len) };
                }
            });
            for row in 0..outer {
                let (mut far, mut near) = (init, M::IDENTITY);
                for piece in 0..pieces {
                    if piece % BLOCK == 0 {
                        (far, near) = (M::combine(far, near), M::IDENTITY);
                    }
                    // SAFETY: the totals were written above.
                    unsafe {
                        let start = starts_at.get().cast::<A>().add(row * pieces + piece);
                        near = M::combine(near, std::ptr::replace(start, M::combine(far, near)));
                    }
                }
            }
        }
        let step = if reverse { -1 } else { 1 };
        let start_of = |c: usize| {
            // SAFETY: the starts of all chains were written above.
            if pieces > 1 { unsafe { *starts_at.get().cast::<A>().add(c) } } else { init }
        };
        // Rows are short, so a chunk has more than one group of chains.
        let per_chunk = (CHUNK / n.min(CHAIN)).next_multiple_of(CHAINS);
        pool.run(chains.div_ceil(per_chunk), &|chunk| {
            let mut c = chunk * per_chunk;
            let end = chains.min(c + per_chunk);
            while c < end {
                let len = chain(c).1;
                let alike = c + CHAINS <= end && (c..c + CHAINS).all(|c| chain(c).1 == len);
                // SAFETY: each chain is a piece of a row of the input and of the output, which belongs to
                // this chunk.
                unsafe {
                    if alike {
                        let places: [_; CHAINS] = std::array::from_fn(|i| place(chain(c + i).0));
                        let start = std::array::from_fn(|i| start_of(c + i));
                        accumulate_chains::<A, M>(
                            &places.map(|p| p.0),
                            &places.map(|p| p.1),
                            step,
                            len,
                            start,
                        );
                        c += CHAINS;
                    } else {
                        let (src, dst) = place(chain(c).0);
                        let (start, mut done) = (start_of(c), M::IDENTITY);
                        for block in (0..len).step_by(BLOCK) {
                            let before = M::combine(start, done);
                            let mut carry = M::IDENTITY;
                            for i in block as isize..len.min(block + BLOCK) as isize {
                                carry = M::combine(carry, *src.offset(i * step));
                                *dst.offset(i * step) = M::combine(before, carry);
                            }
                            done = M::combine(done, carry);
                        }
                        c += 1;
                    }
                }
            }
        });
    }
}
