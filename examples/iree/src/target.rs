//! The kinds of devices.

use pjrt_plugin::{Error, Result};

/// A kind of devices: a driver of IREE, and how it starts calls.
#[derive(Debug)]
pub(crate) struct Target {
    /// The name of the driver, which is the kind of its devices.
    pub(crate) driver: &'static str,
    /// `true` if the function that starts a call may wait for the device.
    pub(crate) can_block: bool,
    /// `true` if that function runs the program. It waits for the arguments before.
    pub(crate) runs_program: bool,
}

/// All kinds.
const TARGETS: &[Target] = &[
    Target { driver: "local-task", can_block: false, runs_program: false },
    Target { driver: "local-sync", can_block: false, runs_program: true },
    Target { driver: "vulkan", can_block: true, runs_program: false },
    Target { driver: "cuda", can_block: true, runs_program: false },
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
}
