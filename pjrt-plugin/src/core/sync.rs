//! The synchronization primitives of this crate: those of the standard library, with locks that ignore poisoning. The models
//! in `loom/` replace this module with the primitives of a model checker.
//!
//! No code of an author runs while a lock of this crate is held, and the protected states are consistent between any two
//! statements, so poisoning carries no information.

use std::sync::PoisonError;

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Locks a mutex, ignoring poisoning.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable, ignoring poisoning.
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// An unsynchronized cell with the interface of loom's.
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls a closure with a pointer to the value. The pointer must not be used after the closure has returned.
    #[inline]
    pub(crate) fn with_mut<R>(&self, change: impl FnOnce(*mut T) -> R) -> R {
        change(self.0.get())
    }

    #[inline]
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

/// Pauses while another thread executes a few instructions. `times` counts the calls. The pauses become longer, because the
/// system may have suspended the other thread.
pub(crate) fn pause(times: &mut u32) {
    *times += 1;
    match *times {
        0..64 => std::hint::spin_loop(),
        64..128 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}
