//! Random number generators.

use crate::graph::Shape;
use crate::graph::operation::{Check, Device, Operation, counts, need, same};
use refcpu_kernels::rng::{RngAlgorithm, rng_bit_generator, rng_normal, rng_uniform};
use refcpu_kernels::{DType, Dst, Src};

/// The operand is the initial state; the results are the next state and the random bits.
impl Operation for RngAlgorithm {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 2)?;
        same(x[0], y[0])?;
        need(
            x[0].dtype == DType::U64 && (2..=3).contains(&x[0].len()) && x[0].rank() == 1,
            "the state is not a vector of 2 or 3 words of type ui64",
        )
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let word = |c: &[u8]| {
            let mut word = [0u8; 8];
            word[..c.len()].copy_from_slice(c);
            u64::from_le_bytes(word)
        };
        let words: Vec<u64> = r[0].bytes().chunks(8).map(word).collect();
        let next = rng_bit_generator(device.pool, *self, &words, w[1].reborrow());
        let bytes: Vec<u8> = next.iter().flat_map(|word| word.to_le_bytes()).collect();
        let out = w[0].bytes_mut();
        out.copy_from_slice(&bytes[..out.len()]);
    }
}

/// Uniformly distributed values. The operands are the lower and the upper bound. No two nodes return the same values.
#[derive(Debug)]
pub struct RngUniform;

impl Operation for RngUniform {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        x.iter().try_for_each(|s| same(s, &Shape::scalar(y[0].dtype)))
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        rng_uniform(device.pool, device.seed(), r[0], r[1], w[0].reborrow());
    }
}

/// Normally distributed values. The operands are the mean and the standard deviation. No two nodes return the same values.
#[derive(Debug)]
pub struct RngNormal;

impl Operation for RngNormal {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        RngUniform.verify(x, y)
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        rng_normal(device.pool, device.seed(), r[0], r[1], w[0].reborrow());
    }
}
