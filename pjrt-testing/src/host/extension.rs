//! Functions of extensions.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{mem, ptr};

use pjrt_sys::*;

use super::buffer::Buffer;
use super::client::Client;
use super::element_type::ElementType;
use super::error::{Error, Result};
use super::error_object;
use super::event::Event;
use super::executable::Executable;
use super::host_memory::HostMemory;
use super::objects::{DeviceDescription, Memory};
use super::plugin::{Plugin, object_of};
use super::slices::{given, given_text};
use super::{called, fence, passed, slices, trace};

/// A function of an extension that takes a struct with its size, and returns an error or null.
#[derive(Debug)]
pub struct ExtensionFunction {
    /// The function's name in the C header.
    pub name: &'static str,
    /// The type of the extension.
    pub extension: u32,
    /// The function's offset in the extension's struct.
    pub offset: usize,
    /// The layout of the struct that the function takes.
    pub args: &'static StructLayout,
    /// `true` if the function has a required input.
    pub has_inputs: bool,
    /// Calls the function with a struct that ends after `extension_start` and is followed by an inaccessible
    /// page. Returns `true` if the function returned an error.
    small: fn(Plugin) -> Result<bool>,
}

/// The Args struct of a function of an extension.
pub(crate) trait ExtensionArgs: SizedStruct {
    const FUNCTION: ExtensionFunction;
}

macro_rules! extension_functions {
    ($($extension:ident $type:ident { $($field:ident $args:ident $has_inputs:literal;)* })*) => {
        $($(impl ExtensionArgs for $args {
            const FUNCTION: ExtensionFunction = ExtensionFunction {
                name: function_name(<$args as SizedStruct>::NAME),
                extension: $type.0,
                offset: mem::offset_of!($extension, $field),
                args: <$args as SizedStruct>::LAYOUT,
                has_inputs: $has_inputs,
                small: |plugin| plugin.call_small::<$args>(),
            };
        })*)*

        /// The functions of extensions that hosts can call with any plugin.
        pub static EXTENSION_FUNCTIONS: &[ExtensionFunction] =
            &[$($(<$args as ExtensionArgs>::FUNCTION,)*)*];
    };
}

/// Returns the name of a function from that of its Args struct.
const fn function_name(args: &'static str) -> &'static str {
    args.split_at(args.len() - "_Args".len()).0
}

extension_functions! {
    PJRT_Layouts_Extension PJRT_Extension_Type_Layouts {
        PJRT_Layouts_MemoryLayout_Destroy PJRT_Layouts_MemoryLayout_Destroy_Args false;
        PJRT_Layouts_MemoryLayout_Serialize PJRT_Layouts_MemoryLayout_Serialize_Args true;
        PJRT_Layouts_PJRT_Client_GetDefaultLayout PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args true;
        PJRT_Layouts_PJRT_Buffer_MemoryLayout PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args true;
        PJRT_Layouts_PJRT_Topology_GetDefaultLayout PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args true;
        PJRT_Layouts_PJRT_Executable_GetOutputLayouts PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args true;
        PJRT_Layouts_PJRT_Executable_GetParameterLayouts
            PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args true;
    }
    PJRT_MemoryDescriptions_Extension PJRT_Extension_Type_MemoryDescriptions {
        PJRT_DeviceDescription_MemoryDescriptions PJRT_DeviceDescription_MemoryDescriptions_Args true;
        PJRT_MemoryDescription_Kind PJRT_MemoryDescription_Kind_Args true;
    }
    PJRT_Shardings_Extension PJRT_Extension_Type_Shardings {
        PJRT_Shardings_PJRT_Executable_ParameterShardings
            PJRT_Shardings_PJRT_Executable_ParameterShardings_Args true;
        PJRT_Shardings_PJRT_Executable_OutputShardings PJRT_Shardings_PJRT_Executable_OutputShardings_Args true;
    }
    PJRT_FFI_Extension PJRT_Extension_Type_FFI {
        type_register PJRT_FFI_Type_Register_Args false;
        user_data_add PJRT_FFI_UserData_Add_Args true;
        register_handler PJRT_FFI_Register_Handler_Args true;
    }
    PJRT_RawBuffer_Extension PJRT_Extension_Type_RawBuffer {
        PJRT_RawBuffer_CreateRawAliasOfBuffer PJRT_RawBuffer_CreateRawAliasOfBuffer_Args true;
        PJRT_RawBuffer_Destroy PJRT_RawBuffer_Destroy_Args false;
        PJRT_RawBuffer_GetOnDeviceSizeInBytes PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args true;
        PJRT_RawBuffer_GetMemorySpace PJRT_RawBuffer_GetMemorySpace_Args true;
        PJRT_RawBuffer_CopyRawHostToDevice PJRT_RawBuffer_CopyRawHostToDevice_Args true;
        PJRT_RawBuffer_CopyRawDeviceToHost PJRT_RawBuffer_CopyRawDeviceToHost_Args true;
        PJRT_RawBuffer_GetHostPointer PJRT_RawBuffer_GetHostPointer_Args true;
    }
    PJRT_CrossHostTransfers_Extension PJRT_Extension_Type_CrossHostTransfers {
        PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers
            PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args true;
        PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers
            PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args true;
        PJRT_Transfers_PJRT_Client_CrossHostSendBuffers
            PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args true;
    }
    PJRT_HostMemoryAllocator_Extension PJRT_Extension_Type_HostMemoryAllocator {
        allocate PJRT_HostMemoryAllocator_Allocate_Args true;
    }
    PJRT_PhaseCompile_Extension PJRT_Extension_Type_PhaseCompile {
        phase_compile_get_compiler PJRT_PhaseCompile_Get_Compiler_Args false;
        phase_compile_run_phases PJRT_PhaseCompile_Run_Phase_Args true;
        phase_compile_get_phase_names PJRT_PhaseCompile_Get_PhaseNames_Args true;
    }
    PJRT_Callback_Extension PJRT_Extension_Type_Callback {
        register_callback PJRT_Callback_RegisterCallback_Args true;
        invoke_callback PJRT_Callback_InvokeCallback_Args true;
    }
}

type Function<A> = unsafe extern "C" fn(*mut A) -> *mut PJRT_Error;

/// The size of a struct that has no inputs.
const SMALL: usize = 16;

/// Fills in the Args struct of a function of an extension and calls the function.
macro_rules! call {
    ($plugin:expr, $args:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {
        $plugin.call_extension($args { $($field $(: $value)?,)* ..SizedStruct::zeroed() })
    };
}

impl Plugin {
    /// Returns the extension of this type.
    pub(super) fn extension(self, type_: u32) -> Option<*const PJRT_Extension_Base> {
        // SAFETY: the table has the field, and the elements of the chain begin with this struct.
        // `extensions`, which is called first, checks that the chain ends.
        unsafe {
            self.extensions()?;
            let mut next = (&raw const (*self.table).extension_start).read().cast_const();
            while !next.is_null() {
                if (*next).type_.0 == type_ {
                    return Some(next);
                }
                next = (*next).next;
            }
        }
        None
    }

    /// Returns the size that an extension reports, and the fields of `layout` after the base that lie within
    /// this size and are null. Returns `None` if the plugin does not have the extension.
    #[must_use]
    pub fn null_fields_of(self, type_: u32, layout: &StructLayout) -> Option<(usize, Vec<&'static str>)> {
        let extension = self.extension(type_)?;
        // SAFETY: the extension has as many bytes as it reports. Its fields after the base are pointers.
        let (size, is_null) = unsafe {
            let size = (*extension).struct_size;
            (size, move |offset| extension.byte_add(offset).cast::<*const c_void>().read().is_null())
        };
        let fields = layout.fields.iter().filter(|field| field.name != "base" && field.end <= size);
        Some((size, fields.filter(|field| is_null(field.offset)).map(|field| field.name).collect()))
    }

    fn extension_function<A: ExtensionArgs>(self) -> Result<Function<A>> {
        let of_type = A::FUNCTION;
        let missing = || Error {
            message: "the plugin does not have the extension, or the extension does not have the function"
                .to_owned(),
            ..Error::missing(of_type.name)
        };
        let extension = self.extension(of_type.extension).ok_or_else(missing)?;
        // SAFETY: the extension has as many bytes as it reports. At this offset, it holds a nullable function
        // of this type.
        unsafe {
            if (*extension).struct_size < of_type.offset + size_of::<usize>() {
                return Err(missing());
            }
            extension.byte_add(of_type.offset).cast::<Option<Function<A>>>().read().ok_or_else(missing)
        }
    }

    /// Calls a function of an extension, and returns the struct after the call.
    pub(crate) fn call_extension<A: ExtensionArgs>(self, mut args: A) -> Result<A> {
        let function = self.extension_function::<A>()?;
        called::note_extension_function(A::FUNCTION.name);
        let running = trace::begin(A::FUNCTION.name, object_of(&args));
        // SAFETY: the wrappers of this module fill in the struct as the interface requires.
        let (error, written) = passed::with_copies(&mut args, |args| unsafe { function(args) });
        running.end();
        match (error_object::take_of(self, A::FUNCTION.name, error), written) {
            (_, Some(field)) => Err(passed::wrote(A::FUNCTION.name, field)),
            (Some(error), None) => Err(error),
            (None, None) => Ok(args),
        }
    }

    fn call_small<A: ExtensionArgs>(self) -> Result<bool> {
        let function = self.extension_function::<A>()?;
        called::note_extension_function(A::FUNCTION.name);
        let mut args = A::zeroed();
        // SAFETY: the struct has this size, as its first word says.
        let error = fence::with_guarded(&mut args, SMALL, |args| unsafe { function(args) });
        Ok(error_object::take_of(self, A::FUNCTION.name, error).is_some())
    }

    /// Calls a function of an extension with a struct that ends before its inputs. Returns `true` if the
    /// function returned an error.
    ///
    /// # Errors
    ///
    /// Returns UNIMPLEMENTED if the plugin does not have the function.
    pub fn refuses_small_struct(self, function: &ExtensionFunction) -> Result<bool> {
        (function.small)(self)
    }

    /// Registers a type of values for the handlers of custom calls, and returns its id
    /// (`PJRT_FFI_Type_Register`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn register_type(self, name: &str) -> Result<i64> {
        let mut info = PJRT_FFI_Type_Info { deleter: None, ..INFO };
        let (type_name, type_name_size) = (name.as_ptr().cast(), name.len());
        let type_info = &raw mut info;
        Ok(call!(self, PJRT_FFI_Type_Register_Args { type_name, type_name_size, type_info })?.type_id)
    }

    fn layout_text(self, layout: *mut PJRT_Layouts_MemoryLayout, destroy: bool) -> Result<String> {
        let args = call!(self, PJRT_Layouts_MemoryLayout_Serialize_Args { layout });
        let read = args.and_then(|args| {
            const FUNCTION: &str = "PJRT_Layouts_MemoryLayout_Serialize";
            // SAFETY: the plugin returned the pointer and the size, and a function that frees them.
            unsafe {
                let read = given_text(FUNCTION, args.serialized_bytes, args.serialized_bytes_size);
                if let Some(free) = args.serialized_layout_deleter {
                    free(args.serialized_layout);
                }
                read
            }
        });
        if destroy {
            call!(self, PJRT_Layouts_MemoryLayout_Destroy_Args { layout })?;
        }
        read
    }
}

impl Client {
    /// Returns the text of the default layout of an array, read before and after the layout was destroyed. The text has a deleter of
    /// its own. Between the two, `meanwhile` runs.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn default_layout_after_its_end(
        &self,
        element_type: ElementType,
        dims: &[i64],
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<[String; 2]> {
        let (type_, client) = (PJRT_Buffer_Type(element_type.0), self.raw);
        let (dims, num_dims) = (dims.as_ptr(), dims.len());
        let layout = call!(
            self.plugin,
            PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args { client, type_, dims, num_dims }
        )?
        .layout;
        let args = call!(self.plugin, PJRT_Layouts_MemoryLayout_Serialize_Args { layout });
        let destroyed = call!(self.plugin, PJRT_Layouts_MemoryLayout_Destroy_Args { layout });
        const FUNCTION: &str = "PJRT_Layouts_MemoryLayout_Serialize";
        let args = args?;
        // The bytes may be overwritten with other ones than text.
        let size = args.serialized_bytes_size;
        // SAFETY: the plugin returned the pointer and the size of bytes that live until the deleter is called.
        let read = || unsafe {
            given::<u8>(FUNCTION, args.serialized_bytes.cast(), size)
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        };
        let texts = destroyed.and_then(|_| Ok([read()?, meanwhile().and_then(|()| read())?]));
        if let Some(free) = args.serialized_layout_deleter {
            // SAFETY: the plugin returned the function for this object, and it is called once.
            unsafe { free(args.serialized_layout) };
        }
        texts
    }
}

/// An empty description of a type.
// SAFETY: the struct consists of nullable pointers.
const INFO: PJRT_FFI_Type_Info = unsafe { mem::zeroed() };

impl Client {
    /// Returns the default layout of an array, as text (`PJRT_Layouts_PJRT_Client_GetDefaultLayout`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn default_layout(&self, element_type: ElementType, dims: &[i64]) -> Result<String> {
        let (type_, client) = (PJRT_Buffer_Type(element_type.0), self.raw);
        let (dims, num_dims) = (dims.as_ptr(), dims.len());
        let args = call!(
            self.plugin,
            PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args { client, type_, dims, num_dims }
        )?;
        self.plugin.layout_text(args.layout, true)
    }

    /// Returns the default layout of an array on the topology's devices, as text
    /// (`PJRT_Layouts_PJRT_Topology_GetDefaultLayout`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn default_layout_of_topology(&self, element_type: ElementType, dims: &[i64]) -> Result<String> {
        let (type_, topology_description) = (PJRT_Buffer_Type(element_type.0), self.topology()?.raw);
        let (dims, num_dims) = (dims.as_ptr(), dims.len());
        let args = call!(
            self.plugin,
            PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args { topology_description, type_, dims, num_dims }
        )?;
        self.plugin.layout_text(args.layout, true)
    }

    /// Allocates host memory, writes to all of it, and frees it (`PJRT_HostMemoryAllocator_Allocate`).
    /// Returns whether the plugin returned memory, and whether it returned a function that frees it.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn use_host_memory(&self, size: usize) -> Result<(bool, bool)> {
        let args = PJRT_HostMemoryAllocator_Allocate_Args {
            client: self.raw,
            size,
            numa_node: -1,
            ..SizedStruct::zeroed()
        };
        let args = self.plugin.call_extension(args)?;
        // SAFETY: the plugin returned memory of this size, and the function that frees it.
        unsafe {
            if !args.ptr.is_null() {
                args.ptr.write_bytes(0x5a, size);
            }
            if let Some(free) = args.deleter {
                free(args.ptr.cast(), args.deleter_arg);
            }
        }
        Ok((!args.ptr.is_null(), args.deleter.is_some()))
    }

    /// Allocates host memory of several sizes at once, writes to all of it, reads it, and frees it. Returns the sizes of the
    /// blocks that changed when other blocks were written, and of those that are null.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn use_host_memories(&self, sizes: &[usize]) -> Result<Vec<usize>> {
        let allocate = |size: &usize| {
            self.plugin.call_extension(PJRT_HostMemoryAllocator_Allocate_Args {
                client: self.raw,
                size: *size,
                numa_node: -1,
                ..SizedStruct::zeroed()
            })
        };
        let blocks = sizes.iter().map(allocate).collect::<Result<Vec<_>>>()?;
        let pattern = |index: usize| 0x31 + index as u8;
        // SAFETY: the plugin returned memory of these sizes, and the functions that free it.
        unsafe {
            for (index, block) in blocks.iter().enumerate().filter(|(_, block)| !block.ptr.is_null()) {
                block.ptr.write_bytes(pattern(index), block.size);
            }
            let is_right = |index: usize, block: &PJRT_HostMemoryAllocator_Allocate_Args| {
                !block.ptr.is_null()
                    && slices::bytes(block.ptr.cast(), block.size).iter().all(|byte| *byte == pattern(index))
            };
            let indexed = blocks.iter().enumerate();
            let wrong = indexed
                .filter(|(index, block)| !is_right(*index, block))
                .map(|(_, block)| block.size)
                .collect();
            for block in &blocks {
                if let Some(free) = block.deleter {
                    free(block.ptr.cast(), block.deleter_arg);
                }
            }
            Ok(wrong)
        }
    }

    /// Registers two callbacks for fatal errors, invokes them (`PJRT_Callback_InvokeCallback`), and returns the number of
    /// calls of each with the error that the host passed.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn tell_of_fatal_error(&self) -> Result<[usize; 2]> {
        const MESSAGE: &str = "a test of callbacks";
        unsafe extern "C" fn hear(error: *mut c_void, heard: *mut c_void) {
            // SAFETY: the arguments are the struct and a counter below, which is never freed.
            unsafe {
                let error = error.cast::<PJRT_Callback_PrefatalArgs>();
                let is_right = !error.is_null()
                    && (*error).error_code == PJRT_Error_Code_INTERNAL
                    && slices::text((*error).error_message, (*error).error_message_size) == MESSAGE;
                (*heard.cast::<AtomicUsize>()).fetch_add(usize::from(is_right), Ordering::SeqCst);
            }
        }
        let heard: &'static [AtomicUsize; 2] = Box::leak(Box::default());
        let (client, type_) = (self.raw, PJRT_Callback_Type_Prefatal);
        for counter in heard {
            let user_arg = ptr::from_ref(counter).cast_mut().cast();
            call!(
                self.plugin,
                PJRT_Callback_RegisterCallback_Args { client, type_, callback: Some(hear), user_arg }
            )?;
        }
        let message = MESSAGE;
        let mut prefatal = PJRT_Callback_PrefatalArgs {
            error_code: PJRT_Error_Code_INTERNAL,
            error_message: message.as_ptr().cast(),
            error_message_size: message.len(),
            ..SizedStruct::zeroed()
        };
        let args = (&raw mut prefatal).cast();
        call!(self.plugin, PJRT_Callback_InvokeCallback_Args { client, type_, args })?;
        Ok([heard[0].load(Ordering::SeqCst), heard[1].load(Ordering::SeqCst)])
    }
}

impl Buffer {
    /// Returns the layout as text (`PJRT_Layouts_PJRT_Buffer_MemoryLayout`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn layout_text(&self) -> Result<String> {
        let args = call!(self.plugin, PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args { buffer: self.raw })?;
        self.plugin.layout_text(args.layout, true)
    }

    /// Creates a raw buffer that shares the memory, and returns its size and some of its bytes
    /// (`PJRT_RawBuffer_CreateRawAliasOfBuffer`, `PJRT_RawBuffer_CopyRawDeviceToHost`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn read_as_raw_buffer(&self, offset: i64, transfer_size: i64) -> Result<(usize, Vec<u8>)> {
        let destination = HostMemory::destination(usize::try_from(transfer_size).unwrap_or(0), 0);
        with_raw_buffer(self.plugin, self.raw, |buffer| {
            let size = call!(self.plugin, PJRT_RawBuffer_GetOnDeviceSizeInBytes_Args { buffer })?;
            let dst = ptr::with_exposed_provenance_mut(destination.exposed());
            let copied = call!(
                self.plugin,
                PJRT_RawBuffer_CopyRawDeviceToHost_Args { buffer, dst, offset, transfer_size }
            )?;
            Event::from_raw(self.plugin, copied.event, "PJRT_RawBuffer_CopyRawDeviceToHost")?.wait()?;
            Ok((size.on_device_size_in_bytes, destination.written("PJRT_RawBuffer_CopyRawDeviceToHost")?))
        })
    }

    /// Writes bytes into the array through a raw buffer, and waits until they are there
    /// (`PJRT_RawBuffer_CopyRawHostToDevice`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn write_as_raw_buffer(&self, offset: i64, bytes: &[u8]) -> Result<()> {
        let source = HostMemory::new(bytes, 0);
        with_raw_buffer(self.plugin, self.raw, |buffer| {
            let (src, transfer_size) = (ptr::with_exposed_provenance(source.exposed()), bytes.len() as i64);
            let copied = call!(
                self.plugin,
                PJRT_RawBuffer_CopyRawHostToDevice_Args { buffer, src, offset, transfer_size }
            )?;
            Event::from_raw(self.plugin, copied.event, "PJRT_RawBuffer_CopyRawHostToDevice")?.wait()
        })
    }

    /// Returns the memory of a raw buffer of the array, and its address in host memory, which is 0 if the host cannot
    /// read it (`PJRT_RawBuffer_GetMemorySpace`, `PJRT_RawBuffer_GetHostPointer`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn place_of_raw_buffer(&self) -> Result<(Memory<'_>, usize)> {
        with_raw_buffer(self.plugin, self.raw, |buffer| {
            let space = call!(self.plugin, PJRT_RawBuffer_GetMemorySpace_Args { buffer })?.memory_space;
            let memory = Memory::new(self.plugin, space, "PJRT_RawBuffer_GetMemorySpace")?;
            let host = call!(self.plugin, PJRT_RawBuffer_GetHostPointer_Args { buffer })?.host_pointer;
            Ok((memory, host.addr()))
        })
    }

    /// Creates a raw buffer, ends the array, runs `then`, and returns bytes of the raw buffer, which holds the memory
    /// (`PJRT_RawBuffer_CreateRawAliasOfBuffer`, `PJRT_Buffer_Destroy`, `PJRT_RawBuffer_CopyRawDeviceToHost`).
    /// `is_deleted` is `true` to delete the array before it is destroyed.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn read_as_raw_buffer_after_end(
        self,
        is_deleted: bool,
        offset: i64,
        transfer_size: i64,
        then: impl FnOnce() -> Result<()>,
    ) -> Result<Vec<u8>> {
        let destination = HostMemory::destination(usize::try_from(transfer_size).unwrap_or(0), 0);
        let (plugin, raw) = (self.plugin, self.raw);
        with_raw_buffer(plugin, raw, |buffer| {
            if is_deleted {
                self.delete()?;
            }
            drop(self);
            then()?;
            let dst = ptr::with_exposed_provenance_mut(destination.exposed());
            let copied = call!(
                plugin,
                PJRT_RawBuffer_CopyRawDeviceToHost_Args { buffer, dst, offset, transfer_size }
            )?;
            Event::from_raw(plugin, copied.event, "PJRT_RawBuffer_CopyRawDeviceToHost")?.wait()?;
            destination.written("PJRT_RawBuffer_CopyRawDeviceToHost")
        })
    }
}

/// Creates a raw buffer of a buffer, uses it, and destroys it.
fn with_raw_buffer<T>(
    plugin: Plugin,
    of: *mut PJRT_Buffer,
    work: impl FnOnce(*mut PJRT_RawBuffer) -> Result<T>,
) -> Result<T> {
    const CREATE: &str = "PJRT_RawBuffer_CreateRawAliasOfBuffer";
    let buffer = call!(plugin, PJRT_RawBuffer_CreateRawAliasOfBuffer_Args { buffer: of })?.raw_buffer;
    if buffer.is_null() {
        return Err(Error::broken(CREATE, "it succeeded, but the raw buffer is a null pointer"));
    }
    let done = work(buffer);
    call!(plugin, PJRT_RawBuffer_Destroy_Args { buffer })?;
    done
}

impl Executable {
    /// Returns the layouts of the outputs as text (`PJRT_Layouts_PJRT_Executable_GetOutputLayouts`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn output_layouts(&self) -> Result<Vec<String>> {
        let args =
            call!(self.plugin, PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args { executable: self.raw })?;
        const FUNCTION: &str = "PJRT_Layouts_PJRT_Executable_GetOutputLayouts";
        // SAFETY: the plugin returned this many layouts, which belong to the executable.
        let layouts = unsafe { given(FUNCTION, args.layouts.cast_const(), args.num_outputs) }?;
        layouts.iter().map(|layout| self.plugin.layout_text(*layout, false)).collect()
    }

    /// Returns the layouts of the parameters as text (`PJRT_Layouts_PJRT_Executable_GetParameterLayouts`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn parameter_layouts(&self) -> Result<Vec<String>> {
        let args = call!(
            self.plugin,
            PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args { executable: self.raw }
        )?;
        const FUNCTION: &str = "PJRT_Layouts_PJRT_Executable_GetParameterLayouts";
        // SAFETY: the plugin returned this many layouts, which belong to the executable.
        let layouts = unsafe { given(FUNCTION, args.layouts.cast_const(), args.num_parameters) }?;
        layouts.iter().map(|layout| self.plugin.layout_text(*layout, false)).collect()
    }

    /// Returns the shardings of the parameters as `OpSharding` messages, or `None` if the plugin reports none
    /// (`PJRT_Shardings_PJRT_Executable_ParameterShardings`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn parameter_shardings(&self) -> Result<Option<Vec<Vec<u8>>>> {
        const FUNCTION: &str = "PJRT_Shardings_PJRT_Executable_ParameterShardings";
        let args = call!(
            self.plugin,
            PJRT_Shardings_PJRT_Executable_ParameterShardings_Args { executable: self.raw }
        )?;
        // SAFETY: the plugin returned as many pointers and sizes as it says.
        unsafe { shardings(FUNCTION, args.shardings, args.sharding_sizes, args.num_parameters) }
    }

    /// Returns the shardings of the outputs as `OpSharding` messages, or `None` if the plugin reports none
    /// (`PJRT_Shardings_PJRT_Executable_OutputShardings`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn output_shardings(&self) -> Result<Option<Vec<Vec<u8>>>> {
        const FUNCTION: &str = "PJRT_Shardings_PJRT_Executable_OutputShardings";
        let args =
            call!(self.plugin, PJRT_Shardings_PJRT_Executable_OutputShardings_Args { executable: self.raw })?;
        // SAFETY: the plugin returned as many pointers and sizes as it says.
        unsafe { shardings(FUNCTION, args.shardings, args.sharding_sizes, args.num_outputs) }
    }
}

/// Reads the shardings that a plugin returned, or `None` for a null pointer.
///
/// # Safety
///
/// The pointers are null, or valid for `len` elements, which are the pointers and the sizes of messages.
unsafe fn shardings(
    function: &'static str,
    starts: *const *const c_char,
    sizes: *const usize,
    len: usize,
) -> Result<Option<Vec<Vec<u8>>>> {
    if starts.is_null() {
        return Ok(None);
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let pairs = given(function, starts, len)?.iter().zip(given(function, sizes, len)?);
        let read = |(start, size): (&*const c_char, &usize)| {
            Ok(given::<u8>(function, start.cast(), *size)?.to_vec())
        };
        pairs.map(read).collect::<Result<_>>().map(Some)
    }
}

impl DeviceDescription<'_> {
    /// Returns the kinds of the device's memories, and the index of the default one
    /// (`PJRT_DeviceDescription_MemoryDescriptions`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memory_kinds(&self) -> Result<(Vec<String>, usize)> {
        let args = PJRT_DeviceDescription_MemoryDescriptions_Args {
            device_description: self.raw,
            ..SizedStruct::zeroed()
        };
        let args = self.plugin.call_extension(args)?;
        const FUNCTION: &str = "PJRT_DeviceDescription_MemoryDescriptions";
        // SAFETY: the plugin returned this many descriptions, which live as long as the device.
        let memories = unsafe { given(FUNCTION, args.memory_descriptions, args.num_memory_descriptions) }?;
        let kind = |memory: &*const PJRT_MemoryDescription| {
            let args = call!(self.plugin, PJRT_MemoryDescription_Kind_Args { memory_description: *memory })?;
            // SAFETY: the plugin returned the pointer and the size.
            unsafe { given_text("PJRT_MemoryDescription_Kind", args.kind, args.kind_size) }
        };
        Ok((memories.iter().map(kind).collect::<Result<_>>()?, args.default_memory_index))
    }
}
