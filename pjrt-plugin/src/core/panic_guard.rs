//! Conversion of panics to errors.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use crate::core::error::{Error, Result};
use crate::core::float_environment::DefaultFloats;
use crate::core::fork;

/// The key of the payload with the backtrace, in the error of a panic.
pub(crate) const BACKTRACE_PAYLOAD: &str = "pjrt-plugin/backtrace";

thread_local! {
    /// The error of the last panic of this thread, which the hook stores.
    static LAST: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Installs a panic hook that stores message, location and backtrace for [`catch`], which receives only the payload.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A thread that is exiting has no thread-local values, and cannot return the error anyway.
            let _ = LAST.try_with(|last| last.replace(Some(describe(info))));
            previous(info);
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> Error {
    let payload = info.payload();
    let text =
        payload.downcast_ref::<&str>().copied().or(payload.downcast_ref::<String>().map(String::as_str));
    let message = text.unwrap_or("(the panic has no message)");
    let place = info.location().map_or_else(|| "an unknown location".to_owned(), ToString::to_string);
    Error::internal(format!("the plugin panicked at {place}: {message}"))
        .with_payload(BACKTRACE_PAYLOAD, Backtrace::force_capture().to_string().into_bytes())
}

/// Returns the error for a value that is dropped before it is finished: that of the panic that unwinds this thread, if any.
pub(crate) fn lost(what: &str) -> Error {
    if std::thread::panicking() { last_panic() } else { Error::internal(what) }
}

fn last_panic() -> Error {
    let last = LAST.try_with(|last| last.borrow().clone()).ok().flatten();
    last.unwrap_or_else(|| Error::internal("the plugin panicked"))
}

/// Runs code of the plugin, and converts a panic to an INTERNAL error. In a forked child, returns an error without running
/// it.
#[inline]
pub(crate) fn catch<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    if fork::is_child() {
        return Err(fork::refusal());
    }
    let _floats = DefaultFloats::enter();
    catch_panic(run)
}

#[inline]
pub(crate) fn catch_panic<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|payload| Err(caught(payload)))
}

/// Returns the error of a panic.
#[cold]
fn caught(payload: Box<dyn Any + Send>) -> Error {
    let error = last_panic();
    // Dropping the payload may run code of the author, whose panic must not escape either.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_message_place_and_backtrace() {
        install_hook();
        let error = catch::<()>(|| panic!("no {}", "luck")).unwrap_err();
        assert!(error.message().contains("panic_guard.rs:"), "{error}");
        assert!(error.message().ends_with("no luck"), "{error}");
        assert_eq!(error.payloads()[0].0, BACKTRACE_PAYLOAD);
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn plugins_compute_with_denormal_numbers_on_threads_of_hosts_that_do_not() {
        use std::hint::black_box;

        let half = crate::core::float_environment::with_flushed_denormals(|| {
            catch(|| Ok(black_box(f32::MIN_POSITIVE) / black_box(2.0)))
        });
        assert_eq!(half.unwrap().to_bits(), 1 << 22);
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
