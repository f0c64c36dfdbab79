//! Custom calls that the host partitions: the program that it gives for one partition takes the place of each, as the body of a
//! manual computation.

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

/// Shardings that the host infers are spread, and it is asked again, so often at most.
const MAX_ROUNDS: usize = 8;

/// Whether a module has custom calls for which the host has registered a partitioner.
pub fn has_partitioned_calls(module: &Module, find: FindPartitioner) -> bool {
    let mut all = module.functions().iter().flat_map(|function| function.body.all_ops());
    all.any(|(_, op)| partitioner(op, find).is_some())
}

/// Returns the program with the host's partitions in the place of the custom calls for which it has registered a partitioner.
/// Functions that these partitions call are among those of the program.
///
/// Calls of the program are to be inlined before, as for [`propagate`](crate::propagate()).
///
/// # Errors
/// Those of the host; and if a call is where it cannot be partitioned, or what the host gives for it does not fit.
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

/// A call that the host partitions.
struct Call {
    op: OpId,
    partitioner: Arc<dyn CallPartitioner>,
    /// Whether the program says itself how the arrays of the call are split together.
    has_rule: bool,
    /// Given if it is in a manual computation.
    within: Option<Within>,
}

/// What a manual computation leaves to operations in it.
#[derive(Clone)]
struct Within {
    mesh: MeshReference,
    /// The axes of the mesh that neither it nor one around it is manual along.
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

/// Adds the calls of a block, in the order of the program.
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
                let why =
                    "a custom call that the host partitions, in a program that is of one partition already";
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

/// How the values of `main` are split.
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
        // Programs for Shardy declare a mesh. To those the rules of calls are all there is.
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

/// A call as its partitioner sees it.
fn described<'a>(
    body: &Body,
    op: &'a Operation,
    found: &Shardings,
    devices: &Devices,
) -> Result<WholeCall<'a>> {
    let Op::CustomCall(call) = &op.kind else { return Err(Error::internal("this is no custom call")) };
    let BackendConfig::Bytes(config) = &call.backend_config else {
        return Err(Error::unsupported("a dictionary as configuration of a call that the host partitions"));
    };
    let ruled = by_rule(body, op, found);
    let array = |value: ValueId| -> Result<(TensorType, Option<Sharding>)> {
        let (Some(ty), Some(dims)) = (body.ty(value).as_tensor(), dims(body, value)) else {
            return Err(Error::unsupported(
                "a call that the host partitions of values that are no arrays of definite sizes",
            ));
        };
        let can_be = |layout: &&Layout| {
            let cuts: Vec<_> = layout.dims.iter().flatten().collect();
            layout.local_dims(&dims).is_some() && devices.spread_evenly(&cuts)
        };
        // Addends are added up before an operation sees the array.
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

/// How results are split by the call's rule that those who use them want whole, or that nobody uses: as the operands are. They are
/// put together after the call, which the host need not know of.
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

/// What takes the place of a call.
struct Partition {
    module: Module,
    computation: ops::ManualComputation,
}

/// Asks the host.
fn partitioned(body: &Body, call: &Call, found: &Shardings, devices: &Devices) -> Result<Partition> {
    let op = body.op(call.op);
    let whole = described(body, op, found, devices)?;
    let given = call.partitioner.partition(&whole)?;
    let lengths = (given.operands.len(), given.results.len());
    if lengths != (whole.operands.len(), whole.results.len()) {
        return Err(Error::internal("the host's partition of this call has other operands or results"));
    }
    let layout =
        |((ty, _), sharding): (&(TensorType, _), &Option<Sharding>)| Layout::of(sharding.as_ref(), ty.rank());
    let inputs: Vec<Layout> = whole.operands.iter().zip(&given.operands).map(layout).collect();
    let outputs: Vec<Layout> = whole.results.iter().zip(&given.results).map(layout).collect();
    let module = pjrt_stablehlo::parse(&*given.program).map_err(|error| {
        Error::invalid(format!("the host's partition of this call cannot be read: {error}"))
    })?;
    let main =
        module.main().ok_or_else(|| Error::invalid("the host's partition of this call has no main"))?;
    let part = |(value, layout): (ValueId, &Layout)| -> Result<Type> {
        let ty = body.ty(value);
        let wrong = || Error::unsupported(format!("{ty} cannot be cut into equal parts as the host wants"));
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
            "the host's partition of this call is of type ({}) -> ({}), but its shardings make it ({}) -> ({})",
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

/// A computation along all axes of a mesh, with arrays that are cut so.
fn computation(inputs: &[Layout], outputs: &[Layout], devices: &Devices) -> Result<ops::ManualComputation> {
    let cuts: Vec<_> = inputs.iter().chain(outputs).flat_map(Layout::cuts).collect();
    let no_mesh = || Error::unsupported("a partition of a call whose arrays are not cut along one mesh");
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

/// A computation along the axes that the one around it is not manual along. These cannot cut its arrays: the host knows nothing of
/// the other axes.
fn within_another(within: &Within, inputs: &[Layout], outputs: &[Layout]) -> Result<ops::ManualComputation> {
    let whole = |layout: &Layout| {
        if !layout.is_whole() {
            let why = "a partition that cuts the arrays of a call in a computation that is on parts already";
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

/// Makes a call the manual computation that it is on one partition.
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
                    "the host's partition of this call has another mesh {} than the program",
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
        return Err(Error::invalid("the host's partition of this call has no main"));
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
    program.add_function(function).map_err(|_| Error::internal("a function is there twice"))
}

/// Has an operation refer to functions by their new names.
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

/// Operations on their way from one function into another.
struct Copy<'a> {
    from: &'a Body,
    into: &'a mut Body,
    values: HashMap<ValueId, ValueId>,
    names: &'a HashMap<Str, Str>,
    /// Of operations that have none.
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
            let operands = operands.ok_or_else(|| Error::internal("a value is used before it is defined"))?;
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
