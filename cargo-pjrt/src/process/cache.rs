//! The folder for what is kept between runs.

use std::path::PathBuf;

/// Returns the user's cache folder of this program: `cargo-pjrt` in `$XDG_CACHE_HOME`, or in `.cache` of the home directory.
///
/// # Errors
///
/// Returns an error if neither variable is set.
pub(crate) fn folder() -> Result<PathBuf, String> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    folder
        .map(|folder| folder.join("cargo-pjrt"))
        .ok_or_else(|| "there is no cache folder: neither XDG_CACHE_HOME nor HOME is set".to_owned())
}
