//! `PJRT_Device`.
//!
//! `PJRT_Device_GetDescription`, `PJRT_Device_IsAddressable`, `PJRT_Device_LocalHardwareId`,
//! `PJRT_Device_AddressableMemories`, `PJRT_Device_DefaultMemory`, `PJRT_Device_MemoryStats`,
//! `PJRT_Device_PoisonExecution`, `PJRT_Device_CreateAsyncTrackingEvent`, `PJRT_AsyncTrackingEvent_Destroy`,
//! `PJRT_Device_GetAttributes`, `PJRT_Device_ClearMemoryStats`.

use std::ptr;
use std::sync::OnceLock;
use std::sync::{Arc, Weak};

use pjrt_sys::{
    PJRT_AsyncTrackingEvent_Destroy_Args, PJRT_Device, PJRT_Device_AddressableMemories_Args,
    PJRT_Device_Attributes, PJRT_Device_ClearMemoryStats_Args, PJRT_Device_CreateAsyncTrackingEvent_Args,
    PJRT_Device_DefaultMemory_Args, PJRT_Device_GetAttributes_Args, PJRT_Device_GetDescription_Args,
    PJRT_Device_IsAddressable_Args, PJRT_Device_LocalHardwareId_Args, PJRT_Device_MemoryStats_Args,
    PJRT_Device_PoisonExecution_Args, PJRT_Memory,
};

use crate::abi::args::{View, bytes, handle, input, output, output_slice};
use crate::abi::client_state::ClientState;
use crate::abi::device_description::DescriptionHandle;
use crate::abi::error::{host_error, with_payloads};
use crate::abi::handle::Handle;
use crate::client::PjrtClient;
use crate::device::{DeviceId, PjrtDevice};
use crate::error::{Error, Result};

/// The object behind a `PJRT_Device`, which its client owns.
pub(crate) struct DeviceHandle<C: PjrtClient> {
    pub(crate) client: Weak<ClientState<C>>,
    /// Its index in the client's devices.
    pub(crate) index: usize,
    pub(crate) description: DescriptionHandle,
    pub(crate) addressable: bool,
    pub(crate) local_hardware_id: i32,
    /// The indices of its memories in those of the client. The first memory is the default one.
    pub(crate) memory_indices: Box<[usize]>,
    /// The handles of its memories, in the same order.
    pub(crate) memories: Box<[*mut PJRT_Memory]>,
}

// SAFETY: the pointers are handles, which the host may use on any thread; everything else is `Send` and `Sync`.
unsafe impl<C: PjrtClient> Send for DeviceHandle<C> {}
// SAFETY: as above; nothing changes after construction.
unsafe impl<C: PjrtClient> Sync for DeviceHandle<C> {}

impl<C: PjrtClient> Handle for DeviceHandle<C> {
    type Opaque = PJRT_Device;
    const KIND: &'static str = "PJRT_Device";
}

impl<C: PjrtClient> DeviceHandle<C> {
    pub(crate) fn id(&self) -> DeviceId {
        self.description.description.id()
    }

    fn client(&self) -> Result<Arc<ClientState<C>>> {
        self.client
            .upgrade()
            .ok_or_else(|| Error::failed_precondition("the device's client has been destroyed"))
    }
}

/// A function that is called with the size of the host's `PJRT_Device_MemoryStats_Args`. The profiler derives the host's
/// version from it.
pub(crate) static MEMORY_STATS_SIZE: OnceLock<fn(usize)> = OnceLock::new();

/// `PJRT_Device_GetDescription`.
pub(crate) fn device_get_description<C: PjrtClient>(
    args: View<'_, PJRT_Device_GetDescription_Args>,
) -> Result<()> {
    let device = handle!(args.device: DeviceHandle<C>)?;
    output!(args.device_description = (&raw const device.description).cast_mut().cast());
    Ok(())
}

/// `PJRT_Device_IsAddressable`.
pub(crate) fn device_is_addressable<C: PjrtClient>(
    args: View<'_, PJRT_Device_IsAddressable_Args>,
) -> Result<()> {
    output!(args.is_addressable = handle!(args.device: DeviceHandle<C>)?.addressable);
    Ok(())
}

/// `PJRT_Device_LocalHardwareId`.
pub(crate) fn device_local_hardware_id<C: PjrtClient>(
    args: View<'_, PJRT_Device_LocalHardwareId_Args>,
) -> Result<()> {
    output!(args.local_hardware_id = handle!(args.device: DeviceHandle<C>)?.local_hardware_id);
    Ok(())
}

/// `PJRT_Device_AddressableMemories`.
pub(crate) fn device_addressable_memories<C: PjrtClient>(
    args: View<'_, PJRT_Device_AddressableMemories_Args>,
) -> Result<()> {
    output_slice!(args.memories, num_memories = &handle!(args.device: DeviceHandle<C>)?.memories);
    Ok(())
}

/// `PJRT_Device_DefaultMemory`.
pub(crate) fn device_default_memory<C: PjrtClient>(
    args: View<'_, PJRT_Device_DefaultMemory_Args>,
) -> Result<()> {
    let device = handle!(args.device: DeviceHandle<C>)?;
    let Some(memory) = device.memories.first() else {
        return Err(Error::not_found(format!("device {} has no memory", device.id())));
    };
    output!(args.memory = *memory);
    Ok(())
}

/// `PJRT_Device_MemoryStats`. Hosts accept the code UNIMPLEMENTED.
pub(crate) fn device_memory_stats<C: PjrtClient>(args: View<'_, PJRT_Device_MemoryStats_Args>) -> Result<()> {
    if let Some(observe) = MEMORY_STATS_SIZE.get() {
        observe(args.size());
    }
    let device = handle!(args.device: DeviceHandle<C>)?;
    let client = device.client()?;
    let Some(stats) = client.author_device(device.index)?.memory_stats() else {
        return Err(Error::unimplemented(
            "the plugin has no memory statistics for this device (PjrtDevice::memory_stats returned None)",
        ));
    };
    output!(args.bytes_in_use = stats.bytes_in_use);
    macro_rules! optional {
        ($($field:ident $is_set:ident)*) => {$(
            output!(args.$field = stats.$field.unwrap_or(0));
            output!(args.$is_set = stats.$field.is_some());
        )*};
    }
    optional! {
        peak_bytes_in_use peak_bytes_in_use_is_set
        num_allocs num_allocs_is_set
        largest_alloc_size largest_alloc_size_is_set
        bytes_limit bytes_limit_is_set
        bytes_reserved bytes_reserved_is_set
        peak_bytes_reserved peak_bytes_reserved_is_set
        bytes_reservable_limit bytes_reservable_limit_is_set
        largest_free_block_bytes largest_free_block_bytes_is_set
        pool_bytes pool_bytes_is_set
        peak_pool_bytes peak_pool_bytes_is_set
        peak_allocated_bytes peak_allocated_bytes_is_set
    }
    Ok(())
}

/// `PJRT_Device_ClearMemoryStats`.
pub(crate) fn device_clear_memory_stats<C: PjrtClient>(
    args: View<'_, PJRT_Device_ClearMemoryStats_Args>,
) -> Result<()> {
    let device = handle!(args.device: DeviceHandle<C>)?;
    device.client()?.author_device(device.index)?.clear_memory_stats();
    Ok(())
}

/// `PJRT_Device_GetAttributes`: returns no attributes; all of them are in the description. Hosts abort on an error, and
/// always call the deleter.
pub(crate) fn device_get_attributes<C: PjrtClient>(
    args: View<'_, PJRT_Device_GetAttributes_Args>,
) -> Result<()> {
    output!(args.attributes = ptr::null());
    output!(args.num_attributes = 0);
    output!(args.device_attributes = ptr::null_mut());
    output!(args.attributes_deleter = Some(delete_device_attributes));
    Ok(())
}

/// `PJRT_Device_PoisonExecution`: sets an error on the outputs of an unfinished launch. Outputs that it produces later are
/// dropped.
pub(crate) fn device_poison_execution<C: PjrtClient>(
    args: View<'_, PJRT_Device_PoisonExecution_Args>,
) -> Result<()> {
    output!(args.poisoned = false);
    let device = handle!(args.device: DeviceHandle<C>)?;
    let message = bytes!(args.error_message, error_message_size)?;
    // SAFETY: the bytes are a string.
    let error = unsafe { host_error(input!(args.error_code), message.as_ptr().cast(), message.len()) };
    // SAFETY: pointer and length describe an array of the host.
    let error = unsafe { with_payloads(error, input!(args.payload), input!(args.num_payload)) }?.reported();
    let client = device.client()?;
    output!(args.poisoned = client.unfinished.poison(input!(args.launch_id), device.index, &error));
    Ok(())
}

/// `PJRT_Device_CreateAsyncTrackingEvent`: returns null, which means no tracking. Hosts abort on an error.
pub(crate) fn device_create_async_tracking_event<C: PjrtClient>(
    args: View<'_, PJRT_Device_CreateAsyncTrackingEvent_Args>,
) -> Result<()> {
    output!(args.event = ptr::null_mut());
    Ok(())
}

/// `PJRT_AsyncTrackingEvent_Destroy`: accepts only null, because the plugin creates no tracking events.
pub(crate) fn async_tracking_event_destroy<C: PjrtClient>(
    args: View<'_, PJRT_AsyncTrackingEvent_Destroy_Args>,
) -> Result<()> {
    if input!(args.event).is_null() {
        Ok(())
    } else {
        Err(Error::invalid_argument("'event' is not a tracking event of this plugin, which creates none"))
    }
}

/// # Safety
///
/// The function has no preconditions, because it does nothing.
unsafe extern "C" fn delete_device_attributes(_: *mut PJRT_Device_Attributes) {}
