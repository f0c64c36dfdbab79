//! Processes and their standard streams: child processes that call a plugin, and what is printed.

pub(crate) mod cache;
pub mod child;
pub mod interrupt;
pub mod output;
pub(crate) mod progress;
mod scratch;
#[allow(unsafe_code, reason = "the only module that calls libc")]
mod system;
pub(crate) mod usage;

pub(crate) use scratch::{Scratch, usable_folder};
