//! StableHLO `rng_bit_generator`, bit for bit as XLA computes it.

use super::philox::philox_blocks;
use super::threefry::{CHUNK, counters};
use crate::view::SyncPtr;
use crate::{DType, Dst, Pool};

/// Words of Philox that are generated at a time.
const WORDS: usize = 1024;

/// The generators of StableHLO's `rng_bit_generator`. The `DEFAULT` algorithm is Philox, as in XLA on CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RngAlgorithm {
    /// Threefry-2x32, 20 rounds. State: key, counter.
    ThreeFry,
    /// Philox-4x32, 10 rounds. State: key and a 128-bit counter, low word first; in a state of two words, the
    /// counter's high word is the key again.
    Philox,
}

/// The destination of random bits.
#[derive(Clone, Copy)]
struct Output {
    start: SyncPtr,
    len: usize,
    size: usize,
    signed: bool,
    /// Bits of a byte that the type does not use.
    spare: u32,
}

impl Output {
    fn new(out: &mut Dst<'_>) -> Self {
        let dtype = out.dtype();
        Self {
            start: SyncPtr::new(out),
            len: out.len(),
            size: dtype.size(),
            signed: dtype.compute().is_signed_integer(),
            spare: 8usize.saturating_sub(dtype.bits()) as u32,
        }
    }

    /// Writes the low bits to an element.
    ///
    /// # Safety
    /// No other thread may access the element, and the array must still exist.
    #[inline(always)]
    unsafe fn write(&self, element: usize, bits: u64) {
        debug_assert!(element < self.len);
        // SAFETY: the callers below count elements by the array's shape; the rest is guaranteed by the
        // caller.
        unsafe {
            let target = self.start.get().add(element * self.size);
            match self.size {
                1 if self.signed => target.write(((bits as i8) << self.spare >> self.spare) as u8),
                1 => target.write((bits as u8) << self.spare >> self.spare),
                2 => target.cast::<u16>().write(bits as u16),
                4 => target.cast::<u32>().write(bits as u32),
                _ => target.cast::<u64>().write(bits),
            }
        }
    }
}

/// Fills `out` with random bits and returns the state for the next call: `state[0]` is the key and does not change.
///
/// An element of 32 bits consists of one word of the generator, an element of 64 bits of two, and a narrower
/// one of the low bits of one.
///
/// # Panics
/// Panics if the state does not have 2 words (3 are permitted for Philox), or if the type is `Pred` or
/// complex.
pub fn rng_bit_generator(pool: &Pool, algorithm: RngAlgorithm, state: &[u64], mut out: Dst<'_>) -> Vec<u64> {
    let dtype = out.dtype();
    assert!(
        !dtype.is_complex() && dtype != DType::Pred,
        "rng_bit_generator: output of type {dtype:?} is not supported"
    );
    let dims = out.dims();
    let output = Output::new(&mut out);
    match algorithm {
        RngAlgorithm::ThreeFry => {
            assert_eq!(state.len(), 2, "rng_bit_generator: words of state for ThreeFry");
            let used = three_fry(pool, [state[0] as u32, (state[0] >> 32) as u32], state[1], output, dims);
            vec![state[0], state[1].wrapping_add(used as u64)]
        }
        RngAlgorithm::Philox => {
            let words = state.len();
            assert!(matches!(words, 2 | 3), "rng_bit_generator: {words} words of state for Philox");
            let high = if words == 3 { state[2] } else { state[0] };
            let start = u128::from(state[1]) | u128::from(high) << 64;
            let used = philox(pool, state[0], start, output);
            let end = start.wrapping_add(used as u128);
            [state[0], end as u64, (end >> 64) as u64][..words].to_vec()
        }
    }
}

/// Fills the array, and returns the number of counters that were used.
fn three_fry(pool: &Pool, key: [u32; 2], start: u64, output: Output, dims: &[usize]) -> usize {
    let n = output.len;
    if output.size == 8 {
        pool.run(n.div_ceil(CHUNK), &|chunk| {
            counters(key, start, chunk * CHUNK..n.min((chunk + 1) * CHUNK), &mut |at, a, b| {
                for (i, (a, b)) in a.iter().zip(b).enumerate() {
                    // SAFETY: counters are elements here, and chunks have different ones.
                    unsafe { output.write(at + i, u64::from(*a) | u64::from(*b) << 32) };
                }
            });
        });
        return n;
    }
    // Both words of a counter are written to neighbors along one dimension: the first one of even size, or
    // otherwise the largest.
    let even = (0..dims.len()).find(|d| dims[*d].is_multiple_of(2));
    let split = even.or_else(|| (0..dims.len()).rev().max_by_key(|d| dims[*d]));
    let (along, inner) = split.map_or((1, 1), |d| (dims[d], dims[d + 1..].iter().product()));
    let half = along.div_ceil(2);
    let used = if n == 0 { 0 } else { n / along * half };
    pool.run(used.div_ceil(CHUNK), &|chunk| {
        counters(key, start, chunk * CHUNK..used.min((chunk + 1) * CHUNK), &mut |at, a, b| {
            // The element, its pair along the dimension, and its place inside, kept up by counting.
            let (mut middle, mut low) = (at / inner % half, at % inner);
            let mut element = (at / inner / half * along + 2 * middle) * inner + low;
            for (a, b) in a.iter().zip(b) {
                // SAFETY: different counters have different pairs of elements, and chunks different counters.
                unsafe {
                    output.write(element, (*a).into());
                    if 2 * middle + 1 < along {
                        output.write(element + inner, (*b).into());
                    }
                }
                (element, low) = (element + 1, low + 1);
                if low == inner {
                    (element, low, middle) = (element + inner, 0, middle + 1);
                    if middle == half {
                        (element, middle) = (element - along % 2 * inner, 0);
                    }
                }
            }
        });
    });
    used
}

/// Fills the array, and returns the number of counters that were used.
fn philox(pool: &Pool, key: u64, start: u128, output: Output) -> usize {
    let per_counter = if output.size == 8 { 2 } else { 4 };
    let used = output.len.div_ceil(per_counter);
    pool.run(used.div_ceil(CHUNK), &|chunk| {
        let mut words = [0u32; WORDS];
        let last = used.min((chunk + 1) * CHUNK);
        for counter in (chunk * CHUNK..last).step_by(WORDS / 4) {
            let count = (WORDS / 4).min(last - counter);
            philox_blocks(key, start.wrapping_add(counter as u128), &mut words[..4 * count]);
            let first = counter * per_counter;
            let elements = (count * per_counter).min(output.len - first);
            // SAFETY: elements `first..first + elements` belong to this chunk's counters.
            unsafe {
                match output.size {
                    8 => {
                        for (i, pair) in words.chunks_exact(2).take(elements).enumerate() {
                            output.write(first + i, u64::from(pair[0]) | u64::from(pair[1]) << 32);
                        }
                    }
                    4 => output.start.get().cast::<u32>().add(first).copy_from(words.as_ptr(), elements),
                    _ => {
                        for (i, word) in words[..elements].iter().enumerate() {
                            output.write(first + i, (*word).into());
                        }
                    }
                }
            }
        }
    });
    used
}
