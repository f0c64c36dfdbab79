//! A small, typed client of the PJRT C API, which does what hosts do, without a framework.
//!
//! This is the only module with `unsafe` calls to plugins, here and in `cargo-pjrt`, which uses all of it and whose needs decide
//! its interface; it is not part of the public interface of this crate. A plugin is foreign code, and no host
//! can check what foreign code does with memory. The types of this module fulfill the host's side of the
//! interface's contract, and assume that the plugin fulfills its side. Callers that do not trust the plugin,
//! such as the conformance kit, use them in a child process.
//!
//! Objects destroy what they own when they are dropped. Except where a type has a lifetime, they may be
//! dropped in any order, even after their client: hosts do this, and `cargo pjrt conform` tests it.

#![allow(unsafe_code, reason = "the only module that calls the foreign library")]

mod buffer;
mod call;
mod called;
mod channels;
mod client;
mod cross_host;
mod earlier;
mod element_type;
mod error;
mod error_object;
mod event;
mod executable;
mod extension;
mod fence;
mod handlers;
mod handles;
mod host_memory;
mod initialize;
mod layout;
mod lent;
mod library;
mod metadata;
mod objects;
mod passed;
mod phases;
mod plugin;
mod profiler;
mod returned;
mod slices;
mod started;
mod topology;
mod trace;
mod transfer;
mod upload;
mod values;

pub use buffer::{Buffer, CopyLayout, Dependency, FutureCopy, HeldBytes};
pub use called::{on_compilations, on_first_calls, take_called, take_refused_destroy};
pub use channels::{Answer, Answered, DeviceChannels, Sent};
pub use client::{AliasHandle, Client, CreateOption};
pub use earlier::{begin_period, returned_earlier};
pub use element_type::ElementType;
pub use error::{Code, Error, Result};
pub use event::{Event, Outcome};
pub use event::{eventually, limit_waiting, limited, take_waits_in_vain};
pub use executable::{
    CompiledMemory, Executable, ExecuteOptions, Launched, LoadedExecutable, Program, Refused, Serialized,
};
pub use extension::{EXTENSION_FUNCTIONS, ExtensionFunction};
pub use fence::{Fence, HostSizes, Watched, fenced, prefilled, with_host_sizes};
pub use handlers::{COLLECTED, CallData, HANDLER_ERROR, NOT_FOUND, handler_asks_for_data, handler_calls};
pub use host_memory::{HostMemory, OVERWRITTEN, UNWRITTEN, ViewMemory};
pub use layout::{Layout, Tile};
pub use lent::{read_error, take_error};
pub use library::LoadError;
pub use metadata::Metadata;
pub use objects::{Device, DeviceDescription, Memory, MemoryStats, UserData};
pub use passed::{PASSED_OVERWRITTEN, PAST_END, keep_passed, with_terminated};
pub use plugin::SlotArgs;
pub use plugin::{ExtensionInfo, Plugin, SlotState};
pub use profiler::Profiler;
pub use returned::{HeldError, ReadAgain, Returned, ReturnedBytes};
pub use slices::{array, bytes, text};
pub use topology::Topology;
pub use trace::{TracedCall, in_traced_step, trace_calls, traced_calls};
pub use transfer::TransferManager;
pub use upload::{HostArray, Semantics, Uploaded};
pub use values::named_values_of_host;
pub use values::{NamedValue, Value};
