//! Extensions: functions beyond the table, found by hosts in a chain of structs that begins in it.
//!
//! Layouts and MemoryDescriptions are there for every plugin: buffers are dense and row-major unless a plugin says otherwise,
//! and devices and topologies say which memories there are. Every other extension is a trait: a plugin has the
//! extension if its client implements the trait.

#![allow(unsafe_code, reason = "the C interface is spoken here")]
#![allow(non_upper_case_globals, reason = "the C names stand, also in patterns")]
// As in the table, every function is generic in the client, whether it uses the parameter or not.
#![allow(clippy::extra_unused_type_parameters)]

mod callbacks;
mod cross_host;
mod custom_partitioner;
mod executable_metadata;
pub(crate) mod export;
pub(crate) mod extension;
pub mod ffi;
mod host_memory_allocator;
pub(crate) mod layouts;
mod memory_descriptions;
mod phase_compile;
pub(crate) mod profiler;
mod raw_buffers;
pub(crate) mod shardings;
pub mod vendor;

use std::ptr;

use pjrt_sys::PJRT_Extension_Base;

pub use callbacks::{Callbacks, PrefatalCallbacks};
pub use cross_host::CrossHostTransfers;
pub use custom_partitioner::{CustomPartitioner, CustomPartitioners, Partition, ShardedArray};
pub use executable_metadata::ExecutableMetadata;
pub use ffi::Ffi;
pub use host_memory_allocator::HostMemoryAllocator;
pub use phase_compile::{PartialProgram, PhaseCompile, PhaseRequest};
pub use profiler::{Profiler, Timeline, TimelineSpan, layer as profiler_layer};
pub use raw_buffers::RawBuffers;
pub use shardings::Shardings;
pub use vendor::VendorExtension;

pub use crate::sharding::{Sharding, Subgroup};
pub use crate::user_data::UserData;

/// Hands the struct of an extension to the process.
fn leak<T>(extension: T) -> *mut PJRT_Extension_Base {
    ptr::from_mut(Box::leak(Box::new(extension))).cast()
}
