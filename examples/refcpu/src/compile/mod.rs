//! From a StableHLO module to a plan.

mod assign;
mod control;
mod emit;
mod error;
mod fuse;
mod lower;
mod options;
mod region;
mod units;

pub use error::{CompileError, CompileErrorKind};
pub use options::CompileOptions;
pub(crate) use units::padded_dims;

use crate::graph::Graph;
use crate::plan::{Donation, Parameter, Plan, ResultInfo};
use error::Result;
use pjrt_stablehlo::Module;
use std::sync::Arc;

/// Compiles a program.
///
/// # Errors
/// If the program is wrong, or needs something that refcpu does not have.
pub fn compile(module: &Module, options: &CompileOptions) -> Result<Plan> {
    let graph = lower::lower(module, options)?;
    let main = module.main().ok_or_else(|| CompileError::invalid("the module has no function named main"))?;
    let donations: Vec<Donation> = graph.parameters().iter().map(|_| Donation::None).collect();
    let _ = main;
    plan_of(graph, donations, options)
}

fn plan_of(graph: Graph, donations: Vec<Donation>, options: &CompileOptions) -> Result<Plan> {
    let program = emit::emit(&graph, &donations)?;
    let parameters = graph
        .parameters()
        .iter()
        .zip(donations)
        .map(|(p, donation)| Parameter { shape: graph.shape(*p).clone(), donation, sharding: None })
        .collect();
    let results = graph
        .results()
        .iter()
        .map(|r| ResultInfo { shape: graph.shape(*r).clone(), sharding: None })
        .collect();
    Ok(Plan {
        program,
        parameters,
        results,
        num_replicas: options.num_replicas,
        num_partitions: options.num_partitions,
        global_view: options.use_spmd_partitioning,
        graph: Arc::new(graph),
    })
}
