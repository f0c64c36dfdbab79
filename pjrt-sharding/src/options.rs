//! Options of propagation and partitioning.

use crate::call_partitioner::CallPartitioner;
use crate::rule::CallRule;
use std::fmt;
use std::sync::Arc;

/// A function that returns the partitioner of custom calls with this target; `None` if the host has registered none.
/// [`CallPartitioner`] has an example.
pub type FindPartitioner = fn(&str) -> Option<Arc<dyn CallPartitioner>>;

/// Options of [`propagate`](crate::propagate()), [`partition`](crate::partition()) and
/// [`partition_calls`](crate::partition_calls). Most are fields of PJRT's compile options.
///
/// ```
/// use pjrt_sharding::Options;
///
/// // Two partitions. Propagation may split all results, but only the first of three parameters.
/// let options = Options {
///     num_partitions: 2,
///     propagate_to_parameters: vec![true, false, false],
///     propagate_to_results: vec![true],
///     ..Options::default()
/// };
/// assert_eq!(options.num_replicas, 1);
/// ```
#[derive(Clone)]
pub struct Options {
    /// The number of replicas: copies of the program that run on different data.
    pub num_replicas: usize,
    /// The number of partitions that each replica is split into.
    pub num_partitions: usize,
    /// `true` if the program is written for whole arrays with shardings; `false` if each partition runs the program on
    /// its own arrays (`use_spmd_partitioning`).
    pub use_spmd_partitioning: bool,
    /// For each parameter, `true` if propagation may split it where the program does not state its sharding
    /// (`allow_spmd_sharding_propagation_to_parameters`). A single entry applies to all parameters; an empty list allows
    /// none.
    pub propagate_to_parameters: Vec<bool>,
    /// For each result, `true` if propagation may split it where the program does not state its sharding
    /// (`allow_spmd_sharding_propagation_to_output`). A single entry applies to all results; an empty list allows none.
    pub propagate_to_results: Vec<bool>,
    /// The sharding rules of the custom calls that the compiler implements. Calls with a rule in the program
    /// (`sdy.sharding_rule`) or with a number of batch dimensions need none for propagation.
    pub call_rule: CallRule,
    /// The function that returns the host's partitioners of custom calls.
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
    /// Returns the number of partitions that share one array: all of them in a program for whole arrays, otherwise one.
    pub(crate) fn shared_by(&self) -> usize {
        if self.use_spmd_partitioning { self.num_partitions } else { 1 }
    }
}
