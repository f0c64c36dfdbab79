//! A plugin that computes nothing: every program runs immediately, and all of its outputs are zero.
//!
//! The time of a call is that of the host and of this project's SDK, so it is a lower bound for the times of any plugin:
//!
//! ```console
//! $ export PJRT_NAMES_AND_LIBRARY_PATHS=null:$PWD/target/release/libnull_pjrt.so JAX_PLATFORMS=null
//! $ python -m timeit -s 'import jax; f = jax.jit(lambda x: x + 1); x = f(1.0)' 'f(x)'
//! ```
//!
//! It reads programs only for the types of their parameters and outputs.

#![forbid(unsafe_code)]

use std::sync::Arc;

use pjrt_plugin::ext::{Profiler, Shardings};
use pjrt_plugin::{
    ArraySpec, ClientConfig, CompileRequest, CopyToHost, DeviceAssignment, DeviceDescription, Execution,
    HostBuffer, HostView, Memory, Pending, PjrtBuffer, PjrtClient, PjrtDevice, PjrtExecutable, Placement,
    Result, Signature, pjrt_plugin,
};

/// The plugin.
pub struct Null {
    devices: [Device; 1],
}

/// The only device. The host can read its memory in place, which is the fastest way.
pub struct Device {
    description: DeviceDescription,
    memories: [Memory; 1],
}

/// The storage of an array.
pub enum Storage {
    /// Memory that the host lends for the lifetime of the buffer.
    Lent(HostBuffer),
    /// A view of memory that the host continues to write to.
    View(HostView),
    /// A copy of memory that the host does not lend for longer than the call.
    Copied(Vec<u8>),
    /// The zeros that all outputs of a program share.
    Zeros(Arc<[u8]>),
}

/// The types of a program, and its outputs.
pub struct Executable {
    signature: Signature,
    zeros: Vec<Arc<[u8]>>,
}

#[pjrt_plugin]
impl PjrtClient for Null {
    type Device = Device;
    type Buffer = Storage;
    type Executable = Executable;
    type Loaded = Arc<Executable>;

    const PLATFORM_NAME: &'static str = "null";

    fn create(_: ClientConfig) -> Result<Self> {
        let memories = [Memory::new(0, Memory::DEVICE).with_host_access()];
        Ok(Self { devices: [Device { description: DeviceDescription::new(0, "null"), memories }] })
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<Executable> {
        let signature = Signature::of(&request.program.parse()?)?;
        let zeros = |spec: &ArraySpec| {
            let size = pjrt_plugin::layout::dense_size(spec.dims(), spec.element_type().byte_size())?;
            Ok(Arc::from(vec![0; size]))
        };
        Ok(Executable { zeros: signature.outputs.iter().map(zeros).collect::<Result<_>>()?, signature })
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<Arc<Executable>> {
        Ok(Arc::clone(executable))
    }

    fn execute(&self, loaded: &Arc<Executable>, execution: Execution<Storage>) -> Result<()> {
        let executable = Arc::clone(loaded);
        execution.when_ready(move |ready| {
            let outputs = || executable.zeros.iter().map(|zeros| Storage::Zeros(Arc::clone(zeros))).collect();
            let devices = ready.devices().len();
            ready.complete((0..devices).map(|_| outputs()).collect());
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, _: Placement<'_, Self>) -> Result<Pending<Storage>> {
        let lent = data.may_alias() && data.is_dense();
        Ok(Pending::from(if lent { Storage::Lent(data) } else { Storage::Copied(data.to_vec()?) }))
    }

    fn view_host_memory(&self, view: HostView, _: Placement<'_, Self>) -> Result<Storage> {
        Ok(Storage::View(view))
    }
}

impl Profiler for Null {}

/// Programs of one partition have no shardings.
impl Shardings for Null {}

impl PjrtDevice for Device {
    fn description(&self) -> &DeviceDescription {
        &self.description
    }

    fn memories(&self) -> &[Memory] {
        &self.memories
    }
}

impl Storage {
    /// Returns the bytes of the storage. A view has no bytes of its own.
    fn bytes(&self) -> &[u8] {
        match self {
            // Only dense memory is stored as `Lent`.
            Self::Lent(lent) => lent.dense_bytes().unwrap_or_default(),
            Self::View(_) => &[],
            Self::Copied(bytes) => bytes,
            Self::Zeros(bytes) => bytes,
        }
    }
}

impl PjrtBuffer for Storage {
    fn size_in_bytes(&self) -> usize {
        match self {
            Self::View(view) => view.size_in_bytes(),
            _ => self.bytes().len(),
        }
    }

    fn copy_to_host(self: Arc<Self>, copy: CopyToHost) {
        match &*self {
            Self::View(view) => copy.finish_with_view(view),
            _ => copy.finish_with(self.bytes()),
        }
    }

    fn host_bytes(&self) -> Result<Option<&[u8]>> {
        Ok(match self {
            Self::View(_) => None,
            _ => Some(self.bytes()),
        })
    }

    fn host_view(&self) -> Option<&HostView> {
        match self {
            Self::View(view) => Some(view),
            _ => None,
        }
    }
}

impl PjrtExecutable for Executable {
    fn signature(&self) -> &Signature {
        &self.signature
    }
}
