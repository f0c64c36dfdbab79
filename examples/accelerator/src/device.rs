//! Devices as hosts see them.

use std::sync::Arc;

use pjrt_plugin::{DeviceDescription, Error, Memory, MemoryStats, PjrtDevice, Result};

use crate::chip::Chip;

/// A simulated accelerator.
pub struct Device {
    description: DeviceDescription,
    /// The device's own memory, and host memory that the device can access. The host reads the second one in
    /// place, and accesses the first one only through copies.
    memories: [Memory; 2],
    /// The hardware; `None` if it belongs to another process.
    chip: Option<Arc<Chip>>,
}

impl Device {
    /// Creates a device. `chip` is its hardware if it belongs to this process.
    pub(crate) fn new(description: DeviceDescription, chip: Option<Arc<Chip>>) -> Self {
        let id = description.id();
        let memories = [
            Memory::new(2 * id, Memory::DEVICE),
            Memory::new(2 * id + 1, Memory::PINNED_HOST).with_host_access(),
        ];
        Self { description, memories, chip }
    }

    /// Returns the hardware.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the device belongs to another process. Hosts do not ask for that.
    pub(crate) fn chip(&self) -> Result<&Arc<Chip>> {
        self.chip.as_ref().ok_or_else(|| Error::invalid_argument("the device is in another process"))
    }
}

impl PjrtDevice for Device {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }

    fn is_addressable(&self) -> bool {
        self.chip.is_some()
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        self.chip.as_ref().map(|chip| chip.memory.stats())
    }

    fn clear_memory_stats(&self) {
        self.chip.iter().for_each(|chip| chip.memory.clear_stats());
    }
}
