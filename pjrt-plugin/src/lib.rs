//! Write PJRT plugins for JAX, PyTorch/XLA, GoMLX and ZML in safe Rust.
//!
//! PJRT is the C interface through which machine-learning frameworks run programs on devices. A plugin is a shared library
//! that exports one function, `GetPjrtApi`, with a table of 138 functions behind it. This crate provides that table; an
//! author implements four traits, without a pointer or an `unsafe`:
//!
//! | trait | is |
//! |---|---|
//! | [`PjrtClient`] | the entry: options, devices, compilation, loading, execution, upload |
//! | [`PjrtDevice`] | what one device is, and which memories it has |
//! | [`PjrtBuffer`] | bytes on a device |
//! | [`PjrtExecutable`] | a compiled program |
//!
//! and puts [`#[pjrt_plugin]`](macro@pjrt_plugin) on the implementation of the first.
//!
//! # What the crate does
//!
//! * **Versions.** Structs are read and written by the size that the host declares, so one binary serves hosts from C API
//!   0.54 to the newest, and later ones.
//! * **The life of buffers.** Authors own bytes; whether a buffer is pending, ready, in error, deleted or donated, and who
//!   still reads it, is decided here.
//! * **Asynchrony.** An [`Execution`] owns the promise of its outputs and can be finished anywhere, at any time. Errors flow
//!   along the data.
//! * **Host memory.** [`HostBuffer`] and [`CopyToHost`] are the right to touch it; giving them up is what tells the host.
//! * **Errors and panics.** An [`Error`] has a code, a message, a hint and payloads; a panic becomes one, with its place.
//! * **Everything that lives longer than a call**: handles, strings, attributes, lists, caches.
//!
//! # An example
//!
//! The smallest client: one device, and one program, which doubles numbers. (A real one reads StableHLO.)
//!
//! ```
//! use std::sync::Arc;
//!
//! use pjrt_plugin::{
//!     ArraySpec, ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, ElementType, Execution,
//!     HostBuffer, Input, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable, Placement, Result,
//!     pjrt_plugin,
//! };
//!
//! struct Doubler([Device; 1]);
//!
//! struct Device(DeviceDescription, [Memory; 1]);
//!
//! /// Numbers on the device, as bytes.
//! struct Storage(Vec<u8>);
//!
//! struct Program([ArraySpec; 1]);
//!
//! #[pjrt_plugin]
//! impl PjrtClient for Doubler {
//!     type Device = Device;
//!     type Buffer = Storage;
//!     type Executable = Program;
//!     type Loaded = ();
//!
//!     const PLATFORM_NAME: &'static str = "doubler";
//!
//!     fn create(_: ClientConfig) -> Result<Self> {
//!         let description = DeviceDescription::new(0, "doubler");
//!         Ok(Self([Device(description, [Memory::new(0, Memory::DEVICE)])]))
//!     }
//!
//!     fn devices(&self) -> &[Device] {
//!         &self.0
//!     }
//!
//!     fn platform_version(&self) -> String {
//!         "1.0".to_owned()
//!     }
//!
//!     fn compile(_: CompileRequest<'_, Self>) -> Result<Program> {
//!         Ok(Program([ArraySpec::new(ElementType::F32, [4])]))
//!     }
//!
//!     fn load(&self, _: &Arc<Program>, _: &DeviceAssignment) -> Result<()> {
//!         Ok(())
//!     }
//!
//!     fn execute(&self, _: &(), execution: Execution<Storage>) -> Result<()> {
//!         // Runs now if the inputs are there, otherwise as soon as they are.
//!         execution.when_ready(|mut ready| {
//!             let double = |bytes: &[u8; 4]| (2.0 * f32::from_le_bytes(*bytes)).to_le_bytes();
//!             let array = |input: &Input<Storage>| Storage(input.0.as_chunks().0.iter().flat_map(double).collect());
//!             let inputs = ready.take_inputs();
//!             ready.complete(inputs.iter().map(|device| device.iter().map(array).collect()).collect());
//!         });
//!         Ok(())
//!     }
//!
//!     fn buffer_from_host(&self, data: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
//!         Ok(Pending::from(Storage(data.to_vec()?)))
//!     }
//! }
//!
//! impl PjrtDevice for Device {
//!     fn description(&self) -> &DeviceDescription {
//!         &self.0
//!     }
//!
//!     fn memories(&self) -> &[Memory] {
//!         &self.1
//!     }
//! }
//!
//! impl PjrtBuffer for Storage {
//!     fn size_in_bytes(&self) -> usize {
//!         self.0.len()
//!     }
//!
//!     fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
//!         copy.finish_with(&self.0);
//!     }
//! }
//!
//! impl PjrtExecutable for Program {
//!     fn name(&self) -> &str {
//!         "double"
//!     }
//!
//!     fn parameters(&self) -> &[ArraySpec] {
//!         &self.0
//!     }
//!
//!     fn outputs(&self) -> &[ArraySpec] {
//!         &self.0
//!     }
//! }
//!
//! // The table that the exported function gives hosts.
//! assert_eq!(pjrt_plugin::api_table!(Doubler).pjrt_api_version.major_version, 0);
//! ```
//!
//! In a crate of type `cdylib`, this is a plugin that JAX loads:
//!
//! ```console
//! $ PJRT_NAMES_AND_LIBRARY_PATHS=doubler:$PWD/target/debug/libdoubler.so JAX_PLATFORMS=doubler python
//! ```
//!
//! # Beyond the smallest
//!
//! * **A device with its own thread or queue**: move the [`Execution`] there; see [`Execution::when_allocated`] for queues
//!   that order work themselves, and [`promise`](promise()) for uploads that take time.
//! * **Memory that the host can read**: [`Memory::host_accessible`] and [`PjrtBuffer::host_bytes`]; uploads then need not
//!   copy either ([`HostBuffer::may_alias`]), and the host can make buffers over memory that it goes on writing to
//!   ([`PjrtClient::view_host_memory`]).
//! * **Donation**: [`PjrtExecutable::donated_parameters`] and [`Input::into_donated`].
//! * **Callbacks into the host** (JAX's `pure_callback`, `jax.debug.print`): [`Execution::host_callbacks`].
//! * **Several devices**: [`PjrtClient::devices`]; an execution carries all of its devices at once.
//! * **Several processes**: [`ClientConfig`] has the process's number and the [`KeyValueStore`] that they share.
//! * **Options**: [`PjrtClient::CREATE_OPTIONS`], and [`CompileOptions::compiler_options`] for those of the compiler.
//! * **Extensions**, what only some devices have: traits in [`ext`] that a client may implement, such as [`ext::Profiler`] and
//!   [`ext::Ffi`].
//! * **Tests**: [`api_table!`] gives the table without exporting it.
//!
//! # Threads
//!
//! Every method may be called from several threads at once, and none is called with a lock held. Callbacks, the author's and
//! the host's, run on the thread that completes what they wait for.
//!
//! # Environment
//!
//! `PJRT_PLUGIN_API_MINOR=112` makes a plugin report that version of the C API, for a host that cannot bear a newer one. It
//! only lowers the version, and not below 29, the oldest that hosts take: what cannot be granted is said on stderr.
//!
//! `PJRT_PLUGIN_TRACE=calls.json` writes every call of the host, with its arguments, result and time, in a form that
//! <https://ui.perfetto.dev> and `chrome://tracing` show: an array of JSON, which is whole after every call, so also after a crash.
//! (Into a pipe, it is written without its end, as that form allows.) `PJRT_PLUGIN_LEAK_REPORT=1` lists on stderr, when the process ends, the
//! handles that the host has not given back, each with the function that made it.

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
mod core;
pub mod device;
pub mod device_assignment;
pub mod element_type;
pub mod executable;
pub mod execution;
pub mod ext;
pub mod host_buffer;
pub mod host_callback;
pub mod host_view;
pub mod kv_store;
pub mod layout;
pub mod memory;
pub mod options;
pub mod program;
mod proto;
mod serialized;
mod shape;
mod sharding;
pub mod stats;
pub mod topology;
mod user_data;

pub use crate::attributes::{AttributeValue, PluginAttributes};
pub use crate::buffer::PjrtBuffer;
pub use crate::client::{
    BufferRef, ClientConfig, CompileRequest, DeserializeRequest, PjrtClient, Placement, ProcessInfo,
    ProcessState,
};
pub use crate::compile_options::{CompileOptions, OverrideValue};
pub use crate::core::by_device::ByDevice;
pub use crate::core::error::{self, Error, ErrorCode, Result};
pub use crate::core::event::{Event, EventSource};
pub use crate::core::promise::{Pending, Promise, promise};
pub use crate::device::{DeviceDescription, DeviceId, PjrtDevice};
pub use crate::device_assignment::DeviceAssignment;
pub use crate::element_type::ElementType;
pub use crate::executable::{ArraySpec, PjrtExecutable};
pub use crate::execution::{Completion, Execution, Input, ReadyExecution};
pub use crate::host_buffer::{CopyToHost, HostBuffer};
pub use crate::host_callback::{HostCallbacks, HostStream};
pub use crate::host_view::{HostView, HostViewLease, ReadsViews};
pub use crate::kv_store::{KeyValueBackend, KeyValueStore};
pub use crate::layout::Layout;
pub use crate::memory::Memory;
pub use crate::options::{OptionSpec, OptionValue, Options};
pub use crate::program::{Program, ProgramFormat};
pub use crate::stats::{CompiledMemoryStats, MemoryStats};
pub use crate::topology::Topology;
pub use pjrt_plugin_macros::pjrt_plugin;

/// The items that the expansions of this crate's macros name. Not for use by hand.
#[doc(hidden)]
pub mod __private {
    pub use pjrt_sys::PJRT_Api;

    pub use crate::ext::export::{ApiTable, NEWEST_MINOR, export};
    pub use crate::ext::extension::{Extension, NotImplemented};
}
