//! `cargo xtask differential`: runs random programs on refcpu, on XLA's CPU backend and on StableHLO's
//! reference interpreter.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::environment::run::watch;
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// The number of programs
    #[arg(long, default_value_t = 1000)]
    programs: u64,
    /// Seed of the random programs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The number of the first program
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Generate only programs about this operation, such as `reduce_window`
    #[arg(long)]
    only: Option<String>,
    /// Generate only programs about this element type, such as `bf16` or `quantized`
    #[arg(long)]
    element: Option<String>,
    /// Fail if an operation was tested fewer times on an element type
    #[arg(long, default_value_t = 0)]
    at_least: u64,
    /// File that accumulates how often each operation was tested, for runs in several parts (see --start)
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
}

/// Runs the programs, and prints the differences and how often each operation was tested.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut command = driver(options.programs, options.seed)?;
    command.args(["--start", &options.start.to_string(), "--at-least", &options.at_least.to_string()]);
    for (name, value) in [("--only", &options.only), ("--element", &options.element)] {
        if let Some(value) = value {
            command.args([name, value.as_str()]);
        }
    }
    if let Some(file) = &options.counts {
        command.arg("--counts").arg(std::path::absolute(file)?);
    }
    let (status, _) = watch(&mut command)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// Builds everything, and returns the command that compares this number of programs. Failing programs are
/// written to `target/differential`.
fn driver(programs: u64, seed: u64) -> Result<Command> {
    workspace::build_dev()?;
    let mut command = Venv::of_tests()?.python();
    command
        .arg(workspace::root().join("tests/python/differential/run.py"))
        .arg(workspace::target().join("debug/examples/differential"))
        .args(["--programs", &programs.to_string(), "--seed", &seed.to_string(), "--failures"])
        .arg(workspace::root().join("target/differential"));
    Ok(command)
}
