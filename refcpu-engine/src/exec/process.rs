//! Devices of a run.

/// One device of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The replica of the device.
    pub replica: usize,
    /// The partition of the device.
    pub partition: usize,
}
