//! The ExecutableMetadata extension, which returns a compiler's description of a program.

use std::ptr;

use pjrt_sys::{
    PJRT_Error, PJRT_ExecutableMetadata, PJRT_ExecutableMetadata_DestroySerializedMetadata_Args,
    PJRT_ExecutableMetadata_Extension, PJRT_ExecutableMetadata_GetExecutableMetadata_Args,
    PJRT_Extension_Base, PJRT_Extension_Type_ExecutableMetadata, SizedStruct,
};

use crate::abi::args::{chars, null};
use crate::abi::error::error_to_raw;
use crate::abi::executable::ExecutableState;
use crate::abi::handle;
use crate::client::PjrtClient;
use crate::core::panic_guard;
use crate::error::Result;

/// Returns a compiler's description of a program to hosts (`PJRT_ExecutableMetadata_Extension`). See the
/// [example](crate::ext#example).
///
/// The bytes are a protocol buffer of the vendor. XLA and JAX read only that of TPUs.
pub trait ExecutableMetadata: PjrtClient {
    /// Returns the serialized description.
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if the program has none.
    fn executable_metadata(executable: &Self::Executable) -> Result<Vec<u8>>;
}

pub(super) fn link<C: ExecutableMetadata>(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base {
    super::leak(PJRT_ExecutableMetadata_Extension {
        base: PJRT_Extension_Base {
            struct_size: PJRT_ExecutableMetadata_Extension::STRUCT_SIZE,
            type_: PJRT_Extension_Type_ExecutableMetadata,
            next,
        },
        get_executable_metadata: Some(get::<C>),
        destroy_serialized_metadata: Some(destroy),
    })
}

/// The object that the host receives: the public struct, and the bytes that it points to.
#[repr(C)]
struct Metadata {
    public: PJRT_ExecutableMetadata,
    _bytes: Vec<u8>,
}

/// Returns the metadata of an executable. The argument structs of this extension do not begin with their size.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PJRT_ExecutableMetadata_GetExecutableMetadata_Args`.
unsafe extern "C" fn get<C: ExecutableMetadata>(
    args: *mut PJRT_ExecutableMetadata_GetExecutableMetadata_Args,
) -> *mut PJRT_Error {
    let body = || -> Result<()> {
        // SAFETY: this function's contract.
        let args = unsafe { args.as_mut() }.ok_or_else(|| null("args"))?;
        args.metadata = ptr::null_mut();
        // SAFETY: this function's contract: the field is null or a live executable of this plugin.
        let executable = unsafe { handle::borrow::<ExecutableState<C>>(args.executable, "executable") }?;
        let bytes = C::executable_metadata(&executable.executable)?;
        let public = PJRT_ExecutableMetadata {
            serialized_metadata: chars(&bytes),
            serialized_metadata_size: bytes.len(),
        };
        args.metadata = Box::into_raw(Box::new(Metadata { public, _bytes: bytes })).cast();
        Ok(())
    };
    match panic_guard::catch(body) {
        Ok(()) => ptr::null_mut(),
        Err(error) => error_to_raw(error.in_function("PJRT_ExecutableMetadata_GetExecutableMetadata")),
    }
}

/// Frees metadata.
///
/// # Safety
///
/// `args` is as the PJRT C API requires for `PJRT_ExecutableMetadata_DestroySerializedMetadata_Args`.
unsafe extern "C" fn destroy(args: *mut PJRT_ExecutableMetadata_DestroySerializedMetadata_Args) {
    // SAFETY: this function's contract.
    let metadata = unsafe { args.as_ref() }.map_or(ptr::null_mut(), |args| args.metadata);
    if !metadata.is_null() {
        // SAFETY: the host passes ownership of the metadata, which came from `get`.
        drop(unsafe { Box::from_raw(metadata.cast::<Metadata>()) });
    }
}
