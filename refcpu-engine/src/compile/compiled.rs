//! From a program as hosts send it to what runs.

use super::core_ops::{to_core_ops, to_core_ops_without_calls};
use super::error::{CompileError, Result};
use super::lower::{calls_the_host, shape_of};
use super::options::{CompileOptions, Parts};
use super::{donations, plan};
use crate::graph::Shape;
use crate::plan::{Donation, Plan};
use crate::trace::pass;
use pjrt_sharding::{Sharding, Shardings, has_partitioned_calls, partition, partition_calls, propagate};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Attribute, Function, Op, Type};
use std::borrow::Cow;

/// A program that can run, and what hosts may ask about it.
pub struct Compiled {
    /// The name of the module.
    pub name: String,
    /// What runs: the program of one partition if `in_parts`, otherwise the program itself.
    pub plan: Plan,
    /// Whether a program for whole arrays was rewritten to run on parts of them, on every partition.
    pub in_parts: bool,
    /// The parameters of the program.
    pub parameters: Vec<ArrayInfo>,
    /// The results of the program.
    pub results: Vec<ArrayInfo>,
    /// How the arrays are split that the program asks to see the sharding of (`InspectSharding`), by its names for them.
    pub inspected: Vec<(String, Option<Sharding>)>,
    /// The program with the host's partitions in the place of its custom calls, if it has such calls.
    pub with_partitions_of_calls: Option<Module>,
}

/// A parameter or result of a program.
#[derive(Clone, Debug)]
pub struct ArrayInfo {
    /// Its type; of a program for whole arrays that of the whole array.
    pub shape: Shape,
    /// How it is split among partitions; `None`: everyone has it whole.
    pub sharding: Option<Sharding>,
    /// The kind of memory that it is to be in, if the program says so.
    pub memory_kind: Option<String>,
    /// Of a parameter, whether its memory may become that of a result.
    pub donation: Donation,
}

impl Compiled {
    /// Whether devices run the program each for itself, with arguments of their own.
    pub fn runs_on_each_device(&self) -> bool {
        self.in_parts || !self.plan.global_view || self.plan.num_partitions == 1
    }
}

/// Compiles a program: has the host partition its custom calls, finds how its arrays are split, rewrites it as the program of one
/// partition where it is to run in parts, and compiles that, or else the program itself.
///
/// # Errors
/// If the program is wrong, or needs something that refcpu does not have.
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
            error.message += " (in the program of one partition)";
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

/// Returns the program in operations that refcpu compiles, with the host's partitions in the place of custom calls.
///
/// # Errors
/// If an operation cannot be expressed in others, or if the host does not partition a call.
pub fn core_ops(module: &Module, options: &CompileOptions) -> Result<Module> {
    let partitioned = with_partitions_of_calls(module, options)?;
    to_core_ops(partitioned.as_ref().unwrap_or(module)).map(Cow::into_owned)
}

/// Returns the program of one partition, with the shardings of its parameters and results as attributes.
///
/// # Errors
/// If the program is not one that can be compiled, or has tuples among the parameters or results of `main`.
pub fn partitioned(module: &Module, options: &CompileOptions) -> Result<Module> {
    let flat = to_core_ops_without_calls(module)?;
    let options = options.sharding();
    Ok(partition(&flat, &propagate(&flat, &options)?, &options)?)
}

/// The program with the host's partitions in the place of custom calls; `None` of one without such calls.
fn with_partitions_of_calls(module: &Module, options: &CompileOptions) -> Result<Option<Module>> {
    if !has_partitioned_calls(module, options.find_partitioner) {
        return Ok(None);
    }
    let flat = to_core_ops_without_calls(module)?;
    Ok(Some(pass("partition_calls", || partition_calls(&flat, &options.sharding()))?))
}

/// A program, and how its arrays are split. It is without calls if it is for whole arrays on several partitions.
fn propagated<'m>(module: &'m Module, options: &CompileOptions) -> Result<(Cow<'m, Module>, Shardings)> {
    let is_split = options.use_spmd_partitioning && options.num_partitions > 1;
    let module = if is_split { to_core_ops_without_calls(module)? } else { Cow::Borrowed(module) };
    let shardings = pass("propagate", || propagate(&module, &options.sharding()))?;
    Ok((module, shardings))
}

fn runs_in_parts(module: &Module, options: &CompileOptions, shardings: &Shardings) -> bool {
    let has_addends = || {
        let mut all = shardings.parameters.iter().chain(&shardings.results).flatten();
        all.any(|sharding| sharding.summed)
    };
    let is_manual = || {
        let mut all = module.functions().iter().flat_map(|function| function.body.all_ops());
        all.any(|(_, op)| matches!(op.kind, Op::ManualComputation(_)))
    };
    let wanted = match options.parts {
        Parts::Never => false,
        Parts::WhereNeeded => has_addends() || is_manual(),
        Parts::Always => true,
    };
    wanted && options.use_spmd_partitioning && options.num_partitions > 1 && !calls_the_host(module, options)
}

/// The plan of the program of one partition.
fn plan_of_partition(module: &Module, shardings: &Shardings, options: &CompileOptions) -> Result<Plan> {
    let program = pass("partition", || partition(module, shardings, &options.sharding()))?;
    if let Some(dump) = &options.dump {
        dump.pass("partitioned.mlir", &program);
    }
    let options = CompileOptions { use_spmd_partitioning: false, ..options.clone() };
    let shardings = propagate(&program, &options.sharding())?;
    plan(&program, &options, &shardings)
}

/// The type of a whole array, of which one that is still to be summed has all addends.
fn whole_shape(ty: &Type, sharding: Option<&Sharding>) -> Result<Shape> {
    let Some(ty) = ty.as_tensor() else {
        return Err(CompileError::unimplemented(format!(
            "a partitioned program with arguments or results of type {ty}"
        )));
    };
    let shape = shape_of(ty)?;
    Ok(match sharding.filter(|sharding| sharding.summed) {
        Some(sharding) => shape.with_dims(&[&sharding.parts[..1], &*shape.dims].concat()),
        None => shape,
    })
}

/// An attribute of one of a function's parameters or results.
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
