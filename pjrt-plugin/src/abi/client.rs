//! `PJRT_Client`, except for its functions about programs and buffers.
//!
//! `PJRT_Client_Create`, `PJRT_Client_Destroy`, `PJRT_Client_PlatformName`, `PJRT_Client_ProcessIndex`,
//! `PJRT_Client_PlatformVersion`, `PJRT_Client_Devices`, `PJRT_Client_AddressableDevices`,
//! `PJRT_Client_LookupDevice`, `PJRT_Client_LookupAddressableDevice`, `PJRT_Client_AddressableMemories`,
//! `PJRT_Client_DefaultDeviceAssignment`, `PJRT_Client_DmaMap`, `PJRT_Client_DmaUnmap`,
//! `PJRT_Client_UpdateGlobalProcessInfo`, `PJRT_Client_TopologyDescription`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Once};

use pjrt_sys::{
    PJRT_Client_AddressableDevices_Args, PJRT_Client_AddressableMemories_Args, PJRT_Client_Create_Args,
    PJRT_Client_DefaultDeviceAssignment_Args, PJRT_Client_Destroy_Args, PJRT_Client_Devices_Args,
    PJRT_Client_DmaMap_Args, PJRT_Client_DmaUnmap_Args, PJRT_Client_LookupAddressableDevice_Args,
    PJRT_Client_LookupDevice_Args, PJRT_Client_PlatformName_Args, PJRT_Client_PlatformVersion_Args,
    PJRT_Client_ProcessIndex_Args, PJRT_Client_TopologyDescription_Args,
    PJRT_Client_UpdateGlobalProcessInfo_Args, PJRT_Error_Code, PJRT_ProcessInfo,
    PJRT_ProcessState_kConnected, PJRT_ProcessState_kDisconnected, PJRT_ProcessState_kError,
    PJRT_ProcessState_kUninitialized,
};

use crate::abi::args::{View, handle, input, null, output, output_slice, output_str};
use crate::abi::c_arrays::read_named_values;
use crate::abi::call_trace::complain;
use crate::abi::client_state::ClientState;
use crate::abi::error::host_error;
use crate::abi::exit::tell_at_exit;
use crate::abi::handle;
use crate::abi::kv::{Callbacks, HostStore};
use crate::client::{ClientConfig, PjrtClient, ProcessInfo, ProcessState};
use crate::core::fork;
use crate::core::host_memory::HostPointer;
use crate::core::panic_guard;
use crate::core::sync::lock;
use crate::distributed;
use crate::error::{Error, Result};
use crate::kv_store::KeyValueStore;
use crate::options::{OptionSpec, OptionValue, Options};

/// The options that a distributed host adds to those of every plugin.
const DISTRIBUTED: &[OptionSpec] = &[
    OptionSpec::integer("node_id", 0, "the index of this process"),
    OptionSpec::integer("num_nodes", 1, "the number of processes"),
    OptionSpec::integer("partition_index", 0, "the index of the group of processes"),
    OptionSpec::integer("slice_index", 0, "the name of partition_index in older releases of JAX"),
];

/// The number of distributed clients that the host has created, by process index: tests of hosts create those of several
/// processes in one.
static CLIENTS: Mutex<BTreeMap<i64, u64>> = Mutex::new(BTreeMap::new());

/// An option that hosts send to every plugin although their user did not request it.
struct HostOption {
    name: &'static str,
    /// The host, with the releases that send the option.
    host: &'static str,
    warning: Once,
}

/// The options that a plugin which does not declare them ignores with a warning. Other undeclared options are errors.
static HOST_OPTIONS: [HostOption; 1] =
    [HostOption { name: "preallocate", host: "go-xla 0.3", warning: Once::new() }];

/// Returns whether hosts send the option to every plugin. The first call for a name prints a warning.
fn is_ignored(platform: &str, name: &str) -> bool {
    let Some(option) = HOST_OPTIONS.iter().find(|option| option.name == name) else { return false };
    option.warning.call_once(|| {
        complain(&format!(
            "warning: the plugin '{platform}' does not have the create option '{name}', which {} sends to every plugin, and \
             ignores it",
            option.host
        ));
    });
    true
}

/// Divides the host's options into those of the plugin and those of a distributed computation.
fn config<C: PjrtClient>(given: Vec<(String, OptionValue)>) -> Result<ClientConfig> {
    let (distributed, own): (Vec<_>, Vec<_>) = given.into_iter().partition(|(name, _)| {
        let is = |spec: &OptionSpec| spec.name() == name;
        DISTRIBUTED.iter().any(is) && !C::CREATE_OPTIONS.iter().any(is)
    });
    let distributed = Options::new(DISTRIBUTED, distributed)?;
    let (node_id, num_nodes) = (distributed.integer("node_id")?, distributed.integer("num_nodes")?);
    // This check comes first, because a distributed host sends further options that a single-process plugin rejects.
    check_processes::<C>(node_id, num_nodes)?;
    let is_declared = |name: &str| C::CREATE_OPTIONS.iter().any(|spec| spec.name() == name);
    let own = own.into_iter().filter(|(name, _)| is_declared(name) || !is_ignored(C::PLATFORM_NAME, name));
    let options = Options::new(C::CREATE_OPTIONS, own.collect())?;
    let (partition, slice) = (distributed.integer("partition_index")?, distributed.integer("slice_index")?);
    let partition_index = if partition == 0 { slice } else { partition };
    Ok(ClientConfig { node_id, num_nodes, partition_index, ..ClientConfig::new(options) })
}

/// Returns an error if a single-process plugin is asked for several processes, or if the process index is out of range.
fn check_processes<C: PjrtClient>(node_id: i64, num_nodes: i64) -> Result<()> {
    if !C::MULTI_PROCESS && (node_id != 0 || num_nodes > 1) {
        let platform = C::PLATFORM_NAME;
        return Err(Error::unimplemented(format!(
            "the plugin '{platform}' does not support computations of several processes: the host asked for a client of \
             process {node_id} of {num_nodes} (node_id, num_nodes)"
        ))
        .with_hint(format!(
            "use the devices of '{platform}' in one process, without jax.distributed.initialize, or choose another \
             platform for the distributed program, as with JAX_PLATFORMS=cpu; a plugin that supports several \
             processes sets PjrtClient::MULTI_PROCESS"
        )));
    }
    if !(0..num_nodes).contains(&node_id) {
        return Err(Error::invalid_argument(format!(
            "the process index {node_id} (node_id) is not in 0..{num_nodes} (num_nodes)"
        )));
    }
    Ok(())
}

/// `PJRT_Client_Create`. The callbacks are uninitialized memory unless the host is distributed, so they are read only if the
/// options say that it is.
pub(crate) fn client_create<C: PjrtClient>(args: View<'_, PJRT_Client_Create_Args>) -> Result<()> {
    panic_guard::install_hook();
    output!(args.client = std::ptr::null_mut());
    // SAFETY: pointer and length describe an array of the host.
    let given = unsafe { read_named_values(input!(args.create_options), input!(args.num_options)) }?;
    let mut config = config::<C>(given)?;
    fork::note_use(C::PLATFORM_NAME)?;
    let host_store = (config.num_nodes > 1).then(|| {
        Arc::new(HostStore::new(Callbacks {
            get: (input!(args.kv_get_callback), HostPointer(input!(args.kv_get_user_arg))),
            try_get: (input!(args.kv_try_get_callback), HostPointer(input!(args.kv_try_get_user_arg))),
            put: (input!(args.kv_put_callback), HostPointer(input!(args.kv_put_user_arg))),
        }))
    });
    if let Some(store) = &host_store {
        config.kv_store = Some(KeyValueStore::new(Arc::clone(store)));
        let mut clients = lock(&CLIENTS);
        let created = clients.entry(config.node_id).or_default();
        config.generation = *created;
        *created += 1;
    }
    let (node_id, generation) = (config.node_id, config.generation);
    let created = C::create(config).and_then(|client| ClientState::new(client, host_store.clone()));
    if let (Err(error), Some(store)) = (&created, &host_store) {
        distributed::report_failure(store, node_id, generation, error);
        // Threads of the author may still have the store.
        store.close();
    }
    let client = created?;
    tell_at_exit(&client);
    output!(args.client = handle::share_into_raw(client));
    Ok(())
}

/// `PJRT_Client_Destroy`. Live buffers and executables keep the parts of the client that they need. The data that the host
/// attached to memories is destroyed here.
pub(crate) fn client_destroy<C: PjrtClient>(args: View<'_, PJRT_Client_Destroy_Args>) -> Result<()> {
    // SAFETY: the host passes ownership of the client, which came from `PJRT_Client_Create`.
    let client = unsafe { handle::share_from_raw::<ClientState<C>>(input!(args.client), "client") }?;
    if let Some(client) = &client {
        for memory in &client.memories {
            memory.clear_user_data();
        }
        if let Some(store) = &client.host_store {
            store.close();
        }
    }
    Ok(())
}

/// `PJRT_Client_PlatformName`.
pub(crate) fn client_platform_name<C: PjrtClient>(
    args: View<'_, PJRT_Client_PlatformName_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    output_str!(args.platform_name, platform_name_size = client.client.platform_name());
    Ok(())
}

/// `PJRT_Client_ProcessIndex`.
pub(crate) fn client_process_index<C: PjrtClient>(
    args: View<'_, PJRT_Client_ProcessIndex_Args>,
) -> Result<()> {
    output!(args.process_index = handle!(args.client: ClientState<C>)?.process_index);
    Ok(())
}

/// `PJRT_Client_PlatformVersion`.
pub(crate) fn client_platform_version<C: PjrtClient>(
    args: View<'_, PJRT_Client_PlatformVersion_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    output_str!(args.platform_version, platform_version_size = &client.platform_version);
    Ok(())
}

/// `PJRT_Client_Devices`.
pub(crate) fn client_devices<C: PjrtClient>(args: View<'_, PJRT_Client_Devices_Args>) -> Result<()> {
    output_slice!(args.devices, num_devices = &handle!(args.client: ClientState<C>)?.device_pointers);
    Ok(())
}

/// `PJRT_Client_AddressableDevices`.
pub(crate) fn client_addressable_devices<C: PjrtClient>(
    args: View<'_, PJRT_Client_AddressableDevices_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    output_slice!(args.addressable_devices, num_addressable_devices = &client.addressable_device_pointers);
    Ok(())
}

/// `PJRT_Client_LookupDevice`: finds a device by its global id.
pub(crate) fn client_lookup_device<C: PjrtClient>(
    args: View<'_, PJRT_Client_LookupDevice_Args>,
) -> Result<()> {
    let (client, id) = (handle!(args.client: ClientState<C>)?, input!(args.id));
    let Some(index) = client.device_index(id) else {
        return Err(Error::invalid_argument(format!("No matching device found for device_id {id}")));
    };
    output!(args.device = client.device_pointer(index));
    Ok(())
}

/// `PJRT_Client_LookupAddressableDevice`: finds a device by its number on this machine.
pub(crate) fn client_lookup_addressable_device<C: PjrtClient>(
    args: View<'_, PJRT_Client_LookupAddressableDevice_Args>,
) -> Result<()> {
    let (client, id) = (handle!(args.client: ClientState<C>)?, input!(args.local_hardware_id));
    let mut devices = client.devices.iter();
    let Some(device) = devices.find(|device| device.addressable && device.local_hardware_id == id) else {
        return Err(Error::invalid_argument(format!("No matching device found for local_hardware_id {id}")));
    };
    output!(args.addressable_device = client.device_pointer(device.index));
    Ok(())
}

/// `PJRT_Client_AddressableMemories`.
pub(crate) fn client_addressable_memories<C: PjrtClient>(
    args: View<'_, PJRT_Client_AddressableMemories_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    output_slice!(args.addressable_memories, num_addressable_memories = &client.addressable_memory_pointers);
    Ok(())
}

/// `PJRT_Client_TopologyDescription`: returns the client's topology, which the client owns.
pub(crate) fn client_topology_description<C: PjrtClient>(
    args: View<'_, PJRT_Client_TopologyDescription_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    output!(args.topology = (&raw const client.topology).cast_mut().cast());
    Ok(())
}

/// `PJRT_Client_DefaultDeviceAssignment`: writes the assignment to an array of the host.
pub(crate) fn client_default_device_assignment<C: PjrtClient>(
    args: View<'_, PJRT_Client_DefaultDeviceAssignment_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    let (replicas, partitions) = (input!(args.num_replicas), input!(args.num_partitions));
    let size = input!(args.default_assignment_size);
    let (Ok(num_replicas), Ok(num_partitions)) = (usize::try_from(replicas), usize::try_from(partitions))
    else {
        return Err(Error::invalid_argument(format!(
            "the numbers of replicas and partitions must be at least 0, found {replicas} and {partitions}"
        )));
    };
    let needed = num_replicas.saturating_mul(num_partitions);
    if size < needed {
        return Err(Error::failed_precondition(format!(
            "PJRT_Client_DefaultDeviceAssignment: `default_assignment_size` {size} must be greater than or equal to \
             `num_replicas * num_partitions` {replicas} * {partitions} = {needed}"
        )));
    }
    let assignment = client.client.default_device_assignment(num_replicas, num_partitions)?;
    let target = input!(args.default_assignment);
    if target.is_null() {
        return Err(null("default_assignment"));
    }
    for (place, id) in assignment.devices().iter().take(needed).enumerate() {
        // SAFETY: the host's array has `size` elements, and `place < needed <= size`.
        unsafe { target.add(place).write(*id) };
    }
    Ok(())
}

/// `PJRT_Client_DmaMap`.
pub(crate) fn client_dma_map<C: PjrtClient>(args: View<'_, PJRT_Client_DmaMap_Args>) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    let (data, size) = (input!(args.data), input!(args.size));
    if data.is_null() {
        return Err(null("data"));
    }
    client.client.map_host_memory(data.expose_provenance(), size)
}

/// `PJRT_Client_DmaUnmap`.
pub(crate) fn client_dma_unmap<C: PjrtClient>(args: View<'_, PJRT_Client_DmaUnmap_Args>) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    let data = input!(args.data);
    if data.is_null() {
        return Err(null("data"));
    }
    client.client.unmap_host_memory(data.expose_provenance())
}

/// `PJRT_Client_UpdateGlobalProcessInfo`. Hosts abort on an error.
pub(crate) fn client_update_global_process_info<C: PjrtClient>(
    args: View<'_, PJRT_Client_UpdateGlobalProcessInfo_Args>,
) -> Result<()> {
    let client = handle!(args.client: ClientState<C>)?;
    // SAFETY: pointer and length describe an array of the host.
    let infos = unsafe { read_process_infos(input!(args.process_infos), input!(args.num_process_infos)) }?;
    client.client.process_info_changed(&infos);
    Ok(())
}

/// Reads an array whose elements have the size of the host's version.
///
/// # Safety
///
/// `infos` is null or the start of `len` structs of the host's version, each of which begins with its size.
unsafe fn read_process_infos(infos: *mut PJRT_ProcessInfo, len: usize) -> Result<Vec<ProcessInfo>> {
    if infos.is_null() {
        return Ok(Vec::new());
    }
    let mut read = Vec::new();
    let mut next = infos;
    for _ in 0..len {
        // SAFETY: the caller's contract makes `next` an element.
        let info = unsafe { View::new(next) }?;
        // An element occupies its declared size, rounded up to the alignment of its largest field.
        // SAFETY: this is the next element, or the end of the array.
        next = unsafe { next.byte_add(info.size().next_multiple_of(align_of::<PJRT_ProcessInfo>())) };
        let code = PJRT_Error_Code(input!(info.error_code).cast_unsigned());
        let error = (code.0 != 0).then(|| {
            // SAFETY: message and size describe a string of the host.
            unsafe { host_error(code, input!(info.error_message), input!(info.error_message_size)) }
        });
        read.push(ProcessInfo {
            task_id: input!(info.task_id),
            incarnation_id: input!(info.incarnation_id),
            state: match input!(info.state) {
                PJRT_ProcessState_kUninitialized => ProcessState::Uninitialized,
                PJRT_ProcessState_kDisconnected => ProcessState::Disconnected,
                PJRT_ProcessState_kConnected => ProcessState::Connected,
                PJRT_ProcessState_kError => ProcessState::Error,
                _ => ProcessState::Unspecified,
            },
            error,
        });
    }
    Ok(read)
}
