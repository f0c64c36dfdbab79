//! Error objects (`PJRT_Error`), from which errors are read.

use std::ffi::{c_char, c_void};

use pjrt_sys::*;

use super::earlier;
use super::error::{Code, Error, Result};
use super::plugin::{Plugin, SlotState};
use super::slices::{bytes, flaw_of, text};

/// Reads an error of the plugin and destroys it. A null pointer means success.
pub(super) fn take(plugin: Plugin, slot: usize, error: *mut PJRT_Error) -> Option<Error> {
    take_of(plugin, SLOTS[slot].name, error)
}

/// The same as [`take`], for a function with this name.
pub(super) fn take_of(plugin: Plugin, function: &'static str, error: *mut PJRT_Error) -> Option<Error> {
    if error.is_null() {
        return None;
    }
    let read = read(plugin, function, error);
    earlier::note(&read);
    let mut destroy = PJRT_Error_Destroy_Args { error, ..PJRT_Error_Destroy_Args::zeroed() };
    // If the table lacks the function, the error leaks; the conformance kit reports that.
    let _ = plugin.call_raw(&mut destroy);
    Some(read)
}

/// Reads an error without destroying it.
pub(super) fn read(plugin: Plugin, function: &'static str, error: *mut PJRT_Error) -> Error {
    let mut message = PJRT_Error_Message_Args { error, ..PJRT_Error_Message_Args::zeroed() };
    let mut code = PJRT_Error_GetCode_Args { error, ..PJRT_Error_GetCode_Args::zeroed() };
    let _ = plugin.call_raw(&mut message);
    let code = match plugin.call_raw(&mut code) {
        Ok(nested) if nested.is_null() => Code(code.code.0),
        _ => Code::UNKNOWN,
    };
    // SAFETY: the plugin returned the pointer and the length of a string that lives as long as the error.
    let message = unsafe { message_of(message.message, message.message_size) };
    let message_is_broken = message.is_err();
    let message = message.unwrap_or_else(|what| format!("PJRT_Error_Message returned {what}"));
    Error {
        function,
        code,
        message,
        message_is_broken,
        is_of_success: false,
        payloads: payloads(plugin, error),
    }
}

/// The largest credible size of a message in bytes.
const MAX_MESSAGE: usize = 16 << 20;

/// Returns a message of the plugin, or the reason why it is invalid.
///
/// # Safety
///
/// The pointer is null, or valid for `size` bytes if `size` is at most [`MAX_MESSAGE`].
unsafe fn message_of(start: *const c_char, size: usize) -> std::result::Result<String, String> {
    if start.is_null() && size > 0 {
        return Err(format!("a message of {size} bytes at a null pointer"));
    }
    if size > MAX_MESSAGE {
        return Err(format!("a message of {size} bytes; expected at most {MAX_MESSAGE}"));
    }
    // SAFETY: guaranteed by the caller.
    let message = unsafe { text(start, size) };
    flaw_of(&message).map_or(Ok(message), Err)
}

fn payloads(plugin: Plugin, error: *mut PJRT_Error) -> Vec<(String, Vec<u8>)> {
    let mut payloads: Vec<(String, Vec<u8>)> = Vec::new();
    let mut each = PJRT_Error_ForEachPayload_Args {
        error,
        visitor: Some(visit),
        user_arg: (&raw mut payloads).cast(),
        ..PJRT_Error_ForEachPayload_Args::zeroed()
    };
    const FOR_EACH_PAYLOAD: usize = 132;
    if plugin.slot(FOR_EACH_PAYLOAD) == SlotState::Function {
        let _ = plugin.call_raw(&mut each);
    }
    payloads
}

/// Returns `true` if the query for an error's payloads fails.
pub(crate) fn payloads_fail(plugin: Plugin, error: *mut PJRT_Error) -> Result<bool> {
    let mut ignored: Vec<(String, Vec<u8>)> = Vec::new();
    let mut each = PJRT_Error_ForEachPayload_Args {
        error,
        visitor: Some(visit),
        user_arg: (&raw mut ignored).cast(),
        ..PJRT_Error_ForEachPayload_Args::zeroed()
    };
    Ok(!plugin.call_raw(&mut each)?.is_null())
}

/// Collects one payload.
///
/// # Safety
///
/// A plugin calls this function within `PJRT_Error_ForEachPayload`, with the argument that `payloads` passed.
unsafe extern "C" fn visit(
    key: *const c_char,
    key_size: usize,
    value: *const c_char,
    value_size: usize,
    user_arg: *mut c_void,
) {
    // SAFETY: the argument is the vector in `payloads`, which is blocked during this call. The plugin passes
    // valid pointers and lengths.
    unsafe {
        let payloads = &mut *user_arg.cast::<Vec<(String, Vec<u8>)>>();
        let key = message_of(key, key_size).unwrap_or_else(|what| what);
        let value = if value_size > MAX_MESSAGE { &[] } else { bytes(value.cast(), value_size) };
        payloads.push((key, value.to_vec()));
    }
}

/// Returns the code and the message of an error according to `PJRT_Error_FunctionTable`, which the first word
/// of the error points to. If the message is invalid, returns the reason instead.
pub(crate) fn through_own_table(error: *mut PJRT_Error) -> Option<(Code, String)> {
    // SAFETY: the error is the plugin's and not destroyed. From version 0.105, its first word is null or
    // points to a table.
    unsafe {
        let table = (*error).vtable;
        if table.is_null() {
            return None;
        }
        let (get_code, get_message) = ((*table).get_code?, (*table).message?);
        let (mut start, mut size) = (std::ptr::null(), 0);
        get_message(error, &raw mut start, &raw mut size);
        Some((Code(get_code(error).0), message_of(start, size).unwrap_or_else(|what| what)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_message_is_read() {
        let of = |start, size| {
            // SAFETY: `message_of` reads only sizes that a text can have.
            unsafe { message_of(start, size) }
        };
        assert_eq!(of(c"text".as_ptr(), 4), Ok("text".to_owned()));
        assert_eq!(of(std::ptr::null(), 0), Ok(String::new()));
        assert!(of(std::ptr::null(), 4).unwrap_err().contains("null pointer"));
        for size in [MAX_MESSAGE + 1, usize::MAX] {
            assert!(of(c"text".as_ptr(), size).unwrap_err().contains(&format!("{size} bytes")));
        }
    }
}
