//! `cargo xtask sharding-agreement`: the shardings of JAX's results on refcpu and on XLA's CPU backend, with 8 devices.

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
    /// Only programs of this partitioner: shardy or gspmd
    #[arg(long)]
    partitioner: Vec<String>,
    /// Only programs on this mesh: 2, 4, 8 or 2x4; can be given several times
    #[arg(long)]
    mesh: Vec<String>,
    /// Only functions whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Take the results of XLA from the last run with the same options, if there was one
    #[arg(long)]
    keep: bool,
    /// Test this build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Runs the programs on both backends, and prints the differences.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let library = workspace::release_refcpu(options.library.as_deref())?;
    let mut compare = Venv::of_tests()?.python();
    compare
        .arg(workspace::root().join("tests/python/sharding_agreement/run.py"))
        .arg(workspace::target().join("sharding-agreement"))
        .env("PJRT_NAMES_AND_LIBRARY_PATHS", format!("refcpu:{}", library.display()))
        .env("PYTHONPATH", workspace::root().join("examples/refcpu/python"));
    for (name, values) in [("--partitioner", &options.partitioner), ("--mesh", &options.mesh)] {
        for value in values {
            compare.args([name, value.as_str()]);
        }
    }
    if let Some(only) = &options.only {
        compare.args(["--only", only]);
    }
    if options.keep {
        compare.arg("--keep");
    }
    let (status, _) = watch(&mut compare)?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
