//! The operations of graphs, by family: attributes, types, costs and kernels.
//!
//! Unless said otherwise there is one result, operands are in StableHLO's order, and the meaning is that of the StableHLO
//! operation of the same name. Result types are stored with the results.

pub use super::bitcast::*;
pub use super::collective::*;
pub use super::control::*;
pub use super::elementwise::*;
pub use super::host::*;
pub use super::indexing::*;
pub use super::linalg::*;
pub use super::movement::*;
pub use super::random::*;
pub use super::reduction::*;
pub use super::sort::*;
