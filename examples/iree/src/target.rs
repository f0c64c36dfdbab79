//! The kinds of devices, and the flags with which the compiler makes code for them.

use iree_runtime::processor_features;
use pjrt_plugin::{Error, Result};

/// A kind of devices: a driver of IREE, and the flags of the compiler for it.
#[derive(Debug)]
pub(crate) struct Target {
    /// The name of the driver, which is the kind of its devices.
    pub(crate) driver: &'static str,
    pub(crate) flags: &'static [&'static str],
    /// `true` if the function that starts a call may wait for the device.
    pub(crate) can_block: bool,
    /// `true` if that function runs the program. It waits for the arguments before.
    pub(crate) runs_program: bool,
}

const PROCESSOR: &[&str] = &[
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
];
const VULKAN: &[&str] = &["--iree-hal-target-device=vulkan"];
const CUDA: &[&str] = &["--iree-hal-target-device=cuda"];

/// All kinds.
const TARGETS: &[Target] = &[
    Target { driver: "local-task", flags: PROCESSOR, can_block: false, runs_program: false },
    Target { driver: "local-sync", flags: PROCESSOR, can_block: false, runs_program: true },
    Target { driver: "vulkan", flags: VULKAN, can_block: true, runs_program: false },
    Target { driver: "cuda", flags: CUDA, can_block: true, runs_program: false },
];

impl Target {
    /// Returns the kind with this name.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if there is none.
    pub(crate) fn named(name: &str) -> Result<&'static Self> {
        TARGETS.iter().find(|target| target.driver == name).ok_or_else(|| {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.driver).collect();
            let known = known.join(", ");
            Error::invalid_argument(format!(
                "IREE has no devices of the kind '{name}'; expected one of {known}"
            ))
        })
    }

    /// Returns the kind with what identifies its code: code for processors uses all features of that of the host.
    pub(crate) fn code(&self) -> String {
        let features = if self.flags == PROCESSOR { processor_features() } else { 0 };
        format!("{} {features:016x}", self.driver)
    }
}
