//! Communication between the devices of a run.

use super::Reducer;

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
