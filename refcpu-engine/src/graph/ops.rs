//! The operations of graphs, by family: attributes, types, costs and kernels.
//!
//! Unless said otherwise there is one result, operands are in StableHLO's order, and the meaning is that of the StableHLO
//! operation of the same name. Result types are stored with the results.

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
