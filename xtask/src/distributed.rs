//! `cargo xtask gloo` and `cargo xtask demo-distributed`: computations of several processes, which Gloo connects.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::environment::run::{output, run};
use crate::environment::venv::Venv;
use crate::environment::workspace::{self, cargo, root, target};
use crate::{gloo, host_matrix, wheel};

/// The releases of JAX, besides that of the tests, in which the values of several processes are compared with XLA's.
const OTHER_RELEASES: &[&str] = &["0.6.2", "0.12.0.1"];

/// The packages of the programs that save checkpoints.
const CHECKPOINT_REQUIREMENTS: &str =
    "jax==0.10.2\njaxlib==0.10.2\nnumpy==2.4.6\nscipy==1.17.1\norbax-checkpoint==0.12.8\n";

/// The arguments of `cargo xtask gloo`.
#[derive(Args)]
pub(crate) struct GlooOptions {
    /// Run the tests of several processes, and compare with XLA's CPU backend over Gloo
    #[arg(long)]
    test: bool,
    /// Time all-reduces in two and four processes, beside XLA's CPU backend over Gloo
    #[arg(long)]
    times: bool,
    /// Time methods of an all-reduce in two, four and eight processes, and predict the times for up to 4,096
    #[arg(long)]
    scale: bool,
    /// Use this build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// The arguments of `cargo xtask demo-distributed`.
#[derive(Args)]
pub(crate) struct DemoOptions {
    /// The number of processes that are killed at random moments
    #[arg(long, default_value_t = 6)]
    kills: u32,
    /// Use this build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Builds the library, and runs its tests and timings.
pub(crate) fn build(options: &GlooOptions) -> Result<()> {
    let gloo = gloo::library()?;
    println!("{}", gloo.display());
    if options.scale {
        predict(&gloo)?;
    }
    if !options.test && !options.times {
        return Ok(());
    }
    let venv = Venv::of_tests()?;
    let refcpu = workspace::release_refcpu(options.library.as_deref())?;
    if options.test {
        run(cargo().args(["test", "--quiet", "--package", "refcpu-gloo"]).env("REFCPU_GLOO", &gloo))?;
        let mut command = venv.python();
        command.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "test_distributed.py"]);
        command.current_dir(root().join("tests/python")).env("TEST_DISTRIBUTED", "all");
        run(with_libraries(&mut command, &refcpu, &gloo))?;
        compare_in_releases(&refcpu, &gloo)?;
        restart_from_checkpoints(&refcpu, &gloo)?;
    }
    if options.times {
        let mut command = venv.python();
        command.arg(root().join("tests/python/distributed/compare_times.py"));
        run(with_libraries(&mut command, &refcpu, &gloo))?;
    }
    Ok(())
}

/// Times methods of an all-reduce, and predicts the times for many processes.
fn predict(gloo: &Path) -> Result<()> {
    let mut reductions = cargo();
    reductions.args(["run", "--quiet", "--release", "--package", "refcpu-gloo", "--example", "reductions"]);
    let times = output(reductions.args(["--", "2", "4", "8"]).env("REFCPU_GLOO", gloo))?;
    let file = gloo.with_file_name("reductions.txt");
    std::fs::write(&file, times).with_context(|| format!("cannot write {}", file.display()))?;
    let mut command = Venv::of_tests()?.python();
    run(command.arg(root().join("tests/python/distributed/scale.py")).arg(file))
}

/// Compares the values of several processes with XLA's in other releases of JAX than that of the tests.
fn compare_in_releases(refcpu: &Path, gloo: &Path) -> Result<()> {
    for release in OTHER_RELEASES {
        let mut command = host_matrix::environment(release)?.python();
        command.arg(root().join("tests/python/distributed/values.py"));
        run(with_libraries(&mut command, refcpu, gloo))?;
    }
    Ok(())
}

/// Installs the wheel with Gloo, and trains with several processes, which restart from checkpoints of orbax with other numbers of
/// processes.
fn restart_from_checkpoints(refcpu: &Path, gloo: &Path) -> Result<()> {
    let venv = Venv::with_requirements("distributed", CHECKPOINT_REQUIREMENTS)?;
    venv.install_wheel(&wheel::pack_with_gloo(refcpu, gloo, &target().join("distributed-wheel"))?)?;
    let mut command = venv.python();
    // The wheel must be enough.
    command.env_remove("REFCPU_GLOO").env_remove("PJRT_NAMES_AND_LIBRARY_PATHS");
    run(command
        .arg(root().join("tests/python/distributed/elastic.py"))
        .arg(target().join("venvs/distributed")))
}

/// Trains in several processes, and kills some of them.
pub(crate) fn demo(options: &DemoOptions) -> Result<()> {
    let gloo = gloo::library()?;
    let refcpu = workspace::release_refcpu(options.library.as_deref())?;
    let venv = Venv::with_requirements_file("demo", "examples/refcpu/python/demo/requirements.txt")?;
    let program = root().join("examples/refcpu/python/demo/distributed.py");
    let mut command = venv.python();
    command.arg(root().join("tests/python/distributed/demo.py")).arg(program).arg(options.kills.to_string());
    run(with_libraries(&mut command, &refcpu, &gloo))
}

/// Adds the variables with which JAX loads a build of refcpu that loads the library, and the Python package of the repository.
fn with_libraries<'a>(command: &'a mut Command, refcpu: &Path, gloo: &Path) -> &'a mut Command {
    let named = format!("refcpu:{}", refcpu.display());
    command.env("PJRT_NAMES_AND_LIBRARY_PATHS", named).env("REFCPU_GLOO", gloo);
    command.env("PYTHONPATH", root().join("examples/refcpu/python"))
}
