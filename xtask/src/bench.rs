//! `cargo xtask bench`: times refcpu beside XLA's CPU backend on random programs.

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
    /// Measure only programs of this kind: chain, nest or loop; can be given several times
    #[arg(long)]
    kind: Vec<String>,
    /// The number of programs of each kind
    #[arg(long, default_value_t = 30)]
    count: u32,
    /// The seed of the first program
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The seconds for each program and backend
    #[arg(long, default_value_t = 0.3)]
    seconds: f64,
    /// Measure this release build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Runs random programs on both backends, and writes the times and a chart to the target folder.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let library = workspace::release_refcpu(options.library.as_deref())?;
    let venv = Venv::with_requirements_file("bench", "tests/python/bench/requirements.txt")?;
    let mut bench = venv.python();
    bench
        .arg(workspace::root().join("tests/python/bench/run.py"))
        .arg(workspace::target().join("bench"))
        .args(["--count", &options.count.to_string(), "--seed", &options.seed.to_string()])
        .args(["--seconds", &options.seconds.to_string()])
        .env("JAX_PLATFORMS", "refcpu,cpu")
        .env("PJRT_NAMES_AND_LIBRARY_PATHS", format!("refcpu:{}", library.display()));
    for kind in &options.kind {
        bench.args(["--kind", kind]);
    }
    let (status, _) = watch(&mut bench)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
