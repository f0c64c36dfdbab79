//! The virtual devices of refcpu.

use crate::config::{CPU_NAME, PLATFORM_NAME};
use crate::device_memory::DeviceMemory;
use pjrt_plugin::{DeviceDescription, Memory, MemoryStats, PjrtDevice};
use std::sync::Arc;

/// A virtual device. All devices share the cores and the memory of the machine.
pub struct RefcpuDevice {
    description: DeviceDescription,
    memories: Vec<Memory>,
    memory: Arc<DeviceMemory>,
    /// The number of the device in its process; `None` if it belongs to another process.
    place: Option<i32>,
}

/// The place of a device among the processes of a computation.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) process: i32,
    /// The number of the device in its process; `None` if that is not this process.
    pub(crate) number: Option<i32>,
}

/// The memory kinds of a device, beginning with the default. All of them are the same memory. They exist for programs that
/// specify memory kinds (JAX's memory-space annotations).
const KINDS: [&str; 3] = [Memory::DEVICE, Memory::PINNED_HOST, Memory::UNPINNED_HOST];

impl RefcpuDevice {
    /// Returns the memory of the device.
    pub(crate) fn memory(&self) -> &Arc<DeviceMemory> {
        &self.memory
    }

    /// Creates a device, with the kind and the texts of JAX's CPU backend if `as_cpu` is set. The memory of an opaque device is
    /// not host-accessible.
    pub(crate) fn new(as_cpu: bool, opaque: bool, memory: Arc<DeviceMemory>, place: Place) -> Self {
        let id = memory.device();
        let first = id * KINDS.len() as i32;
        let of_kind = |(id, kind)| {
            let memory = Memory::new(id, kind);
            if opaque { memory } else { memory.with_host_access() }
        };
        let description = if as_cpu {
            let cpu = DeviceDescription::new(id, CPU_NAME).with_display(format!("CpuDevice(id={id})"));
            cpu.with_debug(format!("{CPU_NAME}:{id}"))
        } else {
            DeviceDescription::new(id, PLATFORM_NAME).with_display(format!("RefcpuDevice(id={id})"))
        };
        let description = description.with_process_index(place.process);
        let memories = (first..).zip(KINDS).map(of_kind).collect();
        Self { description, memories, memory, place: place.number }
    }
}

impl PjrtDevice for RefcpuDevice {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }

    fn is_addressable(&self) -> bool {
        self.place.is_some()
    }

    fn local_hardware_id(&self) -> i32 {
        self.place.unwrap_or(-1)
    }

    fn memory_stats(&self) -> Option<MemoryStats> {
        let bytes = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        Some(MemoryStats {
            bytes_in_use: bytes(self.memory.in_use()),
            peak_bytes_in_use: Some(bytes(self.memory.peak())),
            bytes_limit: Some(bytes(self.memory.limit())),
            ..MemoryStats::default()
        })
    }

    fn clear_memory_stats(&self) {
        self.memory.reset_peak();
    }
}
