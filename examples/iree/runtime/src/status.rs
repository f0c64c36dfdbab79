//! Errors, which IREE calls statuses.

use std::fmt;
use std::ptr;

use eerie_sys::runtime as sys;

use crate::allocator::allocator;
use crate::strings::text_of;

/// The result of a function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of IREE: its code and its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    code: Code,
    message: String,
}

impl Error {
    /// Creates an error.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// Returns the message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

macro_rules! codes {
    ($($name:ident $number:literal $meaning:literal;)*) => {
        /// The code of an error (`iree_status_code_t`). The first sixteen have the numbers of `absl::StatusCode`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = $meaning] $name = $number,)*
        }

        impl Code {
            fn from_number(number: usize) -> Self {
                match number {
                    $($number => Self::$name,)*
                    _ => Self::Unknown,
                }
            }
        }
    };
}

codes! {
    Cancelled 1 "The operation was cancelled.";
    Unknown 2 "The error has no code.";
    InvalidArgument 3 "An argument is invalid.";
    DeadlineExceeded 4 "A time limit was exceeded.";
    NotFound 5 "Something that was requested does not exist, such as a driver or a device.";
    AlreadyExists 6 "Something that should be created exists.";
    PermissionDenied 7 "The caller has no permission.";
    ResourceExhausted 8 "There is not enough memory.";
    FailedPrecondition 9 "The state does not permit the operation.";
    Aborted 10 "The operation was aborted.";
    OutOfRange 11 "A value is out of its range.";
    Unimplemented 12 "The operation is not implemented.";
    Internal 13 "An error of IREE itself.";
    Unavailable 14 "Something is not available now, such as a device that was lost.";
    DataLoss 15 "Data is lost or corrupt.";
    Unauthenticated 16 "The caller is not authenticated.";
    Deferred 17 "The operation was deferred.";
    Incompatible 18 "Code and runtime, or code and device, do not fit together.";
}

/// Converts a status to a result, and frees it.
///
/// # Safety
///
/// A function of IREE must have returned the status, and the caller must not use it any more.
pub(crate) unsafe fn check(status: sys::iree_status_t) -> Result<()> {
    if status.is_null() {
        return Ok(());
    }
    // The low bits of the pointer are the code; the others are the address of the message, if there is one.
    let code = Code::from_number(status.addr() & sys::iree_status_code_e_IREE_STATUS_CODE_MASK as usize);
    // SAFETY: The caller owns the status, which is valid.
    let message = unsafe { message_of(status) };
    // SAFETY: As above; this is its last use.
    unsafe { sys::iree_status_free(status) };
    Err(Error { code, message })
}

/// Returns the message of a status.
///
/// # Safety
///
/// The status must be valid.
unsafe fn message_of(status: sys::iree_status_t) -> String {
    let (mut buffer, mut length) = (ptr::null_mut(), 0);
    let allocator = allocator();
    // SAFETY: The status is valid; the pointers are valid for writes.
    if !unsafe { sys::iree_status_to_string(status, &allocator, &mut buffer, &mut length) } {
        return "IREE reports an error without a message".to_owned();
    }
    // SAFETY: The function has allocated and written `length` bytes.
    let text = unsafe { text_of(buffer, length) };
    // SAFETY: The buffer belongs to the caller, and was allocated with this allocator.
    unsafe { sys::iree_allocator_free(allocator, buffer.cast()) };
    shortened(&text)
}

/// Removes the stack of annotations after the first one, and the position in IREE's sources before the message.
fn shortened(text: &str) -> String {
    let first = text.split("\n").next().unwrap_or_default();
    let first = first.split("; while ").next().unwrap_or(first);
    match first.split_once(": ") {
        Some((position, rest)) if position.contains(".c:") || position.contains("<vm>:") => rest.to_owned(),
        _ => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_keeps_its_code_and_its_message() {
        let message = "no memory for 8 bytes";
        let view = sys::iree_string_view_t { data: message.as_ptr().cast(), size: message.len() };
        // SAFETY: The file is a string with a terminator, and the view is valid; the status is new.
        let error = unsafe {
            let status = sys::iree_status_allocate(
                sys::iree_status_code_e_IREE_STATUS_RESOURCE_EXHAUSTED,
                c"runtime/src/file.c".as_ptr(),
                7,
                view,
            );
            check(status)
        };
        let error = error.unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert_eq!(error.message(), "RESOURCE_EXHAUSTED; no memory for 8 bytes");
    }

    #[test]
    fn ok_is_no_error() {
        // SAFETY: Null is the status OK.
        assert_eq!(unsafe { check(ptr::null_mut()) }, Ok(()));
    }
}
