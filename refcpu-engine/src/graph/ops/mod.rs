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

pub use bitcast::Bitcast;
pub use collective::{Collective, CollectiveKind, Groups, PartitionId, ReplicaId};
pub use control::{Barrier, Case, Manual, ManualSpec, While};
pub use elementwise::{Clamp, Compare, Convert, ReducePrecision, Select};
pub use host::{ForeignAttribute, ForeignCall, HostReceive, HostSend};
pub use indexing::{DynamicSlice, DynamicUpdateSlice, GatherDims, Scatter, ScatterDims};
pub use linalg::{Cholesky, Fft, QrFactor, QrProduct};
pub use movement::{Broadcast, Concatenate, Iota, Pad, Reshape, Reverse, Slice, Transpose};
pub use random::{RngNormal, RngUniform};
pub(crate) use reduction::tile_op;
pub use reduction::{ArgReduce, Reduce, ReduceWindow, SelectAndScatter};
pub use sort::{Sort, SortBy, TopK};
