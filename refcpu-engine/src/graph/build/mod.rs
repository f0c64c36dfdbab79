//! Builds graphs. [`Builder`] simplifies each node, folds constants, and merges equal nodes.

mod builder;
mod fold;
mod simplify;

pub use builder::Builder;
pub use fold::iota;
