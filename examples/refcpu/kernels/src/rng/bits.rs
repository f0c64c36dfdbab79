//! StableHLO `rng_bit_generator`, bit for bit as XLA computes it.

use super::philox::philox_one;
use super::threefry::{WordOrder, counters};
use crate::view::SyncPtr;
use crate::{Dst, Pool};

/// Blocks of the generator in a chunk of parallel work.
const CHUNK: usize = 16 << 10;

/// The generators of StableHLO's `rng_bit_generator`. Its `DEFAULT` is XLA's choice of Philox on CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RngAlgorithm {
    /// Threefry-2x32, 20 rounds. State: key, counter.
    ThreeFry,
    /// Philox-4x32, 10 rounds. State: key and a 128-bit counter, low word first; in a state of two words, the counter's
    /// high word is the key again.
    Philox,
}

/// Fills `out` with random bits and returns the state for the next call: `state[0]` is the key and stays.
///
/// Types of 32 bits take one word of the generator each, 64 bits two, narrower ones the low bits of one.
///
/// # Panics
/// If the state does not have 2 words (3 are allowed for Philox), or the type is `Pred` or complex.
pub fn rng_bit_generator(pool: &Pool, algorithm: RngAlgorithm, state: &[u64], mut out: Dst<'_>) -> Vec<u64> {
    let dtype = out.dtype();
    assert!(!dtype.is_complex() && dtype.bits() > 1, "rng_bit_generator: output of type {dtype:?}");
    let n = out.len();
    let dims = out.dims();
    let output = SyncPtr::new(&mut out);
    let size = dtype.size();
    let spare = 8usize.saturating_sub(dtype.bits()) as u32;
    let signed = dtype.compute().is_signed_integer();
    // SAFETY (of the writes through it): called with element numbers below `n` only, each by one chunk.
    let write = |at: usize, bits: u64| unsafe {
        let target = output.get().add(at * size);
        match size {
            1 if signed => target.write(((bits as i8) << spare >> spare) as u8),
            1 => target.write((bits as u8) << spare >> spare),
            2 => target.cast::<u16>().write(bits as u16),
            4 => target.cast::<u32>().write(bits as u32),
            _ => target.cast::<u64>().write(bits),
        }
    };
    match algorithm {
        RngAlgorithm::ThreeFry => {
            assert_eq!(state.len(), 2, "rng_bit_generator: words of state for ThreeFry");
            let key = [state[0] as u32, (state[0] >> 32) as u32];
            if size == 8 {
                pool.run(n.div_ceil(CHUNK), &|chunk| {
                    counters(
                        key,
                        WordOrder::LowFirst,
                        state[1],
                        chunk * CHUNK..n.min((chunk + 1) * CHUNK),
                        &mut |at, a, b| {
                            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                                write(at + i, u64::from(*a) | u64::from(*b) << 32);
                            }
                        },
                    );
                });
                return vec![state[0], state[1].wrapping_add(n as u64)];
            }
            // Both words of a block go to neighbours along one dimension: the first of even size, or else the largest.
            let split = (0..dims.len())
                .find(|d| dims[*d] % 2 == 0)
                .or_else(|| (0..dims.len()).rev().max_by_key(|d| dims[*d]));
            let (along, inner) = split.map_or((1, 1), |d| (dims[d], dims[d + 1..].iter().product()));
            let half = along.div_ceil(2);
            let blocks = if n == 0 { 0 } else { n / along * half };
            pool.run(blocks.div_ceil(CHUNK), &|chunk| {
                counters(
                    key,
                    WordOrder::LowFirst,
                    state[1],
                    chunk * CHUNK..blocks.min((chunk + 1) * CHUNK),
                    &mut |at, a, b| {
                        for (i, (a, b)) in a.iter().zip(b).enumerate() {
                            let block = at + i;
                            let (outer, middle, low) =
                                (block / inner / half, block / inner % half, block % inner);
                            let first = (outer * along + 2 * middle) * inner + low;
                            write(first, (*a).into());
                            if 2 * middle + 1 < along {
                                write(first + inner, (*b).into());
                            }
                        }
                    },
                );
            });
            vec![state[0], state[1].wrapping_add(blocks as u64)]
        }
        RngAlgorithm::Philox => {
            assert!(
                matches!(state.len(), 2 | 3),
                "rng_bit_generator: {} words of state for Philox",
                state.len()
            );
            let high = if state.len() == 3 { state[2] } else { state[0] };
            let start = u128::from(state[1]) | u128::from(high) << 64;
            let per_block = if size == 8 { 2 } else { 4 };
            let blocks = n.div_ceil(per_block);
            pool.run(blocks.div_ceil(CHUNK), &|chunk| {
                for block in chunk * CHUNK..blocks.min((chunk + 1) * CHUNK) {
                    let x = philox_one(state[0], start.wrapping_add(block as u128));
                    for i in 0..per_block.min(n - block * per_block) {
                        let bits = if size == 8 {
                            u64::from(x[2 * i]) | u64::from(x[2 * i + 1]) << 32
                        } else {
                            x[i].into()
                        };
                        write(block * per_block + i, bits);
                    }
                }
            });
            let end = start.wrapping_add(blocks as u128);
            let mut next = vec![state[0], end as u64];
            if state.len() == 3 {
                next.push((end >> 64) as u64);
            }
            next
        }
    }
}
