//! `cargo xtask sanitize`: runs the SDK's tests, and the conformance kit on hello, the accelerator and
//! refcpu, under AddressSanitizer.
//!
//! ThreadSanitizer and Miri are not used. ThreadSanitizer needs a standard library that was compiled with it,
//! because it otherwise reports the library's own locks, and the stable toolchain lacks the library's
//! sources. Miri needs a nightly compiler, and supports neither SIMD kernels nor shared libraries. `cargo
//! xtask loom` checks the order of threads.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::environment::run::{output, run};
use crate::environment::workspace::{cargo, target};

/// Builds and runs everything with the sanitizer, whose runtime is part of the stable compiler.
pub(crate) fn address() -> Result<()> {
    let triple = host_triple()?;
    let folder = target().join("sanitize");
    let of_cargo = |arguments: &[&str]| sanitized(&triple, &folder, arguments);
    run(&mut of_cargo(&["test", "--package", "pjrt-plugin", "--lib", "--test", "c_api"]))?;
    for package in ["hello-pjrt", "accelerator-pjrt", "refcpu"] {
        run(&mut of_cargo(&["build", "--package", package]))?;
        let library = folder.join(&triple).join("debug");
        let library = library.join(format!("{DLL_PREFIX}{}{DLL_SUFFIX}", package.replace('-', "_")));
        run(of_cargo(&["run", "--package", "cargo-pjrt", "--", "conform"]).arg(library))?;
    }
    Ok(())
}

fn sanitized(triple: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = cargo();
    // The flag requires a nightly compiler; the variable makes the stable one accept it. If a target is
    // given, build scripts and macros are compiled without the flag. The sanitizer's runtime is in the
    // program, which exports it to the plugins that it loads.
    let flags = "-Zsanitizer=address -Clink-arg=-Wl,--export-dynamic";
    command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flags);
    // Tables and extensions live as long as the process, and some tests request more memory than there is.
    command.env("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1");
    let (verb, rest) = arguments.split_first().map_or(("", arguments), |(verb, rest)| (*verb, rest));
    command.args([verb, "--quiet", "--target", triple, "--target-dir"]).arg(folder).args(rest);
    command
}

/// Returns the compiler's default target.
fn host_triple() -> Result<String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not report its host")?.to_owned())
}
