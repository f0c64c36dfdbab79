//! Special actions of faults, which are identified by names.

use std::ffi::c_void;
use std::os::fd::IntoRawFd;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use pjrt_sys::*;

use crate::fault::args_of;
use crate::table::{
    FAULT, INNER, Mode, event, field, inner, on_ready, own_error, place, read, state, type_and_rank, write,
};
use crate::{
    bits, combined, executions, lent, linked, memory, recalled, returned, rewritten, threads, values,
};

/// Performs an action instead of the call. Returns `None` if the good plugin is to be called nevertheless.
///
/// # Safety
///
/// The struct is that of the fault's slot.
pub(crate) unsafe fn before(name: &str, words: &[String], args: *mut u8) -> Option<*mut PJRT_Error> {
    let slot = FAULT.as_ref().and_then(|fault| fault.slot)?;
    let execute = args.cast::<PJRT_LoadedExecutable_Execute_Args>();
    // SAFETY: each action is used only with the function whose struct it accesses.
    unsafe {
        match name {
            "rewrite" => {
                rewritten::rewrite(&words[0], args.cast());
                None
            }
            "cut_program" => values::cut_program(args.cast()),
            "crash" => {
                println!("{}", words.join(" "));
                std::process::abort()
            }
            "crash_at_exit" => {
                extern "C" fn crash() {
                    std::process::abort()
                }
                // SAFETY: the function takes nothing, returns nothing, and stays in memory.
                libc::atexit(crash);
                None
            }
            "hang_at_exit" => {
                extern "C" fn hang() {
                    loop {
                        std::thread::park();
                    }
                }
                // SAFETY: as above.
                libc::atexit(hang);
                None
            }
            "close_files" => {
                for file in libc::STDERR_FILENO + 1..64 {
                    // SAFETY: this fault closes files that others use.
                    libc::close(file);
                }
                if words.first().is_some_and(|word| word == "and_open_others") {
                    for _ in libc::STDERR_FILENO + 1..64 {
                        let other = std::fs::OpenOptions::new().write(true).open("/dev/null");
                        std::mem::forget(other);
                    }
                }
                None
            }
            "exit" => std::process::exit(0),
            "hang" => loop {
                std::thread::park();
            },
            "touch" => {
                let path = field(slot, &words[0]);
                let target = read(place(args, &path)?, &path) as usize;
                ptr::with_exposed_provenance::<u8>(target).read_volatile();
                None
            }
            "callback" => Some(on_ready(
                args.cast(),
                match words[0].as_str() {
                    "never" => Mode::Never,
                    "twice" => Mode::Twice,
                    "error_twice" => Mode::ErrorTwice,
                    _ => Mode::NoError,
                },
            )),
            "stale" if words.is_empty() => {
                let last = state().last_error;
                Some(ptr::with_exposed_provenance_mut(last))
            }
            "read_past" => {
                let options = (*execute).options.cast::<u8>();
                let end = PJRT_ExecuteOptions::STRUCT_SIZE;
                for byte in 0..end {
                    let _ = options.add(byte).read_volatile();
                }
                None
            }
            "give_other_argument" => {
                if (*execute).num_args == 2 {
                    let list = executions::own_arguments(&mut *execute);
                    list[1] = list[0];
                }
                None
            }
            "fail_pending" => {
                for index in 0..(*execute).num_args {
                    let buffer = (*execute).argument_lists.read().add(index).read();
                    let (ready, _) =
                        inner!(PJRT_Buffer_ReadyEvent PJRT_Buffer_ReadyEvent_Args { buffer: buffer });
                    let (is_ready, _) =
                        inner!(PJRT_Event_IsReady PJRT_Event_IsReady_Args { event: ready.event });
                    if !is_ready.is_ready {
                        return Some(own_error(9, "an argument is not ready"));
                    }
                }
                None
            }
            // Saves the bytes of this output, to restore them after the call.
            "unwritten" => {
                let (place, size) = whole(slot, args, &words[0])?;
                let bytes = std::slice::from_raw_parts(place, size).to_vec();
                state().kept.insert(args.addr(), bytes);
                None
            }
            // A plugin that copies what it should look at.
            "copy_memory" => {
                let args = &mut *args.cast::<PJRT_Client_CreateViewOfDeviceBuffer_Args>();
                let dims = (0..args.num_dims).map(|index| args.dims.add(index).read());
                let elements: i64 = dims.product();
                let element = pjrt_testing::host::ElementType(args.element_type.0);
                let size = elements as usize * element.byte_size();
                // As many bytes off a multiple of 64 as the host's memory.
                let copy = Vec::leak(vec![0_u8; size + 128]).as_mut_ptr();
                let copy = copy.add(copy.align_offset(64) + args.device_buffer_ptr.addr() % 64);
                ptr::copy_nonoverlapping(args.device_buffer_ptr.cast::<u8>(), copy, size);
                args.device_buffer_ptr = copy.cast();
                None
            }
            "swapped_callback" => {
                let view = &mut *args.cast::<PJRT_Client_CreateViewOfDeviceBuffer_Args>();
                if let Some(callback) = view.on_delete_callback {
                    let own = Box::new((callback, view.on_delete_callback_arg));
                    view.on_delete_callback = Some(swapped);
                    view.on_delete_callback_arg = Box::into_raw(own).cast();
                }
                None
            }
            "scribble_held" => {
                let buffer = (*args.cast::<PJRT_Buffer_Delete_Args>()).buffer;
                let (data, _) = inner!(
                    PJRT_Buffer_OpaqueDeviceMemoryDataPointer
                        PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args { buffer: buffer }
                );
                if !data.device_memory_ptr.is_null() {
                    data.device_memory_ptr.cast::<u8>().write_bytes(0x55, 4);
                }
                None
            }
            "mixed" | "with_lock_of" | "wait_for_data" | "flush_denormals" => {
                threads::before(name, words, slot, args)
            }
            "arguments_in_5_bits" | "locks_of_arguments" => combined::before(name, args),
            _ if recalled::before(name, words, slot, args) => None,
            _ => executions::before(name, words, args),
        }
    }
}

/// Returns the address and the size of a field of the host's struct, or `None` if the struct ends before the
/// field.
///
/// # Safety
///
/// The struct is that of the slot.
unsafe fn whole(slot: usize, args: *mut u8, name: &str) -> Option<(*mut u8, usize)> {
    let path = field(slot, name);
    // SAFETY: guaranteed by the caller.
    let place = unsafe { place(args, &path) }?;
    Some((place, path.field.end - path.field.offset))
}

/// Copies the current contents of the host's memory to the destination of a readback, if the fault says that
/// the plugin reads the host's memory this late.
///
/// # Safety
///
/// The struct is that of a successful call of `PJRT_Buffer_ToHostBuffer`. Hosts that use this example never
/// free their memory.
pub(crate) unsafe fn read_late(args: *mut PJRT_Buffer_ToHostBuffer_Args) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let data = state().late.get(&((*args).src.addr() as i64)).copied();
        if let Some(data) = data.filter(|_| !(*args).dst.is_null()) {
            inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: (*args).event });
            let data = ptr::with_exposed_provenance::<u8>(data as usize);
            ptr::copy_nonoverlapping(data, (*args).dst.cast(), (*args).dst_size);
        }
    }
}

/// Returns the changed copy of an array, if there is one.
fn changed(array: i64) -> Option<i64> {
    state().changed.get(&array).copied()
}

/// Performs an action after the call.
///
/// # Safety
///
/// The struct is that of the slot.
pub(crate) unsafe fn after(
    name: &str,
    words: &[String],
    slot: usize,
    args: *mut u8,
    error: *mut PJRT_Error,
) -> *mut PJRT_Error {
    let execute = args.cast::<PJRT_LoadedExecutable_Execute_Args>();
    // SAFETY: as above.
    unsafe {
        let is_done = error.is_null()
            && (memory::after(name, words, args)
                || lent::after(name, words, args)
                || combined::after(name, args)
                || (name.starts_with("end_") && linked::after(name, args))
                || bits::after(name, words, slot, args)
                || recalled::after(name, words, slot, args)
                || values::after(name, words, slot, args));
        if is_done {
            return error;
        }
        let get = |name: &str| {
            let path = field(slot, name);
            read(place(args, &path).expect("a field"), &path)
        };
        let put = |name: &str, value: i64| {
            let path = field(slot, name);
            write(place(args, &path).expect("a field"), &path, value);
        };
        // The struct of an older host may lack the field.
        let has = |name: &str| place(args, &field(slot, name)).is_some();
        let lacks = matches!(name, "fresh" | "repeat" | "other_first" | "attribute")
            && (words.iter().take(2).any(|word| args_of(slot).field(word).is_some() && !has(word))
                || name == "attribute" && !has("num_attributes"));
        if lacks {
            return error;
        }
        let copied = |array: i64, size: usize| {
            let bytes = std::slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(array as usize), size);
            let words =
                bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect::<Vec<_>>();
            Vec::leak(words).as_mut_ptr()
        };
        match name {
            "unwritten" => {
                let kept = state().kept.remove(&args.addr());
                if let (Some(bytes), Some((place, size))) = (kept, whole(slot, args, &words[0])) {
                    ptr::copy_nonoverlapping(bytes.as_ptr(), place, size);
                }
            }
            // All buffers share one array for their dimensions.
            "shared" if error.is_null() => {
                static SHARED: OnceLock<usize> = OnceLock::new();
                let shared =
                    *SHARED.get_or_init(|| Vec::leak(vec![0_u64; 64]).as_mut_ptr().expose_provenance());
                let (start, len) = (get(&words[0]), get(&words[1]) as usize);
                let shared = ptr::with_exposed_provenance_mut::<u64>(shared);
                ptr::copy_nonoverlapping(
                    ptr::with_exposed_provenance::<u64>(start as usize),
                    shared,
                    len.min(64),
                );
                put(&words[0], shared.expose_provenance() as i64);
            }
            // The host's memory is read when the array is read, not when it is transferred.
            "read_later" if error.is_null() => {
                state().late.insert(get("buffer"), get("data"));
            }
            // The last byte of transfers of certain sizes is changed.
            "last_byte" if error.is_null() && get("dst") != 0 => {
                let bound = |word: usize| words[word].parse::<i64>().expect("a size");
                let size = get("dst_size");
                if (bound(0)..bound(1)).contains(&size) {
                    let event = ptr::with_exposed_provenance_mut::<PJRT_Event>(get("event") as usize);
                    inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: event });
                    let last = ptr::with_exposed_provenance_mut::<u8>((get("dst") + size - 1) as usize);
                    last.write(!last.read());
                }
            }
            // A plugin that was built with a newer header writes a field that this struct lacks.
            "write_past" if args.cast::<usize>().read() > args_of(slot).struct_size => {
                args.add(args_of(slot).struct_size).write(1);
            }
            "fresh" if error.is_null() => {
                let size = get(&words[1]) as usize * words[2].parse::<usize>().expect("a size");
                put(&words[0], copied(get(&words[0]), size).expose_provenance() as i64);
            }
            // The first of several objects is replaced with one that does not exist.
            "other_first" if error.is_null() => {
                let copy = copied(get(&words[0]), get(&words[1]) as usize * 8);
                *copy += 8;
                put(&words[0], copy.expose_provenance() as i64);
            }
            "repeat" if error.is_null() => {
                let len = get(&words[1]) as usize;
                if let Some(known) = changed(get(&words[0])) {
                    put(&words[0], known);
                    put(&words[1], 2 * len as i64);
                    return error;
                }
                let size = len * size_of::<PJRT_NamedValue>();
                let twice = Vec::leak(vec![0_u64; size / 4]);
                let old = ptr::with_exposed_provenance::<u8>(get(&words[0]) as usize);
                let start = twice.as_mut_ptr().cast::<u8>();
                ptr::copy_nonoverlapping(old, start, size);
                ptr::copy_nonoverlapping(old, start.add(size), size);
                state().changed.insert(get(&words[0]), start.expose_provenance() as i64);
                put(&words[0], start.expose_provenance() as i64);
                put(&words[1], 2 * len as i64);
            }
            // The list of an attribute becomes this number three times.
            "attribute" if error.is_null() => {
                let len = get("num_attributes") as usize;
                if let Some(known) = changed(get("attributes")) {
                    put("attributes", known);
                    return error;
                }
                let copy =
                    copied(get("attributes"), len * size_of::<PJRT_NamedValue>()).cast::<PJRT_NamedValue>();
                for index in 0..len {
                    let value = &mut *copy.add(index);
                    let name = std::slice::from_raw_parts(value.name.cast::<u8>(), value.name_size);
                    if name == words[0].as_bytes() {
                        let list = Vec::leak(vec![words[1].parse::<i64>().expect("a number"); 3]);
                        value.u = PJRT_NamedValue_Union { int64_array_value: list.as_ptr() };
                    }
                }
                state().changed.insert(get("attributes"), copy.expose_provenance() as i64);
                put("attributes", copy.expose_provenance() as i64);
            }
            "add_float" if error.is_null() => {
                let value = PJRT_NamedValue {
                    name: c"bad".as_ptr(),
                    name_size: 3,
                    type_: PJRT_NamedValue_kFloat,
                    u: PJRT_NamedValue_Union { float_value: 1.0 },
                    value_size: 1,
                    ..PJRT_NamedValue::zeroed()
                };
                put("attributes", Box::into_raw(Box::new(value)).expose_provenance() as i64);
                put("num_attributes", 1);
            }
            // The new array has no elements but zeros, if it has this type and this number of dimensions.
            "zeroed" if error.is_null() => {
                let array = ptr::with_exposed_provenance_mut::<PJRT_Buffer>(get(&words[0]) as usize);
                let wanted = [1, 2].map(|word| words[word].parse::<i64>().expect("a number"));
                let (type_, rank) = type_and_rank(array);
                if [type_, rank] == wanted {
                    executions::read_as_zeros(array);
                }
            }
            // The next array of the transfer manager fails too.
            "fail_next_buffer" if error.is_null() => {
                let failed = &*args.cast::<PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args>();
                let (count, _) = inner!(
                    PJRT_AsyncHostToDeviceTransferManager_BufferCount
                        PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args {
                            transfer_manager: failed.transfer_manager,
                        }
                );
                inner!(
                    PJRT_AsyncHostToDeviceTransferManager_SetBufferError
                        PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args {
                            transfer_manager: failed.transfer_manager,
                            buffer_index: (failed.buffer_index + 1) % count.buffer_count.max(1) as i32,
                            error_code: failed.error_code,
                            error_message: failed.error_message,
                            error_message_size: failed.error_message_size,
                        }
                );
            }
            "shorten_layout" if error.is_null() => {
                let layout = &mut (*args.cast::<PJRT_Buffer_GetMemoryLayout_Args>()).layout;
                layout.u.tiled.minor_to_major_size -= 1;
            }
            "toggle" if error.is_null() => put(&words[0], 1 - get(&words[0])),
            "stale" if error.is_null() && !words.is_empty() => {
                let last = state().last_value;
                put(&words[0], last);
            }
            "scribble" if error.is_null() => {
                ptr::with_exposed_provenance_mut::<u8>(get(&words[0]) as usize).write_bytes(0x55, 4);
            }
            "overrun" if error.is_null() => {
                let end = get("dst") + get("dst_size");
                ptr::with_exposed_provenance_mut::<u8>(end as usize).write(0x55);
            }
            "delete_source" if error.is_null() => {
                let buffer = (*args.cast::<PJRT_Buffer_CopyToMemory_Args>()).buffer;
                inner!(PJRT_Buffer_Delete PJRT_Buffer_Delete_Args { buffer: buffer });
            }
            "delete_argument" if error.is_null() => {
                let index = words[0].parse::<usize>().expect("an index");
                let buffer = (*execute).argument_lists.read().add(index).read();
                inner!(PJRT_Buffer_Delete PJRT_Buffer_Delete_Args { buffer: buffer });
            }
            "view_of_argument" if error.is_null() => {
                let argument = (*execute).argument_lists.read().read();
                let output = (*execute).output_lists.read();
                inner!(PJRT_Buffer_Destroy PJRT_Buffer_Destroy_Args { buffer: output.read() });
                output.write(another_view(argument));
            }
            "view_of_source" if error.is_null() => {
                let copy = &mut *args.cast::<PJRT_Buffer_CopyToMemory_Args>();
                inner!(PJRT_Buffer_Destroy PJRT_Buffer_Destroy_Args { buffer: copy.dst_buffer });
                copy.dst_buffer = another_view(copy.buffer);
            }
            "output_is_argument" if error.is_null() => {
                (*execute).output_lists.read().write((*execute).argument_lists.read().read());
            }
            "lose_events" if error.is_null() && !(*execute).device_complete_events.is_null() => {
                (*execute).device_complete_events.write(event(false));
            }
            "leave_behind" if !error.is_null() => {
                (*execute).output_lists.read().write(ptr::dangling_mut());
            }
            "leak_thread" => drop(std::thread::spawn(|| {
                loop {
                    std::thread::park();
                }
            })),
            "slow" => std::thread::sleep(Duration::from_millis(words[0].parse().expect("milliseconds"))),
            "leak_file" => drop(std::fs::File::open("/dev/null").map(IntoRawFd::into_raw_fd)),
            "leak_memory" => drop(Vec::leak(vec![1_u8; 16 << 10])),
            "swallow_error" if error.is_null() => {
                let donate = args.cast::<PJRT_Buffer_DonateWithControlDependency_Args>();
                let callback = (*donate).dependency_ready_callback.map_or(0, |callback| callback as usize);
                state().dependency = callback;
                (*donate).dependency_ready_callback = Some(without_error);
            }
            "user_data" if error.is_null() => {
                let memory = (*args.cast::<PJRT_Device_DefaultMemory_Args>()).memory;
                forgetful(memory, &words[0]);
            }
            _ => {
                if error.is_null() {
                    returned::after(name, words, slot, args);
                }
                return executions::after(name, words, args, error);
            }
        }
        error
    }
}

/// Creates a second view of the memory of a view.
///
/// # Safety
///
/// The buffer belongs to the good plugin and is a view.
unsafe fn another_view(buffer: *mut PJRT_Buffer) -> *mut PJRT_Buffer {
    let (address, _) = inner!(PJRT_Buffer_UnsafePointer PJRT_Buffer_UnsafePointer_Args { buffer: buffer });
    let (dims, _) = inner!(PJRT_Buffer_Dimensions PJRT_Buffer_Dimensions_Args { buffer: buffer });
    let (type_, _) = inner!(PJRT_Buffer_ElementType PJRT_Buffer_ElementType_Args { buffer: buffer });
    let (device, _) = inner!(PJRT_Buffer_Device PJRT_Buffer_Device_Args { buffer: buffer });
    let (view, _) = inner!(
        PJRT_Client_CreateViewOfDeviceBuffer PJRT_Client_CreateViewOfDeviceBuffer_Args {
            client: ptr::with_exposed_provenance_mut(state().viewing),
            device_buffer_ptr: ptr::with_exposed_provenance_mut(address.buffer_pointer),
            dims: dims.dims,
            num_dims: dims.num_dims,
            element_type: type_.type_,
            device: device.device,
        }
    );
    view.buffer
}

/// The callback of a dependency, which ignores its error.
///
/// # Safety
///
/// The host calls this function as it would call the good plugin's.
unsafe extern "C" fn without_error(args: *mut PJRT_Buffer_DonateWithControlDependency_Callback_Args) {
    type Callback = unsafe extern "C" fn(*mut PJRT_Buffer_DonateWithControlDependency_Callback_Args);
    let callback = state().dependency;
    // SAFETY: the number is the address of the function that the good plugin returned.
    unsafe {
        (*args).error_code = PJRT_Error_Code_OK;
        std::mem::transmute::<usize, Callback>(callback)(args);
    }
}

/// The function and the argument of a host's callback for a view.
type ViewCallback = (unsafe extern "C" fn(*mut c_void, *mut c_void), *mut c_void);

/// Calls a view's callback with its arguments in the wrong order.
///
/// # Safety
///
/// The good plugin calls this function once, with the box of `swapped_callback`.
unsafe extern "C" fn swapped(memory: *mut c_void, own: *mut c_void) {
    // SAFETY: the argument is the box, and the good plugin calls this function once.
    let (callback, argument) = *unsafe { Box::from_raw(own.cast::<ViewCallback>()) };
    // SAFETY: this is the host's callback.
    unsafe { callback(argument, memory) };
}

static MEMORY_TABLE: OnceLock<usize> = OnceLock::new();

/// Replaces a memory's functions with functions that do not keep user data, or that never destroy it.
///
/// # Safety
///
/// The memory is the good plugin's.
unsafe fn forgetful(memory: *mut PJRT_Memory, how: &str) {
    unsafe extern "C" fn forget(
        _: *mut PJRT_Memory,
        _: *const c_void,
        _: *mut c_void,
        _: Option<unsafe extern "C" fn(*mut c_void)>,
    ) {
    }
    unsafe extern "C" fn leak(
        memory: *mut PJRT_Memory,
        key: *const c_void,
        data: *mut c_void,
        _: Option<unsafe extern "C" fn(*mut c_void)>,
    ) {
        let table = *MEMORY_TABLE.get().expect("the good plugin's functions");
        // SAFETY: these are the good plugin's functions.
        unsafe {
            let table = ptr::with_exposed_provenance::<PJRT_Memory_FunctionTable>(table);
            (*table).set_user_data.expect("a function")(memory, key, data, None);
        }
    }
    // SAFETY: a memory begins with a pointer to its functions, which live as long as the process.
    unsafe {
        let good = (*memory).vtable;
        let known = *MEMORY_TABLE.get_or_init(|| good.expose_provenance());
        if good.is_null() || good.addr() != known {
            return;
        }
        let set_user_data = if how == "forget" { forget } else { leak };
        let table = PJRT_Memory_FunctionTable { set_user_data: Some(set_user_data), ..good.read() };
        (*memory).vtable = Box::into_raw(Box::new(table));
    }
}
