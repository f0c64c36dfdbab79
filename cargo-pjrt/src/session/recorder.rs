//! The plugin that records. It forwards every call to another plugin, and logs some of the calls.
//!
//! The host receives the other plugin's own objects, so functions and extensions that the recorder does not
//! log need no code here. Each array that the host reads is read a second time, into memory of the recorder,
//! because the host's own memory may be freed by the time the bytes have arrived.

use std::ffi::{c_char, c_void};
use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pjrt_sys::*;

use super::log::{Entry, Failure, Place, Shape, Writer};
use super::recorder_state::{Compiled, Known, KnownClient, Loaded, State};
use crate::process::output;
use pjrt_testing::host::{Buffer, Client, Device, ElementType, Error, LoadedExecutable, Memory, Plugin};
use pjrt_testing::host::{SlotArgs, array, bytes, named_values_of_host, read_error, take_error, text};

/// The environment variable that names the plugin to record.
pub(super) const PLUGIN: &str = "PJRT_RECORD_PLUGIN";
/// The environment variable that names the file to write.
pub(super) const LOG: &str = "PJRT_RECORD_LOG";

/// The time that the destruction of a client waits for arrays that are still being read.
const PATIENCE: Duration = Duration::from_secs(10);

struct Recorder {
    plugin: Plugin,
    state: Mutex<State>,
    changed: Condvar,
    /// The table that hosts receive: a copy of the other plugin's table, with functions of the recorder in
    /// some slots.
    table: usize,
}

static RECORDER: LazyLock<Option<Recorder>> = LazyLock::new(|| match Recorder::new() {
    Ok(recorder) => Some(recorder),
    Err(why) => {
        output::print_error(&format!("the recorder cannot start: {why}"));
        None
    }
});

/// Returns the table of the plugin that the environment variable `PJRT_RECORD_PLUGIN` names, with functions that record
/// into the file that `PJRT_RECORD_LOG` names. If that fails, prints the reason to standard error and returns a null
/// pointer.
#[must_use]
pub fn table() -> *const PJRT_Api {
    RECORDER.as_ref().map_or(ptr::null(), |recorder| ptr::with_exposed_provenance(recorder.table))
}

macro_rules! recorded {
    ($table:ident: $($slot:ident $function:ident;)*) => {
        $(if (*$table).$slot.is_some() {
            (*$table).$slot = Some($function);
        })*
    };
}

impl Recorder {
    fn new() -> Result<Self, String> {
        let path = |variable: &str, what: &str| {
            let value = std::env::var_os(variable).filter(|value| !value.is_empty());
            value.map(PathBuf::from).ok_or_else(|| format!("{variable} must name {what}"))
        };
        let (plugin, log) = (path(PLUGIN, "the plugin to record")?, path(LOG, "the file to write")?);
        let loaded = Plugin::load(&plugin).map_err(|error| format!("{}: {error}", plugin.display()))?;
        let log = log.to_string_lossy().replace("%p", &std::process::id().to_string());
        let writer = Writer::create(log.as_ref(), &plugin).map_err(|error| format!("{log}: {error}"))?;
        Ok(Self {
            plugin: loaded,
            state: Mutex::new(State::new(writer)),
            changed: Condvar::new(),
            table: changed_table(loaded),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wraps a buffer of the host without taking ownership of it.
    fn buffer(&self, raw: *mut PJRT_Buffer) -> ManuallyDrop<Buffer> {
        // SAFETY: the host passed the buffer to a function that is being called, or this plugin returned it there.
        unsafe { Buffer::lent(self.plugin, raw) }
    }

    /// Returns the location that a device or a memory of the host describes.
    fn place(&self, device: Option<Device<'_>>, memory: Option<Memory<'_>>) -> Place {
        let of_memory = memory.and_then(|memory| memory.devices().ok()?.first().copied());
        let Some(device) = device.or(of_memory) else { return Place::default() };
        let id = device.description().and_then(|description| description.id());
        let memory = memory.and_then(|memory| memory.kind().ok());
        let state = self.state();
        let client = state.clients.values().find(|client| client.devices.contains(&device.address()));
        Place { client: client.map_or(0, |client| client.id), device: id.unwrap_or_default(), memory }
    }

    fn place_of(&self, buffer: &Buffer) -> Place {
        self.place(buffer.device().ok(), buffer.memory().ok())
    }

    /// Logs that a program was loaded, under a new number.
    fn note_loaded(&self, raw: *mut PJRT_LoadedExecutable, entry: impl FnOnce(u64) -> Entry, bytes: &[u8]) {
        let num_outputs = self.num_outputs(raw).unwrap_or_default();
        let mut state = self.state();
        let id = state.new_id();
        if !raw.is_null() {
            state.executables.insert(raw.addr(), Loaded { id, num_outputs });
        }
        state.note(entry(id), bytes);
    }

    fn num_outputs(&self, raw: *mut PJRT_LoadedExecutable) -> Option<usize> {
        if raw.is_null() {
            return None;
        }
        // SAFETY: the host passed the program to the function that is being called.
        let loaded = unsafe { LoadedExecutable::lent(self.plugin, raw) };
        loaded.executable().and_then(|program| program.num_outputs()).ok()
    }

    /// Returns the number of a buffer. A buffer that no logged function created is adopted.
    fn known(&self, raw: *mut PJRT_Buffer) -> u64 {
        let known = self.state().buffers.get(&raw.addr()).map(|known| known.id);
        known.unwrap_or_else(|| {
            let place = self.place_of(&self.buffer(raw));
            let mut state = self.state();
            let buffer = state.adopt(raw);
            state.note(Entry::Adopt { buffer, place }, &[]);
            drop(state);
            self.read_again(raw, buffer, Purpose::Contents);
            buffer
        })
    }

    /// Logs that the host reads a buffer.
    fn looked_at(&self, raw: *mut PJRT_Buffer) {
        if raw.is_null() {
            return;
        }
        let buffer = self.known(raw);
        {
            let mut state = self.state();
            let Some(known) = state.buffers.get_mut(&raw.addr()) else { return };
            if std::mem::replace(&mut known.is_read, true) {
                return;
            }
            state.note(Entry::Read { buffer }, &[]);
        }
        self.read_again(raw, buffer, Purpose::Result);
    }

    /// Starts to read a buffer into memory of the recorder, for the log.
    fn read_again(&self, raw: *mut PJRT_Buffer, id: u64, purpose: Purpose) {
        self.state().pending += 1;
        if let Err((shape, error)) = self.start_reading(raw, id, purpose) {
            self.has_read(purpose.entry(id, shape, Some(Failure::from(&error))), &[]);
        }
    }

    fn start_reading(&self, raw: *mut PJRT_Buffer, id: u64, purpose: Purpose) -> Result<(), (Shape, Error)> {
        let buffer = self.buffer(raw);
        let mut shape = Shape::default();
        let started = (|| {
            let (element_type, dims) = (buffer.element_type()?, buffer.dims()?);
            shape = Shape { element_type: element_type.stablehlo_name().to_owned(), dims };
            let order: Vec<i64> = (0..shape.dims.len() as i64).rev().collect();
            let mut layout = PJRT_Buffer_MemoryLayout::zeroed();
            layout.type_ = PJRT_Buffer_MemoryLayout_Type_Tiled;
            layout.u.tiled = PJRT_Buffer_MemoryLayout_Tiled {
                minor_to_major: order.as_ptr(),
                minor_to_major_size: order.len(),
                ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
            };
            let args = PJRT_Buffer_ToHostBuffer_Args {
                src: raw,
                host_layout: &raw mut layout,
                ..PJRT_Buffer_ToHostBuffer_Args::zeroed()
            };
            // SAFETY: the host passed the buffer, and the layout lives until the end of this function.
            let size = unsafe { self.plugin.call_filled(args) }?.dst_size;
            let mut reading = Box::new(Reading {
                id,
                shape: shape.clone(),
                purpose,
                bytes: vec![0; size],
                event: ptr::null_mut(),
            });
            let dst = reading.bytes.as_mut_ptr().cast();
            let args = PJRT_Buffer_ToHostBuffer_Args { dst, dst_size: size, ..args };
            // SAFETY: as above; the destination lives until the event is complete.
            let event = unsafe { self.plugin.call_filled(args) }?.event;
            reading.event = event;
            let user_arg = Box::into_raw(reading).cast();
            // The memory is leaked if this fails, because the plugin may still write to it.
            let on_ready = PJRT_Event_OnReady_Args {
                event,
                callback: Some(reading_ended),
                user_arg,
                ..PJRT_Event_OnReady_Args::zeroed()
            };
            // SAFETY: the callback takes this argument once.
            unsafe { self.plugin.call_filled(on_ready) }.map(drop)
        })();
        started.map_err(|error| (shape, error))
    }

    fn has_read(&self, entry: Entry, bytes: &[u8]) {
        let mut state = self.state();
        state.note(entry, bytes);
        state.pending -= 1;
        drop(state);
        self.changed.notify_all();
    }
}

/// The purpose of a readback.
#[derive(Clone, Copy)]
enum Purpose {
    Contents,
    Result,
}

impl Purpose {
    fn entry(self, buffer: u64, shape: Shape, failure: Option<Failure>) -> Entry {
        match self {
            Self::Contents => Entry::Contents { buffer, shape, failure },
            Self::Result => Entry::Result { buffer, shape, failure },
        }
    }
}

/// A readback in progress.
struct Reading {
    id: u64,
    shape: Shape,
    purpose: Purpose,
    bytes: Vec<u8>,
    event: *mut PJRT_Event,
}

/// The callback of a readback's event.
///
/// # Safety
///
/// The plugin calls this function once, with the argument of `start_reading` and an error that the callee
/// owns.
unsafe extern "C" fn reading_ended(error: *mut PJRT_Error, user_arg: *mut c_void) {
    // SAFETY: the argument is the box of `start_reading`, and this call owns it.
    let reading = unsafe { Box::from_raw(user_arg.cast::<Reading>()) };
    let Some(recorder) = RECORDER.as_ref() else { return };
    // SAFETY: the callback owns the error.
    let failure = unsafe { take_error(recorder.plugin, PJRT_Event_OnReady_Args::INDEX, error) };
    let bytes: &[u8] = if failure.is_none() { &reading.bytes } else { &[] };
    let failure = failure.as_ref().map(Failure::from);
    recorder.has_read(reading.purpose.entry(reading.id, reading.shape.clone(), failure), bytes);
    let destroy = PJRT_Event_Destroy_Args { event: reading.event, ..PJRT_Event_Destroy_Args::zeroed() };
    // A failure to destroy the event cannot be reported to anyone.
    // SAFETY: the event belongs to the recorder, and is destroyed once.
    drop(unsafe { recorder.plugin.call_filled(destroy) });
}

/// Copies the plugin's table, and replaces some of its functions with those of the recorder.
fn changed_table(plugin: Plugin) -> usize {
    let size = plugin.table_size();
    let words: &'static mut [u64] = Vec::leak(vec![0; size.max(size_of::<PJRT_Api>()).div_ceil(8)]);
    let table = words.as_mut_ptr().cast::<PJRT_Api>();
    // SAFETY: the plugin's table has this many bytes. The block has at least as many, and at least the size
    // of a complete table; the slots that the plugin's table lacks are null.
    unsafe {
        ptr::copy_nonoverlapping(plugin.table().cast::<u8>(), table.cast::<u8>(), size);
        recorded! { table:
            PJRT_Client_Create client_create;
            PJRT_Client_Destroy client_destroy;
            PJRT_Client_Compile client_compile;
            PJRT_Compile compile;
            PJRT_Client_Load client_load;
            PJRT_Executable_Destroy executable_destroy;
            PJRT_Executable_DeserializeAndLoad deserialize_and_load;
            PJRT_LoadedExecutable_Destroy loaded_executable_destroy;
            PJRT_LoadedExecutable_Execute execute;
            PJRT_Client_BufferFromHostBuffer buffer_from_host_buffer;
            PJRT_Buffer_CopyToDevice copy_to_device;
            PJRT_Buffer_CopyToMemory copy_to_memory;
            PJRT_Buffer_Delete buffer_delete;
            PJRT_Buffer_Destroy buffer_destroy;
            PJRT_Buffer_ToHostBuffer to_host_buffer;
            PJRT_Buffer_CopyRawToHost copy_raw_to_host;
            PJRT_Buffer_CopyRawToHostFuture copy_raw_to_host_future;
            PJRT_Buffer_UnsafePointer unsafe_pointer;
            PJRT_Buffer_IncreaseExternalReferenceCount increase_external_reference_count;
            PJRT_Buffer_OpaqueDeviceMemoryDataPointer opaque_pointer;
        }
    }
    words.as_mut_ptr().expose_provenance()
}

/// Returns the recorder. It exists, because hosts obtain the functions of this module from its table.
fn recorder() -> &'static Recorder {
    RECORDER.as_ref().expect("the recorder that made the table")
}

/// Calls the plugin's function with the host's struct.
///
/// # Safety
///
/// `args` is the struct that a host passed to the function of this slot.
unsafe fn forward<A: SlotArgs>(args: *mut A) -> *mut PJRT_Error {
    // SAFETY: the caller passes the struct that the host passed for this slot.
    unsafe { recorder().plugin.forward(args) }
}

/// Returns the code and the message of an error without destroying it.
fn failure<A: SlotArgs>(error: *mut PJRT_Error) -> Option<Failure> {
    let name = SLOTS[A::INDEX].name;
    // SAFETY: the plugin returned the error, which the host does not have yet.
    let read = || unsafe { read_error(recorder().plugin, name, error) };
    (!error.is_null()).then(|| Failure::from(&read()))
}

/// # Safety
///
/// A host calls this function, as all functions of the table, with the struct of its slot, filled in as the
/// interface requires.
unsafe extern "C" fn client_create(args: *mut PJRT_Client_Create_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    let (error, raw, options) = unsafe {
        let error = forward(args);
        (error, (*args).client, named_values_of_host((*args).create_options, (*args).num_options))
    };
    let recorder = recorder();
    if error.is_null() && !raw.is_null() {
        // SAFETY: the plugin created the client, which the host does not have yet.
        let object = unsafe { Client::lent(recorder.plugin, raw) };
        let platform = object.platform_name().unwrap_or_default();
        let objects = object.devices().unwrap_or_default();
        let id = |device: &Device<'_>| device.description()?.id();
        let devices = objects.iter().map(id).collect::<Result<_, Error>>().unwrap_or_default();
        let mut state = recorder.state();
        let client = state.new_id();
        let addresses = objects.iter().map(|device| device.address()).collect();
        state.clients.insert(raw.addr(), KnownClient { id: client, devices: addresses });
        state.note(Entry::CreateClient { client, platform, options, devices }, &[]);
    }
    error
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn client_destroy(args: *mut PJRT_Client_Destroy_Args) -> *mut PJRT_Error {
    let recorder = recorder();
    {
        let state = recorder.state();
        let waited = recorder.changed.wait_timeout_while(state, PATIENCE, |state| state.pending > 0);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the host calls this function as `# Safety` requires.
        let address = unsafe { (*args).client.addr() };
        if let Some(client) = state.clients.remove(&address) {
            state.note(Entry::DestroyClient { client: client.id }, &[]);
        }
    }
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe { forward(args) }
}

/// # Safety
///
/// The pointers and lengths are those of a host's call.
unsafe fn compiled(program: *const PJRT_Program, options: *const c_char, options_size: usize) -> Compiled {
    if program.is_null() {
        // The plugin returns an error in this case.
        return Compiled { format: String::new(), options: Vec::new(), code: Vec::new() };
    }
    // SAFETY: the caller guarantees that the pointers and lengths are valid.
    unsafe {
        Compiled {
            format: text((*program).format, (*program).format_size),
            options: bytes(options.cast(), options_size).to_vec(),
            code: bytes((*program).code.cast_const().cast(), (*program).code_size).to_vec(),
        }
    }
}

/// Logs that a program was compiled and loaded, or that this failed.
fn note_compiled(
    client: *mut PJRT_Client,
    compiled: &Compiled,
    loaded: *mut PJRT_LoadedExecutable,
    failure: Option<Failure>,
) {
    let client = recorder().state().client(client);
    let (format, options_size) = (compiled.format.clone(), compiled.options.len());
    let loaded = if failure.is_some() { ptr::null_mut() } else { loaded };
    let entry = |executable| Entry::Compile { client, executable, format, options_size, failure };
    recorder().note_loaded(loaded, entry, &[&compiled.options[..], &compiled.code].concat());
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn client_compile(args: *mut PJRT_Client_Compile_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let program = compiled((*args).program, (*args).compile_options, (*args).compile_options_size);
        let error = forward(args);
        let failure = failure::<PJRT_Client_Compile_Args>(error);
        note_compiled((*args).client, &program, (*args).executable, failure);
        error
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn compile(args: *mut PJRT_Compile_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let program = compiled((*args).program, (*args).compile_options, (*args).compile_options_size);
        let error = forward(args);
        if error.is_null() {
            recorder().state().compiled.insert((*args).executable.addr(), program);
        }
        error
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn client_load(args: *mut PJRT_Client_Load_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let program = recorder().state().compiled.remove(&(*args).executable.addr());
        let error = forward(args);
        if let Some(program) = program {
            let failure = failure::<PJRT_Client_Load_Args>(error);
            note_compiled((*args).client, &program, (*args).loaded_executable, failure);
            // The program can be loaded again.
            recorder().state().compiled.insert((*args).executable.addr(), program);
        }
        error
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn executable_destroy(args: *mut PJRT_Executable_Destroy_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        recorder().state().compiled.remove(&(*args).executable.addr());
        forward(args)
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn deserialize_and_load(
    args: *mut PJRT_Executable_DeserializeAndLoad_Args,
) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let error = forward(args);
        if error.is_null() {
            let serialized = bytes((*args).serialized_executable.cast(), (*args).serialized_executable_size);
            let client = recorder().state().client((*args).client);
            let entry = |executable| Entry::Deserialize { client, executable };
            recorder().note_loaded((*args).loaded_executable, entry, serialized);
        }
        error
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn loaded_executable_destroy(
    args: *mut PJRT_LoadedExecutable_Destroy_Args,
) -> *mut PJRT_Error {
    // This comes before the plugin destroys the object, because afterwards a new one may have the same
    // address.
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let mut state = recorder().state();
        if let Some(Loaded { id, .. }) = state.executables.remove(&(*args).executable.addr()) {
            state.note(Entry::DestroyExecutable { executable: id }, &[]);
        }
        drop(state);
        forward(args)
    }
}

/// Returns the numbers of the arguments of an execution, for each device.
///
/// # Safety
///
/// `args` is a struct that a host filled in for `PJRT_LoadedExecutable_Execute`.
unsafe fn arguments(recorder: &Recorder, args: *const PJRT_LoadedExecutable_Execute_Args) -> Vec<Vec<u64>> {
    // SAFETY: the host passes as many lists, and as many arguments in each, as it says.
    unsafe {
        let (num_devices, num_args) = ((*args).num_devices, (*args).num_args);
        let lists = if num_args == 0 { &[][..] } else { array((*args).argument_lists, num_devices) };
        let known = |list: &*const *mut PJRT_Buffer| {
            array(*list, num_args).iter().map(|raw| recorder.known(*raw)).collect()
        };
        let mut arguments: Vec<Vec<u64>> = lists.iter().map(known).collect();
        arguments.resize(num_devices, Vec::new());
        arguments
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn execute(args: *mut PJRT_LoadedExecutable_Execute_Args) -> *mut PJRT_Error {
    let recorder = recorder();
    // SAFETY: the host calls this function as `# Safety` requires; options of every version have these
    // fields.
    unsafe {
        let arguments = arguments(recorder, args);
        let options = (*args).options;
        if options.is_null() {
            // The plugin returns an error in this case.
            return forward(args);
        }
        let (launch_id, calls_host) =
            ((*options).launch_id, (*options).num_send_ops > 0 || (*options).num_recv_ops > 0);
        let non_donatable =
            array((*options).non_donatable_input_indices, (*options).num_non_donatable_input_indices)
                .to_vec();
        let raw = (*args).executable;
        let known =
            recorder.state().executables.get(&raw.addr()).map(|loaded| (loaded.id, loaded.num_outputs));
        // A program that no logged function created has the number 0.
        let known = known.or_else(|| Some((0, recorder.num_outputs(raw)?)));
        let (executable, num_outputs) = known.unwrap_or_default();
        let device = (!(*args).execute_device.is_null())
            .then(|| Device::lent(recorder.plugin, (*args).execute_device))
            .and_then(|device| device.description().and_then(|device| device.id()).ok());
        let error = forward(args);
        let failure = failure::<PJRT_LoadedExecutable_Execute_Args>(error);
        let mut state = recorder.state();
        let mut outputs = Vec::new();
        if failure.is_none() && num_outputs > 0 {
            let lists = array((*args).output_lists, (*args).num_devices);
            outputs = lists
                .iter()
                .map(|list| array(*list, num_outputs).iter().map(|raw| state.adopt(*raw)).collect())
                .collect();
        }
        let entry = Entry::Execute {
            executable,
            device,
            arguments,
            outputs,
            launch_id,
            non_donatable,
            calls_host,
            failure,
        };
        state.note(entry, &[]);
        error
    }
}

/// Returns the elements of a host's array, dense and row-major. Returns no elements if the size is not
/// credible.
///
/// # Safety
///
/// `args` is a struct that a host filled in for `PJRT_Client_BufferFromHostBuffer`.
unsafe fn dense(args: *const PJRT_Client_BufferFromHostBuffer_Args) -> Vec<u8> {
    // SAFETY: the host passes as many dimensions and strides as it says, and every index leads to an element.
    unsafe {
        let size = ElementType((*args).type_.0).byte_size();
        let dims = array((*args).dims, (*args).num_dims);
        let count =
            dims.iter().try_fold(1_usize, |count, dim| count.checked_mul(usize::try_from(*dim).ok()?));
        let data = (*args).data.cast::<u8>();
        let Some(total) = count.and_then(|count| count.checked_mul(size)).filter(|_| !data.is_null()) else {
            return Vec::new();
        };
        let strides = array((*args).byte_strides, (*args).num_byte_strides);
        if strides.len() != dims.len() || dims.is_empty() {
            return array(data, total).to_vec();
        }
        let mut elements = Vec::with_capacity(total);
        let mut index = vec![0_i64; dims.len()];
        while elements.len() < total {
            let offset: i64 = index.iter().zip(strides).map(|(index, stride)| index * stride).sum();
            elements.extend_from_slice(array(data.offset(offset as isize), size));
            for (index, dim) in index.iter_mut().zip(dims).rev() {
                *index += 1;
                if *index < *dim {
                    break;
                }
                *index = 0;
            }
        }
        elements
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn buffer_from_host_buffer(
    args: *mut PJRT_Client_BufferFromHostBuffer_Args,
) -> *mut PJRT_Error {
    let recorder = recorder();
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let error = forward(args);
        // The host's memory stays unchanged until this function returns, whatever semantics the host chose.
        // If the plugin refused the call, the array is not read, because its strides may lead outside the
        // memory.
        if error.is_null() {
            let elements = dense(args);
            let shape = Shape {
                element_type: ElementType((*args).type_.0).stablehlo_name().to_owned(),
                dims: array((*args).dims, (*args).num_dims).to_vec(),
            };
            let device = (!(*args).device.is_null()).then(|| Device::lent(recorder.plugin, (*args).device));
            let memory = Memory::lent(recorder.plugin, (*args).memory);
            let place = recorder.place(device, memory);
            let mut state = recorder.state();
            let buffer = state.adopt((*args).buffer);
            state.note(Entry::Upload { buffer, shape, place }, &elements);
        }
        error
    }
}

/// Logs that a buffer was copied.
fn note_copy(from: u64, copy: *mut PJRT_Buffer) {
    let recorder = recorder();
    let place = recorder.place_of(&recorder.buffer(copy));
    let mut state = recorder.state();
    let buffer = state.adopt(copy);
    state.note(Entry::Copy { from, buffer, place }, &[]);
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn copy_to_device(args: *mut PJRT_Buffer_CopyToDevice_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let from = recorder().known((*args).buffer);
        let error = forward(args);
        if error.is_null() {
            note_copy(from, (*args).dst_buffer);
        }
        error
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn copy_to_memory(args: *mut PJRT_Buffer_CopyToMemory_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let from = recorder().known((*args).buffer);
        let error = forward(args);
        if error.is_null() {
            note_copy(from, (*args).dst_buffer);
        }
        error
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn buffer_delete(args: *mut PJRT_Buffer_Delete_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let mut state = recorder().state();
        if let Some(buffer) = state.buffers.get(&(*args).buffer.addr()).map(|known| known.id) {
            state.note(Entry::DeleteBuffer { buffer }, &[]);
        }
        drop(state);
        forward(args)
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn buffer_destroy(args: *mut PJRT_Buffer_Destroy_Args) -> *mut PJRT_Error {
    // This comes before the plugin destroys the object, because afterwards a new one may have the same
    // address.
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        let mut state = recorder().state();
        if let Some(Known { id, .. }) = state.buffers.remove(&(*args).buffer.addr()) {
            state.note(Entry::DestroyBuffer { buffer: id }, &[]);
        }
        drop(state);
        forward(args)
    }
}

/// # Safety
///
/// The same as for [`client_create`].
unsafe extern "C" fn to_host_buffer(args: *mut PJRT_Buffer_ToHostBuffer_Args) -> *mut PJRT_Error {
    // SAFETY: the host calls this function as `# Safety` requires.
    unsafe {
        // A call without a destination only requests the size.
        if !(*args).dst.is_null() {
            recorder().looked_at((*args).src);
        }
        forward(args)
    }
}

/// Defines the functions that give a host access to the bytes of a buffer.
macro_rules! looks {
    ($($function:ident $args:ident;)*) => {$(
        /// # Safety
        ///
        /// The same as for [`client_create`].
        unsafe extern "C" fn $function(args: *mut $args) -> *mut PJRT_Error {
            // SAFETY: the host calls this function as `# Safety` requires.
            unsafe {
                recorder().looked_at((*args).buffer);
                forward(args)
            }
        }
    )*};
}
looks! {
    copy_raw_to_host PJRT_Buffer_CopyRawToHost_Args;
    copy_raw_to_host_future PJRT_Buffer_CopyRawToHostFuture_Args;
    unsafe_pointer PJRT_Buffer_UnsafePointer_Args;
    increase_external_reference_count PJRT_Buffer_IncreaseExternalReferenceCount_Args;
    opaque_pointer PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args;
}
