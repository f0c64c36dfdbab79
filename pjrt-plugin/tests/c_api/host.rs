//! A small host. It uses raw pointers as C hosts do, and passes only pointers that the plugin returned.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::slice;
use std::sync::mpsc::{Receiver, channel};

use pjrt_plugin::CompileOptions;
use pjrt_sys::*;

use crate::dummy::Dummy;

/// An error that the plugin returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HostError {
    pub(crate) code: u32,
    pub(crate) message: String,
    pub(crate) payloads: Vec<(String, Vec<u8>)>,
}

pub(crate) type Result<T> = std::result::Result<T, HostError>;

pub(crate) fn api() -> &'static PJRT_Api {
    pjrt_plugin::api_table!(Dummy)
}

/// Returns the struct of an extension, which it finds as hosts do.
pub(crate) fn extension<T>(type_: PJRT_Extension_Type) -> &'static T {
    let mut next = api().extension_start.cast_const();
    loop {
        assert!(!next.is_null(), "there is no extension of type {}", type_.0);
        // SAFETY: the plugin made the chain, which lives as long as the process.
        let base = unsafe { &*next };
        if base.type_ == type_ {
            assert!(base.struct_size >= size_of::<T>(), "the extension is cut off");
            // SAFETY: the type says which struct it is.
            return unsafe { &*next.cast::<T>() };
        }
        next = base.next;
    }
}

/// Calls a function of the table: `call!(PJRT_Buffer_Delete(PJRT_Buffer_Delete_Args { buffer }))`. Returns the struct.
macro_rules! call {
    ($function:ident($args:ident { $($field:ident $(: $value:expr)?),* $(,)? })) => {{
        #[allow(unused_mut, clippy::needless_update, reason = "some calls give every field")]
        let mut args = pjrt_sys::$args { $($field $(: $value)?,)* ..pjrt_sys::SizedStruct::zeroed() };
        // SAFETY: the struct is filled in as the API says, with pointers that the plugin gave or that live here.
        let error = unsafe { ($crate::host::api().$function.unwrap())(&raw mut args) };
        $crate::host::take_error(error).map(|()| args)
    }};
}
pub(crate) use call;

/// Calls a function of an extension, as `call!` calls one of the table.
macro_rules! call_extension {
    ($extension:expr, $function:ident($args:ident { $($field:ident $(: $value:expr)?),* $(,)? })) => {{
        #[allow(unused_mut, clippy::needless_update, reason = "some calls give every field")]
        let mut args = pjrt_sys::$args { $($field $(: $value)?,)* ..pjrt_sys::SizedStruct::zeroed() };
        // SAFETY: the struct is filled in as the API says, with pointers that the plugin gave or that live here.
        let error = unsafe { ($extension.$function.unwrap())(&raw mut args) };
        $crate::host::take_error(error).map(|()| args)
    }};
}
pub(crate) use call_extension;

pub(crate) fn text(pointer: *const c_char, len: usize) -> String {
    // SAFETY: the plugin gave pointer and length of a string.
    let bytes = if len == 0 { &[] } else { unsafe { slice::from_raw_parts(pointer.cast::<u8>(), len) } };
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn array<'a, T>(pointer: *const T, len: usize) -> &'a [T] {
    // SAFETY: the plugin gave pointer and length of an array.
    if len == 0 { &[] } else { unsafe { slice::from_raw_parts(pointer, len) } }
}

/// Reads an error and destroys it.
pub(crate) fn take_error(error: *mut PJRT_Error) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    let read = read_error(error);
    let mut args = PJRT_Error_Destroy_Args { error, ..PJRT_Error_Destroy_Args::zeroed() };
    // SAFETY: the error is the plugin's, and destroyed once.
    unsafe { (api().PJRT_Error_Destroy.unwrap())(&raw mut args) };
    Err(read)
}

/// Reads an error without destroying it.
pub(crate) fn read_error(error: *mut PJRT_Error) -> HostError {
    let mut message = PJRT_Error_Message_Args { error, ..PJRT_Error_Message_Args::zeroed() };
    let mut code = PJRT_Error_GetCode_Args { error, ..PJRT_Error_GetCode_Args::zeroed() };
    let mut payloads: Vec<(String, Vec<u8>)> = Vec::new();
    let mut each = PJRT_Error_ForEachPayload_Args {
        error,
        visitor: Some(visit),
        user_arg: (&raw mut payloads).cast(),
        ..PJRT_Error_ForEachPayload_Args::zeroed()
    };
    // SAFETY: the error is the plugin's and lives.
    unsafe {
        (api().PJRT_Error_Message.unwrap())(&raw mut message);
        assert!((api().PJRT_Error_GetCode.unwrap())(&raw mut code).is_null());
        assert!((api().PJRT_Error_ForEachPayload.unwrap())(&raw mut each).is_null());
    }
    HostError { code: code.code.0, message: text(message.message, message.message_size), payloads }
}

unsafe extern "C" fn visit(
    key: *const c_char,
    key_size: usize,
    value: *const c_char,
    value_size: usize,
    user_arg: *mut c_void,
) {
    // SAFETY: the argument is the vector in `read_error`, which waits for this.
    let payloads = unsafe { &mut *user_arg.cast::<Vec<(String, Vec<u8>)>>() };
    payloads.push((text(key, key_size), array(value.cast::<u8>(), value_size).to_vec()));
}

/// An option for the creation of a client.
pub(crate) fn option(name: &'static str, value: i64) -> PJRT_NamedValue {
    PJRT_NamedValue {
        name: name.as_ptr().cast(),
        name_size: name.len(),
        type_: PJRT_NamedValue_kInt64,
        u: PJRT_NamedValue_Union { int64_value: value },
        value_size: 1,
        ..PJRT_NamedValue::zeroed()
    }
}

pub(crate) fn text_option(name: &'static str, value: &'static str) -> PJRT_NamedValue {
    PJRT_NamedValue {
        name: name.as_ptr().cast(),
        name_size: name.len(),
        type_: PJRT_NamedValue_kString,
        u: PJRT_NamedValue_Union { string_value: value.as_ptr().cast() },
        value_size: value.len(),
        ..PJRT_NamedValue::zeroed()
    }
}

/// A client, destroyed at the end.
pub(crate) struct Client(pub(crate) *mut PJRT_Client);

impl Client {
    pub(crate) fn new(options: &[PJRT_NamedValue]) -> Self {
        Self::try_new(options).unwrap()
    }

    pub(crate) fn try_new(options: &[PJRT_NamedValue]) -> Result<Self> {
        // What a host leaves uninitialized when it is not distributed.
        let garbage = ptr::without_provenance_mut::<c_void>(0x6);
        let args = call!(PJRT_Client_Create(PJRT_Client_Create_Args {
            create_options: options.as_ptr(),
            num_options: options.len(),
            kv_get_user_arg: garbage,
            kv_put_user_arg: garbage,
        }))?;
        Ok(Self(args.client))
    }

    pub(crate) fn devices(&self) -> &[*mut PJRT_Device] {
        let args = call!(PJRT_Client_Devices(PJRT_Client_Devices_Args { client: self.0 })).unwrap();
        array(args.devices, args.num_devices)
    }

    pub(crate) fn memories(&self, device: usize) -> &[*mut PJRT_Memory] {
        let device = self.devices()[device];
        let args =
            call!(PJRT_Device_AddressableMemories(PJRT_Device_AddressableMemories_Args { device })).unwrap();
        array(args.memories, args.num_memories)
    }

    pub(crate) fn compile(&self, program: &str) -> Result<Executable> {
        self.compile_with(program, "mlir", &CompileOptions::default().encode())
    }

    pub(crate) fn compile_with(&self, program: &str, format: &str, options: &[u8]) -> Result<Executable> {
        let program = PJRT_Program {
            code: program.as_ptr().cast_mut().cast(),
            code_size: program.len(),
            format: format.as_ptr().cast(),
            format_size: format.len(),
            ..PJRT_Program::zeroed()
        };
        let args = call!(PJRT_Client_Compile(PJRT_Client_Compile_Args {
            client: self.0,
            program: &raw const program,
            compile_options: options.as_ptr().cast(),
            compile_options_size: options.len(),
        }))?;
        Ok(Executable(args.executable))
    }

    /// Uploads four numbers to a device.
    pub(crate) fn upload(&self, device: usize, numbers: &[f32; 4]) -> Buffer {
        let upload = Upload { dims: &[4], device: self.devices()[device], ..Upload::new(numbers) };
        let (buffer, done) = upload.to(self).unwrap();
        destroy_event(done);
        buffer
    }
}

impl Client {
    /// Creates an alias of a buffer of four numbers on the first device, and the right to fulfill it.
    pub(crate) fn alias(&self) -> (Buffer, *mut PJRT_FulfillAliasBufferCallback) {
        let dims = [4_i64];
        let args = call!(PJRT_Client_CreateAliasBuffer(PJRT_Client_CreateAliasBuffer_Args {
            client: self.0,
            memory: self.memories(0)[0],
            shape_dims: dims.as_ptr(),
            shape_num_dims: 1,
            shape_element_type: PJRT_Buffer_Type_F32,
        }))
        .unwrap();
        (Buffer(args.alias_buffer), args.fulfill_alias_buffer_cb)
    }
}

/// Fulfills an alias with a buffer.
pub(crate) fn fulfill(promise: *mut PJRT_FulfillAliasBufferCallback, buffer: &Buffer) {
    call!(PJRT_Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args {
        buffer: buffer.0,
        fulfill_alias_buffer_cb: promise,
    }))
    .unwrap();
}

impl Drop for Client {
    fn drop(&mut self) {
        call!(PJRT_Client_Destroy(PJRT_Client_Destroy_Args { client: self.0 })).unwrap();
    }
}

/// The arguments of an upload.
pub(crate) struct Upload<'a> {
    pub(crate) data: *const c_void,
    pub(crate) element_type: PJRT_Buffer_Type,
    pub(crate) dims: &'a [i64],
    pub(crate) strides: Option<&'a [i64]>,
    pub(crate) semantics: PJRT_HostBufferSemantics,
    pub(crate) device: *mut PJRT_Device,
    pub(crate) memory: *mut PJRT_Memory,
}

impl Upload<'_> {
    pub(crate) fn new<T>(data: &[T]) -> Self {
        Self {
            data: data.as_ptr().cast(),
            element_type: PJRT_Buffer_Type_F32,
            dims: &[],
            strides: None,
            semantics: PJRT_HostBufferSemantics_kImmutableOnlyDuringCall,
            device: ptr::null_mut(),
            memory: ptr::null_mut(),
        }
    }

    pub(crate) fn to(&self, client: &Client) -> Result<(Buffer, *mut PJRT_Event)> {
        let args = call!(PJRT_Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args {
            client: client.0,
            data: self.data,
            type_: self.element_type,
            dims: self.dims.as_ptr(),
            num_dims: self.dims.len(),
            byte_strides: self.strides.map_or(ptr::null(), <[i64]>::as_ptr),
            num_byte_strides: self.strides.map_or(0, <[i64]>::len),
            host_buffer_semantics: self.semantics,
            device: self.device,
            memory: self.memory,
        }))?;
        Ok((Buffer(args.buffer), args.done_with_host_buffer))
    }
}

/// A buffer, destroyed at the end.
pub(crate) struct Buffer(pub(crate) *mut PJRT_Buffer);

// SAFETY: the API lets a buffer be used on any thread.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        call!(PJRT_Buffer_Destroy(PJRT_Buffer_Destroy_Args { buffer: self.0 })).unwrap();
    }
}

impl Buffer {
    pub(crate) fn delete(&self) {
        call!(PJRT_Buffer_Delete(PJRT_Buffer_Delete_Args { buffer: self.0 })).unwrap();
    }

    pub(crate) fn is_deleted(&self) -> bool {
        call!(PJRT_Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args { buffer: self.0 })).unwrap().is_deleted
    }

    pub(crate) fn ready(&self) -> *mut PJRT_Event {
        call!(PJRT_Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args { buffer: self.0 })).unwrap().event
    }

    /// Waits until the data is ready.
    pub(crate) fn wait(&self) -> Result<()> {
        let event = self.ready();
        let outcome = await_event(event);
        destroy_event(event);
        outcome
    }

    /// Reads bytes back in a layout.
    pub(crate) fn bytes(&self, layout: *mut PJRT_Buffer_MemoryLayout) -> Result<Vec<u8>> {
        let size = call!(PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args { src: self.0 }))?.dst_size;
        let mut bytes = vec![0_u8; size];
        let args = call!(PJRT_Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args {
            src: self.0,
            host_layout: layout,
            dst: bytes.as_mut_ptr().cast(),
            dst_size: size,
        }))?;
        let outcome = await_event(args.event);
        destroy_event(args.event);
        outcome.map(|()| bytes)
    }

    pub(crate) fn numbers(&self) -> Result<Vec<f32>> {
        let bytes = self.bytes(ptr::null_mut())?;
        Ok(bytes.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect())
    }
}

pub(crate) fn await_event(event: *mut PJRT_Event) -> Result<()> {
    call!(PJRT_Event_Await(PJRT_Event_Await_Args { event })).map(drop)
}

pub(crate) fn is_ready(event: *mut PJRT_Event) -> bool {
    call!(PJRT_Event_IsReady(PJRT_Event_IsReady_Args { event })).unwrap().is_ready
}

pub(crate) fn destroy_event(event: *mut PJRT_Event) {
    call!(PJRT_Event_Destroy(PJRT_Event_Destroy_Args { event })).unwrap();
}

/// Registers a callback that sends the outcome.
pub(crate) fn on_ready(event: *mut PJRT_Event) -> Receiver<Result<()>> {
    let (sender, receiver) = channel();
    let callback: Box<dyn FnOnce(Result<()>)> = Box::new(move |outcome| sender.send(outcome).unwrap());
    on_ready_call(event, callback);
    receiver
}

pub(crate) fn on_ready_call(event: *mut PJRT_Event, callback: Box<dyn FnOnce(Result<()>)>) {
    unsafe extern "C" fn run(error: *mut PJRT_Error, user_arg: *mut c_void) {
        // SAFETY: the argument is the box below, and the plugin calls back once.
        let callback = unsafe { Box::from_raw(user_arg.cast::<Box<dyn FnOnce(Result<()>)>>()) };
        callback(take_error(error));
    }
    let user_arg = Box::into_raw(Box::new(callback)).cast();
    call!(PJRT_Event_OnReady(PJRT_Event_OnReady_Args { event, callback: Some(run), user_arg })).unwrap();
}

/// A loaded executable, destroyed at the end.
pub(crate) struct Executable(pub(crate) *mut PJRT_LoadedExecutable);

// SAFETY: the API lets an executable be used on any thread.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

impl Drop for Executable {
    fn drop(&mut self) {
        call!(PJRT_LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args { executable: self.0 }))
            .unwrap();
    }
}

/// The results of a launch.
pub(crate) struct Launch {
    /// By device and output.
    pub(crate) outputs: Vec<Vec<Buffer>>,
    pub(crate) events: Vec<*mut PJRT_Event>,
}

impl Drop for Launch {
    fn drop(&mut self) {
        self.events.iter().for_each(|event| destroy_event(*event));
    }
}

impl Executable {
    /// Returns another share of the compiled program, which the caller destroys.
    pub(crate) fn get(&self) -> *mut PJRT_Executable {
        let args = call!(PJRT_LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args {
            loaded_executable: self.0,
        }));
        args.unwrap().executable
    }

    pub(crate) fn num_outputs(&self) -> usize {
        let executable = self.get();
        let args = call!(PJRT_Executable_NumOutputs(PJRT_Executable_NumOutputs_Args { executable })).unwrap();
        call!(PJRT_Executable_Destroy(PJRT_Executable_Destroy_Args { executable })).unwrap();
        args.num_outputs
    }

    /// Runs on the executable's only device.
    pub(crate) fn run(&self, arguments: &[&Buffer]) -> Result<Launch> {
        self.launch(&[arguments], &[], ptr::null_mut())
    }

    pub(crate) fn launch(
        &self,
        arguments: &[&[&Buffer]],
        non_donatable: &[i64],
        execute_device: *mut PJRT_Device,
    ) -> Result<Launch> {
        let options = PJRT_ExecuteOptions {
            launch_id: -7,
            non_donatable_input_indices: non_donatable.as_ptr(),
            num_non_donatable_input_indices: non_donatable.len(),
            ..PJRT_ExecuteOptions::zeroed()
        };
        self.launch_with(arguments, options, execute_device)
    }

    pub(crate) fn launch_with(
        &self,
        arguments: &[&[&Buffer]],
        mut options: PJRT_ExecuteOptions,
        execute_device: *mut PJRT_Device,
    ) -> Result<Launch> {
        let (devices, outputs) = (arguments.len(), self.num_outputs());
        let lists: Vec<Vec<*mut PJRT_Buffer>> =
            arguments.iter().map(|list| list.iter().map(|buffer| buffer.0).collect()).collect();
        // A list without elements is null, as C programs have it.
        let start = |list: &Vec<_>| if list.is_empty() { ptr::null() } else { list.as_ptr() };
        let list_pointers: Vec<_> = lists.iter().map(start).collect();
        let mut output_lists = vec![vec![ptr::null_mut::<PJRT_Buffer>(); outputs]; devices];
        let output_pointers: Vec<_> = output_lists.iter_mut().map(|list| list.as_mut_ptr()).collect();
        let mut events = vec![ptr::null_mut(); devices];
        call!(PJRT_LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args {
            executable: self.0,
            options: &raw mut options,
            argument_lists: list_pointers.as_ptr(),
            num_devices: devices,
            num_args: lists.first().map_or(0, Vec::len),
            output_lists: output_pointers.as_ptr(),
            device_complete_events: events.as_mut_ptr(),
            execute_device,
        }))?;
        let buffers = |list: Vec<_>| list.into_iter().map(Buffer).collect();
        Ok(Launch { outputs: output_lists.into_iter().map(buffers).collect(), events })
    }
}
