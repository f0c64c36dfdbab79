//! Devices and their descriptions.

use crate::attributes::AttributeValue;
use crate::memory::Memory;
use crate::stats::MemoryStats;

/// The global id of a device, which is unique across all processes of a computation.
pub type DeviceId = i32;

/// A device (`PJRT_Device`), with its description and its memories.
///
/// ```
/// use std::sync::Mutex;
///
/// use pjrt_plugin::{DeviceDescription, Memory, MemoryStats, PjrtDevice};
///
/// struct Chip {
///     description: DeviceDescription,
///     memories: [Memory; 2],
///     slot: i32,
///     stats: Mutex<MemoryStats>,
/// }
///
/// impl Chip {
///     fn new(id: i32, process_index: i32, slot: i32) -> Self {
///         let description = DeviceDescription::new(id, "chip").with_process_index(process_index);
///         let memories = [Memory::new(id, Memory::DEVICE), Memory::new(0, Memory::PINNED_HOST).with_host_access()];
///         Self { description, memories, slot, stats: Mutex::default() }
///     }
/// }
///
/// impl PjrtDevice for Chip {
///     fn description(&self) -> &DeviceDescription {
///         &self.description
///     }
///
///     fn memories(&self) -> &[Memory] {
///         &self.memories
///     }
///
///     fn is_addressable(&self) -> bool {
///         self.description.process_index() == 0
///     }
///
///     fn local_hardware_id(&self) -> i32 {
///         self.slot
///     }
///
///     fn memory_stats(&self) -> Option<MemoryStats> {
///         Some(*self.stats.lock().unwrap())
///     }
///
///     fn clear_memory_stats(&self) {
///         self.stats.lock().unwrap().peak_bytes_in_use = None;
///     }
/// }
///
/// assert!(!Chip::new(5, 1, 0).is_addressable());
/// ```
pub trait PjrtDevice: Send + Sync + 'static {
    /// Returns the description of the device. The SDK calls it once per device.
    fn description(&self) -> &DeviceDescription;

    /// Returns the memories of the device, beginning with the default memory. The SDK calls it once per device. An
    /// addressable device needs at least one memory.
    fn memories(&self) -> &[Memory];

    /// Returns whether this process can run programs on the device. The default returns `true`.
    fn is_addressable(&self) -> bool {
        true
    }

    /// Returns the number of the device on this machine, by which `PJRT_Client_LookupAddressableDevice` finds it. The
    /// default returns the global id.
    fn local_hardware_id(&self) -> i32 {
        self.description().id()
    }

    /// Returns statistics of the device's memory (`PJRT_Device_MemoryStats`). The default returns `None`: there are none.
    fn memory_stats(&self) -> Option<MemoryStats> {
        None
    }

    /// Resets the peak values of [`memory_stats`](Self::memory_stats) (`PJRT_Device_ClearMemoryStats`). The default does
    /// nothing.
    fn clear_memory_stats(&self) {}
}

/// The description of a device (`PJRT_DeviceDescription`). A [`Topology`](crate::Topology) contains descriptions of devices
/// that need not exist.
///
/// ```
/// use pjrt_plugin::{DeviceDescription, Memory};
///
/// let chip = DeviceDescription::new(3, "chip")
///     .with_process_index(1)
///     .with_display("Chip(3)")
///     .with_debug("Chip(id=3, process=1)")
///     .with_attribute("coords", vec![1, 1])
///     .with_memories([Memory::new(3, Memory::DEVICE)]);
/// assert_eq!((chip.id(), chip.kind(), chip.display()), (3, "chip", "Chip(3)"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceDescription {
    id: DeviceId,
    process_index: i32,
    kind: String,
    display: String,
    debug: String,
    attributes: Vec<(String, AttributeValue)>,
    memories: Vec<Memory>,
}

impl DeviceDescription {
    /// Creates the description of a device with a global id and a kind, which is the vendor's name of the model. The device
    /// belongs to process 0, and its short and long forms are both the kind and the id, such as `chip(id=0)`.
    #[must_use]
    pub fn new(id: DeviceId, kind: impl Into<String>) -> Self {
        let kind = kind.into();
        let display = format!("{kind}(id={id})");
        Self {
            id,
            process_index: 0,
            debug: display.clone(),
            display,
            kind,
            attributes: Vec::new(),
            memories: Vec::new(),
        }
    }

    /// Replaces the id, also in the short and long forms that [`new`](Self::new) creates.
    pub(crate) fn with_id(mut self, id: DeviceId) -> Self {
        let [old, new] = [self.id, id].map(|id| Self::new(id, self.kind.clone()).display);
        for text in [&mut self.display, &mut self.debug] {
            if *text == old {
                text.clone_from(&new);
            }
        }
        self.id = id;
        self
    }

    /// Sets the index of the process that the device belongs to.
    #[must_use]
    pub fn with_process_index(mut self, process_index: i32) -> Self {
        self.process_index = process_index;
        self
    }

    /// Sets the short form (`PJRT_DeviceDescription_ToString`), which JAX returns from `repr`.
    #[must_use]
    pub fn with_display(mut self, display: impl Into<String>) -> Self {
        self.display = display.into();
        self
    }

    /// Sets the long form (`PJRT_DeviceDescription_DebugString`).
    #[must_use]
    pub fn with_debug(mut self, debug: impl Into<String>) -> Self {
        self.debug = debug.into();
        self
    }

    /// Adds an attribute, or replaces the one with the same name. JAX exposes it as an attribute of the device. The SDK does
    /// not pass floats and booleans to hosts, because hosts abort on them.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Self {
        let name = name.into();
        self.attributes.retain(|(existing, _)| *existing != name);
        self.attributes.push((name, value.into()));
        self
    }

    /// Sets the memories, beginning with the default memory. This is needed only for the devices of a topology; the memories
    /// of a client's devices are those of [`PjrtDevice::memories`].
    #[must_use]
    pub fn with_memories(mut self, memories: impl Into<Vec<Memory>>) -> Self {
        self.memories = memories.into();
        self
    }

    /// Returns the global id.
    #[must_use]
    pub fn id(&self) -> DeviceId {
        self.id
    }

    /// Returns the index of the process that the device belongs to.
    #[must_use]
    pub fn process_index(&self) -> i32 {
        self.process_index
    }

    /// Returns the kind: the vendor's name of the model.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the short form of the description (`PJRT_DeviceDescription_ToString`).
    #[must_use]
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Returns the long form of the description (`PJRT_DeviceDescription_DebugString`).
    #[must_use]
    pub fn debug(&self) -> &str {
        &self.debug
    }

    /// Returns the attributes.
    #[must_use]
    pub fn attributes(&self) -> &[(String, AttributeValue)] {
        &self.attributes
    }

    /// Returns the memories, beginning with the default memory.
    #[must_use]
    pub fn memories(&self) -> &[Memory] {
        &self.memories
    }
}
