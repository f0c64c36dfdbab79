//! The locks of what buffers and loaded programs have, by device.

use crate::abi::brief_lock::Lock;
use crate::sync::AtomicBool;

/// Each on a cache line of its own, so that threads that work with one device do not slow down those that work with another.
#[repr(align(128))]
struct Apart(Lock);

const NUMBER: usize = 16;

static LOCKS: [Apart; NUMBER] = [const { Apart(Lock(AtomicBool::new(false))) }; NUMBER];

/// The lock for the device at a place among a client's. Devices may share one.
#[inline]
pub(crate) fn device_lock(place: usize) -> &'static Lock {
    &LOCKS[place % NUMBER].0
}
