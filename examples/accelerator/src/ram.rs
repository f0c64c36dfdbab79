//! A device's memory itself.

use pjrt_plugin::{Error, Result};

/// The bytes of a device. Only the thread of its queue has them: nobody on the host can reach them but by a command.
pub(crate) struct Ram(Vec<u8>);

impl Ram {
    /// Memory of so many bytes. What is never used costs the host nothing.
    pub(crate) fn new(size: usize) -> Result<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| {
            Error::resource_exhausted(format!("this machine cannot simulate a memory of {size} bytes"))
        })?;
        Ok(Self(bytes))
    }

    /// The bytes from an address on.
    pub(crate) fn at(&mut self, address: usize, size: usize) -> &mut [u8] {
        let end = address + size;
        if self.0.len() < end {
            self.0.resize(end, 0);
        }
        &mut self.0[address..end]
    }
}
