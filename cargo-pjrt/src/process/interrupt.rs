//! Signals that ask this program to end: a run that takes long stops and reports what it found.

use std::sync::atomic::{AtomicU8, Ordering};

/// The exit status of a program that a signal ended, as shells report it for SIGINT.
pub const STATUS: u8 = 130;

const UNHANDLED: u8 = 0;
const HANDLED: u8 = 1;
const REQUESTED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNHANDLED);

/// Makes the first SIGINT, SIGTERM or SIGHUP a request, at which a run ends with its report. The second one ends the process.
/// Children that are started afterwards do not receive the signals of the terminal.
///
/// # Errors
///
/// Returns the system's error if the signals cannot be handled, and an error if the program handles them already.
pub fn handle() -> Result<(), String> {
    STATE.store(HANDLED, Ordering::Relaxed);
    let handler = || {
        if STATE.swap(REQUESTED, Ordering::Relaxed) == REQUESTED {
            std::process::exit(STATUS.into());
        }
    };
    ctrlc::set_handler(handler).map_err(|error| format!("cannot handle signals: {error}"))
}

/// Makes SIGINT, SIGTERM and SIGHUP delete the temporary folders and end the process, for a subcommand that has nothing to report
/// before its end.
///
/// # Errors
///
/// Returns an error as for [`handle`].
pub fn end() -> Result<(), String> {
    let handler = || {
        super::scratch::delete_all();
        std::process::exit(STATUS.into());
    };
    ctrlc::set_handler(handler).map_err(|error| format!("cannot handle signals: {error}"))
}

/// Returns `true` if [`handle`] was called.
pub(crate) fn is_handled() -> bool {
    STATE.load(Ordering::Relaxed) != UNHANDLED
}

/// Returns `true` if a signal asked this program to end.
#[must_use]
pub fn is_requested() -> bool {
    STATE.load(Ordering::Relaxed) == REQUESTED
}
