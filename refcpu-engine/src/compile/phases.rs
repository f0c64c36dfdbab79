//! Runs the phases of the compiler on a program that is already partitioned.

use super::api::{CompileError, CompileOptions, Result};
use super::core_ops::to_core_ops;
use super::lower::{Terms, Unreduced, lower};
use super::{emit, optimise};
use crate::graph::Graph;
use crate::plan::{Donation, Interface, Parameter, Plan, ResultInfo};
use crate::trace::pass;
use pjrt_sharding::Shardings;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, Function};
use std::fmt::Display;
use std::sync::Arc;

/// Compiles a module that runs as it is: on whole arrays, which are split outside the run, or on those of one partition.
pub(super) fn plan(module: &Module, options: &CompileOptions, shardings: &Shardings) -> Result<Plan> {
    let dump = |pass: &str, program: &dyn Display| {
        if let Some(dump) = &options.dump {
            dump.pass(pass, program);
        }
    };
    let module = &*pass("core_ops", || to_core_ops(module))?;
    dump("core_ops.mlir", module);
    let unreduced = Unreduced::of(shardings);
    let graph = pass("lower", || lower(module, options, &unreduced))?;
    dump("lower.graph", &graph);
    let graph = pass("recognise", || optimise::recognise(&graph));
    dump("recognise.graph", &graph);
    let graph = pass("expand", || optimise::expand(graph))?;
    dump("expand.graph", &graph);
    let interface = Interface::of(module, &graph, shardings)?;
    debug_assert_eq!(crate::graph::verify(&graph), Ok(()));
    let mut plan = pass("plan", || plan_from_graph(graph, interface, options.fuse))?;
    plan.num_replicas = options.num_replicas;
    plan.num_partitions = options.num_partitions;
    plan.global_view = options.use_spmd_partitioning;
    dump("program.plan", &plan.program);
    Ok(plan)
}

impl Interface {
    /// Returns the interface that the attributes of `main` and the shardings describe.
    fn of(module: &Module, graph: &Graph, shardings: &Shardings) -> Result<Self> {
        let main =
            module.main().ok_or_else(|| CompileError::invalid("the module has no function named main"))?;
        let (parameters, results) = (shardings.parameters.clone(), shardings.results.clone());
        Ok(Self { donations: donations(main, graph.parameters().len()), parameters, results })
    }
}

/// Returns the donation of each of `count` parameters from the attributes of `main`. Attributes belong to arguments. After
/// tuples are flattened, they cannot be assigned to arrays.
pub(super) fn donations(main: &Function, count: usize) -> Vec<Donation> {
    let are_arrays = main.argument_types().len() == count;
    (0..count).map(|i| if are_arrays { donation(main, i) } else { Donation::None }).collect()
}

impl Unreduced {
    fn of(shardings: &Shardings) -> Self {
        let terms = |sharding: &Option<pjrt_sharding::Sharding>| {
            let sharding = sharding.as_ref()?;
            Some(Terms { count: sharding.parts[0], reduction: sharding.reduction? })
        };
        Self {
            parameters: shardings.parameters.iter().map(terms).collect(),
            results: shardings.results.iter().map(terms).collect(),
        }
    }
}

/// Returns the donation that an argument's attributes allow.
fn donation(main: &Function, argument: usize) -> Donation {
    let result = main.argument_attribute(argument, "tf.aliasing_output").and_then(Attribute::as_i64);
    let donor = main.argument_attribute(argument, "jax.buffer_donor").and_then(Attribute::as_bool);
    match (result.and_then(|k| usize::try_from(k).ok()), donor) {
        (Some(k), _) => Donation::Result(k),
        (None, Some(true)) => Donation::Any,
        (None, _) => Donation::None,
    }
}

/// Compiles a checked graph to a plan for one replica and partition. `fuse` enables fusion.
///
/// # Errors
/// Returns an error if the graph contains an operation that no kernel supports.
fn plan_from_graph(graph: Graph, interface: Interface, fuse: bool) -> Result<Plan> {
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
