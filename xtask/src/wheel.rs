//! `cargo xtask wheel`: builds the Python package of refcpu.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::environment::python::{self, Python};
use crate::environment::run::{output, run};
use crate::environment::workspace;

/// The profile in which refcpu is built.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Profile {
    /// The optimized build for users.
    Release,
    /// The build that the tests use, so that it is built only once.
    Dev,
}

/// Builds refcpu and its wheel in a folder, and returns the wheel's path.
pub(crate) fn build(profile: Profile, out: &Path) -> Result<PathBuf> {
    pack(&build_library(profile)?, out)
}

/// Creates the wheel of a library that is already built, and returns the wheel's path.
pub(crate) fn pack(library: &Path, out: &Path) -> Result<PathBuf> {
    let wheel = output(
        Python::at_least(python::OLDEST)?
            .command()
            .arg(workspace::root().join("examples/refcpu/python/build_wheel.py"))
            .arg("--library")
            .arg(library)
            .args(["--version", env!("CARGO_PKG_VERSION"), "--out"])
            .arg(out),
    )?;
    let wheel = PathBuf::from(wheel.trim());
    println!("Wheel: {}", wheel.display());
    Ok(wheel)
}

/// Builds refcpu's shared library, and returns its path.
pub(crate) fn build_library(profile: Profile) -> Result<PathBuf> {
    match profile {
        Profile::Release => {
            run(workspace::cargo().args(["build", "--release", "--package", "refcpu"]))?;
            Ok(workspace::shared_library("release", "refcpu"))
        }
        Profile::Dev => {
            workspace::build_dev()?;
            Ok(workspace::shared_library("debug", "refcpu"))
        }
    }
}
