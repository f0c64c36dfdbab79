//! The devices of a run.

/// A device of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The replica of the device.
    pub replica: usize,
    /// The partition of the device.
    pub partition: usize,
}
