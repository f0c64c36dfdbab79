//! Strings and arrays that a plugin or a host passes as a pointer and a length.

use std::ffi::{c_char, c_void};
use std::slice;

use super::error::{Error, Result};

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
/// The same as for [`given`].
///
/// # Safety
///
/// The same as for [`given`].
pub(crate) unsafe fn given_text(function: &'static str, start: *const c_char, len: usize) -> Result<String> {
    believed::<u8>(function, len)?;
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { text(start, len) })
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
