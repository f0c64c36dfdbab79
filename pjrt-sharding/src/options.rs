//! How a program is to be partitioned.

use crate::call_partitioner::CallPartitioner;
use crate::rule::CallRule;
use std::fmt;
use std::sync::Arc;

/// Finds the function that says how the custom calls of a target run on parts.
pub type FindPartitioner = fn(&str) -> Option<Arc<dyn CallPartitioner>>;

/// How a program is to be partitioned: from PJRT's compile options, and from the compiler that partitions.
#[derive(Clone)]
pub struct Options {
    /// Copies of the program, each with its own data.
    pub num_replicas: usize,
    /// Parts that each copy is split into.
    pub num_partitions: usize,
    /// True if the program is written for whole arrays with shardings; false if each partition runs it on arrays of its own
    /// (`use_spmd_partitioning`).
    pub use_spmd_partitioning: bool,
    /// Whether a parameter whose sharding the program does not say may be split, for each one; a single entry stands for
    /// all, and without any none may (`allow_spmd_sharding_propagation_to_parameters`).
    pub propagate_to_parameters: Vec<bool>,
    /// The same for results (`allow_spmd_sharding_propagation_to_output`).
    pub propagate_to_results: Vec<bool>,
    /// The rules of the custom calls that the compiler knows. Those that the program has a rule for (`sdy.sharding_rule`), or a
    /// number of batch dimensions, need none.
    pub call_rule: CallRule,
    /// The host's partitioners of custom calls.
    pub find_partitioner: FindPartitioner,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            num_replicas: 1,
            num_partitions: 1,
            use_spmd_partitioning: true,
            propagate_to_parameters: vec![],
            propagate_to_results: vec![],
            call_rule: |_, _, _| None,
            find_partitioner: |_| None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("num_replicas", &self.num_replicas)
            .field("num_partitions", &self.num_partitions)
            .field("use_spmd_partitioning", &self.use_spmd_partitioning)
            .field("propagate_to_parameters", &self.propagate_to_parameters)
            .field("propagate_to_results", &self.propagate_to_results)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// Partitions that share one array: all of them in a program for whole arrays, else one.
    pub(crate) fn shared_by(&self) -> usize {
        if self.use_spmd_partitioning { self.num_partitions } else { 1 }
    }
}
