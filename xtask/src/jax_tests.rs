//! `cargo xtask jax-tests`: JAX's own tests on refcpu.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Args;

use crate::run::{run as run_command, watch};
use crate::venv::Venv;
use crate::{wheel, workspace};

/// The release whose tests are run: what the other Python tests use.
const TAG: &str = "jax-v0.10.2";

/// What the page calls it.
const RELEASE: &str = "JAX 0.10.2";

/// What JAX's tests import, as the release's own list has it.
const REQUIREMENTS: &str = "jax==0.10.2\njaxlib==0.10.2\nnumpy==2.4.6\nscipy==1.17.1\nabsl-py\ncloudpickle\nfilelock\n\
    flatbuffers\nhypothesis==6.142.1\nmpmath==1.3.0\npillow>=11.3\nportpicker\npytest<9.0\nrich\nmatplotlib\nauditwheel\n";

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// Names of test files without `.py`; all that the baseline has when none is given
    files: Vec<String>,
    /// The folder `tests` of JAX's sources; fetched with git when it is not given
    #[arg(long)]
    tests: Option<PathBuf>,
    /// Outcome of every test on XLA's CPU backend: JSON of file, test, and `pass`, `skip` or `fail`
    #[arg(long)]
    baseline: PathBuf,
    /// refcpu's shared library, if it is not to be built
    #[arg(long)]
    library: Option<PathBuf>,
    /// Run nothing; compare what earlier runs found
    #[arg(long)]
    report_only: bool,
    /// Write docs/jax-tests.md from what all runs so far have found
    #[arg(long)]
    page: bool,
    /// How many tests of each file to run; all by default
    #[arg(long, default_value_t = 0)]
    sample: u32,
    /// How many files run at a time
    #[arg(long, default_value_t = 1)]
    jobs: u32,
}

/// Runs what earlier runs have left, and prints a line for each file. Results are kept in `target/jax-tests`. Fails if
/// too few tests of a file pass, or if other tests fail than `tests/python/jax_suite/expected.toml` lists.
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

/// JAX's sources at the release's tag.
fn sources(folder: &std::path::Path) -> Result<PathBuf> {
    if !folder.exists() {
        run_command(
            Command::new("git")
                .args(["clone", "--depth", "1", "--branch", TAG, "https://github.com/jax-ml/jax"])
                .arg(folder),
        )
        .context("cannot fetch JAX's sources; give the folder of its tests with --tests")?;
    }
    Ok(folder.to_owned())
}
