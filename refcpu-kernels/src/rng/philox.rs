//! Philox-4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3").

use crate::isa::{Isa, multiversion};

/// Computes the block function for one counter of four words, lowest first; loops around it are vectorized.
#[inline(always)]
fn philox(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let (mut x, mut k) = (counter, key);
    for _ in 0..10 {
        let p0 = u64::from(x[0]) * 0xd251_1f53;
        let p1 = u64::from(x[2]) * 0xcd9e_8d57;
        x = [(p1 >> 32) as u32 ^ x[1] ^ k[0], p1 as u32, (p0 >> 32) as u32 ^ x[3] ^ k[1], p0 as u32];
        k = [k[0].wrapping_add(0x9e37_79b9), k[1].wrapping_add(0xbb67_ae85)];
    }
    x
}

fn words(v: u128) -> [u32; 4] {
    [v as u32, (v >> 32) as u32, (v >> 64) as u32, (v >> 96) as u32]
}

#[inline(always)]
unsafe fn run_body<I: Isa>(key: [u32; 2], start: [u32; 4], out: *mut u32, count: usize) {
    for i in 0..count {
        let x = philox(key, [start[0].wrapping_add(i as u32), start[1], start[2], start[3]]);
        for (word, v) in x.into_iter().enumerate() {
            // SAFETY: guaranteed by the caller.
            unsafe { out.add(4 * i + word).write(v) };
        }
    }
}

multiversion! {
    /// Writes the results for the counters `start`, `start + [1, 0, 0, 0]`, ... consecutively.
    ///
    /// # Safety
    /// `out` must be writable for `4 * count` words.
    unsafe fn run(key: [u32; 2], start: [u32; 4], out: *mut u32, count: usize) = run_body
}

/// Writes the results for the counters `start`, `start + 1`, ... to `out`, four words each, as many as fit.
pub(super) fn philox_blocks(key: u64, start: u128, out: &mut [u32]) {
    let key = [key as u32, (key >> 32) as u32];
    let mut counter = start;
    let mut rest = out;
    while rest.len() >= 4 {
        let left = (1u64 << 32) - u64::from(counter as u32);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len() / 4);
        let (now, later) = rest.split_at_mut(4 * count);
        // SAFETY: `now` has four words for each counter.
        unsafe { run(key, words(counter), now.as_mut_ptr(), count) };
        counter = counter.wrapping_add(count as u128);
        rest = later;
    }
}
