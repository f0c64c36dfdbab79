//! Topologies: descriptions of devices that do not require a client.

use prost::Message;

use crate::attributes::AttributeValue;
use crate::core::fingerprint::Fingerprint;
use crate::device::{DeviceDescription, PjrtDevice};
use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::proto;

/// The description of a set of devices (`PJRT_TopologyDescription`). A program can be compiled for a topology even if its
/// devices do not exist on the machine.
///
/// ```
/// use pjrt_plugin::{DeviceDescription, Topology};
///
/// let devices = (0..4).map(|id| DeviceDescription::new(id, "chip")).collect();
/// let topology = Topology::new("chips", "1.0", devices).with_attribute("shape", vec![2, 2]);
/// assert_eq!(Topology::deserialize(&topology.serialize())?, topology);
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    platform_name: String,
    platform_version: String,
    devices: Vec<DeviceDescription>,
    attributes: Vec<(String, AttributeValue)>,
}

impl Topology {
    /// Creates a topology from descriptions of its devices.
    #[must_use]
    pub fn new(
        platform_name: impl Into<String>,
        platform_version: impl Into<String>,
        devices: Vec<DeviceDescription>,
    ) -> Self {
        Self {
            platform_name: platform_name.into(),
            platform_version: platform_version.into(),
            devices,
            attributes: Vec::new(),
        }
    }

    /// Creates the topology of a client's devices.
    #[must_use]
    pub fn of_devices<D: PjrtDevice>(
        platform_name: impl Into<String>,
        platform_version: impl Into<String>,
        devices: &[D],
    ) -> Self {
        let describe = |device: &D| device.description().clone().with_memories(device.memories());
        let devices = devices.iter().map(describe).collect();
        Self::new(platform_name, platform_version, devices)
    }

    /// Adds an attribute, or replaces the one with the same name.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Self {
        let name = name.into();
        self.attributes.retain(|(existing, _)| *existing != name);
        self.attributes.push((name, value.into()));
        self
    }

    /// Returns the name of the platform.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.platform_name
    }

    /// Returns the version of the platform.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.platform_version
    }

    /// Returns the descriptions of the devices.
    #[must_use]
    pub fn devices(&self) -> &[DeviceDescription] {
        &self.devices
    }

    /// Returns the attributes.
    #[must_use]
    pub fn attributes(&self) -> &[(String, AttributeValue)] {
        &self.attributes
    }

    /// Serializes the topology as a `PjRtTopologyDescriptionProto`, which [`deserialize`](Self::deserialize) reads.
    #[must_use]
    pub fn serialize(&self) -> Vec<u8> {
        let device = |device: &DeviceDescription| proto::Device {
            id: device.id(),
            process_index: device.process_index(),
            kind: device.kind().to_owned(),
            display: device.display().to_owned(),
            debug: device.debug().to_owned(),
            attributes: device.attributes().iter().map(attribute_to_proto).collect(),
            memories: device.memories().iter().map(memory_to_proto).collect(),
        };
        let message = proto::Topology {
            platform_id: Fingerprint::of(&[self.platform_name.as_bytes()]).low(),
            platform_name: self.platform_name.clone(),
            platform_version: self.platform_version.clone(),
            devices: self.devices.iter().map(device).collect(),
            attributes: self.attributes.iter().map(attribute_to_proto).collect(),
        };
        message.encode_to_vec()
    }

    /// Deserializes the bytes of [`serialize`](Self::serialize).
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the bytes are not a serialized topology.
    pub fn deserialize(bytes: &[u8]) -> Result<Self> {
        let message = proto::Topology::decode(bytes).map_err(|error| {
            Error::invalid_argument(format!("failed to deserialize the topology: {error}"))
        })?;
        let device = |device: proto::Device| {
            let description = DeviceDescription::new(device.id, device.kind)
                .with_process_index(device.process_index)
                .with_display(device.display)
                .with_debug(device.debug)
                .with_memories(device.memories.into_iter().map(memory_from_proto).collect::<Vec<_>>());
            device
                .attributes
                .into_iter()
                .filter_map(attribute_from_proto)
                .fold(description, |it, (name, value)| it.with_attribute(name, value))
        };
        let devices = message.devices.into_iter().map(device).collect();
        Ok(Self {
            platform_name: message.platform_name,
            platform_version: message.platform_version,
            devices,
            attributes: message.attributes.into_iter().filter_map(attribute_from_proto).collect(),
        })
    }

    /// Returns the ids of the memory kinds of all devices without repetitions, in the order of the devices and their
    /// memories (`PJRT_TopologyDescription_GetMemorySpaceKindIds`).
    #[must_use]
    pub fn memory_kind_ids(&self) -> Vec<i32> {
        let mut ids = Vec::new();
        for memory in self.devices.iter().flat_map(DeviceDescription::memories) {
            if !ids.contains(&memory.kind_id()) {
                ids.push(memory.kind_id());
            }
        }
        ids
    }

    /// Returns a hash of the topology (`PJRT_TopologyDescription_Fingerprint`).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        Fingerprint::of(&[&self.serialize()]).low()
    }
}

fn memory_to_proto(memory: &Memory) -> proto::Memory {
    proto::Memory {
        id: memory.id(),
        kind: memory.kind().to_owned(),
        kind_id: memory.kind_id(),
        host_accessible: memory.is_host_accessible(),
    }
}

fn memory_from_proto(memory: proto::Memory) -> Memory {
    let read = Memory::new(memory.id, memory.kind).with_kind_id(memory.kind_id);
    if memory.host_accessible { read.with_host_access() } else { read }
}

fn attribute_to_proto((name, value): &(String, AttributeValue)) -> proto::Attribute {
    let value = match value {
        AttributeValue::String(value) => proto::AttributeValue::String(value.clone()),
        AttributeValue::Int64(value) => proto::AttributeValue::Int64(*value),
        AttributeValue::Int64List(values) => {
            proto::AttributeValue::Int64List(proto::Int64List { values: values.clone() })
        }
        AttributeValue::Float(value) => proto::AttributeValue::Float(*value),
        AttributeValue::Bool(value) => proto::AttributeValue::Bool(*value),
    };
    proto::Attribute { name: name.clone(), value: Some(value) }
}

fn attribute_from_proto(attribute: proto::Attribute) -> Option<(String, AttributeValue)> {
    let value = match attribute.value? {
        proto::AttributeValue::String(value) => AttributeValue::String(value),
        proto::AttributeValue::Int64(value) => AttributeValue::Int64(value),
        proto::AttributeValue::Int64List(list) => AttributeValue::Int64List(list.values),
        proto::AttributeValue::Float(value) => AttributeValue::Float(value),
        proto::AttributeValue::Bool(value) => AttributeValue::Bool(value),
    };
    Some((attribute.name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topologies_come_back_as_they_were() {
        let memories =
            [Memory::new(0, Memory::DEVICE).with_kind_id(7), Memory::new(1, "near").with_host_access()];
        let device = DeviceDescription::new(3, "chip")
            .with_process_index(1)
            .with_attribute("coords", vec![1, 2])
            .with_memories(memories);
        let topology = Topology::new("hello", "1.0", vec![device]).with_attribute("slices", 2_i64);
        let copy = Topology::deserialize(&topology.serialize()).unwrap();
        assert_eq!(copy, topology);
        assert_eq!(copy.fingerprint(), topology.fingerprint());
        assert_ne!(Topology::new("hello", "1.1", vec![]).fingerprint(), topology.fingerprint());
        assert!(Topology::deserialize(b"\xff\xff").is_err());
    }
}
