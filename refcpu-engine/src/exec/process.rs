//! The devices of a run.

use crate::plan::Plan;

/// A device of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The replica of the device.
    pub replica: usize,
    /// The partition of the device.
    pub partition: usize,
}

impl Process {
    /// Returns the process of a lane of a plan.
    pub(super) fn of_lane(plan: &Plan, lane: usize) -> Self {
        let partitions = (plan.lanes() / plan.num_replicas.max(1)).max(1);
        Self { replica: lane / partitions, partition: lane % partitions }
    }
}
