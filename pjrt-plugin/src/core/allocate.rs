//! Allocations whose sizes a host or a program determines. They return RESOURCE_EXHAUSTED instead of aborting the process.

#![allow(unsafe_code, reason = "allocates zeroed memory whose allocation may fail")]

use std::alloc::{Layout, alloc_zeroed};

use crate::core::error::{Error, Result};

/// Returns the error for an allocation that failed.
#[cold]
fn no_room(size: usize) -> Error {
    Error::resource_exhausted(format!("cannot allocate {size} bytes of host memory"))
}

/// Returns an empty vector with capacity for `size` bytes.
///
/// # Errors
///
/// Returns RESOURCE_EXHAUSTED if there is not enough memory.
pub(crate) fn with_capacity(size: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| no_room(size))?;
    Ok(bytes)
}

/// Copies bytes.
///
/// # Errors
///
/// Returns RESOURCE_EXHAUSTED if there is not enough memory.
pub(crate) fn copy(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = with_capacity(bytes.len())?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Returns `size` zeros. The system provides their pages on first access.
///
/// # Errors
///
/// Returns RESOURCE_EXHAUSTED if there is not enough memory.
pub(crate) fn zeros(size: usize) -> Result<Vec<u8>> {
    let layout = Layout::array::<u8>(size).map_err(|_| no_room(size))?;
    if size == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the size of the layout is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(no_room(size));
    }
    // SAFETY: the global allocator has allocated `size` bytes with the alignment of a byte, all of which are zero.
    Ok(unsafe { Vec::from_raw_parts(start, size, size) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::error::ErrorCode;

    #[test]
    fn bytes_that_no_memory_can_hold_are_an_error() {
        for size in [1 << 60, isize::MAX as usize, usize::MAX] {
            for outcome in [zeros(size), with_capacity(size)] {
                let error = outcome.unwrap_err();
                assert_eq!(error.code(), ErrorCode::ResourceExhausted);
                assert!(error.message().contains(&size.to_string()), "{error}");
            }
        }
    }

    #[test]
    fn there_are_as_many_bytes_as_asked_for() {
        assert_eq!(zeros(0).unwrap(), []);
        assert_eq!(zeros(3).unwrap(), [0; 3]);
        assert_eq!(copy(&[1, 2]).unwrap(), [1, 2]);
    }
}
