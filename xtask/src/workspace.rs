//! Where things are.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::run::run;

/// The root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The shared library that cargo builds from a library crate, in a folder of `target()` such as `debug`.
pub(crate) fn shared_library(folder: &str, crate_name: &str) -> PathBuf {
    target().join(folder).join(format!("{DLL_PREFIX}{crate_name}{DLL_SUFFIX}"))
}

/// A release build of refcpu: the one that is given, or a new one.
pub(crate) fn release_refcpu(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(library) = given {
        return Ok(std::path::absolute(library)?);
    }
    run(cargo().args(["build", "--quiet", "--release", "--package", "refcpu"]))?;
    Ok(shared_library("release", "refcpu"))
}

/// A program that cargo builds, in a folder of `target()` such as `debug`.
pub(crate) fn program(folder: &str, name: &str) -> PathBuf {
    target().join(folder).join(format!("{name}{EXE_SUFFIX}"))
}

/// The cargo that runs this task, in the root folder.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Builds the shared libraries and the tools of the tests in the dev profile.
///
/// Of the whole workspace at once and with an example, so that dependencies get the same features as in `cargo test` and
/// nothing is built a second time.
pub(crate) fn build_dev() -> Result<()> {
    let targets = [
        "--lib",
        "--bin",
        "cargo-pjrt",
        "--example",
        "fault_plugin",
        "--example",
        "fault_proxy",
        "--example",
        "recorder",
        "--example",
        "corpus",
        "--example",
        "differential",
        "--example",
        "to_text",
    ];
    run(cargo().args(["build", "--quiet", "--workspace"]).args(targets))
}
