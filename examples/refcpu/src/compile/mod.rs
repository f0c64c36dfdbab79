//! From a StableHLO module to a plan.

mod assign;
mod control;
mod core_ops;
mod dump;
mod emit;
mod error;
mod fuse;
mod lower;
mod options;
mod recognise;
mod region;
mod sharding;
mod small_loop;
mod units;

pub use error::{CompileError, CompileErrorKind};
pub use options::CompileOptions;
pub(crate) use units::padded_dims;

use crate::graph::Graph;
use crate::plan::{Donation, Interface, Parameter, Plan, ResultInfo};
use dump::Dump;
use error::Result;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, Function};
use sharding::sharding_of;
use std::sync::Arc;

/// Compiles a program.
///
/// # Errors
/// If the program is wrong, or needs something that refcpu does not have.
pub fn compile(module: &Module, options: &CompileOptions) -> Result<Plan> {
    let module = &*core_ops::to_core_ops(module)?;
    let mut dump = Dump::new(module);
    let graph = lower::lower(module, options)?;
    if let Some(dump) = &mut dump {
        dump.graph("lower", &graph);
    }
    let graph = recognise::recognise(&graph);
    if let Some(dump) = &mut dump {
        dump.graph("recognise", &graph);
    }
    let interface = Interface::of(module, &graph, options)?;
    debug_assert_eq!(crate::graph::verify(&graph), Ok(()));
    let mut plan = plan_from_graph(graph, interface, options.fuse)?;
    plan.num_replicas = options.num_replicas;
    plan.num_partitions = options.num_partitions;
    plan.global_view = options.use_spmd_partitioning;
    if let Some(dump) = &mut dump {
        dump.plan(&plan.program);
    }
    Ok(plan)
}

impl Interface {
    /// What the attributes of `main` say.
    fn of(module: &Module, graph: &Graph, options: &CompileOptions) -> Result<Self> {
        let main =
            module.main().ok_or_else(|| CompileError::invalid("the module has no function named main"))?;
        let (parameters, results) = (graph.parameters(), graph.results());
        let mut interface = Self {
            donations: vec![Donation::None; parameters.len()],
            parameters: vec![None; parameters.len()],
            results: vec![None; results.len()],
        };
        // Attributes are by argument; where tuples were flattened they say nothing about the parts.
        let partitions = if options.use_spmd_partitioning { options.num_partitions } else { 1 };
        if main.argument_types().len() == parameters.len() {
            for (i, p) in parameters.iter().enumerate() {
                interface.donations[i] = donation(main, i);
                let dims = &graph.shape(*p).dims;
                interface.parameters[i] =
                    sharding_of(module, |name| main.argument_attribute(i, name), dims, partitions)?;
            }
        }
        if main.result_types().len() == results.len() {
            for (k, r) in results.iter().enumerate() {
                let dims = &graph.shape(*r).dims;
                interface.results[k] =
                    sharding_of(module, |name| main.result_attribute(k, name), dims, partitions)?;
            }
        }
        Ok(interface)
    }
}

/// What an argument's attributes allow to do with its memory.
fn donation(main: &Function, argument: usize) -> Donation {
    let result = main.argument_attribute(argument, "tf.aliasing_output").and_then(Attribute::as_i64);
    let donor = main.argument_attribute(argument, "jax.buffer_donor").and_then(Attribute::as_bool);
    match (result.and_then(|k| usize::try_from(k).ok()), donor) {
        (Some(k), _) => Donation::Result(k),
        (None, Some(true)) => Donation::Any,
        (None, _) => Donation::None,
    }
}

/// The plan of a checked graph, for one replica and partition, with or without fused operations.
///
/// # Errors
/// If kernels lack something that the graph needs.
pub(crate) fn plan_from_graph(graph: Graph, interface: Interface, fuse: bool) -> Result<Plan> {
    let program = emit::emit(&graph, &interface.donations, fuse)?;
    let parameters = graph
        .parameters()
        .iter()
        .zip(interface.donations.into_iter().zip(interface.parameters))
        .map(|(p, (donation, sharding))| Parameter { shape: graph.shape(*p).clone(), donation, sharding })
        .collect();
    let results = graph.results().iter().zip(interface.results);
    let results =
        results.map(|(r, sharding)| ResultInfo { shape: graph.shape(*r).clone(), sharding }).collect();
    Ok(Plan {
        program,
        parameters,
        results,
        num_replicas: 1,
        num_partitions: 1,
        global_view: false,
        graph: Arc::new(graph),
    })
}
