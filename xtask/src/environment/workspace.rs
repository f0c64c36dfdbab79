//! The paths of the workspace, and builds of its crates.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::run::run;

/// Returns the root folder of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace")
}

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Returns the path of the shared library of a library crate, in a folder of `target()` such as `debug`.
pub(crate) fn shared_library(folder: &str, crate_name: &str) -> PathBuf {
    target().join(folder).join(format!("{DLL_PREFIX}{crate_name}{DLL_SUFFIX}"))
}

/// Returns the given release build of refcpu, or builds one.
pub(crate) fn release_refcpu(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(library) = given {
        return Ok(std::path::absolute(library)?);
    }
    run(cargo().args(["build", "--quiet", "--release", "--package", "refcpu"]))?;
    Ok(shared_library("release", "refcpu"))
}

/// Returns the path of a program that cargo builds, in a folder of `target()` such as `debug`.
pub(crate) fn program(folder: &str, name: &str) -> PathBuf {
    target().join(folder).join(format!("{name}{EXE_SUFFIX}"))
}

/// Returns a command that runs the current cargo in the root folder.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root());
    command
}

/// Returns a command that runs a task of this program with its generators of code.
///
/// The dependencies of the generators are built once for all of them, and without optimization: they are large, and run briefly.
#[cfg(not(feature = "generators"))]
pub(crate) fn task_with_generators(task: &str) -> Command {
    let mut command = cargo();
    command.args(["--config", r#"profile.dev.package."*".opt-level=0"#]).args([
        "run",
        "--quiet",
        "--package",
        "xtask",
        "--features",
        "generators",
        "--",
        task,
    ]);
    command
}

/// Returns the command that runs programs on a plugin in a host, with `cargo pjrt test`.
pub(crate) fn test_in_host(library: &Path, host: &str) -> Command {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "cargo-pjrt", "--", "test", "--host", host]).arg(library);
    command
}

/// Builds the shared libraries and the tools of the tests in the dev profile.
///
/// Builds the whole workspace at once with one example, so that dependencies get the same features as in
/// `cargo test` and nothing is built twice.
pub(crate) fn build_dev() -> Result<()> {
    build_for_tests(&[])
}

/// Builds what [`build_dev`] builds, with optimization, for tests that run for a long time.
pub(crate) fn build_optimized() -> Result<()> {
    build_for_tests(&["--release"])
}

fn build_for_tests(profile: &[&str]) -> Result<()> {
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
    let steps = tutorial_steps()?;
    let steps = steps.iter().flat_map(|step| ["--example", step]);
    run(cargo().args(["build", "--quiet", "--workspace"]).args(profile).args(targets).args(steps))
}

/// Returns the names of the states of the tutorial's plugin before the last one, in order. They are examples of Cargo.
pub(crate) fn tutorial_steps() -> Result<Vec<String>> {
    let folder = root().join("examples/tutorial/steps");
    let files = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let name = |path: PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut steps: Vec<String> = files.map(|file| Ok(name(file?.path()))).collect::<Result<_>>()?;
    steps.sort();
    Ok(steps)
}
