//! Panics stop here.

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use crate::error::{Error, Result};

/// The payload of an INTERNAL error that holds the backtrace of a panic.
pub(crate) const BACKTRACE_PAYLOAD: &str = "pjrt-plugin/backtrace";

thread_local! {
    /// How many guards are on this thread's stack.
    static GUARDS: Cell<usize> = const { Cell::new(0) };
    /// The last panic of this thread.
    static LAST: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Makes panics leave message, location and backtrace behind; where a guard will report them, they are not printed too.
pub(crate) fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            // A thread that is being torn down has no thread-local values any more; then there is nobody to tell.
            let _ = LAST.try_with(|last| last.replace(Some(describe(info))));
            if GUARDS.try_with(Cell::get).unwrap_or(0) == 0 {
                previous(info);
            }
        }));
    });
}

fn describe(info: &PanicHookInfo<'_>) -> Error {
    let message = info.payload_as_str().unwrap_or("a value that is no text");
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    Error::internal(format!("the plugin panicked at {place}: {message}"))
        .with_payload(BACKTRACE_PAYLOAD, Backtrace::force_capture().to_string().into_bytes())
}

/// The panic that is unwinding this thread, if one is.
pub(crate) fn panic_in_progress() -> Option<Error> {
    std::thread::panicking().then(last_panic)
}

fn last_panic() -> Error {
    LAST.try_with(|last| last.borrow().clone())
        .ok()
        .flatten()
        .unwrap_or_else(|| Error::internal("the plugin panicked"))
}

/// Runs the plugin's code; a panic in it becomes an INTERNAL error.
pub(crate) fn catch<T>(run: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut result = None;
    let mut run = Some(run);
    match catch_erased(&mut || result = run.take().map(|run| run())) {
        None => result.unwrap_or_else(|| Err(last_panic())),
        Some(error) => Err(error),
    }
}

/// The one `catch_unwind`, whatever it guards, so that its code exists once.
fn catch_erased(run: &mut dyn FnMut()) -> Option<Error> {
    GUARDS.with(|guards| guards.set(guards.get() + 1));
    let outcome = catch_unwind(AssertUnwindSafe(run));
    GUARDS.with(|guards| guards.set(guards.get() - 1));
    let payload = outcome.err()?;
    let error = last_panic();
    // Dropping the payload runs code of whoever panicked, which may panic once more; leaking it then is the lesser evil.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    Some(error)
}

/// Ends the process if it is dropped by unwinding: the last line behind [`catch`], since unwinding into the host is
/// undefined behaviour.
pub(crate) struct PanicTrap(&'static str);

impl PanicTrap {
    pub(crate) fn new(function: &'static str) -> Self {
        Self(function)
    }

    pub(crate) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for PanicTrap {
    fn drop(&mut self) {
        eprintln!("pjrt-plugin: a panic got past the guard of {}", self.0);
        std::process::abort();
    }
}
