//! Replaces custom calls with the programs that the host supplies for one partition, each as the body of a manual computation.

mod describe;
mod manual;
mod replace;

use crate::call_partitioner::CallPartitioner;
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::options::{FindPartitioner, Options};
use crate::partition::{dims, ints};
use crate::propagate::{Shardings, propagate_with};
use crate::rebuilt::without_functions;
use crate::sharding::Sharding;
use describe::described;
use manual::{Within, computation, within_another};
use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{BlockId, Body, Function, Op, OpId, Operation, TensorType, Type, ValueId};
use replace::{Partition, add_function, put};
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
/// Calls of functions must be inlined first, as for [`propagate`](crate::propagate()).
///
/// # Errors
/// Returns the errors of the partitioner; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if a call is in a place
/// where it cannot be partitioned; or [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the module has no function
/// `main`, or if the host's program does not fit the call.
pub fn partition_calls(module: &Module, options: &Options) -> Result<Module> {
    let main = module.main().ok_or_else(|| Error::invalid("the module has no function named main"))?;
    let mut calls = vec![];
    if let Some(entry) = main.body.entry() {
        find(module, &main.body, entry, None, options, &mut calls)?;
    }
    let devices = Devices { array: vec![0; options.num_partitions], replicas: options.num_replicas };
    let shardings = shardings(module, main, &devices, &calls, options)?;
    let mut main = main.clone();
    let mut program = without_functions(module);
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
    /// `true` if the program states a sharding rule for the call.
    has_rule: bool,
    /// The manual computation that contains the call; `None` if the call is in no manual computation.
    within: Option<Within>,
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

/// Requests the replacement of a call from the host.
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
