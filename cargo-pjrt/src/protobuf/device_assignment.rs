//! Decodes device assignments.

use super::fields::{Field, field, varint};

/// A device assignment (`DeviceAssignmentProto`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceAssignment {
    /// The number of replicas.
    pub replicas: u64,
    /// The number of partitions of each replica.
    pub partitions: u64,
    /// The ids of the devices, of all replicas of the first partition, then of the second, and so on.
    pub devices: Vec<i64>,
}

impl DeviceAssignment {
    /// Decodes the message. Returns `None` if the bytes are not a device assignment.
    #[must_use]
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        let mut assignment = Self::default();
        while !bytes.is_empty() {
            match field(&mut bytes)? {
                Field::Number(1, replicas) => assignment.replicas = replicas,
                Field::Number(2, partitions) => assignment.partitions = partitions,
                Field::Bytes(3, computation) => assignment.add_computation(computation)?,
                _ => {}
            }
        }
        Some(assignment)
    }

    /// Adds the devices of a partition, which are packed or not.
    fn add_computation(&mut self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            match field(&mut bytes)? {
                Field::Number(1, id) => self.devices.push(id.cast_signed()),
                Field::Bytes(1, mut packed) => {
                    while !packed.is_empty() {
                        self.devices.push(varint(&mut packed)?.cast_signed());
                    }
                }
                _ => {}
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_packed_and_one_by_one() {
        let expected = DeviceAssignment { replicas: 2, partitions: 1, devices: vec![1, 0] };
        let packed = [0x08, 2, 0x10, 1, 0x1a, 4, 0x0a, 2, 1, 0];
        let one_by_one = [0x08, 2, 0x10, 1, 0x1a, 4, 0x08, 1, 0x08, 0];
        assert_eq!(DeviceAssignment::decode(&packed), Some(expected.clone()));
        assert_eq!(DeviceAssignment::decode(&one_by_one), Some(expected));
        assert_eq!(DeviceAssignment::decode(&packed[..7]), None);
        assert_eq!(DeviceAssignment::decode(&[0xff; 11]), None);
    }
}
