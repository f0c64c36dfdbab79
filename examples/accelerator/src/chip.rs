//! A device as its driver sees it: a memory and a queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pjrt_plugin::{DeviceId, Error, MemoryStats, Result};

use crate::address_space::AddressSpace;
use crate::queue::Queue;
use crate::ram::Ram;

/// The host's view of a device's memory, and the device's queue. Buffers and programs share it with
/// [`Device`](crate::Device).
pub(crate) struct Chip {
    id: DeviceId,
    space: Mutex<AddressSpace>,
    pub(crate) queue: Queue,
}

/// A block of a chip's memory. Dropping it frees the block for commands that are submitted later.
pub(crate) struct Allocation {
    chip: Arc<Chip>,
    pub(crate) address: usize,
}

impl Chip {
    /// Starts a chip.
    pub(crate) fn start(id: DeviceId, memory_limit: usize) -> Result<Arc<Self>> {
        let queue = Queue::start(&format!("accelerator-{id}"), Ram::new(memory_limit)?)?;
        Ok(Arc::new(Self { id, space: Mutex::new(AddressSpace::new(memory_limit)), queue }))
    }

    /// Allocates memory. `holder` describes its use.
    ///
    /// # Errors
    ///
    /// Returns RESOURCE_EXHAUSTED, with a description of the memory in use.
    pub(crate) fn allocate(self: &Arc<Self>, size: usize, holder: String) -> Result<Allocation> {
        let mut space = self.space();
        match space.allocate(size, holder.clone()) {
            Some(address) => Ok(Allocation { chip: Arc::clone(self), address }),
            None => Err(Error::resource_exhausted(format!(
                "device {} cannot allocate {holder} of {size} bytes: {} of its {} bytes are in use, and the largest free \
                 block has {} bytes; in use: {}",
                self.id,
                space.in_use(),
                space.size(),
                space.largest_gap(),
                space.holders()
            ))
            .with_hint("delete arrays that are no longer needed, or set ACCELERATOR_MEMORY_LIMIT to more bytes")),
        }
    }

    pub(crate) fn memory_stats(&self) -> MemoryStats {
        let space = self.space();
        let bytes = |n: usize| n as i64;
        MemoryStats {
            bytes_in_use: bytes(space.in_use()),
            peak_bytes_in_use: Some(bytes(space.peak())),
            bytes_limit: Some(bytes(space.size())),
            largest_free_block_bytes: Some(bytes(space.largest_gap())),
            ..MemoryStats::default()
        }
    }

    pub(crate) fn forget_peak(&self) {
        self.space().forget_peak();
    }

    fn space(&self) -> MutexGuard<'_, AddressSpace> {
        // Every change leaves the allocator in a consistent state, so a panic in another thread does not
        // matter.
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Allocation {
    /// Changes the description of the block's use.
    pub(crate) fn rename(&self, holder: String) {
        self.chip.space().rename(self.address, holder);
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.chip.space().free(self.address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_memory_says_who_holds_what() {
        let chip = Chip::start(3, 1024).unwrap();
        let weights = chip.allocate(1000, "weights".to_owned()).unwrap();
        let error = chip.allocate(100, "gradients".to_owned()).err().unwrap();
        assert_eq!(error.code(), pjrt_plugin::ErrorCode::ResourceExhausted);
        for part in ["device 3", "gradients of 100 bytes", "1024 of its 1024", "1 x weights (1024 bytes)"] {
            assert!(error.message().contains(part), "{part}: {error}");
        }
        assert!(error.hint().unwrap().contains("ACCELERATOR_MEMORY_LIMIT"));
        drop(weights);
        chip.allocate(1000, "gradients".to_owned()).unwrap();
        assert_eq!(chip.memory_stats().bytes_in_use, 0);
    }
}
