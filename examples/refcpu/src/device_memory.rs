//! The memory of a device, as hosts see it.
//!
//! All devices share the memory of the machine, and arrays can share their memory. Hosts see devices with their own memories:
//! each buffer counts on its device with its own size, and a running program counts with its outputs and its temporary memory.

use pjrt_plugin::{DeviceId, Error, Memory};
use refcpu_engine::storage::{Allocator, OutOfMemory};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The hint of an error about memory.
pub(crate) const MEMORY_HINT: &str = "REFCPU_MEMORY_LIMIT sets the limit of each device's memory in bytes";

/// The memory of a device. Sizes are in bytes.
pub(crate) struct DeviceMemory {
    device: DeviceId,
    limit: usize,
    in_use: AtomicUsize,
    peak: AtomicUsize,
    /// The allocator of arrays, which all devices share.
    allocator: Allocator,
}

/// A part of the memory of a device that is in use. Dropping it releases the part.
pub(crate) struct Reservation {
    memory: Arc<DeviceMemory>,
    bytes: usize,
}

impl DeviceMemory {
    pub(crate) fn new(device: DeviceId, limit: usize, allocator: Allocator) -> Self {
        Self { device, limit, in_use: AtomicUsize::new(0), peak: AtomicUsize::new(0), allocator }
    }

    /// Returns the id of the device.
    pub(crate) fn device(&self) -> DeviceId {
        self.device
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn in_use(&self) -> usize {
        self.in_use.load(Ordering::Relaxed)
    }

    /// Returns the largest value of `in_use` since the last reset.
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.in_use(), Ordering::Relaxed);
    }

    pub(crate) fn allocator(&self) -> &Allocator {
        &self.allocator
    }

    /// Reserves memory.
    ///
    /// # Errors
    /// Returns RESOURCE_EXHAUSTED if the limit would be exceeded.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Error> {
        let sum = |in_use: usize| in_use.checked_add(bytes).filter(|sum| *sum <= self.limit);
        let reserved = self.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        match reserved {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(Reservation { memory: Arc::clone(self), bytes })
            }
            Err(in_use) => Err(self.refusal(bytes, in_use)),
        }
    }

    /// Checks that an amount of memory is within the limit, also if none of the memory is in use.
    ///
    /// # Errors
    /// Returns RESOURCE_EXHAUSTED if it is not.
    pub(crate) fn check_limit(&self, bytes: usize) -> Result<(), Error> {
        if bytes <= self.limit { Ok(()) } else { Err(self.refusal(bytes, self.in_use())) }
    }

    fn refusal(&self, requested: usize, in_use: usize) -> Error {
        let refusal = OutOfMemory { requested, in_use, limit: self.limit };
        Error::resource_exhausted(format!("{refusal} on device {}", self.device)).with_hint(MEMORY_HINT)
    }

    /// Reserves memory for an array in one of the device's memories. Only the default memory counts, because the others stand
    /// for memory of the host.
    ///
    /// # Errors
    /// Returns the same errors as [`reserve`](Self::reserve).
    pub(crate) fn reserve_in(self: &Arc<Self>, kind: &str, bytes: usize) -> Result<Reservation, Error> {
        self.reserve(if kind == Memory::DEVICE { bytes } else { 0 })
    }
}

impl Reservation {
    /// Returns the allocator of arrays.
    pub(crate) fn allocator(&self) -> &Allocator {
        self.memory.allocator()
    }

    /// Splits off a part.
    ///
    /// # Panics
    /// Panics if the part is larger than the reservation.
    pub(crate) fn split(&mut self, bytes: usize) -> Self {
        self.bytes = self.bytes.checked_sub(bytes).expect("a part is not larger than the whole");
        Self { memory: Arc::clone(&self.memory), bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.in_use.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refcpu_engine::storage::AllocatorOptions;

    #[test]
    fn reservations_are_limited_and_return_when_their_parts_are_dropped() {
        let allocator = Allocator::new(AllocatorOptions::default());
        let memory = Arc::new(DeviceMemory::new(3, 100, allocator));
        let mut whole = memory.reserve(80).unwrap();
        memory.check_limit(100).unwrap();
        assert!(memory.check_limit(101).is_err());
        let part = whole.split(30);
        let error = memory.reserve(21).err().unwrap();
        assert!(
            error.message().contains("cannot allocate 21 bytes; 80 of 100 bytes are in use on device 3"),
            "{error}"
        );
        drop(whole);
        assert_eq!((memory.in_use(), memory.peak()), (30, 80));
        let _second = memory.reserve(70).unwrap();
        assert_eq!(memory.peak(), 100);
        drop(part);
        memory.reset_peak();
        assert_eq!((memory.in_use(), memory.peak()), (70, 70));
        let _host = memory.reserve_in(Memory::PINNED_HOST, 1000).unwrap();
        assert_eq!(memory.in_use(), 70);
    }
}
