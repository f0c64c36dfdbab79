//! `PJRT_Error`, and the table of functions in an error's first word.
//!
//! `PJRT_Error_Destroy`, `PJRT_Error_Message`, `PJRT_Error_GetCode`, `PJRT_Error_ForEachPayload`.

use std::ffi::{c_char, c_void};
use std::ptr;

use pjrt_sys::{
    PJRT_Error, PJRT_Error_Code, PJRT_Error_Destroy_Args, PJRT_Error_ForEachPayload_Args,
    PJRT_Error_FunctionTable, PJRT_Error_GetCode_Args, PJRT_Error_Message_Args, PJRT_Error_PayloadVisitor,
    PJRT_NamedValue, SizedStruct,
};

use crate::abi::args::{View, chars, handle, input, output, output_str};
use crate::abi::c_arrays::read_named_values;
use crate::abi::handle::{self, Handle};
use crate::client::PjrtClient;
use crate::error::{Error, ErrorCode, Result};
use crate::options::OptionValue;

/// The object behind a `PJRT_Error`.
#[repr(C)]
pub(crate) struct ErrorHandle {
    vtable: *const PJRT_Error_FunctionTable,
    error: Error,
    text: String,
}

// SAFETY: the first word is a pointer to a table that lives forever, and the rest is owned.
unsafe impl Send for ErrorHandle {}
// SAFETY: nothing changes after construction.
unsafe impl Sync for ErrorHandle {}

impl Handle for ErrorHandle {
    type Opaque = PJRT_Error;
    const KIND: &'static str = "PJRT_Error";
}

/// Passes ownership of an error to the host.
pub(crate) fn error_to_raw(error: Error) -> *mut PJRT_Error {
    let text = error.to_string();
    handle::into_raw(ErrorHandle { vtable: &TABLE.0, error, text })
}

/// Converts an outcome to the argument of a callback. Null means success.
pub(crate) fn outcome_to_raw(outcome: Result<(), Error>) -> *mut PJRT_Error {
    outcome.map_or_else(error_to_raw, |()| ptr::null_mut())
}

/// Takes the error that a callback of the host returned. Hosts create such errors with [`callback_error`].
///
/// # Safety
///
/// `error` is null or an error of this plugin whose ownership passes to this function.
pub(crate) unsafe fn error_from_raw(error: *mut PJRT_Error) -> Result<(), Error> {
    // SAFETY: the caller's contract.
    match unsafe { handle::from_raw::<ErrorHandle>(error, "error") }? {
        None => Ok(()),
        Some(error) => Err(error.error),
    }
}

/// The `PJRT_CallbackError` that a host calls to create an error of this plugin.
///
/// # Safety
///
/// `message` is null or the start of `message_size` bytes.
pub(crate) unsafe extern "C" fn callback_error(
    code: PJRT_Error_Code,
    message: *const c_char,
    message_size: usize,
) -> *mut PJRT_Error {
    // SAFETY: this function's contract.
    error_to_raw(unsafe { host_error(code, message, message_size) })
}

/// Creates an error from a code and a message of the host.
///
/// # Safety
///
/// `message` is null or the start of `message_size` bytes that are readable during the call.
pub(crate) unsafe fn host_error(code: PJRT_Error_Code, message: *const c_char, message_size: usize) -> Error {
    // SAFETY: this function's contract.
    let bytes = unsafe { super::args::borrowed_slice::<u8>(message.cast(), message_size, "message") };
    Error::new(ErrorCode::from_number(code.0), bytes.map(super::args::text).unwrap_or_default())
}

/// Attaches the payloads that a host passes as named values.
///
/// # Safety
///
/// `values` is null or the start of `len` values as the C API describes them, readable until the call returns.
pub(crate) unsafe fn with_payloads(
    error: Error,
    values: *const PJRT_NamedValue,
    len: usize,
) -> crate::error::Result<Error> {
    // SAFETY: this function's contract.
    let payloads = unsafe { read_named_values(values, len) }?;
    payloads.into_iter().try_fold(error, |error, (name, value)| match value {
        OptionValue::String(text) => Ok(error.with_payload(name, text)),
        _ => Err(Error::invalid_argument(format!(
            "the payload '{name}' of an error must be a string (PJRT_NamedValue_kString)"
        ))),
    })
}

struct Table(PJRT_Error_FunctionTable);

// SAFETY: the table's only pointer is null, and nothing changes it.
unsafe impl Sync for Table {}

static TABLE: Table = Table(PJRT_Error_FunctionTable {
    struct_size: PJRT_Error_FunctionTable::STRUCT_SIZE,
    instance_size: size_of::<ErrorHandle>(),
    extension_start: ptr::null_mut(),
    destroy: Some(destroy),
    message: Some(message),
    get_code: Some(get_code),
    for_each_payload: Some(for_each_payload),
});

/// # Safety
///
/// `error` is null or an error of this plugin whose ownership the host passes.
unsafe extern "C" fn destroy(error: *mut PJRT_Error) {
    // SAFETY: this function's contract. A handle that is not live is ignored, because this function cannot return an error.
    let _ = unsafe { handle::from_raw::<ErrorHandle>(error, "error") };
}

/// # Safety
///
/// `error` is null or an error of this plugin; the other pointers are valid for writes.
unsafe extern "C" fn message(
    error: *const PJRT_Error,
    message: *mut *const c_char,
    message_size: *mut usize,
) {
    // SAFETY: this function's contract.
    let text = match unsafe { handle::borrow::<ErrorHandle>(error, "error") } {
        Ok(error) => error.text.as_bytes(),
        Err(_) => b"",
    };
    // SAFETY: this function's contract.
    unsafe {
        message.write(chars(text));
        message_size.write(text.len());
    }
}

/// # Safety
///
/// `error` is null or an error of this plugin.
unsafe extern "C" fn get_code(error: *const PJRT_Error) -> PJRT_Error_Code {
    // SAFETY: this function's contract.
    let error = unsafe { handle::borrow::<ErrorHandle>(error, "error") };
    PJRT_Error_Code(error.map_or(ErrorCode::Unknown, |error| error.error.code()) as u32)
}

/// # Safety
///
/// `error` is null or an error of this plugin; `visitor` is null or can be called with `user_arg`.
unsafe extern "C" fn for_each_payload(
    error: *const PJRT_Error,
    visitor: PJRT_Error_PayloadVisitor,
    user_arg: *mut c_void,
) {
    // SAFETY: this function's contract.
    let (Ok(error), Some(visitor)) = (unsafe { handle::borrow::<ErrorHandle>(error, "error") }, visitor)
    else {
        return;
    };
    for (key, value) in error.error.payloads() {
        // SAFETY: the visitor takes two strings that live during the call, and its own argument.
        unsafe { visitor(chars(key.as_bytes()), key.len(), chars(value), value.len(), user_arg) };
    }
}

/// `PJRT_Error_Destroy`: frees an error.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PJRT_Error_Destroy_Args`.
pub(crate) unsafe extern "C" fn error_destroy<C: PjrtClient>(args: *mut PJRT_Error_Destroy_Args) {
    // SAFETY: this function's contract.
    if let Ok(args) = unsafe { View::new(args) } {
        // SAFETY: the host passes ownership of the error.
        unsafe { destroy(input!(args.error)) };
    }
}

/// `PJRT_Error_Message`: returns the text of an error, which lives as long as the error.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PJRT_Error_Message_Args`.
pub(crate) unsafe extern "C" fn error_message<C: PjrtClient>(args: *mut PJRT_Error_Message_Args) {
    // SAFETY: this function's contract.
    let Ok(args) = (unsafe { View::new(args) }) else { return };
    let error = handle!(args.error: ErrorHandle);
    output_str!(args.message, message_size = error.map_or("", |error| error.text.as_str()));
}

/// `PJRT_Error_GetCode`: returns the code of an error. Hosts abort if it fails, so an invalid handle has the code UNKNOWN.
pub(crate) fn error_get_code<C: PjrtClient>(args: View<'_, PJRT_Error_GetCode_Args>) -> Result<()> {
    // SAFETY: the view's contract.
    output!(args.code = unsafe { get_code(input!(args.error)) });
    Ok(())
}

/// `PJRT_Error_ForEachPayload`: calls the visitor with each payload. It never fails, because hosts call it for every error,
/// including one that it returned.
pub(crate) fn error_for_each_payload<C: PjrtClient>(
    args: View<'_, PJRT_Error_ForEachPayload_Args>,
) -> Result<()> {
    // SAFETY: the view's contract.
    unsafe { for_each_payload(input!(args.error), input!(args.visitor), input!(args.user_arg)) };
    Ok(())
}
