//! Write PJRT plugins for JAX, PyTorch/XLA, GoMLX and ZML in safe Rust.
//!
//! PJRT is the C interface through which machine-learning frameworks run programs on devices. A plugin is a shared library
//! that exports one function, `GetPjrtApi`, which returns a table of 138 functions. This crate provides the table. The
//! author of a plugin implements four traits in safe code:
//!
//! | trait | represents |
//! |---|---|
//! | [`PjrtClient`] | the plugin: options, devices, compilation, loading, execution, upload |
//! | [`PjrtDevice`] | a device, with its description and its memories |
//! | [`PjrtBuffer`] | the storage of an array on a device |
//! | [`PjrtExecutable`] | a compiled program |
//!
//! The attribute [`#[pjrt_plugin]`](macro@pjrt_plugin) on the implementation of `PjrtClient` exports the plugin.
//!
//! # Responsibilities of the crate
//!
//! * **Versions.** Structs are read and written according to the size that the host declares, so one binary serves hosts from
//!   C API 0.54 on, including hosts that are newer than this crate.
//! * **Buffer states.** The crate tracks whether a buffer is pending, ready, in error, deleted or donated, and which
//!   operations still use its storage. The author provides only the storage.
//! * **Asynchrony.** An [`Execution`] owns the promise of its outputs, and can be completed on any thread at any time. An
//!   error of an input becomes the error of the outputs.
//! * **Host memory.** [`HostBuffer`] and [`CopyToHost`] grant access to it. The host is notified when they are dropped or
//!   finished.
//! * **Errors and panics.** An [`Error`] has a code, a message, a hint and payloads. A panic is converted to an error with
//!   its source location.
//! * **Lifetimes of the host's pointers**: handles, strings, attributes, arrays, caches.
//!
//! # An example
//!
//! A minimal client has one device and one program, which doubles four numbers. (A real client compiles StableHLO.)
//!
//! ```
//! use std::sync::Arc;
//!
//! use pjrt_plugin::{
//!     ArraySpec, ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, ElementType, Execution,
//!     HostBuffer, Input, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable, Placement, Result,
//!     Signature, pjrt_plugin,
//! };
//!
//! struct Doubler([Device; 1]);
//!
//! struct Device(DeviceDescription, [Memory; 1]);
//!
//! /// Numbers on the device, as little-endian bytes.
//! struct Storage(Vec<u8>);
//!
//! struct Program(Signature);
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
//!         let array = ArraySpec::new(ElementType::F32, [4]);
//!         Ok(Program(Signature::new("double", [array.clone()], [array])))
//!     }
//!
//!     fn load(&self, _: &Arc<Program>, _: &DeviceAssignment) -> Result<()> {
//!         Ok(())
//!     }
//!
//!     fn execute(&self, _: &(), execution: Execution<Storage>) -> Result<()> {
//!         // Runs immediately if the inputs are ready, and otherwise when they become ready.
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
//!     fn signature(&self) -> &Signature {
//!         &self.0
//!     }
//! }
//!
//! // The table that the exported function returns to hosts.
//! assert_eq!(pjrt_plugin::api_table!(Doubler).pjrt_api_version.major_version, 0);
//! ```
//!
//! A crate of type `cdylib` with this code is a plugin that JAX loads:
//!
//! ```console
//! $ PJRT_NAMES_AND_LIBRARY_PATHS=doubler:$PWD/target/debug/libdoubler.so JAX_PLATFORMS=doubler python
//! ```
//!
//! # Further features
//!
//! * **A device with its own thread or queue**: move the [`Execution`] there. See [`queue`] for devices that order their work
//!   themselves, and [`promise`](promise()) for asynchronous uploads.
//! * **Programs in StableHLO**: with the feature `stablehlo`, the module `stablehlo` converts between the types of this crate and
//!   those of `pjrt-stablehlo`.
//! * **Host-accessible memory**: [`Memory::with_host_access`] and [`PjrtBuffer::host_bytes`]. Uploads can then avoid a copy
//!   ([`HostBuffer::may_alias`]), and the host can create buffers over memory that it continues to write to
//!   ([`PjrtClient::view_host_memory`]).
//! * **Donation**: [`Signature::donated`] and [`Input::into_donated`].
//! * **Callbacks into the host** (JAX's `pure_callback` and `jax.debug.print`): [`Execution::host_callbacks`].
//! * **Several devices**: [`PjrtClient::devices`]. An execution covers all of its devices at once.
//! * **Several processes**: [`distributed`] exchanges their devices, through the [`KeyValueStore`] of the [`ClientConfig`].
//! * **Options**: [`PjrtClient::CREATE_OPTIONS`], and [`CompileOptions::compiler_options`] for those of the compiler.
//! * **Extensions** for features that only some devices have: a client implements traits of [`ext`], such as
//!   [`ext::Profiler`] and [`ext::Ffi`].
//! * **Tests**: [`api_table!`] returns the table without exporting it.
//!
//! # Threads
//!
//! The methods of the traits may be called from several threads concurrently. No lock of the crate is held during a call.
//! Callbacks of the author and of the host run on the thread that completes the event that they wait for.
//!
//! # Environment
//!
//! `PJRT_PLUGIN_API_MINOR=112` makes a plugin report that minor version of the C API, for hosts that reject newer ones. The
//! variable can only lower the version, and not below 29, the oldest version that hosts accept. If the value is not valid,
//! the plugin prints a warning to stderr.
//!
//! `PJRT_PLUGIN_TRACE=calls.json` writes every call of the host, with its arguments, result and duration, to a file that
//! <https://ui.perfetto.dev> and `chrome://tracing` show. The file is a JSON array that is valid after every call, even if the
//! host crashes. (In a pipe, the closing bracket is missing, which the format allows.)
//!
//! `PJRT_PLUGIN_LEAK_REPORT=1` prints to stderr, when the process exits, the handles that the host has not destroyed, each
//! with the function that created it.

#![deny(unsafe_code)]

#[cfg(panic = "abort")]
compile_error!(
    "a plugin must be built with panic = \"unwind\": with panic = \"abort\", a panic in it would abort the host"
);

mod abi;
pub mod attributes;
pub mod buffer;
pub mod client;
pub mod compile_options;
mod core;
pub mod device;
pub mod device_assignment;
pub mod distributed;
pub mod element_type;
pub mod executable;
pub mod execution;
pub mod ext;
pub mod host_buffer;
pub mod host_callback;
pub mod host_view;
pub mod input;
pub mod kv_store;
pub mod layout;
pub mod memory;
pub mod options;
pub mod program;
mod proto;
pub mod queue;
mod serialized;
mod shape;
mod sharding;
pub mod signature;
#[cfg(feature = "stablehlo")]
pub mod stablehlo;
pub mod stats;
pub mod topology;
mod user_data;

// The documentation lists the four traits first, and the other items by kind.
#[doc(inline)]
pub use crate::{
    attributes::{AttributeValue, PluginAttributes},
    client::{
        BufferRef, ClientConfig, CompileRequest, DeserializeRequest, Placement, ProcessInfo, ProcessState,
    },
    compile_options::{CompileOptions, OverrideValue},
    core::by_device::ByDevice,
    core::error::{self, Error, ErrorCode, Result},
    core::event::{Event, EventSource},
    core::promise::{Pending, Promise, promise},
    device::{DeviceDescription, DeviceId},
    device_assignment::DeviceAssignment,
    element_type::ElementType,
    execution::{Completion, Execution, Prepared, ReadyExecution},
    host_buffer::{CopyToHost, HostBuffer},
    host_callback::{HostCallbacks, HostStream},
    host_view::{HostView, HostViewLease, ReadsViews},
    input::Input,
    kv_store::{KeyValueBackend, KeyValueStore},
    layout::Layout,
    memory::Memory,
    options::{OptionSpec, OptionValue, Options},
    program::{Program, ProgramFormat},
    signature::{ArraySpec, Signature},
    stats::{CompiledMemoryStats, MemoryStats},
    topology::Topology,
};
#[doc(no_inline)]
pub use crate::{buffer::PjrtBuffer, client::PjrtClient, device::PjrtDevice, executable::PjrtExecutable};
#[doc(inline)]
pub use pjrt_plugin_macros::pjrt_plugin;

/// Items that the expansions of this crate's macros use.
#[doc(hidden)]
pub mod __private {
    pub use pjrt_sys::PJRT_Api;

    pub use crate::ext::export::{ApiTable, NEWEST_MINOR, export};
    pub use crate::ext::extension::{Extension, NotImplemented};
}
