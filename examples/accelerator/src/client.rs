//! The client, which is the entry point for hosts.

use std::sync::Arc;

use pjrt_plugin::{
    BufferRef, ClientConfig, CompileRequest, DeviceAssignment, DeviceId, Error, Execution, HostBuffer,
    OptionSpec, Pending, PjrtClient, PjrtDevice, Placement, PluginAttributes, ProgramFormat, Result,
    pjrt_plugin,
};
use pjrt_stablehlo::versions;

use crate::buffer::Buffer;
use crate::chip::Chip;
use crate::device::Device;
use crate::executable::Executable;
use crate::launch::launch;
use crate::options::{CREATE_OPTIONS, memory_limit};

/// The number of devices.
const NUM_DEVICES: DeviceId = 2;

/// The plugin.
pub struct Accelerator {
    devices: Vec<Device>,
}

impl Accelerator {
    fn chip(&self, id: DeviceId) -> Result<Arc<Chip>> {
        let device = self.devices.iter().find(|device| device.description().id() == id);
        let chip = device.map(|device| Arc::clone(&device.chip));
        chip.ok_or_else(|| Error::invalid_argument(format!("the accelerator has no device with the id {id}")))
    }
}

#[pjrt_plugin]
impl PjrtClient for Accelerator {
    type Device = Device;
    type Buffer = Buffer;
    type Executable = Executable;
    type Loaded = Arc<Executable>;

    const PLATFORM_NAME: &'static str = "accelerator";
    const CREATE_OPTIONS: &'static [OptionSpec] = CREATE_OPTIONS;
    const PROGRAM_FORMATS: &'static [ProgramFormat] =
        &[ProgramFormat::Mlir, ProgramFormat::Hlo, ProgramFormat::HloWithConfig];

    /// Returns the attributes of the plugin. JAX sends programs in the newest version that both sides
    /// support.
    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new()
            .with_stablehlo_current_version(versions::CURRENT_VERSION.components())
            .with_stablehlo_minimum_version(versions::MINIMUM_VERSION.components())
    }

    fn create(config: ClientConfig) -> Result<Self> {
        let memory_limit = memory_limit(&config.options)?;
        let devices = (0..NUM_DEVICES).map(|id| Device::start(id, memory_limit));
        Ok(Self { devices: devices.collect::<Result<_>>()? })
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        format!("simulated accelerator {}", env!("CARGO_PKG_VERSION"))
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<Executable> {
        Executable::compile(request)
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<Arc<Executable>> {
        Ok(Arc::clone(executable))
    }

    fn execute(&self, loaded: &Arc<Executable>, execution: Execution<Buffer>) -> Result<()> {
        let chips: Vec<Arc<Chip>> =
            execution.devices().iter().map(|id| self.chip(*id)).collect::<Result<_>>()?;
        let executable = Arc::clone(loaded);
        // The launch needs the memory of the inputs, but not their data: the queues ensure the order.
        execution.when_allocated(move |ready| launch(&executable, &chips, ready));
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<Buffer>> {
        Buffer::upload(data, to)
    }

    fn copy_buffer(&self, from: BufferRef<'_, Self>, to: Placement<'_, Self>) -> Result<Pending<Buffer>> {
        Buffer::copy(from, to)
    }
}
