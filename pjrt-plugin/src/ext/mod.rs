//! Extensions: further functions, which hosts find in a linked list of structs that begins in the function table.
//!
//! Every plugin has the extensions Layouts and MemoryDescriptions: layouts are row-major, and the memories are those of the
//! device descriptions. Every other extension is a trait. A plugin has the extension if its client implements the trait.
//!
//! # Example
//!
//! A client that implements the extensions (the implementations of the four main traits are hidden):
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use std::time::{Duration, Instant};
//!
//! use pjrt_plugin::ext::vendor::{self, PJRT_Client, PJRT_Error, guarded};
//! use pjrt_plugin::ext::*;
//! use pjrt_plugin::*;
//!
//! struct Chips {
//!     devices: [Chip; 1],
//!     callbacks: PrefatalCallbacks,
//! }
//! # struct Chip(DeviceDescription, [Memory; 1]);
//! # impl PjrtDevice for Chip {
//! #     fn description(&self) -> &DeviceDescription { &self.0 }
//! #     fn memories(&self) -> &[Memory] { &self.1 }
//! # }
//!
//! struct Storage(Mutex<Vec<u8>>);
//! # impl PjrtBuffer for Storage {
//! #     fn size_in_bytes(&self) -> usize { self.0.lock().unwrap().len() }
//! #     fn copy_to_host(self: Arc<Self>, copy: CopyToHost) { copy.finish_with(&self.0.lock().unwrap()) }
//! # }
//!
//! struct Code {
//!     instructions: Vec<u8>,
//!     signature: Signature,
//! }
//! # impl PjrtExecutable for Code {
//! #     fn signature(&self) -> &Signature { &self.signature }
//! # }
//! # impl PjrtClient for Chips {
//! #     type Device = Chip;
//! #     type Buffer = Storage;
//! #     type Executable = Code;
//! #     type Loaded = ();
//! #     const PLATFORM_NAME: &'static str = "chips";
//! #     fn create(_: ClientConfig) -> Result<Self> {
//! #         let chip = Chip(DeviceDescription::new(0, "chip"), [Memory::new(0, Memory::DEVICE)]);
//! #         Ok(Self { devices: [chip], callbacks: PrefatalCallbacks::new() })
//! #     }
//! #     fn devices(&self) -> &[Chip] { &self.devices }
//! #     fn platform_version(&self) -> String { String::new() }
//! #     fn compile(request: CompileRequest<'_, Self>) -> Result<Code> {
//! #         Ok(Code { instructions: request.program.code().to_vec(), signature: Signature::new("main", [], []) })
//! #     }
//! #     fn load(&self, _: &Arc<Code>, _: &DeviceAssignment) -> Result<()> { Ok(()) }
//! #     fn execute(&self, _: &(), execution: Execution<Storage>) -> Result<()> {
//! #         execution.fail(Error::unimplemented("this example has no interpreter"));
//! #         Ok(())
//! #     }
//! #     fn buffer_from_host(&self, data: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
//! #         Ok(Pending::from(Storage(Mutex::new(data.to_vec()?))))
//! #     }
//! # }
//!
//! // Extensions without methods.
//! impl CrossHostTransfers for Chips {}
//! impl CustomPartitioners for Chips {}
//! impl Ffi for Chips {}
//!
//! impl Callbacks for Chips {
//!     fn prefatal_callbacks(&self) -> &PrefatalCallbacks {
//!         &self.callbacks
//!     }
//! }
//!
//! impl ExecutableMetadata for Chips {
//!     fn executable_metadata(code: &Code) -> Result<Vec<u8>> {
//!         Ok(format!("{} instructions", code.instructions.len()).into_bytes())
//!     }
//! }
//!
//! impl HostMemoryAllocator for Chips {
//!     type HostMemory = Vec<u8>;
//!
//!     fn allocate_host_memory(&self, size: usize, _numa_node: Option<usize>) -> Result<Vec<u8>> {
//!         Ok(vec![0; size])
//!     }
//! }
//!
//! impl PhaseCompile for Chips {
//!     fn phase_names() -> Vec<String> {
//!         vec!["optimize".to_owned()]
//!     }
//!
//!     fn run_phases(request: PhaseRequest<'_>) -> Result<Vec<PartialProgram>> {
//!         let optimized = |program| PartialProgram { producer_phase: "optimize".to_owned(), ..program };
//!         Ok(request.programs.into_iter().map(optimized).collect())
//!     }
//! }
//!
//! impl Profiler for Chips {
//!     fn start_tracing() -> Result<()> {
//!         // Start the counters of the chips here.
//!         Ok(())
//!     }
//!
//!     fn stop_tracing() -> Result<Vec<Timeline>> {
//!         let span = TimelineSpan {
//!             name: "dot".to_owned(),
//!             start: Instant::now(),
//!             duration: Duration::from_micros(3),
//!             attributes: vec![("flops".to_owned(), AttributeValue::Int64(4096))],
//!         };
//!         Ok(vec![Timeline { name: "core 0".to_owned(), spans: vec![span] }])
//!     }
//! }
//!
//! impl RawBuffers for Chips {
//!     fn write_raw(storage: &Arc<Storage>, offset: usize, data: HostBuffer) -> Result<Event> {
//!         let mut bytes = storage.0.lock().unwrap();
//!         data.copy_into(&mut bytes[offset..offset + data.dense_size()])?;
//!         Ok(Event::ready())
//!     }
//! }
//!
//! impl Shardings for Chips {
//!     fn parameter_shardings(_: &Code) -> Option<Vec<Sharding>> {
//!         // A vector in two halves, and a scalar.
//!         let halves = Sharding::Tiled {
//!             tile_assignment_dimensions: vec![2],
//!             tile_assignment_devices: vec![0, 1],
//!             replicate_on_last_tile_dim: false,
//!         };
//!         Some(vec![halves, Sharding::Replicated])
//!     }
//!
//!     fn output_shardings(_: &Code) -> Option<Vec<Sharding>> {
//!         Some(vec![Sharding::Replicated])
//!     }
//! }
//!
//! /// The functions that the vendor's host calls.
//! #[repr(C)]
//! #[derive(Clone, Copy)]
//! struct ChipFunctions {
//!     num_chips: unsafe extern "C" fn(*const PJRT_Client, *mut usize) -> *mut PJRT_Error,
//! }
//!
//! impl VendorExtension for Chips {
//!     type Functions = ChipFunctions;
//!
//!     const TYPE: u32 = vendor::FIRST_TYPE + 1;
//!     const FUNCTIONS: ChipFunctions = ChipFunctions { num_chips };
//! }
//!
//! unsafe extern "C" fn num_chips(client: *const PJRT_Client, number: *mut usize) -> *mut PJRT_Error {
//!     guarded("Chips_NumChips", || {
//!         // SAFETY: the host passes a live client of this plugin.
//!         let chips = unsafe { vendor::client::<Chips>(client) }?;
//!         // SAFETY: the host passes a pointer that is valid for writes.
//!         unsafe { number.write(chips.devices().len()) };
//!         Ok(())
//!     })
//! }
//! ```

#![allow(unsafe_code, reason = "this module implements the C interface")]
#![allow(non_upper_case_globals, reason = "constants keep their names of the C API, also in patterns")]
// As in the table, every function is generic in the client, including those that do not use the parameter.
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
pub use cross_host::{CrossHostTransfers, Received, RemoteTransfer, Sent};
pub use custom_partitioner::{CustomPartitioner, CustomPartitioners, Partition, ShardedArray};
pub use executable_metadata::ExecutableMetadata;
pub use ffi::Ffi;
pub use host_memory_allocator::HostMemoryAllocator;
pub use phase_compile::{PartialProgram, PhaseCompile, PhaseRequest};
pub use profiler::{Profiler, Timeline, TimelineSpan, Timelines, layer as profiler_layer};
pub use raw_buffers::RawBuffers;
pub use shardings::Shardings;
pub use vendor::VendorExtension;

pub use crate::sharding::{Reduction, Sharding, Subgroup};
pub use crate::user_data::UserData;

/// Allocates the struct of an extension, which lives as long as the process.
fn leak<T>(extension: T) -> *mut PJRT_Extension_Base {
    ptr::from_mut(Box::leak(Box::new(extension))).cast()
}
