//! Panics stop here: every function of the table runs in [`call`], with the floating-point settings that Rust relies on, or, where
//! they do not matter, in [`call_without_floats`].

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::ptr;
use std::sync::Once;

use pjrt_sys::{
    PJRT_Error, PJRT_Extension_Base, PJRT_Extension_Type_Profiler, PJRT_Profiler_Extension, SizedStruct,
};

use crate::abi::args::View;
use crate::abi::error::error_to_raw;
use crate::abi::float_environment::DefaultFloats;
use crate::abi::fork::{self, InChild};
use crate::abi::observe::{self, Call};
use crate::error::{Error, Result};
use crate::ext::profiler::recording;

/// The key of the payload in which an error made of a panic carries the backtrace.
pub(crate) const BACKTRACE_PAYLOAD: &str = "pjrt-plugin/backtrace";

thread_local! {
    /// The last panic of this thread, as the hook saw it.
    static LAST: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Makes panics leave message, location and backtrace behind for [`catch`], which sees only their payload.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A thread that is being torn down has no thread-local values any more; then there is nobody to tell.
            let _ = LAST.try_with(|last| last.replace(Some(describe(info))));
            previous(info);
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> Error {
    let payload = info.payload();
    let text =
        payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("(the panic carries no text)");
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    Error::internal(format!("the plugin panicked at {place}: {message}"))
        .with_payload(BACKTRACE_PAYLOAD, Backtrace::force_capture().to_string().into_bytes())
}

/// The error of something that is dropped before it is finished: the panic that unwinds this thread, if one does.
pub(crate) fn lost(what: &str) -> Error {
    if std::thread::panicking() { last_panic() } else { Error::internal(what) }
}

fn last_panic() -> Error {
    let last = LAST.try_with(|last| last.borrow().clone()).ok().flatten();
    last.unwrap_or_else(|| Error::internal("the plugin panicked"))
}

/// Runs the plugin's code; a panic in it becomes an INTERNAL error. In a forked child it does not run, which is an error too.
#[inline]
pub(crate) fn catch<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    if fork::is_child() {
        return Err(fork::refusal());
    }
    let _floats = DefaultFloats::enter();
    catch_panic(run)
}

#[inline]
fn catch_panic<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(caught(payload)))
}

/// The error that a panic becomes.
#[cold]
fn caught(payload: Box<dyn Any + Send>) -> Error {
    let error = last_panic();
    // Dropping the payload runs code of whoever panicked; a panic there must not get out either.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    error
}

/// Runs the body of a function of the table and turns its result into what C expects. Should a panic get past this (in
/// the making of the error), Rust ends the process at the `extern "C"` boundary rather than unwind into the host.
///
/// # Safety
///
/// As for [`View::new`].
#[inline]
pub(crate) unsafe fn call<T: SizedStruct>(
    args: *mut T,
    body: impl FnOnce(View<'_, T>) -> Result<()>,
) -> *mut PJRT_Error {
    let _floats = DefaultFloats::enter();
    // SAFETY: the caller's contract.
    unsafe { call_without_floats(args, body) }
}

/// As [`call`], for what neither computes with floats nor runs anything of an author: the settings stay as they are.
///
/// # Safety
///
/// As for [`View::new`].
#[inline]
pub(crate) unsafe fn call_without_floats<T: SizedStruct>(
    args: *mut T,
    body: impl FnOnce(View<'_, T>) -> Result<()>,
) -> *mut PJRT_Error {
    // SAFETY: the caller's contract.
    match unsafe { run_guarded(args, body) } {
        Ok(()) => ptr::null_mut(),
        Err(error) => error_to_raw(error),
    }
}

/// Runs the body of a function that a host calls; its error names the function.
///
/// # Safety
///
/// As for [`View::new`].
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
/// As for [`View::new`].
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
    let watched = observe::is_watched().then(|| unsafe { Watched::begin(args) });
    // SAFETY: the caller's contract is the callee's.
    let outcome = catch_panic(|| unsafe { View::new(args) }.and_then(body));
    if let Some(watched) = watched {
        // SAFETY: the caller's contract, and after success that of the function that the struct is for.
        unsafe { watched.returned(args, outcome.as_ref().err()) };
    }
    outcome.map_err(|error| error.in_function(function_name::<T>()))
}

/// As [`run_guarded`] in a child that was forked from a process with a client.
///
/// # Safety
///
/// As for [`View::new`].
#[cold]
unsafe fn run_in_child<T: SizedStruct>(
    args: *mut T,
    body: impl FnOnce(View<'_, T>) -> Result<()>,
) -> Result<()> {
    let function = function_name::<T>();
    let outcome = match fork::in_child(function) {
        // SAFETY: the caller's contract is the callee's.
        InChild::Call => catch_panic(|| unsafe { View::new(args) }.and_then(body)),
        InChild::Leave => Ok(()),
        InChild::Refuse => Err(fork::refusal()),
    };
    outcome.map_err(|error| error.in_function(function))
}

/// A call that somebody may want to see.
struct Watched {
    call: Option<Call>,
    _profiled: Option<recording::Call>,
}

impl Watched {
    /// # Safety
    ///
    /// As for [`View::new`].
    #[cold]
    unsafe fn begin<T: SizedStruct>(args: *const T) -> Self {
        let function = function_name::<T>();
        let call = Call::begin(function);
        // SAFETY: this function's contract.
        Self { call, _profiled: recording::Call::begin(function, || unsafe { trace_context(args) }) }
    }

    /// # Safety
    ///
    /// As for [`Call::returned`].
    #[cold]
    unsafe fn returned<T: SizedStruct>(self, args: *const T, error: Option<&Error>) {
        let _floats = DefaultFloats::enter();
        if let Some(call) = &self.call {
            // SAFETY: this function's contract.
            unsafe { call.returned(args.cast(), T::LAYOUT, error) };
        }
    }
}

/// The number by which a host links a call with its own trace, in an extension of the call's arguments.
///
/// # Safety
///
/// As for [`View::new`].
unsafe fn trace_context<T: SizedStruct>(args: *const T) -> Option<i64> {
    let field = T::LAYOUT.field("extension_start")?;
    if args.is_null() {
        return None;
    }
    // SAFETY: a struct begins with its size, and has the field if it is that long; extensions are a chain of structs that
    // begin alike, and the type says which one it is.
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

/// The function whose arguments these are.
pub(crate) fn function_name<T: SizedStruct>() -> &'static str {
    T::NAME.strip_suffix("_Args").unwrap_or(T::NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_message_place_and_backtrace() {
        install_hook();
        let error = catch::<()>(|| panic!("no {}", "luck")).unwrap_err();
        assert!(error.message().contains("guard.rs:"), "{error}");
        assert!(error.message().ends_with("no luck"), "{error}");
        assert_eq!(error.payloads()[0].0, BACKTRACE_PAYLOAD);
    }

    #[test]
    fn a_payload_that_panics_when_dropped_does_not_get_out() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        assert!(catch::<()>(|| std::panic::panic_any(Bomb)).is_err());
    }
}
