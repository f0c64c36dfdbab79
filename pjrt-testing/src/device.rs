//! Devices.

use crate::host::{self, Error, MemoryStats, Result};

/// A device of a [`Client`](crate::Client).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Device<'c>(pub(crate) host::Device<'c>);

impl<'c> Device<'c> {
    /// Returns the id (`PJRT_DeviceDescription_Id`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn id(&self) -> Result<i32> {
        self.0.description()?.id()
    }

    /// Returns the vendor's name of the kind of device (`PJRT_DeviceDescription_Kind`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn kind(&self) -> Result<String> {
        self.0.description()?.kind()
    }

    /// Returns the kinds of the device's memories, such as `device` and `pinned_host`
    /// (`PJRT_Device_AddressableMemories`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error.
    pub fn memory_kinds(&self) -> Result<Vec<String>> {
        self.0.memories()?.iter().map(host::Memory::kind).collect()
    }

    /// Returns the memory usage (`PJRT_Device_MemoryStats`).
    ///
    /// # Errors
    ///
    /// Returns the plugin's error, such as UNIMPLEMENTED.
    pub fn memory_stats(&self) -> Result<MemoryStats> {
        self.0.memory_stats()
    }

    /// Returns the memory of this kind.
    pub(crate) fn memory(&self, kind: &str) -> Result<host::Memory<'c>> {
        for memory in self.0.memories()? {
            if memory.kind()? == kind {
                return Ok(memory);
            }
        }
        let kinds = self.memory_kinds()?.join(", ");
        let message = format!("the device has no memory of the kind {kind:?}; it has {kinds}");
        Err(Error::of_caller("Client::upload_to_memory", message))
    }
}
