//! The driver of the compiler: from the program of a host to a plan.

use super::api::{CompileError, CompileOptions, Parts, Result};
use super::call_rule::call_rule;
use super::core_ops::{to_core_ops, to_core_ops_without_calls};
use super::lower::{calls_the_host, shapes_of};
use super::phases::{donations, plan};
use crate::graph::Shape;
use crate::plan::{Donation, Plan, Stats};
use crate::trace::pass;
use pjrt_sharding::{
    Sharding, Shardings, has_manual_regions, has_partitioned_calls, partition, partition_calls, propagate,
    to_manual_computations,
};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, Function, Op, Type};
use std::borrow::Cow;

/// A compiled program, with the properties that hosts query.
pub struct Compiled {
    /// The name of the module.
    pub name: String,
    /// The plan that runs: that of the program of one partition if `in_parts`, otherwise that of the program itself.
    pub plan: Plan,
    /// `true` if a program for whole arrays was partitioned, so that every partition runs it on parts of the arrays.
    pub in_parts: bool,
    /// The parameters of the program.
    pub parameters: Vec<ArrayInfo>,
    /// The results of the program.
    pub results: Vec<ArrayInfo>,
    /// The shardings that the program inspects with custom calls `InspectSharding`, by the name in the configuration of the call.
    pub inspected: Vec<(String, Option<Sharding>)>,
    /// The program after [`partition_calls`](pjrt_sharding::partition_calls), if it contains calls that the host partitions.
    pub with_partitions_of_calls: Option<Module>,
}

/// A parameter or result of a program.
#[derive(Clone, Debug)]
pub struct ArrayInfo {
    /// The type. In a program for whole arrays, this is the type of the whole array.
    pub shape: Shape,
    /// The sharding; `None` if every partition holds the whole array.
    pub sharding: Option<Sharding>,
    /// The memory kind that the program states (`mhlo.memory_kind`), such as `pinned_host`.
    pub memory_kind: Option<String>,
    /// The donation of a parameter: whether a result may use its memory.
    pub donation: Donation,
}

impl Compiled {
    /// Returns whether each device runs the program separately, with its own arguments.
    pub fn runs_on_each_device(&self) -> bool {
        self.in_parts || !self.plan.global_view || self.plan.num_partitions == 1
    }
}

/// Compiles a program.
///
/// The custom calls that the host partitions are replaced, and shardings are propagated. If the program must run in parts,
/// it is rewritten as the program of one partition. Then the program that runs is lowered, optimized and converted to a
/// plan.
///
/// # Errors
/// Returns an error of the kind [`InvalidArgument`](crate::compile::CompileErrorKind::InvalidArgument) if the program is invalid,
/// [`Unimplemented`](crate::compile::CompileErrorKind::Unimplemented) if it uses a feature that refcpu does not implement, or
/// [`ResourceExhausted`](crate::compile::CompileErrorKind::ResourceExhausted) if there is not enough memory.
pub fn compile(module: &Module, options: &CompileOptions) -> Result<Compiled> {
    let dump = |pass: &str, program: &Module| {
        if let Some(dump) = &options.dump {
            dump.pass(pass, program);
        }
    };
    let with_partitions_of_calls = with_partitions_of_calls(module, options)?;
    if let Some(module) = &with_partitions_of_calls {
        dump("partition_calls.mlir", module);
    }
    let module = with_partitions_of_calls.as_ref().unwrap_or(module);
    dump("program.mlir", module);
    let (flat, mut shardings) = propagated(module, options)?;
    let main = flat.main().ok_or_else(|| CompileError::invalid("the module has no function named main"))?;
    let in_parts = runs_in_parts(&flat, options, &shardings);
    let plan = if in_parts {
        plan_of_partition(&flat, &shardings, options).map_err(|mut error| {
            error.message += " (in the partitioned program)";
            error
        })?
    } else {
        plan(&flat, options, &shardings)?
    };
    let inspected = std::mem::take(&mut shardings.inspected);
    let (parameters, results) = if in_parts {
        let shapes = |types: &[Type], shardings: &[Option<Sharding>]| {
            types.iter().zip(shardings).map(|(ty, sharding)| whole_shape(ty, sharding.as_ref())).collect()
        };
        let parameters: Result<Vec<Shape>> = shapes(main.argument_types(), &shardings.parameters);
        (parameters?, shapes(main.result_types(), &shardings.results)?)
    } else {
        let parameters = plan.parameters.iter().map(|parameter| parameter.shape.clone()).collect();
        (parameters, plan.results.iter().map(|result| result.shape.clone()).collect())
    };
    let donations = donations(main, parameters.len());
    let no_donations = vec![Donation::None; results.len()];
    let parameters = arrays(main, Function::argument_attribute, parameters, shardings.parameters, donations);
    let results = arrays(main, Function::result_attribute, results, shardings.results, no_donations);
    Ok(Compiled {
        name: module.name.as_ref().map_or("main", |name| name).to_owned(),
        plan,
        in_parts,
        parameters,
        results,
        inspected,
        with_partitions_of_calls,
    })
}

/// Rewrites a program into the operations that refcpu compiles, after the host has partitioned its custom calls.
///
/// # Errors
/// Returns an error if an operation cannot be expressed in these operations, or if the host cannot partition a call.
pub fn core_ops(module: &Module, options: &CompileOptions) -> Result<Module> {
    let partitioned = with_partitions_of_calls(module, options)?;
    to_core_ops(partitioned.as_ref().unwrap_or(module)).map(Cow::into_owned)
}

/// Returns the program of one partition, with the shardings of its parameters and results as attributes.
///
/// # Errors
/// Returns an error if the program cannot be compiled, or if `main` has tuples among its parameters or results.
pub fn partitioned(module: &Module, options: &CompileOptions) -> Result<Module> {
    let flat = flattened(module, options)?;
    let options = sharding_options(options);
    Ok(partition(&flat, &propagate(&flat, &options)?, &options)?)
}

/// Estimates the cost of the program of one partition.
///
/// # Errors
/// Returns an error if the program cannot be partitioned or compiled.
pub fn stats_of_partition(module: &Module, options: &CompileOptions) -> Result<Stats> {
    let options = CompileOptions { dump: None, ..options.clone() };
    let (flat, shardings) = propagated(module, &options)?;
    Ok(plan_of_partition(&flat, &shardings, &options)?.stats())
}

/// Returns the options of propagation and partitioning.
fn sharding_options(options: &CompileOptions) -> pjrt_sharding::Options {
    pjrt_sharding::Options {
        num_replicas: options.num_replicas,
        num_partitions: options.num_partitions,
        use_spmd_partitioning: options.use_spmd_partitioning,
        propagate_to_parameters: options.propagate_to_parameters.clone(),
        propagate_to_results: options.propagate_to_results.clone(),
        call_rule,
        find_partitioner: options.find_partitioner,
    }
}

/// Replaces the custom calls that the host partitions; `None` if there are no such calls.
fn with_partitions_of_calls(module: &Module, options: &CompileOptions) -> Result<Option<Module>> {
    if !has_partitioned_calls(module, options.find_partitioner) {
        return Ok(None);
    }
    let flat = flattened(module, options)?;
    Ok(Some(pass("partition_calls", || partition_calls(&flat, &sharding_options(options)))?))
}

/// Returns whether the program is for whole arrays on several partitions.
fn is_split(options: &CompileOptions) -> bool {
    options.use_spmd_partitioning && options.num_partitions > 1
}

/// Inlines calls. If arrays are split, replaces the manual regions of programs for XLA's GSPMD partitioner with manual
/// computations.
fn flattened<'m>(module: &'m Module, options: &CompileOptions) -> Result<Cow<'m, Module>> {
    let flat = to_core_ops_without_calls(module)?;
    if !is_split(options) || !has_manual_regions(&flat) {
        return Ok(flat);
    }
    let replace = || to_manual_computations(&flat, &sharding_options(options));
    Ok(Cow::Owned(pass("to_manual_computations", replace)?))
}

/// Propagates shardings. Inlines calls first if the program is for whole arrays on several partitions.
fn propagated<'m>(module: &'m Module, options: &CompileOptions) -> Result<(Cow<'m, Module>, Shardings)> {
    let module = if is_split(options) { flattened(module, options)? } else { Cow::Borrowed(module) };
    let shardings = pass("propagate", || propagate(&module, &sharding_options(options)))?;
    Ok((module, shardings))
}

fn runs_in_parts(module: &Module, options: &CompileOptions, shardings: &Shardings) -> bool {
    let is_unreduced = || {
        let mut all = shardings.parameters.iter().chain(&shardings.results).flatten();
        all.any(|sharding| sharding.reduction.is_some())
    };
    let is_manual = || {
        let mut all = module.functions().iter().flat_map(|function| function.body.all_ops());
        all.any(|(_, op)| matches!(op.kind, Op::ManualComputation(_)))
    };
    let wanted = match options.parts {
        Parts::Never => false,
        // On whole arrays, the host is called once for all partitions.
        Parts::WhereNeeded => (is_unreduced() || is_manual()) && !calls_the_host(module, options),
        Parts::Always => true,
    };
    wanted && is_split(options)
}

/// Partitions the program and compiles the program of one partition.
fn plan_of_partition(module: &Module, shardings: &Shardings, options: &CompileOptions) -> Result<Plan> {
    let program = pass("partition", || partition(module, shardings, &sharding_options(options)))?;
    if let Some(dump) = &options.dump {
        dump.pass("partitioned.mlir", &program);
    }
    let options = CompileOptions { use_spmd_partitioning: false, ..options.clone() };
    let shardings = propagate(&program, &sharding_options(&options))?;
    plan(&program, &options, &shardings)
}

/// Returns the type of a whole array. Of an unreduced array, it has a first dimension that counts the partial results. A token is
/// an array without elements.
fn whole_shape(ty: &Type, sharding: Option<&Sharding>) -> Result<Shape> {
    let [shape] = <[Shape; 1]>::try_from(shapes_of(ty)?).map_err(|_| {
        CompileError::unimplemented(format!(
            "a partitioned program cannot have a parameter or result of the type {ty}"
        ))
    })?;
    Ok(match sharding.filter(|sharding| sharding.reduction.is_some()) {
        Some(sharding) => shape.with_dims(&[&sharding.parts[..1], &*shape.dims].concat()),
        None => shape,
    })
}

/// A function that returns an attribute of one of a function's parameters or results.
type Lookup = for<'f> fn(&'f Function, usize, &str) -> Option<&'f Attribute>;

fn arrays(
    main: &Function,
    attribute: Lookup,
    shapes: Vec<Shape>,
    shardings: Vec<Option<Sharding>>,
    donations: Vec<Donation>,
) -> Vec<ArrayInfo> {
    let array = |(i, (shape, (sharding, donation))): (usize, (Shape, (Option<Sharding>, Donation)))| {
        let kind = attribute(main, i, "mhlo.memory_kind").and_then(Attribute::as_str);
        ArrayInfo { shape, sharding, memory_kind: kind.map(str::to_owned), donation }
    };
    shapes.into_iter().zip(shardings.into_iter().zip(donations)).enumerate().map(array).collect()
}
