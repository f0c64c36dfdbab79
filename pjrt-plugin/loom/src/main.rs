//! Models of concurrent operations on events, buffers and executions. They use the sources of `pjrt-plugin` with the primitives
//! of loom, which runs every interleaving of the threads.
//!
//! `cargo xtask loom` runs them.

#![allow(dead_code, unreachable_pub, reason = "the sources contain more than the models use")]

mod models;

#[path = "../../src/core"]
mod core {
    pub(crate) mod by_device;
    pub(crate) mod error;
    pub(crate) mod event;
    pub(crate) mod launch;
    pub(crate) mod oneshot;
    pub(crate) mod promise;
    pub(crate) mod spin_lock;
    pub(crate) mod storage;
    pub(crate) mod vec_move;

    /// Replaces the module of `pjrt-plugin` with the primitives of loom, under the same names.
    pub(crate) mod sync {
        pub(crate) use loom::cell::UnsafeCell;
        pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, Ordering};
        pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};

        pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
            mutex.lock().unwrap()
        }

        /// Yields to the other threads. loom returns after one of them has run.
        pub(crate) fn pause(_: &mut u32) {
            loom::thread::yield_now();
        }

        pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            condition.wait(guard).unwrap()
        }
    }

    /// Replaces the module of `pjrt-plugin`, which defers callbacks that nest too deeply. That involves a single thread, so the
    /// models need not contain it.
    pub(crate) mod callbacks {
        use crate::core::error::Result;

        pub(crate) type Callback = Box<dyn FnOnce(Result<()>) + Send>;

        pub(crate) fn call_back(waiting: Vec<Callback>, outcome: &Result<()>) {
            for callback in waiting {
                callback(outcome.clone());
            }
        }
    }

    /// Replaces the module of `pjrt-plugin`, whose locks are static, with a lock that is created for each interleaving.
    pub(crate) mod device_lock {
        use crate::core::spin_lock::SpinLock;
        use crate::core::sync::AtomicBool;

        loom::lazy_static! {
            static ref LOCK: SpinLock = SpinLock(AtomicBool::new(false));
        }

        pub(crate) fn device_lock(_: usize) -> &'static SpinLock {
            &LOCK
        }
    }

    /// Replaces the module of `pjrt-plugin`. The process of the models does not fork.
    pub(crate) mod fork {
        use crate::core::error::Error;

        pub(crate) fn is_child() -> bool {
            false
        }

        pub(crate) fn refusal() -> Error {
            Error::failed_precondition("forked")
        }
    }

    /// Replaces the module of `pjrt-plugin`, which finds the panic that caused the loss of a promise.
    pub(crate) mod panic_guard {
        use crate::core::error::Error;

        pub(crate) fn lost(what: &str) -> Error {
            Error::internal(what)
        }
    }
}

fn main() {
    for (name, model) in models::ALL {
        loom::model(model);
        println!("ok: {name}");
    }
}
