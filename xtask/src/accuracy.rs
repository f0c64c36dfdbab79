//! `cargo xtask accuracy`: the largest errors of refcpu's functions and of XLA's.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::environment::run::watch;
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a function is less accurate than docs/accuracy.md says, or than XLA's
    #[arg(long)]
    check: bool,
    /// Measure only this function and print the result; can be given several times
    #[arg(long)]
    only: Vec<String>,
    /// Measure only this type, such as f32 or `complex<f64>`, and print the result; can be given several
    /// times
    #[arg(long = "type")]
    types: Vec<String>,
    /// Measure this release build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Builds refcpu, measures its functions and those of XLA's CPU backend, and writes docs/accuracy.md or
/// compares with it.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let library = workspace::release_refcpu(options.library.as_deref())?;
    let venv = Venv::of_tests()?;
    let mut measure = venv.python();
    measure.arg(workspace::root().join("tests/python/accuracy/run.py")).env("TEST_REFCPU", library);
    if options.check {
        measure.arg("--check");
    }
    for name in &options.only {
        measure.arg("--only").arg(name);
    }
    for name in &options.types {
        measure.arg("--type").arg(name);
    }
    let (status, _) = watch(&mut measure)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
