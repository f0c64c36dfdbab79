//! `cargo xtask needs-programs`: writes the programs that `cargo pjrt needs` contains.

use anyhow::Result;

use crate::environment::run::run as run_command;
use crate::environment::venv::Venv;
use crate::environment::workspace;

/// Lowers the functions of `tests/python/needs_programs.py` with the JAX of the tests.
pub(crate) fn run() -> Result<()> {
    let script = workspace::root().join("tests/python/needs_programs.py");
    let folder = workspace::root().join("cargo-pjrt/data/needs");
    run_command(Venv::of_tests()?.python().arg(script).arg(folder).env("JAX_PLATFORMS", "cpu"))
}
