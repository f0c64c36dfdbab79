//! `cargo xtask bindgen`: writes the generated files of `pjrt-sys` from its C headers, or checks that the
//! files match the headers, or that the headers match those of upstream.
//!
//! bindgen is a heavy dependency, and needs libclang, which the task installs from PyPI's `libclang` wheel in
//! a virtual environment. Therefore it is behind the feature `generators` of this package. Without the feature,
//! the task installs libclang and runs itself again with the feature.

#[cfg(not(feature = "generators"))]
use std::path::PathBuf;

use anyhow::Result;

#[cfg(not(feature = "generators"))]
use crate::environment::venv::Venv;
#[cfg(not(feature = "generators"))]
use crate::environment::{run, workspace};

#[cfg(feature = "generators")]
mod generate;
#[cfg(feature = "generators")]
mod model;
#[cfg(feature = "generators")]
mod upstream;

/// Regenerates `pjrt-sys` from its headers (or from the main header that `PJRT_C_API_HEADER` names).
///
/// With `check_only`, nothing in the source tree is written, and a difference is an error that names the
/// file.
pub(crate) fn run(check_only: bool) -> Result<()> {
    #[cfg(feature = "generators")]
    return generate::run(check_only);
    #[cfg(not(feature = "generators"))]
    return rerun_with_bindgen(if check_only { &["--check"] } else { &[] });
}

/// Compares the declarations of `pjrt-sys` with the headers in public packages of several versions.
///
/// The packages are large (about one gigabyte together) and are downloaded once, to `target/bindgen`.
pub(crate) fn compare_with_upstream() -> Result<()> {
    #[cfg(feature = "generators")]
    return upstream::compare();
    #[cfg(not(feature = "generators"))]
    return rerun_with_bindgen(&["--upstream"]);
}

/// Runs this task again with the feature `generators`, and with the path of libclang.
#[cfg(not(feature = "generators"))]
fn rerun_with_bindgen(arguments: &[&str]) -> Result<()> {
    let mut command = workspace::task_with_generators("bindgen");
    command.args(arguments);
    if std::env::var_os("LIBCLANG_PATH").is_none() {
        command.env("LIBCLANG_PATH", libclang()?);
    }
    run::run(&mut command)
}

/// Returns the folder of `libclang.so`, which is installed with pip on the first call.
#[cfg(not(feature = "generators"))]
fn libclang() -> Result<PathBuf> {
    // The checked-in files were generated with this version. Other versions may name or order items
    // differently.
    let venv = Venv::with_requirements("libclang", "libclang==18.1.1\n")?;
    let folder = run::output(
        venv.python()
            .args(["-c", "import clang, pathlib; print(pathlib.Path(clang.__path__[0]) / 'native')"]),
    )?;
    let folder = PathBuf::from(folder.trim());
    anyhow::ensure!(folder.exists(), "the libclang wheel has no folder {}", folder.display());
    Ok(folder)
}
