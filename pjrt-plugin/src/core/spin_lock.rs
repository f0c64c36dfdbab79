//! Spin locks, and values that share one.

#![allow(unsafe_code, reason = "gives references to the value to the thread that holds the lock")]

use std::ptr;

use crate::core::sync::{AtomicBool, Ordering, UnsafeCell, pause};

/// A spin lock, which may be held only for a few instructions that neither wait nor panic. Locking costs one atomic
/// read-modify-write operation; unlocking costs a store.
pub(crate) struct SpinLock(pub(crate) AtomicBool);

/// Holds a [`SpinLock`] until it is dropped.
pub(crate) struct SpinGuard<'a>(&'a SpinLock);

impl SpinLock {
    #[inline]
    pub(crate) fn lock(&self) -> SpinGuard<'_> {
        if !self.try_lock() {
            self.wait();
        }
        SpinGuard(self)
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        let mut times = 0;
        loop {
            pause(&mut times);
            // A load leaves the cache line shared; a compare-exchange would take it from the other processors.
            if !self.0.load(Ordering::Relaxed) && self.try_lock() {
                return;
            }
        }
    }
}

impl Drop for SpinGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// A value that is protected by a lock, which other values may share. An execution reads such a value for each argument, and
/// takes the lock once for all of them.
pub(crate) struct Guarded<T> {
    lock: &'static SpinLock,
    value: UnsafeCell<T>,
}

// SAFETY: only the thread that holds the lock accesses the value.
unsafe impl<T: Send> Send for Guarded<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    #[inline]
    pub(crate) fn new(lock: &'static SpinLock, value: T) -> Self {
        Self { lock, value: UnsafeCell::new(value) }
    }

    /// Changes the lock of the value.
    #[inline]
    pub(crate) fn move_to(&mut self, lock: &'static SpinLock) {
        self.lock = lock;
    }

    /// Calls a closure with the value. The closure must not lock another value.
    #[inline]
    pub(crate) fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R {
        let _guard = self.lock.lock();
        // SAFETY: this thread holds the lock as long as the reference lives. The closure cannot access the value a second
        // time, because that would lock again.
        self.value.with_mut(|value| what(unsafe { &mut *value }))
    }

    /// Calls a closure with the value, under a lock that this thread holds. Returns `None` if it is not the lock of the value.
    #[inline]
    pub(crate) fn with_guard<R>(
        &self,
        guard: &mut SpinGuard<'_>,
        what: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        if !ptr::eq(self.lock, guard.0) {
            return None;
        }
        // SAFETY: this thread holds the lock. `guard` is mutably borrowed as long as the reference lives, so it can neither
        // be dropped nor give access to the value a second time.
        Some(self.value.with_mut(|value| what(unsafe { &mut *value })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        const TIMES: u64 = if cfg!(miri) { 100 } else { 100_000 };
        static LOCK: SpinLock = SpinLock(AtomicBool::new(false));
        let value = Guarded::new(&LOCK, (0_u64, 0_u64));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        value.with(|(first, second)| {
                            assert_eq!(first, second);
                            *first += 1;
                            *second += 1;
                        });
                    }
                });
            }
        });
        assert_eq!(value.with(|value| *value), (4 * TIMES, 4 * TIMES));
    }

    #[test]
    fn a_lock_leads_to_the_values_behind_it_only() {
        static LOCKS: [SpinLock; 2] = [const { SpinLock(AtomicBool::new(false)) }; 2];
        let [first, second] = &LOCKS;
        let mut value = Guarded::new(first, 1);
        assert_eq!(value.with_guard(&mut first.lock(), |value| *value), Some(1));
        assert_eq!(value.with_guard(&mut second.lock(), |value| *value), None);
        value.move_to(second);
        assert_eq!(value.with_guard(&mut second.lock(), |value| *value), Some(1));
    }
}
