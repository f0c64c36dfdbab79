//! Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

use crate::view::SyncPtr;
use crate::{DType, Dst, Pool, Src};

/// Pairs that are computed at a time, interleaved so that the rounds' latencies overlap.
pub(super) const LANES: usize = 64;
/// Pairs in a chunk of parallel work.
const CHUNK: usize = 16 << 10;

/// Applies the block function to `LANES` counters.
#[inline(always)]
pub(super) fn threefry_lanes(key: [u32; 2], x0: &mut [u32; LANES], x1: &mut [u32; LANES]) {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd1_1bda];
    for i in 0..LANES {
        x0[i] = x0[i].wrapping_add(keys[0]);
        x1[i] = x1[i].wrapping_add(keys[1]);
    }
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            for i in 0..LANES {
                x0[i] = x0[i].wrapping_add(x1[i]);
                x1[i] = x1[i].rotate_left(rotation) ^ x0[i];
            }
        }
        let (k0, k1) = (keys[(group + 1) % 3], keys[(group + 2) % 3].wrapping_add(group as u32 + 1));
        for i in 0..LANES {
            x0[i] = x0[i].wrapping_add(k0);
            x1[i] = x1[i].wrapping_add(k1);
        }
    }
}

/// `(y0, y1) = threefry2x32(key, (x0, x1))` element by element, over U32 arrays of one size. An output may be the same
/// array as the input with its number, or as the other one if that is not read again: `y0` as `x0`, `y1` as `x1`.
///
/// # Panics
/// If types or sizes differ.
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
        let range = chunk * CHUNK..n.min((chunk + 1) * CHUNK);
        for first in range.clone().step_by(LANES) {
            let count = LANES.min(range.end - first);
            let (mut a, mut b) = ([0u32; LANES], [0u32; LANES]);
            // SAFETY: `first..first + count` lies in all four arrays of `n` elements; blocks are disjoint, and each is
            // read whole before it is written, so that an output may lie where an input does.
            unsafe {
                a.as_mut_ptr().copy_from(inputs[0].get().cast::<u32>().add(first), count);
                b.as_mut_ptr().copy_from(inputs[1].get().cast::<u32>().add(first), count);
                threefry_lanes(key, &mut a, &mut b);
                outputs[0].get().cast::<u32>().add(first).copy_from(a.as_ptr(), count);
                outputs[1].get().cast::<u32>().add(first).copy_from(b.as_ptr(), count);
            }
        }
    });
}

/// [`threefry2x32`] of the counters `first`, `first + 1`, ... (high words in `x0`, low words in `x1`), which is what
/// JAX computes for partitionable keys.
///
/// # Panics
/// If the outputs are not U32 arrays of one size.
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
        counters(
            key,
            WordOrder::HighFirst,
            first,
            chunk * CHUNK..n.min((chunk + 1) * CHUNK),
            &mut |at, a, b| {
                // SAFETY: the block lies in the chunk's part of both arrays, which no other chunk writes.
                unsafe {
                    outputs[0].get().cast::<u32>().add(at).copy_from(a.as_ptr(), a.len());
                    outputs[1].get().cast::<u32>().add(at).copy_from(b.as_ptr(), b.len());
                }
            },
        );
    });
}

/// JAX's 32 random bits per element of a partitionable key: both words of [`threefry2x32_iota`] from 0 on, xored.
///
/// # Panics
/// If `out` is not U32.
pub fn threefry_random_bits(pool: &Pool, key: [u32; 2], mut out: Dst<'_>) {
    assert_eq!(out.dtype(), DType::U32, "threefry_random_bits");
    let n = out.len();
    let output = SyncPtr::new(&mut out);
    pool.run(n.div_ceil(CHUNK), &|chunk| {
        counters(key, WordOrder::HighFirst, 0, chunk * CHUNK..n.min((chunk + 1) * CHUNK), &mut |at, a, b| {
            let mut mixed = [0u32; LANES];
            for ((m, a), b) in mixed.iter_mut().zip(a).zip(b) {
                *m = a ^ b;
            }
            // SAFETY: the block lies in the chunk's part of the array, which no other chunk writes.
            unsafe { output.get().cast::<u32>().add(at).copy_from(mixed.as_ptr(), a.len()) }
        });
    });
}

/// Which word of a 64-bit counter the block function gets first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordOrder {
    /// The high one: JAX.
    HighFirst,
    /// The low one: XLA's `rng_bit_generator`.
    LowFirst,
}

/// Gives `work` the results for counters `first + range`, block by block with the block's position in the range.
pub(super) fn counters(
    key: [u32; 2],
    order: WordOrder,
    first: u64,
    range: std::ops::Range<usize>,
    work: &mut dyn FnMut(usize, &[u32], &[u32]),
) {
    for at in range.clone().step_by(LANES) {
        let count = LANES.min(range.end - at);
        let (mut a, mut b) = ([0u32; LANES], [0u32; LANES]);
        let base = first.wrapping_add(at as u64);
        for i in 0..LANES {
            let counter = base.wrapping_add(i as u64);
            a[i] = (counter >> 32) as u32;
            b[i] = counter as u32;
        }
        if order == WordOrder::LowFirst {
            std::mem::swap(&mut a, &mut b);
        }
        threefry_lanes(key, &mut a, &mut b);
        work(at, &a[..count], &b[..count]);
    }
}
