//! The C side: the `extern "C"` function of each slot of the table, generic in the client, one file per object of PJRT.
//!
//! `table` lists the functions. `guard` runs their bodies, `args` reads and writes structs of the host's version, `handle`
//! converts objects to the host's pointers and back, `c_arrays` stores strings and arrays in the form that C reads, and
//! `forked_call` lists the functions that a forked child can call. `call_trace` writes traces and leak reports, `recording`
//! collects the spans of the profiler, `memory_usage` counts the bytes of buffers, `in_flight` limits the launches that
//! have not finished, and `exit` notifies clients of the end of
//! the process.

#![allow(unsafe_code, reason = "this module implements the C interface")]
#![allow(non_upper_case_globals, reason = "constants keep their names of the C API, also in patterns")]
// Every function of the table is generic in the client, including those that do not use the parameter.
#![allow(clippy::extra_unused_type_parameters)]

pub(crate) mod args;
pub(crate) mod buffer;
pub(crate) mod c_arrays;
pub(crate) mod call_trace;
pub(crate) mod client;
pub(crate) mod client_state;
pub(crate) mod decode;
pub(crate) mod device;
pub(crate) mod device_description;
pub(crate) mod download;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod executable;
pub(crate) mod execute;
pub(crate) mod exit;
pub(crate) mod forked_call;
pub(crate) mod guard;
pub(crate) mod handle;
pub(crate) mod host_callback;
pub(crate) mod host_futures;
pub(crate) mod in_flight;
pub(crate) mod joint_launch;
pub(crate) mod kv;
pub(crate) mod layout;
pub(crate) mod loaded;
pub(crate) mod memory;
pub(crate) mod memory_usage;
pub(crate) mod plugin;
pub(crate) mod recording;
pub(crate) mod table;
pub(crate) mod topology;
pub(crate) mod transfer;
pub(crate) mod unfinished;
pub(crate) mod upload;
