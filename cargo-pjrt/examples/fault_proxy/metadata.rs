//! A fault of the extension ExecutableMetadata, whose structs have no size.

use std::ptr;
use std::sync::OnceLock;

use pjrt_sys::*;

/// The function of the good plugin.
static GOOD: OnceLock<PJRT_ExecutableMetadata_GetExecutableMetadata> = OnceLock::new();

/// Replaces the functions of the extension, so that all executables have the metadata of the first one.
///
/// # Safety
///
/// The chain is a copy of the good plugin's, which this function may change.
pub(crate) unsafe fn with_fault(chain: *mut PJRT_Extension_Base) {
    let mut next = chain;
    // SAFETY: guaranteed by the caller.
    unsafe {
        while !next.is_null() {
            if (*next).type_ == PJRT_Extension_Type_ExecutableMetadata {
                let extension = next.cast::<PJRT_ExecutableMetadata_Extension>();
                GOOD.get_or_init(|| (*extension).get_executable_metadata);
                (*extension).get_executable_metadata = Some(get);
                (*extension).destroy_serialized_metadata = Some(destroy);
            }
            next = (*next).next;
        }
    }
}

/// # Safety
///
/// The host calls this function with this struct.
unsafe extern "C" fn get(args: *mut PJRT_ExecutableMetadata_GetExecutableMetadata_Args) -> *mut PJRT_Error {
    static FIRST: OnceLock<usize> = OnceLock::new();
    // SAFETY: guaranteed by the caller.
    unsafe {
        if let Some(first) = FIRST.get() {
            (*args).metadata = ptr::with_exposed_provenance_mut(*first);
            return ptr::null_mut();
        }
        let function = GOOD.get().copied().flatten();
        let error = function.expect("a function of the good plugin")(args);
        if error.is_null() {
            FIRST.get_or_init(|| (*args).metadata.expose_provenance());
        }
        error
    }
}

/// # Safety
///
/// The host calls this function with this struct.
unsafe extern "C" fn destroy(_: *mut PJRT_ExecutableMetadata_DestroySerializedMetadata_Args) {}
