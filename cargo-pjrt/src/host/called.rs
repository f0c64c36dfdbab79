//! The functions of plugins that were called.

use std::collections::BTreeSet;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pjrt_sys::SLOTS;

/// For each slot, whether it was called since the last [`take_called`].
static SLOTS_CALLED: [AtomicBool; SLOTS.len()] = [const { AtomicBool::new(false) }; SLOTS.len()];

/// The functions of extensions that were called since the last [`take_called`].
static EXTENSION_FUNCTIONS_CALLED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Records a call of the function in a slot.
pub(super) fn note_slot(index: usize) {
    SLOTS_CALLED[index].store(true, Ordering::Relaxed);
}

/// Records a call of a function of an extension.
pub(super) fn note_extension_function(name: &'static str) {
    EXTENSION_FUNCTIONS_CALLED.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
}

/// Returns the functions that were called since the last call of this function, on any thread and any plugin.
pub(crate) fn take_called() -> Vec<&'static str> {
    let slots = SLOTS.iter().zip(&SLOTS_CALLED);
    let slots = slots.filter(|(_, called)| called.swap(false, Ordering::Relaxed)).map(|(slot, _)| slot.name);
    let of_extensions =
        mem::take(&mut *EXTENSION_FUNCTIONS_CALLED.lock().unwrap_or_else(PoisonError::into_inner));
    slots.chain(of_extensions).collect()
}
