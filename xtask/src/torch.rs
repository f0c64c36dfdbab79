//! `cargo xtask test-torch`: tests refcpu with PyTorch/XLA.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::environment::run::watch;
use crate::environment::venv::Venv;
use crate::environment::workspace;
use crate::host_suite::{self, Suite};
use crate::wheel;

/// The newest PyTorch/XLA, and the release of PyTorch that it requires. There are no smaller packages of
/// these without CUDA.
const REQUIREMENTS: &str = "torch==2.9.1\ntorch_xla==2.9.0\nnumpy==2.4.6\npytest==9.2.0\n";

/// torchax runs PyTorch's operations on JAX.
const TORCHAX_REQUIREMENTS: &str =
    "torch==2.9.1\ntorchax==0.0.13\njax==0.7.2\njaxlib==0.7.2\noptax\nnumpy==2.4.6\npytest==9.2.0\n";

/// The packages that PyTorch/XLA's own tests import in addition. Its second backend of `torch.compile` requires JAX and Flax.
const SUITE_REQUIREMENTS: &str = "absl-py\nexpecttest\nflax==0.11.2\njax==0.7.1\njaxlib==0.7.1\nparameterized\nrich\ntorchvision==0.24.1\n";

/// The release on the page of its own tests.
const RELEASE: &str = "PyTorch/XLA 2.9.0";

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    suite: host_suite::Options,
    /// Run PyTorch/XLA's own tests, from the folder `test` of its sources at the tag v2.9.0
    #[arg(long = "suite", value_name = "FOLDER")]
    tests: Option<PathBuf>,
}

/// Runs the programs of this repository, or PyTorch/XLA's own tests.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    match &options.tests {
        Some(tests) => run_suite(tests, &options.suite),
        None => run_programs(options.suite.library.as_deref()),
    }
}

fn run_suite(tests: &Path, options: &host_suite::Options) -> Result<ExitCode> {
    let venv = Venv::with_requirements("torch-tests", &format!("{REQUIREMENTS}{SUITE_REQUIREMENTS}"))?;
    let baseline = workspace::root().join("tests/python/host_suites/torch_xla.json");
    let (baseline, page) = (baseline.as_path(), "torch-tests.md");
    host_suite::run(&Suite { host: "torch_xla", release: RELEASE, tests, baseline, page }, &venv, options)
}

/// Installs the wheel of refcpu, and runs each file of `tests/python/torch_xla` in its own process, because
/// PyTorch selects its devices once. Then runs the programs again as StableHLO, and those of `cargo pjrt test`.
fn run_programs(library: Option<&Path>) -> Result<ExitCode> {
    let library = workspace::release_refcpu(library)?;
    let venv = Venv::with_requirements("torch", REQUIREMENTS)?;
    let wheel = wheel::pack(&library, &workspace::root().join("dist"))?;
    venv.install_wheel(&wheel)?;
    let folder = workspace::root().join("tests/python/torch_xla");
    let mut all_passed = true;
    for (file, stablehlo) in [
        ("test_programs.py", false),
        ("test_programs.py", true),
        ("test_devices.py", false),
        ("test_replicas.py", false),
        ("test_package.py", false),
    ] {
        let mut pytest = venv.python();
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(folder.join(file));
        if stablehlo {
            pytest.env("XLA_STABLEHLO_COMPILE", "1");
        }
        let (status, _) = watch(&mut pytest)?;
        all_passed &= status.success();
    }
    let mut programs = workspace::test_in_host(&library, "torch_xla");
    all_passed &= watch(programs.arg("--python").arg(venv.program("python")))?.0.success();
    all_passed &= train_with_torchax(&wheel)?;
    Ok(ExitCode::from(u8::from(!all_passed)))
}

/// Trains a model of PyTorch on refcpu by means of JAX. Returns whether the test passed.
fn train_with_torchax(wheel: &Path) -> Result<bool> {
    let venv = Venv::with_requirements("torchax", TORCHAX_REQUIREMENTS)?;
    venv.install_wheel(wheel)?;
    let mut pytest = venv.python();
    pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.arg(workspace::root().join("tests/python/torchax"));
    Ok(watch(&mut pytest)?.0.success())
}
