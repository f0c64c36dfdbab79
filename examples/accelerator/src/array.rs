//! The location of arrays, which are dense and row-major.

use std::sync::{Arc, OnceLock};

use pjrt_plugin::Result;

use crate::ram::Ram;

/// Addresses are multiples of this many bytes.
pub(crate) const ALIGNMENT: usize = 32;

/// An array, as commands refer to it. Clones refer to the same array.
#[derive(Clone)]
pub(crate) struct Array {
    /// The size in bytes.
    pub(crate) size: usize,
    pub(crate) place: Place,
}

/// The location of an array.
#[derive(Clone)]
pub(crate) enum Place {
    /// The array is in device memory, at this address.
    Device(usize),
    /// The array is in host memory that the device can access. It is written once.
    Host(Arc<OnceLock<Vec<u8>>>),
}

impl Array {
    pub(crate) fn read(&self, ram: &Ram) -> Result<Vec<u8>> {
        match &self.place {
            Place::Device(address) => ram.with(*address, self.size, |bytes| bytes.to_vec()),
            Place::Host(bytes) => Ok(bytes.get().cloned().unwrap_or_default()),
        }
    }

    /// Writes the array from bytes, whose number is the size of the array.
    pub(crate) fn write(&self, ram: &Ram, data: Vec<u8>) -> Result<()> {
        match &self.place {
            Place::Device(address) => ram.with(*address, self.size, |bytes| bytes.copy_from_slice(&data)),
            Place::Host(bytes) => {
                // Only the command that the array was created for writes it, so it is empty.
                let _ = bytes.set(data);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let ram = Ram::new("chip", 1024).unwrap();
        for place in [Place::Device(64), Place::Host(Arc::default())] {
            let array = Array { size: 40, place };
            array.write(&ram, (0..40).collect()).unwrap();
            assert_eq!(array.read(&ram).unwrap(), (0..40).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn an_access_beyond_the_end_of_memory_is_a_fault() {
        let array = Array { size: 64, place: Place::Device(1000) };
        let error = array.write(&Ram::new("chip", 1024).unwrap(), vec![0; 64]).unwrap_err();
        assert!(error.message().contains("the memory ends at byte 1024"), "{error}");
    }
}
