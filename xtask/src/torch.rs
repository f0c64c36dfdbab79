//! `cargo xtask test-torch`: tests refcpu with PyTorch/XLA.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::environment::run::watch;
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// The newest PyTorch/XLA, and the release of PyTorch that it requires. There are no smaller packages of
/// these without CUDA.
const REQUIREMENTS: &str = "torch==2.9.1\ntorch_xla==2.9.0\nnumpy==2.4.6\npytest==9.2.0\n";

/// The arguments of the task.
#[derive(Args)]
pub(crate) struct Options {
    /// Test this build of refcpu instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Builds refcpu, and runs each file of `tests/python/torch_xla` in its own process, because PyTorch selects
/// its devices once. Then runs the programs again as StableHLO.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let library = workspace::release_refcpu(options.library.as_deref())?;
    let venv = Venv::with_requirements("torch", REQUIREMENTS)?;
    let folder = workspace::root().join("tests/python/torch_xla");
    let mut all_passed = true;
    for (file, stablehlo) in [
        ("test_programs.py", false),
        ("test_programs.py", true),
        ("test_devices.py", false),
        ("test_replicas.py", false),
    ] {
        let mut pytest = venv.python();
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).arg(folder.join(file));
        pytest.env("TEST_REFCPU", &library);
        if stablehlo {
            pytest.env("XLA_STABLEHLO_COMPILE", "1");
        }
        let (status, _) = watch(&mut pytest)?;
        all_passed &= status.success();
    }
    Ok(ExitCode::from(u8::from(!all_passed)))
}
