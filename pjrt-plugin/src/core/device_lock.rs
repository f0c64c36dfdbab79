//! The spin locks of buffers and loaded programs, by device.

use crate::core::spin_lock::SpinLock;
use crate::core::sync::AtomicBool;

/// A lock on a separate cache line, so that threads that use different devices do not slow each other down.
#[repr(align(128))]
struct CacheLine(SpinLock);

const NUMBER: usize = 16;

static LOCKS: [CacheLine; NUMBER] = [const { CacheLine(SpinLock(AtomicBool::new(false))) }; NUMBER];

/// Returns the lock of the device with an index in its client's devices. Devices may share a lock.
#[inline]
pub(crate) fn device_lock(index: usize) -> &'static SpinLock {
    &LOCKS[index % NUMBER].0
}
