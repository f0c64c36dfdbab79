//! Strings and arrays that a plugin or a host passes as a pointer and a length.

use std::ffi::{c_char, c_void};
use std::slice;

use super::error::{Error, Result};
use super::passed::PAST_END;

/// The largest credible size of a string or list in bytes.
const MOST_BYTES: usize = 256 << 20;

/// Checks that the size of a list is credible.
///
/// # Errors
///
/// Returns INTERNAL if the list is larger than [`MOST_BYTES`].
pub(crate) fn believed<T>(function: &'static str, len: usize) -> Result<()> {
    let size = size_of::<T>();
    if len.checked_mul(size).is_some_and(|bytes| bytes <= MOST_BYTES) {
        return Ok(());
    }
    let what = if size == 1 {
        format!("it returned {len} bytes")
    } else {
        format!("it returned a list of {len} elements of {size} bytes")
    };
    Err(Error::broken(function, format!("it succeeded, but {what}; expected at most {MOST_BYTES} bytes")))
}

/// Reads an array that a function of a plugin returned. A null pointer is an empty array.
///
/// # Errors
///
/// Returns INTERNAL if the array's size is not credible.
///
/// # Safety
///
/// The same as for [`array`], if the size is credible.
pub(crate) unsafe fn given<'a, T>(function: &'static str, start: *const T, len: usize) -> Result<&'a [T]> {
    believed::<T>(function, len)?;
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { array(start, len) })
}

/// Reads a string, as [`given`] reads an array. Bytes that are not UTF-8 are replaced.
///
/// # Errors
///
/// The same as for [`given`]. Also returns INTERNAL if the string has a [flaw](flaw_of).
///
/// # Safety
///
/// The same as for [`given`].
pub(crate) unsafe fn given_text(function: &'static str, start: *const c_char, len: usize) -> Result<String> {
    believed::<u8>(function, len)?;
    // SAFETY: guaranteed by the caller.
    let text = unsafe { text(start, len) };
    match flaw_of(&text) {
        None => Ok(text),
        Some(flaw) => Err(Error::broken(function, format!("it succeeded, but it returned {flaw}"))),
    }
}

/// Reads a string that may have any bytes, such as a fingerprint.
///
/// # Errors
///
/// The same as for [`given`].
///
/// # Safety
///
/// The same as for [`given`].
pub(crate) unsafe fn given_bytes(function: &'static str, start: *const c_char, len: usize) -> Result<String> {
    believed::<u8>(function, len)?;
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { text(start, len) })
}

/// Describes a string whose size is wrong: it contains a zero byte, or bytes after the end of a string that the
/// host passed.
pub(crate) fn flaw_of(text: &str) -> Option<String> {
    let size = text.len();
    if text.contains(PAST_END) {
        return Some(format!(
            "the text {text:?}, which continues past the end of a text that the host passed: the plugin probably reads the \
             host's text up to a zero byte, and not up to its size"
        ));
    }
    match text.find('\0')? {
        at if at + 1 == size => Some(format!(
            "the text {text:?}, whose size of {size} bytes includes a terminating zero byte; the size of a text is that of its \
             characters"
        )),
        at => Some(format!(
            "the text {text:?}, whose byte {at} of {size} is zero: the size is probably that of a larger buffer"
        )),
    }
}

/// Reads a string that a plugin returned. Bytes that are not UTF-8 are replaced.
///
/// # Safety
///
/// The pointer is null, or valid for `len` bytes.
pub unsafe fn text(start: *const c_char, len: usize) -> String {
    // SAFETY: guaranteed by the caller.
    String::from_utf8_lossy(unsafe { bytes(start.cast(), len) }).into_owned()
}

/// Returns the bytes that a plugin returned.
///
/// # Safety
///
/// The pointer is null, or valid for `len` bytes, for as long as the caller uses them.
pub unsafe fn bytes<'a>(start: *const c_void, len: usize) -> &'a [u8] {
    // SAFETY: guaranteed by the caller.
    unsafe { array(start.cast::<u8>(), len) }
}

/// Returns an array that a plugin returned. A null pointer is an empty array.
///
/// # Safety
///
/// The pointer is null, or valid for `len` elements, for as long as the caller uses them.
pub unsafe fn array<'a, T>(start: *const T, len: usize) -> &'a [T] {
    if start.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { slice::from_raw_parts(start, len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_zero_bytes_and_bytes_past_the_end_are_refused() {
        let of = |text: &str| {
            // SAFETY: the size is that of the text.
            unsafe { given_text("PJRT_Memory_Kind", text.as_ptr().cast(), text.len()) }
                .map_err(|error| error.to_string())
        };
        assert_eq!(of("device"), Ok("device".to_owned()));
        assert_eq!(of(""), Ok(String::new()));
        assert!(of("device\0").unwrap_err().contains("7 bytes includes a terminating zero byte"));
        assert!(of("device\0\0").unwrap_err().contains("byte 6 of 8 is zero"));
        assert!(of(&format!("device{PAST_END}")).unwrap_err().contains("past the end of a text"));
    }

    #[test]
    fn sizes_that_nobody_has_written_are_refused_with_function_and_number() {
        let one = 7_u64;
        let of = |len| {
            // SAFETY: of the lengths that this test passes, `given` accepts only 1, the length of `one`.
            unsafe { given("PJRT_Client_Devices", &raw const one, len) }
        };
        assert_eq!(of(1), Ok(&[one][..]));
        for len in [MOST_BYTES, 1 << 40, usize::MAX] {
            let error = of(len).unwrap_err().to_string();
            assert!(error.starts_with("PJRT_Client_Devices: it succeeded, but it returned "), "{error}");
            assert!(error.contains(&format!("a list of {len} elements")), "{error}");
        }
        assert!(believed::<u8>("PJRT_Memory_Kind", MOST_BYTES).is_ok());
        assert!(believed::<u8>("PJRT_Memory_Kind", MOST_BYTES + 1).is_err());
    }
}
