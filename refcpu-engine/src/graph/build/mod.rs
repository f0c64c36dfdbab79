//! Making graphs: [`Builder`] simplifies, folds and merges equal nodes, node by node.

mod builder;
mod fold;
mod simplify;

pub use builder::Builder;
pub use fold::iota;
