//! The client, which is the entry point for hosts.

use std::sync::Arc;

use pjrt_plugin::{
    BufferRef, ClientConfig, CompileRequest, DeserializeRequest, DeviceAssignment, DeviceDescription,
    DeviceId, Execution, HostBuffer, OptionSpec, Pending, PjrtClient, Placement, PluginAttributes,
    ProgramFormat, Result, distributed::Processes, ext::CrossHostTransfers, pjrt_plugin,
};

use crate::buffer::Buffer;
use crate::chip::Chip;
use crate::device::Device;
use crate::executable::Executable;
use crate::launch::launch;
use crate::options::{CREATE_OPTIONS, Faults};

/// The number of devices.
const NUM_DEVICES: usize = 4;

/// The simulated devices have no network between processes, so arrays pass through the host's key-value store. A plugin for real
/// devices implements the other methods of the trait with their network.
impl CrossHostTransfers for Accelerator {
    fn store_of_processes(&self) -> Option<&Processes> {
        self.processes.as_ref()
    }
}

/// The plugin.
pub struct Accelerator {
    /// The devices of all processes.
    devices: Vec<Device>,
    /// The processes, if they are several.
    processes: Option<Processes>,
}

#[pjrt_plugin]
impl PjrtClient for Accelerator {
    type Device = Device;
    type Buffer = Buffer;
    type Executable = Executable;
    type Loaded = Arc<Executable>;

    const PLATFORM_NAME: &'static str = "accelerator";
    const MULTI_PROCESS: bool = true;
    const CREATE_OPTIONS: &'static [OptionSpec] = CREATE_OPTIONS;
    /// A host that never waits may be this many launches ahead of a device.
    const MAX_LAUNCHES_IN_FLIGHT: Option<usize> = Some(32);
    const PROGRAM_FORMATS: &'static [ProgramFormat] =
        &[ProgramFormat::Mlir, ProgramFormat::Hlo, ProgramFormat::HloWithConfig];

    /// Returns the attributes of the plugin. JAX sends programs in the newest version that both sides
    /// support.
    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new().with_stablehlo_versions()
    }

    fn create(config: ClientConfig) -> Result<Self> {
        let memory_limit = config.options.integer("memory_limit")? as usize;
        let processes = Processes::join(&config, Self::PLATFORM_NAME)?;
        let debug = format!("simulated accelerator with {memory_limit} bytes of memory");
        let describe = |id| DeviceDescription::new(id, Self::PLATFORM_NAME).with_debug(debug.clone());
        let local: Vec<_> = (0..NUM_DEVICES as i32).map(describe).collect();
        let all = processes.as_ref().map_or(Ok(local.clone()), |processes| processes.devices(&local))?;
        let mut faults = Faults::of_devices(&config.options, NUM_DEVICES)?.into_iter();
        let start = |description: DeviceDescription| {
            let is_own = i64::from(description.process_index()) == config.node_id;
            let faults = if is_own { faults.next() } else { None };
            let chip =
                faults.map(|faults| Chip::start(description.id(), memory_limit, faults)).transpose()?;
            Ok(Device::new(description, chip))
        };
        Ok(Self { devices: all.into_iter().map(start).collect::<Result<_>>()?, processes })
    }

    fn process_index(&self) -> i32 {
        self.processes.as_ref().map_or(0, Processes::index) as i32
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

    fn deserialize(request: DeserializeRequest<'_, Self>) -> Result<Executable> {
        Executable::deserialize(request)
    }

    fn load(&self, executable: &Arc<Executable>, _: &DeviceAssignment) -> Result<Arc<Executable>> {
        Ok(Arc::clone(executable))
    }

    fn execute(&self, loaded: &Arc<Executable>, execution: Execution<Buffer>) -> Result<()> {
        let chip = |id: &DeviceId| Ok(Arc::clone(self.device(*id)?.chip()?));
        let chips: Vec<Arc<Chip>> = execution.devices().iter().map(chip).collect::<Result<_>>()?;
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
