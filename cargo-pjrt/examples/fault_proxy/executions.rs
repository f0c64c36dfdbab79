//! Faults of executions, transfers and their events.

use std::collections::HashMap;
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pjrt_sys::*;

use crate::fault::name_of;
use crate::table::{FAULT, INNER, event, inner, own_error, state};

/// The time that a transfer of a faulty plugin lasts after its event is complete.
const LATE: Duration = Duration::from_millis(100);

fn number(words: &[String], index: usize) -> usize {
    words.get(index).and_then(|word| word.parse().ok()).expect("a number")
}

/// The way in which an object misbehaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// The ready event is complete, without an error.
    Ready,
    /// A readback reports success.
    Readable,
    /// PJRT_Buffer_IsDeleted returns false.
    NotDeleted,
    /// The faulty function fails.
    Failing,
}

/// Returns the objects with marks.
fn marks() -> MutexGuard<'static, HashMap<usize, Mark>> {
    static MARKS: LazyLock<Mutex<HashMap<usize, Mark>>> = LazyLock::new(Mutex::default);
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the end of the first call of PJRT_Event_Await after an execution.
fn awaited() -> MutexGuard<'static, Option<Instant>> {
    static AWAITED: Mutex<Option<Instant>> = Mutex::new(None);
    AWAITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that the object of a call was destroyed.
pub(crate) fn destroyed(object: usize) {
    marks().remove(&object);
}

/// Makes later readbacks of an array return zeros.
pub(crate) fn read_as_zeros(array: *mut PJRT_Buffer) {
    let zeros = Vec::leak(vec![0_u8; 1 << 20]).as_ptr().expose_provenance() as i64;
    state().late.insert(array.addr() as i64, zeros);
}

/// Records when executions end, and changes the result of a call of the good plugin for an object with a mark.
///
/// # Safety
///
/// The struct is that of the slot, and of a call that returned this error.
pub(crate) unsafe fn later(
    slot: usize,
    args: *mut u8,
    object: usize,
    error: *mut PJRT_Error,
) -> *mut PJRT_Error {
    match name_of(slot) {
        "PJRT_LoadedExecutable_Execute" => *awaited() = None,
        "PJRT_Event_Await" => drop(awaited().get_or_insert_with(Instant::now)),
        _ => {}
    }
    let mark = marks().get(&object).copied();
    // SAFETY: the struct is that of the slot.
    unsafe {
        match (mark, name_of(slot)) {
            (Some(Mark::Ready), "PJRT_Buffer_ReadyEvent") => {
                (*args.cast::<PJRT_Buffer_ReadyEvent_Args>()).event = event(true);
                ptr::null_mut()
            }
            (Some(Mark::Readable), "PJRT_Buffer_ToHostBuffer") => {
                (*args.cast::<PJRT_Buffer_ToHostBuffer_Args>()).event = event(true);
                ptr::null_mut()
            }
            (Some(Mark::NotDeleted), "PJRT_Buffer_IsDeleted") => {
                (*args.cast::<PJRT_Buffer_IsDeleted_Args>()).is_deleted = false;
                error
            }
            (Some(Mark::Failing), _) if FAULT.as_ref().is_some_and(|fault| fault.slot == Some(slot)) => {
                own_error(INTERNAL, "an earlier call failed")
            }
            _ => error,
        }
    }
}

/// The code INTERNAL.
const INTERNAL: u32 = 13;

/// Performs an action instead of the call. Returns `None` if the good plugin is to be called nevertheless.
///
/// # Safety
///
/// The struct is that of the function that the action is meant for.
pub(crate) unsafe fn before(name: &str, words: &[String], args: *mut u8) -> Option<*mut PJRT_Error> {
    let execute = args.cast::<PJRT_LoadedExecutable_Execute_Args>();
    // SAFETY: each action is used only with the function whose struct it accesses.
    unsafe {
        match name {
            // An argument is replaced with another one of the same call.
            "copy_argument" => {
                let list = own_arguments(&mut *execute);
                list[number(words, 1)] = list[number(words, 0)];
                None
            }
            // The memory of the arguments is used for something else after the launch: the arrays are read
            // as zeros.
            "free_arguments" => {
                let list = (*execute).argument_lists.read();
                for index in 0..(*execute).num_args {
                    read_as_zeros(list.add(index).read());
                }
                None
            }
            // Every upload goes to the first device.
            "first_device" => {
                let upload = &mut *args.cast::<PJRT_Client_BufferFromHostBuffer_Args>();
                let (devices, _) = inner!(PJRT_Client_AddressableDevices PJRT_Client_AddressableDevices_Args {
                    client: upload.client,
                });
                if !upload.device.is_null() {
                    upload.device = devices.addressable_devices.read();
                }
                None
            }
            "early_event" => early_event(args.cast()),
            "late_transfer" => {
                late_transfer(&mut *args.cast());
                Some(ptr::null_mut())
            }
            // An array without data is read as the bytes that are in the host's memory already.
            "unwaited" => {
                let read = &mut *args.cast::<PJRT_Buffer_ToHostBuffer_Args>();
                let (ready, _) =
                    inner!(PJRT_Buffer_ReadyEvent PJRT_Buffer_ReadyEvent_Args { buffer: read.src });
                let (is_ready, _) = inner!(PJRT_Event_IsReady PJRT_Event_IsReady_Args { event: ready.event });
                let is_read = is_ready.is_ready || read.dst.is_null();
                inner!(PJRT_Event_Destroy PJRT_Event_Destroy_Args { event: ready.event });
                if is_read {
                    return None;
                }
                read.event = event(true);
                Some(ptr::null_mut())
            }
            // The plugin waits for this number of milliseconds at most.
            "gives_up" => {
                let event = (*args.cast::<PJRT_Event_Await_Args>()).event;
                let end = Instant::now() + Duration::from_millis(number(words, 0) as u64);
                let is_ready =
                    || inner!(PJRT_Event_IsReady PJRT_Event_IsReady_Args { event: event }).0.is_ready;
                while Instant::now() < end && !is_ready() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if is_ready() { None } else { Some(ptr::null_mut()) }
            }
            // The device still works for this number of milliseconds after the event of an execution.
            "behind" => {
                let end = awaited().map(|time| time + Duration::from_millis(number(words, 0) as u64));
                let rest = end.and_then(|end| end.checked_duration_since(Instant::now()));
                rest.into_iter().for_each(std::thread::sleep);
                None
            }
            "first_options" => {
                first_options(&mut *args.cast());
                None
            }
            "first_arguments" => {
                first_arguments(&mut *execute);
                None
            }
            // All devices use the callbacks of the first one.
            "callbacks_of_first_device" => {
                let options = &*(*execute).options;
                for device in 1..(*execute).num_devices {
                    options.send_callbacks.add(device).write(options.send_callbacks.read());
                    options.recv_callbacks.add(device).write(options.recv_callbacks.read());
                }
                None
            }
            _ => None,
        }
    }
}

/// Passes a copy of the arguments of the first device, and returns the copy. The host's lists stay as they are.
///
/// # Safety
///
/// The struct is one that the host passed, with at least one device.
pub(crate) unsafe fn own_arguments(
    execute: &mut PJRT_LoadedExecutable_Execute_Args,
) -> &'static mut [*mut PJRT_Buffer] {
    // SAFETY: guaranteed by the caller. A list of no arguments can be null.
    unsafe {
        let mut lists = std::slice::from_raw_parts(execute.argument_lists, execute.num_devices).to_vec();
        let arguments = match execute.num_args {
            0 => &mut [],
            len => Vec::leak(std::slice::from_raw_parts(lists[0], len).to_vec()),
        };
        lists[0] = arguments.as_ptr();
        execute.argument_lists = Vec::leak(lists).as_ptr();
        arguments
    }
}

/// Passes the compile options that the same program was first compiled with.
///
/// # Safety
///
/// The program and the options have as many bytes as the host says.
unsafe fn first_options(args: &mut PJRT_Client_Compile_Args) {
    static FIRST: LazyLock<Mutex<HashMap<Vec<u8>, &'static [u8]>>> = LazyLock::new(Mutex::default);
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: guaranteed by the caller.
    let (code, options) = unsafe {
        let program = &*args.program;
        let bytes = |start: *const u8, size: usize| std::slice::from_raw_parts(start, size).to_vec();
        let code = bytes(program.code.cast(), program.code_size);
        (code, bytes(args.compile_options.cast(), args.compile_options_size))
    };
    let options = *first.entry(code).or_insert_with(|| Vec::leak(options));
    args.compile_options = options.as_ptr().cast();
    args.compile_options_size = options.len();
}

/// Passes copies of the arguments that the same program was first executed with.
///
/// # Safety
///
/// The struct is one that the host passed.
unsafe fn first_arguments(execute: &mut PJRT_LoadedExecutable_Execute_Args) {
    static FIRST: LazyLock<Mutex<HashMap<usize, Vec<usize>>>> = LazyLock::new(Mutex::default);
    let copy = |array: *mut PJRT_Buffer| {
        let (memory, _) = inner!(PJRT_Buffer_Memory PJRT_Buffer_Memory_Args { buffer: array });
        let (copied, _) = inner!(PJRT_Buffer_CopyToMemory PJRT_Buffer_CopyToMemory_Args {
            buffer: array,
            dst_memory: memory.memory,
        });
        copied.dst_buffer.expose_provenance()
    };
    // SAFETY: the host passed as many arguments as it says, for one device.
    unsafe {
        let list = own_arguments(execute);
        let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = || list.iter().map(|array| copy(*array)).collect();
        let kept = first.entry(execute.executable.addr()).or_insert_with(copies);
        for (argument, array) in list.iter_mut().zip(kept) {
            *argument = ptr::with_exposed_provenance_mut(*array);
        }
    }
}

/// Transfers a piece after its event is complete, from the host's memory as it is then.
///
/// # Safety
///
/// The struct is one that the host passed. Hosts that use this example never free their memory, nor the manager in this time.
unsafe fn late_transfer(args: &mut PJRT_AsyncHostToDeviceTransferManager_TransferData_Args) {
    let (manager, data) = (args.transfer_manager.expose_provenance(), args.data.expose_provenance());
    let (buffer_index, offset, transfer_size, is_last_transfer) =
        (args.buffer_index, args.offset, args.transfer_size, args.is_last_transfer);
    args.done_with_h2d_transfer = event(true);
    std::thread::spawn(move || {
        std::thread::sleep(LATE);
        inner!(
            PJRT_AsyncHostToDeviceTransferManager_TransferData
                PJRT_AsyncHostToDeviceTransferManager_TransferData_Args {
                    transfer_manager: ptr::with_exposed_provenance_mut(manager),
                    buffer_index: buffer_index,
                    data: ptr::with_exposed_provenance(data),
                    offset: offset,
                    transfer_size: transfer_size,
                    is_last_transfer: is_last_transfer,
                }
        );
    });
}

/// Reads an array, and completes the event before the bytes are in the host's memory.
///
/// # Safety
///
/// The struct is one that the host passed. Hosts that use this example never free their memory.
unsafe fn early_event(args: *mut PJRT_Buffer_ToHostBuffer_Args) -> Option<*mut PJRT_Error> {
    // SAFETY: the destination has as many bytes as the host says, and stays valid.
    unsafe {
        let (destination, size) = ((*args).dst, (*args).dst_size);
        if destination.is_null() {
            return None;
        }
        let bytes = Vec::leak(vec![0_u8; size]).as_mut_ptr();
        (*args).dst = bytes.cast();
        let error = ((*INNER.0).PJRT_Buffer_ToHostBuffer.expect("a function of the good plugin"))(args);
        (*args).dst = destination;
        if !error.is_null() {
            return Some(error);
        }
        inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: (*args).event });
        let (from, to) = (bytes.expose_provenance(), destination.expose_provenance());
        std::thread::spawn(move || {
            std::thread::sleep(LATE);
            // SAFETY: both have this many bytes, and are never freed.
            ptr::copy_nonoverlapping(
                ptr::with_exposed_provenance::<u8>(from),
                ptr::with_exposed_provenance_mut::<u8>(to),
                size,
            );
        });
        Some(error)
    }
}

/// Performs an action after the call.
///
/// # Safety
///
/// The struct is that of the function that the action is meant for.
pub(crate) unsafe fn after(
    name: &str,
    words: &[String],
    args: *mut u8,
    error: *mut PJRT_Error,
) -> *mut PJRT_Error {
    let execute = args.cast::<PJRT_LoadedExecutable_Execute_Args>();
    // SAFETY: each action is used only with the function whose struct it accesses, and only with programs
    // that have the outputs and the devices that it names.
    unsafe {
        let outputs = |device: usize| (*execute).output_lists.add(device).read();
        match name {
            "swap_outputs" if error.is_null() => {
                let list = outputs(0);
                ptr::swap(list.add(number(words, 0)), list.add(number(words, 1)));
            }
            "swap_devices" if error.is_null() => {
                let device = |index| if words.is_empty() { index } else { number(words, index) };
                ptr::swap(outputs(device(0)), outputs(device(1)));
            }
            // Both outputs are one object.
            "output_twice" if error.is_null() => outputs(0).add(1).write(outputs(0).read()),
            "zeroed_output" if error.is_null() => read_as_zeros(outputs(0).add(number(words, 0)).read()),
            // The event of one device never completes.
            "lose_event" if error.is_null() && !(*execute).device_complete_events.is_null() => {
                (*execute).device_complete_events.add(number(words, 0)).write(event(false));
            }
            // The events complete without an error before the execution ends; those of all devices, or
            // of the one that a number names.
            "early_events" if error.is_null() && !(*execute).device_complete_events.is_null() => {
                let devices = match words {
                    [] => 0..(*execute).num_devices,
                    _ => number(words, 0)..number(words, 0) + 1,
                };
                for device in devices {
                    (*execute).device_complete_events.add(device).write(event(true));
                }
            }
            // A thread writes the bytes of a readback again after this number of milliseconds.
            "written_again" if error.is_null() => {
                let read = &*args.cast::<PJRT_Buffer_ToHostBuffer_Args>();
                inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: read.event });
                let bytes = std::slice::from_raw_parts(read.dst.cast::<u8>(), read.dst_size).to_vec();
                let (to, time) = (read.dst.expose_provenance(), number(words, 0) as u64);
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(time));
                    // SAFETY: hosts of this example never free the memory that they read to.
                    let to = ptr::with_exposed_provenance_mut::<u8>(to);
                    ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
                });
            }
            // The memory of the source is used for something else before the copy reads it.
            "free_source" if error.is_null() => {
                read_as_zeros((*args.cast::<PJRT_Buffer_CopyToDevice_Args>()).dst_buffer);
            }
            // The first output of each device hides the error of the execution.
            "mark_outputs" if error.is_null() => {
                let mark = if words[0] == "ready" { Mark::Ready } else { Mark::Readable };
                for device in 0..(*execute).num_devices {
                    marks().insert(outputs(device).read().addr(), mark);
                }
            }
            // The argument 0 of one device reports that it is not deleted.
            "hide_deleted" if error.is_null() => {
                let list = (*execute).argument_lists.add(number(words, 0)).read();
                marks().insert(list.read().addr(), Mark::NotDeleted);
            }
            "delete_argument_if_failed" if !error.is_null() => {
                let buffer = (*execute).argument_lists.read().add(number(words, 0)).read();
                inner!(PJRT_Buffer_Delete PJRT_Buffer_Delete_Args { buffer: buffer });
            }
            // An upload that fails keeps an array nevertheless.
            "leak_if_failed" if !error.is_null() => {
                let failed = &*args.cast::<PJRT_Client_BufferFromHostBuffer_Args>();
                inner!(PJRT_Client_BufferFromHostBuffer PJRT_Client_BufferFromHostBuffer_Args {
                    client: failed.client,
                    data: failed.data,
                    type_: failed.type_,
                    dims: failed.dims,
                    num_dims: failed.num_dims,
                    device: failed.device,
                });
            }
            // The object of a call that fails is unusable for this function afterwards.
            "fail_from_then_on" if !error.is_null() || !words.is_empty() => {
                marks().insert(args.cast::<usize>().add(2).read(), Mark::Failing);
            }
            _ => {}
        }
        error
    }
}
