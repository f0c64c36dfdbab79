//! The options of the compiler.

use crate::dump::Dump;
use pjrt_sharding::FindPartitioner;
use std::sync::Arc;

/// The choice of whether a program for whole arrays on several partitions runs in parts, one on each partition, or once on
/// whole arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// All programs run on whole arrays.
    Never,
    /// A program runs in parts if partitions hold different data: partial results as parameters or results, or values in manual
    /// computations. Results that the program declares as replicated may then differ between partitions. A program that calls the
    /// host runs on whole arrays, so that a call that all partitions share happens once.
    WhereNeeded,
    /// All programs run in parts. Each partition calls the host, except where the program states one partition for a call.
    Always,
}

/// The options of the compiler. Most are fields of PJRT's compile options.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// The number of replicas: copies of the program that run on different data.
    pub num_replicas: usize,
    /// The number of partitions that each replica is split into.
    pub num_partitions: usize,
    /// `true` if the program is written for whole arrays with shardings (`use_spmd_partitioning`); `false` if each partition
    /// runs the program on its own arrays.
    pub use_spmd_partitioning: bool,
    /// Enables fusion. Without fusion every operation has its own array, which shows whether fusion causes a difference.
    pub fuse: bool,
    /// For each parameter, `true` if propagation may split it where the program does not state its sharding. A single entry
    /// applies to all parameters; an empty list allows none.
    pub propagate_to_parameters: Vec<bool>,
    /// For each result, `true` if propagation may split it where the program does not state its sharding. A single entry
    /// applies to all results; an empty list allows none.
    pub propagate_to_results: Vec<bool>,
    /// The function that returns whether a handler for custom calls of this name is registered
    /// ([`ForeignHandlers`](crate::exec::ForeignHandlers)). A handler takes precedence over the implementation of refcpu.
    pub has_handler: fn(&str) -> bool,
    /// The function that returns the host's partitioner of custom calls with this target.
    pub find_partitioner: FindPartitioner,
    /// The programs for whole arrays that run in parts.
    pub parts: Parts,
    /// The dump that receives the output of each pass.
    pub dump: Option<Arc<Dump>>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            num_replicas: 1,
            num_partitions: 1,
            use_spmd_partitioning: false,
            fuse: true,
            propagate_to_parameters: Vec::new(),
            propagate_to_results: Vec::new(),
            has_handler: |_| false,
            find_partitioner: |_| None,
            parts: Parts::WhereNeeded,
            dump: None,
        }
    }
}
