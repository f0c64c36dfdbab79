//! Compilation and loading of programs.
//!
//! `PJRT_Client_Compile`, `PJRT_LoadedExecutable_Destroy`, `PJRT_LoadedExecutable_GetExecutable`,
//! `PJRT_LoadedExecutable_AddressableDevices`, `PJRT_LoadedExecutable_Delete`,
//! `PJRT_LoadedExecutable_IsDeleted`, `PJRT_Executable_DeserializeAndLoad`, `PJRT_Compile`,
//! `PJRT_LoadedExecutable_GetDeviceAssignment`, `PJRT_Client_Load`,
//! `PJRT_LoadedExecutable_AddressableDeviceLogicalIds`, `PJRT_LoadedExecutable_Fingerprint`.

use std::ptr;
use std::sync::{Arc, OnceLock};

use pjrt_sys::{
    PJRT_Client_Compile_Args, PJRT_Client_Load_Args, PJRT_Compile_Args, PJRT_Device,
    PJRT_Executable_DeserializeAndLoad_Args, PJRT_LoadedExecutable,
    PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, PJRT_LoadedExecutable_AddressableDevices_Args,
    PJRT_LoadedExecutable_Delete_Args, PJRT_LoadedExecutable_Destroy_Args,
    PJRT_LoadedExecutable_Fingerprint_Args, PJRT_LoadedExecutable_GetDeviceAssignment_Args,
    PJRT_LoadedExecutable_GetExecutable_Args, PJRT_LoadedExecutable_IsDeleted_Args, PJRT_LogicalDeviceIds,
    PJRT_Program,
};
use prost::Message;

use crate::abi::args::{View, bytes, handle, input, null, output, output_slice, output_str, text};
use crate::abi::buffer::Spec;
use crate::abi::c_arrays::{delete_serialized, serialized};
use crate::abi::client_state::ClientState;
use crate::abi::executable::ExecutableState;
use crate::abi::handle::{self, Handle};
use crate::abi::joint_launch::JointLaunch;
use crate::abi::topology::TopologyHandle;
use crate::client::{CompileRequest, DeserializeRequest, PjrtClient};
use crate::compile_options::CompileOptions;
use crate::core::allocate;
use crate::core::by_device::ByDevice;
use crate::core::device_lock::device_lock;
use crate::core::fork;
use crate::core::spin_lock::Guarded;
use crate::device::DeviceId;
use crate::device_assignment::DeviceAssignment;
use crate::error::{Error, Result};
use crate::executable::PjrtExecutable;
use crate::program::{Program, ProgramFormat};
use crate::serialized::SerializedExecutable;
use crate::shape::Shape;
use crate::topology::Topology;

/// The [`Spec`]s of a program's outputs on one device.
pub(crate) type OutputSpecs<C> = Arc<[Arc<Spec<C>>]>;

/// The object behind a `PJRT_LoadedExecutable`.
pub(crate) struct LoadedHandle<C: PjrtClient> {
    pub(crate) client: Arc<ClientState<C>>,
    pub(crate) executable: Arc<ExecutableState<C>>,
    /// The author's program; `None` after deletion.
    loaded: Guarded<Option<Arc<C::Loaded>>>,
    pub(crate) assignment: DeviceAssignment,
    /// `true` if the host chooses the device for each execution.
    pub(crate) portable: bool,
    /// The addressable devices of the assignment, as indices in the client's devices. The next three fields have the same
    /// order.
    pub(crate) devices: Vec<usize>,
    pub(crate) device_ids: ByDevice<DeviceId>,
    device_pointers: Vec<*mut PJRT_Device>,
    logical_ids: Vec<PJRT_LogicalDeviceIds>,
    /// The launches on single devices that wait for each other; `None` for a program whose devices do not communicate.
    joint_launch: OnceLock<Option<Arc<JointLaunch<C::Buffer>>>>,
    /// The specs of its outputs, for each device of the client. They are created on the first execution on the device.
    outputs: Box<[OnceLock<OutputSpecs<C>>]>,
}

// SAFETY: the pointers are handles of the client, which `client` keeps alive; the rest is `Send` and `Sync`.
unsafe impl<C: PjrtClient> Send for LoadedHandle<C> {}
// SAFETY: as above.
unsafe impl<C: PjrtClient> Sync for LoadedHandle<C> {}

impl<C: PjrtClient> Handle for LoadedHandle<C> {
    type Opaque = PJRT_LoadedExecutable;
    const KIND: &'static str = "PJRT_LoadedExecutable";
}

impl<C: PjrtClient> LoadedHandle<C> {
    /// Returns the author's program, or an error after deletion.
    #[inline]
    pub(crate) fn author(&self) -> Result<Arc<C::Loaded>> {
        self.loaded.with(|loaded| loaded.clone()).ok_or_else(|| {
            Error::invalid_argument("the executable has been deleted (PJRT_LoadedExecutable_Delete)")
        })
    }

    /// Returns the launches on single devices that wait for each other; `None` if the devices do not communicate.
    pub(crate) fn joint_launch(&self) -> Option<&JointLaunch<C::Buffer>> {
        let find = || {
            let program = &self.executable;
            if self.devices.len() == 1 || !program.executable.devices_communicate() {
                return None;
            }
            let launches = &self.client.joint_launches;
            let (name, fingerprint) = (program.name(), program.fingerprint());
            Some(launches.of_program(name, fingerprint, &self.device_ids, C::JOINT_LAUNCH_TIMEOUT))
        };
        self.joint_launch.get_or_init(find).as_deref()
    }

    /// Returns the specs of its outputs on a device.
    #[inline(always)]
    pub(crate) fn outputs_on(&self, device: usize) -> &[Arc<Spec<C>>] {
        self.outputs[device].get_or_init(|| self.new_outputs(device))
    }

    #[cold]
    fn new_outputs(&self, device: usize) -> OutputSpecs<C> {
        let outputs = &self.executable.outputs;
        let spec = |(shape, kind): (&Shape, &Option<String>)| {
            // Loading has checked the memory kind on the first device, and the devices of a program are of the same kind.
            let memory = self.client.memory_of(device, kind.as_deref());
            let memory = memory.unwrap_or_else(|_| self.client.devices[device].memory_indices[0]);
            Arc::new(Spec { client: Arc::clone(&self.client), device, memory, shape: shape.clone() })
        };
        let specs = outputs.shapes.iter().zip(&outputs.memory_kinds).map(spec).collect();
        self.client.memory_usage.watch(&self.executable, &specs);
        specs
    }

    fn load(
        client: &ClientState<C>,
        executable: Arc<ExecutableState<C>>,
        options: &CompileOptions,
    ) -> Result<Self> {
        let assignment = assignment(client, options)?;
        let mut seen = assignment.devices().to_vec();
        seen.sort_unstable();
        if let Some(twice) = seen.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid_argument(format!(
                "the device assignment contains device {} twice",
                twice[0]
            )));
        }
        let mut devices = Vec::new();
        for id in assignment.devices() {
            let index = client.device_index(*id).ok_or_else(|| {
                Error::invalid_argument(format!(
                    "the device assignment contains device {id}, which is not a device of the client"
                ))
            })?;
            if client.devices[index].addressable {
                devices.push(index);
            }
        }
        // All devices of the program may belong to other processes. The host then loads it only to read what it returns.
        let first = devices.first().copied();
        for kind in executable.parameters.memory_kinds.iter().chain(&executable.outputs.memory_kinds) {
            if let Some(first) = first {
                client.memory_of(first, kind.as_deref())?;
            }
        }
        let loaded = client.explain(client.client.load(&executable.executable, &assignment))?;
        let logical = |index: &usize| {
            let (replica, partition) = assignment.logical_id(client.devices[*index].id()).unwrap_or_default();
            PJRT_LogicalDeviceIds { replica: replica as i32, partition: partition as i32 }
        };
        Ok(Self {
            client: client.share()?,
            loaded: Guarded::new(device_lock(first.unwrap_or_default()), Some(Arc::new(loaded))),
            portable: options.compile_portable_executable,
            device_ids: devices.iter().map(|index| client.devices[*index].id()).collect(),
            device_pointers: devices.iter().map(|index| client.device_pointer(*index)).collect(),
            logical_ids: devices.iter().map(logical).collect(),
            joint_launch: OnceLock::new(),
            outputs: client.devices.iter().map(|_| OnceLock::new()).collect(),
            devices,
            executable,
            assignment,
        })
    }
}

/// Returns the devices that compile options select.
fn assignment<C: PjrtClient>(client: &ClientState<C>, options: &CompileOptions) -> Result<DeviceAssignment> {
    if let Some(assignment) = &options.device_assignment {
        return Ok(assignment.clone());
    }
    let (replicas, partitions) = (options.num_replicas, options.num_partitions);
    if let (Some(ordinal), 1, 1) = (options.device_ordinal, replicas, partitions) {
        return DeviceAssignment::new(1, 1, vec![ordinal]);
    }
    client.client.default_device_assignment(replicas, partitions)
}

/// Reads a program of the host. The format must be one of those that the plugin supports.
///
/// # Safety
///
/// `program` is null or points to a program of the host's version.
unsafe fn read_program<C: PjrtClient>(program: *const PJRT_Program) -> Result<Program> {
    if program.is_null() {
        return Err(null("program"));
    }
    // SAFETY: this function's contract.
    let program = unsafe { View::new(program.cast_mut()) }?;
    let name = bytes!(program.format, format_size)?;
    let format = ProgramFormat::from_name(name).filter(|format| C::PROGRAM_FORMATS.contains(format));
    let Some(format) = format else {
        let known: Vec<&str> = C::PROGRAM_FORMATS.iter().map(|format| format.name()).collect();
        return Err(Error::invalid_argument(format!("Unknown program format '{}'.", text(name)))
            .with_hint(format!("the plugin supports the formats: {}", known.join(", "))));
    };
    Ok(Program::new(format, allocate::copy(bytes!(program.code, code_size)?)?))
}

fn compile_program<C: PjrtClient>(
    program: Program,
    options: CompileOptions,
    topology: &Topology,
    client: Option<&C>,
) -> Result<Arc<ExecutableState<C>>> {
    let request = CompileRequest { program: &program, options: &options, topology, client };
    let executable = C::compile(request)?;
    ExecutableState::new(executable, program, options, client)
}

/// `PJRT_Client_Compile`: compiles and loads a program.
pub(crate) fn client_compile<C: PjrtClient>(args: View<'_, PJRT_Client_Compile_Args>) -> Result<()> {
    output!(args.executable = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    // SAFETY: the field is null or a program of the host.
    let program = unsafe { read_program::<C>(input!(args.program)) }?;
    let options = CompileOptions::decode(bytes!(args.compile_options, compile_options_size)?)
        .map_err(|error| error.context("PJRT_Client_Compile"))?;
    let executable = compile_program(program, options, &client.topology.topology, Some(&client.client))?;
    let options = executable.options.clone();
    output!(args.executable = handle::into_raw(LoadedHandle::load(client, executable, &options)?));
    Ok(())
}

/// `PJRT_Compile`: compiles a program for a topology, with or without a client.
pub(crate) fn compile<C: PjrtClient>(args: View<'_, PJRT_Compile_Args>) -> Result<()> {
    output!(args.executable = ptr::null_mut());
    fork::note_use(C::PLATFORM_NAME)?;
    let topology = handle!(args.topology: TopologyHandle)?;
    // SAFETY: the field is null or a program of the host.
    let program = unsafe { read_program::<C>(input!(args.program)) }?;
    let options = CompileOptions::decode(bytes!(args.compile_options, compile_options_size)?)
        .map_err(|error| error.context("PJRT_Compile"))?;
    let client =
        if input!(args.client).is_null() { None } else { Some(handle!(args.client: ClientState<C>)?) };
    let executable =
        compile_program::<C>(program, options, &topology.topology, client.map(|client| &client.client))?;
    output!(args.executable = handle::share_into_raw(executable));
    Ok(())
}

/// `PJRT_Client_Load`: loads an executable of `PJRT_Compile`.
pub(crate) fn client_load<C: PjrtClient>(args: View<'_, PJRT_Client_Load_Args>) -> Result<()> {
    output!(args.loaded_executable = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    // SAFETY: the host owns a share of the executable; this creates another one for the loaded executable.
    let executable =
        unsafe { handle::share_of::<ExecutableState<C>>(input!(args.executable), "executable") }?;
    let given = bytes!(args.compile_options, compile_options_size)?;
    let options = if given.is_empty() {
        executable.options.clone()
    } else {
        CompileOptions::decode(given).map_err(|error| error.context("PJRT_Client_Load"))?
    };
    output!(args.loaded_executable = handle::into_raw(LoadedHandle::load(client, executable, &options)?));
    Ok(())
}

/// `PJRT_Executable_DeserializeAndLoad`: deserializes and loads an executable of `PJRT_Executable_Serialize`.
pub(crate) fn executable_deserialize_and_load<C: PjrtClient>(
    args: View<'_, PJRT_Executable_DeserializeAndLoad_Args>,
) -> Result<()> {
    output!(args.loaded_executable = ptr::null_mut());
    let client = handle!(args.client: ClientState<C>)?;
    let bytes = bytes!(args.serialized_executable, serialized_executable_size)?;
    let SerializedExecutable { program, mut options, compiled } =
        SerializedExecutable::decode(bytes, C::PLATFORM_NAME)?;
    let overridden =
        bytes!(args.overridden_serialized_compile_options, overridden_serialized_compile_options_size)?;
    if !overridden.is_empty() {
        options = CompileOptions::decode(overridden)
            .map_err(|error| error.context("PJRT_Executable_DeserializeAndLoad"))?;
    }
    let request = CompileRequest {
        program: &program,
        options: &options,
        topology: &client.topology.topology,
        client: Some(&client.client),
    };
    let executable = match &compiled {
        Some(serialized) => C::deserialize(DeserializeRequest { serialized, compile: request }),
        None => C::compile(request),
    }?;
    let executable = ExecutableState::new(executable, program, options, Some(&client.client))?;
    let options = executable.options.clone();
    output!(args.loaded_executable = handle::into_raw(LoadedHandle::load(client, executable, &options)?));
    Ok(())
}

/// `PJRT_LoadedExecutable_Destroy`.
pub(crate) fn loaded_executable_destroy<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_Destroy_Args>,
) -> Result<()> {
    // SAFETY: the host passes ownership of the executable.
    drop(unsafe { handle::from_raw::<LoadedHandle<C>>(input!(args.executable), "executable") }?);
    Ok(())
}

/// `PJRT_LoadedExecutable_GetExecutable`: returns another share, which the host releases with `PJRT_Executable_Destroy`.
pub(crate) fn loaded_executable_get_executable<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_GetExecutable_Args>,
) -> Result<()> {
    let loaded = handle!(args.loaded_executable: LoadedHandle<C>)?;
    output!(args.executable = handle::share_into_raw(Arc::clone(&loaded.executable)));
    Ok(())
}

/// `PJRT_LoadedExecutable_AddressableDevices`. An execution needs as many argument lists as there are of these devices.
pub(crate) fn loaded_executable_addressable_devices<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_AddressableDevices_Args>,
) -> Result<()> {
    let loaded = handle!(args.executable: LoadedHandle<C>)?;
    output_slice!(args.addressable_devices, num_addressable_devices = &loaded.device_pointers);
    Ok(())
}

/// `PJRT_LoadedExecutable_AddressableDeviceLogicalIds`. Hosts accept a null slot, but abort on an error.
pub(crate) fn loaded_executable_addressable_device_logical_ids<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args>,
) -> Result<()> {
    let loaded = handle!(args.executable: LoadedHandle<C>)?;
    output_slice!(
        args.addressable_device_logical_ids,
        num_addressable_device_logical_ids = &loaded.logical_ids
    );
    Ok(())
}

/// `PJRT_LoadedExecutable_GetDeviceAssignment`. A portable executable has an empty assignment. Hosts always call the
/// deleter.
pub(crate) fn loaded_executable_get_device_assignment<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_GetDeviceAssignment_Args>,
) -> Result<()> {
    let loaded = handle!(args.executable: LoadedHandle<C>)?;
    let assignment = if loaded.portable { Vec::new() } else { loaded.assignment.to_proto().encode_to_vec() };
    let (bytes, size, holder) = serialized(assignment);
    output!(args.serialized_bytes = bytes);
    output!(args.serialized_bytes_size = size);
    output!(args.serialized_device_assignment = holder);
    output!(args.serialized_device_assignment_deleter = Some(delete_serialized));
    Ok(())
}

/// `PJRT_LoadedExecutable_Delete`. Running executions finish.
pub(crate) fn loaded_executable_delete<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_Delete_Args>,
) -> Result<()> {
    let loaded = handle!(args.executable: LoadedHandle<C>)?.loaded.with(Option::take);
    drop(loaded);
    Ok(())
}

/// `PJRT_LoadedExecutable_IsDeleted`.
pub(crate) fn loaded_executable_is_deleted<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_IsDeleted_Args>,
) -> Result<()> {
    let executable = handle!(args.executable: LoadedHandle<C>)?;
    // In a forked child, a thread that does not exist there may hold the lock.
    output!(args.is_deleted = !fork::is_child() && executable.loaded.with(|loaded| loaded.is_none()));
    Ok(())
}

/// `PJRT_LoadedExecutable_Fingerprint`: returns the same as `PJRT_Executable_Fingerprint`, for hosts that are older than
/// that function.
pub(crate) fn loaded_executable_fingerprint<C: PjrtClient>(
    args: View<'_, PJRT_LoadedExecutable_Fingerprint_Args>,
) -> Result<()> {
    let loaded = handle!(args.executable: LoadedHandle<C>)?;
    output_str!(args.executable_fingerprint, executable_fingerprint_size = loaded.executable.fingerprint());
    Ok(())
}
