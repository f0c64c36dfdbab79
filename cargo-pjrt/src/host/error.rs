//! Errors of plugins.

use std::ffi::{c_char, c_void};
use std::fmt;

use pjrt_sys::*;

use super::plugin::{Plugin, SlotState};
use super::values::{bytes, text};

/// An error code of the interface: absl's, 1 to 16.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident $number:literal $doc:literal;)*) => {
        impl Code {
            $(#[doc = $doc] pub const $name: Self = Self($number);)*

            /// The name, or `None` if there is no such code.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    OK 0 "No error. Not a code of a `PJRT_Error`.";
    CANCELLED 1 "Somebody took back what they asked for.";
    UNKNOWN 2 "Nobody knows why.";
    INVALID_ARGUMENT 3 "What the caller passed is wrong.";
    DEADLINE_EXCEEDED 4 "It took too long.";
    NOT_FOUND 5 "There is no such thing.";
    ALREADY_EXISTS 6 "There is such a thing already.";
    PERMISSION_DENIED 7 "The caller may not.";
    RESOURCE_EXHAUSTED 8 "Out of memory, or of something else.";
    FAILED_PRECONDITION 9 "Not in this state.";
    ABORTED 10 "Given up.";
    OUT_OF_RANGE 11 "Past an end.";
    UNIMPLEMENTED 12 "The plugin has no such thing.";
    INTERNAL 13 "A bug.";
    UNAVAILABLE 14 "Not now.";
    DATA_LOSS 15 "Data is gone.";
    UNAUTHENTICATED 16 "The caller is nobody.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            // The interface has an enumeration of C, whose numbers have a sign.
            None => write!(f, "code {}", self.0.cast_signed()),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a function of the interface failed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The function that was called, such as `PJRT_Client_Compile`.
    pub function: &'static str,
    /// Its code; UNIMPLEMENTED where the table has no such function.
    pub code: Code,
    /// The plugin's message.
    pub message: String,
    /// Whether the plugin gave something that cannot be a message; `message` then says what.
    pub message_is_broken: bool,
    /// Its payloads.
    pub payloads: Vec<(String, Vec<u8>)>,
}

/// A result of a function of the interface.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The table has no such function.
    pub(crate) fn missing(function: &'static str) -> Self {
        let message = "the table has no such function".to_owned();
        Self { code: Code::UNIMPLEMENTED, ..Self::broken(function, message) }
    }

    /// The plugin answered with something that the interface does not allow.
    pub(crate) fn broken(function: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { function, code: Code::INTERNAL, message, message_is_broken: false, payloads: Vec::new() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.function, self.code, self.message)
    }
}

impl std::error::Error for Error {}

/// Reads an error that the plugin gave, and destroys it. Null is no error.
pub(crate) fn take(plugin: Plugin, slot: usize, error: *mut PJRT_Error) -> Option<Error> {
    take_of(plugin, SLOTS[slot].name, error)
}

/// As [`take`], of a function with this name.
pub(super) fn take_of(plugin: Plugin, function: &'static str, error: *mut PJRT_Error) -> Option<Error> {
    if error.is_null() {
        return None;
    }
    let read = read(plugin, function, error);
    let mut destroy = PJRT_Error_Destroy_Args { error, ..PJRT_Error_Destroy_Args::zeroed() };
    // Without the function the error leaks; the kit reports that.
    let _ = plugin.call_raw(&mut destroy);
    Some(read)
}

/// Reads an error without destroying it.
pub(crate) fn read(plugin: Plugin, function: &'static str, error: *mut PJRT_Error) -> Error {
    let mut message = PJRT_Error_Message_Args { error, ..PJRT_Error_Message_Args::zeroed() };
    let mut code = PJRT_Error_GetCode_Args { error, ..PJRT_Error_GetCode_Args::zeroed() };
    let _ = plugin.call_raw(&mut message);
    let code = match plugin.call_raw(&mut code) {
        Ok(nested) if nested.is_null() => Code(code.code.0),
        _ => Code::UNKNOWN,
    };
    // SAFETY: the plugin gave pointer and length of a string that lives as long as the error.
    let message = unsafe { message_of(message.message, message.message_size) };
    let message_is_broken = message.is_err();
    let message = message.unwrap_or_else(|what| format!("PJRT_Error_Message gave {what}"));
    Error { function, code, message, message_is_broken, payloads: payloads(plugin, error) }
}

/// The longest message that is believed: others are sizes that nobody has written.
const MAX_MESSAGE: usize = 16 << 20;

/// A message of a plugin, or what it is instead.
///
/// # Safety
///
/// The pointer is null, or to `size` bytes if they are as few as a message has.
unsafe fn message_of(start: *const c_char, size: usize) -> std::result::Result<String, String> {
    if start.is_null() && size > 0 {
        return Err(format!("a message of {size} bytes at a null pointer"));
    }
    if size > MAX_MESSAGE {
        return Err(format!("a message of {size} bytes; more than {MAX_MESSAGE} are not believed"));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { text(start, size) })
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

/// Whether asking for the payloads of an error fails.
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
/// Called by a plugin inside of `PJRT_Error_ForEachPayload` with the argument that `payloads` gave it.
unsafe extern "C" fn visit(
    key: *const c_char,
    key_size: usize,
    value: *const c_char,
    value_size: usize,
    user_arg: *mut c_void,
) {
    // SAFETY: the argument is the vector in `payloads`, which waits for this; the plugin gives pointers and lengths.
    unsafe {
        let payloads = &mut *user_arg.cast::<Vec<(String, Vec<u8>)>>();
        let key = message_of(key, key_size).unwrap_or_else(|what| what);
        let value = if value_size > MAX_MESSAGE { &[] } else { bytes(value.cast(), value_size) };
        payloads.push((key, value.to_vec()));
    }
}

/// What `PJRT_Error_FunctionTable`, the first word of an error, says about the same error; in place of a message, what it gives
/// that cannot be one.
pub(crate) fn through_own_table(error: *mut PJRT_Error) -> Option<(Code, String)> {
    // SAFETY: the error is the plugin's and lives; from 0.105 its first word is a table or null.
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
    fn codes_and_types_are_shown_by_name_and_unknown_ones_by_number() {
        use super::super::values::ElementType;
        assert_eq!(format!("{:?} {}", Code::INTERNAL, Code(u32::MAX)), "INTERNAL code -1");
        assert_eq!(format!("{:?} {}", ElementType::F32, ElementType(77)), "f32 unknown type 77");
    }

    #[test]
    fn only_what_can_be_a_message_is_read() {
        let of = |start, size| {
            // SAFETY: the sizes that are believed are those of the text.
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
