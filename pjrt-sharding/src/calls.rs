//! Replaces custom calls with the programs that the host supplies for one partition, each as the body of a manual computation.

use crate::axes::Axes;
use crate::call_partitioner::{CallPartitioner, WholeCall};
use crate::cut::Cut;
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::mesh::mesh_of;
use crate::options::{FindPartitioner, Options};
use crate::partition::{dims, ints, without_shardings};
use crate::propagate::{Shardings, propagate_with};
use crate::rule::{FactorKind, ShardingRule, shapes};
use crate::sharding::Sharding;
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{
    BackendConfig, BlockId, Body, DimensionSharding, Function, Location, MeshReference, Op, OpId, Operation,
    Str, TensorSharding, TensorType, Type, ValueId, ops,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum number of rounds of asking the host for shardings and propagating them.
const MAX_ROUNDS: usize = 8;

/// Returns whether a module contains custom calls for which `find` returns a partitioner.
pub fn has_partitioned_calls(module: &Module, find: FindPartitioner) -> bool {
    let mut all = module.functions().iter().flat_map(|function| function.body.all_ops());
    all.any(|(_, op)| partitioner(op, find).is_some())
}

/// Replaces each custom call that has a partitioner with the program that the host supplies for one partition. Functions that
/// these programs call are added to the module. [`CallPartitioner`] has an example.
///
/// Calls of functions must be inlined before, as for [`propagate`](crate::propagate()).
///
/// # Errors
/// The errors of the partitioner; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if a call is in a place where it
/// cannot be partitioned; [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the host's program does not fit the call.
pub fn partition_calls(module: &Module, options: &Options) -> Result<Module> {
    let main = module.main().ok_or_else(|| Error::invalid("the module has no function named main"))?;
    let mut calls = vec![];
    if let Some(entry) = main.body.entry() {
        find(module, &main.body, entry, None, options, &mut calls)?;
    }
    let devices = Devices { array: vec![0; options.num_partitions], replicas: options.num_replicas };
    let shardings = shardings(module, main, &devices, &calls, options)?;
    let mut main = main.clone();
    let mut program = Module::new();
    program.name.clone_from(&module.name);
    program.attributes.clone_from(&module.attributes);
    program.location.clone_from(&module.location);
    for mesh in module.meshes() {
        program.add_mesh(mesh.clone());
    }
    for function in module.functions().iter().filter(|function| function.name != main.name) {
        add_function(&mut program, function.clone())?;
    }
    for call in &calls {
        let op = main.body.op(call.op);
        let (name, location) = (op.kind.code().info().name, op.location.clone());
        partitioned(&main.body, call, &shardings, &devices)
            .and_then(|partition| put(&mut program, &mut main.body, call.op, partition))
            .map_err(|error| error.in_op(name, &location))?;
    }
    add_function(&mut program, main)?;
    Ok(program)
}

/// A custom call that the host partitions.
struct Call {
    op: OpId,
    partitioner: Arc<dyn CallPartitioner>,
    /// True if the program states a sharding rule for the call.
    has_rule: bool,
    /// The manual computation that contains the call; `None` if the call is in no manual computation.
    within: Option<Within>,
}

/// The part of the mesh that a manual computation leaves to the operations in it.
#[derive(Clone)]
struct Within {
    mesh: MeshReference,
    /// The axes of the mesh that are manual neither in this computation nor in those around it.
    free: Vec<Str>,
}

impl Within {
    fn new(module: &Module, manual: &ops::ManualComputation, outer: Option<&Self>) -> Result<Option<Self>> {
        let Some(first) = manual.in_shardings.iter().chain(&manual.out_shardings).next() else {
            return Ok(outer.cloned());
        };
        let axes: Vec<Str> = match outer {
            Some(outer) => outer.free.clone(),
            None => mesh_of(module, first)?.axes.iter().map(|axis| axis.name.clone()).collect(),
        };
        let free = axes.into_iter().filter(|axis| !manual.manual_axes.contains(axis)).collect();
        Ok(Some(Self { mesh: first.mesh.clone(), free }))
    }
}

fn partitioner(op: &Operation, find: FindPartitioner) -> Option<Arc<dyn CallPartitioner>> {
    match &op.kind {
        Op::CustomCall(call) => find(&call.call_target_name),
        _ => None,
    }
}

/// Adds the calls of a block, in program order.
fn find(
    module: &Module,
    body: &Body,
    block: BlockId,
    within: Option<&Within>,
    options: &Options,
    calls: &mut Vec<Call>,
) -> Result<()> {
    for id in &body.block(block).ops {
        let op = body.op(*id);
        if let Some(partitioner) = partitioner(op, options.find_partitioner) {
            if options.num_partitions > 1 && !options.use_spmd_partitioning {
                let why = "the host cannot partition a custom call in a program that is written for one \
                           partition (use_spmd_partitioning is false)";
                return Err(Error::unsupported(why).in_op(op.kind.name(), &op.location));
            }
            calls.push(Call {
                op: *id,
                partitioner,
                has_rule: op.attributes.get("sdy.sharding_rule").is_some(),
                within: within.cloned(),
            });
        }
        let inner = match &op.kind {
            Op::ManualComputation(manual) => Within::new(module, manual, within)?,
            _ => within.cloned(),
        };
        for block in op.regions.iter().flat_map(|region| &body.region(*region).blocks) {
            find(module, body, *block, inner.as_ref(), options, calls)?;
        }
    }
    Ok(())
}

/// Derives the shardings of the values of `main`. Asks the host for those of its custom calls.
fn shardings(
    module: &Module,
    main: &Function,
    devices: &Devices,
    calls: &[Call],
    options: &Options,
) -> Result<Shardings> {
    let mut inferred: HashMap<ValueId, Sharding> = HashMap::new();
    let mut rounds = 0;
    loop {
        let found = propagate_with(module, options, &inferred)?;
        let (before, mut asked) = (inferred.len(), vec![]);
        // A program with a mesh is for Shardy, where `sdy.sharding_rule` states everything about a call.
        if module.meshes().is_empty() && rounds < MAX_ROUNDS {
            asked.extend(calls.iter().filter(|call| !call.has_rule));
        }
        for call in asked {
            let op = main.body.op(call.op);
            if op.results.iter().any(|result| inferred.contains_key(&result)) {
                continue;
            }
            let ask = || call.partitioner.infer(&described(&main.body, op, &found, devices)?);
            let shardings = ask().map_err(|error| error.in_op(op.kind.name(), &op.location))?;
            let split = op.results.iter().zip(shardings.into_iter().flatten());
            inferred.extend(split.filter_map(|(result, sharding)| Some((result, sharding?))));
        }
        if inferred.len() == before {
            return Ok(found);
        }
        rounds += 1;
    }
}

/// Describes a call to its partitioner.
fn described<'a>(
    body: &Body,
    op: &'a Operation,
    found: &Shardings,
    devices: &Devices,
) -> Result<WholeCall<'a>> {
    let Op::CustomCall(call) = &op.kind else {
        return Err(Error::internal("the operation is not a custom call"));
    };
    let BackendConfig::Bytes(config) = &call.backend_config else {
        return Err(Error::unsupported(
            "the backend_config of a custom call that the host partitions must be a string, not a dictionary",
        ));
    };
    let ruled = by_rule(body, op, found);
    let array = |value: ValueId| -> Result<(TensorType, Option<Sharding>)> {
        let (Some(ty), Some(dims)) = (body.ty(value).as_tensor(), dims(body, value)) else {
            return Err(Error::unsupported(
                "the operands and results of a custom call that the host partitions must be tensors of static shape",
            ));
        };
        let can_be = |layout: &&Layout| {
            let cuts: Vec<_> = layout.dims.iter().flatten().collect();
            layout.local_dims(&dims).is_some() && devices.spread_evenly(&cuts)
        };
        // Partial sums are reduced before the call receives the array.
        let layout = ruled.get(&value).or_else(|| found.values.get(&value)).filter(can_be);
        let sharding = layout
            .and_then(|layout| Layout { dims: layout.dims.clone(), addends: None }.sharding(devices.count()));
        Ok((ty.clone(), sharding))
    };
    Ok(WholeCall {
        operands: op.operands.iter().map(|value| array(*value)).collect::<Result<_>>()?,
        results: op.results.iter().map(array).collect::<Result<_>>()?,
        backend_config: config,
        partitions: devices.count(),
    })
}

/// Returns the layouts that the call's rule derives from the operands for the results that have no layout, because their users
/// need them whole or because they are unused. Such results are gathered after the call, and the host need not know.
fn by_rule(body: &Body, op: &Operation, found: &Shardings) -> HashMap<ValueId, Layout> {
    let sizes = shapes(body, op.operands.iter().copied()).zip(shapes(body, op.results.iter()));
    let rule = sizes.and_then(|(operands, results)| ShardingRule::of_attribute(op, &operands, &results));
    let Some(rule) = rule else { return HashMap::new() };
    let may_be_cut = |factor: &usize| {
        let factor = &rule.factors[*factor];
        factor.kind != FactorKind::NeedReplication && !factor.blocks_propagation
    };
    let mut cuts: Vec<Option<&Cut>> = vec![None; rule.factors.len()];
    for (value, tensor) in op.operands.iter().zip(&rule.operands) {
        let dims = found.values.get(value).map_or(&[][..], |layout| &layout.dims);
        for (cut, factors) in dims.iter().zip(tensor) {
            if let (Some(cut), Some(factor)) = (cut, factors.first().filter(|factor| may_be_cut(factor))) {
                cuts[*factor].get_or_insert(cut);
            }
        }
    }
    let whole = op.results.iter().zip(&rule.results).filter(|(value, _)| !found.values.contains_key(value));
    whole
        .map(|(value, tensor)| {
            let cut = |factors: &Vec<usize>| factors.first().and_then(|factor| cuts[*factor].cloned());
            (value, Layout { dims: tensor.iter().map(cut).collect(), addends: None })
        })
        .collect()
}

/// The replacement of a call.
struct Partition {
    module: Module,
    computation: ops::ManualComputation,
}

/// Asks the host for the replacement of a call.
fn partitioned(body: &Body, call: &Call, found: &Shardings, devices: &Devices) -> Result<Partition> {
    let op = body.op(call.op);
    let whole = described(body, op, found, devices)?;
    let given = call.partitioner.partition(&whole)?;
    let lengths = (given.operands.len(), given.results.len());
    if lengths != (whole.operands.len(), whole.results.len()) {
        return Err(Error::internal(format!(
            "the partitioner of this call returned shardings of {} operands and {} results, but the call has \
             {} and {}",
            lengths.0,
            lengths.1,
            whole.operands.len(),
            whole.results.len()
        )));
    }
    let layout =
        |((ty, _), sharding): (&(TensorType, _), &Option<Sharding>)| Layout::of(sharding.as_ref(), ty.rank());
    let inputs: Vec<Layout> = whole.operands.iter().zip(&given.operands).map(layout).collect();
    let outputs: Vec<Layout> = whole.results.iter().zip(&given.results).map(layout).collect();
    let module = pjrt_stablehlo::parse(&*given.program).map_err(|error| {
        Error::invalid(format!("the host's program for this call cannot be parsed: {error}"))
    })?;
    let main = module
        .main()
        .ok_or_else(|| Error::invalid("the host's program for this call has no function named main"))?;
    let part = |(value, layout): (ValueId, &Layout)| -> Result<Type> {
        let ty = body.ty(value);
        let wrong = || {
            Error::unsupported(format!(
                "{ty} cannot be split into equal parts as the host's sharding requires"
            ))
        };
        let tensor = ty.as_tensor().ok_or_else(wrong)?;
        let dims = dims(body, value).and_then(|dims| layout.local_dims(&dims)).ok_or_else(wrong)?;
        Ok(tensor.with_dims(ints(&dims)).into())
    };
    let parts = |values: &mut dyn Iterator<Item = ValueId>, layouts: &[Layout]| {
        values.zip(layouts).map(part).collect::<Result<Vec<Type>>>()
    };
    let arguments = parts(&mut op.operands.iter().copied(), &inputs)?;
    let results = parts(&mut op.results.iter(), &outputs)?;
    if main.argument_types() != arguments || main.result_types() != results {
        let list = |types: &[Type]| types.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
        return Err(Error::invalid(format!(
            "the host's program for this call has the type ({}) -> ({}), but its shardings require ({}) -> ({})",
            list(main.argument_types()),
            list(main.result_types()),
            list(&arguments),
            list(&results)
        )));
    }
    let computation = match &call.within {
        Some(within) => within_another(within, &inputs, &outputs)?,
        None => computation(&inputs, &outputs, devices)?,
    };
    Ok(Partition { module, computation })
}

/// Returns a manual computation along all axes of a mesh, for arrays with these layouts.
fn computation(inputs: &[Layout], outputs: &[Layout], devices: &Devices) -> Result<ops::ManualComputation> {
    let cuts: Vec<_> = inputs.iter().chain(outputs).flat_map(Layout::cuts).collect();
    let no_mesh = || {
        Error::unsupported(
            "the shardings that the host states for this call are not along the axes of one mesh",
        )
    };
    let axes = Axes::of(&cuts, devices.count()).ok_or_else(no_mesh)?;
    let shardings = |layouts: &[Layout]| -> Result<Box<[TensorSharding]>> {
        layouts.iter().map(|layout| axes.sharding(&layout.dims).ok_or_else(no_mesh)).collect()
    };
    Ok(ops::ManualComputation {
        in_shardings: shardings(inputs)?,
        out_shardings: shardings(outputs)?,
        manual_axes: axes.names(),
    })
}

/// Returns a manual computation along the axes that are not manual in the computation around it. It cannot split its arrays,
/// because the host does not know the manual axes.
fn within_another(within: &Within, inputs: &[Layout], outputs: &[Layout]) -> Result<ops::ManualComputation> {
    let whole = |layout: &Layout| {
        if !layout.is_whole() {
            let why = "the host's sharding splits arrays of this call, which is in a manual computation and \
                       operates on parts already";
            return Err(Error::unsupported(why));
        }
        let uncut = DimensionSharding { axes: Box::default(), is_closed: true, priority: None };
        Ok(TensorSharding {
            mesh: within.mesh.clone(),
            dim_shardings: vec![uncut; layout.dims.len()].into(),
            replicated_axes: Box::default(),
            unreduced_axes: Box::default(),
            reduction: "sum".into(),
        })
    };
    Ok(ops::ManualComputation {
        in_shardings: inputs.iter().map(whole).collect::<Result<_>>()?,
        out_shardings: outputs.iter().map(whole).collect::<Result<_>>()?,
        manual_axes: within.free.clone().into(),
    })
}

/// Replaces a call with a manual computation whose body is the host's program.
fn put(program: &mut Module, body: &mut Body, call: OpId, partition: Partition) -> Result<()> {
    let Partition { module, computation } = partition;
    let mut names: HashMap<Str, Str> = HashMap::new();
    for function in module.functions() {
        let new = (0..)
            .map(|n| format!("{}_of_partition_{n}", function.name))
            .find(|name| program.function(name).is_none());
        names.extend(new.map(|new| (function.name.clone(), new.as_str().into())));
    }
    for mesh in module.meshes() {
        match program.mesh(&mesh.name) {
            None => program.add_mesh(mesh.clone()),
            Some(other) if *other == mesh.mesh => {}
            Some(_) => {
                let why = format!(
                    "the mesh @{} in the host's program for this call differs from the mesh of that name in \
                     the program",
                    mesh.name
                );
                return Err(Error::unsupported(why));
            }
        }
    }
    for function in module.functions().iter().filter(|function| &*function.name != "main") {
        let mut function = function.clone();
        function.name = names[&function.name].clone();
        let ids: Vec<OpId> = function.body.all_ops().map(|(id, _)| id).collect();
        for id in ids {
            rename(&mut function.body.op_mut(id).kind, &names);
        }
        add_function(program, function)?;
    }
    let Some((main, entry)) = module.main().and_then(|main| Some((main, main.body.entry()?))) else {
        return Err(Error::invalid("the host's program for this call has no function named main"));
    };
    let op = body.op_mut(call);
    op.kind = Op::ManualComputation(computation);
    op.attributes = without_shardings(&op.attributes);
    let location = op.location.clone();
    let region = body.add_region(Some(call));
    let to = body.add_block(region);
    let mut copy = Copy { from: &main.body, into: body, values: HashMap::new(), names: &names, location };
    copy.block(entry, to)
}

fn add_function(program: &mut Module, function: Function) -> Result<()> {
    program.add_function(function).map_err(|_| Error::internal("two functions have the same name"))
}

/// Replaces the names of functions that an operation refers to.
fn rename(kind: &mut Op, names: &HashMap<Str, Str>) {
    let new = |name: &mut Str| {
        if let Some(new) = names.get(name) {
            *name = new.clone();
        }
    };
    match kind {
        Op::CustomCall(call) => call.called_computations.iter_mut().for_each(new),
        Op::Composite(composite) => new(&mut composite.decomposition),
        Op::FuncCall(call) => new(&mut call.callee),
        _ => {}
    }
}

/// Copies operations from one function into another.
struct Copy<'a> {
    from: &'a Body,
    into: &'a mut Body,
    values: HashMap<ValueId, ValueId>,
    names: &'a HashMap<Str, Str>,
    /// The location of copied operations that have none.
    location: Location,
}

impl Copy<'_> {
    fn block(&mut self, block: BlockId, to: BlockId) -> Result<()> {
        for argument in &self.from.block(block).arguments {
            let new = self.into.add_argument(to, self.from.ty(*argument).clone());
            self.values.insert(*argument, new);
        }
        for id in &self.from.block(block).ops {
            let op = self.from.op(*id);
            let mut kind = match &op.kind {
                Op::FuncReturn(_) => Op::SdyReturn(ops::SdyReturn {}),
                kind => kind.clone(),
            };
            rename(&mut kind, self.names);
            let operand = |value: &ValueId| self.values.get(value).copied();
            let operands: Option<Vec<ValueId>> = op.operands.iter().map(operand).collect();
            let operands =
                operands.ok_or_else(|| Error::internal("a value is used before its definition"))?;
            let types: Vec<Type> = op.results.iter().map(|result| self.from.ty(result).clone()).collect();
            let location = if op.location.is_unknown() { &self.location } else { &op.location };
            let new = self.into.add_op(to, kind, operands, types, location.clone());
            self.into.op_mut(new).attributes = op.attributes.clone();
            self.values.extend(op.results.iter().zip(self.into.op(new).results));
            for region in &op.regions {
                let into = self.into.add_region(Some(new));
                for block in &self.from.region(*region).blocks {
                    let to = self.into.add_block(into);
                    self.block(*block, to)?;
                }
            }
        }
        Ok(())
    }
}
