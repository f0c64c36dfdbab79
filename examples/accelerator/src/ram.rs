//! The memory of a device.

use std::sync::{Mutex, PoisonError};

use pjrt_plugin::{Error, Result};

/// The bytes of a device's memory. The engines of the device share it; the host has access only through their commands.
pub(crate) struct Ram {
    /// The name of the device in errors.
    device: String,
    bytes: Mutex<Vec<u8>>,
    /// The address at which the memory ends.
    end: usize,
}

impl Ram {
    /// Allocates memory. Bytes that are never used occupy no memory of the machine.
    pub(crate) fn new(device: &str, end: usize) -> Result<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(end).map_err(|_| {
            Error::resource_exhausted(format!("this machine cannot simulate a memory of {end} bytes"))
        })?;
        Ok(Self { device: device.to_owned(), bytes: Mutex::new(bytes), end })
    }

    /// Calls a function with the bytes at an address.
    ///
    /// # Errors
    ///
    /// Returns OUT_OF_RANGE if the memory ends before these bytes, which is a fault of the device.
    pub(crate) fn with<T>(
        &self,
        address: usize,
        size: usize,
        use_bytes: impl FnOnce(&mut [u8]) -> T,
    ) -> Result<T> {
        let end = address + size;
        if end > self.end {
            return Err(Error::out_of_range(format!(
                "{} has a memory fault: access to the {size} bytes at {address:#x}, but the memory ends at byte {} \
                 (option memory_end)",
                self.device, self.end
            )));
        }
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        Ok(use_bytes(&mut bytes[address..end]))
    }
}
