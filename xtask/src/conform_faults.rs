//! `cargo xtask conform-faults`: every planted fault, seen by every check that could notice it.

use std::process::Command;

use anyhow::Result;

use crate::run::run;
use crate::workspace;

/// The test of the conformance kit with planted faults: each is seen by its own check and a few others. Of the whole workspace,
/// so that nothing is built a second time.
pub(crate) fn tests() -> Command {
    let mut command = workspace::cargo();
    command.args(["test", "--quiet", "--workspace", "--test", "faults"]);
    command
}

/// The same, where every check that calls the faulty function sees the fault, in hello and in refcpu; prints how many others
/// failed with each.
pub(crate) fn whole_matrix() -> Result<()> {
    workspace::build_dev()?;
    let refcpu = workspace::shared_library("debug", "refcpu");
    run(tests().args(["--", "--nocapture"]).env("FAULT_MATRIX", "full").env("TEST_REFCPU", refcpu))
}
