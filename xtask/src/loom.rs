//! `cargo xtask loom`: checks the models of events, buffers and executions under every interleaving of their
//! threads.

use anyhow::Result;

use crate::environment::run::run;
use crate::environment::workspace::{cargo, target};

/// Runs all models. The first one that fails prints the interleaving.
pub(crate) fn models() -> Result<()> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--release", "--manifest-path", "pjrt-plugin/loom/Cargo.toml"]);
    run(command.arg("--target-dir").arg(target().join("loom")))
}
