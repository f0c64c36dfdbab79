//! The C side: everything in this crate that is unsafe.
//!
//! One file per kind of object, with a generic `extern "C"` function per slot of the table; `table` puts them together.
//! Around them: `guard` stops panics, `args` reads and writes structs of the host's version, `handle` follows the host's
//! pointers, `host_callback` calls the host's functions, `pinned` keeps strings and arrays where the host can read them,
//! `meeting` hands a value from one thread to another, `brief_lock` has locks for a few instructions, `device_locks` those that
//! buffers are behind, `words` moves vectors,
//! `allocate` has memory whose size the host decides, `fork` keeps forked processes from what their threads would do,
//! `observe` writes traces and lists of leaks, `holders` says who holds memory, `exit` tells clients of the process's end.

#![allow(unsafe_code, reason = "the C interface is spoken here")]
#![allow(non_upper_case_globals, reason = "the C names stand, also in patterns")]
// The table is generic in the client, and so is every function in it, whether it uses the parameter or not.
#![allow(clippy::extra_unused_type_parameters)]

pub(crate) mod allocate;
pub(crate) mod args;
pub(crate) mod brief_lock;
pub(crate) mod buffer;
pub(crate) mod client;
pub(crate) mod client_state;
pub(crate) mod decode;
pub(crate) mod deferred;
pub(crate) mod device;
pub(crate) mod device_locks;
pub(crate) mod download;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod executable;
pub(crate) mod execute;
pub(crate) mod exit;
pub(crate) mod float_environment;
pub(crate) mod fork;
pub(crate) mod guard;
pub(crate) mod handle;
pub(crate) mod holders;
pub(crate) mod host_callback;
pub(crate) mod host_memory;
pub(crate) mod kv;
pub(crate) mod layout;
pub(crate) mod loaded;
pub(crate) mod meeting;
pub(crate) mod memory;
pub(crate) mod observe;
pub(crate) mod pinned;
pub(crate) mod plugin;
pub(crate) mod table;
pub(crate) mod topology;
pub(crate) mod transfer;
pub(crate) mod upload;
pub(crate) mod words;
