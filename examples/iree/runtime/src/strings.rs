//! Strings of C.

use std::ffi::c_char;
use std::slice;

use eerie_sys::runtime as sys;

/// Returns a view of a string, which is valid as long as the string.
pub(crate) fn view(text: &str) -> sys::iree_string_view_t {
    sys::iree_string_view_t { data: text.as_ptr().cast(), size: text.len() }
}

/// Copies a string of IREE.
///
/// # Safety
///
/// If the length is not zero, `data` must be valid for reads of this many bytes.
pub(crate) unsafe fn text_of(data: *const c_char, length: usize) -> String {
    if length == 0 || data.is_null() {
        return String::new();
    }
    // SAFETY: The caller guarantees it.
    let bytes = unsafe { slice::from_raw_parts(data.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}
