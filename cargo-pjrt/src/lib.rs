//! Inspects, tests and runs PJRT plugins, without a framework.
//!
//! The program `cargo pjrt` has a verb for each of these modules:
//!
//! | verb | module | does |
//! |---|---|---|
//! | `inspect` | [`inspect`] | says what a plugin is: version, functions, extensions, attributes, which hosts it suits |
//! | `run` | [`run`] | runs a StableHLO or HLO program through a plugin |
//! | `conform` | [`conform`] | checks a plugin against the rules of the interface and what hosts need |
//! | `record` | [`session::record`] | writes down what a host does with a plugin |
//! | `replay` | [`session::replay`] | does the same with another plugin, and compares |
//! | `cat` | [`cat`] | checks and prints StableHLO programs |
//!
//! They stand on [`host`], a small client of the C API.

#![deny(unsafe_code)]

pub mod cat;
pub mod child;
pub mod compile_options;
pub mod conform;
pub mod host;
pub mod inspect;
pub mod npy;
mod number;
pub mod output;
pub mod profile;
pub mod run;
pub mod session;
#[allow(unsafe_code, reason = "the one module that calls the system's own library")]
mod system;
mod table;
