//! Kernels with computed positions: dynamic slices, gather and scatter.

mod dynamic_slice;
mod gather;
mod indices;
mod runs;
mod scatter;

pub use dynamic_slice::{clamp_starts, dynamic_slice, dynamic_update_slice};
pub use gather::{GatherSpec, gather};
pub use scatter::{Combiner, ScatterSpec, scatter, scatter_supports, scatter_with};

#[cfg(test)]
mod tests;
