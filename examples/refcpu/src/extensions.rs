//! The extensions of refcpu.

use crate::buffer::RefcpuBuffer;
use crate::client::RefcpuClient;
use crate::config::COMPILE_OPTIONS;
use crate::errors::{compile_error, out_of_memory};
use crate::executable::{RefcpuExecutable, engine_options};
use crate::executor::run_apart;
use crate::sharding::shardings;
use pjrt_plugin::ext::{
    Callbacks, CrossHostTransfers, CustomPartitioners, ExecutableMetadata, Ffi, HostMemoryAllocator,
    PartialProgram, PhaseCompile, PhaseRequest, PrefatalCallbacks, Profiler, RawBuffers, Received,
    RemoteTransfer, Sent, Sharding, Shardings,
};
use pjrt_plugin::{Error, Event, HostBuffer, Program, ProgramFormat, Result};
use refcpu_engine::compile::{CompileOptions, Parts, compile, core_ops};
use refcpu_engine::storage::Array;
use refcpu_kernels::DType;
use std::sync::Arc;

/// Programs run on threads of the host, so there are no timelines besides the spans of `refcpu_engine::trace`.
impl Profiler for RefcpuClient {}

/// The module `crate::host` calls the handlers.
impl Ffi for RefcpuClient {}

impl CrossHostTransfers for RefcpuClient {
    fn send_to_process(&self, transfer: RemoteTransfer, bytes: Result<Vec<u8>>, done: Sent) {
        match self.cluster_with(transfer.to) {
            Ok((cluster, peer)) => {
                run_apart("refcpu-send", Box::new(move || done(cluster.send(peer, transfer, bytes))))
            }
            Err(error) => done(Err(error)),
        }
    }

    fn receive_from_process(&self, transfer: RemoteTransfer, size: usize, done: Received) {
        match self.cluster_with(transfer.from) {
            Ok((cluster, peer)) => {
                run_apart("refcpu-receive", Box::new(move || done(cluster.receive(peer, transfer, size))));
            }
            Err(error) => done(Err(error)),
        }
    }
}

/// The compiler calls the host's partitioners, through `crate::call_partitioner`. Handlers are called with whole arrays, so
/// registrations of batch-partitionable calls are not needed.
impl CustomPartitioners for RefcpuClient {}

impl Shardings for RefcpuClient {
    fn parameter_shardings(executable: &Self::Executable) -> Option<Vec<Sharding>> {
        shardings(&executable.compiled).map(|[parameters, _]| parameters)
    }

    fn output_shardings(executable: &Self::Executable) -> Option<Vec<Sharding>> {
        shardings(&executable.compiled).map(|[_, outputs]| outputs)
    }
}

impl RawBuffers for RefcpuClient {
    fn write_raw(storage: &Arc<RefcpuBuffer>, offset: usize, data: HostBuffer) -> Result<Event> {
        match data.dense_bytes() {
            Some(bytes) => storage.write(offset, bytes)?,
            None => storage.write(offset, &data.to_vec()?)?,
        }
        Ok(Event::ready())
    }
}

/// Memory of refcpu's allocator. It has the alignment of arrays, so that an upload from it needs no copy.
pub struct HostMemory(Array);

impl AsMut<[u8]> for HostMemory {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut().unwrap_or_default()
    }
}

impl HostMemoryAllocator for RefcpuClient {
    type HostMemory = HostMemory;

    fn allocate_host_memory(&self, size: usize, _numa_node: Option<usize>) -> Result<HostMemory> {
        let array = Array::allocate(&self.runtime.allocator, DType::U8, [size].into());
        array.map(HostMemory).map_err(|error| out_of_memory(&error))
    }
}

impl ExecutableMetadata for RefcpuClient {
    /// Returns the plan as text.
    fn executable_metadata(executable: &RefcpuExecutable) -> Result<Vec<u8>> {
        Ok(executable.compiled.plan.program.to_string().into_bytes())
    }
}

/// The phase that rewrites a program of a host to the operations that refcpu compiles.
const CORE_OPS: &str = "core_ops";

/// The phase that compiles such a program to its plan as text, which no other phase accepts.
const PLAN: &str = "plan";

/// The format of StableHLO programs, as text or bytecode, and of plans as text.
const MLIR: &str = "mlir";
const PLAN_FORMAT: &str = "refcpu_plan_text";

impl PhaseCompile for RefcpuClient {
    fn phase_names() -> Vec<String> {
        [CORE_OPS, PLAN].map(str::to_owned).into()
    }

    fn run_phases(request: PhaseRequest<'_>) -> Result<Vec<PartialProgram>> {
        let PhaseRequest { phases, programs, options, .. } = request;
        let by_name = options.compiler_options(COMPILE_OPTIONS)?;
        // The plan is that of the whole program, and not of one partition.
        let options = CompileOptions { parts: Parts::Never, ..engine_options(options, &by_name, None)? };
        let through_all = |program| {
            phases.iter().try_fold(program, |program: PartialProgram, phase| {
                if program.format != MLIR {
                    let format = &program.format;
                    return Err(Error::invalid_argument(format!(
                        "the phase '{phase}' accepts programs in the format '{MLIR}', found '{format}'"
                    )));
                }
                let module = Program::new(ProgramFormat::Mlir, program.program).parse()?;
                let (bytes, format, consumers) = if phase == CORE_OPS {
                    let module = core_ops(&module, &options).map_err(|error| compile_error(&error))?;
                    (module.to_string().into_bytes(), MLIR, vec![CORE_OPS.to_owned(), PLAN.to_owned()])
                } else {
                    let compiled = compile(&module, &options).map_err(|error| compile_error(&error))?;
                    (compiled.plan.program.to_string().into_bytes(), PLAN_FORMAT, vec![])
                };
                Ok(PartialProgram {
                    program: bytes,
                    format: format.to_owned(),
                    producer_phase: phase.clone(),
                    consumer_phases: consumers,
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    name: program.name,
                })
            })
        };
        programs.into_iter().map(through_all).collect()
    }
}

/// refcpu never aborts the process itself, because panics are converted to errors. Hosts can invoke the callbacks.
impl Callbacks for RefcpuClient {
    fn prefatal_callbacks(&self) -> &PrefatalCallbacks {
        &self.prefatal_callbacks
    }
}
