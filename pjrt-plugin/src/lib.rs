//! Write PJRT plugins for JAX, PyTorch/XLA, GoMLX and ZML in safe Rust.
//!
//! PJRT is the C interface through which machine-learning frameworks run programs on devices. A plugin is a shared library
//! that exports one function, `GetPjrtApi`, with a table of 138 functions behind it. This crate provides that table; an
//! author implements four traits:
//!
//! | trait | is |
//! |---|---|
//! | [`PjrtClient`] | the entry: options, devices, compile, load, execute, upload |
//! | [`PjrtDevice`] | what one device is |
//! | [`PjrtBuffer`] | bytes on a device |
//! | [`PjrtExecutable`] | a compiled program |
//!
//! Everything else belongs to the crate: handles, struct sizes of other versions of the interface, strings that must outlive
//! a call, events and their callbacks, buffers that are pending, in error, donated or deleted, panics.

#![deny(unsafe_code)]

#[cfg(panic = "abort")]
compile_error!(
    "a plugin must be built with unwinding: with panic = \"abort\", a bug in it would end the host"
);

mod abi;
pub mod attributes;
pub mod buffer;
pub mod client;
pub mod compile_options;
pub mod device;
pub mod device_assignment;
pub mod element_type;
pub mod error;
pub mod event;
pub mod executable;
pub mod execution;
mod fingerprint;
pub mod host_buffer;
pub mod kv_store;
pub mod layout;
pub mod memory;
pub mod options;
pub mod program;
pub mod promise;
mod proto;
mod serialized;
pub mod stats;
mod storage;
mod strided;
mod sync;
pub mod topology;

pub use crate::abi::table::api_table;
pub use crate::attributes::{AttributeValue, PluginAttributes};
pub use crate::buffer::PjrtBuffer;
pub use crate::client::{
    BufferRef, ClientConfig, CompileRequest, DeserializeRequest, PjrtClient, Placement, ProcessInfo,
    ProcessState,
};
pub use crate::compile_options::{CompileOptions, OverrideValue};
pub use crate::device::{DeviceDescription, DeviceId, PjrtDevice};
pub use crate::device_assignment::DeviceAssignment;
pub use crate::element_type::ElementType;
pub use crate::error::{Error, ErrorCode, Result};
pub use crate::event::{Event, EventSource};
pub use crate::executable::{ArraySpec, PjrtExecutable};
pub use crate::execution::{Completion, Execution, Input, ReadyExecution};
pub use crate::host_buffer::{CopyToHost, HostBuffer};
pub use crate::kv_store::{KeyValueBackend, KeyValueStore};
pub use crate::layout::Layout;
pub use crate::memory::Memory;
pub use crate::options::{OptionSpec, OptionValue, Options};
pub use crate::program::{Program, ProgramFormat};
pub use crate::promise::{Pending, Promise, promise};
pub use crate::stats::{CompiledMemoryStats, MemoryStats};
pub use crate::topology::Topology;
/// Exports a plugin: see the crate's documentation.
pub use pjrt_plugin_macros::pjrt_plugin;

/// What the code that [`#[pjrt_plugin]`](pjrt_plugin) makes needs. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use pjrt_sys::PJRT_Api;

    pub use crate::abi::table::Export;
}
