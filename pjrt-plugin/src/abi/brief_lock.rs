//! A lock for a few instructions.

use crate::sync::{AtomicBool, Ordering, UnsafeCell, pause};

/// A lock that is held for a few instructions, in which nothing is called that could wait or panic. To take it costs one operation
/// that the processor must not reorder, and to give it back none: an execution takes one for each of its arguments.
pub(crate) struct BriefLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, which has taken the lock.
unsafe impl<T: Send> Send for BriefLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for BriefLock<T> {}

impl<T> BriefLock<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Looks at the value, or changes it.
    #[inline]
    pub(crate) fn with<R>(&self, what: impl FnOnce(&mut T) -> R) -> R {
        /// Gives the lock back, should there be a panic after all.
        struct Taken<'a>(&'a AtomicBool);
        impl Drop for Taken<'_> {
            #[inline]
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        let _taken = Taken(&self.taken);
        // SAFETY: this thread has taken the lock, and gives it back when the reference is gone.
        self.value.with_mut(|value| what(unsafe { &mut *value }))
    }

    #[cold]
    fn wait(&self) {
        let mut times = 0;
        loop {
            pause(&mut times);
            if !self.taken.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_has_the_value() {
        const TIMES: u64 = if cfg!(miri) { 100 } else { 100_000 };
        let lock = BriefLock::new((0_u64, 0_u64));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        lock.with(|(first, second)| {
                            assert_eq!(first, second);
                            *first += 1;
                            *second += 1;
                        });
                    }
                });
            }
        });
        assert_eq!(lock.with(|value| *value), (4 * TIMES, 4 * TIMES));
    }
}
