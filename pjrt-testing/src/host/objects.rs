//! Devices, their descriptions and memories, which belong to a client or topology.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pjrt_sys::*;

use super::call::{call, text_of, value_of};
use super::error::{Code, Error, Result};
use super::plugin::Plugin;
use super::slices::given;
use super::values::{NamedValue, named_values, to_raw};
use crate::preferred::preferred_kind;

/// A device of a client (`PJRT_Device`).
#[derive(Debug, Clone, Copy)]
pub struct Device<'c> {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_Device,
    pub(crate) client: PhantomData<&'c ()>,
}

// SAFETY: the interface allows the use of devices on every thread.
unsafe impl Send for Device<'_> {}
// SAFETY: as above.
unsafe impl Sync for Device<'_> {}

impl PartialEq for Device<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<'c> Device<'c> {
    pub(crate) fn new(plugin: Plugin, raw: *mut PJRT_Device) -> Self {
        Self { plugin, raw, client: PhantomData }
    }

    pub(crate) fn list(
        plugin: Plugin,
        function: &'static str,
        start: *const *mut PJRT_Device,
        len: usize,
    ) -> Result<Vec<Self>> {
        // SAFETY: the plugin returned the pointer and the length of an array.
        let devices = unsafe { given(function, start, len) }?;
        Ok(devices.iter().map(|raw| Self::new(plugin, *raw)).collect())
    }

    /// Returns `true` if the pointer is null, which the interface never allows.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.raw.is_null()
    }

    value_of! {
        /// Returns `true` if this process can use the device (`PJRT_Device_IsAddressable`).
        is_addressable PJRT_Device_IsAddressable_Args device -> is_addressable: bool;
        /// Returns the device's number on this machine, or -1 (`PJRT_Device_LocalHardwareId`).
        local_hardware_id PJRT_Device_LocalHardwareId_Args device -> local_hardware_id: c_int;
    }

    /// Returns the description (`PJRT_Device_GetDescription`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn description(&self) -> Result<DeviceDescription<'c>> {
        let args = call!(self.plugin, PJRT_Device_GetDescription_Args { device: self.raw })?;
        if args.device_description.is_null() {
            return Err(Error::broken(
                "PJRT_Device_GetDescription",
                "it succeeded, but it returned a null pointer",
            ));
        }
        Ok(DeviceDescription { plugin: self.plugin, raw: args.device_description, owner: PhantomData })
    }

    /// Returns the memories (`PJRT_Device_AddressableMemories`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memories(&self) -> Result<Vec<Memory<'c>>> {
        let args = call!(self.plugin, PJRT_Device_AddressableMemories_Args { device: self.raw })?;
        Memory::list(self.plugin, "PJRT_Device_AddressableMemories", args.memories, args.num_memories)
    }

    /// Returns the memory whose kind the host [prefers](crate::preferred), if it prefers one.
    pub(super) fn preferred_memory(&self) -> Result<Option<Memory<'c>>> {
        let Some(kind) = preferred_kind() else { return Ok(None) };
        for memory in self.memories()? {
            if memory.kind()? == kind {
                return Ok(Some(memory));
            }
        }
        Ok(None)
    }

    /// Returns the memory for arrays whose memory is not specified (`PJRT_Device_DefaultMemory`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn default_memory(&self) -> Result<Memory<'c>> {
        let args = call!(self.plugin, PJRT_Device_DefaultMemory_Args { device: self.raw })?;
        Memory::new(self.plugin, args.memory, "PJRT_Device_DefaultMemory")
    }

    /// Returns the memory usage (`PJRT_Device_MemoryStats`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        let args = call!(self.plugin, PJRT_Device_MemoryStats_Args { device: self.raw })?;
        let when = |is_set: bool, value: i64| is_set.then_some(value);
        Ok(MemoryStats {
            bytes_in_use: args.bytes_in_use,
            peak_bytes_in_use: when(args.peak_bytes_in_use_is_set, args.peak_bytes_in_use),
            bytes_limit: when(args.bytes_limit_is_set, args.bytes_limit),
        })
    }

    /// Resets the peak values (`PJRT_Device_ClearMemoryStats`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn clear_memory_stats(&self) -> Result<()> {
        call!(self.plugin, PJRT_Device_ClearMemoryStats_Args { device: self.raw }).map(drop)
    }

    /// Fails an unfinished execution (`PJRT_Device_PoisonExecution`). Returns `true` if there was one.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn poison_execution(&self, launch_id: i32, message: &str) -> Result<bool> {
        self.poison_execution_with(launch_id, (Code::INTERNAL, message), &[])
    }

    /// The same as [`poison_execution`](Self::poison_execution), with a code and payloads of the error.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn poison_execution_with(
        &self,
        launch_id: i32,
        (code, message): (Code, &str),
        payloads: &[NamedValue],
    ) -> Result<bool> {
        let payload = to_raw(payloads);
        let args = call!(
            self.plugin,
            PJRT_Device_PoisonExecution_Args {
                device: self.raw,
                launch_id,
                error_code: PJRT_Error_Code(code.0),
                error_message: message.as_ptr().cast(),
                error_message_size: message.len(),
                payload: if payload.is_empty() { ptr::null() } else { payload.as_ptr() },
                num_payload: payload.len(),
            }
        )?;
        Ok(args.poisoned)
    }

    /// Returns the attributes (`PJRT_Device_GetAttributes`), and whether the plugin returned a deleter for
    /// them, which hosts call without checking it for null.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes(&self) -> Result<(Vec<NamedValue>, bool)> {
        let args = call!(self.plugin, PJRT_Device_GetAttributes_Args { device: self.raw })?;
        // SAFETY: the plugin returned the pointer and the length of an array that lives until it is deleted,
        // once.
        unsafe {
            let attributes = named_values("PJRT_Device_GetAttributes", args.attributes, args.num_attributes);
            if let Some(delete) = args.attributes_deleter {
                delete(args.device_attributes);
            }
            Ok((attributes?, args.attributes_deleter.is_some()))
        }
    }

    /// Creates and destroys an event that appears in traces (`PJRT_Device_CreateAsyncTrackingEvent`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn track(&self, description: &str) -> Result<()> {
        let args = call!(
            self.plugin,
            PJRT_Device_CreateAsyncTrackingEvent_Args {
                device: self.raw,
                description: description.as_ptr().cast(),
                description_size: description.len(),
            }
        )?;
        if args.event.is_null() {
            return Ok(());
        }
        call!(self.plugin, PJRT_AsyncTrackingEvent_Destroy_Args { event: args.event }).map(drop)
    }
}

/// A part of `PJRT_Device_MemoryStats`, in bytes. Values that the plugin does not report are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryStats {
    /// The memory in use.
    pub bytes_in_use: i64,
    /// The peak of the memory in use.
    pub peak_bytes_in_use: Option<i64>,
    /// The memory that is available in total.
    pub bytes_limit: Option<i64>,
}

/// The description of a device (`PJRT_DeviceDescription`).
#[derive(Debug, Clone, Copy)]
pub struct DeviceDescription<'c> {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_DeviceDescription,
    pub(crate) owner: PhantomData<&'c ()>,
}

// SAFETY: the interface allows the use of descriptions on every thread.
unsafe impl Send for DeviceDescription<'_> {}
// SAFETY: as above.
unsafe impl Sync for DeviceDescription<'_> {}

impl DeviceDescription<'_> {
    value_of! {
        /// Returns the device's id, which is unique among the devices of all processes
        /// (`PJRT_DeviceDescription_Id`).
        id PJRT_DeviceDescription_Id_Args device_description -> id: c_int;
        /// Returns the index of the process that the device belongs to
        /// (`PJRT_DeviceDescription_ProcessIndex`).
        process_index PJRT_DeviceDescription_ProcessIndex_Args device_description -> process_index: c_int;
    }

    text_of! {
        /// Returns the vendor's name of the kind of device (`PJRT_DeviceDescription_Kind`).
        kind PJRT_DeviceDescription_Kind_Args device_description -> device_kind device_kind_size;
        /// Returns a detailed description for debugging (`PJRT_DeviceDescription_DebugString`).
        debug_string PJRT_DeviceDescription_DebugString_Args device_description -> debug_string debug_string_size;
        /// Returns a short description (`PJRT_DeviceDescription_ToString`).
        to_text PJRT_DeviceDescription_ToString_Args device_description -> to_string to_string_size;
    }

    /// Returns the attributes (`PJRT_DeviceDescription_Attributes`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn attributes(&self) -> Result<Vec<NamedValue>> {
        let args =
            call!(self.plugin, PJRT_DeviceDescription_Attributes_Args { device_description: self.raw })?;
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // description.
        unsafe { named_values("PJRT_DeviceDescription_Attributes", args.attributes, args.num_attributes) }
    }
}

/// A memory of a device (`PJRT_Memory`).
#[derive(Debug, Clone, Copy)]
pub struct Memory<'c> {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_Memory,
    pub(crate) client: PhantomData<&'c ()>,
}

// SAFETY: the interface allows the use of memories on every thread.
unsafe impl Send for Memory<'_> {}
// SAFETY: as above.
unsafe impl Sync for Memory<'_> {}

impl PartialEq for Memory<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<'c> Memory<'c> {
    pub(crate) fn new(plugin: Plugin, raw: *mut PJRT_Memory, function: &'static str) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::broken(function, "it succeeded, but the memory is a null pointer"));
        }
        Ok(Self { plugin, raw, client: PhantomData })
    }

    pub(crate) fn list(
        plugin: Plugin,
        function: &'static str,
        start: *const *mut PJRT_Memory,
        len: usize,
    ) -> Result<Vec<Self>> {
        // SAFETY: the plugin returned the pointer and the length of an array.
        let memories = unsafe { given(function, start, len) }?;
        Ok(memories.iter().map(|raw| Self { plugin, raw: *raw, client: PhantomData }).collect())
    }

    value_of! {
        /// Returns the memory's id (`PJRT_Memory_Id`).
        id PJRT_Memory_Id_Args memory -> id: c_int;
        /// Returns the id of the memory's kind (`PJRT_Memory_Kind_Id`).
        kind_id PJRT_Memory_Kind_Id_Args memory -> kind_id: c_int;
    }

    text_of! {
        /// Returns the memory's kind, such as `device` or `pinned_host` (`PJRT_Memory_Kind`).
        kind PJRT_Memory_Kind_Args memory -> kind kind_size;
        /// Returns a detailed description for debugging (`PJRT_Memory_DebugString`).
        debug_string PJRT_Memory_DebugString_Args memory -> debug_string debug_string_size;
        /// Returns a short description (`PJRT_Memory_ToString`).
        to_text PJRT_Memory_ToString_Args memory -> to_string to_string_size;
    }

    /// Returns the devices that can use the memory (`PJRT_Memory_AddressableByDevices`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn devices(&self) -> Result<Vec<Device<'c>>> {
        let args = call!(self.plugin, PJRT_Memory_AddressableByDevices_Args { memory: self.raw })?;
        Device::list(self.plugin, "PJRT_Memory_AddressableByDevices", args.devices, args.num_devices)
    }

    /// Returns the memory that the host [prefers](crate::preferred), if this is the default memory of a device.
    pub(super) fn or_preferred(self) -> Result<Self> {
        if preferred_kind().is_none() {
            return Ok(self);
        }
        for device in self.devices()? {
            if device.default_memory()? == self {
                return Ok(device.preferred_memory()?.unwrap_or(self));
            }
        }
        Ok(self)
    }

    /// Returns the functions that the first word of a memory points to, from version 0.105.
    fn table(&self) -> Option<PJRT_Memory_FunctionTable> {
        const SINCE: i32 = 105;
        if self.plugin.version().1 < SINCE {
            return None;
        }
        // SAFETY: from this version, memories begin with null or a pointer to their functions.
        unsafe {
            let table = (*self.raw).vtable;
            if table.is_null() { None } else { Some(table.read()) }
        }
    }

    /// Attaches user data under a key. Returns `None` if the memory has no functions for user data. Hosts use
    /// addresses as keys.
    #[must_use]
    pub fn set_user_data(&self, key: &'static u8, data: &UserData) -> Option<()> {
        let set = self.table()?.set_user_data?;
        let owned = Arc::into_raw(Arc::clone(&data.0)).cast_mut().cast();
        // SAFETY: the memory lives as long as its client. The plugin owns one reference to the data, which it
        // releases through the function.
        unsafe { set(self.raw, ptr_of(key), owned, Some(drop_user_data)) };
        Some(())
    }

    /// Returns `true` if this data is attached under a key, or `None` if the memory has no functions for user
    /// data.
    #[must_use]
    pub fn has_user_data(&self, key: &'static u8, data: &UserData) -> Option<bool> {
        let get = self.table()?.get_user_data?;
        // SAFETY: the memory lives as long as its client.
        let found = unsafe { get(self.raw, ptr_of(key)) };
        Some(found.cast_const().cast() == Arc::as_ptr(&data.0))
    }
}

fn ptr_of(key: &'static u8) -> *const c_void {
    std::ptr::from_ref(key).cast()
}

/// User data that a host attached to a memory, with the number of calls of its destructor.
#[derive(Debug, Default)]
pub struct UserData(Arc<AtomicUsize>);

impl UserData {
    /// Returns the number of times that the plugin destroyed the data.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// The destructor of the data.
///
/// # Safety
///
/// The plugin calls this function once for each value of `set_user_data`.
unsafe extern "C" fn drop_user_data(data: *mut c_void) {
    // A second call is counted and does not crash, because the reference of the `Arc` is never released.
    // SAFETY: the data is a counter that a reference from `set_user_data` keeps alive.
    unsafe { &*data.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}
