//! Executions of loaded programs.

use crate::buffer::RefcpuBuffer;
use crate::errors::{out_of_memory, run_error};
use crate::executable::RefcpuExecutable;
use crate::host::Host;
use crate::sharding::Cut;
use pjrt_plugin::{ByDevice, DeviceAssignment, Error, Input, PjrtExecutable, ReadyExecution, Result};
use refcpu_engine::exec::{self, RunOptions, Runtime};
use refcpu_engine::storage::{Allocator, Array, OutOfMemory};
use refcpu_engine::trace;
use std::sync::Arc;

/// The largest estimated time of a program that runs on the caller's thread. For shorter programs, passing them to another
/// thread and waiting for it would cost as much.
const SHORT_NANOSECONDS: f64 = 100_000.0;

/// A program that is loaded on devices.
pub struct Loaded {
    executable: Arc<RefcpuExecutable>,
    assignment: DeviceAssignment,
    where_to_run: WhereToRun,
}

/// The thread on which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhereToRun {
    /// The caller's thread.
    Caller,
    /// The thread of the device.
    Queue,
    /// The thread of the device for programs that call the host or its handlers, which may block or run other programs.
    HostQueue,
}

impl Loaded {
    pub(crate) fn new(executable: Arc<RefcpuExecutable>, assignment: DeviceAssignment) -> Self {
        let plan = &executable.compiled.plan;
        let where_to_run = if plan.uses_host() {
            WhereToRun::HostQueue
        } else if plan.stats().nanoseconds * plan.lanes() as f64 <= SHORT_NANOSECONDS {
            WhereToRun::Caller
        } else {
            WhereToRun::Queue
        };
        Self { executable, assignment, where_to_run }
    }

    /// The lane of the program that a launch runs if it is on one of several devices.
    fn lane(&self, ready: &ReadyExecution<RefcpuBuffer>) -> Option<usize> {
        let [device] = *ready.devices() else { return None };
        let (replica, partition) = self.assignment.logical_id(device)?;
        let plan = &self.executable.compiled.plan;
        (plan.lanes() > 1).then(|| replica * (plan.lanes() / plan.num_replicas) + partition)
    }

    /// Returns the thread on which the program runs.
    pub(crate) fn where_to_run(&self) -> WhereToRun {
        self.where_to_run
    }
}

/// Runs the program and completes the execution. Returns the error with which the execution fails.
pub(crate) fn run(
    runtime: &Runtime,
    loaded: &Loaded,
    mut ready: ReadyExecution<RefcpuBuffer>,
) -> Option<Error> {
    let _span = trace::program(loaded.executable.name());
    let inputs = ready.take_inputs();
    match outputs(runtime, loaded, inputs, &ready) {
        Ok(outputs) => {
            ready.complete(outputs);
            None
        }
        Err(error) => {
            ready.fail(error.clone());
            Some(error)
        }
    }
}

type PerDevice<T> = ByDevice<Vec<T>>;

fn outputs(
    runtime: &Runtime,
    loaded: &Loaded,
    inputs: PerDevice<Input<RefcpuBuffer>>,
    ready: &ReadyExecution<RefcpuBuffer>,
) -> Result<PerDevice<RefcpuBuffer>> {
    let executable = &*loaded.executable;
    let allocator = &runtime.allocator;
    let partitions = executable.num_partitions();
    let are_lanes = executable.compiled.runs_on_each_device();
    let plan = &executable.compiled.plan;
    let lanes = if are_lanes {
        let of_device = |device: Vec<_>| device.into_iter().map(|input| to_engine(input, ready)).collect();
        inputs.into_iter().map(of_device).collect::<Result<_>>()?
    } else {
        whole(executable, inputs, ready, allocator)?
    };
    let host = Host::new(ready, partitions);
    let options = RunOptions {
        host: Some(&host),
        foreign: Some(&host),
        lane: loaded.lane(ready),
        ..RunOptions::default()
    };
    let arguments =
        lanes.iter().map(|lane: &Vec<exec::Input>| lane.iter().map(|input| &input.array).collect());
    let noted = executable.dump.as_ref().and_then(|dump| dump.run(arguments, allocator));
    let results = exec::run(plan, runtime, lanes, &options)
        .map_err(|error| host.take_failure().unwrap_or_else(|| run_error(&error, executable.name(), plan)));
    match (noted, &results) {
        (Some(run), Ok(_)) => run.finish(),
        (Some(run), Err(error)) => run.fail(error),
        (None, _) => {}
    }
    let results = results?;
    let buffer = |array| RefcpuBuffer::new(array, allocator);
    if are_lanes {
        return Ok(results.into_iter().map(|lane| lane.into_iter().map(buffer).collect()).collect());
    }
    let shard = |partition: usize, array: &Array, cut: &Cut| {
        let shard = Array::window(array, &cut.starts[partition], &cut.shard);
        if !cut.summed {
            return Ok(buffer(shard));
        }
        let shard = shard.dense(allocator).map_err(|e| out_of_memory(&e))?;
        Ok(buffer(shard.reinterpret(shard.dtype(), cut.dims().into())))
    };
    let of_partition = |lane: &Vec<Array>, p| {
        lane.iter().zip(&executable.output_cuts).map(|(a, c)| shard(p, a, c)).collect::<Result<Vec<_>>>()
    };
    results.iter().flat_map(|lane| (0..partitions).map(move |p| of_partition(lane, p))).collect()
}

fn to_engine(input: Input<RefcpuBuffer>, ready: &ReadyExecution<RefcpuBuffer>) -> Result<exec::Input> {
    Ok(match input.into_donated() {
        Ok(buffer) => exec::Input { array: buffer.into_array(ready)?, donatable: true },
        Err(shared) => exec::Input { array: shared.array(ready)?, donatable: false },
    })
}

/// Joins the shards of each replica to whole arrays.
fn whole(
    executable: &RefcpuExecutable,
    inputs: PerDevice<Input<RefcpuBuffer>>,
    ready: &ReadyExecution<RefcpuBuffer>,
    allocator: &Allocator,
) -> Result<Vec<Vec<exec::Input>>> {
    let partitions = executable.num_partitions();
    let replica = |shards: &[Vec<Input<RefcpuBuffer>>]| {
        let parameter = |(i, cut): (usize, &Cut)| {
            let shards =
                shards.iter().map(|device| device[i].array(ready)).collect::<Result<Vec<Array>>>()?;
            let shards: Vec<&Array> = shards.iter().collect();
            let dims: Vec<usize> = executable.compiled.parameters[i].shape.dims.to_vec();
            let array = join(&shards, cut, &dims, allocator).map_err(|e| out_of_memory(&e))?;
            Ok(exec::Input { array, donatable: false })
        };
        executable.parameter_cuts.iter().enumerate().map(parameter).collect::<Result<Vec<_>>>()
    };
    if !inputs.len().is_multiple_of(partitions) {
        return Err(Error::invalid_argument(format!(
            "a program of {partitions} partitions cannot run on {} devices",
            inputs.len()
        )));
    }
    inputs.chunks(partitions).map(replica).collect()
}

/// Joins shards to the whole array. If they are windows of that array, no copy is needed.
fn join(shards: &[&Array], cut: &Cut, dims: &[usize], allocator: &Allocator) -> Result<Array, OutOfMemory> {
    if cut.shard == dims {
        // Of an array that is split more often than it has elements, only one partition has any.
        let whole = cut.starts.iter().zip(shards).find(|(starts, _)| starts.iter().all(|start| *start == 0));
        return Ok(whole.map_or(shards[0], |(_, shard)| *shard).clone());
    }
    if let Some((parent, _)) = shards[0].as_window() {
        let is_box = |(shard, start): (&&Array, &Vec<usize>)| {
            shard.as_window().is_some_and(|(of, at)| of.as_ptr() == parent.as_ptr() && at == start.as_slice())
        };
        if parent.dims() == dims && shards.iter().zip(&cut.starts).all(is_box) {
            return Ok(parent.clone());
        }
    }
    let dense = |shard: &&Array| {
        let dense = shard.dense(allocator)?;
        Ok(if cut.summed { dense.reinterpret(dense.dtype(), cut.shard.as_slice().into()) } else { dense })
    };
    let dense = shards.iter().map(dense).collect::<Result<Vec<_>, _>>()?;
    let boxes: Vec<(&Array, &[usize])> = dense.iter().zip(cut.starts.iter().map(Vec::as_slice)).collect();
    Array::assemble(allocator, shards[0].dtype(), dims, &boxes)
}
