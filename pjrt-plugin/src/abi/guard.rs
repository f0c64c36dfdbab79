//! The guard around every function of the tables, which converts errors and panics to a `PJRT_Error`. [`shim`] adds it to a
//! function and also sets the floating-point environment that Rust requires; [`shim_without_floats`] is for functions that
//! do not depend on it.

use std::ptr::{self, NonNull};

use pjrt_sys::{
    PJRT_Error, PJRT_Extension_Base, PJRT_Extension_Type_Profiler, PJRT_Profiler_Extension, SizedStruct,
};

use crate::abi::args::View;
use crate::abi::call_trace::{self, Call};
use crate::abi::error::error_to_raw;
use crate::abi::forked_call::{ForkedCall, forked_call};
use crate::abi::recording;
use crate::core::float_environment::DefaultFloats;
use crate::core::fork;
use crate::core::panic_guard::catch_panic;
use crate::error::{Error, Result};

/// Returns the `extern "C"` function of a table for a function of the plugin. It catches panics, converts errors, and sets
/// the floating-point environment that Rust requires.
///
/// The argument of the returned function must be as the PJRT C API requires for `T`.
pub(crate) const fn shim<T, F>(_: F) -> unsafe extern "C" fn(*mut T) -> *mut PJRT_Error
where
    T: SizedStruct,
    F: Fn(View<'_, T>) -> Result<()> + Copy + 'static,
{
    guarded::<T, F, true>
}

/// Returns a function as [`shim`] does, but leaves the floating-point environment unchanged, for functions that neither
/// compute with floats nor call the author's code.
pub(crate) const fn shim_without_floats<T, F>(_: F) -> unsafe extern "C" fn(*mut T) -> *mut PJRT_Error
where
    T: SizedStruct,
    F: Fn(View<'_, T>) -> Result<()> + Copy + 'static,
{
    guarded::<T, F, false>
}

/// Calls a function of the plugin and converts its result to a `PJRT_Error`, or null for success. If a panic escapes (while
/// the error is created), Rust aborts the process at the `extern "C"` boundary instead of unwinding into the host.
///
/// # Safety
///
/// The same as for [`View::new`]; a value of type `F` exists.
unsafe extern "C" fn guarded<T, F, const FLOATS: bool>(args: *mut T) -> *mut PJRT_Error
where
    T: SizedStruct,
    F: Fn(View<'_, T>) -> Result<()> + Copy + 'static,
{
    let _floats = FLOATS.then(DefaultFloats::enter);
    // SAFETY: this function's contract.
    match unsafe { run_guarded(args, zero_sized::<F>()) } {
        Ok(()) => ptr::null_mut(),
        Err(error) => error_to_raw(error),
    }
}

/// Returns the value of a function's type, which has size zero because the type identifies the function.
///
/// # Safety
///
/// A value of type `F` exists.
pub(crate) unsafe fn zero_sized<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "the argument of a shim must be a function, not a function pointer") };
    // SAFETY: no bytes are read, and by this function's contract a value exists, of which this is a copy.
    unsafe { NonNull::<F>::dangling().read() }
}

/// Runs the body of a function that a host calls. The error names the function.
///
/// # Safety
///
/// The same as for [`View::new`].
#[inline]
pub(crate) unsafe fn run<T: SizedStruct>(
    args: *mut T,
    body: impl FnOnce(View<'_, T>) -> Result<()>,
) -> Result<()> {
    let _floats = DefaultFloats::enter();
    // SAFETY: the caller's contract.
    unsafe { run_guarded(args, body) }
}

/// # Safety
///
/// The same as for [`View::new`].
#[inline]
unsafe fn run_guarded<T: SizedStruct>(
    args: *mut T,
    body: impl FnOnce(View<'_, T>) -> Result<()>,
) -> Result<()> {
    if fork::is_child() {
        // SAFETY: the caller's contract.
        return unsafe { run_in_child(args, body) };
    }
    // SAFETY: the caller's contract.
    let watched = call_trace::is_watched().then(|| unsafe { Watched::begin(args) });
    // SAFETY: the caller's contract is the callee's.
    let outcome = catch_panic(|| unsafe { View::new(args) }.and_then(body));
    if let Some(watched) = watched {
        // SAFETY: the caller's contract; after success, the outputs are also as the C API requires.
        unsafe { watched.returned(args, outcome.as_ref().err()) };
    }
    outcome.map_err(|error| error.in_function(function_name::<T>()))
}

/// Runs a body as [`run_guarded`] does, in a child that was forked from a process with a client.
///
/// # Safety
///
/// The same as for [`View::new`].
#[cold]
unsafe fn run_in_child<T: SizedStruct>(
    args: *mut T,
    body: impl FnOnce(View<'_, T>) -> Result<()>,
) -> Result<()> {
    let function = function_name::<T>();
    let outcome = match forked_call(function) {
        // SAFETY: the caller's contract is the callee's.
        ForkedCall::Call => catch_panic(|| unsafe { View::new(args) }.and_then(body)),
        ForkedCall::Leave => Ok(()),
        ForkedCall::Refuse => Err(fork::refusal()),
    };
    outcome.map_err(|error| error.in_function(function))
}

/// An observed call.
struct Watched {
    call: Option<Call>,
    _profiled: Option<recording::Call>,
}

impl Watched {
    /// # Safety
    ///
    /// The same as for [`View::new`].
    #[cold]
    unsafe fn begin<T: SizedStruct>(args: *const T) -> Self {
        let function = function_name::<T>();
        let call = Call::begin(function);
        // SAFETY: this function's contract.
        Self { call, _profiled: recording::Call::begin(function, || unsafe { trace_context(args) }) }
    }

    /// # Safety
    ///
    /// The same as for [`Call::returned`].
    #[cold]
    unsafe fn returned<T: SizedStruct>(self, args: *const T, error: Option<&Error>) {
        let _floats = DefaultFloats::enter();
        if let Some(call) = &self.call {
            // SAFETY: this function's contract.
            unsafe { call.returned(args.cast(), T::LAYOUT, error) };
        }
    }
}

/// Returns the number by which a host links a call with its own trace, from an extension of the call's arguments.
///
/// # Safety
///
/// The same as for [`View::new`].
unsafe fn trace_context<T: SizedStruct>(args: *const T) -> Option<i64> {
    let field = T::LAYOUT.field("extension_start")?;
    if args.is_null() {
        return None;
    }
    // SAFETY: a struct begins with its size, and has the field if that size includes it. Extensions are a linked list of
    // structs with a common header, whose type identifies the struct.
    unsafe {
        if args.cast::<usize>().read_unaligned() < field.end {
            return None;
        }
        let mut next = args.byte_add(field.offset).cast::<*const PJRT_Extension_Base>().read_unaligned();
        while !next.is_null() {
            if (*next).type_ == PJRT_Extension_Type_Profiler
                && (*next).struct_size >= PJRT_Profiler_Extension::STRUCT_SIZE
            {
                return Some((*next.cast::<PJRT_Profiler_Extension>()).traceme_context_id);
            }
            next = (*next).next;
        }
    }
    None
}

/// Returns the name of the function with these arguments.
pub(crate) fn function_name<T: SizedStruct>() -> &'static str {
    T::NAME.strip_suffix("_Args").unwrap_or(T::NAME)
}
