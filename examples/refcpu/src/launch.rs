//! Executions of loaded programs.

use crate::buffer::RefcpuBuffer;
use crate::cluster::{Launch, Spanning};
use crate::device_memory::{DeviceMemory, MEMORY_HINT, Reservation};
use crate::errors::{exhausted_while_running, out_of_memory, run_error};
use crate::executable::RefcpuExecutable;
use crate::host::Host;
use crate::sharding::Cut;
use pjrt_plugin::{
    ByDevice, DeviceAssignment, DeviceId, Error, Input, PjrtExecutable, ReadyExecution, Result,
};
use refcpu_engine::exec::{
    self, Peers, Rendezvous, RunError, RunErrorKind, RunOptions, Runtime, Transfer, Transport,
};
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
    /// `true` if the program runs on several devices, which communicate.
    communicates: bool,
    /// The processes of its devices, if they are several.
    spanning: Option<Spanning>,
    /// The memory of each device of the client, by id.
    memories: Arc<[Arc<DeviceMemory>]>,
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
    /// Loads a program. `processes` are the processes of its devices, and `own` is this one.
    ///
    /// # Errors
    /// Returns FAILED_PRECONDITION if the program was compiled for devices of one process, and its devices belong to several.
    pub(crate) fn new(
        executable: Arc<RefcpuExecutable>,
        assignment: DeviceAssignment,
        memories: &Arc<[Arc<DeviceMemory>]>,
        own: usize,
        processes: Vec<usize>,
    ) -> Result<Self> {
        let plan = &executable.compiled.plan;
        let where_to_run = if plan.uses_host() {
            WhereToRun::HostQueue
        } else if plan.stats().nanoseconds * plan.lanes() as f64 <= SHORT_NANOSECONDS {
            WhereToRun::Caller
        } else {
            WhereToRun::Queue
        };
        let communicates = plan.lanes() > 1 && plan.lanes_communicate();
        let is_of_own = |process: &usize| *process == own;
        if !plan.lanes_are_devices() && processes.iter().any(is_of_own) && !processes.iter().all(is_of_own) {
            return Err(Error::failed_precondition(format!(
                "the program '{}' was compiled for the devices of one process, and is loaded on devices of several",
                executable.compiled.name
            ))
            .with_hint("compile it with a device assignment that contains the devices on which it will run"));
        }
        let spanning = Spanning::new(plan, executable.fingerprint, own, assignment.devices(), processes);
        let memories = Arc::clone(memories);
        Ok(Self { executable, assignment, where_to_run, communicates, spanning, memories })
    }

    /// Returns the name of the program.
    pub(crate) fn name(&self) -> &str {
        &self.executable.compiled.name
    }

    /// Returns the processes of the devices, if they are several and the program communicates between its devices.
    pub(crate) fn communicates_between_processes(&self) -> Option<&Spanning> {
        self.spanning.as_ref().filter(|_| self.communicates)
    }

    /// Returns the lane of the program that a launch on these devices runs if it is on one of several devices.
    fn lane(&self, devices: &[DeviceId]) -> Option<usize> {
        let [device] = *devices else { return None };
        if self.executable.compiled.plan.lanes() == 1 || self.spanning.is_some() {
            return None;
        }
        self.assignment.devices().iter().position(|id| *id == device)
    }

    /// Joins the collectives of the launches on the other devices, if a launch on these devices is on one of several that
    /// communicate.
    pub(crate) fn join(&self, rendezvous: &Rendezvous, devices: &[DeviceId]) -> Option<Peers> {
        if !self.communicates {
            return None;
        }
        let lane = self.lane(devices)?;
        Some(rendezvous.join(&self.executable.compiled.plan, lane, self.assignment.devices()))
    }

    /// Checks that the outputs and the temporary memory of the program are within the limit of each device. A launch that can
    /// never succeed then fails immediately, and not when the host waits for its results.
    ///
    /// # Errors
    /// Returns RESOURCE_EXHAUSTED if they are not.
    pub(crate) fn check_limits(&self, devices: &[DeviceId]) -> Result<()> {
        let check = |memory: &Arc<DeviceMemory>| memory.check_limit(self.executable.execution_bytes);
        devices.iter().try_for_each(|id| check(self.memory(*id)?).map_err(|error| self.exhausted(&error)))
    }

    /// Reserves memory on each device of a launch, for the outputs and the temporary memory of the program.
    ///
    /// # Errors
    /// Returns RESOURCE_EXHAUSTED if the limit of a device would be exceeded.
    fn reserve(&self, devices: &[DeviceId]) -> Result<ByDevice<Reservation>> {
        let reserve = |memory: &Arc<DeviceMemory>| memory.reserve(self.executable.execution_bytes);
        devices.iter().map(|id| reserve(self.memory(*id)?).map_err(|error| self.exhausted(&error))).collect()
    }

    fn memory(&self, device: DeviceId) -> Result<&Arc<DeviceMemory>> {
        let memory = usize::try_from(device).ok().and_then(|id| self.memories.get(id));
        memory.ok_or_else(|| Error::internal(format!("refcpu has no device with the id {device}")))
    }

    /// Adds to an error about memory the purposes for which the program needs it.
    fn exhausted(&self, error: &Error) -> Error {
        let plan = &self.executable.compiled.plan;
        let message = exhausted_while_running(error.message(), &self.executable.compiled.name, plan);
        Error::resource_exhausted(message).with_hint(MEMORY_HINT)
    }

    /// Returns the thread on which the program runs.
    pub(crate) fn where_to_run(&self) -> WhereToRun {
        self.where_to_run
    }
}

/// The launches on other devices with which a launch communicates.
pub(crate) enum With {
    /// None.
    None,
    /// Launches on other devices of this process.
    Peers(Peers),
    /// The launches on other processes.
    Launch(Launch),
}

impl With {
    fn waits_to_fail(&self) -> bool {
        matches!(self, Self::Launch(launch) if launch.waits_to_fail())
    }

    fn finish(self, outcome: Result<(), &Error>) {
        if let Self::Launch(launch) = self {
            launch.finish(outcome);
        }
    }
}

/// Runs the program and completes the execution. `with` are the launches on the other devices that it communicates with. Returns
/// the error with which the execution fails.
pub(crate) fn run(
    runtime: &Runtime,
    loaded: &Loaded,
    mut ready: ReadyExecution<RefcpuBuffer>,
    with: With,
) -> Option<Error> {
    let _span = trace::program(&loaded.executable.compiled.name);
    let inputs = ready.take_inputs();
    let (peers, with) = match with {
        With::Peers(peers) => (Some(peers), With::None),
        with => (None, with),
    };
    let outputs = outputs(runtime, loaded, inputs, &ready, peers, &with);
    match outputs {
        Ok(outputs) => {
            with.finish(Ok(()));
            ready.complete(outputs);
            None
        }
        Err(error) => {
            // A host may end its process as soon as it learns of the error, so the other processes learn of it before, unless the
            // launch has to wait for them.
            if with.waits_to_fail() {
                ready.fail(error.clone());
                with.finish(Err(&error));
            } else {
                with.finish(Err(&error));
                ready.fail(error.clone());
            }
            Some(error)
        }
    }
}

/// The transport of programs that do not communicate.
struct NoTransport;

impl Transport for NoTransport {
    fn transfer(&self, _: &mut [Transfer<'_>]) -> Result<(), RunError> {
        let message = "a program that does not communicate has executed a collective";
        Err(RunError::new(RunErrorKind::Internal, message))
    }
}

type PerDevice<T> = ByDevice<Vec<T>>;

fn outputs(
    runtime: &Runtime,
    loaded: &Loaded,
    inputs: PerDevice<Input<RefcpuBuffer>>,
    ready: &ReadyExecution<RefcpuBuffer>,
    peers: Option<Peers>,
    with: &With,
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
    let mut reservations = loaded.reserve(ready.devices())?;
    let host = Host::new(ready, partitions, loaded.spanning.as_ref());
    let transport: &dyn Transport = if let With::Launch(launch) = with { launch } else { &NoTransport };
    let options = RunOptions {
        host: Some(&host),
        foreign: Some(&host),
        lane: loaded.lane(ready.devices()),
        peers: peers.as_ref(),
        nodes: loaded.spanning.as_ref().map(|spanning| spanning.nodes(transport)),
        ..RunOptions::default()
    };
    let arguments =
        lanes.iter().map(|lane: &Vec<exec::Input>| lane.iter().map(|input| &input.array).collect());
    let noted = executable.dump.as_ref().and_then(|dump| dump.run(arguments, allocator));
    let results = exec::run(plan, runtime, lanes, &options).and_then(|results| {
        // A process may not reach a collective that others reach.
        if let With::Launch(launch) = with { launch.check().map(|()| results) } else { Ok(results) }
    });
    if let Some(peers) = peers {
        peers.finish(results.as_ref().map(|_| ()));
    }
    let results = results.map_err(|error| {
        host.take_failure().unwrap_or_else(|| run_error(&error, &executable.compiled.name, plan))
    });
    match (noted, &results) {
        (Some(run), Ok(_)) => run.finish(),
        (Some(run), Err(error)) => run.fail(error),
        (None, _) => {}
    }
    let results = results?;
    let bytes = &executable.output_bytes;
    let buffers = |arrays: Vec<Array>, reservation: &mut Reservation| {
        let arrays = arrays.into_iter().zip(bytes);
        arrays.map(|(array, bytes)| RefcpuBuffer::new(array, reservation.split(*bytes))).collect()
    };
    if are_lanes {
        return Ok(results.into_iter().zip(reservations.iter_mut()).map(|(l, r)| buffers(l, r)).collect());
    }
    let of_partition = |((lane, partition), reservation): ((&Vec<Array>, usize), &mut Reservation)| {
        let arrays = lane.iter().zip(&executable.output_cuts);
        let shards = arrays.map(|(array, cut)| shard(partition, array, cut, allocator));
        Ok(buffers(shards.collect::<Result<_>>()?, reservation))
    };
    let shards = results.iter().flat_map(|lane| (0..partitions).map(move |partition| (lane, partition)));
    shards.zip(reservations.iter_mut()).map(of_partition).collect()
}

/// Returns the shard of a result on a partition.
fn shard(partition: usize, array: &Array, cut: &Cut, allocator: &Allocator) -> Result<Array> {
    let shard = Array::window(array, &cut.starts[partition], &cut.shard);
    if !cut.is_unreduced {
        return Ok(shard);
    }
    let shard = shard.dense(allocator).map_err(|e| out_of_memory(&e))?;
    Ok(shard.reinterpret(shard.dtype(), cut.dims().into()))
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
        Ok(if cut.is_unreduced {
            dense.reinterpret(dense.dtype(), cut.shard.as_slice().into())
        } else {
            dense
        })
    };
    let dense = shards.iter().map(dense).collect::<Result<Vec<_>, _>>()?;
    let boxes: Vec<(&Array, &[usize])> = dense.iter().zip(cut.starts.iter().map(Vec::as_slice)).collect();
    Array::assemble(allocator, shards[0].dtype(), dims, &boxes)
}
