//! `cargo xtask corpus`: runs programs with known results on refcpu.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::environment::run::run;
use crate::environment::workspace;

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Arguments of the runner, after `--`; `-- --help` lists them
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// Runs the corpus that `PJRT_CORPUS` names, or the sample in this repository.
pub(crate) fn run_with(options: &Options) -> Result<()> {
    run(runner()?.args(&options.arguments))
}

/// Builds the runner, an example of refcpu, and returns the command that runs it on the corpus.
pub(crate) fn runner() -> Result<Command> {
    workspace::build_dev()?;
    let mut runner = Command::new(workspace::target().join("debug/examples/corpus"));
    runner.env("PJRT_CORPUS", folder().unwrap_or_else(|| workspace::root().join("tests/data")));
    Ok(runner)
}

/// Returns the folder of a corpus outside this repository.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os("PJRT_CORPUS").map(PathBuf::from)
}
