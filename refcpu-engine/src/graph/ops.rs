//! The operations of a graph, by family: attributes, types, costs and kernels.
//!
//! Unless documented otherwise, an operation has one result, its operands are in StableHLO's order, and it computes the same as
//! the StableHLO operation of the same name. The types of the results are stored with the results.

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
