//! Dense arrays in host memory: their elements as numbers and as text, random numbers, and NumPy's file format.

pub mod float_format;
pub mod npy;
pub(crate) mod number;
pub(crate) mod random;
pub(crate) mod strided;
mod text;

pub(crate) use text::{array_text, element_text};

pub use pjrt_testing::Array;

/// Converts an element's number in row-major order to its indices.
pub(crate) fn position(mut index: usize, dims: &[i64]) -> Vec<usize> {
    let mut position = vec![0; dims.len()];
    for (place, dim) in position.iter_mut().zip(dims).rev() {
        let dim = usize::try_from(*dim).unwrap_or(1).max(1);
        *place = index % dim;
        index /= dim;
    }
    position
}
