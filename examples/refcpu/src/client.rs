//! The client of refcpu.

use crate::buffer::RefcpuBuffer;
use crate::cluster::{Cluster, Launch};
use crate::config::{CPU_NAME, CREATE_OPTIONS, Config, PLATFORM_NAME};
use crate::device::{Place, RefcpuDevice};
use crate::device_memory::DeviceMemory;
use crate::executable::RefcpuExecutable;
use crate::executor::{Executor, run_apart};
use crate::host::is_inside_callback;
use crate::launch::{Loaded, WhereToRun, With, run};
use pjrt_plugin::distributed::Processes;
use pjrt_plugin::ext::PrefatalCallbacks;
use pjrt_plugin::{
    BufferRef, ClientConfig, CompileRequest, DeserializeRequest, DeviceAssignment, DeviceDescription, Error,
    Execution, HostBuffer, HostView, OptionSpec, Pending, PjrtClient, PjrtDevice, Placement,
    PluginAttributes, ProcessInfo, ProgramFormat, ReadyExecution, Result, pjrt_plugin,
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
    /// The index of this process.
    process: usize,
    /// The connections to the other processes of the computation, if there are any.
    cluster: Option<Arc<Cluster>>,
    /// The executor of programs that communicate with other processes. They run in the order of their launches, which is the same
    /// on all processes.
    network_executor: Executor,
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
    /// Returns the connections to other processes, and the process of a device.
    ///
    /// # Errors
    /// Returns INVALID_ARGUMENT if there is no such device or no other process.
    pub(crate) fn cluster_with(&self, device: i32) -> Result<(Arc<Cluster>, usize)> {
        let process = self.devices[self.position(device)?].description().process_index() as usize;
        let cluster = self.cluster.as_ref().filter(|_| process != self.process).ok_or_else(|| {
            Error::invalid_argument(format!("the device {device} does not belong to another process"))
        })?;
        Ok((Arc::clone(cluster), process))
    }

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
            if let Some(error) = run(&runtime, &loaded, ready, With::None) {
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

    /// Runs a program that communicates with other processes, after those that were launched before it. A short one runs on the
    /// caller's thread if it can start at once, as on XLA's CPU backend: passing it to another thread would take as long as the
    /// communication.
    ///
    /// # Errors
    /// Returns the error with which a program that calls the host ended, unless the configuration has asynchronous callbacks.
    fn execute_between_processes(
        &self,
        loaded: Arc<Loaded>,
        launch: Launch,
        execution: Execution<RefcpuBuffer>,
    ) -> Result<()> {
        let runtime = Arc::clone(&self.runtime);
        let can_run_here = loaded.where_to_run() == WhereToRun::Caller
            && !is_inside_callback()
            && self.network_executor.is_idle();
        let is_waited_for = loaded.where_to_run() == WhereToRun::HostQueue && !self.async_callbacks;
        let (sender, ready) = channel();
        let failed = sender.clone();
        execution.when_ready_or(
            move |ready| drop(sender.send(Ok(ready))),
            move |error| drop(failed.send(Err(error.clone()))),
        );
        let start = move |launch: Launch, ready: Result<ReadyExecution<RefcpuBuffer>>| match ready {
            Ok(ready) => run(&runtime, &loaded, ready, With::Launch(launch)),
            Err(error) => {
                launch.finish(Err(&error.clone().context("an argument is in error")));
                Some(error)
            }
        };
        if can_run_here && let Ok(ready) = ready.try_recv() {
            drop(start(launch, ready));
            return Ok(());
        }
        let (failure, failed) = channel();
        let job = Box::new(move || {
            // The execution is dropped if the host destroys the client. The launch then fails on all processes.
            if let Ok(ready) = ready.recv()
                && let Some(error) = start(launch, ready)
            {
                let _ = failure.send(error);
            }
        });
        if is_inside_callback() {
            // The queue is blocked by the program that has called the host.
            run_apart("refcpu-nested", job);
        } else {
            self.network_executor.submit(job);
        }
        if is_waited_for { failed.recv().map_or(Ok(()), Err) } else { Ok(()) }
    }
}

/// Connects this process to the others. Returns the places of all devices.
fn connect(processes: &Processes, num_devices: i32) -> Result<(Arc<Cluster>, Vec<Place>)> {
    let local: Vec<_> = (0..num_devices).map(|id| DeviceDescription::new(id, PLATFORM_NAME)).collect();
    let (cluster, devices) = Cluster::connect(processes, &local)?;
    let own = processes.index() as i32;
    let mut number = 0..;
    let place = |device: &DeviceDescription| {
        let process = device.process_index();
        Place { process, number: if process == own { number.next() } else { None } }
    };
    Ok((cluster, devices.iter().map(place).collect()))
}

#[pjrt_plugin]
impl PjrtClient for RefcpuClient {
    type Device = RefcpuDevice;
    type Buffer = RefcpuBuffer;
    type Executable = RefcpuExecutable;
    type Loaded = Arc<Loaded>;

    const PLATFORM_NAME: &'static str = PLATFORM_NAME;
    const MULTI_PROCESS: bool = true;
    const PLATFORM_ALIASES: &'static [&'static str] = &[CPU_NAME];
    const CREATE_OPTIONS: &'static [OptionSpec] = CREATE_OPTIONS;
    const PROGRAM_FORMATS: &'static [ProgramFormat] =
        &[ProgramFormat::Mlir, ProgramFormat::Hlo, ProgramFormat::HloWithConfig];

    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new().with_stablehlo_versions()
    }

    fn create(config: ClientConfig) -> Result<Self> {
        let processes = Processes::join(&config, PLATFORM_NAME)?;
        let config = Config::new(&config.options)?;
        let (process, cluster, places) = match &processes {
            Some(processes) => {
                let (cluster, places) = connect(processes, config.num_devices)?;
                (processes.index(), Some(cluster), places)
            }
            None => {
                let place = |number| Place { process: 0, number: Some(number) };
                (0, None, (0..config.num_devices).map(place).collect())
            }
        };
        let allocator = Allocator::new(config.allocator);
        let memory = |id| Arc::new(DeviceMemory::new(id, config.memory_limit, allocator.clone()));
        let memories: Arc<[_]> = (0..).take(places.len()).map(memory).collect();
        let executors = |name: &str| {
            (0..places.len()).map(|id| Arc::new(Executor::new(format!("{name}-{id}")))).collect()
        };
        let device = |(memory, place): (&Arc<DeviceMemory>, &Place)| {
            RefcpuDevice::new(config.as_cpu, config.opaque, Arc::clone(memory), *place)
        };
        Ok(Self {
            devices: memories.iter().zip(&places).map(device).collect(),
            executors: executors("refcpu"),
            host_executors: executors("refcpu-host"),
            memories,
            as_cpu: config.as_cpu,
            async_callbacks: config.async_callbacks,
            runtime: Arc::new(Runtime::new(Pool::new(config.num_threads), allocator)),
            rendezvous: Rendezvous::new(config.collective_timeout),
            process,
            cluster,
            network_executor: Executor::new("refcpu-network".to_owned()),
            prefatal_callbacks: PrefatalCallbacks::new(),
        })
    }

    fn process_index(&self) -> i32 {
        self.process as i32
    }

    fn process_info_changed(&self, processes: &[ProcessInfo]) {
        if let Some(cluster) = &self.cluster {
            cluster.processes_changed(processes);
        }
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
        let mut processes = Vec::with_capacity(assignment.devices().len());
        for device in assignment.devices() {
            let device = &self.devices[self.position(*device)?];
            processes.push(device.description().process_index() as usize);
        }
        let (executable, assignment) = (Arc::clone(executable), assignment.clone());
        Loaded::new(executable, assignment, &self.memories, self.process, processes).map(Arc::new)
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
        if let (Some(cluster), Some(spanning)) = (&self.cluster, loaded.communicates_between_processes()) {
            let launch = cluster.launch(spanning, loaded.name());
            if let Err(error) = loaded.check_limits(execution.devices()) {
                let own = error.clone();
                self.network_executor.submit(Box::new(move || launch.finish(Err(&own))));
                return Err(error);
            }
            return self.execute_between_processes(loaded, launch, execution);
        }
        if let Some(peers) = loaded.join(&self.rendezvous, execution.devices()) {
            // The launch may wait for launches that are behind others in the queues of their devices, so it has its own thread.
            execution.when_ready(move |ready| {
                let job = move || drop(run(&runtime, &loaded, ready, With::Peers(peers)));
                run_apart("refcpu-replica", Box::new(job));
            });
            return Ok(());
        }
        loaded.check_limits(execution.devices())?;
        let executor = match loaded.where_to_run() {
            WhereToRun::Caller => {
                execution.when_ready(move |ready| drop(run(&runtime, &loaded, ready, With::None)));
                return Ok(());
            }
            WhereToRun::HostQueue => {
                return self.execute_with_callbacks(device, loaded, execution);
            }
            WhereToRun::Queue => Arc::clone(&self.executors[device]),
        };
        execution.when_ready(move |ready| {
            executor.submit(Box::new(move || drop(run(&runtime, &loaded, ready, With::None))))
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
