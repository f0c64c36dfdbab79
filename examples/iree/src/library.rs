//! Finds the compiler.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use iree_runtime::Compiler;
use pjrt_plugin::{Error, Result};

use crate::convert;

/// The version of the compiler that fits to the runtime, which this plugin contains.
pub(crate) const VERSION: &str = "3.13.0";

/// The name of the library.
const LIBRARY: &str = "libIREECompiler.so";

/// The path of the library in the folder of Python's packages.
const IN_PACKAGES: &str = "iree/compiler/_mlir_libs/libIREECompiler.so";

/// The environment variable with the path of the library.
const VARIABLE: &str = "IREE_COMPILER_LIBRARY";

/// Returns the compiler of a library, or of the one that is found if the path is empty.
///
/// # Errors
///
/// Returns NOT_FOUND if there is no compiler, or FAILED_PRECONDITION if it does not fit to the runtime.
pub(crate) fn compiler(path: &str) -> Result<Arc<Compiler>> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Arc<Compiler>>> = Mutex::new(BTreeMap::new());
    let path = if path.is_empty() { search() } else { PathBuf::from(path) };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(compiler) = known.get(&path) {
        return Ok(Arc::clone(compiler));
    }
    let compiler = Compiler::load(&path).map_err(|error| {
        let context = format!("cannot load IREE's compiler from {}", path.display());
        convert::error(error).context(context).with_hint(format!(
            "pip install iree-base-compiler=={VERSION}, or set the option compiler or the environment variable {VARIABLE} to the \
             path of {LIBRARY}"
        ))
    })?;
    check_version(compiler.revision())?;
    Ok(Arc::clone(known.entry(path).or_insert_with(|| Arc::new(compiler))))
}

/// Checks that code of a compiler fits to the runtime: IREE makes no promises about other versions. Builds without a version are
/// accepted.
fn check_version(revision: &str) -> Result<()> {
    let is_release = revision.starts_with(|first: char| first.is_ascii_digit());
    let minor = VERSION.rsplit_once('.').map_or(VERSION, |(minor, _)| minor);
    if !is_release || revision.starts_with(&format!("{minor}.")) {
        return Ok(());
    }
    let message =
        format!("IREE's compiler has the version {revision}, but the plugin contains the runtime {VERSION}");
    let hint = format!("pip install iree-base-compiler=={VERSION}");
    Err(Error::failed_precondition(message).with_hint(hint))
}

/// Returns the path of the library: that of the environment variable, or that in the folder of Python's packages from which the
/// process has loaded libraries, such as JAX's. Otherwise the system searches it by its name.
fn search() -> PathBuf {
    if let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
        return PathBuf::from(path);
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let found =
        package_folders(&maps).into_iter().map(|folder| folder.join(IN_PACKAGES)).find(|path| path.exists());
    found.unwrap_or_else(|| PathBuf::from(LIBRARY))
}

/// Returns the folders of Python's packages from which libraries are loaded, from the text of `/proc/self/maps`.
fn package_folders(maps: &str) -> BTreeSet<PathBuf> {
    let paths = maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
    let is_packages = |folder: &&Path| folder.ends_with("site-packages") || folder.ends_with("dist-packages");
    paths.filter_map(|path| path.ancestors().find(is_packages).map(Path::to_path_buf)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_of_packages_are_those_of_loaded_libraries() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 42    /venv/lib/python3.11/site-packages/jaxlib/libjax_common.so\n\
                    7f01-7f02 rw-p 00000000 00:00 0\n\
                    7f02-7f03 r-xp 00000000 08:01 43    /usr/lib/libc.so.6";
        let expected = BTreeSet::from([PathBuf::from("/venv/lib/python3.11/site-packages")]);
        assert_eq!(package_folders(maps), expected);
    }

    #[test]
    fn the_wheel_and_the_build_install_the_version_of_the_runtime() {
        let requirement = format!("iree-base-compiler=={VERSION}");
        for file in [include_str!("../Cargo.toml"), include_str!("../../../xtask/src/iree.rs")] {
            assert!(file.contains(&requirement), "{requirement}");
        }
        let runtime = include_str!("../runtime/Cargo.toml");
        assert!(
            runtime.contains("eerie-sys = { version = \"=0.5.0\""),
            "eerie-sys 0.5.0 contains IREE {VERSION}"
        );
    }

    #[test]
    fn another_version_of_the_compiler_is_refused() {
        assert!(check_version("3.13.0rc20261016").is_ok() && check_version("").is_ok());
        let error = check_version("3.12.0").unwrap_err();
        assert!(error.message().contains("3.12.0") && error.message().contains(VERSION), "{error}");
    }
}
