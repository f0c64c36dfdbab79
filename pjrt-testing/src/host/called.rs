//! The functions of plugins that were called.

use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pjrt_sys::SLOTS;

use super::error::Error;

/// For each slot, whether it was called since the last [`take_called`].
static SLOTS_CALLED: [AtomicBool; SLOTS.len()] = [const { AtomicBool::new(false) }; SLOTS.len()];

/// The functions of extensions that were called since the last [`take_called`].
static EXTENSION_FUNCTIONS_CALLED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The first error of a function that destroys an object since the last [`take_refused_destroy`].
static REFUSED_DESTROY: Mutex<Option<Error>> = Mutex::new(None);

/// See [`on_first_calls`].
static ON_FIRST_CALL: OnceLock<fn(&'static str)> = OnceLock::new();

/// Registers a function that is called with the name of each function before its first call since the last
/// [`take_called`], on the calling thread. Only the first registration counts.
pub fn on_first_calls(report: fn(&'static str)) {
    ON_FIRST_CALL.get_or_init(|| report);
}

/// The functions that compile or load programs.
const COMPILING: [&str; 4] =
    ["PJRT_Client_Compile", "PJRT_Compile", "PJRT_Executable_DeserializeAndLoad", "PJRT_Client_Load"];

/// See [`on_compilations`].
static ON_COMPILATION: OnceLock<fn()> = OnceLock::new();

/// Registers a function that is called after each call of a function that compiles or loads a program, on the calling thread. Such
/// a call takes long with some compilers. Only the first registration counts.
pub fn on_compilations(report: fn()) {
    ON_COMPILATION.get_or_init(|| report);
}

/// Records the end of a call of the function in a slot.
pub(super) fn note_end(index: usize) {
    if let Some(report) = ON_COMPILATION.get()
        && COMPILING.contains(&SLOTS[index].name)
    {
        report();
    }
}

/// Records a call of the function in a slot.
pub(super) fn note_slot(index: usize) {
    if !SLOTS_CALLED[index].swap(true, Ordering::Relaxed) {
        report(SLOTS[index].name);
    }
}

/// Records a call of a function of an extension.
pub(super) fn note_extension_function(name: &'static str) {
    if EXTENSION_FUNCTIONS_CALLED.lock().unwrap_or_else(PoisonError::into_inner).insert(name) {
        report(name);
    }
}

fn report(name: &'static str) {
    if let Some(report) = ON_FIRST_CALL.get() {
        report(name);
    }
}

/// Returns the functions that were called since the last call of this function, on any thread and any plugin.
pub fn take_called() -> Vec<&'static str> {
    let slots = SLOTS.iter().zip(&SLOTS_CALLED);
    let slots = slots.filter(|(_, called)| called.swap(false, Ordering::Relaxed)).map(|(slot, _)| slot.name);
    let of_extensions =
        mem::take(&mut *EXTENSION_FUNCTIONS_CALLED.lock().unwrap_or_else(PoisonError::into_inner));
    slots.chain(of_extensions).collect()
}

/// Records an error of a function that destroys an object.
pub(super) fn note_refused_destroy(error: Error) {
    REFUSED_DESTROY.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
}

/// Returns the first error of a function that destroys an object since the last call of this function, on any thread and any
/// plugin. Objects are destroyed when their owners are dropped, which reports no errors.
pub fn take_refused_destroy() -> Option<Error> {
    REFUSED_DESTROY.lock().unwrap_or_else(PoisonError::into_inner).take()
}
