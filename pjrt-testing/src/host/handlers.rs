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

/// The number of types of values that the handler of several values asks for.
pub const COLLECTED: usize = 4;

/// The types of the values that the handler of several values asks for.
static TYPES: [AtomicI64; COLLECTED] = [const { AtomicI64::new(0) }; COLLECTED];

/// The element that the handler of several values returns for a value that it does not find.
pub const NOT_FOUND: f32 = -1.0;

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
    // SAFETY: guaranteed by the caller; the host compiles programs that call the handler with arrays of these types only.
    unsafe {
        let frame = &*frame;
        if !executes(frame) || frame.arguments.size != 2 || frame.results.size != 2 {
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

/// The handler of `f32[4] -> f32[4]`: returns the argument plus, in each element, the value of another type, or [`NOT_FOUND`].
///
/// # Safety
///
/// A runtime calls this function with its call frame.
unsafe extern "C" fn collect(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: guaranteed by the caller; the host compiles programs that call the handler with arrays of these types only.
    unsafe {
        let frame = &*frame;
        if !executes(frame) || frame.arguments.size != 1 || frame.results.size != 1 {
            return ptr::null_mut();
        }
        let (argument, result) = ((**frame.arguments.arrays).data, (**frame.results.arrays).data);
        for (index, type_id) in TYPES.iter().enumerate() {
            let found = value(frame, type_id.load(Ordering::SeqCst)).unwrap_or(NOT_FOUND);
            result.add(index).write(argument.add(index).read() + found);
        }
    }
    ptr::null_mut()
}

/// Returns `true` if the runtime executes the handler. If it asks for the version of the FFI, answers.
///
/// # Safety
///
/// The frame is a runtime's.
unsafe fn executes(frame: &CallFrame) -> bool {
    const EXECUTE: i32 = 3;
    // SAFETY: guaranteed by the caller.
    unsafe {
        if !frame.extension.is_null() {
            let metadata = &mut *(*frame.extension).metadata;
            (metadata.major, metadata.minor, metadata.traits) = (0, 1, 0);
            return false;
        }
    }
    frame.stage == EXECUTE
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
    if !ASKS.load(Ordering::SeqCst) {
        return 0.0;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { value(frame, TYPE.load(Ordering::SeqCst)) }.unwrap_or(0.0)
}

/// Returns the number of this type that the host passes with the execution.
///
/// # Safety
///
/// The frame is a runtime's, and the values of the type are numbers.
unsafe fn value(frame: &CallFrame, type_id: i64) -> Option<f32> {
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
            return None;
        }
        (!args.data.is_null()).then(|| args.data.read())
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
        TYPE.store(type_id, Ordering::SeqCst);
        context.add(type_id, number)?;
        Ok(context)
    }

    /// Adds a number of the type with this id (`PJRT_FFI_UserData_Add`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn add(&self, type_id: i64, number: &'static f32) -> Result<()> {
        let data = ptr::from_ref(number).cast_mut().cast();
        let user_data = PJRT_FFI_UserData { type_id, data };
        let args = PJRT_FFI_UserData_Add_Args { context: self.raw, user_data, ..SizedStruct::zeroed() };
        self.plugin.call_extension(args).map(drop)
    }

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

/// A handler.
type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut c_void;

impl Plugin {
    /// Registers a handler for custom calls with this name (`PJRT_FFI_Register_Handler`): it returns its first argument minus
    /// twice the second one plus the number that the host passes with the execution, and its second argument.
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn register_handler(self, target: &str, platform: &str) -> Result<()> {
        self.register(target, platform, weigh)
    }

    /// Registers a handler for custom calls with this name (`PJRT_FFI_Register_Handler`): it adds to each element of its argument
    /// the value of the type at this place, or [`NOT_FOUND`].
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn register_collector(self, target: &str, platform: &str, types: [i64; COLLECTED]) -> Result<()> {
        TYPES.iter().zip(types).for_each(|(place, type_id)| place.store(type_id, Ordering::SeqCst));
        self.register(target, platform, collect)
    }

    fn register(self, target: &str, platform: &str, handler: Handler) -> Result<()> {
        let args = PJRT_FFI_Register_Handler_Args {
            target_name: target.as_ptr().cast(),
            target_name_size: target.len(),
            handler: handler as *mut c_void,
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
