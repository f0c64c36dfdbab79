//! Collectives: communication between the devices of a run.

use super::Shape;
use super::body::{Body, Reducer};
use super::check::{Check, counts, need, same, same_type};
use super::operation::{Device, Execution, Operation};
use refcpu_kernels::{DType, Dst, Src};

/// The kind of a collective.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// Each member receives the reduction over the group.
    AllReduce(Reducer),
    /// Each member receives the arrays of the whole group, concatenated along a dimension.
    AllGather {
        /// The dimension.
        dim: usize,
    },
    /// Each member splits its array along one dimension, sends one part to each member, and concatenates the parts that it
    /// receives along another dimension.
    AllToAll {
        /// The dimension that is split.
        split: usize,
        /// The dimension along which parts are concatenated.
        concat: usize,
        /// The number of parts.
        count: usize,
    },
    /// Each member receives its part, along a dimension, of the reduction over the group.
    ReduceScatter {
        /// The function that combines arrays.
        reducer: Reducer,
        /// The dimension.
        dim: usize,
    },
    /// Each source sends its array to its target. A process that is no target receives zeros.
    Permute {
        /// The pairs of source and target.
        pairs: Vec<(usize, usize)>,
    },
    /// Each member receives the array of the first member of the group. A process in no group receives zeros.
    Broadcast,
}

impl CollectiveKind {
    /// Returns the name of the operation.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AllReduce(_) => "all_reduce",
            Self::AllGather { .. } => "all_gather",
            Self::AllToAll { .. } => "all_to_all",
            Self::ReduceScatter { .. } => "reduce_scatter",
            Self::Permute { .. } => "collective_permute",
            Self::Broadcast => "collective_broadcast",
        }
    }

    /// Returns the parameters of the operation, for messages about operations that differ in them.
    pub fn parameters(&self) -> String {
        let name = |reducer: &Reducer| match reducer {
            Reducer::Op(op) => format!("{op:?}").to_lowercase(),
            Reducer::Body(_) => "a function".to_owned(),
        };
        match self {
            Self::AllReduce(reducer) => name(reducer),
            Self::AllGather { dim } => format!("dimension {dim}"),
            Self::AllToAll { split, concat, .. } => format!("dimensions {split} and {concat}"),
            Self::ReduceScatter { reducer, dim } => format!("{} along dimension {dim}", name(reducer)),
            Self::Permute { pairs } => format!("pairs {pairs:?}"),
            Self::Broadcast => String::new(),
        }
    }
}

/// The groups of processes that execute a collective together, in StableHLO's terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Groups {
    /// Groups of replicas, within each partition.
    CrossReplica(Vec<Vec<usize>>),
    /// Groups of partitions, within each replica.
    CrossPartition(Vec<Vec<usize>>),
    /// Groups of replicas, across all partitions.
    CrossReplicaAndPartition(Vec<Vec<usize>>),
    /// Groups of processes, numbered replica-major.
    Flattened(Vec<Vec<usize>>),
}

/// A collective operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Collective {
    /// The kind of the collective.
    pub kind: CollectiveKind,
    /// The groups that execute it.
    pub groups: Groups,
    /// The channel, which is equal in all programs that execute the collective together; zero if it has none.
    pub channel: i64,
}

impl Collective {
    /// Returns the function that combines arrays; `None` if the collective is not a reduction.
    pub fn reducer(&self) -> Option<&Reducer> {
        match &self.kind {
            CollectiveKind::AllReduce(reducer) | CollectiveKind::ReduceScatter { reducer, .. } => {
                Some(reducer)
            }
            _ => None,
        }
    }
}

/// Runs when all devices of a group have reached it.
impl Operation for Collective {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        let rank = x[0].rank();
        need(y[0].rank() == rank, "the operand and the result differ in rank")?;
        match &self.kind {
            CollectiveKind::AllReduce(_) | CollectiveKind::Permute { .. } | CollectiveKind::Broadcast => {
                same(x[0], y[0])?;
            }
            CollectiveKind::ReduceScatter { dim, .. } | CollectiveKind::AllGather { dim } => {
                need(*dim < rank, "the dimension is not less than the rank")?;
            }
            CollectiveKind::AllToAll { split, concat, count } => {
                need(
                    *split < rank && *concat < rank && *count > 0,
                    "a dimension is not less than the rank, or the number of parts is zero",
                )?;
                need(
                    x[0].dims[*split].is_multiple_of(*count),
                    "the split dimension is not divisible by the number of parts",
                )?;
            }
        }
        self.reducer().map_or(Ok(()), |r| r.verify(y))
    }

    fn bodies(&self) -> Vec<&Body> {
        self.reducer().and_then(Reducer::body).into_iter().collect()
    }

    fn is_pure(&self) -> bool {
        false
    }

    fn has_effect(&self) -> bool {
        true
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// Returns the partition number of the device.
#[derive(Debug)]
pub struct PartitionId;

impl Operation for PartitionId {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 0, 1)?;
        same(y[0], &Shape::scalar(DType::U32))
    }

    fn run(&self, device: &Device<'_>, _r: &[Src<'_>], w: &mut [Dst<'_>]) {
        w[0].bytes_mut().copy_from_slice(&(device.partition as u32).to_le_bytes());
    }
}

/// Returns the replica number of the device.
#[derive(Debug)]
pub struct ReplicaId;

impl Operation for ReplicaId {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        PartitionId.verify(x, y)
    }

    fn run(&self, device: &Device<'_>, _r: &[Src<'_>], w: &mut [Dst<'_>]) {
        w[0].bytes_mut().copy_from_slice(&(device.replica as u32).to_le_bytes());
    }
}
