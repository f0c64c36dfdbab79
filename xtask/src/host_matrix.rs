//! `cargo xtask test-hosts`: tests one shared library with many releases of JAX.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;

use crate::environment::python::Python;
use crate::environment::run::watch;
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// The releases of jaxlib, and the minor version of the oldest Python 3 (from 3.11) that each supports: the
/// oldest release that a plugin built today supports, and the last one of each later minor version.
const RELEASES: &[(&str, u32)] = &[
    ("0.4.30", 11),
    ("0.4.35", 11),
    ("0.5.3", 11),
    ("0.6.2", 11),
    ("0.7.2", 11),
    ("0.8.3", 11),
    ("0.9.2", 11),
    ("0.10.2", 11),
    ("0.11.2", 12),
    ("0.12.0.1", 12),
];

/// The scripts of `tests/python` that run with each release, and the number of devices that each is for.
const SCRIPTS: &[(&str, &str)] = &[("smoke.py", "1"), ("smoke_devices.py", "8")];

/// Returns the releases of jaxlib, the oldest first.
pub(crate) fn releases() -> impl Iterator<Item = &'static str> {
    RELEASES.iter().map(|&(release, _)| release)
}

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Test only this release, such as 0.6.2; can be given several times
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(releases()))]
    only: Vec<String>,
    /// Test this build of refcpu instead of building it
    #[arg(long)]
    library: Option<PathBuf>,
}

/// Runs the scripts on refcpu with each release, without and with 64-bit types, and prints a table.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let library = workspace::release_refcpu(options.library.as_deref())?;
    let mut rows = Vec::new();
    let mut failed = 0;
    for release in releases() {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == release) {
            continue;
        }
        println!("\n== jaxlib {release}");
        let venv = environment(release);
        for (script, devices) in SCRIPTS {
            for x64 in ["0", "1"] {
                let started = Instant::now();
                let outcome = venv.as_ref().map_err(|error| format!("{error:#}")).and_then(|venv| {
                    let mut command = smoke(venv, &library, script);
                    command.env("REFCPU_NUM_DEVICES", devices).env("JAX_ENABLE_X64", x64);
                    outcome(&mut command).map_err(|error| format!("{error:#}"))
                });
                failed += usize::from(outcome.is_err());
                let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
                let (seconds, Ok(text) | Err(text)) = (started.elapsed().as_secs_f64(), outcome);
                rows.push(format!("{release:<9} {x64:<4} {verdict:<7} {seconds:5.1} s  {script}: {text}"));
            }
        }
    }
    println!("\njaxlib    x64  result     time  smoke test");
    println!("{}\n{} passed, {failed} failed", rows.join("\n"), rows.len() - failed);
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Returns the command that runs a script of `tests/python` on refcpu in an environment.
fn smoke(venv: &Venv, library: &Path, script: &str) -> Command {
    let root = workspace::root();
    let mut command = venv.python();
    command
        .arg(root.join("tests/python").join(script))
        .env("PJRT_NAMES_AND_LIBRARY_PATHS", format!("refcpu:{}", library.display()))
        // This is the Python part of the package, which must support every release too. It does not contain
        // the library.
        .env("PYTHONPATH", root.join("examples/refcpu/python"))
        .env("JAX_PLATFORMS", "refcpu")
        // 0.4.30 requires the plugin's version to equal its own unless this variable is set. Later releases
        // ignore it.
        .env("ENABLE_PJRT_COMPATIBILITY", "1");
    command
}

/// Runs a script, and returns the last line of its output.
///
/// # Errors
/// Returns an error with the last line and the exit status if the script fails.
fn outcome(command: &mut Command) -> Result<String> {
    let (status, text) = watch(command)?;
    let last = text.lines().last().unwrap_or("no output").to_owned();
    if status.success() { Ok(last) } else { Err(anyhow::anyhow!("{last} ({status})")) }
}

/// Returns the virtual environment of a release.
pub(crate) fn environment(release: &str) -> Result<Venv> {
    let minor =
        RELEASES.iter().find(|&&(found, _)| found == release).context("the release is not in the list")?.1;
    // jax.export of early releases needs absl-py, but does not declare this dependency.
    let requirements =
        format!("jax=={release}\njaxlib=={release}\nnumpy==2.4.6\nscipy==1.17.1\nabsl-py==2.5.1\n");
    Venv::with_python(Python::at_least(minor)?, &format!("jax-{release}"), &requirements)
}
