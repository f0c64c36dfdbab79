//! The C side: everything in this crate that is unsafe.

#![allow(unsafe_code)]

pub(crate) mod guard;
pub(crate) mod host_memory;
