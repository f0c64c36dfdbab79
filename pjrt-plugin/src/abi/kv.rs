//! The host's key-value store, reached through callbacks.

use std::ffi::{c_char, c_int};
use std::sync::{Arc, PoisonError, RwLock};
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
pub(crate) struct Callbacks {
    pub(crate) get: (PJRT_KeyValueGetCallback, HostPointer),
    pub(crate) try_get: (PJRT_KeyValueTryGetCallback, HostPointer),
    pub(crate) put: (PJRT_KeyValuePutCallback, HostPointer),
}

/// The host's store, through its callbacks. The host keeps the callbacks until it destroys the client, but the author's client may
/// live longer, because buffers and executables share it. The lock is held for reading during a call.
pub(crate) struct HostStore(RwLock<Option<Callbacks>>);

impl HostStore {
    pub(crate) fn new(callbacks: Callbacks) -> Self {
        Self(RwLock::new(Some(callbacks)))
    }

    /// Forgets the callbacks. Waits for the end of calls.
    pub(crate) fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn call<T>(&self, call: impl FnOnce(&Callbacks) -> Result<T>) -> Result<T> {
        let callbacks = self.0.read().unwrap_or_else(PoisonError::into_inner);
        callbacks.as_ref().map_or_else(
            || {
                Err(Error::failed_precondition(
                    "the key-value store was used after the host had destroyed the client",
                ))
            },
            call,
        )
    }
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

impl Callbacks {
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
        // SAFETY: the host allows calls of the callback from any thread until it destroys the client, which waits for this
        // call (`HostStore::close`). All inputs are initialized, and the returned error came from `callback_error`.
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

impl KeyValueBackend for Arc<HostStore> {
    fn get(&self, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.call(|callbacks| callbacks.get(key, timeout))
    }

    fn try_get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        self.call(|callbacks| callbacks.try_get(key))
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        self.call(|callbacks| callbacks.put(key, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_store_does_not_call_the_host() {
        let none = HostPointer(std::ptr::null_mut());
        let callbacks = Callbacks { get: (None, none), try_get: (None, none), put: (None, none) };
        let store = Arc::new(HostStore::new(callbacks));
        let codes = |store: &Arc<HostStore>| {
            let get = store.get("key", Duration::ZERO).unwrap_err();
            [get, store.try_get("key").unwrap_err(), store.put("key", b"").unwrap_err()]
                .map(|error| error.code())
        };
        assert_eq!(codes(&store), [ErrorCode::Unimplemented; 3]);
        store.close();
        assert_eq!(codes(&store), [ErrorCode::FailedPrecondition; 3]);
    }
}
