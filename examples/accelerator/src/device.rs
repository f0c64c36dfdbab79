//! Devices as hosts see them.

use std::sync::Arc;

use pjrt_plugin::{DeviceDescription, DeviceId, Memory, MemoryStats, PjrtDevice, Result};

use crate::chip::Chip;
use crate::options::Faults;

/// A simulated accelerator.
pub struct Device {
    description: DeviceDescription,
    /// The device's own memory, and host memory that the device can access. The host reads the second one in
    /// place, and accesses the first one only through copies.
    memories: [Memory; 2],
    pub(crate) chip: Arc<Chip>,
}

impl Device {
    /// Starts a device with this number of bytes of memory.
    pub(crate) fn start(id: DeviceId, memory_limit: usize, faults: Faults) -> Result<Self> {
        Ok(Self {
            description: DeviceDescription::new(id, "accelerator")
                .with_debug(format!("simulated accelerator {id} with {memory_limit} bytes of memory")),
            memories: [
                Memory::new(2 * id, Memory::DEVICE),
                Memory::new(2 * id + 1, Memory::PINNED_HOST).with_host_access(),
            ],
            chip: Chip::start(id, memory_limit, faults)?,
        })
    }
}

impl PjrtDevice for Device {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        Some(self.chip.memory.stats())
    }

    fn clear_memory_stats(&self) {
        self.chip.memory.clear_stats();
    }
}
