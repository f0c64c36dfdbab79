//! The device of the operations whose device does not matter, and the memory of arrays whose memory does not matter: the first
//! one and the default one, unless the host prefers others.

use std::sync::{Mutex, PoisonError};

/// A device of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preferred {
    /// The position among the addressable devices.
    pub position: usize,
    /// The id.
    pub id: i64,
}

static PREFERRED: Mutex<Option<Preferred>> = Mutex::new(None);
static PREFERRED_KIND: Mutex<Option<String>> = Mutex::new(None);

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
    *PREFERRED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Performs work in which clients upload arrays into the memory of this kind of the device that a call names, and create aliases
/// there. This concerns the whole process.
pub fn with_preferred_kind<T>(kind: &str, work: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            set_kind(None);
        }
    }
    set_kind(Some(kind.to_owned()));
    let _reset = Reset;
    work()
}

fn set_kind(kind: Option<String>) {
    *PREFERRED_KIND.lock().unwrap_or_else(PoisonError::into_inner) = kind;
}

/// Returns the kind of the memory that the host prefers, if it is not the default one.
#[must_use]
pub fn preferred_kind() -> Option<String> {
    PREFERRED_KIND.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
