//! From a StableHLO module to a plan.

mod call_partitioner;
mod core_ops;
mod emit;
mod error;
mod hlo_sharding;
mod lower;
mod optimise;
mod options;
mod partition;
mod propagate;
mod sharding;
mod sharding_rule;

pub use call_partitioner::{CallPartitioner, PartitionedCall, WholeCall};
pub use core_ops::to_core_ops;
pub use error::{CompileError, CompileErrorKind};
pub use options::CompileOptions;
pub use partition::{HloText, partition_calls, partitioned};

use crate::graph::Graph;
use crate::plan::{Donation, Interface, Parameter, Plan, ResultInfo};
use crate::trace::pass;
use error::Result;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, Function};
use sharding::OfMain;
use std::fmt::Display;
use std::sync::Arc;

/// Compiles a program.
///
/// # Errors
/// If the program is wrong, or needs something that refcpu does not have.
pub fn compile(module: &Module, options: &CompileOptions) -> Result<Plan> {
    let dump = |pass: &str, program: &dyn Display| {
        if let Some(dump) = &options.dump {
            dump.pass(pass, program);
        }
    };
    dump("program.mlir", module);
    let module = &*pass("core_ops", || to_core_ops(module))?;
    dump("core_ops.mlir", module);
    let (graph, mut shardings) = pass("lower", || lower::lower(module, options))?;
    dump("lower.graph", &graph);
    let graph = pass("recognise", || optimise::recognise(&graph));
    dump("recognise.graph", &graph);
    let graph = pass("expand", || optimise::expand(graph))?;
    dump("expand.graph", &graph);
    let inspected = std::mem::take(&mut shardings.inspected);
    let interface = Interface::of(module, &graph, shardings)?;
    debug_assert_eq!(crate::graph::verify(&graph), Ok(()));
    let mut plan = pass("plan", || plan_from_graph(graph, interface, options.fuse))?;
    plan.num_replicas = options.num_replicas;
    plan.num_partitions = options.num_partitions;
    plan.global_view = options.use_spmd_partitioning;
    plan.inspected = inspected;
    dump("program.plan", &plan.program);
    Ok(plan)
}

impl Interface {
    /// What the attributes of `main` say.
    fn of(module: &Module, graph: &Graph, shardings: OfMain) -> Result<Self> {
        let main =
            module.main().ok_or_else(|| CompileError::invalid("the module has no function named main"))?;
        let count = graph.parameters().len();
        // Attributes are by argument; where tuples were flattened they say nothing about the parts.
        let donations = if main.argument_types().len() == count {
            (0..count).map(|i| donation(main, i)).collect()
        } else {
            vec![Donation::None; count]
        };
        Ok(Self { donations, parameters: shardings.parameters, results: shardings.results })
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
        inspected: vec![],
        graph: Arc::new(graph),
    })
}
