//! `cargo xtask corpus`: programs with known results through refcpu.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::Args;

use crate::run::run;
use crate::workspace;

/// What to run.
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

/// The runner, built: an example of refcpu. Its corpus is chosen.
pub(crate) fn runner() -> Result<Command> {
    workspace::build_dev()?;
    let mut runner = Command::new(workspace::target().join("debug/examples/corpus"));
    runner.env("PJRT_CORPUS", folder().unwrap_or_else(|| workspace::root().join("tests/data")));
    Ok(runner)
}

/// The folder of a corpus outside of this repository.
pub(crate) fn folder() -> Option<PathBuf> {
    std::env::var_os("PJRT_CORPUS").map(PathBuf::from)
}
