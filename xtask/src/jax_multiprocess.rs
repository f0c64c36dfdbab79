//! `cargo xtask jax-multiprocess`: runs JAX's own tests of several processes on refcpu, beside XLA's CPU backend over Gloo.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::environment::run::watch;
use crate::environment::workspace;
use crate::{gloo, jax_tests, wheel};

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Names of test files without `.py`; by default, all files that run on XLA's CPU backend
    files: Vec<String>,
    /// Folder `tests` of JAX's sources; by default, the sources are fetched with git
    #[arg(long)]
    tests: Option<PathBuf>,
    /// Test this build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Numbers of processes and of devices in each
    #[arg(long, default_value = "2x4,4x2,4x1")]
    shapes: String,
}

/// Runs the tests. Fails if a test fails on refcpu that passes on XLA's CPU backend and is not in
/// `tests/python/host_suites/jax_multiprocess.toml`.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let gloo = gloo::library()?;
    let tests = jax_tests::folder(options.tests.as_deref())?.join("multiprocess");
    let venv = jax_tests::venv()?;
    let library = workspace::release_refcpu(options.library.as_deref())?;
    venv.install_wheel(&wheel::pack(&library, &workspace::root().join("dist"))?)?;
    let mut runner = venv.python();
    runner.arg(workspace::root().join("tests/python/host_suites/multiprocess.py")).args(&options.files);
    runner.arg("--tests").arg(tests).arg("--shapes").arg(&options.shapes);
    runner.arg("--results").arg(workspace::target().join("host-suites/jax-multiprocess"));
    let (status, _) = watch(runner.env("REFCPU_GLOO", gloo))?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
