//! The host's key-value store, reached through callbacks.

use std::ffi::{c_char, c_int};
use std::time::Duration;

use pjrt_sys::{
    PJRT_KeyValueGetCallback, PJRT_KeyValueGetCallback_Args, PJRT_KeyValuePutCallback,
    PJRT_KeyValuePutCallback_Args, PJRT_KeyValueTryGetCallback, PJRT_KeyValueTryGetCallback_Args,
    SizedStruct,
};

use crate::abi::args::chars;
use crate::abi::error::{callback_error, error_from_raw};
use crate::core::allocate;
use crate::core::host_memory::HostPointer;
use crate::error::{Error, ErrorCode, Result};
use crate::kv_store::KeyValueBackend;

/// The callbacks of `PJRT_Client_Create`.
pub(crate) struct HostStore {
    pub(crate) get: (PJRT_KeyValueGetCallback, HostPointer),
    pub(crate) try_get: (PJRT_KeyValueTryGetCallback, HostPointer),
    pub(crate) put: (PJRT_KeyValuePutCallback, HostPointer),
}

/// Copies and frees a value that a callback returned.
///
/// # Safety
///
/// `value` is null or the start of `size` bytes, which `delete` frees.
unsafe fn take_value(
    value: *mut c_char,
    size: usize,
    delete: Option<unsafe extern "C" fn(*mut c_char)>,
) -> Result<Vec<u8>> {
    // SAFETY: this function's contract.
    let bytes =
        unsafe { super::args::borrowed_slice::<u8>(value.cast(), size, "value") }.and_then(allocate::copy);
    if let Some(delete) = delete {
        // SAFETY: the deleter is called once, with the value.
        unsafe { delete(value) };
    }
    bytes
}

impl KeyValueBackend for HostStore {
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let callback = self.get.0.ok_or_else(|| {
            Error::unimplemented("the host passed no kv_get_callback to PJRT_Client_Create")
        })?;
        let mut make_error = Some(callback_error as _);
        let mut args = PJRT_KeyValueGetCallback_Args {
            key: chars(key.as_bytes()),
            key_size: key.len(),
            timeout_in_ms: c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX),
            callback_error: &raw mut make_error,
            user_arg: self.get.1.get(),
            ..PJRT_KeyValueGetCallback_Args::zeroed()
        };
        // SAFETY: the host allows calls of the callback from any thread while the client lives, with its argument. All
        // inputs are initialized, and the returned error came from `callback_error`.
        unsafe { error_from_raw(callback(&raw mut args)) }?;
        // SAFETY: the callback has filled in the value and how to free it.
        unsafe { take_value(args.value, args.value_size, args.value_deleter_callback) }
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let callback = self.try_get.0.ok_or_else(|| {
            Error::unimplemented(
                "the host passed no kv_try_get_callback to PJRT_Client_Create: it is older than C API 0.61",
            )
        })?;
        let mut make_error = Some(callback_error as _);
        let mut args = PJRT_KeyValueTryGetCallback_Args {
            key: chars(key.as_bytes()),
            key_size: key.len(),
            callback_error: &raw mut make_error,
            user_arg: self.try_get.1.get(),
            ..PJRT_KeyValueTryGetCallback_Args::zeroed()
        };
        // SAFETY: as in `get`.
        match unsafe { error_from_raw(callback(&raw mut args)) } {
            Ok(()) => {
                // SAFETY: the callback has filled in the value and how to free it.
                unsafe { take_value(args.value, args.value_size, args.value_deleter_callback) }.map(Some)
            }
            Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        let callback = self.put.0.ok_or_else(|| {
            Error::unimplemented("the host passed no kv_put_callback to PJRT_Client_Create")
        })?;
        let mut make_error = Some(callback_error as _);
        let mut args = PJRT_KeyValuePutCallback_Args {
            key: chars(key.as_bytes()),
            key_size: key.len(),
            value: chars(value),
            value_size: value.len(),
            callback_error: &raw mut make_error,
            user_arg: self.put.1.get(),
            ..PJRT_KeyValuePutCallback_Args::zeroed()
        };
        // SAFETY: as in `get`.
        unsafe { error_from_raw(callback(&raw mut args)) }
    }
}
