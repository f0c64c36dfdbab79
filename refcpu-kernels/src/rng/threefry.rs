//! Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

use crate::isa::{Isa, multiversion};
use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};
use std::ops::Range;

/// Counters that are loaded and stored at a time.
const LANES: usize = 64;
/// Counters in a chunk of parallel work.
pub(super) const CHUNK: usize = 16 << 10;

/// Computes the block function for one counter; loops around it are vectorized.
#[inline(always)]
fn threefry(key: [u32; 2], x0: u32, x1: u32) -> (u32, u32) {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd1_1bda];
    let (mut x0, mut x1) = (x0.wrapping_add(keys[0]), x1.wrapping_add(keys[1]));
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            x0 = x0.wrapping_add(x1);
            x1 = x1.rotate_left(rotation) ^ x0;
        }
        x0 = x0.wrapping_add(keys[(group + 1) % 3]);
        x1 = x1.wrapping_add(keys[(group + 2) % 3].wrapping_add(group as u32 + 1));
    }
    (x0, x1)
}

#[inline(always)]
unsafe fn arrays_body<I: Isa>(
    key: [u32; 2],
    x0: *const u32,
    x1: *const u32,
    y0: *mut u32,
    y1: *mut u32,
    count: usize,
) {
    for first in (0..count).step_by(LANES) {
        let n = LANES.min(count - first);
        let (mut a, mut b) = ([0u32; LANES], [0u32; LANES]);
        let (mut c, mut d) = ([0u32; LANES], [0u32; LANES]);
        // SAFETY: guaranteed by the caller; a block is read whole before any of it is written.
        unsafe {
            a.as_mut_ptr().copy_from(x0.add(first), n);
            b.as_mut_ptr().copy_from(x1.add(first), n);
        }
        for i in 0..LANES {
            (c[i], d[i]) = threefry(key, a[i], b[i]);
        }
        // SAFETY: guaranteed by the caller.
        unsafe {
            y0.add(first).copy_from(c.as_ptr(), n);
            y1.add(first).copy_from(d.as_ptr(), n);
        }
    }
}

multiversion! {
    /// Computes `(y0, y1) = threefry(key, x0, x1)` for `count` elements.
    ///
    /// # Safety
    /// The inputs can be read and the outputs written; an output may start where an input starts, and does
    /// not overlap one otherwise.
    unsafe fn arrays(key: [u32; 2], x0: *const u32, x1: *const u32, y0: *mut u32, y1: *mut u32, count: usize)
        = arrays_body
}

#[inline(always)]
unsafe fn words_body<I: Isa>(
    key: [u32; 2],
    start: [u32; 2],
    step: [u32; 2],
    y0: *mut u32,
    y1: *mut u32,
    count: usize,
) {
    for i in 0..count {
        let at = |word: usize| start[word].wrapping_add(step[word].wrapping_mul(i as u32));
        let (a, b) = threefry(key, at(0), at(1));
        // SAFETY: guaranteed by the caller.
        unsafe {
            y0.add(i).write(a);
            y1.add(i).write(b);
        }
    }
}

multiversion! {
    /// Computes both words for the counters `start`, `start + step`, ... (word by word).
    ///
    /// # Safety
    /// `count` elements must be writable at either output, and the outputs must not overlap.
    unsafe fn words(key: [u32; 2], start: [u32; 2], step: [u32; 2], y0: *mut u32, y1: *mut u32, count: usize)
        = words_body
}

#[inline(always)]
unsafe fn mixed_body<I: Isa>(key: [u32; 2], start: [u32; 2], out: *mut u32, count: usize) {
    for i in 0..count {
        let (a, b) = threefry(key, start[0], start[1].wrapping_add(i as u32));
        // SAFETY: guaranteed by the caller.
        unsafe { out.add(i).write(a ^ b) };
    }
}

multiversion! {
    /// Computes the exclusive or of both words, for the counters `start`, `start + [0, 1]`, ...
    ///
    /// # Safety
    /// `count` elements must be writable at `out`.
    unsafe fn mixed(key: [u32; 2], start: [u32; 2], out: *mut u32, count: usize) = mixed_body
}

/// Divides the counters `first + range` into runs with the same high word, and calls `work(position, high,
/// low, count)`.
fn for_each_run(first: u64, range: Range<usize>, work: &mut dyn FnMut(usize, u32, u32, usize)) {
    let mut at = range.start;
    while at < range.end {
        let counter = first.wrapping_add(at as u64);
        let left = (1u64 << 32) - u64::from(counter as u32);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(range.end - at);
        work(at, (counter >> 32) as u32, counter as u32, count);
        at += count;
    }
}

/// Computes `(y0, y1) = threefry2x32(key, (x0, x1))` element by element, over U32 arrays of the same size.
/// `y0` may be the same array as `x0`, and `y1` the same as `x1`.
///
/// # Panics
/// Panics if types or sizes differ.
pub fn threefry2x32(pool: &Pool, key: [u32; 2], x0: Src<'_>, x1: Src<'_>, mut y0: Dst<'_>, mut y1: Dst<'_>) {
    let n = x0.len();
    assert!(
        [x0.dtype(), x1.dtype(), y0.dtype(), y1.dtype()].iter().all(|d| *d == DType::U32)
            && [x1.len(), y0.len(), y1.len()].iter().all(|l| *l == n),
        "threefry2x32: {:?} and {:?} to {:?} and {:?}",
        x0.dims(),
        x1.dims(),
        y0.dims(),
        y1.dims()
    );
    let inputs = [SyncPtr::from_raw(x0.as_ptr().cast_mut()), SyncPtr::from_raw(x1.as_ptr().cast_mut())];
    let outputs = [SyncPtr::new(&mut y0), SyncPtr::new(&mut y1)];
    pool.run(n.div_ceil(CHUNK), &|chunk| {
        let first = chunk * CHUNK;
        let count = CHUNK.min(n - first);
        let at = |p: SyncPtr| p.get().cast::<u32>().wrapping_add(first);
        // SAFETY: the elements are in all four arrays of `n`; chunks are disjoint; an output either is an
        // input with the same start, or does not overlap it.
        unsafe { arrays(key, at(inputs[0]), at(inputs[1]), at(outputs[0]), at(outputs[1]), count) };
    });
}

/// Computes [`threefry2x32`] of the counters `first`, `first + 1`, ... (high words in `x0`, low words in
/// `x1`), as JAX does for partitionable keys.
///
/// # Panics
/// Panics if the outputs are not U32 arrays of the same size.
pub fn threefry2x32_iota(pool: &Pool, key: [u32; 2], first: u64, mut y0: Dst<'_>, mut y1: Dst<'_>) {
    let n = y0.len();
    assert!(
        y0.dtype() == DType::U32 && y1.dtype() == DType::U32 && y1.len() == n,
        "threefry2x32_iota: {:?} and {:?}",
        y0.dims(),
        y1.dims()
    );
    let outputs = [SyncPtr::new(&mut y0), SyncPtr::new(&mut y1)];
    pool.run(n.div_ceil(CHUNK), &|chunk| {
        for_each_run(first, chunk * CHUNK..n.min((chunk + 1) * CHUNK), &mut |at, high, low, count| {
            let [a, b] = outputs.map(|p| p.get().cast::<u32>().wrapping_add(at));
            // SAFETY: the run is in the chunk's part of both arrays, which no other chunk writes.
            unsafe { words(key, [high, low], [0, 1], a, b, count) };
        });
    });
}

/// Computes JAX's 32 random bits per element for a partitionable key: the exclusive or of both words of
/// [`threefry2x32_iota`] from `first`.
///
/// # Panics
/// Panics if `out` is not U32.
pub fn threefry_random_bits(pool: &Pool, key: [u32; 2], first: u64, mut out: Dst<'_>) {
    assert_eq!(out.dtype(), DType::U32, "threefry_random_bits");
    let n = out.len();
    let output = SyncPtr::new(&mut out);
    pool.run(n.div_ceil(CHUNK), &|chunk| {
        for_each_run(first, chunk * CHUNK..n.min((chunk + 1) * CHUNK), &mut |at, high, low, count| {
            // SAFETY: the run is in the chunk's part of the array, which no other chunk writes.
            unsafe { mixed(key, [high, low], output.get().cast::<u32>().wrapping_add(at), count) };
        });
    });
}

/// Passes both words for the counters `first + range` to `work`, block by block with the block's position.
/// The low word of a counter comes first, as in XLA's `rng_bit_generator`.
pub(super) fn counters(
    key: [u32; 2],
    first: u64,
    range: Range<usize>,
    work: &mut dyn FnMut(usize, &[u32], &[u32]),
) {
    const BLOCK: usize = 512;
    let (mut a, mut b) = ([0u32; BLOCK], [0u32; BLOCK]);
    for start in range.clone().step_by(BLOCK) {
        for_each_run(first, start..range.end.min(start + BLOCK), &mut |at, high, low, count| {
            // SAFETY: a run is no longer than a block.
            unsafe { words(key, [low, high], [1, 0], a.as_mut_ptr(), b.as_mut_ptr(), count) };
            work(at, &a[..count], &b[..count]);
        });
    }
}
