//! The parts that both the traits and the C side use. They import nothing else from the crate.
//!
//! `sync` contains the primitives that the models in `loom/` replace; `oneshot`, `spin_lock` and `device_lock` are built on
//! them. `event`, `promise`, `launch` and `storage` are the states of asynchronous work and of buffers. `panic_guard`
//! converts panics to errors, with the floating-point environment of `float_environment`. `fork` detects forked processes.

pub(crate) mod allocate;
pub(crate) mod by_device;
pub(crate) mod callbacks;
pub(crate) mod device_lock;
pub mod error;
pub(crate) mod event;
pub(crate) mod fingerprint;
pub(crate) mod float_environment;
pub(crate) mod fork;
pub(crate) mod host_memory;
pub(crate) mod launch;
pub(crate) mod oneshot;
pub(crate) mod packed;
pub(crate) mod panic_guard;
pub(crate) mod promise;
pub(crate) mod spin_lock;
pub(crate) mod storage;
pub(crate) mod strided;
pub(crate) mod sync;
pub(crate) mod vec_move;
