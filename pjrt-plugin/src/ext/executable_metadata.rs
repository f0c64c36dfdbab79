//! The ExecutableMetadata extension: what a compiler wants to say about a program.

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

/// Gives hosts a compiler's own description of a program (`PJRT_ExecutableMetadata_Extension`).
///
/// The bytes are a protocol buffer that the vendor's tools agree
/// on; XLA and JAX look into those of TPUs only.
pub trait ExecutableMetadata: PjrtClient {
    /// The serialized description.
    ///
    /// # Errors
    ///
    /// NOT_FOUND if there is none.
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

/// What the host gets: the public struct, and the bytes that it points to.
#[repr(C)]
struct Metadata {
    public: PJRT_ExecutableMetadata,
    _bytes: Vec<u8>,
}

/// The metadata of an executable. The arguments of this extension have no size: they never grew.
///
/// # Safety
///
/// `args` is what the PJRT C API says about `PJRT_ExecutableMetadata_GetExecutableMetadata_Args`.
unsafe extern "C" fn get<C: ExecutableMetadata>(
    args: *mut PJRT_ExecutableMetadata_GetExecutableMetadata_Args,
) -> *mut PJRT_Error {
    let body = || -> Result<()> {
        // SAFETY: this function's contract.
        let args = unsafe { args.as_mut() }.ok_or_else(|| null("args"))?;
        args.metadata = ptr::null_mut();
        // SAFETY: this function's contract: the field is null or an executable of this plugin, which lives.
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
/// `args` is what the PJRT C API says about `PJRT_ExecutableMetadata_DestroySerializedMetadata_Args`.
unsafe extern "C" fn destroy(args: *mut PJRT_ExecutableMetadata_DestroySerializedMetadata_Args) {
    // SAFETY: this function's contract.
    let metadata = unsafe { args.as_ref() }.map_or(ptr::null_mut(), |args| args.metadata);
    if !metadata.is_null() {
        // SAFETY: the host gives the metadata up, which came from `get`.
        drop(unsafe { Box::from_raw(metadata.cast::<Metadata>()) });
    }
}
