//! Which device runs which part of a program.

use crate::device::DeviceId;
use crate::error::{Error, Result};

/// The devices of a program: one for each partition of each replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceAssignment {
    replicas: usize,
    partitions: usize,
    devices: Vec<DeviceId>,
}

impl DeviceAssignment {
    /// An assignment from the devices' global ids, replica by replica, within each partition by partition.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if there are not `replicas * partitions` ids, or if that is none.
    pub fn new(replicas: usize, partitions: usize, devices: Vec<DeviceId>) -> Result<Self> {
        if replicas.checked_mul(partitions) != Some(devices.len()) || devices.is_empty() {
            return Err(Error::invalid_argument(format!(
                "a device assignment of {replicas} replicas and {partitions} partitions cannot have {} devices",
                devices.len()
            )));
        }
        Ok(Self { replicas, partitions, devices })
    }

    /// How many replicas.
    #[must_use]
    pub fn replicas(&self) -> usize {
        self.replicas
    }

    /// How many partitions each replica has.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.partitions
    }

    /// All devices, replica by replica.
    #[must_use]
    pub fn devices(&self) -> &[DeviceId] {
        &self.devices
    }

    /// The device of one partition of one replica.
    #[must_use]
    pub fn device(&self, replica: usize, partition: usize) -> Option<DeviceId> {
        (partition < self.partitions)
            .then(|| self.devices.get(replica.checked_mul(self.partitions)?.checked_add(partition)?).copied())
            .flatten()
    }

    /// Replica and partition that run on a device.
    #[must_use]
    pub fn logical_id(&self, device: DeviceId) -> Option<(usize, usize)> {
        let index = self.devices.iter().position(|candidate| *candidate == device)?;
        Some((index / self.partitions, index % self.partitions))
    }
}
