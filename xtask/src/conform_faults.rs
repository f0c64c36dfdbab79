//! `cargo xtask conform-faults`: runs every check that could detect a fault with each fault of the
//! conformance kit's tests, and tests `cargo pjrt numerics` with wrong arithmetic.

use anyhow::Result;

use crate::environment::run::run;
use crate::environment::workspace;

/// Tries each fault of the kit's tests with every check that calls the faulty function, in hello, in the accelerator and in
/// refcpu, prints the number of other checks that each fault makes fail, and tries each wrong operation with all programs of
/// `cargo pjrt numerics`. With optimized builds it takes about two hours on two cores.
pub(crate) fn whole_matrix() -> Result<()> {
    workspace::build_optimized()?;
    let refcpu = workspace::shared_library("release", "refcpu");
    let accelerator = workspace::shared_library("release", "accelerator_pjrt");
    let tests = ["--test", "faults", "--test", "random_faults", "--test", "numerics"];
    let mut command = workspace::cargo();
    command.args(["test", "--quiet", "--workspace", "--release", "--no-fail-fast"]).args(tests);
    command.args(["--", "--nocapture"]).env("FAULT_MATRIX", "full");
    run(command.env("TEST_REFCPU", refcpu).env("TEST_ACCELERATOR", accelerator))
}
