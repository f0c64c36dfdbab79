//! Random bits and numbers.

mod bits;
mod distribution;
mod philox;
mod threefry;

pub use bits::{RngAlgorithm, rng_bit_generator};
pub use distribution::{rng_normal, rng_uniform};
pub use threefry::{threefry_random_bits, threefry2x32, threefry2x32_iota};

#[cfg(test)]
mod tests;
