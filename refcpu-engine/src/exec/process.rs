//! Devices of a run.

/// One device of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Number of its replica.
    pub replica: usize,
    /// Number of its partition.
    pub partition: usize,
}
