//! `cargo xtask differential`: random programs on refcpu, on XLA's CPU backend and on StableHLO's reference interpreter.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::run::watch;
use crate::test::test_environment;
use crate::workspace;

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// How many programs
    #[arg(long, default_value_t = 1000)]
    programs: u64,
    /// What the programs depend on
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The first program's number
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Only programs about this operation, such as `reduce_window`
    #[arg(long)]
    only: Option<String>,
    /// Only programs about this element type, such as `bf16` or `quantized`
    #[arg(long)]
    element: Option<String>,
    /// Fail when an operation was tested on an element type less often
    #[arg(long, default_value_t = 0)]
    at_least: u64,
    /// How often earlier parts of a run tested each operation, to which this part adds: for runs in parts, by --start
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,
}

/// Runs the programs, and prints what differs and how often each operation was tested.
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

/// The comparison of so many programs, with everything built. Failing programs go to `target/differential`.
fn driver(programs: u64, seed: u64) -> Result<Command> {
    workspace::build_dev()?;
    let mut command = test_environment()?.python();
    command
        .arg(workspace::root().join("tests/python/differential/run.py"))
        .arg(workspace::target().join("debug/examples/differential"))
        .args(["--programs", &programs.to_string(), "--seed", &seed.to_string(), "--failures"])
        .arg(workspace::root().join("target/differential"));
    Ok(command)
}
