//! Faults of features that are right for small cases: few arguments, the first device, one reference, one thread.

use std::collections::HashMap;
use std::ptr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pjrt_sys::*;

use crate::executions::own_arguments;
use crate::fault::Action;
use crate::table::{FAULT, INNER, OVERLAP, event, inner, type_and_rank};

/// The number of arguments that a plugin with a mask of 32 bits distinguishes.
const MASK: usize = 32;

/// The external references to an array: their number, the address of the elements, and whether the plugin forgot them.
struct References {
    count: usize,
    address: usize,
    are_forgotten: bool,
}

static REFERENCES: LazyLock<Mutex<HashMap<usize, References>>> = LazyLock::new(Mutex::default);

/// Performs an action instead of the call. Returns `None` if the good plugin is to be called nevertheless.
///
/// # Safety
///
/// The struct is that of the function that the action is meant for.
pub(crate) unsafe fn before(name: &str, args: *mut u8) -> Option<*mut PJRT_Error> {
    // SAFETY: the actions are used only with executions.
    unsafe {
        let execute = args.cast::<PJRT_LoadedExecutable_Execute_Args>();
        match name {
            // The numbers of arguments are kept in 5 bits.
            "arguments_in_5_bits" => {
                let list = own_arguments(&mut *execute);
                for index in MASK..list.len() {
                    if is_alike(list[index], list[index % MASK]) {
                        list[index] = list[index % MASK];
                    }
                }
                None
            }
            "locks_of_arguments" => Some(with_locks(execute)),
            _ => None,
        }
    }
}

/// Returns `true` if two arrays have the same type and number of bytes.
fn is_alike(first: *mut PJRT_Buffer, second: *mut PJRT_Buffer) -> bool {
    let size = |buffer: *mut PJRT_Buffer| {
        let (args, _) =
            inner!(PJRT_Buffer_OnDeviceSizeInBytes PJRT_Buffer_OnDeviceSizeInBytes_Args { buffer: buffer });
        args.on_device_size_in_bytes
    };
    type_and_rank(first) == type_and_rank(second) && size(first) == size(second)
}

/// Executes a program with the locks of its arguments, which are taken in the order of the arguments.
///
/// # Safety
///
/// The struct is one that the host passed.
unsafe fn with_locks(execute: *mut PJRT_LoadedExecutable_Execute_Args) -> *mut PJRT_Error {
    static LOCKS: LazyLock<Mutex<HashMap<usize, Arc<Mutex<()>>>>> = LazyLock::new(Mutex::default);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let list = (*execute).argument_lists.read();
        let mut arguments: Vec<usize> = Vec::new();
        for index in 0..(*execute).num_args {
            let argument = list.add(index).read().addr();
            if !arguments.contains(&argument) {
                arguments.push(argument);
            }
        }
        let mut locks = Vec::new();
        for argument in arguments {
            let mut all = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
            locks.push(Arc::clone(all.entry(argument).or_default()));
        }
        let mut held = Vec::new();
        for lock in &locks {
            held.push(lock.lock().unwrap_or_else(PoisonError::into_inner));
            std::thread::sleep(OVERLAP);
        }
        ((*INNER.0).PJRT_LoadedExecutable_Execute.expect("a function of the good plugin"))(execute)
    }
}

/// Performs an action after a successful call. Returns `false` if there is no such action.
///
/// # Safety
///
/// The struct is that of the function that the action is meant for.
pub(crate) unsafe fn after(name: &str, args: *mut u8) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match name {
            "donation_in_5_bits" => donate_in_5_bits(&*args.cast()),
            "hide_errors_after_first_device" => hide_errors(&*args.cast()),
            _ => return false,
        }
    }
    true
}

/// Deletes the arguments whose numbers have the same low bits as those of donated arguments.
///
/// # Safety
///
/// The struct is that of an execution that succeeded.
unsafe fn donate_in_5_bits(execute: &PJRT_LoadedExecutable_Execute_Args) {
    // SAFETY: guaranteed by the caller.
    let list = unsafe { execute.argument_lists.read() };
    for index in MASK..execute.num_args {
        // SAFETY: the list has as many elements.
        let (donated, other) = unsafe { (list.add(index).read(), list.add(index % MASK).read()) };
        let (args, _) = inner!(PJRT_Buffer_IsDeleted PJRT_Buffer_IsDeleted_Args { buffer: donated });
        if args.is_deleted {
            inner!(PJRT_Buffer_Delete PJRT_Buffer_Delete_Args { buffer: other });
        }
    }
}

/// Completes the events of all devices but the first without the error of an argument.
///
/// # Safety
///
/// The struct is that of an execution that succeeded.
unsafe fn hide_errors(execute: &PJRT_LoadedExecutable_Execute_Args) {
    if execute.device_complete_events.is_null() {
        return;
    }
    for device in 1..execute.num_devices {
        // SAFETY: there is a list for each device, with as many arguments as the host says, and room for an event.
        unsafe {
            let list = execute.argument_lists.add(device).read();
            if (0..execute.num_args).any(|index| is_in_error(list.add(index).read())) {
                execute.device_complete_events.add(device).write(event(true));
            }
        }
    }
}

/// Returns `true` if an array is in error.
fn is_in_error(buffer: *mut PJRT_Buffer) -> bool {
    let (ready, error) = inner!(PJRT_Buffer_ReadyEvent PJRT_Buffer_ReadyEvent_Args { buffer: buffer });
    if !error.is_null() {
        return false;
    }
    let (is_ready, _) = inner!(PJRT_Event_IsReady PJRT_Event_IsReady_Args { event: ready.event });
    is_ready.is_ready && !inner!(PJRT_Event_Error PJRT_Event_Error_Args { event: ready.event }).1.is_null()
}

/// Follows a successful call of the host, if the plugin keeps a flag instead of the number of references.
///
/// # Safety
///
/// The struct is that of the function, whose object is this array.
pub(crate) unsafe fn after_call(function: &str, buffer: usize) {
    let is_flag =
        |action: &Action| matches!(action, Action::Special(name, _) if name == "flag_of_references");
    if !FAULT.as_ref().is_some_and(|fault| fault.actions.iter().any(is_flag)) {
        return;
    }
    let mut all = REFERENCES.lock().unwrap_or_else(PoisonError::into_inner);
    match function {
        "PJRT_Buffer_IncreaseExternalReferenceCount" => {
            let raw = ptr::with_exposed_provenance_mut::<PJRT_Buffer>(buffer);
            let (data, _) = inner!(
                PJRT_Buffer_OpaqueDeviceMemoryDataPointer
                    PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: raw }
            );
            let address = data.device_memory_ptr.expose_provenance();
            let references =
                all.entry(buffer).or_insert(References { count: 0, address, are_forgotten: false });
            references.count += 1;
            references.are_forgotten = false;
        }
        "PJRT_Buffer_DecreaseExternalReferenceCount" => {
            let Some(references) = all.get_mut(&buffer) else { return };
            references.count -= 1;
            references.are_forgotten = true;
            if references.count == 0 {
                all.remove(&buffer);
            }
        }
        // The memory is used for something else.
        "PJRT_Buffer_Delete" => {
            let Some(References { address, are_forgotten: true, .. }) = all.get(&buffer) else { return };
            let start = ptr::with_exposed_provenance_mut::<u8>(*address);
            if !start.is_null() {
                // SAFETY: the good plugin keeps the memory of an array to which there are references, which has an element or is
                // padded.
                unsafe { start.write(!start.read()) };
            }
        }
        "PJRT_Buffer_Destroy" => drop(all.remove(&buffer)),
        _ => {}
    }
}
