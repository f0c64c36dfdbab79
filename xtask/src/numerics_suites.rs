//! `cargo xtask numerics-suites`: the suites of `cargo pjrt numerics`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::environment::run::watch;
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Evaluate only this operation or model and write nothing; can be given several times
    #[arg(long)]
    only: Vec<String>,
    /// Write a suite from the programs of this corpus instead, which `cargo pjrt numerics PLUGIN --suite FILE` runs
    #[arg(long, value_name = "FOLDER", requires = "out", conflicts_with = "only")]
    corpus: Option<PathBuf>,
    /// The file for the suite of a corpus
    #[arg(long, value_name = "FILE", requires = "corpus")]
    out: Option<PathBuf>,
}

/// Evaluates the programs of the suites, compares the results with XLA's CPU backend, and writes cargo-pjrt/data/numerics.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let venv = Venv::of_tests()?;
    let scripts = workspace::root().join("tests/python/numerics");
    let mut make = venv.python();
    if let (Some(corpus), Some(out)) = (&options.corpus, &options.out) {
        let (status, _) = watch(make.arg(scripts.join("from_corpus.py")).arg(corpus).arg(out))?;
        return Ok(ExitCode::from(u8::from(!status.success())));
    }
    make.arg(scripts.join("make.py"));
    for name in &options.only {
        make.arg("--only").arg(name);
    }
    let (status, _) = watch(&mut make)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
