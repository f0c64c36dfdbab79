//! The operations of graphs, by family: attributes, types, costs and kernels.
//!
//! Unless documented otherwise, an operation has one result, its operands are in StableHLO's order, and it computes the same as
//! the StableHLO operation of the same name. The types of the results are stored with the results.

mod bitcast;
mod collective;
mod control;
mod elementwise;
mod host;
mod indexing;
mod linalg;
mod movement;
mod product;
mod random;
mod reduction;
mod sort;

pub use bitcast::*;
pub use collective::*;
pub use control::*;
pub use elementwise::*;
pub use host::*;
pub use indexing::*;
pub use linalg::*;
pub use movement::*;
pub use random::*;
pub use reduction::*;
pub use sort::*;
