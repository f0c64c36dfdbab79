//! Models of what threads do to events, buffers and executions at the same time. The sources are those of `pjrt-plugin`, on the
//! primitives of loom, which tries every order in which the threads can take turns.
//!
//! `cargo xtask loom` runs them.

#![allow(dead_code, unreachable_pub, reason = "the sources have more than the models use")]

#[allow(unsafe_code, reason = "the source is of the part of the crate that is unsafe")]
#[path = "../../src/abi/brief_lock.rs"]
mod brief_lock;
#[path = "../../src/by_device.rs"]
mod by_device;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/event.rs"]
mod event;
#[path = "../../src/launch.rs"]
mod launch;
#[allow(unsafe_code, reason = "the source is of the part of the crate that is unsafe")]
#[path = "../../src/abi/meeting.rs"]
mod meeting;
#[allow(unsafe_code, reason = "the source is of the part of the crate that is unsafe")]
#[path = "../../src/abi/words.rs"]
mod words;
#[path = "../../src/promise.rs"]
mod promise;
#[path = "../../src/storage.rs"]
mod storage;

mod models;

/// In the place of `pjrt-plugin`'s module: the same names, of loom.
mod sync {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU8, Ordering};
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap()
    }

    /// Lets the others go on. loom comes back when one of them has done something.
    pub(crate) fn pause(_: &mut u32) {
        loom::thread::yield_now();
    }

    pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(guard).unwrap()
    }
}

/// In the place of `pjrt-plugin`'s module, which runs those that nest too deep a little later on the same thread: no other
/// thread has a part in that.
mod callbacks {
    use crate::error::Result;

    pub(crate) type Callback = Box<dyn FnOnce(Result<()>) + Send>;

    pub(crate) fn call_back(waiting: Vec<Callback>, outcome: &Result<()>) {
        for callback in waiting {
            callback(outcome.clone());
        }
    }
}

/// In the place of `pjrt-plugin`'s module: `guard` knows the panic behind something that is lost.
mod abi {
    pub(crate) use crate::{brief_lock, meeting, words};

    /// In the place of `pjrt-plugin`'s module, whose locks are static: one that is made anew for each order.
    pub(crate) mod device_locks {
        use crate::brief_lock::Lock;
        use crate::sync::AtomicBool;

        loom::lazy_static! {
            static ref LOCK: Lock = Lock(AtomicBool::new(false));
        }

        pub(crate) fn device_lock(_: usize) -> &'static Lock {
            &LOCK
        }
    }

    /// In the place of `pjrt-plugin`'s module: nobody forks.
    pub(crate) mod fork {
        use crate::error::Error;

        pub(crate) fn is_child() -> bool {
            false
        }

        pub(crate) fn refusal() -> Error {
            Error::failed_precondition("forked")
        }
    }

    pub(crate) mod guard {
        use crate::error::Error;

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
