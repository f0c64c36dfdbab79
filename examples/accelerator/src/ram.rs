//! The memory of a device.

use pjrt_plugin::{Error, Result};

/// The bytes of a device's memory. They belong to the thread of the device's queue, so the host can access
/// them only through commands.
pub(crate) struct Ram(Vec<u8>);

impl Ram {
    /// Allocates this number of bytes. Bytes that are never used occupy no host memory.
    pub(crate) fn new(size: usize) -> Result<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| {
            Error::resource_exhausted(format!("this machine cannot simulate a memory of {size} bytes"))
        })?;
        Ok(Self(bytes))
    }

    /// Returns the bytes at an address.
    pub(crate) fn at(&mut self, address: usize, size: usize) -> &mut [u8] {
        let end = address + size;
        if self.0.len() < end {
            self.0.resize(end, 0);
        }
        &mut self.0[address..end]
    }
}
