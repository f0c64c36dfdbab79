//! Faults in values that describe an object: named values of the wrong type, and programs that end too early.

use std::ptr;
use std::slice;

use pjrt_sys::*;

use crate::table::{INNER, field, inner, own_error, place, read, state, write};

/// The fields of a list of named values: its start and its length.
const LISTS: [(&str, &str); 2] = [("properties", "num_properties"), ("attributes", "num_attributes")];

/// Returns a value of the type with this name.
fn value_of(type_: &str) -> (PJRT_NamedValue_Type, PJRT_NamedValue_Union, usize) {
    match type_ {
        "string" => (PJRT_NamedValue_kString, PJRT_NamedValue_Union { string_value: c"1".as_ptr() }, 1),
        "float" => (PJRT_NamedValue_kFloat, PJRT_NamedValue_Union { float_value: 1.0 }, 1),
        "nan" => (PJRT_NamedValue_kFloat, PJRT_NamedValue_Union { float_value: f32::NAN }, 1),
        _ => (PJRT_NamedValue_kInt64, PJRT_NamedValue_Union { int64_value: 1 }, 1),
    }
}

/// Performs an action after a successful call: `retype TYPE` changes the types of all named values, and
/// `attribute_of_type NAME TYPE` adds a named value. Returns `false` if there is no such action.
///
/// # Safety
///
/// The struct is that of the slot.
pub(crate) unsafe fn after(name: &str, words: &[String], slot: usize, args: *mut u8) -> bool {
    if !["retype", "attribute_of_type"].contains(&name) {
        return false;
    }
    // SAFETY: guaranteed by the caller. The list is the good plugin's.
    unsafe {
        let layout = crate::fault::args_of(slot);
        let found = LISTS.iter().find(|(start, _)| layout.field(start).is_some());
        let (start, len) = found.expect("a list of named values");
        let (start, len) = (field(slot, start), field(slot, len));
        let (Some(start_at), Some(len_at)) = (place(args, &start), place(args, &len)) else { return true };
        let (old, old_len) = (read(start_at, &start), read(len_at, &len));
        let known = state().changed.get(&old).copied();
        let new_len = old_len + i64::from(name == "attribute_of_type");
        let new = known.unwrap_or_else(|| {
            let old = ptr::with_exposed_provenance::<PJRT_NamedValue>(old as usize);
            let mut values =
                if old_len == 0 { Vec::new() } else { slice::from_raw_parts(old, old_len as usize).to_vec() };
            let (type_, u, value_size) = value_of(words.last().map_or("", String::as_str));
            if name == "retype" {
                for value in &mut values {
                    (value.type_, value.u, value.value_size) = (type_, u, value_size);
                }
            } else {
                // The name is leaked, and ends with a zero.
                let text = format!("{}\0", words[0]).leak();
                values.push(PJRT_NamedValue {
                    name: text.as_ptr().cast(),
                    name_size: text.len() - 1,
                    type_,
                    u,
                    value_size,
                    ..PJRT_NamedValue::zeroed()
                });
            }
            Vec::leak(values).as_ptr().expose_provenance() as i64
        });
        state().changed.insert(old, new);
        write(start_at, &start, new);
        write(len_at, &len, new_len);
    }
    true
}

/// Returns only the first half of a program.
///
/// # Safety
///
/// The struct is one that the host passed.
pub(crate) unsafe fn cut_program(
    args: *mut PJRT_Executable_OptimizedProgram_Args,
) -> Option<*mut PJRT_Error> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let (executable, program) = ((*args).executable, (*args).program);
        let mut whole = PJRT_Program { code: ptr::null_mut(), ..program.read() };
        let (_, error) = inner!(PJRT_Executable_OptimizedProgram PJRT_Executable_OptimizedProgram_Args {
            executable: executable,
            program: &raw mut whole,
        });
        if !error.is_null() {
            return Some(error);
        }
        let mut code = vec![0_u8; whole.code_size];
        whole.code = code.as_mut_ptr().cast();
        let (_, error) = inner!(PJRT_Executable_OptimizedProgram PJRT_Executable_OptimizedProgram_Args {
            executable: executable,
            program: &raw mut whole,
        });
        if !error.is_null() {
            return Some(error);
        }
        let half = code.len() / 2;
        if !(*program).code.is_null() {
            if (*program).code_size < half {
                return Some(own_error(3, "the memory is too small"));
            }
            ptr::copy_nonoverlapping(code.as_ptr(), (*program).code.cast(), half);
        }
        (*program).code_size = half;
        (*program).format = whole.format;
        (*program).format_size = whole.format_size;
        Some(ptr::null_mut())
    }
}
