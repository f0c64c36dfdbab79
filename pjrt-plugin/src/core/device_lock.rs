//! The spin locks of buffers and loaded programs, by device.

use crate::core::spin_lock::SpinLock;
use crate::core::sync::AtomicBool;

/// A lock on a cache line of its own, so that threads that use one device do not slow down those that use another.
#[repr(align(128))]
struct CacheLine(SpinLock);

const NUMBER: usize = 16;

static LOCKS: [CacheLine; NUMBER] = [const { CacheLine(SpinLock(AtomicBool::new(false))) }; NUMBER];

/// Returns the lock for a device, by its index among its client's. Devices may share a lock.
#[inline]
pub(crate) fn device_lock(index: usize) -> &'static SpinLock {
    &LOCKS[index % NUMBER].0
}
