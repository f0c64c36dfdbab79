//! What threads share and wait with: the standard library's, with locks that know no poisoning. The models in `loom/` put those of
//! a model checker in this module's place.
//!
//! A panic of an author's code never happens while one of this crate's locks is held, and the guarded states are
//! consistent between any two statements, so a poisoned lock carries no information here.

use std::sync::PoisonError;

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Locks, ignoring poison.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition, ignoring poison.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// A cell that nothing guards, with the interface that loom's has.
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// What is done to the value happens in the closure.
    #[inline]
    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }

    #[inline]
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// Waits for another thread to do a few instructions; `times` counts how often. Longer and longer, because the system may have
/// stopped that thread, even in favour of this one.
pub(crate) fn pause(times: &mut u32) {
    *times += 1;
    match *times {
        0..64 => std::hint::spin_loop(),
        64..128 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}
