//! `cargo xtask conform-faults`: runs every check that could detect a fault with each fault of the
//! conformance kit's tests, and tests `cargo pjrt numerics` with wrong arithmetic.

use std::process::Command;

use anyhow::Result;

use crate::environment::run::run;
use crate::environment::workspace;

/// Returns the command that tests the conformance kit with faults; each fault is tried with its own check and
/// a few others, and each wrong operation with all programs of `cargo pjrt numerics`. It also runs the tests of
/// `cargo pjrt doctor`. The command builds the whole workspace, so that nothing is built twice.
pub(crate) fn tests() -> Command {
    let mut command = workspace::cargo();
    command.args([
        "test",
        "--quiet",
        "--workspace",
        "--test",
        "faults",
        "--test",
        "random_faults",
        "--test",
        "numerics",
        "--test",
        "doctor",
    ]);
    command
}

/// Runs the same test with every check that calls the faulty function, in hello, in the accelerator and in
/// refcpu, and prints the number of other checks that each fault makes fail. It takes about an hour, with optimized builds.
pub(crate) fn whole_matrix() -> Result<()> {
    workspace::build_optimized()?;
    let refcpu = workspace::shared_library("release", "refcpu");
    let accelerator = workspace::shared_library("release", "accelerator_pjrt");
    let mut command = tests();
    command.args(["--release", "--no-fail-fast", "--", "--nocapture"]).env("FAULT_MATRIX", "full");
    run(command.env("TEST_REFCPU", refcpu).env("TEST_ACCELERATOR", accelerator))
}
