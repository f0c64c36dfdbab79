//! Runs a host's own tests on refcpu or another plugin, and compares their outcomes with those on XLA's CPU backend.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::environment::run::watch;
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::wheel;

/// The arguments that the suites of all hosts have.
#[derive(Args)]
// Groups are named after their structs, and a task's own struct has the same name.
#[group(skip)]
pub(crate) struct Options {
    /// Names of test files without `.py`; by default, all files of the baseline
    files: Vec<String>,
    /// Test this build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    pub(crate) library: Option<PathBuf>,
    /// Test another plugin than refcpu: the host's name for its platform
    #[arg(long, value_name = "NAME", requires = "wheel", conflicts_with_all = ["page", "library", "write_baseline"])]
    plugin: Option<String>,
    /// The wheel of the other plugin, which `cargo pjrt wheel` has built; it is installed with the packages that it requires
    #[arg(long, value_name = "FILE", requires = "plugin")]
    wheel: Option<PathBuf>,
    /// Run no tests; only compare the outcomes of earlier runs
    #[arg(long)]
    report_only: bool,
    /// Run the files on XLA's CPU backend instead, and add the outcomes to the baseline
    #[arg(long, conflicts_with = "page")]
    write_baseline: bool,
    /// Write the page of the book from the outcomes of all runs so far
    #[arg(long)]
    page: bool,
    /// The number of tests to run of each file; 0 runs all
    #[arg(long, default_value_t = 0)]
    sample: u32,
    /// The number of files that run at the same time
    #[arg(long, default_value_t = 1)]
    jobs: u32,
}

/// A host's tests.
pub(crate) struct Suite<'a> {
    /// The name of the host in `tests/python/host_suites/hosts.py`.
    pub(crate) host: &'a str,
    /// The name of the host's release on the page.
    pub(crate) release: &'a str,
    /// The folder of the tests in the host's sources.
    pub(crate) tests: &'a Path,
    /// Outcome of every test on XLA's CPU backend, as JSON of file, test, and `pass`, `skip` or `fail`.
    pub(crate) baseline: &'a Path,
    /// The name of the page in `docs/`.
    pub(crate) page: &'a str,
}

/// Runs the tests that earlier runs have not run, and prints a line for each file. The outcomes are kept in a
/// folder of `target/`. Fails if too few tests of a file pass, or if other tests fail than those that
/// the host's list in `tests/python/host_suites` names, which is that of refcpu.
pub(crate) fn run(suite: &Suite<'_>, venv: &Venv, options: &Options) -> Result<ExitCode> {
    let root = workspace::root();
    if !options.report_only {
        install(venv, options)?;
    }
    let own = options.plugin.as_deref().unwrap_or("refcpu");
    let platform = if options.write_baseline { "anchor" } else { own };
    let mut runner = venv.python();
    runner.arg(root.join("tests/python/host_suites/run.py")).args(&options.files);
    runner.args(["--host", suite.host]).arg("--tests").arg(suite.tests).arg("--baseline").arg(suite.baseline);
    runner.arg("--results").arg(root.join("target/host-suites").join(suite.host).join(platform));
    runner.arg("--jobs").arg(options.jobs.to_string()).arg("--sample").arg(options.sample.to_string());
    if options.report_only {
        runner.arg("--report-only");
    }
    if options.write_baseline {
        runner.arg("--write-baseline");
    }
    if let Some(plugin) = &options.plugin {
        runner.args(["--platform", plugin.as_str()]);
    }
    if options.page {
        runner.arg("--page").arg(root.join("docs").join(suite.page)).args(["--release", suite.release]);
    }
    let (status, _) = watch(&mut runner)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// Installs the wheel of the plugin.
fn install(venv: &Venv, options: &Options) -> Result<()> {
    let dist = workspace::root().join("dist");
    let wheel = match (&options.wheel, &options.library) {
        (Some(wheel), _) => {
            // The packages that the wheel requires are installed first, and then the wheel, even if its version is installed.
            venv.pip_install(&[&wheel.to_string_lossy()])?;
            std::path::absolute(wheel)?
        }
        (None, Some(library)) => wheel::pack(library, &dist)?,
        (None, None) => wheel::build(wheel::Profile::Release, &dist)?,
    };
    venv.install_wheel(&wheel)
}
