//! The client, which is the root of a plugin, and the arguments of its methods.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::attributes::PluginAttributes;
use crate::buffer::PjrtBuffer;
use crate::compile_options::CompileOptions;
use crate::core::packed;
use crate::core::panic_guard;
use crate::core::promise::{Pending, promise};
use crate::device::{DeviceId, PjrtDevice};
use crate::device_assignment::DeviceAssignment;
use crate::element_type::ElementType;
use crate::error::{Error, Result};
use crate::executable::PjrtExecutable;
use crate::execution::Execution;
use crate::host_buffer::{CopyToHost, HostBuffer};
use crate::host_view::{HostView, ReadsViews, sealed};
use crate::kv_store::KeyValueStore;
use crate::layout::Layout;
use crate::memory::Memory;
use crate::options::{OptionSpec, Options};
use crate::program::{Program, ProgramFormat};
use crate::shape::Shape;
use crate::topology::Topology;

/// A plugin (`PJRT_Client`): its options, devices, compiler, executions and uploads.
///
/// The methods may be called from several threads concurrently. No lock of the SDK is held during a call. A panic in a method is
/// converted to an INTERNAL error.
///
/// The [example](crate#an-example) of the crate implements the required methods. This client also implements the optional
/// ones:
///
/// ```
/// # use std::sync::Arc;
/// use std::collections::HashMap;
/// use std::sync::Mutex;
///
/// use pjrt_plugin::*;
/// # struct Chip(DeviceDescription, [Memory; 1]);
/// # impl PjrtDevice for Chip {
/// #     fn description(&self) -> &DeviceDescription { &self.0 }
/// #     fn memories(&self) -> &[Memory] { &self.1 }
/// # }
/// # impl Chip {
/// #     fn new(id: i32, process: i32) -> Self {
/// #         let memory = Memory::new(id, Memory::DEVICE).with_host_access();
/// #         Self(DeviceDescription::new(id, "chip").with_process_index(process), [memory])
/// #     }
/// # }
/// # enum Storage { Own(Vec<u8>), View(HostView) }
/// # impl Storage {
/// #     fn bytes(&self) -> &[u8] { if let Self::Own(bytes) = self { bytes } else { &[] } }
/// # }
/// # impl PjrtBuffer for Storage {
/// #     fn size_in_bytes(&self) -> usize { self.bytes().len() }
/// #     fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
/// #         match &*self {
/// #             Self::Own(bytes) => copy.finish_with(bytes),
/// #             Self::View(view) => copy.finish_with_view(view),
/// #         }
/// #     }
/// #     fn host_view(&self) -> Option<&HostView> { if let Self::View(view) = self { Some(view) } else { None } }
/// # }
/// # struct Code(Vec<u8>, Signature);
/// # impl PjrtExecutable for Code {
/// #     fn signature(&self) -> &Signature { &self.1 }
/// # }
///
/// struct Chips {
///     chips: Vec<Chip>,
///     process: i32,
///     /// The host memory that is mapped for direct transfers: sizes by address.
///     mapped: Mutex<HashMap<usize, usize>>,
/// }
///
/// const NUM_CHIPS: OptionSpec = OptionSpec::integer("num_chips", 2, "the number of chips of each process");
///
/// impl PjrtClient for Chips {
///     type Device = Chip;
///     type Buffer = Storage;
///     type Executable = Code;
///     type Loaded = Arc<Code>;
///
///     const PLATFORM_NAME: &'static str = "chips";
///     const CREATE_OPTIONS: &'static [OptionSpec] = &[NUM_CHIPS];
///     const TOPOLOGY_OPTIONS: &'static [OptionSpec] = &[NUM_CHIPS];
///     const PROGRAM_FORMATS: &'static [ProgramFormat] = &[ProgramFormat::Mlir, ProgramFormat::Hlo];
///     const MULTI_PROCESS: bool = true;
///
///     fn initialize() -> Result<()> {
///         // Load the driver here.
///         Ok(())
///     }
///
///     fn plugin_attributes() -> PluginAttributes {
///         PluginAttributes::new().with_stablehlo_current_version([1, 13, 0])
///     }
///
///     fn create(config: ClientConfig) -> Result<Self> {
///         let (num_chips, process) = (config.options.integer("num_chips")? as i32, config.node_id as i32);
///         if let Some(store) = &config.kv_store {
///             store.put(&format!("chips/{process}"), b"ready")?;
///         }
///         let ids = 0..num_chips * config.num_nodes as i32;
///         let chips = ids.map(|id| Chip::new(id, id / num_chips)).collect();
///         Ok(Self { chips, process, mapped: Mutex::default() })
///     }
///
///     fn devices(&self) -> &[Chip] {
///         &self.chips
///     }
///
///     fn platform_version(&self) -> String {
///         "driver 2.1, compiler 7".to_owned()
///     }
///
///     fn process_index(&self) -> i32 {
///         self.process
///     }
///
///     fn default_device_assignment(&self, replicas: usize, partitions: usize) -> Result<DeviceAssignment> {
///         DeviceAssignment::new(replicas, partitions, (0..(replicas * partitions) as i32).collect())
///     }
///
///     fn topology(&self) -> Topology {
///         Topology::of_devices(Self::PLATFORM_NAME, self.platform_version(), &self.chips)
///     }
///
///     fn create_topology(name: &str, options: &Options) -> Result<Topology> {
///         if name != "row" {
///             return Err(Error::invalid_argument(format!("the topology '{name}' is unknown; expected 'row'")));
///         }
///         let chips: Vec<Chip> = (0..options.integer("num_chips")? as i32).map(|id| Chip::new(id, 0)).collect();
///         Ok(Topology::of_devices(Self::PLATFORM_NAME, "compiler 7", &chips))
///     }
///
///     fn map_host_memory(&self, address: usize, size: usize) -> Result<()> {
///         self.mapped.lock().unwrap().insert(address, size);
///         Ok(())
///     }
///
///     fn unmap_host_memory(&self, address: usize) -> Result<()> {
///         let size = self.mapped.lock().unwrap().remove(&address);
///         size.map(drop).ok_or_else(|| Error::invalid_argument(format!("no memory is mapped at {address:#x}")))
///     }
///
///     fn process_info_changed(&self, processes: &[ProcessInfo]) {
///         for process in processes.iter().filter(|process| process.state == ProcessState::Error) {
///             eprintln!("process {} failed: {:?}", process.task_id, process.error);
///         }
///     }
///
///     fn process_exit(&self) {
///         // Release the lock on the chips here.
///     }
///
///     fn compile(request: CompileRequest<'_, Self>) -> Result<Code> {
///         Ok(Code(request.program.code().to_vec(), Signature::new("main", [], [])))
///     }
///
///     fn deserialize(request: DeserializeRequest<'_, Self>) -> Result<Code> {
///         Ok(Code(request.serialized.to_vec(), Signature::new("main", [], [])))
///     }
///
///     fn load(&self, executable: &Arc<Code>, _: &DeviceAssignment) -> Result<Arc<Code>> {
///         Ok(Arc::clone(executable))
///     }
///
///     fn execute(&self, _: &Arc<Code>, execution: Execution<Storage>) -> Result<()> {
///         execution.fail(Error::unimplemented("this example has no interpreter"));
///         Ok(())
///     }
///
///     fn buffer_from_host(&self, data: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
///         Ok(Pending::from(Storage::Own(data.to_vec()?)))
///     }
///
///     fn view_host_memory(&self, view: HostView, _: Placement<'_, Self>) -> Result<Storage> {
///         Ok(Storage::View(view))
///     }
///
///     fn copy_buffer(&self, from: BufferRef<'_, Self>, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
///         Ok(Pending::from(Storage::Own(match &**from.storage {
///             Storage::Own(bytes) => bytes.clone(),
///             Storage::View(view) => view.lease(&from).bytes().to_vec(),
///         })))
///     }
///
///     fn bitcast_buffer(
///         &self,
///         from: BufferRef<'_, Self>,
///         to: Placement<'_, Self>,
///         _: ElementType,
///         _: &[i64],
///     ) -> Result<Pending<Storage>> {
///         // The bytes of a dense, row-major array do not depend on its type.
///         self.copy_buffer(from, to)
///     }
/// }
/// # api_table!(Chips);
/// ```
pub trait PjrtClient: Sized + Send + Sync + 'static {
    /// A device.
    type Device: PjrtDevice;
    /// The storage of an array on a device.
    type Buffer: PjrtBuffer;
    /// A compiled program.
    type Executable: PjrtExecutable;
    /// A program that is loaded on devices: the data that [`execute`](Self::execute) needs. Use an `Arc` if executions need
    /// a share of it.
    type Loaded: Send + Sync + 'static;

    /// The name of the platform, in lower case. JAX selects lowering rules by it.
    const PLATFORM_NAME: &'static str;

    /// The other names that [`platform_name`](Self::platform_name) returns: those of platforms whose client this one can replace.
    /// The plugin reads topologies that its clients serialized under any of its names.
    const PLATFORM_ALIASES: &'static [&'static str] = &[];

    /// The options of [`create`](Self::create).
    const CREATE_OPTIONS: &'static [OptionSpec] = &[];

    /// The options of [`create_topology`](Self::create_topology).
    const TOPOLOGY_OPTIONS: &'static [OptionSpec] = &[];

    /// The program formats that [`compile`](Self::compile) supports. The SDK rejects programs in other formats.
    const PROGRAM_FORMATS: &'static [ProgramFormat] = &[ProgramFormat::Mlir];

    /// Support for computations of several processes. If it is `true`, [`create`](Self::create) joins the other processes
    /// with [`Processes::join`](crate::distributed::Processes::join), [`devices`](Self::devices) returns the devices of all processes, and
    /// [`process_index`](Self::process_index) returns the index of this process. If it is `false`, `PJRT_Client_Create` with
    /// several processes fails with UNIMPLEMENTED, because otherwise each process would run the whole computation alone,
    /// without an error.
    const MULTI_PROCESS: bool = false;

    /// The time that launches of a program on single devices wait for the launches on its other devices, if the devices
    /// [communicate](PjrtExecutable::devices_communicate). After this time, the launches fail with DEADLINE_EXCEEDED.
    const JOINT_LAUNCH_TIMEOUT: Duration = Duration::from_secs(60);

    /// The maximum number of launches in flight on each device; `None`, the default, is no limit. A host that never waits for its
    /// results submits launches faster than a device with a queue executes them, and each launch occupies memory. At the limit,
    /// `PJRT_LoadedExecutable_Execute` waits until the oldest launch on the device has finished.
    ///
    /// The SDK does not wait for a launch while it, or a launch before it, needs an action of the host: data that the host has not
    /// provided yet (transfer managers, aliases, control dependencies, arrays from other clients), an answer of a callback
    /// ([`Execution::host_callbacks`]), or the launches on the other devices of its program. The number of launches can then
    /// exceed the limit. An input that the device is still computing or copying is no such action. Do not set a limit if programs
    /// call host code through [`Ffi`](crate::ext::Ffi) that launches programs.
    const MAX_LAUNCHES_IN_FLIGHT: Option<usize> = None;

    /// Initializes the plugin (`PJRT_Plugin_Initialize`). Hosts call it once, before all other functions. The default does
    /// nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the plugin cannot be used, for example because a driver is missing.
    fn initialize() -> Result<()> {
        Ok(())
    }

    /// Returns the attributes of the plugin (`PJRT_Plugin_Attributes`). The SDK calls it once.
    ///
    /// The default has no version of StableHLO, so JAX sends programs of a version that is months old. The SDK cannot know the
    /// version that the plugin's compiler reads. With `pjrt-stablehlo`, return
    /// `PluginAttributes::new().with_stablehlo_current_version(pjrt_stablehlo::versions::CURRENT_VERSION.components())`.
    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new()
    }

    /// Creates a client (`PJRT_Client_Create`).
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the value of an option is invalid, or any other error if the devices cannot be used. The
    /// SDK has already checked the names and types of the options.
    fn create(config: ClientConfig) -> Result<Self>;

    /// Returns the devices of all processes (`PJRT_Client_Devices`). Every call must return the same devices in the same
    /// order. The ids must be distinct, and at least one device must be addressable; otherwise `PJRT_Client_Create` fails
    /// with INTERNAL.
    fn devices(&self) -> &[Self::Device];

    /// Returns the device with an id, such as one of [`Execution::devices`](crate::Execution::devices). This method is for the
    /// plugin itself; the SDK does not call it.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if there is no such device.
    fn device(&self, id: DeviceId) -> Result<&Self::Device> {
        let found = self.devices().iter().find(|device| device.description().id() == id);
        found.ok_or_else(|| {
            let platform = Self::PLATFORM_NAME;
            Error::invalid_argument(format!(
                "the client of the plugin '{platform}' has no device with the id {id}"
            ))
        })
    }

    /// Returns the name of the platform for hosts (`PJRT_Client_PlatformName`). The default returns
    /// [`PLATFORM_NAME`](Self::PLATFORM_NAME). A client that replaces the one of another platform returns that platform's name,
    /// because hosts choose features by it; the name is one of [`PLATFORM_ALIASES`](Self::PLATFORM_ALIASES).
    fn platform_name(&self) -> &str {
        Self::PLATFORM_NAME
    }

    /// Returns a description of the platform, such as the versions of driver, compiler and hardware
    /// (`PJRT_Client_PlatformVersion`). Hosts include it in the keys of their compilation caches. The SDK calls it once.
    fn platform_version(&self) -> String;

    /// Returns the index of this process (`PJRT_Client_ProcessIndex`). The SDK calls it once. The default returns 0.
    fn process_index(&self) -> i32 {
        0
    }

    /// Returns the devices of a program for which the host specifies none (`PJRT_Client_DefaultDeviceAssignment`). The
    /// default returns the devices with the smallest ids, in ascending order.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if there are fewer than `replicas * partitions` devices, or if that product is zero.
    fn default_device_assignment(&self, replicas: usize, partitions: usize) -> Result<DeviceAssignment> {
        in_order_assignment(self.devices(), replicas, partitions)
    }

    /// Returns the devices as a topology (`PJRT_Client_TopologyDescription`). The SDK calls it once. The default describes
    /// [`devices`](Self::devices).
    fn topology(&self) -> Topology {
        Topology::of_devices(self.platform_name(), self.platform_version(), self.devices())
    }

    /// Creates a topology from a name and the [options](Self::TOPOLOGY_OPTIONS) (`PJRT_TopologyDescription_Create`). Its
    /// devices need not exist; programs can be compiled for them without a client.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the name is unknown. The default returns UNIMPLEMENTED.
    fn create_topology(name: &str, options: &Options) -> Result<Topology> {
        let _ = options;
        let platform = Self::PLATFORM_NAME;
        Err(Error::unimplemented(format!(
            "the plugin '{platform}' does not create topologies by name; found the name '{name}'"
        ))
        .with_hint("use the topology of a client (PJRT_Client_TopologyDescription)"))
    }

    /// Maps the `size` bytes of host memory at `address` for direct transfers, until
    /// [`unmap_host_memory`](Self::unmap_host_memory) (`PJRT_Client_DmaMap`). The host owns the memory, and keeps it
    /// allocated until then.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be mapped. The default returns UNIMPLEMENTED.
    fn map_host_memory(&self, address: usize, size: usize) -> Result<()> {
        let _ = (address, size);
        Err(Error::unimplemented(format!(
            "the plugin '{}' does not support mapping host memory",
            Self::PLATFORM_NAME
        )))
    }

    /// Removes a mapping of [`map_host_memory`](Self::map_host_memory) (`PJRT_Client_DmaUnmap`).
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if no mapping begins at the address. The default returns UNIMPLEMENTED.
    fn unmap_host_memory(&self, address: usize) -> Result<()> {
        let _ = address;
        Err(Error::unimplemented(format!(
            "the plugin '{}' does not support mapping host memory",
            Self::PLATFORM_NAME
        )))
    }

    /// Notifies the client of the states of the processes of a distributed computation
    /// (`PJRT_Client_UpdateGlobalProcessInfo`). The default does nothing.
    fn process_info_changed(&self, processes: &[ProcessInfo]) {
        let _ = processes;
    }

    /// Notifies the client that the process exits before the client is dropped, because some hosts, such as PyTorch/XLA,
    /// never destroy their clients. The client should release resources that outlive a process, such as a lock on a device.
    /// Other threads may still be running, even inside methods of the client. The SDK does not call this method if the
    /// client has been dropped, or in a forked child. The default does nothing.
    fn process_exit(&self) {}

    /// Compiles a program (`PJRT_Compile`, and the first step of `PJRT_Client_Compile`).
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the program is invalid, or UNIMPLEMENTED if the plugin does not support the program. The
    /// message should contain the operation and its location.
    fn compile(request: CompileRequest<'_, Self>) -> Result<Self::Executable>;

    /// Deserializes the bytes of [`PjrtExecutable::serialize`] (`PJRT_Executable_DeserializeAndLoad`). The default compiles
    /// the program again. Before the call, the SDK verifies a checksum of the bytes, and returns DATA_LOSS to the host if
    /// they are damaged.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the bytes are invalid, or FAILED_PRECONDITION if they are of another version or for
    /// another machine.
    fn deserialize(request: DeserializeRequest<'_, Self>) -> Result<Self::Executable> {
        Self::compile(request.compile)
    }

    /// Loads a program on devices (`PJRT_Client_Load`, and the second step of `PJRT_Client_Compile`). If the program was
    /// compiled as [portable](CompileOptions::compile_portable_executable), the assignment is the default one, and the host
    /// can choose any addressable device for each execution. If the host runs several processes, all devices of the assignment
    /// may belong to others; such a program is never executed.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory, or any other error that prevents loading.
    fn load(&self, executable: &Arc<Self::Executable>, assignment: &DeviceAssignment)
    -> Result<Self::Loaded>;

    /// Runs a program (`PJRT_LoadedExecutable_Execute`). The execution contains the inputs and the promise of the outputs.
    /// The execution can be completed before this method returns, or moved to another thread or queue and completed later.
    ///
    /// # Errors
    ///
    /// Returns an error if the execution cannot be started. The host receives the error immediately. In that case, the
    /// method must not have moved the execution to another thread or queue.
    fn execute(&self, loaded: &Self::Loaded, execution: Execution<Self::Buffer>) -> Result<()>;

    /// Uploads an array of the host to a device (`PJRT_Client_BufferFromHostBuffer`).
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory, or UNIMPLEMENTED if the device does not support the element
    /// type.
    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<Self::Buffer>>;

    /// Creates a buffer over host memory that the host may continue to write to (`PJRT_Client_CreateViewOfDeviceBuffer`).
    /// The storage must contain the view and not a copy of the array: [`HostView`] specifies the access to the memory, and
    /// [`PjrtBuffer::host_view`] must return the view. The SDK rejects memory that is not aligned for its elements, and
    /// memories of the device that are not host-accessible. A device with stricter requirements, such as a larger alignment,
    /// can copy the array each time that it reads the view.
    ///
    /// # Errors
    ///
    /// Returns UNIMPLEMENTED if the device cannot read host memory in place, or does not support the element type. The view must
    /// then be dropped. The default returns UNIMPLEMENTED.
    fn view_host_memory(&self, view: HostView, to: Placement<'_, Self>) -> Result<Self::Buffer> {
        let _ = (view, to);
        let platform = Self::PLATFORM_NAME;
        Err(Error::unimplemented(format!("the plugin '{platform}' does not support views of host memory"))
            .with_hint("copy the memory with PJRT_Client_BufferFromHostBuffer"))
    }

    /// Copies an array to another device or memory of this client (`PJRT_Buffer_CopyToMemory`, `PJRT_Buffer_CopyToDevice`).
    /// The SDK calls it when the data is ready. The default copies the array to host memory and uploads it.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED if there is not enough memory, or any other error that prevents the copy.
    fn copy_buffer(
        &self,
        from: BufferRef<'_, Self>,
        to: Placement<'_, Self>,
    ) -> Result<Pending<Self::Buffer>> {
        let (element_type, dims) = (from.element_type, from.dims.to_vec());
        through_host(from, to, element_type, dims)
    }

    /// Copies the dense, row-major bytes of an array to an array with another element type and other dimensions
    /// (`PJRT_Buffer_Bitcast`, and arguments of `PJRT_LoadedExecutable_Execute` whose shape is not that of the parameter). The
    /// SDK calls it when the data is ready, and only if the sizes are equal. The original is unchanged. The default copies the
    /// array to host memory and uploads it.
    ///
    /// The SDK does not call it if one of the types has elements of less than a byte, and the other type has elements of
    /// another width. Plugins differ in whether they pack such elements, so the SDK converts these arrays in host memory.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`copy_buffer`](Self::copy_buffer).
    fn bitcast_buffer(
        &self,
        from: BufferRef<'_, Self>,
        to: Placement<'_, Self>,
        element_type: ElementType,
        dims: &[i64],
    ) -> Result<Pending<Self::Buffer>> {
        through_host(from, to, element_type, dims.to_vec())
    }
}

/// The configuration of a client: the argument of [`PjrtClient::create`], whose [example](PjrtClient) uses it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The values of the options that [`PjrtClient::CREATE_OPTIONS`] declares.
    pub options: Options,
    /// The index of this process in a distributed computation, in `0..num_nodes`; 0 if the computation is not distributed.
    pub node_id: i64,
    /// The number of processes. It is 1 if the computation is not distributed, and always 1 if [`PjrtClient::MULTI_PROCESS`]
    /// is `false`.
    pub num_nodes: i64,
    /// The index of the group of processes, called partition or slice, that this process belongs to: the argument of that name of
    /// `jax.distributed.initialize`. 0 unless the user sets it.
    pub partition_index: i64,
    /// The store that the processes share; `None` if there is one process. It fails with FAILED_PRECONDITION once the host has
    /// destroyed the client. See [`distributed`](crate::distributed).
    pub kv_store: Option<KeyValueStore>,
    /// The number of clients that the host created for this process index of a distributed computation before this one.
    pub(crate) generation: u64,
}

impl ClientConfig {
    /// Creates the configuration of a client in a single process.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, node_id: 0, num_nodes: 1, partition_index: 0, kv_store: None, generation: 0 }
    }
}

/// The state of a process of a distributed computation: an argument of [`PjrtClient::process_info_changed`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The index of the process.
    pub task_id: i32,
    /// The incarnation of the process, which changes when the process restarts.
    pub incarnation_id: u64,
    /// The state.
    pub state: ProcessState,
    /// The error of the process, if there is one.
    pub error: Option<Error>,
}

/// The state of a process (`PJRT_ProcessState`), in a [`ProcessInfo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ProcessState {
    /// The host did not specify the state.
    Unspecified,
    /// The process has not connected yet.
    Uninitialized,
    /// The process has disconnected.
    Disconnected,
    /// The process is connected.
    Connected,
    /// The process has failed.
    Error,
}

/// A program to compile: the argument of [`PjrtClient::compile`].
#[non_exhaustive]
pub struct CompileRequest<'a, C: PjrtClient> {
    /// The program, in one of [`PjrtClient::PROGRAM_FORMATS`].
    pub program: &'a Program,
    /// The options of the compilation.
    pub options: &'a CompileOptions,
    /// The devices to compile the program for.
    pub topology: &'a Topology,
    /// The client that will load the program; `None` if the host compiles without a client (`PJRT_Compile`).
    pub client: Option<&'a C>,
}

/// A serialized executable: the argument of [`PjrtClient::deserialize`].
#[non_exhaustive]
pub struct DeserializeRequest<'a, C: PjrtClient> {
    /// The bytes that [`PjrtExecutable::serialize`] returned.
    pub serialized: &'a [u8],
    /// The program and the options from which the executable was compiled.
    pub compile: CompileRequest<'a, C>,
}

/// The destination of an array: an argument of [`PjrtClient::buffer_from_host`] and other methods of the client.
pub struct Placement<'a, C: PjrtClient> {
    /// The device.
    pub device: &'a C::Device,
    /// The memory of that device.
    pub memory: &'a Memory,
    /// The layout that the host requests; `None` is dense and row-major. The plugin may ignore the layout.
    pub layout: Option<&'a Layout>,
    pub(crate) uploader: &'a dyn Uploader<C>,
    pub(crate) place: Location,
}

/// The indices of a device and a memory in those of the client.
#[derive(Clone, Copy)]
pub(crate) struct Location {
    pub(crate) device: usize,
    pub(crate) memory: usize,
}

/// A function that uploads an array.
pub(crate) type Upload<C> = Box<dyn FnOnce(HostBuffer) -> Result<Pending<<C as PjrtClient>::Buffer>> + Send>;

/// A client that can create functions which upload arrays after the current call has returned.
pub(crate) trait Uploader<C: PjrtClient> {
    fn upload_later(&self, place: Location, layout: Option<&Layout>) -> Result<Upload<C>>;
}

/// An array on a device: the source of [`PjrtClient::copy_buffer`] and [`PjrtClient::bitcast_buffer`].
#[non_exhaustive]
pub struct BufferRef<'a, C: PjrtClient> {
    /// The storage.
    pub storage: &'a Arc<C::Buffer>,
    /// The device.
    pub device: &'a C::Device,
    /// The memory.
    pub memory: &'a Memory,
    /// The type of the elements.
    pub element_type: ElementType,
    /// The dimensions.
    pub dims: &'a [i64],
}

macro_rules! copy_and_debug {
    ($($name:ident)*) => {$(
        impl<C: PjrtClient> Clone for $name<'_, C> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<C: PjrtClient> Copy for $name<'_, C> {}
    )*};
}
impl<C: PjrtClient> sealed::Sealed for BufferRef<'_, C> {}
impl<C: PjrtClient> ReadsViews for BufferRef<'_, C> {}

copy_and_debug!(CompileRequest DeserializeRequest Placement BufferRef);

impl<C: PjrtClient> fmt::Debug for CompileRequest<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompileRequest").field("program", self.program).finish_non_exhaustive()
    }
}

impl<C: PjrtClient> fmt::Debug for DeserializeRequest<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeserializeRequest").field("bytes", &self.serialized.len()).finish_non_exhaustive()
    }
}

impl<C: PjrtClient> fmt::Debug for Placement<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.device.description().id();
        f.debug_struct("Placement")
            .field("device", &device)
            .field("memory", self.memory)
            .finish_non_exhaustive()
    }
}

impl<C: PjrtClient> fmt::Debug for BufferRef<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferRef({}{:?})", self.element_type, self.dims)
    }
}

/// Assigns the devices with the smallest ids, in ascending order as in JAX and XLA.
fn in_order_assignment<D: PjrtDevice>(
    devices: &[D],
    replicas: usize,
    partitions: usize,
) -> Result<DeviceAssignment> {
    let mut ids: Vec<i32> = devices.iter().map(|device| device.description().id()).collect();
    ids.sort_unstable();
    match replicas.checked_mul(partitions) {
        Some(wanted) if wanted <= ids.len() => {
            ids.truncate(wanted);
            DeviceAssignment::new(replicas, partitions, ids)
        }
        _ => Err(Error::invalid_argument(format!(
            "{replicas} replicas of {partitions} partitions need {} devices; the client has {}",
            replicas.saturating_mul(partitions),
            ids.len()
        ))),
    }
}

/// Copies an array to host memory and uploads the bytes as an array of the same packed size. It does not wait for either step,
/// because the current thread may be the one that finishes the first.
pub(crate) fn through_host<C: PjrtClient>(
    from: BufferRef<'_, C>,
    to: Placement<'_, C>,
    element_type: ElementType,
    dims: Vec<i64>,
) -> Result<Pending<C::Buffer>> {
    let upload = to.uploader.upload_later(to.place, to.layout)?;
    let (promise, pending) = promise();
    // If elements of the target share bytes, each of them occupies a byte in host memory.
    let size = Shape::new(element_type, &dims)?.host_size();
    let from_bits = from.element_type.packed_bits();
    let copy = CopyToHost::collected(Shape::new(from.element_type, from.dims)?, move |bytes| {
        let upload = |bytes| {
            let bytes = packed::reinterpret(bytes, from_bits, element_type.packed_bits(), size);
            upload(HostBuffer::from_vec(element_type, dims, bytes)?)
        };
        match bytes.and_then(|bytes| panic_guard::catch(|| upload(bytes))) {
            Ok(uploaded) => uploaded.receive(move |value| promise.deliver(value)),
            Err(error) => promise.fail(error),
        }
    });
    if let Some(copy) = copy {
        Arc::clone(from.storage).copy_to_host(copy);
    }
    Ok(pending)
}
