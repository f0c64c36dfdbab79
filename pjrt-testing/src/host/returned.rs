//! Memory that a plugin returned and still owns, which can be read again later.

use std::ffi::{c_char, c_void};

use pjrt_sys::*;

use super::buffer::Buffer;
use super::call::call;
use super::client::Client;
use super::error::Result;
use super::executable::{Executable, LoadedExecutable};
use super::objects::{Device, DeviceDescription, Memory};
use super::plugin::Plugin;
use super::slices::{believed, given, given_text};
use super::topology::Topology;

/// A list or a string that a plugin returned. It must not change while its owner exists.
#[derive(Debug, Clone, Copy)]
pub struct Returned {
    function: &'static str,
    start: *const u8,
    size: usize,
}

impl Returned {
    /// Returns the current bytes.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the size is not credible.
    pub fn read(&self) -> Result<Vec<u8>> {
        believed::<u8>(self.function, self.size)?;
        if self.start.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the plugin returned the address of this many bytes, which stay valid while their owner exists. If
        // the plugin freed them, the copy may have got their memory, so they are read one by one.
        let byte = |at: usize| unsafe { self.start.add(at).read_volatile() };
        Ok((0..self.size).map(byte).collect())
    }
}

/// Memory that a plugin returned, and that can be read again.
pub trait ReadAgain {
    /// Returns the current bytes.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the size is not credible.
    fn read_again(&self) -> Result<Vec<u8>>;
}

impl ReadAgain for Returned {
    fn read_again(&self) -> Result<Vec<u8>> {
        self.read()
    }
}

impl ReadAgain for Vec<Returned> {
    fn read_again(&self) -> Result<Vec<u8>> {
        self.iter().map(Returned::read).collect::<Result<Vec<_>>>().map(|parts| parts.concat())
    }
}

impl ReadAgain for ReturnedBytes {
    fn read_again(&self) -> Result<Vec<u8>> {
        self.read()
    }
}

/// Defines methods that return a list or a string without copying it.
macro_rules! returned {
    ($($(#[$doc:meta])* $owner:ty, $method:ident $args:ident $object:ident -> $start:ident $len:ident [$element:ty];)*) => {
        $(
            impl $owner {
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// Returns the plugin's error.
                pub fn $method(&self) -> Result<Returned> {
                    let args = call!(self.plugin, $args { $object: self.raw })?;
                    const FUNCTION: &str = stringify!($args).split_at(stringify!($args).len() - "_Args".len()).0;
                    let size = args.$len.saturating_mul(size_of::<$element>());
                    Ok(Returned { function: FUNCTION, start: args.$start.cast::<u8>(), size })
                }
            }
        )*
    };
}

returned! {
    /// Returns the list of `PJRT_Client_Devices`.
    Client, returned_devices PJRT_Client_Devices_Args client -> devices num_devices [usize];
    /// Returns the list of `PJRT_Client_AddressableDevices`.
    Client, returned_addressable_devices PJRT_Client_AddressableDevices_Args client -> addressable_devices num_addressable_devices [usize];
    /// Returns the list of `PJRT_Client_AddressableMemories`.
    Client, returned_memories PJRT_Client_AddressableMemories_Args client -> addressable_memories num_addressable_memories [usize];
    /// Returns the string of `PJRT_Client_PlatformName`.
    Client, returned_platform_name PJRT_Client_PlatformName_Args client -> platform_name platform_name_size [u8];
    /// Returns the list of `PJRT_Device_AddressableMemories`.
    Device<'_>, returned_memories PJRT_Device_AddressableMemories_Args device -> memories num_memories [usize];
    /// Returns the string of `PJRT_Memory_Kind`.
    Memory<'_>, returned_kind PJRT_Memory_Kind_Args memory -> kind kind_size [u8];
    /// Returns the list of `PJRT_Memory_AddressableByDevices`.
    Memory<'_>, returned_devices PJRT_Memory_AddressableByDevices_Args memory -> devices num_devices [usize];
    /// Returns the list of `PJRT_LoadedExecutable_AddressableDevices`.
    LoadedExecutable, returned_devices PJRT_LoadedExecutable_AddressableDevices_Args executable -> addressable_devices num_addressable_devices [usize];
    /// Returns the string of `PJRT_Executable_Name`.
    Executable, returned_name PJRT_Executable_Name_Args executable -> executable_name executable_name_size [u8];
    /// Returns the list of `PJRT_Executable_OutputElementTypes`.
    Executable, returned_output_types PJRT_Executable_OutputElementTypes_Args executable -> output_types num_output_types [u32];
    /// Returns the ranks of `PJRT_Executable_OutputDimensions`.
    Executable, returned_output_ranks PJRT_Executable_OutputDimensions_Args executable -> dim_sizes num_outputs [usize];
    /// Returns the list of `PJRT_Executable_OutputMemoryKinds`.
    Executable, returned_output_memory_kinds PJRT_Executable_OutputMemoryKinds_Args executable -> memory_kinds num_outputs [usize];
    /// Returns the list of `PJRT_Executable_ParameterMemoryKinds`.
    Executable, returned_parameter_memory_kinds PJRT_Executable_ParameterMemoryKinds_Args executable -> memory_kinds num_parameters [usize];
    /// Returns the string of `PJRT_Executable_Fingerprint`.
    Executable, returned_fingerprint PJRT_Executable_Fingerprint_Args executable -> executable_fingerprint executable_fingerprint_size [u8];
    /// Returns the list of `PJRT_Executable_GetCostAnalysis`.
    Executable, returned_costs PJRT_Executable_GetCostAnalysis_Args executable -> properties num_properties [PJRT_NamedValue];
    /// Returns the string of `PJRT_LoadedExecutable_Fingerprint`.
    LoadedExecutable, returned_fingerprint PJRT_LoadedExecutable_Fingerprint_Args executable -> executable_fingerprint executable_fingerprint_size [u8];
    /// Returns the list of `PJRT_LoadedExecutable_AddressableDeviceLogicalIds`.
    LoadedExecutable, returned_logical_ids PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args executable -> addressable_device_logical_ids num_addressable_device_logical_ids [PJRT_LogicalDeviceIds];
    /// Returns the string of `PJRT_Client_PlatformVersion`.
    Client, returned_platform_version PJRT_Client_PlatformVersion_Args client -> platform_version platform_version_size [u8];
    /// Returns the string of `PJRT_DeviceDescription_Kind`.
    DeviceDescription<'_>, returned_kind PJRT_DeviceDescription_Kind_Args device_description -> device_kind device_kind_size [u8];
    /// Returns the string of `PJRT_DeviceDescription_DebugString`.
    DeviceDescription<'_>, returned_debug_string PJRT_DeviceDescription_DebugString_Args device_description -> debug_string debug_string_size [u8];
    /// Returns the string of `PJRT_DeviceDescription_ToString`.
    DeviceDescription<'_>, returned_to_string PJRT_DeviceDescription_ToString_Args device_description -> to_string to_string_size [u8];
    /// Returns the list of `PJRT_DeviceDescription_Attributes`.
    DeviceDescription<'_>, returned_attributes PJRT_DeviceDescription_Attributes_Args device_description -> attributes num_attributes [PJRT_NamedValue];
    /// Returns the string of `PJRT_Memory_DebugString`.
    Memory<'_>, returned_debug_string PJRT_Memory_DebugString_Args memory -> debug_string debug_string_size [u8];
    /// Returns the string of `PJRT_Memory_ToString`.
    Memory<'_>, returned_to_string PJRT_Memory_ToString_Args memory -> to_string to_string_size [u8];
    /// Returns the list of `PJRT_Buffer_Dimensions`.
    Buffer, returned_dims PJRT_Buffer_Dimensions_Args buffer -> dims num_dims [i64];
    /// Returns the list of `PJRT_Buffer_UnpaddedDimensions`.
    Buffer, returned_unpadded_dims PJRT_Buffer_UnpaddedDimensions_Args buffer -> unpadded_dims num_dims [i64];
    /// Returns the string of `PJRT_TopologyDescription_PlatformName`.
    Topology, returned_platform_name PJRT_TopologyDescription_PlatformName_Args topology -> platform_name platform_name_size [u8];
    /// Returns the string of `PJRT_TopologyDescription_PlatformVersion`.
    Topology, returned_platform_version PJRT_TopologyDescription_PlatformVersion_Args topology -> platform_version platform_version_size [u8];
    /// Returns the list of `PJRT_TopologyDescription_GetDeviceDescriptions`.
    Topology, returned_devices PJRT_TopologyDescription_GetDeviceDescriptions_Args topology -> descriptions num_descriptions [usize];
    /// Returns the list of `PJRT_TopologyDescription_Attributes`.
    Topology, returned_attributes PJRT_TopologyDescription_Attributes_Args topology -> attributes num_attributes [PJRT_NamedValue];
}

impl Returned {
    /// Returns the elements of a list.
    ///
    /// # Safety
    ///
    /// The list has elements of this type.
    unsafe fn elements<T: Copy>(&self) -> Result<Vec<T>> {
        // SAFETY: guaranteed by the caller; the plugin returned the address of this many bytes.
        Ok(unsafe { given(self.function, self.start.cast::<T>(), self.size / size_of::<T>()) }?.to_vec())
    }

    /// Returns a list of named values, and their names and strings.
    ///
    /// # Safety
    ///
    /// The list has named values as elements.
    unsafe fn with_names(self) -> Result<Vec<Self>> {
        // SAFETY: guaranteed by the caller.
        let values: Vec<PJRT_NamedValue> = unsafe { self.elements() }?;
        let part =
            |start: *const c_char, size: usize| Self { function: self.function, start: start.cast(), size };
        let mut parts = vec![self];
        for value in values {
            parts.push(part(value.name, value.name_size));
            if value.type_ == PJRT_NamedValue_kString {
                // SAFETY: the type says which field of the union is set.
                parts.push(part(unsafe { value.u.string_value }, value.value_size));
            }
        }
        Ok(parts)
    }
}

/// Defines methods that return a list of named values with their names and strings.
macro_rules! returned_named_values {
    ($($owner:ty, $method:ident $list:ident;)*) => {
        $(
            impl $owner {
                /// Returns the list, and the names and strings of its values.
                ///
                /// # Errors
                ///
                /// Returns the plugin's error, or INTERNAL if the size is not credible.
                pub fn $method(&self) -> Result<Vec<Returned>> {
                    // SAFETY: the function returns named values.
                    unsafe { self.$list()?.with_names() }
                }
            }
        )*
    };
}

returned_named_values! {
    Executable, returned_costs_and_names returned_costs;
    DeviceDescription<'_>, returned_attributes_and_names returned_attributes;
    Topology, returned_attributes_and_names returned_attributes;
}

impl Executable {
    /// Returns the ranks and the dimensions of `PJRT_Executable_OutputDimensions`.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn returned_output_dims(&self) -> Result<Vec<Returned>> {
        let ranks = self.returned_output_ranks()?;
        let args = call!(self.plugin, PJRT_Executable_OutputDimensions_Args { executable: self.raw })?;
        // SAFETY: the ranks are a list of sizes.
        let all: usize = unsafe { ranks.elements::<usize>() }?.into_iter().fold(0, usize::saturating_add);
        let size = all.saturating_mul(size_of::<i64>());
        let dims = Returned { function: ranks.function, start: args.dims.cast(), size };
        Ok(vec![dims, ranks])
    }

    /// Returns the list, the sizes and the strings of `PJRT_Executable_OutputMemoryKinds`.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn returned_output_kinds(&self) -> Result<Vec<Returned>> {
        let list = self.returned_output_memory_kinds()?;
        let args = call!(self.plugin, PJRT_Executable_OutputMemoryKinds_Args { executable: self.raw })?;
        let part = |start: *const u8, size: usize| Returned { function: list.function, start, size };
        let sizes = part(args.memory_kind_sizes.cast(), list.size);
        // SAFETY: the lists are of pointers and of sizes.
        let (starts, lens) = unsafe { (list.elements::<*const u8>()?, sizes.elements::<usize>()?) };
        let texts = starts.into_iter().zip(lens).map(|(start, size)| part(start, size));
        Ok([list, sizes].into_iter().chain(texts).collect())
    }
}

/// Serialized bytes that the plugin still owns. Dropping them calls their deleter.
#[derive(Debug)]
pub struct ReturnedBytes {
    bytes: Returned,
    backing: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl ReturnedBytes {
    /// Returns the current bytes.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the size is not credible.
    pub fn read(&self) -> Result<Vec<u8>> {
        self.bytes.read()
    }
}

impl Drop for ReturnedBytes {
    fn drop(&mut self) {
        if let Some(delete) = self.deleter {
            // SAFETY: the plugin returned the function for this object, and it is called once.
            unsafe { delete(self.backing) };
        }
    }
}

/// Defines methods that return serialized bytes with their deleter.
macro_rules! returned_bytes {
    ($($(#[$doc:meta])* $owner:ty, $method:ident $args:ident $object:ident -> $backing:ident $deleter:ident;)*) => {
        $(
            impl $owner {
                $(#[$doc])*
                ///
                /// # Errors
                ///
                /// Returns the plugin's error.
                pub fn $method(&self) -> Result<ReturnedBytes> {
                    let args = call!(self.plugin, $args { $object: self.raw })?;
                    const FUNCTION: &str = stringify!($args).split_at(stringify!($args).len() - "_Args".len()).0;
                    let start = args.serialized_bytes.cast::<u8>();
                    // SAFETY: the types differ only in the type of the object that the pointer refers to.
                    let deleter = args.$deleter.map(|delete| unsafe {
                        std::mem::transmute::<unsafe extern "C" fn(_), unsafe extern "C" fn(*mut c_void)>(delete)
                    });
                    let bytes = Returned { function: FUNCTION, start, size: args.serialized_bytes_size };
                    Ok(ReturnedBytes { bytes, backing: args.$backing.cast(), deleter })
                }
            }
        )*
    };
}

returned_bytes! {
    /// Returns the bytes of `PJRT_Executable_Serialize`.
    Executable, returned_serialized PJRT_Executable_Serialize_Args executable -> serialized_executable serialized_executable_deleter;
    /// Returns the bytes of `PJRT_Executable_GetCompileOptions`.
    Executable, returned_compile_options PJRT_Executable_GetCompileOptions_Args executable -> serialized_compile_options serialized_compile_options_deleter;
    /// Returns the bytes of `PJRT_LoadedExecutable_GetDeviceAssignment`.
    LoadedExecutable, returned_device_assignment PJRT_LoadedExecutable_GetDeviceAssignment_Args executable -> serialized_device_assignment serialized_device_assignment_deleter;
    /// Returns the bytes of `PJRT_TopologyDescription_Serialize`.
    Topology, returned_serialized PJRT_TopologyDescription_Serialize_Args topology -> serialized_topology serialized_topology_deleter;
}

/// An error that exists until it is dropped, unlike [`super::Error`], which is a copy.
#[derive(Debug)]
pub struct HeldError {
    plugin: Plugin,
    raw: *mut PJRT_Error,
    start: *const c_char,
    size: usize,
}

impl HeldError {
    /// Reads the message at the address that the plugin returned when the error was new.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the size is not credible.
    pub fn message(&self) -> Result<String> {
        // SAFETY: the plugin returned the pointer and the length of a string that lives as long as the error.
        unsafe { given_text("PJRT_Error_Message", self.start, self.size) }
    }

    /// Queries the message again.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the size is not credible.
    pub fn message_again(&self) -> Result<String> {
        let error = self.raw.cast_const();
        let mut args =
            PJRT_Error_Message_Args { error: error.cast_mut(), ..PJRT_Error_Message_Args::zeroed() };
        self.plugin.call_raw(&mut args)?;
        // SAFETY: as above.
        unsafe { given_text("PJRT_Error_Message", args.message, args.message_size) }
    }
}

impl Drop for HeldError {
    fn drop(&mut self) {
        let mut destroy = PJRT_Error_Destroy_Args { error: self.raw, ..PJRT_Error_Destroy_Args::zeroed() };
        // If the table lacks the function, the error leaks; the conformance kit reports that.
        let _ = self.plugin.call_raw(&mut destroy);
    }
}

impl Client {
    /// Looks up a device with an id that no device has, and returns the error (`PJRT_Client_LookupDevice`).
    /// Returns `None` if the plugin returned no error.
    ///
    /// # Errors
    ///
    /// Returns UNIMPLEMENTED if the table lacks a function.
    pub fn held_lookup_error(&self, id: i32) -> Result<Option<HeldError>> {
        let mut args =
            PJRT_Client_LookupDevice_Args { client: self.raw, id, ..PJRT_Client_LookupDevice_Args::zeroed() };
        let raw = self.plugin.call_raw(&mut args)?;
        if raw.is_null() {
            return Ok(None);
        }
        let mut message = PJRT_Error_Message_Args { error: raw, ..PJRT_Error_Message_Args::zeroed() };
        self.plugin.call_raw(&mut message)?;
        let (start, size) = (message.message, message.message_size);
        Ok(Some(HeldError { plugin: self.plugin, raw, start, size }))
    }
}
