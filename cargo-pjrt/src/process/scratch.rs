//! Temporary folders, for what the children read and write.

use std::path::PathBuf;

/// A temporary folder, which is deleted when the value is dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder for a subcommand.
    pub(crate) fn new(verb: &str) -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("cargo-pjrt-{verb}-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
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

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be deleted remains in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
