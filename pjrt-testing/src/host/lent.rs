//! Objects and structs of another host, for a plugin that stands between that host and this plugin.

use std::mem::ManuallyDrop;

use pjrt_sys::*;

use super::buffer::Buffer;
use super::client::Client;
use super::error::{Error, Result};
use super::error_object;
use super::executable::LoadedExecutable;
use super::objects::{Device, Memory};
use super::plugin::{Plugin, SlotArgs};

macro_rules! lent {
    ($($type:ident $raw:ident;)*) => {
        $(
            impl $type {
                /// Wraps an object of another host without taking ownership of it.
                ///
                /// # Safety
                ///
                /// The object belongs to this plugin, and exists while the value is used.
                #[must_use]
                pub unsafe fn lent(plugin: Plugin, raw: *mut $raw) -> ManuallyDrop<Self> {
                    ManuallyDrop::new(Self { plugin, raw })
                }
            }
        )*
    };
}

lent! {
    Client PJRT_Client;
    Buffer PJRT_Buffer;
    LoadedExecutable PJRT_LoadedExecutable;
}

impl Device<'_> {
    /// Wraps a device that another host passes.
    ///
    /// # Safety
    ///
    /// The pointer is that of a device of this plugin, whose client exists while the value is used.
    #[must_use]
    pub unsafe fn lent(plugin: Plugin, raw: *mut PJRT_Device) -> Self {
        Self::new(plugin, raw)
    }

    /// Returns the address of the device.
    #[must_use]
    pub fn address(&self) -> usize {
        self.raw.addr()
    }
}

impl Memory<'_> {
    /// Wraps a memory that another host passes. Returns `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// The pointer is null, or that of a memory of this plugin, whose client exists while the value is used.
    #[must_use]
    pub unsafe fn lent(plugin: Plugin, raw: *mut PJRT_Memory) -> Option<Self> {
        Self::new(plugin, raw, "").ok()
    }
}

impl Plugin {
    /// Returns the function table.
    #[must_use]
    pub fn table(self) -> *const PJRT_Api {
        self.table
    }

    /// Calls a function of the table, and returns the struct after the call.
    ///
    /// # Safety
    ///
    /// The struct is filled in as the interface requires.
    pub unsafe fn call_filled<A: SlotArgs>(self, args: A) -> Result<A> {
        self.call(args)
    }
}

/// Reads an error without destroying it. `function` is the name of the function that returned it.
///
/// # Safety
///
/// The error belongs to this plugin and exists.
#[must_use]
pub unsafe fn read_error(plugin: Plugin, function: &'static str, error: *mut PJRT_Error) -> Error {
    error_object::read(plugin, function, error)
}

/// Reads an error of the function in a slot, and destroys it. Returns `None` for a null pointer.
///
/// # Safety
///
/// The pointer is null, or that of an error of this plugin that the caller owns.
#[must_use]
pub unsafe fn take_error(plugin: Plugin, slot: usize, error: *mut PJRT_Error) -> Option<Error> {
    error_object::take(plugin, slot, error)
}
