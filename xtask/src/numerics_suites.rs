//! `cargo xtask numerics-suites`: the suites of `cargo pjrt numerics`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::environment::run::watch;
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Evaluate only this operation or model and write nothing; can be given several times
    #[arg(long)]
    only: Vec<String>,
}

/// Evaluates the programs of the suites, compares the results with XLA's CPU backend, and writes cargo-pjrt/data/numerics.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let venv = Venv::of_tests()?;
    let mut make = venv.python();
    make.arg(workspace::root().join("tests/python/numerics/make.py"));
    for name in &options.only {
        make.arg("--only").arg(name);
    }
    let (status, _) = watch(&mut make)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
