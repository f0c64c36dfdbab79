//! How to compile.

use crate::dump::Dump;
use pjrt_sharding::FindPartitioner;
use std::sync::Arc;

/// Whether a program for whole arrays on several partitions runs in parts, each partition on its own, or once on whole arrays.
/// Programs that call the host run on whole arrays in any case: they call it once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// On whole arrays.
    Never,
    /// In parts where partitions have arrays of their own: addends of parameters or results, or what manual computations give
    /// them. Results that these call replicated may differ between partitions.
    WhereNeeded,
    /// In parts.
    Always,
}

/// What the caller says about the run: from PJRT's compile options.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// Copies of the program, each with its own data.
    pub num_replicas: usize,
    /// Parts that each copy is split into.
    pub num_partitions: usize,
    /// True if the program is written for whole arrays with shardings (`use_spmd_partitioning`); false if each partition
    /// runs it on arrays of its own.
    pub use_spmd_partitioning: bool,
    /// False to give each operation an array of its own: for finding out whether fusion is the cause of a difference.
    pub fuse: bool,
    /// Whether a parameter whose sharding the program does not say may be split, for each one; a single entry stands for
    /// all, and without any none may.
    pub propagate_to_parameters: Vec<bool>,
    /// The same for results.
    pub propagate_to_results: Vec<bool>,
    /// Whether there is a handler for custom calls of a name ([`ForeignHandlers`](crate::exec::ForeignHandlers)). It goes before
    /// what refcpu has by that name.
    pub has_handler: fn(&str) -> bool,
    /// The host's function that says how the custom calls of a target run on parts, if there is one.
    pub find_partitioner: FindPartitioner,
    /// Which programs for whole arrays run in parts.
    pub parts: Parts,
    /// Where to write what each pass made.
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
