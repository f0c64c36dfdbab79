//! The assignment of a program's replicas and partitions to devices.

use crate::device::DeviceId;
use crate::error::{Error, Result};
use crate::proto;

/// The devices of a program, one for each partition of each replica.
///
/// ```
/// use pjrt_plugin::DeviceAssignment;
///
/// // Two replicas of two partitions.
/// let assignment = DeviceAssignment::new(2, 2, vec![0, 1, 2, 3])?;
/// assert_eq!(assignment.device(1, 0), Some(2));
/// assert_eq!(assignment.logical_id(2), Some((1, 0)));
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAssignment {
    replicas: usize,
    partitions: usize,
    devices: Vec<DeviceId>,
}

impl DeviceAssignment {
    /// Creates an assignment from the global ids of the devices, in row-major order of a `replicas` x `partitions` table.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the number of ids is zero or differs from `replicas * partitions`.
    pub fn new(replicas: usize, partitions: usize, devices: Vec<DeviceId>) -> Result<Self> {
        if replicas.checked_mul(partitions) != Some(devices.len()) || devices.is_empty() {
            return Err(Error::invalid_argument(format!(
                "a device assignment of {replicas} replicas and {partitions} partitions needs {} devices, and at least one; \
                 found {}",
                replicas.saturating_mul(partitions),
                devices.len()
            )));
        }
        Ok(Self { replicas, partitions, devices })
    }

    /// Returns the number of replicas.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.replicas
    }

    /// Returns the number of partitions of each replica.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// Returns the global ids of all devices, in row-major order.
    #[must_use]
    pub fn devices(&self) -> &[DeviceId] {
        &self.devices
    }

    /// Returns the device of a partition of a replica, or `None` if an index is out of range.
    #[must_use]
    pub fn device(&self, replica: usize, partition: usize) -> Option<DeviceId> {
        (partition < self.partitions)
            .then(|| self.devices.get(replica.checked_mul(self.partitions)?.checked_add(partition)?).copied())
            .flatten()
    }

    /// Returns the replica and the partition that run on a device, or `None` if the device is not in the assignment.
    #[must_use]
    pub fn logical_id(&self, device: DeviceId) -> Option<(usize, usize)> {
        let index = self.devices.iter().position(|candidate| *candidate == device)?;
        Some((index / self.partitions, index % self.partitions))
    }

    pub(crate) fn from_proto(message: proto::DeviceAssignment) -> Result<Self> {
        let invalid = |problem: String| {
            Error::invalid_argument(format!("the DeviceAssignmentProto is invalid: {problem}"))
        };
        let (rows, computations) = (&message.computation_devices, message.computation_count);
        let replicas = usize::try_from(message.replica_count).map_err(|_| {
            invalid(format!("its replica_count is {}; expected 0 or more", message.replica_count))
        })?;
        let partitions = rows.len();
        if usize::try_from(computations) != Ok(partitions) {
            return Err(invalid(format!(
                "its computation_count is {computations}, but it has {partitions} computation_devices"
            )));
        }
        if let Some(row) = rows.iter().find(|row| row.replica_device_ids.len() != replicas) {
            return Err(invalid(format!(
                "its replica_count is {replicas}, but a computation has {} replica_device_ids",
                row.replica_device_ids.len()
            )));
        }
        let ids =
            (0..replicas).flat_map(|replica| rows.iter().map(move |row| row.replica_device_ids[replica]));
        let id = |id: i64| {
            DeviceId::try_from(id).map_err(|_| invalid(format!("the device id {id} does not fit 32 bits")))
        };
        let ids = ids.map(id).collect::<Result<_>>()?;
        Self::new(replicas, partitions, ids)
    }

    pub(crate) fn to_proto(&self) -> proto::DeviceAssignment {
        let partition = |partition: usize| proto::ComputationDevice {
            replica_device_ids: self
                .devices
                .iter()
                .skip(partition)
                .step_by(self.partitions)
                .map(|id| i64::from(*id))
                .collect(),
        };
        proto::DeviceAssignment {
            replica_count: self.replicas as i32,
            computation_count: self.partitions as i32,
            computation_devices: (0..self.partitions).map(partition).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_run_replica_by_replica() {
        let assignment = DeviceAssignment::new(2, 3, vec![0, 1, 2, 3, 4, 5]).unwrap();
        assert_eq!(assignment.device(1, 0), Some(3));
        assert_eq!(assignment.device(0, 3), None);
        assert_eq!(assignment.logical_id(5), Some((1, 2)));
        let message = assignment.to_proto();
        assert_eq!(message.computation_devices[1].replica_device_ids, [1, 4]);
        assert_eq!(DeviceAssignment::from_proto(message).unwrap(), assignment);
    }

    #[test]
    fn tables_with_holes_are_refused() {
        assert!(DeviceAssignment::new(2, 2, vec![0, 1, 2]).is_err());
        assert!(DeviceAssignment::new(0, 0, vec![]).is_err());
        let ragged = proto::DeviceAssignment {
            replica_count: 2,
            computation_count: 1,
            computation_devices: vec![proto::ComputationDevice { replica_device_ids: vec![1] }],
        };
        assert!(DeviceAssignment::from_proto(ragged).is_err());
    }
}
