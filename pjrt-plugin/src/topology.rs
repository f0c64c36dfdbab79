//! Topologies: devices described without a client.

use crate::attributes::AttributeValue;
use crate::device::{DeviceDescription, PjrtDevice};

/// Which devices there are (`PJRT_TopologyDescription`): what a program can be compiled for without having them.
#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    platform_name: String,
    platform_version: String,
    devices: Vec<DeviceDescription>,
    attributes: Vec<(String, AttributeValue)>,
}

impl Topology {
    /// A topology of these devices.
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

    /// The topology that a client's devices form.
    #[must_use]
    pub fn of_devices<D: PjrtDevice>(
        platform_name: impl Into<String>,
        platform_version: impl Into<String>,
        devices: &[D],
    ) -> Self {
        let devices = devices.iter().map(|device| device.description().clone()).collect();
        Self::new(platform_name, platform_version, devices)
    }

    /// An attribute; one of the same name is replaced.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Self {
        let name = name.into();
        self.attributes.retain(|(existing, _)| *existing != name);
        self.attributes.push((name, value.into()));
        self
    }

    /// The platform's name.
    #[must_use]
    pub fn platform_name(&self) -> &str {
        &self.platform_name
    }

    /// The platform's version.
    #[must_use]
    pub fn platform_version(&self) -> &str {
        &self.platform_version
    }

    /// The devices, in an order that is always the same.
    #[must_use]
    pub fn devices(&self) -> &[DeviceDescription] {
        &self.devices
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> &[(String, AttributeValue)] {
        &self.attributes
    }
}
