//! Handlers of custom calls, and the data that the host passes to them (the FFI extension).
//!
//! Handlers are functions on a call frame of XLA's FFI 0.1, of which the structs of this module declare what the handler reads.

use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use pjrt_sys::*;

use super::call::call;
use super::error::{Error, Result};
use super::plugin::Plugin;

#[repr(C)]
struct CallFrame {
    struct_size: usize,
    extension: *mut MetadataExtension,
    /// The size, the extensions, the version and a reserved field of the table, followed by its functions.
    api: *const usize,
    context: *mut c_void,
    stage: i32,
    arguments: Arrays,
    results: Arrays,
}

#[repr(C)]
struct Arrays {
    struct_size: usize,
    extension: *mut c_void,
    size: i64,
    types: *const i32,
    arrays: *const *const Array,
}

#[repr(C)]
struct Array {
    struct_size: usize,
    extension: *mut c_void,
    dtype: u32,
    data: *mut f32,
}

#[repr(C)]
struct MetadataExtension {
    struct_size: usize,
    type_: i32,
    next: *mut c_void,
    metadata: *mut Metadata,
}

#[repr(C)]
struct Metadata {
    struct_size: usize,
    version_struct_size: usize,
    version_extension: *mut c_void,
    major: i32,
    minor: i32,
    traits: u32,
}

#[repr(C)]
struct GetData {
    struct_size: usize,
    extension: *mut c_void,
    context: *mut c_void,
    type_id: *const i64,
    data: *const f32,
}

#[repr(C)]
struct CreateError {
    struct_size: usize,
    extension: *mut c_void,
    message: *const c_char,
    code: u32,
}

/// The places of functions in the table, after the first fields.
const CREATE_ERROR: usize = 0;
const DESTROY_ERROR: usize = 2;
const GET_DATA: usize = 6;

/// The type of the number that the handler adds.
static TYPE: AtomicI64 = AtomicI64::new(0);

/// `true` if the handler asks for the number. XLA's plugins crash if a handler asks in an execution without data.
static ASKS: AtomicBool = AtomicBool::new(false);

/// The number of executions of the handler.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// The message of the handler's error.
pub const HANDLER_ERROR: &str = "the handler fails on purpose";

/// The handler of `f32[4], f32[4] -> f32[4], f32[4]`: returns the first argument minus twice the second one plus the number that
/// the host passes with the execution, and the second argument. If the first number is negative, it fails.
///
/// # Safety
///
/// A runtime calls this function with its call frame.
unsafe extern "C" fn weigh(frame: *mut CallFrame) -> *mut c_void {
    const EXECUTE: i32 = 3;
    // SAFETY: guaranteed by the caller; the host compiles programs that call the handler with arrays of these types only.
    unsafe {
        let frame = &*frame;
        if !frame.extension.is_null() {
            let metadata = &mut *(*frame.extension).metadata;
            (metadata.major, metadata.minor, metadata.traits) = (0, 1, 0);
            return ptr::null_mut();
        }
        if frame.stage != EXECUTE || frame.arguments.size != 2 || frame.results.size != 2 {
            return ptr::null_mut();
        }
        CALLS.fetch_add(1, Ordering::SeqCst);
        let argument = |index: usize| (**frame.arguments.arrays.add(index)).data;
        let result = |index: usize| (**frame.results.arrays.add(index)).data;
        if argument(0).read() < 0.0 {
            let message = c"the handler fails on purpose";
            let mut args = CreateError {
                struct_size: 28,
                extension: ptr::null_mut(),
                message: message.as_ptr(),
                code: 15,
            };
            let create: unsafe extern "C" fn(*mut CreateError) -> *mut c_void =
                std::mem::transmute(function(frame, CREATE_ERROR));
            return create(&raw mut args);
        }
        let added = data(frame);
        for index in 0..4 {
            let (first, second) = (argument(0).add(index).read(), argument(1).add(index).read());
            result(0).add(index).write(first - 2.0 * second + added);
            result(1).add(index).write(second);
        }
    }
    ptr::null_mut()
}

/// Returns a function of the runtime's table.
///
/// # Safety
///
/// The frame is a runtime's, and its table has the function.
unsafe fn function(frame: &CallFrame, index: usize) -> usize {
    const BEFORE: usize = 6;
    // SAFETY: guaranteed by the caller.
    unsafe { frame.api.add(BEFORE + index).read() }
}

/// Returns the number that the host passes with the execution, or 0.
///
/// # Safety
///
/// The frame is a runtime's.
unsafe fn data(frame: &CallFrame) -> f32 {
    let type_id = TYPE.load(Ordering::SeqCst);
    if !ASKS.load(Ordering::SeqCst) {
        return 0.0;
    }
    let mut args = GetData {
        struct_size: size_of::<GetData>(),
        extension: ptr::null_mut(),
        context: frame.context,
        type_id: &raw const type_id,
        data: ptr::null(),
    };
    // SAFETY: guaranteed by the caller. An error belongs to this function, and is destroyed once.
    unsafe {
        let get: unsafe extern "C" fn(*mut GetData) -> *mut c_void =
            std::mem::transmute(function(frame, GET_DATA));
        let error = get(&raw mut args);
        if !error.is_null() {
            let mut destroyed = [24, 0, error.expose_provenance()];
            let destroy: unsafe extern "C" fn(*mut [usize; 3]) =
                std::mem::transmute(function(frame, DESTROY_ERROR));
            destroy(&raw mut destroyed);
        }
        if args.data.is_null() { 0.0 } else { args.data.read() }
    }
}

/// Data that the host passes to handlers with an execution (`PJRT_ExecuteContext`). Dropping it destroys it.
#[derive(Debug)]
pub struct CallData {
    pub(crate) plugin: Plugin,
    pub(crate) raw: *mut PJRT_ExecuteContext,
}

super::call::destroyed_by!(CallData PJRT_ExecuteContext_Destroy_Args context);

impl CallData {
    /// Creates a context (`PJRT_ExecuteContext_Create`) with a number of the type with this id, which the handler adds
    /// (`PJRT_FFI_UserData_Add`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn new(plugin: Plugin, type_id: i64, number: &'static f32) -> Result<Self> {
        let context = Self::empty(plugin)?;
        let raw = context.raw;
        TYPE.store(type_id, Ordering::SeqCst);
        let data = ptr::from_ref(number).cast_mut().cast();
        let user_data = PJRT_FFI_UserData { type_id, data };
        plugin.call_extension(PJRT_FFI_UserData_Add_Args {
            context: raw,
            user_data,
            ..SizedStruct::zeroed()
        })?;
        Ok(context)
    }
}

impl CallData {
    /// Creates a context without data (`PJRT_ExecuteContext_Create`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn empty(plugin: Plugin) -> Result<Self> {
        let raw = call!(plugin, PJRT_ExecuteContext_Create_Args {})?.context;
        if raw.is_null() {
            return Err(Error::broken(
                "PJRT_ExecuteContext_Create",
                "it succeeded, but the context is a null pointer",
            ));
        }
        Ok(Self { plugin, raw })
    }
}

impl Plugin {
    /// Registers a handler for custom calls with this name (`PJRT_FFI_Register_Handler`): it returns its first argument minus
    /// twice the second one plus the number that the host passes with the execution, and its second argument.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn register_handler(self, target: &str, platform: &str) -> Result<()> {
        let args = PJRT_FFI_Register_Handler_Args {
            target_name: target.as_ptr().cast(),
            target_name_size: target.len(),
            handler: weigh as *mut c_void,
            platform_name: platform.as_ptr().cast(),
            platform_name_size: platform.len(),
            ..SizedStruct::zeroed()
        };
        self.call_extension(args).map(drop)
    }
}

/// Sets whether the handler asks for the data of its execution, of which there then is some.
pub fn handler_asks_for_data(asks: bool) {
    ASKS.store(asks, Ordering::SeqCst);
}

/// Returns the number of executions of the handler.
#[must_use]
pub fn handler_calls() -> usize {
    CALLS.load(Ordering::SeqCst)
}
