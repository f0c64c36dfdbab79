//! Metadata of executables (the ExecutableMetadata extension), whose structs have no size.

use std::ptr;

use pjrt_sys::*;

use super::called;
use super::error::{Error, Result};
use super::error_object;
use super::executable::Executable;
use super::plugin::Plugin;
use super::slices::given;

/// The metadata of an executable, which the plugin owns. Dropping it frees it.
#[derive(Debug)]
pub struct Metadata {
    plugin: Plugin,
    raw: *mut PJRT_ExecutableMetadata,
}

const GET: &str = "PJRT_ExecutableMetadata_GetExecutableMetadata";

fn functions(plugin: Plugin) -> Option<&'static PJRT_ExecutableMetadata_Extension> {
    let extension = plugin.extension(PJRT_Extension_Type_ExecutableMetadata.0)?;
    // SAFETY: the type says which struct this is; it lives as long as the table. Only its size is read if it is smaller.
    unsafe {
        let is_whole = (*extension).struct_size >= size_of::<PJRT_ExecutableMetadata_Extension>();
        is_whole.then(|| &*extension.cast::<PJRT_ExecutableMetadata_Extension>())
    }
}

impl Executable {
    /// Returns the metadata (`PJRT_ExecutableMetadata_GetExecutableMetadata`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn metadata(&self) -> Result<Metadata> {
        let get = functions(self.plugin).and_then(|functions| functions.get_executable_metadata);
        let get = get.ok_or_else(|| Error {
            message: "the plugin does not have the extension ExecutableMetadata".to_owned(),
            ..Error::missing(GET)
        })?;
        let mut args = PJRT_ExecutableMetadata_GetExecutableMetadata_Args {
            executable: self.raw,
            metadata: ptr::null_mut(),
        };
        called::note_extension_function(GET);
        // SAFETY: the struct is filled in as the interface requires.
        let error = unsafe { get(&raw mut args) };
        match error_object::take_of(self.plugin, GET, error) {
            Some(error) => Err(error),
            None if args.metadata.is_null() => {
                Err(Error::broken(GET, "it succeeded, but the metadata is a null pointer"))
            }
            None => Ok(Metadata { plugin: self.plugin, raw: args.metadata }),
        }
    }
}

impl Metadata {
    /// Returns the current bytes.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the size is not credible.
    pub fn read(&self) -> Result<Vec<u8>> {
        // SAFETY: the plugin returned the object, which has the address of as many bytes as it says until it is freed.
        unsafe {
            let (start, size) = ((*self.raw).serialized_metadata, (*self.raw).serialized_metadata_size);
            given::<u8>(GET, start.cast(), size).map(<[u8]>::to_vec)
        }
    }
}

impl Drop for Metadata {
    fn drop(&mut self) {
        if let Some(free) = functions(self.plugin).and_then(|functions| functions.destroy_serialized_metadata)
        {
            called::note_extension_function("PJRT_ExecutableMetadata_DestroySerializedMetadata");
            let mut args = PJRT_ExecutableMetadata_DestroySerializedMetadata_Args { metadata: self.raw };
            // SAFETY: the plugin returned the object, which is freed once.
            unsafe { free(&raw mut args) };
        }
    }
}
