//! The client of refcpu.

use crate::buffer::RefcpuBuffer;
use crate::config::{CPU_NAME, CREATE_OPTIONS, Config, PLATFORM_NAME};
use crate::device::RefcpuDevice;
use crate::device_memory::DeviceMemory;
use crate::executable::RefcpuExecutable;
use crate::executor::{Executor, run_apart};
use crate::host::is_inside_callback;
use crate::launch::{Loaded, WhereToRun, run};
use pjrt_plugin::ext::PrefatalCallbacks;
use pjrt_plugin::{
    BufferRef, ClientConfig, CompileRequest, DeserializeRequest, DeviceAssignment, Error, Execution,
    HostBuffer, HostView, OptionSpec, Pending, PjrtClient, Placement, PluginAttributes, ProgramFormat,
    Result, pjrt_plugin,
};
use refcpu_engine::exec::{Rendezvous, Runtime};
use refcpu_engine::storage::Allocator;
use refcpu_kernels::Pool;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// The client, which presents the machine as a set of virtual devices.
pub struct RefcpuClient {
    devices: Vec<RefcpuDevice>,
    /// The memory of each device, in the order of `devices`.
    memories: Arc<[Arc<DeviceMemory>]>,
    /// The executor of each device, in the order of `devices`.
    executors: Vec<Arc<Executor>>,
    /// The executor of each device for programs that call the host. Programs that the host runs during such a call use
    /// `executors`, which avoids deadlocks.
    host_executors: Vec<Arc<Executor>>,
    /// `true` if the platform has the name of JAX's CPU backend.
    as_cpu: bool,
    /// `true` if launches of programs that call the host return before the program ends.
    async_callbacks: bool,
    pub(crate) runtime: Arc<Runtime>,
    /// The collectives of programs that the host launches on one device at a time.
    rendezvous: Rendezvous,
    /// The host's callbacks for fatal errors.
    pub(crate) prefatal_callbacks: PrefatalCallbacks,
}

impl RefcpuClient {
    fn position(&self, device: i32) -> Result<usize> {
        // Ids are indices, because `create` numbers devices from 0.
        usize::try_from(device)
            .ok()
            .filter(|position| *position < self.devices.len())
            .ok_or_else(|| Error::invalid_argument(format!("refcpu has no device with the id {device}")))
    }
}

impl RefcpuClient {
    /// Runs a program that calls the host. Unless the configuration has asynchronous callbacks, the function returns when the
    /// program has ended.
    ///
    /// # Errors
    /// Returns the error with which the program ended. With asynchronous callbacks, the outputs have it.
    fn execute_with_callbacks(
        &self,
        device: usize,
        loaded: Arc<Loaded>,
        execution: Execution<RefcpuBuffer>,
    ) -> Result<()> {
        let runtime = Arc::clone(&self.runtime);
        // The job owns the sender. It is dropped when the job ends, or if the job never starts because an argument failed.
        let (failure, failed) = channel();
        let job = move |ready| {
            if let Some(error) = run(&runtime, &loaded, ready, None) {
                let _ = failure.send(error);
            }
        };
        if is_inside_callback() {
            // The queue is blocked by the call of the host during which this program is run.
            execution.when_ready(move |ready| run_apart("refcpu-nested", Box::new(move || job(ready))));
        } else {
            let executor = Arc::clone(&self.host_executors[device]);
            execution.when_ready(move |ready| executor.submit(Box::new(move || job(ready))));
        }
        if self.async_callbacks {
            return Ok(());
        }
        failed.recv().map_or(Ok(()), Err)
    }
}

#[pjrt_plugin]
impl PjrtClient for RefcpuClient {
    type Device = RefcpuDevice;
    type Buffer = RefcpuBuffer;
    type Executable = RefcpuExecutable;
    type Loaded = Arc<Loaded>;

    const PLATFORM_NAME: &'static str = PLATFORM_NAME;
    const PLATFORM_ALIASES: &'static [&'static str] = &[CPU_NAME];
    const CREATE_OPTIONS: &'static [OptionSpec] = CREATE_OPTIONS;
    const PROGRAM_FORMATS: &'static [ProgramFormat] =
        &[ProgramFormat::Mlir, ProgramFormat::Hlo, ProgramFormat::HloWithConfig];

    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new().with_stablehlo_versions()
    }

    fn create(config: ClientConfig) -> Result<Self> {
        let config = Config::new(&config.options)?;
        let allocator = Allocator::new(config.allocator);
        let memory = |id| Arc::new(DeviceMemory::new(id, config.memory_limit, allocator.clone()));
        let memories: Arc<[_]> = (0..config.num_devices).map(memory).collect();
        let executors = |name: &str| {
            (0..config.num_devices).map(|id| Arc::new(Executor::new(format!("{name}-{id}")))).collect()
        };
        Ok(Self {
            devices: memories
                .iter()
                .map(|memory| RefcpuDevice::new(config.as_cpu, config.opaque, Arc::clone(memory)))
                .collect(),
            memories,
            executors: executors("refcpu"),
            host_executors: executors("refcpu-host"),
            as_cpu: config.as_cpu,
            async_callbacks: config.async_callbacks,
            runtime: Arc::new(Runtime::new(Pool::new(config.num_threads), allocator)),
            rendezvous: Rendezvous::new(config.collective_timeout),
            prefatal_callbacks: PrefatalCallbacks::new(),
        })
    }

    fn devices(&self) -> &[RefcpuDevice] {
        &self.devices
    }

    fn platform_name(&self) -> &str {
        if self.as_cpu { CPU_NAME } else { PLATFORM_NAME }
    }

    fn platform_version(&self) -> String {
        format!("refcpu {}", env!("CARGO_PKG_VERSION"))
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<RefcpuExecutable> {
        RefcpuExecutable::compile(request)
    }

    fn deserialize(request: DeserializeRequest<'_, Self>) -> Result<RefcpuExecutable> {
        RefcpuExecutable::deserialize(request)
    }

    fn load(&self, executable: &Arc<RefcpuExecutable>, assignment: &DeviceAssignment) -> Result<Arc<Loaded>> {
        for device in assignment.devices() {
            self.position(*device)?;
        }
        Ok(Arc::new(Loaded::new(Arc::clone(executable), assignment.clone(), &self.memories)))
    }

    fn execute(&self, loaded: &Arc<Loaded>, execution: Execution<RefcpuBuffer>) -> Result<()> {
        let first = execution.devices().first().copied();
        let device = match first {
            Some(device) => self.position(device)?,
            None => {
                return Err(Error::invalid_argument("the execution has no devices; expected at least one"));
            }
        };
        let (runtime, loaded) = (Arc::clone(&self.runtime), Arc::clone(loaded));
        if let Some(peers) = loaded.join(&self.rendezvous, execution.devices()) {
            // The launch may wait for launches that are behind others in the queues of their devices, so it has its own thread.
            execution.when_ready(move |ready| {
                let job = move || drop(run(&runtime, &loaded, ready, Some(peers)));
                run_apart("refcpu-replica", Box::new(job));
            });
            return Ok(());
        }
        loaded.check_limits(execution.devices())?;
        let executor = match loaded.where_to_run() {
            WhereToRun::Caller => {
                execution.when_ready(move |ready| drop(run(&runtime, &loaded, ready, None)));
                return Ok(());
            }
            WhereToRun::HostQueue => {
                return self.execute_with_callbacks(device, loaded, execution);
            }
            WhereToRun::Queue => Arc::clone(&self.executors[device]),
        };
        execution.when_ready(move |ready| {
            executor.submit(Box::new(move || drop(run(&runtime, &loaded, ready, None))))
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<RefcpuBuffer>> {
        RefcpuBuffer::from_host(data, to.device.memory(), to.memory.kind()).map(Pending::from)
    }

    fn view_host_memory(&self, view: HostView, to: Placement<'_, Self>) -> Result<RefcpuBuffer> {
        RefcpuBuffer::from_view(view, to.device.memory())
    }

    fn copy_buffer(
        &self,
        from: BufferRef<'_, Self>,
        to: Placement<'_, Self>,
    ) -> Result<Pending<RefcpuBuffer>> {
        // All devices share the machine's memory.
        from.storage.copy(&from, to.device.memory(), to.memory.kind()).map(Pending::from)
    }
}
