//! The shared library of a plugin.

use std::io::Read;
use std::path::Path;

use pjrt_sys::PJRT_Api;

use super::plugin::Plugin;

/// The reason why a shared library cannot be used as a plugin.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The dynamic loader refused the library, with this message.
    #[error("cannot load the library: {0}")]
    Open(String),
    /// The library exports no function `GetPjrtApi`.
    #[error(
        "not a PJRT plugin: the library exports no function GetPjrtApi ({0}). With pjrt-plugin, #[pjrt_plugin] exports it from a \
         crate of the type cdylib"
    )]
    NoEntry(String),
    /// `GetPjrtApi` returned a null pointer, or a table that is too small to have a version.
    #[error("GetPjrtApi returned {0}; expected a pointer to a PJRT_Api")]
    NoTable(String),
}

/// Formats an error with its cause, which is the message of the dynamic loader.
fn reason(error: &libloading::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    text
}

/// Returns the dynamic loader's message about a file, preceded by an explanation if the file is not a
/// library.
fn not_loaded(path: &Path, error: &libloading::Error) -> String {
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    let is_elf = read.is_ok() && start == *b"\x7fELF";
    let what = if cfg!(target_os = "linux") && !is_elf { "not a shared library: " } else { "" };
    format!("{what}{}", reason(error))
}

impl Plugin {
    /// Loads a shared library as JAX does, and obtains its table. Calls no other function of the plugin.
    ///
    /// # Errors
    ///
    /// Returns an error if the library cannot be loaded, or is not a plugin.
    pub fn load(path: &Path) -> std::result::Result<Self, LoadError> {
        // The loader would search the system's folders for a name without a folder.
        let path = std::path::absolute(path).map_err(|error| LoadError::Open(error.to_string()))?;
        // The message of the loader would be longer.
        match path.metadata() {
            Ok(data) if data.is_file() => {}
            Ok(_) => return Err(LoadError::Open("not a file".to_owned())),
            Err(error) => return Err(LoadError::Open(error.to_string())),
        }
        // SAFETY: the caller intends to run the plugin's initializers; see the module's documentation.
        let library = unsafe { libloading::Library::new(&path) };
        let library = library.map_err(|error| LoadError::Open(not_loaded(&path, &error)))?;
        let table = {
            // SAFETY: the interface defines the type of this function.
            let entry = unsafe { library.get::<unsafe extern "C" fn() -> *const PJRT_Api>(b"GetPjrtApi\0") };
            let entry = entry.map_err(|error| LoadError::NoEntry(reason(&error)))?;
            // SAFETY: the function takes no arguments, and may be called at any time.
            unsafe { entry() }
        };
        std::mem::forget(library);
        // SAFETY: the plugin returned the table, and stays loaded.
        unsafe { Self::from_table(table) }.map_err(LoadError::NoTable)
    }

    /// Loads the library and obtains its table again, as a host does that examines a plugin before it uses
    /// it: the library is opened, closed, and opened once more. Returns `true` if the table is still the
    /// same.
    ///
    /// # Errors
    ///
    /// Returns an error if the library can no longer be loaded.
    pub fn reload(self, path: &Path) -> std::result::Result<bool, LoadError> {
        let found = std::path::absolute(path).map_err(|error| LoadError::Open(error.to_string()))?;
        // SAFETY: as in `load`. The library that `load` opened stays open, so closing this one frees nothing.
        unsafe {
            let library = libloading::Library::new(found).map_err(|error| LoadError::Open(reason(&error)))?;
            library.close().map_err(|error| LoadError::Open(reason(&error)))?;
        }
        Ok(Self::load(path)?.table == self.table)
    }
}
