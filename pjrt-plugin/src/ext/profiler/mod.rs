//! The Profiler extension, which returns the plugin's part of a trace of `jax.profiler.trace`.
//!
//! While a host profiles, the SDK records calls of the host and the spans that the author's code opens with the `tracing`
//! crate, and returns them as an `XSpace`, the protocol buffer of XLA's profilers. While no host profiles, a call or a span
//! costs one atomic load.

mod layer;
mod timelines;
mod xspace;

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pjrt_sys::{
    PJRT_Extension_Base, PJRT_Extension_Type_Profiler, PJRT_Profiler_Extension, PLUGIN_Profiler,
    PLUGIN_Profiler_Api, PLUGIN_Profiler_CollectData_Args, PLUGIN_Profiler_Consume_Args,
    PLUGIN_Profiler_ConsumeResult, PLUGIN_Profiler_ConsumeResult_Destroy_Args, PLUGIN_Profiler_Create_Args,
    PLUGIN_Profiler_Destroy_Args, PLUGIN_Profiler_Error, PLUGIN_Profiler_Error_Destroy_Args,
    PLUGIN_Profiler_Error_GetCode_Args, PLUGIN_Profiler_Error_Message_Args, PLUGIN_Profiler_Serialize_Args,
    PLUGIN_Profiler_Start_Args, PLUGIN_Profiler_Stop_Args, SizedStruct, field_end,
};

use crate::abi::recording::Recording;
pub use layer::layer;
pub use timelines::Timelines;

use crate::abi::args::{View, bytes, handle, input, output, output_str};
use crate::abi::device::MEMORY_STATS_SIZE;
use crate::abi::guard;
use crate::abi::handle::{self, Handle};
use crate::attributes::AttributeValue;
use crate::client::PjrtClient;
use crate::core::host_memory::HostPointer;
use crate::core::sync::lock;
use crate::error::{Error, Result};

/// Returns traces of the plugin to hosts (`PJRT_Profiler_Extension`), for `jax.profiler.trace`, TensorBoard and Perfetto.
/// See the [example](crate::ext#example).
///
/// All methods have defaults, so `impl Profiler for MyClient {}` is sufficient. The SDK records the host's calls, except
/// for getters. The author's code adds spans of the `tracing` crate, whose fields become attributes:
///
/// ```
/// fn compile() {
///     let _span = tracing::info_span!("fuse", operations = 12).entered();
///     // ...
/// }
/// ```
///
/// If the name of a span is not a constant, the field `otel.name` replaces it:
///
/// ```
/// # fn run(name: &str) {
/// let _span = tracing::info_span!("operation", otel.name = name).entered();
/// # }
/// ```
///
/// Measurements of the device itself are returned as [`Timeline`]s, which [`Timelines`] records.
///
/// The SDK sets the global subscriber of `tracing` when a host first profiles. A plugin that sets its own subscriber adds
/// [`profiler_layer`](crate::ext::profiler_layer) to it.
pub trait Profiler: PjrtClient {
    /// Returns the recorder of the devices' timelines, which the defaults of the other methods start and stop. The default
    /// returns none.
    fn timelines() -> Option<&'static Timelines> {
        None
    }

    /// Starts profiling the devices. The default starts the recorder.
    ///
    /// # Errors
    ///
    /// Returns an error if profiling cannot start. The trace of the host then does not contain the plugin's part.
    fn start_tracing() -> Result<()> {
        Self::timelines().into_iter().for_each(Timelines::start);
        Ok(())
    }

    /// Stops profiling the devices, and returns their measurements since [`start_tracing`](Self::start_tracing). The default
    /// returns those of the recorder.
    ///
    /// # Errors
    ///
    /// Returns an error if the measurements cannot be read.
    fn stop_tracing() -> Result<Vec<Timeline>> {
        Ok(Self::timelines().map(Timelines::stop).unwrap_or_default())
    }
}

/// The consecutive spans on a part of a device, such as a core, a queue or a copy engine. See [`Profiler::stop_tracing`].
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// The name of the part, such as `core 0`.
    pub name: String,
    /// The spans.
    pub spans: Vec<TimelineSpan>,
}

/// An operation in a [`Timeline`].
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineSpan {
    /// The name of the operation.
    pub name: String,
    /// The start time, on the host's clock.
    pub start: Instant,
    /// The duration.
    pub duration: Duration,
    /// Further attributes.
    pub attributes: Vec<(String, AttributeValue)>,
}

pub(super) fn link<C: Profiler>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    let api = Box::into_raw(Box::new(PLUGIN_Profiler_Api {
        struct_size: declared_size(),
        priv_: ptr::null_mut(),
        error_destroy: Some(error_destroy),
        error_message: Some(error_message),
        error_get_code: Some(profiler_shim(error_get_code::<C>)),
        create: Some(profiler_shim(create::<C>)),
        destroy: Some(profiler_shim(destroy::<C>)),
        start: Some(profiler_shim(start::<C>)),
        stop: Some(profiler_shim(stop::<C>)),
        collect_data: Some(profiler_shim(collect_data::<C>)),
        consume: Some(profiler_shim(consume::<C>)),
        consume_result_destroy: Some(consume_result_destroy),
        serialize: Some(profiler_shim(serialize::<C>)),
    }));
    lock(&TABLES).push(HostPointer(api.cast()));
    MEMORY_STATS_SIZE.get_or_init(|| learn_host_version);
    super::leak(PJRT_Profiler_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_Profiler_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_Profiler,
            next,
        },
        profiler_api: api,
        // The field is used only in the extension that a host passes with a call.
        traceme_context_id: -1,
    })
}

/// The size of the profiler's table up to C API 0.112, which ended with `collect_data`.
const OLD_TABLE_SIZE: usize = field_end::PLUGIN_Profiler_Api::collect_data;

/// `true` if the version of a host is known to have the larger table.
static NEW_TABLE: AtomicBool = AtomicBool::new(false);

/// The tables that have been returned to hosts.
static TABLES: Mutex<Vec<HostPointer>> = Mutex::new(Vec::new());

/// Returns the size to declare for the table. Hosts require exactly the size of their version, and crash otherwise, but do
/// not pass it. The size is therefore that of JAX 0.10 until a call shows that the host is newer.
fn declared_size() -> usize {
    if NEW_TABLE.load(Ordering::Relaxed) { PLUGIN_Profiler_Api::STRUCT_SIZE } else { OLD_TABLE_SIZE }
}

/// Derives the host's version from the size of `PJRT_Device_MemoryStats_Args`, which grew in C API 0.113, as the table did.
/// Hosts call that function before they compile.
fn learn_host_version(memory_stats_size: usize) {
    if memory_stats_size < field_end::PJRT_Device_MemoryStats_Args::peak_allocated_bytes_is_set
        || NEW_TABLE.swap(true, Ordering::Relaxed)
    {
        return;
    }
    for table in &*lock(&TABLES) {
        // SAFETY: `link` created the table, which lives as long as the process. Its other fields do not change, and this one
        // is written atomically.
        unsafe {
            let size = &raw mut (*table.get().cast::<PLUGIN_Profiler_Api>()).struct_size;
            AtomicUsize::from_ptr(size).store(declared_size(), Ordering::Relaxed);
        }
    }
}

/// The object behind a `PLUGIN_Profiler`: a profiling session.
struct Session(Mutex<Progress>);

enum Progress {
    New,
    Running(Arc<Recording>),
    /// A serialized `XSpace`.
    Stopped(Vec<u8>),
}

impl Handle for Session {
    type Opaque = PLUGIN_Profiler;
    const KIND: &'static str = "PLUGIN_Profiler";
}

/// The object behind a `PLUGIN_Profiler_ConsumeResult`: a serialized trace.
struct Consumed(Vec<u8>);

impl Handle for Consumed {
    type Opaque = PLUGIN_Profiler_ConsumeResult;
    const KIND: &'static str = "PLUGIN_Profiler_ConsumeResult";
}

/// The object behind a `PLUGIN_Profiler_Error`, which is distinct from `PJRT_Error`.
struct ProfilerError {
    error: Error,
    text: String,
}

impl Handle for ProfilerError {
    type Opaque = PLUGIN_Profiler_Error;
    const KIND: &'static str = "PLUGIN_Profiler_Error";
}

impl Session {
    fn start<C: Profiler>(&self) -> Result<()> {
        let mut progress = lock(&self.0);
        if let Progress::Running(_) = *progress {
            return Err(Error::failed_precondition("the session is already tracing"));
        }
        let recording = Recording::start();
        if let Err(error) = C::start_tracing() {
            recording.stop();
            return Err(error);
        }
        *progress = Progress::Running(recording);
        Ok(())
    }

    fn stop<C: Profiler>(&self) -> Result<()> {
        let mut progress = lock(&self.0);
        let Progress::Running(recording) = &*progress else {
            return Err(Error::failed_precondition("the session is not tracing"));
        };
        recording.stop();
        let timelines = C::stop_tracing();
        let space = xspace::encode(C::PLATFORM_NAME, recording, timelines.as_deref().unwrap_or_default());
        *progress = Progress::Stopped(space);
        timelines.map(drop)
    }

    /// Moves the trace out of the session. A second call returns an error.
    fn take(&self) -> Result<Vec<u8>> {
        let mut progress = lock(&self.0);
        match &mut *progress {
            Progress::Stopped(space) => {
                let space = std::mem::take(space);
                *progress = Progress::New;
                Ok(space)
            }
            Progress::Running(_) => {
                Err(Error::failed_precondition("the session is still tracing; stop it first"))
            }
            Progress::New => {
                Err(Error::failed_precondition("the session has no trace; start and stop it first"))
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Progress::Running(recording) = &*lock(&self.0) {
            recording.stop();
        }
    }
}

fn to_raw(outcome: Result<()>) -> *mut PLUGIN_Profiler_Error {
    match outcome {
        Ok(()) => ptr::null_mut(),
        Err(error) => {
            let text = error.to_string();
            handle::into_raw(ProfilerError { error, text })
        }
    }
}

/// Returns a view of all fields of a struct of the profiler, regardless of its declared size: XLA's hosts leave the size
/// unset, and the structs are the same in all versions.
///
/// # Safety
///
/// The struct is a complete struct of the profiler's header.
unsafe fn whole<'v, T: SizedStruct>(view: &'v View<'_, T>) -> View<'v, T> {
    // SAFETY: this function's contract.
    unsafe { view.with_size(T::STRUCT_SIZE) }
}

/// The same as [`guard::shim`], for a function that returns an error of the profiler, and with a view of all fields.
const fn profiler_shim<T, F>(_: F) -> unsafe extern "C" fn(*mut T) -> *mut PLUGIN_Profiler_Error
where
    T: SizedStruct,
    F: Fn(View<'_, T>) -> Result<()> + Copy + 'static,
{
    /// # Safety
    ///
    /// The same as for [`guard::run`]; the struct is one of the profiler's, and a value of type `F` exists.
    unsafe extern "C" fn shim<T, F>(args: *mut T) -> *mut PLUGIN_Profiler_Error
    where
        T: SizedStruct,
        F: Fn(View<'_, T>) -> Result<()> + Copy + 'static,
    {
        // SAFETY: this function's contract.
        let body = |view: View<'_, T>| unsafe { guard::zero_sized::<F>()(whole(&view)) };
        // SAFETY: this function's contract.
        to_raw(unsafe { guard::run(args, body) })
    }
    shim::<T, F>
}

/// Returns the code of an error.
fn error_get_code<C: Profiler>(args: View<'_, PLUGIN_Profiler_Error_GetCode_Args>) -> Result<()> {
    output!(args.code = handle!(args.error: ProfilerError)?.error.code() as c_int);
    Ok(())
}

/// Creates a session. The host's options are ignored, because they concern XLA's tracers.
fn create<C: Profiler>(args: View<'_, PLUGIN_Profiler_Create_Args>) -> Result<()> {
    output!(args.profiler = ptr::null_mut());
    bytes!(args.options, options_size)?;
    layer::install();
    output!(args.profiler = handle::into_raw(Session(Mutex::new(Progress::New))));
    Ok(())
}

/// Frees a session and stops it.
fn destroy<C: Profiler>(args: View<'_, PLUGIN_Profiler_Destroy_Args>) -> Result<()> {
    // SAFETY: the host passes ownership of the session, which came from `create`.
    drop(unsafe { handle::from_raw::<Session>(input!(args.profiler), "profiler") }?);
    Ok(())
}

/// Starts tracing.
fn start<C: Profiler>(args: View<'_, PLUGIN_Profiler_Start_Args>) -> Result<()> {
    handle!(args.profiler: Session)?.start::<C>()
}

/// Stops tracing.
fn stop<C: Profiler>(args: View<'_, PLUGIN_Profiler_Stop_Args>) -> Result<()> {
    handle!(args.profiler: Session)?.stop::<C>()
}

/// Returns the trace. Without a buffer of the host, returns the address of the bytes, which the session owns, and their
/// size. With a buffer, copies the bytes to it.
fn collect_data<C: Profiler>(args: View<'_, PLUGIN_Profiler_CollectData_Args>) -> Result<()> {
    let progress = lock(&handle!(args.profiler: Session)?.0);
    let Progress::Stopped(space) = &*progress else {
        return Err(Error::failed_precondition("the session has no trace; start and stop it first"));
    };
    let buffer: *mut u8 = input!(args.buffer);
    if buffer.is_null() {
        output!(args.buffer = space.as_ptr().cast_mut());
    } else {
        let room = input!(args.buffer_size_in_bytes);
        if room < space.len() {
            return Err(Error::invalid_argument(format!(
                "the trace has {} bytes, but the buffer has only {room}",
                space.len()
            )));
        }
        // SAFETY: the host's buffer has `buffer_size_in_bytes` bytes, which are at least as many as are copied.
        unsafe { ptr::copy_nonoverlapping(space.as_ptr(), buffer, space.len()) };
    }
    output!(args.buffer_size_in_bytes = space.len());
    Ok(())
}

/// Moves the trace out of the session and returns it.
fn consume<C: Profiler>(args: View<'_, PLUGIN_Profiler_Consume_Args>) -> Result<()> {
    output!(args.result = ptr::null_mut());
    let space = handle!(args.profiler: Session)?.take()?;
    output!(args.result = handle::into_raw(Consumed(space)));
    Ok(())
}

/// Returns the bytes of a trace, which the trace owns.
fn serialize<C: Profiler>(args: View<'_, PLUGIN_Profiler_Serialize_Args>) -> Result<()> {
    let space = &handle!(args.consume_result: Consumed)?.0;
    output!(args.serialized_bytes = space.as_ptr());
    output!(args.serialized_size = space.len());
    Ok(())
}

/// Frees an error.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PLUGIN_Profiler_Error_Destroy_Args`.
unsafe extern "C" fn error_destroy(args: *mut PLUGIN_Profiler_Error_Destroy_Args) {
    // SAFETY: this function's contract.
    if let Ok(args) = unsafe { View::new(args) } {
        // SAFETY: as above.
        let args = unsafe { whole(&args) };
        // SAFETY: the host passes ownership of the error. A handle that is not live is ignored, because this function cannot
        // return an error.
        let _ = unsafe { handle::from_raw::<ProfilerError>(input!(args.error), "error") };
    }
}

/// Returns the text of an error, which lives as long as the error.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PLUGIN_Profiler_Error_Message_Args`.
unsafe extern "C" fn error_message(args: *mut PLUGIN_Profiler_Error_Message_Args) {
    // SAFETY: this function's contract.
    let Ok(args) = (unsafe { View::new(args) }) else { return };
    // SAFETY: as above.
    let args = unsafe { whole(&args) };
    let error = handle!(args.error: ProfilerError);
    output_str!(args.message, message_size = error.map_or("", |error| error.text.as_str()));
}

/// Frees a trace.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PLUGIN_Profiler_ConsumeResult_Destroy_Args`.
unsafe extern "C" fn consume_result_destroy(args: *mut PLUGIN_Profiler_ConsumeResult_Destroy_Args) {
    // SAFETY: this function's contract.
    if let Ok(args) = unsafe { View::new(args) } {
        // SAFETY: as above.
        let args = unsafe { whole(&args) };
        // SAFETY: the host passes ownership of the trace. A handle that is not live is ignored, because this function cannot
        // return an error.
        let _ = unsafe { handle::from_raw::<Consumed>(input!(args.consume_result), "consume_result") };
    }
}
