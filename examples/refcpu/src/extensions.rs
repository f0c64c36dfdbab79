//! The extensions of refcpu, except Shardings.

use crate::buffer::RefcpuBuffer;
use crate::client::RefcpuClient;
use crate::config::COMPILE_OPTIONS;
use crate::errors::{compile_error, out_of_memory};
use crate::executable::{RefcpuExecutable, engine_options};
use pjrt_plugin::ext::{
    Callbacks, CrossHostTransfers, ExecutableMetadata, Ffi, HostMemoryAllocator, PartialProgram,
    PhaseCompile, PhaseRequest, PrefatalCallbacks, Profiler, RawBuffers,
};
use pjrt_plugin::{Error, Event, HostBuffer, Result};
use refcpu_engine::compile::{CompileOptions, Parts, compile, core_ops};
use refcpu_engine::storage::Array;
use refcpu_kernels::DType;
use std::sync::Arc;

/// What a device does happens on threads of the host, so the spans of `refcpu_engine::trace` are all there is to record.
impl Profiler for RefcpuClient {}

/// `crate::host` runs the handlers.
impl Ffi for RefcpuClient {}

/// All devices of a client are in its process.
impl CrossHostTransfers for RefcpuClient {}

impl RawBuffers for RefcpuClient {
    fn write_raw(storage: &Arc<RefcpuBuffer>, offset: usize, data: HostBuffer) -> Result<Event> {
        match data.dense_bytes() {
            Some(bytes) => storage.write(offset, bytes)?,
            None => storage.write(offset, &data.to_vec()?)?,
        }
        Ok(Event::ready())
    }
}

/// Memory of refcpu's allocator: aligned as arrays are, so that an upload from it need not copy.
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
    /// The plan as text.
    fn executable_metadata(executable: &RefcpuExecutable) -> Result<Vec<u8>> {
        Ok(executable.compiled.plan.program.to_string().into_bytes())
    }
}

/// From a program as hosts send it to one in the operations that refcpu compiles.
const CORE_OPS: &str = "core_ops";

/// From such a program to its plan, as text: for people, no phase takes it.
const PLAN: &str = "plan";

/// The format of StableHLO programs, text or bytecode, and that of plans as text.
const MLIR: &str = "mlir";
const PLAN_FORMAT: &str = "refcpu_plan_text";

impl PhaseCompile for RefcpuClient {
    fn phase_names() -> Vec<String> {
        [CORE_OPS, PLAN].map(str::to_owned).into()
    }

    fn run_phases(request: PhaseRequest<'_>) -> Result<Vec<PartialProgram>> {
        let PhaseRequest { phases, programs, options, .. } = request;
        let by_name = options.compiler_options(COMPILE_OPTIONS)?;
        // The plan of the whole program, of which a run can still make that of a part.
        let options = CompileOptions { parts: Parts::Never, ..engine_options(options, &by_name, None)? };
        let through_all = |program| {
            phases.iter().try_fold(program, |program: PartialProgram, phase| {
                if program.format != MLIR {
                    let format = &program.format;
                    return Err(Error::invalid_argument(format!(
                        "the phase '{phase}' takes programs of the format '{MLIR}', not '{format}'"
                    )));
                }
                let module = pjrt_stablehlo::parse(program.program.as_slice()).map_err(|error| {
                    Error::invalid_argument(format!("the program cannot be read: {error}"))
                })?;
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

/// refcpu itself never ends the process: panics become errors. Hosts can invoke the callbacks, as the extension says.
impl Callbacks for RefcpuClient {
    fn prefatal_callbacks(&self) -> &PrefatalCallbacks {
        &self.prefatal_callbacks
    }
}
