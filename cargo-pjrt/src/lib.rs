//! Inspects, tests and runs PJRT plugins, without a framework.
//!
//! The program `cargo pjrt` has a subcommand for each of these modules:
//!
//! | subcommand | module | description |
//! |---|---|---|
//! | `new` | [`new`] | creates the repository of a new plugin |
//! | `inspect` | [`inspect`] | reports a plugin's version, functions, extensions, attributes, and the hosts that it supports |
//! | `doctor` | [`doctor`] | explains why a plugin does not load, or why JAX does not choose it |
//! | `run` | [`run`] | runs a StableHLO or HLO program on a plugin |
//! | `needs` | [`needs`] | lists the operations that programs need, and those that a plugin refuses |
//! | `conform` | [`conform`] | checks a plugin against the rules of the interface and the requirements of hosts |
//! | `record` | [`session::record`] | records the calls of a host to a plugin |
//! | `replay` | [`session::replay`] | repeats a recording on another plugin and compares the results |
//! | `numerics` | [`numerics`] | compares a plugin's results with known ones |
//! | `test` | [`test`](mod@test) | runs programs on a plugin in JAX, PyTorch/XLA and GoMLX |
//! | `compare` | [`compare`] | lists the differences between two plugins |
//! | `stress` | [`stress`] | uses a plugin from several threads, and measures its memory |
//! | `cat` | [`cat`] | checks and prints StableHLO programs |
//! | `wheel` | [`wheel`] | builds a Python wheel of a plugin |
//!
//! They are built on the crate `pjrt-testing`, a small client of the C API.

#![deny(unsafe_code)]

pub mod array;
pub mod cat;
pub mod compare;
pub mod conform;
pub mod doctor;
pub mod inspect;
pub mod needs;
pub mod new;
pub mod numerics;
pub mod process;
pub mod protobuf;
pub mod requirements;
pub mod run;
pub mod session;
pub mod stress;
pub mod test;
pub mod wheel;
