//! `cargo xtask bindgen`: writes the generated files of `pjrt-sys` from its C headers, or checks them: that they are
//! what the headers say, or that the headers say what upstream's do.
//!
//! bindgen needs libclang, which comes from PyPI's `libclang` wheel in a virtual environment, and is a heavy
//! dependency, so it sits behind the feature `bindgen` of this package: built without it, the task finds libclang and
//! starts itself again with it.

use std::path::PathBuf;

use anyhow::Result;

use crate::workspace;

#[cfg(feature = "bindgen")]
mod generate;
#[cfg(feature = "bindgen")]
mod model;
#[cfg(feature = "bindgen")]
mod upstream;

/// Regenerates `pjrt-sys` from its headers (or from the main header that `PJRT_C_API_HEADER` names).
///
/// With `check_only` nothing is written in the source tree, and a difference is an error that names the file.
pub(crate) fn run(check_only: bool) -> Result<()> {
    #[cfg(feature = "bindgen")]
    return generate::run(check_only);
    #[cfg(not(feature = "bindgen"))]
    return rerun_with_bindgen(if check_only { &["--check"] } else { &[] });
}

/// Compares the declarations of `pjrt-sys` with the headers in public packages of several versions.
///
/// The packages are large (about one gigabyte together) and are fetched once, into `target/bindgen`.
pub(crate) fn compare_with_upstream() -> Result<()> {
    #[cfg(feature = "bindgen")]
    return upstream::compare();
    #[cfg(not(feature = "bindgen"))]
    return rerun_with_bindgen(&["--upstream"]);
}

/// The folder for what these tasks fetch and derive.
#[cfg(feature = "bindgen")]
fn work_folder() -> PathBuf {
    workspace::root().join("target/bindgen")
}

/// Starts this task again, built with the feature `bindgen` and told where libclang is.
#[cfg(not(feature = "bindgen"))]
fn rerun_with_bindgen(arguments: &[&str]) -> Result<()> {
    let mut command = workspace::cargo();
    command
        .args(["run", "--quiet", "--package", "xtask", "--features", "bindgen", "--", "bindgen"])
        .args(arguments);
    if std::env::var_os("LIBCLANG_PATH").is_none() {
        command.env("LIBCLANG_PATH", libclang()?);
    }
    crate::run::run(&mut command)
}

/// The folder of `libclang.so`, installed with pip on the first call.
#[cfg(not(feature = "bindgen"))]
fn libclang() -> Result<PathBuf> {
    // The checked-in files were generated with this version; another may name or order things differently.
    let venv = crate::venv::Venv::with_requirements("libclang", "libclang==18.1.1\n")?;
    let folder = crate::run::output(
        venv.python()
            .args(["-c", "import clang, pathlib; print(pathlib.Path(clang.__path__[0]) / 'native')"]),
    )?;
    let folder = PathBuf::from(folder.trim());
    anyhow::ensure!(folder.exists(), "the libclang wheel has no folder {}", folder.display());
    Ok(folder)
}
