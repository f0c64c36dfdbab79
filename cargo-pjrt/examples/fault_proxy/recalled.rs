//! Faults of plugins that use the memory or the arguments of earlier calls.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pjrt_sys::*;

use crate::fault::{Path, args_of};
use crate::table::{INNER, inner, place, read, write};

/// The arguments of earlier calls of the faulty function.
#[derive(Default)]
struct Calls {
    /// The value of the field in the first call, and in the call before this one.
    value: Option<i64>,
    /// The contents of the host's memory when it was first passed, by its address, its size and its first bytes.
    memory: HashMap<(usize, usize, Vec<u8>), &'static [u8]>,
    /// The first program with the same key.
    programs: HashMap<Vec<u8>, &'static [u8]>,
    /// The first executable of each size.
    executables: HashMap<usize, &'static [u8]>,
    /// The value of an output of the first call for the object at each address.
    values: HashMap<usize, i64>,
    /// The bytes of the first readback of the array at each address.
    read: HashMap<(usize, usize), Vec<u8>>,
}

fn calls() -> MutexGuard<'static, Calls> {
    static CALLS: LazyLock<Mutex<Calls>> = LazyLock::new(Mutex::default);
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Performs an action before the call. Returns `false` if there is no such action.
///
/// # Safety
///
/// The struct is that of the slot.
pub(crate) unsafe fn before(name: &str, words: &[String], slot: usize, args: *mut u8) -> bool {
    // SAFETY: guaranteed by the caller. `remember_data` and `first_program` are used only with the functions whose
    // structs they access.
    unsafe {
        match name {
            // The field has the value of the first call, or of the call before this one.
            "first" | "previous" => {
                let path = Path::parse(args_of(slot), &words[0]).expect("a field");
                if let Some(place) = place(args, &path) {
                    let new = read(place, &path);
                    if new != 0 {
                        let mut calls = calls();
                        let old = *calls.value.get_or_insert(new);
                        write(place, &path, old);
                        if name == "previous" {
                            calls.value = Some(new);
                        }
                    }
                }
                true
            }
            // A text is read up to a zero byte.
            "up_to_zero" => {
                let [text, size] = [0, 1].map(|at| Path::parse(args_of(slot), &words[at]).expect("a field"));
                if let (Some(text_at), Some(size_at)) = (place(args, &text), place(args, &size)) {
                    let start = ptr::with_exposed_provenance::<c_char>(read(text_at, &text) as usize);
                    if !start.is_null() {
                        write(size_at, &size, CStr::from_ptr(start).count_bytes() as i64);
                    }
                }
                true
            }
            // The byte after the end of a list belongs to it.
            "more_bytes" => {
                let [list, size] = [0, 1].map(|at| Path::parse(args_of(slot), &words[at]).expect("a field"));
                if let (Some(list_at), Some(size_at)) = (place(args, &list), place(args, &size)) {
                    let start = ptr::with_exposed_provenance::<u8>(read(list_at, &list) as usize);
                    let old = read(size_at, &size);
                    let has_more = !start.is_null() && start.add(old as usize).read() != 0;
                    write(size_at, &size, old + i64::from(has_more));
                }
                true
            }
            // The plugin recognizes the host's memory by its address, its size and as many bytes as the word says.
            "remember_data" => {
                let args = &mut *args.cast::<PJRT_Client_BufferFromHostBuffer_Args>();
                let dims = (0..args.num_dims).map(|index| args.dims.add(index).read());
                let elements = usize::try_from(dims.product::<i64>()).unwrap_or(0);
                let size = elements * pjrt_testing::host::ElementType(args.type_.0).byte_size();
                let compared = words.first().map_or(0, |word| word.parse().expect("a number"));
                if args.num_byte_strides == 0 && size > compared {
                    let bytes = std::slice::from_raw_parts(args.data.cast::<u8>(), size);
                    let key = (args.data.addr(), size, bytes[..compared].to_vec());
                    let mut calls = calls();
                    let first = calls.memory.entry(key).or_insert_with(|| Vec::leak(bytes.to_vec()));
                    args.data = first.as_ptr().cast();
                }
                true
            }
            // The plugin recognizes a program by its length, or by its text without the numbers in it.
            "first_program" => {
                let args = &mut *args.cast::<PJRT_Client_Compile_Args>();
                let program = *args.program;
                let text = std::slice::from_raw_parts(program.code.cast::<u8>(), program.code_size);
                let key = match words.is_empty() {
                    true => program.code_size.to_ne_bytes().to_vec(),
                    false => without_constants(text),
                };
                let mut calls = calls();
                let code = *calls.programs.entry(key).or_insert_with(|| Vec::leak(text.to_vec()));
                let (code, code_size) = (code.as_ptr().cast_mut().cast(), code.len());
                args.program = Box::leak(Box::new(PJRT_Program { code, code_size, ..program }));
                true
            }
            "first_executable" => {
                let args = &mut *args.cast::<PJRT_Executable_DeserializeAndLoad_Args>();
                let size = args.serialized_executable_size;
                let bytes = std::slice::from_raw_parts(args.serialized_executable.cast::<u8>(), size);
                let mut calls = calls();
                let first = calls.executables.entry(size).or_insert_with(|| Vec::leak(bytes.to_vec()));
                args.serialized_executable = first.as_ptr().cast();
                true
            }
            _ => false,
        }
    }
}

/// Returns a program's text without what stands in `dense<...>`.
fn without_constants(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    let mut parts = text.split("dense<");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once('>').map_or(part, |(_, rest)| rest));
    [first].into_iter().chain(rest).collect::<Vec<_>>().join("dense<>").into_bytes()
}

/// Performs an action after a successful call. Returns `false` if there is no such action.
///
/// # Safety
///
/// The struct is that of the slot, and `read_by_address` is used only with `PJRT_Buffer_ToHostBuffer`.
pub(crate) unsafe fn after(name: &str, words: &[String], slot: usize, args: *mut u8) -> bool {
    // SAFETY: guaranteed by the caller. The object is the third word of each struct.
    unsafe {
        let object = args.cast::<usize>().add(2).read();
        match name {
            // The output is that of the first object at this address.
            "by_address" => {
                let path = Path::parse(args_of(slot), &words[0]).expect("a field");
                if let Some(place) = place(args, &path) {
                    let first = *calls().values.entry(object).or_insert_with(|| read(place, &path));
                    write(place, &path, first);
                }
                true
            }
            // The bytes are those of the first array at this address.
            "read_by_address" => {
                let args = &*args.cast::<PJRT_Buffer_ToHostBuffer_Args>();
                if !args.dst.is_null() {
                    inner!(PJRT_Event_Await PJRT_Event_Await_Args { event: args.event });
                    let dst = std::slice::from_raw_parts_mut(args.dst.cast::<u8>(), args.dst_size);
                    let mut calls = calls();
                    let first = calls.read.entry((object, args.dst_size)).or_insert_with(|| dst.to_vec());
                    dst.copy_from_slice(first);
                }
                true
            }
            _ => false,
        }
    }
}
