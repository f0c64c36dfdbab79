//! Conversion of panics to errors.

use std::any::Any;
use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use crate::core::error::{Error, Result};
use crate::core::float_environment::DefaultFloats;
use crate::core::fork;

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
pub(crate) fn catch_panic<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
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
