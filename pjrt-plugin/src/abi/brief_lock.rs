//! Locks for a few instructions, and values that share one.

use std::ptr;

use crate::sync::{AtomicBool, Ordering, UnsafeCell, pause};

/// A lock that is held for a few instructions, in which nothing is called that could wait or panic. To take it costs one operation
/// that the processor must not reorder, and to give it back none.
pub(crate) struct Lock(pub(crate) AtomicBool);

/// A lock that this thread has taken, until this is dropped.
pub(crate) struct Taken<'a>(&'a Lock);

impl Lock {
    #[inline]
    pub(crate) fn take(&self) -> Taken<'_> {
        if !self.try_take() {
            self.wait();
        }
        Taken(self)
    }

    #[inline]
    fn try_take(&self) -> bool {
        self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    #[cold]
    fn wait(&self) {
        let mut times = 0;
        loop {
            pause(&mut times);
            // To look at it does not take it away from the others' caches, as trying to take it does.
            if !self.0.load(Ordering::Relaxed) && self.try_take() {
                return;
            }
        }
    }
}

impl Drop for Taken<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}

/// A value behind a lock that other values are behind too. An execution reads one for each of its arguments, and takes the lock
/// once for all of them.
pub(crate) struct Guarded<T> {
    lock: &'static Lock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, which has taken the lock.
unsafe impl<T: Send> Send for Guarded<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    #[inline]
    pub(crate) fn new(lock: &'static Lock, value: T) -> Self {
        Self { lock, value: UnsafeCell::new(value) }
    }

    /// Puts the value behind another lock.
    #[inline]
    pub(crate) fn move_to(&mut self, lock: &'static Lock) {
        self.lock = lock;
    }

    /// Looks at the value, or changes it. What is called must not take the lock of another value.
    #[inline]
    pub(crate) fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R {
        let _taken = self.lock.take();
        // SAFETY: this thread has taken the lock, and gives it back when the reference is gone. Only `with_taken` reaches the value
        // under a lock that has been taken before.
        self.value.with_mut(|value| what(unsafe { &mut *value }))
    }

    /// As [`with`](Self::with), under a lock that this thread has taken; nothing if it is not that of the value.
    #[inline]
    pub(crate) fn with_taken<R>(&self, taken: &mut Taken<'_>, what: impl FnOnce(&mut T) -> R) -> Option<R> {
        if !ptr::eq(self.lock, taken.0) {
            return None;
        }
        // SAFETY: this thread has taken the lock, and `taken`, which is borrowed until the reference is gone, neither gives it back
        // meanwhile nor leads to the value a second time.
        Some(self.value.with_mut(|value| what(unsafe { &mut *value })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        const TIMES: u64 = if cfg!(miri) { 100 } else { 100_000 };
        static LOCK: Lock = Lock(AtomicBool::new(false));
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
        static LOCKS: [Lock; 2] = [const { Lock(AtomicBool::new(false)) }; 2];
        let [first, second] = &LOCKS;
        let mut value = Guarded::new(first, 1);
        assert_eq!(value.with_taken(&mut first.take(), |value| *value), Some(1));
        assert_eq!(value.with_taken(&mut second.take(), |value| *value), None);
        value.move_to(second);
        assert_eq!(value.with_taken(&mut second.take(), |value| *value), Some(1));
    }
}
