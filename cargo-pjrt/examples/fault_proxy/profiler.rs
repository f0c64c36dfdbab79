//! Faults of profilers, whose functions are in a table of their own.

use std::collections::HashMap;
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use pjrt_sys::*;

/// The misbehavior.
#[derive(Clone, Copy)]
enum Kind {
    /// All sessions return the trace of the first one.
    Stale,
    /// A session returns its trace once.
    Once,
    /// All sessions return the trace of the one that was stopped last.
    Shared,
}

#[derive(Default)]
struct State {
    kind: Option<Kind>,
    /// The address of the good plugin's table.
    good: usize,
    first: Option<Vec<u8>>,
    /// The traces that sessions returned.
    returned: HashMap<usize, usize>,
    stopped: usize,
}

fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

fn good() -> &'static PLUGIN_Profiler_Api {
    let address = state().good;
    // SAFETY: `with_fault` stored the address of the good plugin's table, which lives as long as the process.
    unsafe { &*ptr::with_exposed_provenance(address) }
}

/// Replaces functions of the good plugin's profiler.
///
/// # Safety
///
/// The chain is a copy of the good plugin's, which this function may change.
pub(crate) unsafe fn with_fault(chain: *mut PJRT_Extension_Base, kind: &str) {
    let kind = match kind {
        "stale_trace" => Kind::Stale,
        "empty_second_trace" => Kind::Once,
        _ => Kind::Shared,
    };
    let mut next = chain;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while !next.is_null() {
            if (*next).type_ == PJRT_Extension_Type_Profiler {
                let extension = next.cast::<PJRT_Profiler_Extension>();
                let good = (*extension).profiler_api;
                state().kind = Some(kind);
                state().good = good.expose_provenance();
                let mut table = good.read();
                table.collect_data = Some(collect);
                table.stop = Some(stop);
                table.destroy = Some(destroy);
                (*extension).profiler_api = Box::into_raw(Box::new(table));
            }
            next = (*next).next;
        }
    }
}

/// # Safety
///
/// The host calls this function with this struct.
unsafe extern "C" fn stop(args: *mut PLUGIN_Profiler_Stop_Args) -> *mut PLUGIN_Profiler_Error {
    // SAFETY: guaranteed by the caller.
    unsafe {
        state().stopped = (*args).profiler.expose_provenance();
        good().stop.expect("a function of the good plugin")(args)
    }
}

/// # Safety
///
/// The host calls this function with this struct.
unsafe extern "C" fn destroy(args: *mut PLUGIN_Profiler_Destroy_Args) -> *mut PLUGIN_Profiler_Error {
    // SAFETY: guaranteed by the caller.
    unsafe {
        state().returned.remove(&(*args).profiler.addr());
        if state().stopped == (*args).profiler.addr() {
            // Its trace is still needed.
            return ptr::null_mut();
        }
        good().destroy.expect("a function of the good plugin")(args)
    }
}

/// # Safety
///
/// The host calls this function with this struct.
unsafe extern "C" fn collect(args: *mut PLUGIN_Profiler_CollectData_Args) -> *mut PLUGIN_Profiler_Error {
    let kind = state().kind;
    // SAFETY: guaranteed by the caller; the host's memory has as many bytes as it says.
    unsafe {
        let profiler = (*args).profiler.addr();
        if let Some(Kind::Shared) = kind {
            (*args).profiler = ptr::with_exposed_provenance_mut(state().stopped);
        }
        let trace = match kind {
            Some(Kind::Stale) => state().first.clone(),
            Some(Kind::Once) if state().returned.get(&profiler).is_some_and(|calls| *calls >= 2) => {
                Some(vec![])
            }
            _ => None,
        };
        if let Some(trace) = trace {
            if !(*args).buffer.is_null() {
                let size = trace.len().min((*args).buffer_size_in_bytes);
                ptr::copy_nonoverlapping(trace.as_ptr(), (*args).buffer, size);
            }
            (*args).buffer_size_in_bytes = trace.len();
            return ptr::null_mut();
        }
        let error = good().collect_data.expect("a function of the good plugin")(args);
        if error.is_null() {
            let bytes = (*args).buffer.cast_const();
            if !bytes.is_null() {
                let bytes = std::slice::from_raw_parts(bytes, (*args).buffer_size_in_bytes).to_vec();
                state().first.get_or_insert(bytes);
            }
            *state().returned.entry(profiler).or_default() += 1;
        }
        error
    }
}
