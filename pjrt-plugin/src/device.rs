//! Devices.

use crate::attributes::AttributeValue;
use crate::memory::Memory;
use crate::stats::MemoryStats;

/// The global id of a device: unique across all processes of a computation.
pub type DeviceId = i32;

/// A device (`PJRT_Device`): what it is, and which memories it has.
pub trait PjrtDevice: Send + Sync + 'static {
    /// What it is. Called once per device.
    fn description(&self) -> &DeviceDescription;

    /// Its memories, the default one first. Called once per device; an addressable device needs at least one.
    fn memories(&self) -> &[Memory];

    /// Whether this process can run programs on it.
    fn is_addressable(&self) -> bool {
        true
    }

    /// Its number on this machine, by which `PJRT_Client_LookupAddressableDevice` finds it.
    fn local_hardware_id(&self) -> i32 {
        self.description().id()
    }

    /// How its memory is used; `None` if that is not known.
    fn memory_stats(&self) -> Option<MemoryStats> {
        None
    }

    /// Resets the high-water marks in [`memory_stats`](Self::memory_stats).
    fn clear_memory_stats(&self) {}
}

/// What a device is (`PJRT_DeviceDescription`), also where there is no device, in a topology.
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
    /// A device with a global id and a kind, the vendor's name for what it is. It belongs to process 0 and prints as
    /// `kind(id=0)`.
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

    /// The process that owns it.
    #[must_use]
    pub fn with_process_index(mut self, process_index: i32) -> Self {
        self.process_index = process_index;
        self
    }

    /// How it prints: the short form, Python's `repr`.
    #[must_use]
    pub fn with_display(mut self, display: impl Into<String>) -> Self {
        self.display = display.into();
        self
    }

    /// How it prints in full.
    #[must_use]
    pub fn with_debug(mut self, debug: impl Into<String>) -> Self {
        self.debug = debug.into();
        self
    }

    /// An attribute; JAX shows it as an attribute of the device. Only text, whole numbers and lists of them: hosts abort
    /// on others, so the SDK leaves those out.
    #[must_use]
    pub fn with_attribute(mut self, name: impl Into<String>, value: impl Into<AttributeValue>) -> Self {
        let name = name.into();
        self.attributes.retain(|(existing, _)| *existing != name);
        self.attributes.push((name, value.into()));
        self
    }

    /// The memories, the default one first, of a device that is only described: of one that is there,
    /// [`PjrtDevice::memories`] says them.
    #[must_use]
    pub fn with_memories(mut self, memories: impl Into<Vec<Memory>>) -> Self {
        self.memories = memories.into();
        self
    }

    /// The global id.
    #[must_use]
    pub fn id(&self) -> DeviceId {
        self.id
    }

    /// The process that owns it.
    #[must_use]
    pub fn process_index(&self) -> i32 {
        self.process_index
    }

    /// The vendor's name for what it is.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The short form.
    #[must_use]
    pub fn display(&self) -> &str {
        &self.display
    }

    /// The full form.
    #[must_use]
    pub fn debug(&self) -> &str {
        &self.debug
    }

    /// The attributes.
    #[must_use]
    pub fn attributes(&self) -> &[(String, AttributeValue)] {
        &self.attributes
    }

    /// The memories, the default one first.
    #[must_use]
    pub fn memories(&self) -> &[Memory] {
        &self.memories
    }
}
