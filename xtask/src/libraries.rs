//! `cargo xtask libraries`: compares refcpu with XLA's CPU backend in programs that use libraries on JAX.

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
    /// Run only this program of tests/python/libraries, such as flax, and leave the page as it is; can be given
    /// several times
    #[arg(long)]
    only: Vec<String>,
    /// Take the results of XLA from the last run, if there was one
    #[arg(long)]
    keep: bool,
    /// Test this release build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Installs the libraries, runs a program of each on both backends, and writes docs/libraries.md.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let library = workspace::release_refcpu(options.library.as_deref())?;
    let venv = Venv::with_requirements_file("libraries", "tests/python/libraries/requirements.txt")?;
    let mut compare = venv.python();
    compare
        .arg(workspace::root().join("tests/python/libraries/run.py"))
        .arg(workspace::target().join("libraries"))
        .env("TEST_REFCPU", library);
    for name in &options.only {
        compare.args(["--only", name]);
    }
    if options.keep {
        compare.arg("--keep");
    }
    let (status, _) = watch(&mut compare)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
