//! Communication between the devices of a run.

use super::Shape;
use super::body::{Body, Reducer};
use super::check::{Check, counts, need, same, same_type};
use super::operation::{Device, Execution, Operation};
use refcpu_kernels::{DType, Dst, Src};

/// What a collective operation does with its operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectiveKind {
    /// Everyone gets the reduction over the group.
    AllReduce(Reducer),
    /// Everyone gets all arrays of the group, joined along a dimension.
    AllGather {
        /// The dimension.
        dim: usize,
    },
    /// Everyone cuts its array along one dimension, sends the parts around, and joins what it gets along another.
    AllToAll {
        /// The dimension that is cut.
        split: usize,
        /// The dimension along which parts are joined.
        concat: usize,
        /// Number of parts.
        count: usize,
    },
    /// Everyone gets its part, along a dimension, of the reduction over the group.
    ReduceScatter {
        /// How arrays combine.
        reducer: Reducer,
        /// The dimension.
        dim: usize,
    },
    /// Everyone in `pairs` sends to the process paired with it; who gets nothing gets zeros.
    Permute {
        /// Sources and targets.
        pairs: Vec<(usize, usize)>,
    },
    /// Everyone gets the array of the first of the group; who is in no group gets zeros.
    Broadcast,
}

/// Which processes act together, in StableHLO's terms.
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
    /// What is done.
    pub kind: CollectiveKind,
    /// By whom together.
    pub groups: Groups,
}

impl Collective {
    /// How arrays combine, for a reduction.
    pub fn reducer(&self) -> Option<&Reducer> {
        match &self.kind {
            CollectiveKind::AllReduce(reducer) | CollectiveKind::ReduceScatter { reducer, .. } => {
                Some(reducer)
            }
            _ => None,
        }
    }
}

/// Operands of all devices of a run meet.
impl Operation for Collective {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        let rank = x[0].rank();
        need(y[0].rank() == rank, "ranks differ")?;
        match &self.kind {
            CollectiveKind::AllReduce(_) | CollectiveKind::Permute { .. } | CollectiveKind::Broadcast => {
                same(x[0], y[0])?;
            }
            CollectiveKind::ReduceScatter { dim, .. } | CollectiveKind::AllGather { dim } => {
                need(*dim < rank, "no such dimension")?;
            }
            CollectiveKind::AllToAll { split, concat, count } => {
                need(*split < rank && *concat < rank && *count > 0, "no such dimension")?;
                need(x[0].dims[*split].is_multiple_of(*count), "parts of different sizes")?;
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

/// Number of this device's partition.
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

/// Number of this device's replica.
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
