//! The virtual devices of refcpu.

use crate::config::{CPU_NAME, PLATFORM_NAME};
use pjrt_plugin::{DeviceDescription, DeviceId, Memory, MemoryStats, PjrtDevice};
use refcpu_engine::storage::Allocator;

/// A virtual device. All devices share the cores and the memory of the machine.
pub struct RefcpuDevice {
    description: DeviceDescription,
    memories: Vec<Memory>,
    allocator: Allocator,
}

/// The memory kinds of a device, beginning with the default. All of them are the same memory. They exist for programs that
/// specify memory kinds (JAX's memory-space annotations).
const KINDS: [&str; 3] = [Memory::DEVICE, Memory::PINNED_HOST, Memory::UNPINNED_HOST];

impl RefcpuDevice {
    /// Creates a device, with the kind and the texts of JAX's CPU backend if `as_cpu` is set. The memory of an opaque device is
    /// not host-accessible.
    pub(crate) fn new(id: DeviceId, as_cpu: bool, opaque: bool, allocator: Allocator) -> Self {
        let first = id * KINDS.len() as i32;
        let memory = |(id, kind)| {
            let memory = Memory::new(id, kind);
            if opaque { memory } else { memory.host_accessible() }
        };
        let description = if as_cpu {
            let cpu = DeviceDescription::new(id, CPU_NAME).with_display(format!("CpuDevice(id={id})"));
            cpu.with_debug(format!("{CPU_NAME}:{id}"))
        } else {
            DeviceDescription::new(id, PLATFORM_NAME).with_display(format!("RefcpuDevice(id={id})"))
        };
        Self { description, memories: (first..).zip(KINDS).map(memory).collect(), allocator }
    }
}

impl PjrtDevice for RefcpuDevice {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        let statistics = self.allocator.statistics();
        let bytes = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        Some(MemoryStats {
            bytes_in_use: bytes(statistics.in_use),
            peak_bytes_in_use: Some(bytes(statistics.peak)),
            bytes_limit: Some(bytes(statistics.limit)),
            ..MemoryStats::default()
        })
    }
}
