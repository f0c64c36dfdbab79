//! A small, typed client of the PJRT C API, which does what hosts do, without a framework.
//!
//! This is the only module of the crate with `unsafe` calls to plugins. A plugin is foreign code, and no host
//! can check what foreign code does with memory. The types of this module fulfill the host's side of the
//! interface's contract, and assume that the plugin fulfills its side. Callers that do not trust the plugin,
//! such as the conformance kit, use them in a child process.
//!
//! Objects destroy what they own when they are dropped. Except where a type has a lifetime, they may be
//! dropped in any order, even after their client: hosts do this, and [`crate::conform`] tests it.

#![allow(unsafe_code, reason = "the only module that calls the foreign library")]

mod buffer;
mod call;
mod called;
mod client;
mod element_type;
mod error;
mod error_object;
mod event;
mod executable;
mod extension;
mod fence;
mod host_memory;
mod initialize;
mod layout;
mod library;
mod objects;
mod passed;
mod plugin;
mod returned;
mod slices;
mod topology;
mod transfer;
mod upload;
mod values;

pub use buffer::{Buffer, CopyLayout, Dependency, FutureCopy, HeldBytes};
pub(crate) use called::{on_first_calls, take_called};
pub use client::{AliasHandle, Client, CreateOption};
pub use element_type::ElementType;
pub use error::{Code, Error, Result};
pub(crate) use error_object::{read as read_error, take as take_error};
pub(crate) use event::eventually;
pub use event::{Event, Outcome};
pub use executable::{
    CompiledMemory, Executable, ExecuteOptions, Launched, LoadedExecutable, Program, Refused, Serialized,
};
pub use extension::{EXTENSION_FUNCTIONS, ExtensionFunction};
pub use fence::{Fence, HostSizes, Watched, fenced, prefilled, with_host_sizes};
pub use host_memory::{HostMemory, UNWRITTEN, ViewMemory};
pub use layout::{Layout, Tile};
pub use library::LoadError;
pub use objects::{Device, DeviceDescription, Memory, MemoryStats, UserData};
pub(crate) use plugin::SlotArgs;
pub use plugin::{ExtensionInfo, Plugin, SlotState};
pub use returned::{HeldError, ReadAgain, Returned, ReturnedBytes};
pub(crate) use slices::{array, bytes, text};
pub use topology::Topology;
pub use transfer::TransferManager;
pub use upload::{HostArray, Semantics, Uploaded};
pub(crate) use values::named_values_of_host;
pub use values::{NamedValue, Value};
