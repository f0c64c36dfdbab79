//! Processes that are forked from one that uses the plugin.
//!
//! Only the thread that calls `fork` goes on in the child. Threads of the plugin are gone there, and what they had locked stays
//! locked, so work would never be done and locks never be given back. In such a child no function of the table does work, waits, or
//! takes a lock that another thread may have had: it reads what never changes, leaves what it should destroy to the end of the
//! process, or is an error, as `abi::forked_call` says.

#![allow(unsafe_code, reason = "registers a handler with pthread_atfork")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::error::{Error, Result};

/// Whether this is such a child.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// The platform, once the plugin has been used in this process, or why a fork would not be noticed.
static USED: OnceLock<Result<&'static str>> = OnceLock::new();

/// Whether this process was forked from one that used the plugin.
#[inline]
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Notes that the plugin is used in this process: from now on, children that are forked are ones whose threads are missing.
///
/// # Errors
///
/// RESOURCE_EXHAUSTED if a fork would not be noticed.
pub(crate) fn note_use(platform: &'static str) -> Result<()> {
    USED.get_or_init(|| watch().map(|()| platform)).clone().map(drop)
}

#[cfg(unix)]
fn watch() -> Result<()> {
    /// Runs in each child, before `fork` returns there.
    unsafe extern "C" fn child() {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
    // SAFETY: the function may be called at any fork: it only stores into a static, and the library that it is in stays in memory.
    match unsafe { libc::pthread_atfork(None, None, Some(child)) } {
        0 => Ok(()),
        number => {
            let error = std::io::Error::from_raw_os_error(number);
            Err(Error::resource_exhausted(format!("forks of this process would not be noticed: {error}")))
        }
    }
}

#[cfg(not(unix))]
fn watch() -> Result<()> {
    Ok(())
}

/// The error of whatever a forked child cannot do.
#[cold]
pub(crate) fn refusal() -> Error {
    let platform = USED.get().and_then(|used| used.as_ref().ok()).unwrap_or(&"PJRT");
    Error::failed_precondition(format!(
        "this process was forked from one that had used the plugin '{platform}', whose threads do not exist here, so the \
         plugin cannot be used"
    ))
    .with_hint(
        "start processes with multiprocessing's start method 'spawn' or 'forkserver', or fork before the plugin is first \
         used, and use it in the child only",
    )
}
