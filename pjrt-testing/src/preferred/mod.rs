//! The device of the operations whose device does not matter: the first one, unless the host prefers another.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

/// A device of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preferred {
    /// The position among the addressable devices.
    pub position: usize,
    /// The id.
    pub id: i64,
}

static PREFERRED: Mutex<Option<Preferred>> = Mutex::new(None);
static WAS_USED: AtomicBool = AtomicBool::new(false);

/// Performs work in which clients use another device than the first one. This concerns the whole process.
pub fn with_preferred<T>(device: Preferred, work: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            set(None);
        }
    }
    set(Some(device));
    let _reset = Reset;
    work()
}

fn set(device: Option<Preferred>) {
    *PREFERRED.lock().unwrap_or_else(PoisonError::into_inner) = device;
}

/// Returns the device that the host prefers, if it is not the first one.
#[must_use]
pub fn preferred() -> Option<Preferred> {
    WAS_USED.store(true, Ordering::Relaxed);
    *PREFERRED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns `true` if an operation since the last call of this function would use another device if the host preferred one.
pub fn take_was_used() -> bool {
    WAS_USED.swap(false, Ordering::Relaxed)
}
