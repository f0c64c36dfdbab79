//! `cargo xtask test-torch`: PyTorch/XLA on refcpu.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::run::watch;
use crate::venv::Venv;
use crate::workspace;

/// The newest PyTorch/XLA, and the PyTorch that it is made for. Of these there are no smaller packages without CUDA.
const REQUIREMENTS: &str = "torch==2.9.1\ntorch_xla==2.9.0\nnumpy==2.4.6\npytest==9.2.0\n";

/// What to run.
#[derive(Args)]
pub(crate) struct Options {
    /// A build of refcpu to test, instead of building it
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// Builds refcpu, and runs each file of `tests/python/torch_xla` in a process of its own, as PyTorch chooses its devices once;
/// then the programs again, sent as StableHLO.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let library = workspace::release_refcpu(options.library.as_deref())?;
    let venv = Venv::with_requirements("torch", REQUIREMENTS)?;
    let folder = workspace::root().join("tests/python/torch_xla");
    let mut all_passed = true;
    for (file, stablehlo) in
        [("test_programs.py", false), ("test_programs.py", true), ("test_devices.py", false)]
    {
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
