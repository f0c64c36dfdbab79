//! Detection of processes that were forked from one that uses the plugin.
//!
//! Only the thread that calls `fork` exists in the child. The threads of the plugin do not, and their locks stay locked, so
//! work would never complete and locks would never be released. In such a child, no function of the table starts work,
//! waits, or takes a lock that another thread may have held. Depending on `abi::forked_call`, it reads immutable data,
//! succeeds without an effect, or returns an error.

#![allow(unsafe_code, reason = "registers a handler with pthread_atfork")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::error::{Error, Result};

/// `true` if this process is such a child.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// The platform, after the plugin has been used in this process, or the reason why forks cannot be detected.
static USED: OnceLock<Result<&'static str>> = OnceLock::new();

/// Returns whether this process was forked from one that used the plugin.
#[inline]
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Records that this process uses the plugin, so that children forked later are detected.
///
/// # Errors
///
/// Returns RESOURCE_EXHAUSTED if forks cannot be detected.
pub(crate) fn note_use(platform: &'static str) -> Result<()> {
    USED.get_or_init(|| watch().map(|()| platform)).clone().map(drop)
}

#[cfg(unix)]
fn watch() -> Result<()> {
    /// Runs in each child, before `fork` returns there.
    unsafe extern "C" fn child() {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
    // SAFETY: the function may be called at any fork, because it only writes to a static, and its library stays loaded.
    match unsafe { libc::pthread_atfork(None, None, Some(child)) } {
        0 => Ok(()),
        number => {
            let error = std::io::Error::from_raw_os_error(number);
            Err(Error::resource_exhausted(format!(
                "cannot detect forks of this process (pthread_atfork): {error}"
            )))
        }
    }
}

#[cfg(not(unix))]
fn watch() -> Result<()> {
    Ok(())
}

/// Returns the error for operations that a forked child cannot perform.
#[cold]
pub(crate) fn refusal() -> Error {
    let platform = USED.get().and_then(|used| used.as_ref().ok()).unwrap_or(&"PJRT");
    Error::failed_precondition(format!(
        "the plugin '{platform}' cannot be used in this process, which was forked after the plugin was used: its threads \
         do not exist here"
    ))
    .with_hint(
        "start processes with multiprocessing's start method 'spawn' or 'forkserver', or fork before the first use of the \
         plugin",
    )
}
