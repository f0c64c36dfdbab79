//! Faults of plugins in which one array ends together with another one.

use std::ptr;
use std::sync::{Mutex, PoisonError};

use pjrt_sys::*;

use crate::table::{INNER, inner};

/// Pairs of arrays of which the second one ends together with the first one.
static LINKED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Performs an action after a copy. Returns `true` if the action is one of this module.
///
/// # Safety
///
/// The struct is that of a successful call of `PJRT_Buffer_CopyToMemory` or `PJRT_Buffer_CopyToDevice`.
pub(crate) unsafe fn after(name: &str, args: *mut u8) -> bool {
    // SAFETY: the structs of both functions have the same fields at the same places.
    let copy = unsafe { &*args.cast::<PJRT_Buffer_CopyToMemory_Args>() };
    let (source, target) = (copy.buffer.addr(), copy.dst_buffer.expose_provenance());
    copy.buffer.expose_provenance();
    let pair = match name {
        "end_with_source" => (source, target),
        "end_source_too" => (target, source),
        _ => return false,
    };
    LINKED.lock().unwrap_or_else(PoisonError::into_inner).push(pair);
    true
}

/// Ends the arrays that are linked to one that ends.
pub(crate) fn before_call(function: &str, array: usize) {
    if !matches!(function, "PJRT_Buffer_Delete" | "PJRT_Buffer_Destroy") {
        return;
    }
    let mut linked = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    let ended: Vec<usize> = linked.iter().filter(|(of, _)| *of == array).map(|(_, other)| *other).collect();
    linked.retain(|pair| pair.0 != array && pair.1 != array);
    drop(linked);
    for other in ended {
        let other = ptr::with_exposed_provenance_mut::<PJRT_Buffer>(other);
        inner!(PJRT_Buffer_Delete PJRT_Buffer_Delete_Args { buffer: other });
    }
}
