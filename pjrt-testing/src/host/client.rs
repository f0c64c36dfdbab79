//! Clients.

use std::ffi::{c_int, c_void};
use std::fmt;
use std::ptr;
use std::str::FromStr;

use pjrt_sys::*;

use super::buffer::Buffer;
use super::call::{call, destroyed_by, text_of, value_of};
use super::element_type::ElementType;
use super::error::{Code, Error, Result};
use super::executable::{Executable, LoadedExecutable, Program};
use super::handles;
use super::host_memory::HostMemory;
use super::layout::Layout;
use super::objects::{Device, Memory};
use super::plugin::Plugin;
use super::topology::Topology;
use super::values::{NamedValue, Value, to_raw};
use crate::preferred::preferred;

/// A client (`PJRT_Client`). Dropping it destroys it; objects that it created may outlive it.
#[derive(Debug)]
pub struct Client {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_Client,
}

destroyed_by!(Client PJRT_Client_Destroy_Args client);

/// An option for a client.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateOption(pub NamedValue);

impl CreateOption {
    /// Creates an option with a name and a value.
    #[must_use]
    pub fn new(name: &str, value: Value) -> Self {
        Self(NamedValue { name: name.to_owned(), name_is_terminated: false, value })
    }
}

/// Writes the option in the form `name=value`, which [`FromStr`] parses unless the value is a list or a floating-point number.
impl fmt::Display for CreateOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NamedValue { name, value, .. } = &self.0;
        match value {
            Value::String(text) => write!(f, "{name}={text}"),
            value => write!(f, "{name}={value}"),
        }
    }
}

/// Parses an option in the form `name=value`. The value is an integer, `true`, `false`, or otherwise a
/// string.
impl FromStr for CreateOption {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = parts.ok_or_else(|| "expected name=value".to_owned())?;
        let value = match (value, value.parse::<i64>()) {
            (_, Ok(number)) => Value::Int64(number),
            ("true", _) => Value::Bool(true),
            ("false", _) => Value::Bool(false),
            _ => Value::String(value.to_owned()),
        };
        Ok(Self::new(name, value))
    }
}

impl Plugin {
    /// Creates a client (`PJRT_Client_Create`) without callbacks for a key-value store.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn create_client(self, options: &[CreateOption]) -> Result<Client> {
        self.create(options, ptr::null_mut())
    }

    /// The same as [`create_client`](Self::create_client), with invalid pointers as the arguments of the callbacks, which hosts
    /// that are not distributed leave uninitialized.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn create_client_with_garbage(self, options: &[CreateOption]) -> Result<Client> {
        self.create(options, ptr::without_provenance_mut(0x6))
    }

    fn create(self, options: &[CreateOption], user_argument: *mut c_void) -> Result<Client> {
        let values: Vec<NamedValue> = options.iter().map(|option| option.0.clone()).collect();
        let raw = to_raw(&values);
        let args = call!(
            self,
            PJRT_Client_Create_Args {
                create_options: raw.as_ptr(),
                num_options: raw.len(),
                kv_get_user_arg: user_argument,
                kv_put_user_arg: user_argument,
                kv_try_get_user_arg: user_argument,
            }
        )?;
        if args.client.is_null() {
            return Err(Error::broken(
                "PJRT_Client_Create",
                "it succeeded, but the client is a null pointer",
            ));
        }
        handles::take(args.client, "PJRT_Client_Create")?;
        Ok(Client { plugin: self, raw: args.client })
    }

    /// Calls a function that destroys objects, such as `PJRT_Buffer_Destroy`, with a null pointer. This is
    /// not an error.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, or UNIMPLEMENTED if the table has no such function.
    pub fn destroy_null(self, function: &str) -> Result<()> {
        match function {
            "PJRT_Error_Destroy" => call!(self, PJRT_Error_Destroy_Args {}).map(drop),
            "PJRT_Event_Destroy" => call!(self, PJRT_Event_Destroy_Args {}).map(drop),
            "PJRT_Client_Destroy" => call!(self, PJRT_Client_Destroy_Args {}).map(drop),
            "PJRT_Buffer_Destroy" => call!(self, PJRT_Buffer_Destroy_Args {}).map(drop),
            "PJRT_Executable_Destroy" => call!(self, PJRT_Executable_Destroy_Args {}).map(drop),
            "PJRT_LoadedExecutable_Destroy" => call!(self, PJRT_LoadedExecutable_Destroy_Args {}).map(drop),
            "PJRT_TopologyDescription_Destroy" => {
                call!(self, PJRT_TopologyDescription_Destroy_Args {}).map(drop)
            }
            "PJRT_ExecuteContext_Destroy" => call!(self, PJRT_ExecuteContext_Destroy_Args {}).map(drop),
            "PJRT_AsyncHostToDeviceTransferManager_Destroy" => {
                call!(self, PJRT_AsyncHostToDeviceTransferManager_Destroy_Args {}).map(drop)
            }
            _ => Err(Error::missing("a function that destroys")),
        }
    }

    /// Creates and destroys an execute context (`PJRT_ExecuteContext_Create`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn create_and_destroy_context(self) -> Result<()> {
        let args = call!(self, PJRT_ExecuteContext_Create_Args {})?;
        if args.context.is_null() {
            return Err(Error::broken(
                "PJRT_ExecuteContext_Create",
                "it succeeded, but it returned a null pointer",
            ));
        }
        call!(self, PJRT_ExecuteContext_Destroy_Args { context: args.context }).map(drop)
    }
}

impl Client {
    /// Returns the plugin.
    #[must_use]
    pub fn plugin(&self) -> Plugin {
        self.plugin
    }

    text_of! {
        /// Returns the name of the platform (`PJRT_Client_PlatformName`).
        platform_name PJRT_Client_PlatformName_Args client -> platform_name platform_name_size;
        /// Returns the versions of the platform's components (`PJRT_Client_PlatformVersion`).
        platform_version PJRT_Client_PlatformVersion_Args client -> platform_version platform_version_size;
    }

    value_of! {
        /// Returns the index of this process (`PJRT_Client_ProcessIndex`).
        process_index PJRT_Client_ProcessIndex_Args client -> process_index: c_int;
    }

    /// Returns all devices (`PJRT_Client_Devices`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn devices(&self) -> Result<Vec<Device<'_>>> {
        let args = call!(self.plugin, PJRT_Client_Devices_Args { client: self.raw })?;
        Device::list(self.plugin, "PJRT_Client_Devices", args.devices, args.num_devices)
    }

    /// Returns the devices that this process can use (`PJRT_Client_AddressableDevices`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn addressable_devices(&self) -> Result<Vec<Device<'_>>> {
        let args = call!(self.plugin, PJRT_Client_AddressableDevices_Args { client: self.raw })?;
        const FUNCTION: &str = "PJRT_Client_AddressableDevices";
        Device::list(self.plugin, FUNCTION, args.addressable_devices, args.num_addressable_devices)
    }

    /// Returns the first device that this process can use, or the one that the host [prefers](crate::preferred).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, or INTERNAL if there is no device.
    pub fn device(&self) -> Result<Device<'_>> {
        let devices = self.addressable_devices()?;
        let position = preferred().map_or(0, |device| device.position);
        devices.get(position).or(devices.first()).copied().ok_or_else(|| {
            Error::broken(
                "PJRT_Client_AddressableDevices",
                "it succeeded, but there is no addressable device",
            )
        })
    }

    /// Returns each memory of each addressable device that belongs to this device alone, with the device.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn places(&self) -> Result<Vec<(Device<'_>, Memory<'_>)>> {
        let mut all = Vec::new();
        for device in self.addressable_devices()? {
            for memory in device.memories()? {
                if memory.devices()?.len() == 1 {
                    all.push((device, memory));
                }
            }
        }
        Ok(all)
    }

    /// Returns the memories of the addressable devices (`PJRT_Client_AddressableMemories`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memories(&self) -> Result<Vec<Memory<'_>>> {
        let args = call!(self.plugin, PJRT_Client_AddressableMemories_Args { client: self.raw })?;
        const FUNCTION: &str = "PJRT_Client_AddressableMemories";
        Memory::list(self.plugin, FUNCTION, args.addressable_memories, args.num_addressable_memories)
    }

    /// Returns the device with this id (`PJRT_Client_LookupDevice`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn lookup_device(&self, id: i32) -> Result<Device<'_>> {
        let args = call!(self.plugin, PJRT_Client_LookupDevice_Args { client: self.raw, id })?;
        Ok(Device::new(self.plugin, args.device))
    }

    /// Returns the device with this local hardware id (`PJRT_Client_LookupAddressableDevice`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn lookup_addressable_device(&self, local_hardware_id: i32) -> Result<Device<'_>> {
        let args = call!(
            self.plugin,
            PJRT_Client_LookupAddressableDevice_Args { client: self.raw, local_hardware_id }
        )?;
        Ok(Device::new(self.plugin, args.addressable_device))
    }

    /// Returns the ids of a program's devices, replica by replica (`PJRT_Client_DefaultDeviceAssignment`).
    /// The plugin writes to an array of `room` elements, which are initialized to -7.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn default_assignment(&self, replicas: i32, partitions: i32, room: usize) -> Result<Vec<i32>> {
        const UNSET: i32 = -7;
        let ids = HostMemory::new(&UNSET.to_ne_bytes().repeat(room), 0);
        call!(
            self.plugin,
            PJRT_Client_DefaultDeviceAssignment_Args {
                client: self.raw,
                num_replicas: replicas,
                num_partitions: partitions,
                default_assignment_size: room,
                default_assignment: ptr::with_exposed_provenance_mut(ids.exposed()),
            }
        )?;
        let ids = ids.written("PJRT_Client_DefaultDeviceAssignment")?;
        Ok(ids.as_chunks().0.iter().map(|id| i32::from_ne_bytes(*id)).collect())
    }

    /// Returns the client's topology (`PJRT_Client_TopologyDescription`), which lives as long as the client.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn topology(&self) -> Result<Topology> {
        let args = call!(self.plugin, PJRT_Client_TopologyDescription_Args { client: self.raw })?;
        if args.topology.is_null() {
            return Err(Error::broken(
                "PJRT_Client_TopologyDescription",
                "it succeeded, but it returned a null pointer",
            ));
        }
        Ok(Topology::borrowed(self.plugin, args.topology))
    }

    /// Reports the state of another process to the client (`PJRT_Client_UpdateGlobalProcessInfo`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn update_process_info(&self, task: i32) -> Result<()> {
        const CONNECTED: PJRT_ProcessState = PJRT_ProcessState(3);
        let mut infos = [PJRT_ProcessInfo { task_id: task, state: CONNECTED, ..PJRT_ProcessInfo::zeroed() }];
        call!(
            self.plugin,
            PJRT_Client_UpdateGlobalProcessInfo_Args {
                client: self.raw,
                process_infos: infos.as_mut_ptr(),
                num_process_infos: infos.len(),
            }
        )
        .map(drop)
    }

    /// Compiles a program and loads it (`PJRT_Client_Compile`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn compile(&self, program: &Program<'_>, options: &[u8]) -> Result<LoadedExecutable> {
        let raw = program.raw();
        let args = call!(
            self.plugin,
            PJRT_Client_Compile_Args {
                client: self.raw,
                program: &raw const raw,
                compile_options: options.as_ptr().cast(),
                compile_options_size: options.len(),
            }
        )?;
        LoadedExecutable::from_raw(self.plugin, args.executable, "PJRT_Client_Compile")
    }

    /// Compiles a program for the client's topology (`PJRT_Compile`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn compile_ahead(
        &self,
        topology: &Topology,
        program: &Program<'_>,
        options: &[u8],
    ) -> Result<Executable> {
        let raw = program.raw();
        let args = call!(
            self.plugin,
            PJRT_Compile_Args {
                topology: topology.raw,
                program: &raw const raw,
                compile_options: options.as_ptr().cast(),
                compile_options_size: options.len(),
                client: self.raw,
            }
        )?;
        Executable::from_raw(self.plugin, args.executable, "PJRT_Compile")
    }

    /// Loads a compiled program (`PJRT_Client_Load`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn load(&self, executable: &Executable) -> Result<LoadedExecutable> {
        let args =
            call!(self.plugin, PJRT_Client_Load_Args { client: self.raw, executable: executable.raw })?;
        LoadedExecutable::from_raw(self.plugin, args.loaded_executable, "PJRT_Client_Load")
    }

    /// Loads a program that [`Executable::serialize`] returned (`PJRT_Executable_DeserializeAndLoad`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn deserialize(&self, serialized: &[u8]) -> Result<LoadedExecutable> {
        self.deserialize_with(serialized, &[])
    }

    /// The same as [`deserialize`](Self::deserialize), with serialized compile options that replace those that
    /// the program was compiled with. No bytes mean no options.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn deserialize_with(&self, serialized: &[u8], options: &[u8]) -> Result<LoadedExecutable> {
        let overridden = if options.is_empty() { ptr::null() } else { options.as_ptr().cast() };
        let args = call!(
            self.plugin,
            PJRT_Executable_DeserializeAndLoad_Args {
                client: self.raw,
                serialized_executable: serialized.as_ptr().cast(),
                serialized_executable_size: serialized.len(),
                overridden_serialized_compile_options: overridden,
                overridden_serialized_compile_options_size: options.len(),
            }
        )?;
        LoadedExecutable::from_raw(self.plugin, args.loaded_executable, "PJRT_Executable_DeserializeAndLoad")
    }

    /// Creates an array with unspecified contents (`PJRT_Client_CreateUninitializedBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn uninitialized(
        &self,
        element_type: ElementType,
        dims: &[i64],
        memory: Memory<'_>,
    ) -> Result<Buffer> {
        // XLA's plugins require a layout.
        let dense = Layout::dense(dims.len());
        let mut layout = dense.raw();
        let args = call!(
            self.plugin,
            PJRT_Client_CreateUninitializedBuffer_Args {
                client: self.raw,
                shape_dims: dims.as_ptr(),
                shape_num_dims: dims.len(),
                shape_element_type: PJRT_Buffer_Type(element_type.0),
                shape_layout: &raw mut layout,
                memory: memory.raw,
            }
        )?;
        Buffer::from_raw(self.plugin, args.buffer, "PJRT_Client_CreateUninitializedBuffer")
    }

    /// Creates an array that is an error (`PJRT_Client_CreateErrorBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn error_buffer(
        &self,
        error: (Code, &str),
        element_type: ElementType,
        dims: &[i64],
        memory: Memory<'_>,
    ) -> Result<Buffer> {
        self.error_buffer_with(error, &[], element_type, dims, memory)
    }

    /// The same as [`error_buffer`](Self::error_buffer), with payloads of the error.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn error_buffer_with(
        &self,
        error: (Code, &str),
        payloads: &[NamedValue],
        element_type: ElementType,
        dims: &[i64],
        memory: Memory<'_>,
    ) -> Result<Buffer> {
        // XLA's plugins require a layout.
        let dense = Layout::dense(dims.len());
        let mut layout = dense.raw();
        let payload = to_raw(payloads);
        let args = call!(
            self.plugin,
            PJRT_Client_CreateErrorBuffer_Args {
                client: self.raw,
                error_code: PJRT_Error_Code(error.0.0),
                error_message: error.1.as_ptr().cast(),
                error_message_size: error.1.len(),
                shape_dims: dims.as_ptr(),
                shape_num_dims: dims.len(),
                shape_element_type: PJRT_Buffer_Type(element_type.0),
                shape_layout: &raw mut layout,
                memory: memory.raw,
                payload: if payload.is_empty() { ptr::null() } else { payload.as_ptr() },
                num_payload: payload.len(),
            }
        )?;
        Buffer::from_raw(self.plugin, args.buffer, "PJRT_Client_CreateErrorBuffer")
    }

    /// Creates a placeholder for another array (`PJRT_Client_CreateAliasBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn alias(
        &self,
        element_type: ElementType,
        dims: &[i64],
        memory: Memory<'_>,
    ) -> Result<(Buffer, AliasHandle)> {
        // An alias is in the memory of the array that it becomes.
        let memory = memory.or_preferred()?;
        // XLA's plugins require a layout.
        let dense = Layout::dense(dims.len());
        let mut layout = dense.raw();
        let args = call!(
            self.plugin,
            PJRT_Client_CreateAliasBuffer_Args {
                client: self.raw,
                memory: memory.raw,
                shape_dims: dims.as_ptr(),
                shape_num_dims: dims.len(),
                shape_element_type: PJRT_Buffer_Type(element_type.0),
                shape_layout: &raw mut layout,
            }
        )?;
        let buffer = Buffer::from_raw(self.plugin, args.alias_buffer, "PJRT_Client_CreateAliasBuffer")?;
        Ok((buffer, AliasHandle { raw: args.fulfill_alias_buffer_cb }))
    }

    /// Fulfils a placeholder with an array or an error (`PJRT_Client_FulfillAliasBuffer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn fulfill(
        &self,
        handle: AliasHandle,
        outcome: std::result::Result<&Buffer, (Code, &str)>,
    ) -> Result<()> {
        let (code, message) = outcome.err().unwrap_or((Code::OK, ""));
        call!(
            self.plugin,
            PJRT_Client_FulfillAliasBuffer_Args {
                client: self.raw,
                buffer: outcome.map_or(ptr::null_mut(), |buffer| buffer.raw),
                status_code: PJRT_Error_Code(code.0),
                error_message: message.as_ptr().cast(),
                error_message_size: message.len(),
                fulfill_alias_buffer_cb: handle.raw,
            }
        )
        .map(drop)
    }
}

/// The permission to fulfill a placeholder, once.
#[derive(Debug)]
pub struct AliasHandle {
    raw: *mut PJRT_FulfillAliasBufferCallback,
}

// SAFETY: the interface allows the call of its functions with its objects on every thread.
unsafe impl Send for AliasHandle {}
