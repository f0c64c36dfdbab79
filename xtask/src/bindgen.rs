//! `cargo xtask bindgen`: writes the generated files of `pjrt-sys` from its C headers, or checks that they are what
//! the headers say.
//!
//! bindgen needs libclang, which comes from PyPI's `libclang` wheel in a virtual environment under `target/`, and is a
//! heavy dependency, so it sits behind the feature `bindgen` of this package: built without it, the task finds
//! libclang and starts itself again with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

#[cfg(feature = "bindgen")]
mod generate;
#[cfg(feature = "bindgen")]
mod model;
mod upstream;

pub use upstream::compare_with_upstream;

/// The version of PyPI's `libclang` that the checked-in files were generated with.
const LIBCLANG_VERSION: &str = "18.1.1";

/// Regenerates `pjrt-sys` from its headers (or from the header that `PJRT_C_API_HEADER` names).
///
/// With `check_only` nothing is written in the source tree, and a difference is an error that names the file.
pub fn run(check_only: bool) -> Result<()> {
    #[cfg(feature = "bindgen")]
    return generate::run(check_only);
    #[cfg(not(feature = "bindgen"))]
    return rerun_with_bindgen(if check_only { &["--check"] } else { &[] });
}

/// The root folder of the workspace.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The folder for what these tasks fetch and derive; inside the ignored `target/`.
fn work_folder() -> PathBuf {
    root().join("target/bindgen")
}

/// Starts this task again, built with the feature `bindgen` and told where libclang is.
#[cfg(not(feature = "bindgen"))]
fn rerun_with_bindgen(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["run", "--quiet", "--package", "xtask", "--features", "bindgen", "--", "bindgen"])
        .args(arguments)
        .current_dir(root());
    if std::env::var_os("LIBCLANG_PATH").is_none() {
        command.env("LIBCLANG_PATH", libclang()?);
    }
    run_command(&mut command)
}

/// The folder of `libclang.so`, installed with pip on the first call.
#[cfg(not(feature = "bindgen"))]
fn libclang() -> Result<PathBuf> {
    let venv = python_environment()?;
    let site = output(Command::new(venv.join("bin/python")).args([
        "-c",
        "import sysconfig; print(sysconfig.get_path('platlib'))",
    ]))?;
    let folder = Path::new(site.trim()).join("clang/native");
    if !folder.exists() {
        run_command(
            Command::new(venv.join("bin/python"))
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
                .arg(format!("libclang=={LIBCLANG_VERSION}")),
        )?;
    }
    if !folder.exists() {
        bail!("the libclang wheel {LIBCLANG_VERSION} has no folder {}", folder.display());
    }
    Ok(folder)
}

/// A virtual environment of our own, made on the first call.
fn python_environment() -> Result<PathBuf> {
    let venv = work_folder().join("venv");
    if !venv.join("bin/python").exists() {
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
    }
    Ok(venv)
}

/// Runs a command that must succeed.
fn run_command(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{status} from {command:?}");
    }
    Ok(())
}

/// What a command that must succeed prints.
fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{} from {command:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
