//! Compiled and loaded programs.

use std::ffi::{CString, c_char, c_int};
use std::ptr;
use std::sync::Arc;

use pjrt_sys::*;

use super::buffer::Buffer;
use super::call::{call, destroyed_by, text_of, value_of};
use super::channels::{DeviceChannels, Lists};
use super::element_type::ElementType;
use super::error::{Error, Result};
use super::event::Event;
use super::handlers::CallData;
use super::handles;
use super::host_memory::HostMemory;
use super::objects::Device;
use super::plugin::Plugin;
use super::slices::{believed, given, given_bytes, given_text};
use super::values::{NamedValue, named_values};

/// A program to compile (`PJRT_Program`).
#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The bytes.
    pub code: &'a [u8],
    /// The format: `mlir`, `hlo` or `hlo_with_config`.
    pub format: &'a str,
}

impl<'a> Program<'a> {
    /// Creates a StableHLO program, as text or bytecode.
    #[must_use]
    pub fn mlir(code: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { code: code.as_ref(), format: "mlir" }
    }

    pub(super) fn raw(&self) -> PJRT_Program {
        PJRT_Program {
            code: self.code.as_ptr().cast_mut().cast(),
            code_size: self.code.len(),
            format: self.format.as_ptr().cast(),
            format_size: self.format.len(),
            ..PJRT_Program::zeroed()
        }
    }
}

/// A compiled program (`PJRT_Executable`). Dropping it destroys it.
#[derive(Debug)]
pub struct Executable {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_Executable,
}

destroyed_by!(Executable PJRT_Executable_Destroy_Args executable);

/// A program that was loaded onto devices (`PJRT_LoadedExecutable`). Dropping it destroys it.
#[derive(Debug)]
pub struct LoadedExecutable {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_LoadedExecutable,
}

destroyed_by!(LoadedExecutable PJRT_LoadedExecutable_Destroy_Args executable);

/// A part of `PJRT_Executable_GetCompiledMemoryStats`, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompiledMemory {
    /// The size of all arguments.
    pub arguments: i64,
    /// The size of all outputs.
    pub outputs: i64,
    /// The size of temporary memory.
    pub temporaries: i64,
    /// The size of the outputs that use the memory of arguments.
    pub aliased: i64,
}

/// Bytes that a plugin returned together with a function that deletes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serialized {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// `true` if the plugin returned a deleter, which hosts call without checking it for null.
    pub has_deleter: bool,
}

impl Executable {
    pub(crate) fn from_raw(
        plugin: Plugin,
        raw: *mut PJRT_Executable,
        function: &'static str,
    ) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::broken(function, "it succeeded, but the executable is a null pointer"));
        }
        handles::note(raw, function);
        Ok(Self { plugin, raw })
    }

    /// Returns the fingerprint, which differs between programs (`PJRT_Executable_Fingerprint`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn fingerprint(&self) -> Result<String> {
        let args = call!(self.plugin, PJRT_Executable_Fingerprint_Args { executable: self.raw })?;
        let (start, size) = (args.executable_fingerprint, args.executable_fingerprint_size);
        // SAFETY: the plugin returned the pointer and the length of bytes that live as long as the executable.
        unsafe { given_bytes("PJRT_Executable_Fingerprint", start, size) }
    }

    /// Returns the address of the plugin's object, which another one can have once this one is destroyed.
    #[must_use]
    pub fn address(&self) -> usize {
        self.raw.addr()
    }

    text_of! {
        /// Returns the name (`PJRT_Executable_Name`).
        name PJRT_Executable_Name_Args executable -> executable_name executable_name_size;
    }

    value_of! {
        /// Returns the number of replicas (`PJRT_Executable_NumReplicas`).
        num_replicas PJRT_Executable_NumReplicas_Args executable -> num_replicas: usize;
        /// Returns the number of partitions of each replica (`PJRT_Executable_NumPartitions`).
        num_partitions PJRT_Executable_NumPartitions_Args executable -> num_partitions: usize;
        /// Returns the number of outputs on each device (`PJRT_Executable_NumOutputs`).
        num_outputs PJRT_Executable_NumOutputs_Args executable -> num_outputs: usize;
        /// Returns the size of the code in bytes, or -1 (`PJRT_Executable_SizeOfGeneratedCodeInBytes`).
        code_size PJRT_Executable_SizeOfGeneratedCodeInBytes_Args executable -> size_in_bytes: i64;
    }

    /// Returns the estimated costs of an execution (`PJRT_Executable_GetCostAnalysis`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn cost_analysis(&self) -> Result<Vec<NamedValue>> {
        let args = call!(self.plugin, PJRT_Executable_GetCostAnalysis_Args { executable: self.raw })?;
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // executable.
        unsafe { named_values("PJRT_Executable_GetCostAnalysis", args.properties, args.num_properties) }
    }

    /// Returns the memory that an execution needs (`PJRT_Executable_GetCompiledMemoryStats`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memory_stats(&self) -> Result<CompiledMemory> {
        let args = call!(self.plugin, PJRT_Executable_GetCompiledMemoryStats_Args { executable: self.raw })?;
        Ok(CompiledMemory {
            arguments: args.argument_size_in_bytes,
            outputs: args.output_size_in_bytes,
            temporaries: args.temp_size_in_bytes,
            aliased: args.alias_size_in_bytes,
        })
    }

    /// Returns the element types of the outputs (`PJRT_Executable_OutputElementTypes`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn output_types(&self) -> Result<Vec<ElementType>> {
        let args = call!(self.plugin, PJRT_Executable_OutputElementTypes_Args { executable: self.raw })?;
        const FUNCTION: &str = "PJRT_Executable_OutputElementTypes";
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // executable.
        let types = unsafe { given(FUNCTION, args.output_types.cast_const(), args.num_output_types) }?;
        Ok(types.iter().map(|type_| ElementType(type_.0)).collect())
    }

    /// Returns the dimensions of the outputs (`PJRT_Executable_OutputDimensions`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn output_dims(&self) -> Result<Vec<Vec<i64>>> {
        let args = call!(self.plugin, PJRT_Executable_OutputDimensions_Args { executable: self.raw })?;
        // SAFETY: the plugin returned pointers and lengths of arrays that live as long as the executable. The
        // dimensions of all outputs are contiguous, and the ranks say where those of one output end.
        unsafe {
            const FUNCTION: &str = "PJRT_Executable_OutputDimensions";
            let ranks = given(FUNCTION, args.dim_sizes, args.num_outputs)?;
            let all = ranks.iter().fold(0_usize, |all, rank| all.saturating_add(*rank));
            let mut rest = given(FUNCTION, args.dims, all)?;
            let mut dims = Vec::new();
            for rank in ranks {
                let (of_output, after) = rest.split_at_checked(*rank).ok_or_else(|| {
                    Error::broken(FUNCTION, "it succeeded, but it returned ranks and no dimensions")
                })?;
                dims.push(of_output.to_vec());
                rest = after;
            }
            Ok(dims)
        }
    }

    /// Returns the memory kinds of the outputs (`PJRT_Executable_OutputMemoryKinds`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn output_memory_kinds(&self) -> Result<Vec<String>> {
        let args = call!(self.plugin, PJRT_Executable_OutputMemoryKinds_Args { executable: self.raw })?;
        const FUNCTION: &str = "PJRT_Executable_OutputMemoryKinds";
        // SAFETY: the plugin returned arrays of pointers and lengths that live as long as the executable.
        unsafe { texts(FUNCTION, args.memory_kinds, args.memory_kind_sizes, args.num_outputs) }
    }

    /// Returns the memory kinds of the parameters (`PJRT_Executable_ParameterMemoryKinds`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn parameter_memory_kinds(&self) -> Result<Vec<String>> {
        let args = call!(self.plugin, PJRT_Executable_ParameterMemoryKinds_Args { executable: self.raw })?;
        const FUNCTION: &str = "PJRT_Executable_ParameterMemoryKinds";
        // SAFETY: as above.
        unsafe { texts(FUNCTION, args.memory_kinds, args.memory_kind_sizes, args.num_parameters) }
    }

    /// Returns the optimized program and its format (both calls of `PJRT_Executable_OptimizedProgram`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn optimized_program(&self) -> Result<(Vec<u8>, String)> {
        self.optimized_program_over(0)
    }

    /// Returns the optimized program and its format. The memory that the plugin writes the program to is
    /// initialized to `fill`.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn optimized_program_over(&self, fill: u8) -> Result<(Vec<u8>, String)> {
        let mut program = PJRT_Program::zeroed();
        let executable = self.raw;
        call!(self.plugin, PJRT_Executable_OptimizedProgram_Args { executable, program: &raw mut program })?;
        const FUNCTION: &str = "PJRT_Executable_OptimizedProgram";
        believed::<u8>(FUNCTION, program.code_size)?;
        let code = HostMemory::destination(program.code_size, 0);
        code.fill(fill);
        // SAFETY: the plugin returned the pointer and the length of the format's name.
        let format = unsafe { given_text(FUNCTION, program.format, program.format_size) }?;
        program.code = ptr::with_exposed_provenance_mut(code.exposed());
        call!(self.plugin, PJRT_Executable_OptimizedProgram_Args { executable, program: &raw mut program })?;
        Ok((code.written(FUNCTION)?, format))
    }

    /// Serializes the program (`PJRT_Executable_Serialize`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn serialize(&self) -> Result<Serialized> {
        let args = call!(self.plugin, PJRT_Executable_Serialize_Args { executable: self.raw.cast_const() })?;
        // SAFETY: the plugin returned the pointer and the length of bytes that live until they are deleted,
        // once.
        unsafe {
            const FUNCTION: &str = "PJRT_Executable_Serialize";
            let read = given::<u8>(FUNCTION, args.serialized_bytes.cast(), args.serialized_bytes_size);
            let read = read.map(<[u8]>::to_vec);
            if let Some(delete) = args.serialized_executable_deleter {
                delete(args.serialized_executable);
            }
            Ok(Serialized { bytes: read?, has_deleter: args.serialized_executable_deleter.is_some() })
        }
    }

    /// Returns the serialized compile options of the program (`PJRT_Executable_GetCompileOptions`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn compile_options(&self) -> Result<Serialized> {
        let args = call!(self.plugin, PJRT_Executable_GetCompileOptions_Args { executable: self.raw })?;
        // SAFETY: as above.
        unsafe {
            const FUNCTION: &str = "PJRT_Executable_GetCompileOptions";
            let read = given::<u8>(FUNCTION, args.serialized_bytes.cast(), args.serialized_bytes_size);
            let read = read.map(<[u8]>::to_vec);
            if let Some(delete) = args.serialized_compile_options_deleter {
                delete(args.serialized_compile_options);
            }
            Ok(Serialized { bytes: read?, has_deleter: args.serialized_compile_options_deleter.is_some() })
        }
    }
}

/// Reads strings that a plugin returned as an array of pointers and an array of lengths.
///
/// # Safety
///
/// The pointers are null, or valid for `len` elements, which are the pointers and the lengths of strings.
unsafe fn texts(
    function: &'static str,
    starts: *const *const c_char,
    sizes: *const usize,
    len: usize,
) -> Result<Vec<String>> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let pairs = given(function, starts, len)?.iter().zip(given(function, sizes, len)?);
        pairs.map(|(start, size)| given_text(function, *start, *size)).collect()
    }
}

/// The options of an execution (`PJRT_ExecuteOptions`).
#[derive(Debug, Clone, Default)]
pub struct ExecuteOptions {
    /// The id of the launch.
    pub launch_id: i32,
    /// The arguments that must not be donated, even if the program donates them.
    pub non_donatable: Vec<i64>,
    /// The size of the struct, to simulate hosts of other versions. `None` is the size of this version. An
    /// inaccessible page follows the struct.
    pub struct_size: Option<usize>,
    /// The location of the call in the user's program.
    pub call_location: Option<String>,
    /// The data for the handlers of custom calls.
    pub data: Option<Arc<CallData>>,
    /// The callbacks for the data that the program sends and receives, of each device.
    pub channels: Vec<&'static DeviceChannels>,
    /// `true` to leave garbage in the lists for outputs and events before the call, as hosts do that do not
    /// initialize them.
    pub garbage_in_lists: bool,
}

/// The pointer in lists that a host does not initialize. No object has this address.
const GARBAGE: usize = 0xAAAA_AAAA_AAAA_AAAA;

/// Returns the initial element of a list that the plugin fills.
fn unfilled<T>(options: &ExecuteOptions) -> *mut T {
    if options.garbage_in_lists { ptr::without_provenance_mut(GARBAGE) } else { ptr::null_mut() }
}

/// Replaces the elements that the plugin did not write with null.
fn filled<T>(options: &ExecuteOptions, list: &mut [*mut T]) {
    let unfilled = unfilled(options);
    for element in list.iter_mut().filter(|element| **element == unfilled) {
        *element = ptr::null_mut();
    }
}

/// The results of a launch.
#[derive(Debug)]
pub struct Launched {
    /// The outputs, per device.
    pub outputs: Vec<Vec<Buffer>>,
    /// The events that are complete when the devices have finished, one per device; empty if they were not
    /// requested.
    pub done: Vec<Event>,
}

impl Launched {
    /// Returns an output of a device.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the plugin said that the program has fewer outputs.
    pub fn output(&self, device: usize, index: usize) -> Result<&Buffer> {
        self.outputs_of(device, index + 1).map(|list| &list[index])
    }

    /// Returns the outputs of a device, of which there must be at least `least`.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the plugin said that the program has fewer outputs.
    pub fn outputs_of(&self, device: usize, least: usize) -> Result<&[Buffer]> {
        let list = self.outputs.get(device).map_or(&[][..], Vec::as_slice);
        if list.len() < least { Err(too_few_outputs(list.len(), least)) } else { Ok(list) }
    }

    /// Takes the first output of the first device, and drops the others of this device.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the plugin said that the program has no output.
    pub fn take_output(&mut self) -> Result<Buffer> {
        Ok(self.take_outputs(1)?.swap_remove(0))
    }

    /// Takes the outputs of the first device, of which there must be at least `least`.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the plugin said that the program has fewer outputs.
    pub fn take_outputs(&mut self, least: usize) -> Result<Vec<Buffer>> {
        self.outputs_of(0, least)?;
        Ok(std::mem::take(&mut self.outputs[0]))
    }
}

/// Returns the error of a plugin that reported fewer outputs than the program has.
fn too_few_outputs(found: usize, least: usize) -> Error {
    Error::broken(
        "PJRT_Executable_NumOutputs",
        format!("it reports {found} outputs of a program that has at least {least}"),
    )
}

/// A launch that the plugin refused.
#[derive(Debug)]
pub struct Refused {
    /// The error.
    pub error: Error,
    /// The number of outputs and events that the plugin created nevertheless, which the host does not free.
    pub left_behind: usize,
}

/// Returns the struct of options, which points to the list in `options` and to the location.
fn raw_options(options: &ExecuteOptions, location: Option<&CString>) -> PJRT_ExecuteOptions {
    PJRT_ExecuteOptions {
        launch_id: options.launch_id,
        non_donatable_input_indices: options.non_donatable.as_ptr(),
        num_non_donatable_input_indices: options.non_donatable.len(),
        call_location: location.map_or(ptr::null(), |text| text.as_ptr()),
        context: options.data.as_ref().map_or(ptr::null_mut(), |data| data.raw),
        ..PJRT_ExecuteOptions::zeroed()
    }
}

/// Returns an error that names the first null pointer among the outputs and events of an execution, if there is one.
fn null_object(
    function: &'static str,
    output_lists: &[Vec<*mut PJRT_Buffer>],
    events: &[*mut PJRT_Event],
) -> Option<Error> {
    let output = output_lists.iter().enumerate().find_map(|(device, list)| {
        let output = list.iter().position(|output| output.is_null())?;
        Some(format!("`output_lists`[{device}][{output}] (device {device}, output {output})"))
    });
    let event = || {
        let device = events.iter().position(|event| event.is_null())?;
        Some(format!("`device_complete_events`[{device}] (the event of device {device})"))
    };
    let what = output.or_else(event)?;
    Some(Error::broken(function, format!("it succeeded, but {what} is a null pointer")))
}

/// Takes the outputs of one device, and sets `wrong` to the error of the first one that the host holds already, if there is no
/// error yet.
fn taken_outputs(
    plugin: Plugin,
    device: usize,
    list: Vec<*mut PJRT_Buffer>,
    wrong: &mut Option<Error>,
) -> Vec<Buffer> {
    const FUNCTION: &str = "PJRT_LoadedExecutable_Execute";
    let mut taken = Vec::new();
    for (output, raw) in list.into_iter().enumerate() {
        match Buffer::from_raw(plugin, raw, FUNCTION) {
            Ok(buffer) => taken.push(buffer),
            Err(error) => {
                let place = format!("`output_lists`[{device}][{output}] (device {device}, output {output})");
                wrong
                    .get_or_insert_with(|| Error { message: format!("{place}: {}", error.message), ..error });
            }
        }
    }
    taken
}

impl LoadedExecutable {
    pub(crate) fn from_raw(
        plugin: Plugin,
        raw: *mut PJRT_LoadedExecutable,
        function: &'static str,
    ) -> Result<Self> {
        if raw.is_null() {
            return Err(Error::broken(function, "it succeeded, but the executable is a null pointer"));
        }
        handles::take(raw, function)?;
        Ok(Self { plugin, raw })
    }

    /// Returns the fingerprint (`PJRT_LoadedExecutable_Fingerprint`), which hosts called before
    /// [`Executable::fingerprint`] existed.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn fingerprint(&self) -> Result<String> {
        let args = call!(self.plugin, PJRT_LoadedExecutable_Fingerprint_Args { executable: self.raw })?;
        let (start, size) = (args.executable_fingerprint, args.executable_fingerprint_size);
        // SAFETY: the plugin returned the pointer and the length of bytes that live as long as the executable.
        unsafe { given_bytes("PJRT_LoadedExecutable_Fingerprint", start, size) }
    }

    value_of! {
        /// Returns `true` after [`delete`](Self::delete) (`PJRT_LoadedExecutable_IsDeleted`).
        is_deleted PJRT_LoadedExecutable_IsDeleted_Args executable -> is_deleted: bool;
    }

    /// Returns the compiled program, which may outlive the loaded one
    /// (`PJRT_LoadedExecutable_GetExecutable`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn executable(&self) -> Result<Executable> {
        let args =
            call!(self.plugin, PJRT_LoadedExecutable_GetExecutable_Args { loaded_executable: self.raw })?;
        Executable::from_raw(self.plugin, args.executable, "PJRT_LoadedExecutable_GetExecutable")
    }

    /// Returns the devices that the program runs on (`PJRT_LoadedExecutable_AddressableDevices`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn devices(&self) -> Result<Vec<Device<'_>>> {
        let args =
            call!(self.plugin, PJRT_LoadedExecutable_AddressableDevices_Args { executable: self.raw })?;
        const FUNCTION: &str = "PJRT_LoadedExecutable_AddressableDevices";
        Device::list(self.plugin, FUNCTION, args.addressable_devices, args.num_addressable_devices)
    }

    /// Returns the replica and the partition of each of these devices
    /// (`PJRT_LoadedExecutable_AddressableDeviceLogicalIds`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn logical_ids(&self) -> Result<Vec<(c_int, c_int)>> {
        let args = call!(
            self.plugin,
            PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args { executable: self.raw }
        )?;
        const FUNCTION: &str = "PJRT_LoadedExecutable_AddressableDeviceLogicalIds";
        // SAFETY: the plugin returned the pointer and the length of an array that lives as long as the
        // executable.
        let ids = unsafe {
            let ids = args.addressable_device_logical_ids.cast_const();
            given(FUNCTION, ids, args.num_addressable_device_logical_ids)
        }?;
        Ok(ids.iter().map(|id| (id.replica, id.partition)).collect())
    }

    /// Returns the serialized `DeviceAssignmentProto` (`PJRT_LoadedExecutable_GetDeviceAssignment`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn device_assignment(&self) -> Result<Serialized> {
        let args =
            call!(self.plugin, PJRT_LoadedExecutable_GetDeviceAssignment_Args { executable: self.raw })?;
        // SAFETY: the plugin returned the pointer and the length of bytes that live until they are deleted,
        // once.
        unsafe {
            const FUNCTION: &str = "PJRT_LoadedExecutable_GetDeviceAssignment";
            let read = given::<u8>(FUNCTION, args.serialized_bytes.cast(), args.serialized_bytes_size);
            let read = read.map(<[u8]>::to_vec);
            if let Some(delete) = args.serialized_device_assignment_deleter {
                delete(args.serialized_device_assignment);
            }
            let has_deleter = args.serialized_device_assignment_deleter.is_some();
            Ok(Serialized { bytes: read?, has_deleter })
        }
    }

    /// Frees the program's resources on the devices (`PJRT_LoadedExecutable_Delete`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn delete(&self) -> Result<()> {
        call!(self.plugin, PJRT_LoadedExecutable_Delete_Args { executable: self.raw }).map(drop)
    }

    /// Executes the program on the device that it was loaded onto, with an event.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn run(&self, arguments: &[&Buffer]) -> Result<Launched> {
        self.launch(&[arguments.to_vec()], &ExecuteOptions::default(), None, true)
            .map_err(|refused| refused.error)
    }

    /// Executes the program (`PJRT_LoadedExecutable_Execute`). `arguments` has one list per device. The
    /// program runs on the device `on`, or on the devices that it was loaded onto. `with_events` requests
    /// events.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, and the number of objects that it created nevertheless.
    pub fn launch(
        &self,
        arguments: &[Vec<&Buffer>],
        options: &ExecuteOptions,
        on: Option<Device<'_>>,
        with_events: bool,
    ) -> std::result::Result<Launched, Refused> {
        let num_outputs = self.executable().and_then(|program| program.num_outputs());
        let num_outputs = num_outputs.map_err(|error| Refused { error, left_behind: 0 })?;
        self.launch_into(num_outputs, arguments, options, on, with_events)
    }

    /// The same as [`launch`](Self::launch), for a host that knows the number of outputs.
    ///
    /// # Errors
    ///
    /// The same as for [`launch`](Self::launch).
    pub fn launch_into(
        &self,
        num_outputs: usize,
        arguments: &[Vec<&Buffer>],
        options: &ExecuteOptions,
        on: Option<Device<'_>>,
        with_events: bool,
    ) -> std::result::Result<Launched, Refused> {
        let refused = |error| Refused { error, left_behind: 0 };
        believed::<*mut PJRT_Buffer>("PJRT_Executable_NumOutputs", num_outputs).map_err(refused)?;
        let lists: Vec<Vec<*mut PJRT_Buffer>> =
            arguments.iter().map(|list| list.iter().map(|buffer| buffer.raw).collect()).collect();
        let list_starts: Vec<_> = lists.iter().map(|list| list.as_ptr()).collect();
        let mut output_lists = vec![vec![unfilled::<PJRT_Buffer>(options); num_outputs]; arguments.len()];
        let output_starts: Vec<_> = output_lists.iter_mut().map(|list| list.as_mut_ptr()).collect();
        let mut events = vec![unfilled::<PJRT_Event>(options); arguments.len()];
        let location = options.call_location.as_deref().map(|text| CString::new(text).unwrap_or_default());
        let mut raw_options = raw_options(options, location.as_ref());
        if !options.channels.is_empty() {
            Lists::new(&options.channels).set(&mut raw_options);
        }
        let event_starts = if with_events { events.as_mut_ptr() } else { ptr::null_mut() };
        let run = |options: *mut PJRT_ExecuteOptions| {
            call!(
                self.plugin,
                PJRT_LoadedExecutable_Execute_Args {
                    executable: self.raw,
                    options,
                    argument_lists: list_starts.as_ptr(),
                    num_devices: arguments.len(),
                    num_args: arguments.first().map_or(0, Vec::len),
                    output_lists: output_starts.as_ptr(),
                    device_complete_events: event_starts,
                    execute_device: on.map_or(ptr::null_mut(), |device| device.raw),
                }
            )
        };
        let outcome = match options.struct_size {
            None => run(&raw mut raw_options),
            Some(size) => super::fence::with_guarded(&mut raw_options, size, run),
        };
        output_lists.iter_mut().for_each(|list| filled(options, list));
        filled(options, &mut events);
        const FUNCTION: &str = "PJRT_LoadedExecutable_Execute";
        if let Err(error) = outcome {
            let outputs = output_lists.iter().flatten().filter(|buffer| !buffer.is_null()).count();
            let events = events.iter().filter(|event| !event.is_null()).count();
            return Err(Refused { error, left_behind: outputs + events });
        }
        let mut wrong = null_object(FUNCTION, &output_lists, if with_events { &events } else { &[] });
        // All other objects are taken before a wrong one is reported, so that they are freed.
        let outputs = output_lists.into_iter().enumerate();
        let outputs =
            outputs.map(|(device, list)| taken_outputs(self.plugin, device, list, &mut wrong)).collect();
        let event = |raw| Event::from_raw(self.plugin, raw, FUNCTION).ok();
        let done = if with_events { events.into_iter().filter_map(event).collect() } else { Vec::new() };
        match wrong {
            Some(error) => Err(refused(error)),
            None => Ok(Launched { outputs, done }),
        }
    }
}
