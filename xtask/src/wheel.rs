//! `cargo xtask wheel`: builds the Python package of refcpu.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::environment::run::{output, run};
use crate::environment::workspace;
use crate::gloo;

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

/// Creates the wheel of a build of refcpu, and returns the wheel's path.
pub(crate) fn pack(library: &Path, out: &Path) -> Result<PathBuf> {
    pack_manifest("Cargo.toml", "refcpu", library, &[], out)
}

/// Creates the wheel of a build of refcpu that connects several processes, and returns the wheel's path. `gloo` is the library for
/// that.
pub(crate) fn pack_with_gloo(library: &Path, gloo: &Path, out: &Path) -> Result<PathBuf> {
    pack_manifest("Cargo.toml", "refcpu", library, &[gloo], out)
}

/// Builds the wheel for users. It connects several processes if Gloo is installed on this machine.
pub(crate) fn build_for_users() -> Result<()> {
    let (library, out) = (build_library(Profile::Release)?, workspace::root().join("dist"));
    match gloo::library() {
        Ok(gloo) => pack_with_gloo(&library, &gloo, &out)?,
        Err(error) => {
            println!("note: the wheel does not connect several processes: {error:#}");
            pack(&library, &out)?
        }
    };
    Ok(())
}

/// Creates the wheel of a library of a package, which is already built, and returns the wheel's path. `with` are the libraries that
/// it loads from its folder.
pub(crate) fn pack_manifest(
    manifest: &str,
    package: &str,
    library: &Path,
    with: &[&Path],
    out: &Path,
) -> Result<PathBuf> {
    let mut command = workspace::cargo();
    command.args(["run", "--quiet", "--package", "cargo-pjrt", "--", "wheel", "--manifest-path", manifest]);
    command.args(["--package", package]);
    for library in with {
        command.arg("--with").arg(library);
    }
    let printed = output(command.args(["--no-test", "--library"]).arg(library).arg("--out").arg(out))?;
    let wheel = printed.lines().find_map(|line| line.strip_prefix("Wheel: "));
    let wheel = PathBuf::from(wheel.context("cargo pjrt wheel does not report the path of the wheel")?);
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
