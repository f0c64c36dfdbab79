//! `cargo xtask test-lowerings`: reads functions as many releases of JAX lower them, and compares with MLIR's
//! reader.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::environment::run::{run as run_command, watch};
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::host_matrix;

/// The oldest release that the functions support.
const OLDEST: &str = "0.4.35";

/// The release of the test environment, whose MLIR cannot read what later releases write.
const NEWEST: &str = "0.10.2";

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Test only this release, such as 0.6.2; can be given several times
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(releases()))]
    only: Vec<String>,
}

fn releases() -> Vec<&'static str> {
    let all: Vec<&str> = host_matrix::releases().collect();
    let place = |release: &str| all.iter().position(|&found| found == release);
    let (oldest, newest) = (place(OLDEST).unwrap_or(0), place(NEWEST).unwrap_or(all.len() - 1));
    all[oldest..=newest].to_vec()
}

/// Lowers the functions of `tests/python/lowerings.py` with each release, and compares the results of MLIR
/// and of `pjrt-stablehlo` reading them.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    // Only the reader is needed.
    run_command(workspace::cargo().args([
        "build",
        "--quiet",
        "--package",
        "pjrt-stablehlo",
        "--example",
        "to_text",
    ]))?;
    let venv = Venv::of_tests()?;
    let mut agreement = agreement(&venv);
    agreement.arg("--only-lowerings").arg("--every-version");
    for release in releases() {
        if options.only.is_empty() || options.only.iter().any(|only| only == release) {
            println!("\n== jaxlib {release}");
            agreement.arg("--lowerings").arg(write(&host_matrix::environment(release)?, release)?);
        }
    }
    let (status, _) = watch(&mut agreement)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// Writes the lowerings of an environment's JAX to a folder with this name, and returns its path.
pub(crate) fn write(venv: &Venv, name: &str) -> Result<PathBuf> {
    let folder = workspace::root().join("target/lowerings").join(name);
    let script = workspace::root().join("tests/python/lowerings.py");
    run_command(venv.python().arg(script).arg(&folder).arg("--hlo"))?;
    Ok(folder)
}

/// Returns the command that compares with MLIR in an environment's jaxlib. The caller adds the folders to
/// compare.
pub(crate) fn agreement(venv: &Venv) -> Command {
    let mut command = venv.python();
    command
        .arg(workspace::root().join("tests/python/mlir_agreement.py"))
        .arg(workspace::target().join("debug/examples/to_text"));
    command
}
