//! The Profiler extension: what `jax.profiler.trace` shows of a plugin.
//!
//! While a host traces, the SDK records the calls that do work and the spans that the author's code opens with the `tracing`
//! crate, and hands them over as an `XSpace`, the protocol buffer that XLA's profilers share. While no host traces, a call
//! costs one look at a flag, and a span of `tracing` not more.

mod layer;
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

use crate::abi::args::{View, bytes, handle, input, output, output_str};
use crate::abi::device::MEMORY_STATS_SIZE;
use crate::abi::guard;
use crate::abi::handle::{self, Handle};
use crate::attributes::AttributeValue;
use crate::client::PjrtClient;
use crate::core::host_memory::HostPointer;
use crate::core::sync::lock;
use crate::error::{Error, Result};

/// Shows hosts what a plugin did, and when (`PJRT_Profiler_Extension`): `jax.profiler.trace`, TensorBoard, Perfetto.
///
/// Its methods are provided: `impl Profiler for MyClient {}`. The calls of the host that do work
/// are recorded by the SDK; a plugin's own steps are spans of the `tracing` crate, whose fields become attributes:
///
/// ```
/// fn compile() {
///     let _span = tracing::info_span!("fuse", operations = 12).entered();
///     // ...
/// }
/// ```
///
/// A name that is only known when the program runs goes into the field `otel.name`, which takes the place of the span's:
/// `tracing::info_span!("operation", otel.name = name)`.
///
/// What a device measured with a clock of its own is handed in as [`Timeline`]s.
///
/// The SDK installs itself as the global subscriber of `tracing` when a host first traces. A plugin with a subscriber of its
/// own adds [`profiler_layer`](crate::ext::profiler_layer) to it.
pub trait Profiler: PjrtClient {
    /// A host starts to trace.
    ///
    /// # Errors
    ///
    /// Whatever keeps the device from being traced; the host then goes on without the plugin's part.
    fn start_tracing() -> Result<()> {
        Ok(())
    }

    /// A host stops tracing: what the devices themselves have measured since [`start_tracing`](Self::start_tracing).
    ///
    /// # Errors
    ///
    /// Whatever went wrong with reading it.
    fn stop_tracing() -> Result<Vec<Timeline>> {
        Ok(Vec::new())
    }
}

/// Spans that follow each other on one part of a device: a core, a queue, a copy engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// What it is, such as `core 0`.
    pub name: String,
    /// What happened on it.
    pub spans: Vec<TimelineSpan>,
}

/// Something that took time on a device.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineSpan {
    /// What was done.
    pub name: String,
    /// When it began, on the host's clock.
    pub start: Instant,
    /// How long it took.
    pub duration: Duration,
    /// What else is known about it.
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
        // The number is for the other direction, where a host passes the extension with a call.
        traceme_context_id: -1,
    })
}

/// The size of the profiler's table up to C API 0.112, which ended with `collect_data`.
const OLD_TABLE_SIZE: usize = field_end::PLUGIN_Profiler_Api::collect_data;

/// Whether a host has been seen that knows the larger table.
static NEW_TABLE: AtomicBool = AtomicBool::new(false);

/// The tables that were handed out.
static TABLES: Mutex<Vec<HostPointer>> = Mutex::new(Vec::new());

/// Hosts demand a table of exactly the size that they know, and crash without one, but do not say which size that is. So the
/// table is as large as that of JAX 0.10 until a call shows that the host is newer.
fn declared_size() -> usize {
    if NEW_TABLE.load(Ordering::Relaxed) { PLUGIN_Profiler_Api::STRUCT_SIZE } else { OLD_TABLE_SIZE }
}

/// Learns the host's version from the size of `PJRT_Device_MemoryStats_Args`, which grew with 0.113, as the table did. Hosts call
/// that function before they compile.
fn learn_host_version(memory_stats_size: usize) {
    if memory_stats_size < field_end::PJRT_Device_MemoryStats_Args::peak_allocated_bytes_is_set
        || NEW_TABLE.swap(true, Ordering::Relaxed)
    {
        return;
    }
    for table in &*lock(&TABLES) {
        // SAFETY: the table is one that `link` made, which lives as long as the process; its other fields do not change, and this
        // one is written atomically.
        unsafe {
            let size = &raw mut (*table.get().cast::<PLUGIN_Profiler_Api>()).struct_size;
            AtomicUsize::from_ptr(size).store(declared_size(), Ordering::Relaxed);
        }
    }
}

/// A host's session.
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

/// A trace that was handed over.
struct Consumed(Vec<u8>);

impl Handle for Consumed {
    type Opaque = PLUGIN_Profiler_ConsumeResult;
    const KIND: &'static str = "PLUGIN_Profiler_ConsumeResult";
}

/// An error of a function below. Its table has errors of its own.
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

    /// Hands the trace over; a second time there is none left.
    fn take(&self) -> Result<Vec<u8>> {
        let mut progress = lock(&self.0);
        match &mut *progress {
            Progress::Stopped(space) => {
                let space = std::mem::take(space);
                *progress = Progress::New;
                Ok(space)
            }
            Progress::Running(_) => {
                Err(Error::failed_precondition("the session is still tracing: stop it first"))
            }
            Progress::New => {
                Err(Error::failed_precondition("the session has no trace: start and stop it first"))
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

/// A view of all fields of a struct of the profiler's, whatever size it says: XLA's own hosts leave that field unset, and none of
/// these structs has ever grown.
///
/// # Safety
///
/// The struct is one of the profiler's, as its header has them.
unsafe fn whole<'v, T: SizedStruct>(view: &'v View<'_, T>) -> View<'v, T> {
    // SAFETY: this function's contract.
    unsafe { view.with_size(T::STRUCT_SIZE) }
}

/// As [`guard::shim`], for a function whose error is one of the profiler, and with a view of all fields.
const fn profiler_shim<T, F>(_: F) -> unsafe extern "C" fn(*mut T) -> *mut PLUGIN_Profiler_Error
where
    T: SizedStruct,
    F: Fn(View<'_, T>) -> Result<()> + Copy + 'static,
{
    /// # Safety
    ///
    /// As for [`guard::run`]; the struct is one of the profiler's, and a value of type `F` exists.
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

/// The code of an error.
fn error_get_code<C: Profiler>(args: View<'_, PLUGIN_Profiler_Error_GetCode_Args>) -> Result<()> {
    output!(args.code = handle!(args.error: ProfilerError)?.error.code() as c_int);
    Ok(())
}

/// Makes a session. The options of the host are about tracers of XLA's own.
fn create<C: Profiler>(args: View<'_, PLUGIN_Profiler_Create_Args>) -> Result<()> {
    output!(args.profiler = ptr::null_mut());
    bytes!(args.options, options_size)?;
    layer::install();
    output!(args.profiler = handle::into_raw(Session(Mutex::new(Progress::New))));
    Ok(())
}

/// Frees a session, which stops tracing.
fn destroy<C: Profiler>(args: View<'_, PLUGIN_Profiler_Destroy_Args>) -> Result<()> {
    // SAFETY: the host gives the session up, which came from `create`.
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

/// The trace. Hosts that pass no buffer take the bytes from here, where they stay as long as the session, or come again with a
/// buffer of the size that they are told.
fn collect_data<C: Profiler>(args: View<'_, PLUGIN_Profiler_CollectData_Args>) -> Result<()> {
    let progress = lock(&handle!(args.profiler: Session)?.0);
    let Progress::Stopped(space) = &*progress else {
        return Err(Error::failed_precondition("the session has no trace: start and stop it first"));
    };
    let buffer: *mut u8 = input!(args.buffer);
    if buffer.is_null() {
        output!(args.buffer = space.as_ptr().cast_mut());
    } else {
        let room = input!(args.buffer_size_in_bytes);
        if room < space.len() {
            return Err(Error::invalid_argument(format!(
                "a trace of {} bytes needs more than {room}",
                space.len()
            )));
        }
        // SAFETY: the host's buffer has room for `buffer_size_in_bytes` bytes, which is at least what is copied.
        unsafe { ptr::copy_nonoverlapping(space.as_ptr(), buffer, space.len()) };
    }
    output!(args.buffer_size_in_bytes = space.len());
    Ok(())
}

/// Hands the trace over.
fn consume<C: Profiler>(args: View<'_, PLUGIN_Profiler_Consume_Args>) -> Result<()> {
    output!(args.result = ptr::null_mut());
    let space = handle!(args.profiler: Session)?.take()?;
    output!(args.result = handle::into_raw(Consumed(space)));
    Ok(())
}

/// The bytes of a trace that was handed over, which it keeps.
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
/// `args` is what the PJRT C API says about `PLUGIN_Profiler_Error_Destroy_Args`.
unsafe extern "C" fn error_destroy(args: *mut PLUGIN_Profiler_Error_Destroy_Args) {
    // SAFETY: this function's contract.
    if let Ok(args) = unsafe { View::new(args) } {
        // SAFETY: as above.
        let args = unsafe { whole(&args) };
        // SAFETY: the host gives the error up. This function cannot complain about one that is not live.
        let _ = unsafe { handle::from_raw::<ProfilerError>(input!(args.error), "error") };
    }
}

/// The text of an error, which lives as long as it.
///
/// # Safety
///
/// `args` is what the PJRT C API says about `PLUGIN_Profiler_Error_Message_Args`.
unsafe extern "C" fn error_message(args: *mut PLUGIN_Profiler_Error_Message_Args) {
    // SAFETY: this function's contract.
    let Ok(args) = (unsafe { View::new(args) }) else { return };
    // SAFETY: as above.
    let args = unsafe { whole(&args) };
    let error = handle!(args.error: ProfilerError);
    output_str!(args.message, message_size = error.map_or("", |error| error.text.as_str()));
}

/// Frees a trace that was handed over.
///
/// # Safety
///
/// `args` is what the PJRT C API says about `PLUGIN_Profiler_ConsumeResult_Destroy_Args`.
unsafe extern "C" fn consume_result_destroy(args: *mut PLUGIN_Profiler_ConsumeResult_Destroy_Args) {
    // SAFETY: this function's contract.
    if let Ok(args) = unsafe { View::new(args) } {
        // SAFETY: as above.
        let args = unsafe { whole(&args) };
        // SAFETY: the host gives the trace up. This function cannot complain about one that is not live.
        let _ = unsafe { handle::from_raw::<Consumed>(input!(args.consume_result), "consume_result") };
    }
}
