//! The client: a plugin's entry.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::attributes::PluginAttributes;
use crate::buffer::PjrtBuffer;
use crate::compile_options::CompileOptions;
use crate::core::panic_guard;
use crate::core::promise::{Pending, promise};
use crate::device::PjrtDevice;
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

/// A plugin: options, devices, compilation, execution, upload (`PJRT_Client`).
///
/// Every method may be called from several threads at once, and none is called with a lock of the SDK held. A panic in one
/// becomes an INTERNAL error.
pub trait PjrtClient: Sized + Send + Sync + 'static {
    /// What a device is.
    type Device: PjrtDevice;
    /// Storage on a device.
    type Buffer: PjrtBuffer;
    /// A compiled program.
    type Executable: PjrtExecutable;
    /// A program bound to devices: the data that [`execute`](Self::execute) needs. It is an `Arc` if executions keep a share of it.
    type Loaded: Send + Sync + 'static;

    /// The name by which hosts know the platform, in lower case; JAX chooses lowering rules by it.
    const PLATFORM_NAME: &'static str;

    /// The options that [`create`](Self::create) takes.
    const CREATE_OPTIONS: &'static [OptionSpec] = &[];

    /// The options that [`create_topology`](Self::create_topology) takes.
    const TOPOLOGY_OPTIONS: &'static [OptionSpec] = &[];

    /// The formats of programs that [`compile`](Self::compile) reads. Others are refused before it is called.
    const PROGRAM_FORMATS: &'static [ProgramFormat] = &[ProgramFormat::Mlir];

    /// Whether several processes can run one computation: [`create`](Self::create) then joins the others through
    /// [`ClientConfig::kv_store`], [`devices`](Self::devices) lists those of all processes, and
    /// [`process_index`](Self::process_index) says which one this is. A plugin that does not declare it is never asked for a
    /// client of several processes: `PJRT_Client_Create` answers UNIMPLEMENTED, because each of its processes would compute
    /// alone, with results that look right.
    const MULTI_PROCESS: bool = false;

    /// How long launches of a program on single devices wait for those on its other devices, if these
    /// [communicate](PjrtExecutable::devices_communicate). After that, they fail with DEADLINE_EXCEEDED.
    const JOINT_LAUNCH_TIMEOUT: Duration = Duration::from_secs(60);

    /// Called once, before anything else (`PJRT_Plugin_Initialize`).
    ///
    /// # Errors
    ///
    /// Whatever keeps the plugin from working at all, such as a driver that is not installed.
    fn initialize() -> Result<()> {
        Ok(())
    }

    /// What the plugin says about itself (`PJRT_Plugin_Attributes`). Called once.
    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new()
    }

    /// Makes a client (`PJRT_Client_Create`).
    ///
    /// # Errors
    ///
    /// Whatever keeps the devices from being used.
    fn create(config: ClientConfig) -> Result<Self>;

    /// The devices, those of other processes too, always the same ones in the same order; at least one is addressable.
    fn devices(&self) -> &[Self::Device];

    /// Free text about the platform: versions of driver, compiler, hardware. Called once. Hosts put it into cache keys.
    fn platform_version(&self) -> String;

    /// The number of this process. Called once.
    fn process_index(&self) -> i32 {
        0
    }

    /// The devices that a program runs on if the host names none (`PJRT_Client_DefaultDeviceAssignment`). The default: the
    /// first ones, in order of their ids.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if there are too few.
    fn default_device_assignment(&self, replicas: usize, partitions: usize) -> Result<DeviceAssignment> {
        in_order_assignment(self.devices(), replicas, partitions)
    }

    /// The devices as a topology (`PJRT_Client_TopologyDescription`). Called once.
    fn topology(&self) -> Topology {
        Topology::of_devices(Self::PLATFORM_NAME, self.platform_version(), self.devices())
    }

    /// Describes devices that need not be there, by a name and options of the plugin's own
    /// (`PJRT_TopologyDescription_Create`); programs can then be compiled for them without a client.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT for a name that the plugin does not know. The default is UNIMPLEMENTED.
    fn create_topology(name: &str, options: &Options) -> Result<Topology> {
        let _ = options;
        let platform = Self::PLATFORM_NAME;
        Err(Error::unimplemented(format!(
            "the plugin '{platform}' describes no topology by name, such as '{name}'"
        ))
        .with_hint("take the topology of a client"))
    }

    /// Makes memory of the host, `size` bytes from an address on, fit for direct transfers until it is unmapped
    /// (`PJRT_Client_DmaMap`). The memory is the host's, which keeps it until then.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from being mapped. The default is UNIMPLEMENTED.
    fn map_host_memory(&self, address: usize, size: usize) -> Result<()> {
        let _ = (address, size);
        Err(Error::unimplemented(format!("the plugin '{}' maps no host memory", Self::PLATFORM_NAME)))
    }

    /// Undoes [`map_host_memory`](Self::map_host_memory) (`PJRT_Client_DmaUnmap`).
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if nothing is mapped there. The default is UNIMPLEMENTED.
    fn unmap_host_memory(&self, address: usize) -> Result<()> {
        let _ = address;
        Err(Error::unimplemented(format!("the plugin '{}' maps no host memory", Self::PLATFORM_NAME)))
    }

    /// What became of the other processes of a distributed computation (`PJRT_Client_UpdateGlobalProcessInfo`).
    fn process_info_changed(&self, processes: &[ProcessInfo]) {
        let _ = processes;
    }

    /// The process ends while the client lives: some hosts, PyTorch/XLA among them, never destroy theirs. The last chance to give
    /// back what outlives a process, such as a lock on a device. Otherwise dropping the client is the end, and this is not called.
    /// Other threads may still run, and the host may be in the middle of a call. Not called in a forked child: what it has is its
    /// parent's.
    fn process_exit(&self) {}

    /// Compiles a program (`PJRT_Compile`, and the first half of `PJRT_Client_Compile`).
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT for a program that is wrong, UNIMPLEMENTED for one that the plugin cannot compile; the message
    /// names the operation and its location.
    fn compile(request: CompileRequest<'_, Self>) -> Result<Self::Executable>;

    /// Restores what [`PjrtExecutable::serialize`] gave. The default compiles the program again.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT for bytes that are wrong, FAILED_PRECONDITION for those of another version or machine. Bytes that
    /// were damaged since [`serialize`](PjrtExecutable::serialize) do not get here: the host gets DATA_LOSS.
    fn deserialize(request: DeserializeRequest<'_, Self>) -> Result<Self::Executable> {
        Self::compile(request.compile)
    }

    /// Binds a program to devices (`PJRT_Client_Load`, and the second half of `PJRT_Client_Compile`). A program that the
    /// host compiled as portable comes with its default assignment, and any device can be named when it runs.
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if there is no room for it; whatever else keeps it from being loaded.
    fn load(&self, executable: &Arc<Self::Executable>, assignment: &DeviceAssignment)
    -> Result<Self::Loaded>;

    /// Runs a program (`PJRT_LoadedExecutable_Execute`). The execution carries the inputs and the promise of the outputs;
    /// finish it before returning, or take it to where the work is done.
    ///
    /// # Errors
    ///
    /// An error here is the host's error at once. The execution must then not have been moved elsewhere.
    fn execute(&self, loaded: &Self::Loaded, execution: Execution<Self::Buffer>) -> Result<()>;

    /// Puts an array of the host on a device (`PJRT_Client_BufferFromHostBuffer`).
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if there is no room; UNIMPLEMENTED for an element type that the device does not have.
    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<Self::Buffer>>;

    /// Makes a buffer over host memory that the host goes on writing to (`PJRT_Client_CreateViewOfDeviceBuffer`). It holds the
    /// view and is no copy: [`HostView`] says what the plugin may do with it, and [`PjrtBuffer::host_view`] must give it back.
    /// The SDK has refused memory that is not aligned for its elements, and placements that are not host-accessible. A device
    /// that needs more than that, such as another alignment, copies when it reads the view and not here.
    ///
    /// # Errors
    ///
    /// UNIMPLEMENTED if the device cannot read the host's memory in place, or does not have the element type: a copy would not
    /// show what the host writes later. The view must be dropped then. The default is UNIMPLEMENTED.
    fn view_host_memory(&self, view: HostView, to: Placement<'_, Self>) -> Result<Self::Buffer> {
        let _ = (view, to);
        let platform = Self::PLATFORM_NAME;
        Err(Error::unimplemented(format!("the plugin '{platform}' makes no views of host memory"))
            .with_hint("put a copy of the memory on the device: PJRT_Client_BufferFromHostBuffer"))
    }

    /// Copies an array to another device or memory of this client (`PJRT_Buffer_CopyToMemory`,
    /// `PJRT_Buffer_CopyToDevice`); called once the data is there. The default copies through the host.
    ///
    /// # Errors
    ///
    /// RESOURCE_EXHAUSTED if there is no room; whatever else keeps the copy from being made.
    fn copy_buffer(
        &self,
        from: BufferRef<'_, Self>,
        to: Placement<'_, Self>,
    ) -> Result<Pending<Self::Buffer>> {
        let (element_type, dims) = (from.element_type, from.dims.to_vec());
        through_host(from, to, element_type, dims)
    }

    /// Makes an array of the same bytes, dense and row-major, with another element type and other dimensions
    /// (`PJRT_Buffer_Bitcast`); called once the data is there, and only if the sizes agree. The original stays as it is. The
    /// default copies through the host.
    ///
    /// # Errors
    ///
    /// As for [`copy_buffer`](Self::copy_buffer).
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

/// What a client is created with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientConfig {
    /// The values of the declared options.
    pub options: Options,
    /// The number of this process in a distributed computation, less than `num_nodes`; otherwise 0.
    pub node_id: i64,
    /// How many processes there are; 1 if the computation is not distributed, as it always is without
    /// [`PjrtClient::MULTI_PROCESS`].
    pub num_nodes: i64,
    /// The store that the processes share, if there are several.
    pub kv_store: Option<KeyValueStore>,
}

impl ClientConfig {
    /// The configuration of a client that is alone.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, node_id: 0, num_nodes: 1, kv_store: None }
    }
}

/// What became of a process of a distributed computation.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The process.
    pub task_id: i32,
    /// Which incarnation of it: the number changes when it restarts.
    pub incarnation_id: u64,
    /// Its state.
    pub state: ProcessState,
    /// What went wrong, if something did.
    pub error: Option<Error>,
}

/// The state of a process (`PJRT_ProcessState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProcessState {
    /// Not said.
    Unspecified,
    /// Not started.
    Uninitialized,
    /// Gone.
    Disconnected,
    /// There.
    Connected,
    /// Failed.
    Error,
}

/// A program to compile.
#[non_exhaustive]
pub struct CompileRequest<'a, C: PjrtClient> {
    /// The program, in one of [`PjrtClient::PROGRAM_FORMATS`].
    pub program: &'a Program,
    /// How to compile it.
    pub options: &'a CompileOptions,
    /// What to compile it for.
    pub topology: &'a Topology,
    /// The client that will load it, if there is one.
    pub client: Option<&'a C>,
}

/// A compiled program to restore.
#[non_exhaustive]
pub struct DeserializeRequest<'a, C: PjrtClient> {
    /// What [`PjrtExecutable::serialize`] gave.
    pub serialized: &'a [u8],
    /// The program that it was compiled from.
    pub compile: CompileRequest<'a, C>,
}

/// Where an array should go.
pub struct Placement<'a, C: PjrtClient> {
    /// The device.
    pub device: &'a C::Device,
    /// One of its memories.
    pub memory: &'a Memory,
    /// The layout that the host asks for; `None` is dense and row-major. A plugin without a use for layouts ignores it.
    pub layout: Option<&'a Layout>,
    pub(crate) uploader: &'a dyn Uploader<C>,
    pub(crate) place: Location,
}

/// Indices of a device and a memory among the client's.
#[derive(Clone, Copy)]
pub(crate) struct Location {
    pub(crate) device: usize,
    pub(crate) memory: usize,
}

/// Uploads an array.
pub(crate) type Upload<C> = Box<dyn FnOnce(HostBuffer) -> Result<Pending<<C as PjrtClient>::Buffer>> + Send>;

/// A client that can upload arrays after the call that it was passed to has returned.
pub(crate) trait Uploader<C: PjrtClient> {
    fn upload_later(&self, place: Location, layout: Option<&Layout>) -> Result<Upload<C>>;
}

/// An array on a device.
#[non_exhaustive]
pub struct BufferRef<'a, C: PjrtClient> {
    /// Its storage.
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

/// The first devices in order of their ids, as JAX and XLA number them.
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
            "{replicas} replicas of {partitions} partitions do not fit on {} devices",
            ids.len()
        ))),
    }
}

/// Reads the array back and uploads the bytes again as an array of a type of the same size, without waiting for either: the thread that this runs on may be the one that
/// has to finish the readback.
fn through_host<C: PjrtClient>(
    from: BufferRef<'_, C>,
    to: Placement<'_, C>,
    element_type: ElementType,
    dims: Vec<i64>,
) -> Result<Pending<C::Buffer>> {
    let upload = to.uploader.upload_later(to.place, to.layout)?;
    let (promise, pending) = promise();
    let copy = CopyToHost::collected(Shape::new(from.element_type, from.dims)?, move |bytes| {
        let upload = |bytes| upload(HostBuffer::from_vec(element_type, dims, bytes)?);
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
