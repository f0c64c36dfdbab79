//! The runtime of XLA's FFI: the table of functions that handlers call.

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::num::NonZero;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::Mutex;
use std::thread;

use super::c_api::*;
use super::{Handler, registry};
use crate::abi::args::{borrowed_slice, text};
use crate::abi::guard::zero_sized;
use crate::core::event::{Event, EventSource};
use crate::core::host_memory::HostPointer;
use crate::core::panic_guard;
use crate::core::sync::lock;
use crate::error::{Error, ErrorCode, Result};
use crate::user_data::UserData;

/// The content of an execution context, which lives on the caller's stack during a call.
pub(super) struct Context {
    pub(super) user_data: UserData,
    pub(super) device_ordinal: i32,
    pub(super) run_id: i64,
    /// Memory that the handler has allocated, by address.
    allocated: Mutex<HashMap<usize, Allocation>>,
}

/// Memory of a handler, which is freed on drop.
struct Allocation(*mut u8, Layout);

// SAFETY: this value owns the memory, and only frees it.
unsafe impl Send for Allocation {}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and is freed only here.
        unsafe { dealloc(self.0, self.1) };
    }
}

impl Context {
    pub(super) fn new(user_data: UserData, device_ordinal: i32, run_id: i64) -> Self {
        Self { user_data, device_ordinal, run_id, allocated: Mutex::default() }
    }
}

/// The content of an error, which a handler or a function of the table created.
struct FfiError {
    error: Error,
    message: CString,
}

/// The content of a future.
struct Future {
    source: Mutex<Option<EventSource>>,
    event: Event,
}

/// Returns the table.
pub(super) fn api() -> *const XLA_FFI_Api {
    &raw const API.0
}

struct Table(XLA_FFI_Api);

// SAFETY: the pointers in the table are null or functions, and nothing changes it.
unsafe impl Sync for Table {}

static API: Table = Table(XLA_FFI_Api {
    struct_size: size_of::<XLA_FFI_Api>(),
    extension_start: ptr::null_mut(),
    api_version: XLA_FFI_Api_Version {
        struct_size: size_of::<XLA_FFI_Api_Version>(),
        extension_start: ptr::null_mut(),
        major_version: MAJOR,
        minor_version: MINOR,
    },
    internal_api: ptr::null(),
    XLA_FFI_Error_Create: error_create,
    XLA_FFI_Error_GetMessage: error_get_message,
    XLA_FFI_Error_Destroy: error_destroy,
    XLA_FFI_Handler_Register: shim(handler_register),
    XLA_FFI_Stream_Get: shim(stream_get),
    XLA_FFI_Type_Register: shim(type_register),
    XLA_FFI_ExecutionContext_Get: shim(execution_context_get),
    XLA_FFI_State_Set: shim(state),
    XLA_FFI_State_Get: shim(state),
    XLA_FFI_DeviceMemory_Allocate: shim(device_memory_allocate),
    XLA_FFI_DeviceMemory_Free: shim(device_memory_free),
    XLA_FFI_ThreadPool_Schedule: shim(thread_pool_schedule),
    XLA_FFI_ThreadPool_NumThreads: shim(thread_pool_num_threads),
    XLA_FFI_Future_Create: shim(future_create),
    XLA_FFI_Future_SetAvailable: shim(future_set_available),
    XLA_FFI_Future_SetError: shim(future_set_error),
    XLA_FFI_RunId_Get: shim(run_id_get),
    XLA_FFI_DeviceOrdinal_Get: shim(device_ordinal_get),
});

fn error_to_raw(error: Error) -> *mut XLA_FFI_Error {
    // C strings end at the first NUL.
    let end = error.message().find('\0').unwrap_or(error.message().len());
    let message = CString::new(&error.message()[..end]).unwrap_or_default();
    Box::into_raw(Box::new(FfiError { error, message })).cast()
}

fn to_raw(outcome: Result<()>) -> *mut XLA_FFI_Error {
    outcome.map_or_else(error_to_raw, |()| ptr::null_mut())
}

/// Converts the result of a handler, and takes ownership of its error.
pub(super) fn outcome(error: *mut XLA_FFI_Error) -> Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: handlers return errors that a function of the table created, and pass their ownership.
    Err(unsafe { Box::from_raw(error.cast::<FfiError>()) }.error)
}

/// Waits for a future of a handler.
///
/// # Safety
///
/// `future` is null or came from [`future_create`], and is not waited for elsewhere.
pub(super) unsafe fn wait(future: *mut XLA_FFI_Future) -> Result<()> {
    if future.is_null() {
        return Ok(());
    }
    // SAFETY: this function's contract.
    let event = unsafe { &*future.cast::<Future>() }.event.clone();
    let outcome = event.wait();
    // SAFETY: this function's contract. `complete` takes the source out of the future before it completes the event, and
    // does not access the future afterwards.
    drop(unsafe { Box::from_raw(future.cast::<Future>()) });
    outcome
}

/// Borrows the arguments of a function.
///
/// # Safety
///
/// `args` is null or points to a struct of this type.
unsafe fn arguments<'a, T>(args: *mut T) -> Result<&'a mut T> {
    // SAFETY: this function's contract.
    unsafe { args.as_mut() }.ok_or_else(|| {
        Error::invalid_argument("a handler passed a null pointer as the arguments of a function")
    })
}

/// Borrows the context of a call.
///
/// # Safety
///
/// `context` is null, as in a frame that requests metadata, or the context in the frame of a running call.
unsafe fn context<'a>(context: *mut XLA_FFI_ExecutionContext) -> Result<&'a Context> {
    // SAFETY: this function's contract.
    unsafe { context.cast::<Context>().as_ref() }.ok_or_else(|| {
        Error::failed_precondition(
            "the execution context is null; handlers have one only during an execution",
        )
    })
}

/// # Safety
///
/// The span is a readable string.
unsafe fn string(span: XLA_FFI_ByteSpan) -> Result<String> {
    // SAFETY: this function's contract.
    unsafe { borrowed_slice::<u8>(span.ptr.cast(), span.len, "a name") }.map(text)
}

/// The arguments of a function of the table, as XLA's FFI describes them: each pointer in them is null or points to what its type
/// says until the function returns.
struct Arguments<'a, T>(&'a mut T);

impl<T> Deref for Arguments<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

impl<T> DerefMut for Arguments<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0
    }
}

/// Returns the function of the table that runs `function` and converts its panics and errors.
///
/// A caller of it passes what XLA's FFI says about `T`.
const fn shim<T, F>(_: F) -> unsafe extern "C" fn(*mut T) -> *mut XLA_FFI_Error
where
    F: Fn(Arguments<'_, T>) -> Result<()> + Copy + 'static,
{
    /// # Safety
    ///
    /// The arguments are what XLA's FFI says about `T`; a value of type `F` exists.
    unsafe extern "C" fn shim<T, F>(args: *mut T) -> *mut XLA_FFI_Error
    where
        F: Fn(Arguments<'_, T>) -> Result<()> + Copy + 'static,
    {
        // SAFETY: this function's contract.
        let run = || unsafe { zero_sized::<F>()(Arguments(arguments(args)?)) };
        to_raw(panic_guard::catch(run))
    }
    shim::<T, F>
}

/// Creates an error.
///
/// # Safety
///
/// `args` is as XLA's FFI requires: the message is a C string.
unsafe extern "C" fn error_create(args: *mut XLA_FFI_Error_Create_Args) -> *mut XLA_FFI_Error {
    // SAFETY: this function's contract.
    let Ok(args) = (unsafe { arguments(args) }) else { return ptr::null_mut() };
    let message = if args.message.is_null() {
        String::new()
    } else {
        // SAFETY: this function's contract.
        unsafe { CStr::from_ptr(args.message) }.to_string_lossy().into_owned()
    };
    error_to_raw(Error::new(ErrorCode::from_number(args.errc), message))
}

/// Returns the text of an error, which lives as long as the error.
///
/// # Safety
///
/// `args` is as XLA's FFI requires: a function of the table created the error.
unsafe extern "C" fn error_get_message(args: *mut XLA_FFI_Error_GetMessage_Args) {
    // SAFETY: this function's contract.
    let Ok(args) = (unsafe { arguments(args) }) else { return };
    // SAFETY: this function's contract.
    let error = unsafe { args.error.cast::<FfiError>().as_ref() };
    args.message = error.map_or(c"".as_ptr(), |error| error.message.as_ptr());
}

/// Frees an error.
///
/// # Safety
///
/// `args` is as XLA's FFI requires: the handler passes ownership of the error.
unsafe extern "C" fn error_destroy(args: *mut XLA_FFI_Error_Destroy_Args) {
    // SAFETY: this function's contract.
    if let Ok(args) = unsafe { arguments(args) } {
        drop(outcome(args.error));
    }
}

/// Registers another handler.
fn handler_register(args: Arguments<'_, XLA_FFI_Handler_Register_Args>) -> Result<()> {
    // SAFETY: the spans are strings of the handler.
    let (target, platform) = unsafe { (string(args.name)?, string(args.platform)?) };
    let bundle = &args.bundle;
    if bundle.instantiate.is_some() || bundle.prepare.is_some() || bundle.initialize.is_some() {
        return Err(Error::unimplemented(format!(
            "the handler '{target}' has an instantiate, prepare or initialize stage; only the execute stage is supported"
        )));
    }
    let execute = bundle.execute.ok_or_else(|| {
        Error::invalid_argument(format!("the handler '{target}' has no function for its execute stage"))
    })?;
    registry::register_handler(&platform, &target, Handler::from_function(execute, args.traits)?)
}

/// Returns an error, because handlers run on host memory and have no stream.
fn stream_get(mut args: Arguments<'_, XLA_FFI_Stream_Get_Args>) -> Result<()> {
    args.stream = ptr::null_mut();
    Err(Error::unimplemented("the execution has no stream, because handlers run on host memory"))
}

/// Registers a type and returns its id.
fn type_register(args: Arguments<'_, XLA_FFI_Type_Register_Args>) -> Result<()> {
    // SAFETY: the span is a string of the handler.
    let name = unsafe { string(args.name) }?;
    // SAFETY: the field is null or points to a number.
    let id = unsafe { arguments(args.type_id) }?;
    id.type_id = registry::register_type(&name, id.type_id)?;
    Ok(())
}

/// Returns data that the host passes to handlers, by type id.
fn execution_context_get(mut args: Arguments<'_, XLA_FFI_ExecutionContext_Get_Args>) -> Result<()> {
    args.data = ptr::null_mut();
    // SAFETY: the field is null or points to a number.
    let id = unsafe { arguments(args.type_id) }?.type_id;
    // SAFETY: the context is the one of the frame.
    let data = unsafe { context(args.ctx) }?.user_data.get(id);
    args.data = data
        .ok_or_else(|| Error::not_found(format!("the execution has no user data with the type id {id}")))?;
    Ok(())
}

/// Returns an error, because state is created in stages before the execution, which are not supported.
fn state(_args: Arguments<'_, XLA_FFI_State_Args>) -> Result<()> {
    Err(Error::unimplemented("handlers have no state, because only their execute stage is supported"))
}

/// Allocates memory, which lives until the handler frees it or its call ends.
fn device_memory_allocate(mut args: Arguments<'_, XLA_FFI_DeviceMemory_Allocate_Args>) -> Result<()> {
    args.data = ptr::null_mut();
    let layout = Layout::from_size_align(args.size.max(1), args.alignment.max(align_of::<u128>()));
    let layout = layout.map_err(|error| {
        Error::invalid_argument(format!(
            "cannot allocate {} bytes aligned to {}: {error}",
            args.size, args.alignment
        ))
    })?;
    // SAFETY: the context is the one of the frame.
    let context = unsafe { context(args.ctx) }?;
    // SAFETY: the size is not zero.
    let data = unsafe { alloc(layout) };
    if data.is_null() {
        return Err(Error::resource_exhausted(format!("cannot allocate {} bytes for a handler", args.size)));
    }
    lock(&context.allocated).insert(data.addr(), Allocation(data, layout));
    args.data = data.cast();
    Ok(())
}

/// Frees memory.
fn device_memory_free(args: Arguments<'_, XLA_FFI_DeviceMemory_Free_Args>) -> Result<()> {
    // SAFETY: the context is the one of the frame.
    let known = lock(&unsafe { context(args.ctx) }?.allocated).remove(&args.data.addr());
    known.map(drop).ok_or_else(|| {
        Error::invalid_argument("the memory to free was not allocated in this call of the handler")
    })
}

/// Runs a task on another thread, or on this one if no thread can be created.
fn thread_pool_schedule(args: Arguments<'_, XLA_FFI_ThreadPool_Schedule_Args>) -> Result<()> {
    let task = args
        .task
        .ok_or_else(|| Error::invalid_argument("'task' is null; expected a function to schedule"))?;
    let data = HostPointer(args.data);
    // SAFETY: the handler allows one call of the task with its data, on any thread.
    let run = move || unsafe { task(data.get()) };
    if thread::Builder::new().spawn(run).is_err() {
        run();
    }
    Ok(())
}

/// Returns the number of tasks that can run in parallel.
fn thread_pool_num_threads(args: Arguments<'_, XLA_FFI_ThreadPool_NumThreads_Args>) -> Result<()> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    // SAFETY: the field is null or points to a number.
    *unsafe { arguments(args.num_threads) }? = threads as i64;
    Ok(())
}

/// Creates a future, for a handler that returns before its work is complete.
fn future_create(mut args: Arguments<'_, XLA_FFI_Future_Create_Args>) -> Result<()> {
    let (source, event) = Event::pending();
    args.future = Box::into_raw(Box::new(Future { source: Mutex::new(Some(source)), event })).cast();
    Ok(())
}

/// Completes a future.
fn future_set_available(args: Arguments<'_, XLA_FFI_Future_SetAvailable_Args>) -> Result<()> {
    // SAFETY: the future came from `future_create`, and has not been waited for.
    unsafe { complete(args.future, Ok(())) }
}

/// Completes a future with an error.
fn future_set_error(args: Arguments<'_, XLA_FFI_Future_SetError_Args>) -> Result<()> {
    let failure = outcome(args.error);
    let failure = failure.err().unwrap_or_else(|| Error::unknown("the error of a handler's future is null"));
    // SAFETY: as above.
    unsafe { complete(args.future, Err(failure)) }
}

/// Returns the launch id.
fn run_id_get(mut args: Arguments<'_, XLA_FFI_RunId_Get_Args>) -> Result<()> {
    // SAFETY: the context is the one of the frame.
    args.run_id = unsafe { context(args.ctx) }?.run_id;
    Ok(())
}

/// Returns the index of the device in those of this process.
fn device_ordinal_get(mut args: Arguments<'_, XLA_FFI_DeviceOrdinal_Get_Args>) -> Result<()> {
    // SAFETY: the context is the one of the frame.
    args.device_ordinal = unsafe { context(args.ctx) }?.device_ordinal;
    Ok(())
}

/// # Safety
///
/// `future` is null or came from [`future_create`], and has not been waited for.
unsafe fn complete(future: *mut XLA_FFI_Future, outcome: Result<()>) -> Result<()> {
    // SAFETY: this function's contract. The source is taken out of the future before the event completes, because the future
    // may be freed immediately afterwards.
    let source = match unsafe { future.cast::<Future>().as_ref() } {
        Some(future) => lock(&future.source).take(),
        None => None,
    };
    let source = source.ok_or_else(|| Error::failed_precondition("the future has already been completed"))?;
    source.complete(outcome);
    Ok(())
}
