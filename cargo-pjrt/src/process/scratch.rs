//! Temporary folders, for what the children read and write.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The folders that exist.
static EXISTING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A temporary folder, which is deleted when the value is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder for a subcommand.
    pub(crate) fn new(verb: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("cargo-pjrt-{verb}-{}", std::process::id()));
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(format!(
                    "the temporary folder cannot be created: {}: {error}; TMPDIR names the folder for it",
                    path.display()
                ));
            }
            _ => {}
        }
        existing().push(path.clone());
        Ok(Self(path))
    }

    /// Returns the path of a file in the folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates a folder in this folder, and returns its path.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, String> {
        let path = self.0.join(name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }
}

fn existing() -> MutexGuard<'static, Vec<PathBuf>> {
    EXISTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Deletes all folders, because the program ends.
pub(super) fn delete_all() {
    for path in existing().drain(..) {
        let _ = std::fs::remove_dir_all(path);
    }
}

/// Creates the folder of `--dump`, so that one that cannot be created is noticed before the work.
///
/// # Errors
///
/// Returns an error that names the option and the folder.
pub(crate) fn usable_folder(path: &Path) -> Result<(), String> {
    std::fs::create_dir_all(path).map_err(|error| format!("--dump {}: {error}", path.display()))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        existing().retain(|path| *path != self.0);
        // A folder that cannot be deleted remains in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
