//! `cargo xtask jax-tests`: runs JAX's own tests on refcpu.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::environment::run::{run as run_command, watch};
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::wheel;

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
    /// Names of test files without `.py`; by default, all files of the baseline
    files: Vec<String>,
    /// Folder `tests` of JAX's sources; by default, the sources are fetched with git
    #[arg(long)]
    tests: Option<PathBuf>,
    /// Outcome of every test on XLA's CPU backend, as JSON of file, test, and `pass`, `skip` or `fail`
    #[arg(long)]
    baseline: PathBuf,
    /// Test this build of refcpu instead of building it
    #[arg(long)]
    library: Option<PathBuf>,
    /// Run no tests; only compare the outcomes of earlier runs
    #[arg(long)]
    report_only: bool,
    /// Write docs/jax-tests.md from the outcomes of all runs so far
    #[arg(long)]
    page: bool,
    /// The number of tests to run of each file; 0 runs all
    #[arg(long, default_value_t = 0)]
    sample: u32,
    /// The number of files that run at the same time
    #[arg(long, default_value_t = 1)]
    jobs: u32,
}

/// Runs the tests that earlier runs have not run, and prints a line for each file. The outcomes are kept in
/// `target/jax-tests`. Fails if too few tests of a file pass, or if other tests fail than those that
/// `tests/python/jax_suite/expected.toml` lists.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let root = workspace::root();
    let results = root.join("target/jax-tests");
    std::fs::create_dir_all(&results)?;
    let tests = match &options.tests {
        Some(folder) => folder.clone(),
        None => sources(&root.join("target/jax-sources"))?.join("tests"),
    };
    let venv = Venv::with_requirements("jax-tests", REQUIREMENTS)?;
    if !options.report_only {
        let dist = root.join("dist");
        let wheel = match &options.library {
            Some(library) => wheel::pack(library, &dist)?,
            None => wheel::build(wheel::Profile::Release, &dist)?,
        };
        venv.install_wheel(&wheel)?;
    }
    let mut suite = venv.python();
    suite.arg(root.join("tests/python/jax_suite/run.py")).args(&options.files);
    suite.arg("--tests").arg(tests).arg("--baseline").arg(&options.baseline).arg("--results").arg(results);
    suite.arg("--jobs").arg(options.jobs.to_string()).arg("--sample").arg(options.sample.to_string());
    if options.report_only {
        suite.arg("--report-only");
    }
    if options.page {
        suite.arg("--page").arg(root.join("docs/jax-tests.md")).args(["--release", RELEASE]);
    }
    let (status, _) = watch(&mut suite)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// Returns the folder of JAX's sources at the release's tag.
fn sources(folder: &std::path::Path) -> Result<PathBuf> {
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
