//! `cargo xtask jax-tests`: runs JAX's own tests on refcpu.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::environment::run::run as run_command;
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::host_suite::{self, Suite};

/// The tag of the release whose tests are run, which is the release that the other Python tests use.
const TAG: &str = "jax-v0.10.2";

/// The name of the release on the page.
const RELEASE: &str = "JAX 0.10.2";

/// The packages that JAX's tests import, from the release's own list.
const REQUIREMENTS: &str = "jax==0.10.2\njaxlib==0.10.2\nnumpy==2.4.6\nscipy==1.17.1\nabsl-py\ncloudpickle\nfilelock\n\
    flatbuffers\nhypothesis==6.142.1\nmpmath==1.3.0\npillow>=11.3\nportpicker\npytest<9.0\nrich\nmatplotlib\nauditwheel\n";

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    suite: host_suite::Options,
    /// Folder `tests` of JAX's sources; by default, the sources are fetched with git
    #[arg(long)]
    tests: Option<PathBuf>,
    /// Outcome of every test on XLA's CPU backend, as JSON of file, test, and `pass`, `skip` or `fail`
    #[arg(long)]
    baseline: PathBuf,
}

/// Runs the tests.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let tests = folder(options.tests.as_deref())?;
    let venv = venv()?;
    let (baseline, page) = (&options.baseline, "jax-tests.md");
    let suite = Suite { host: "jax", release: RELEASE, tests: &tests, baseline, page };
    host_suite::run(&suite, &venv, &options.suite)
}

/// Returns the folder of JAX's tests: the given one, or that of the sources, which are fetched.
pub(crate) fn folder(given: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(folder) => Ok(folder.to_owned()),
        None => Ok(sources(&workspace::target().join("jax-sources"))?.join("tests")),
    }
}

/// Returns the environment with the packages that JAX's tests import.
pub(crate) fn venv() -> Result<Venv> {
    Venv::with_requirements("jax-tests", REQUIREMENTS)
}

/// Returns the folder of JAX's sources at the release's tag.
fn sources(folder: &Path) -> Result<PathBuf> {
    if !folder.exists() {
        run_command(
            Command::new("git")
                .args(["clone", "--depth", "1", "--branch", TAG, "https://github.com/jax-ml/jax"])
                .arg(folder),
        )
        .context("cannot fetch JAX's sources; pass the folder of its tests with --tests")?;
    }
    Ok(folder.to_owned())
}
