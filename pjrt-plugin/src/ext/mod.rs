//! Extensions: functions beyond the table, found by hosts in a chain of structs that begins in it.
//!
//! Layouts are there for every plugin, since buffers are dense and row-major unless a plugin says otherwise. Everything
//! else is a trait that an author opts into, with its name in `#[pjrt_plugin(extensions(...))]`.

#![allow(unsafe_code)]
#![allow(non_upper_case_globals)]
// As in the table, every function is generic in the client, whether it uses the parameter or not.
#![allow(clippy::extra_unused_type_parameters)]

pub(crate) mod layouts;
pub(crate) mod shardings;

use std::ptr;

use pjrt_sys::PJRT_Extension_Base;

pub use shardings::{Sharding, Shardings};

use crate::client::PjrtClient;

/// An extension of a plugin's table, as [`api_table_with`](crate::api_table_with) takes it.
#[derive(Debug, Clone, Copy)]
pub struct Extension {
    /// Makes the extension's struct, which lives as long as the process, in front of a chain.
    link: fn(next: *mut PJRT_Extension_Base) -> *mut PJRT_Extension_Base,
}

/// The head of a client's chain: what every plugin has, and what its author opted into.
pub(crate) fn chain<C: PjrtClient>(extensions: &[Extension]) -> *mut PJRT_Extension_Base {
    extensions.iter().fold(layouts::link::<C>(ptr::null_mut()), |next, extension| (extension.link)(next))
}

/// Hands the struct of an extension to the process.
fn leak<T>(extension: T) -> *mut PJRT_Extension_Base {
    ptr::from_mut(Box::leak(Box::new(extension))).cast()
}
