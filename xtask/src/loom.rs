//! `cargo xtask loom`: the models of events, buffers and executions, in every order of their threads.

use anyhow::Result;

use crate::run::run;
use crate::workspace::{cargo, target};

/// Runs all models; the first that fails shows the order in which it does.
pub(crate) fn models() -> Result<()> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path", "pjrt-plugin/loom/Cargo.toml"]);
    run(command.arg("--target-dir").arg(target().join("loom")))
}
