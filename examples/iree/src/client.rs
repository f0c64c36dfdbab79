//! The client, which is the entry point for hosts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use iree_runtime::{Code, Driver};
use pjrt_plugin::ext::{Profiler, Timeline};
use pjrt_plugin::{
    ClientConfig, CompileRequest, DeserializeRequest, DeviceAssignment, DeviceId, Error, Event, Execution,
    HostBuffer, OptionSpec, Pending, PjrtClient, PjrtDevice, Placement, PluginAttributes, ProgramFormat,
    Result, pjrt_plugin,
};

use crate::buffer::Buffer;
use crate::device::Device;
use crate::executable::{Executable, Loaded};
use crate::launch::{Part, launch};
use crate::options::{CREATE_OPTIONS, Settings};
use crate::{convert, library, timeline};

/// The plugin.
pub struct Iree {
    pub(crate) settings: Settings,
    devices: Vec<Device>,
}

impl Iree {
    /// Returns the device with an id.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if there is none.
    pub(crate) fn device(&self, id: DeviceId) -> Result<&Device> {
        let device = self.devices.iter().find(|device| device.description().id() == id);
        device.ok_or_else(|| Error::invalid_argument(format!("IREE has no device with the id {id}")))
    }
}

#[pjrt_plugin]
impl PjrtClient for Iree {
    type Device = Device;
    type Buffer = Buffer;
    type Executable = Executable;
    type Loaded = Loaded;

    const PLATFORM_NAME: &'static str = "iree";
    const CREATE_OPTIONS: &'static [OptionSpec] = CREATE_OPTIONS;
    /// A host that never waits may be this many launches ahead of a device.
    const MAX_LAUNCHES_IN_FLIGHT: Option<usize> = Some(32);
    const PROGRAM_FORMATS: &'static [ProgramFormat] =
        &[ProgramFormat::Mlir, ProgramFormat::Hlo, ProgramFormat::HloWithConfig];

    /// Returns the attributes of the plugin. JAX sends programs in the newest version that both sides support.
    fn plugin_attributes() -> PluginAttributes {
        PluginAttributes::new().with_stablehlo_versions()
    }

    fn create(config: ClientConfig) -> Result<Self> {
        let mut settings = Settings::of(&config.options)?;
        let devices = start_devices(&settings)?;
        settings.code =
            settings.code.for_devices(devices.iter().map(Device::iree)).map_err(convert::error)?;
        Ok(Self { settings, devices })
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn platform_version(&self) -> String {
        format!("IREE {}, {}", library::VERSION, self.settings.target.driver)
    }

    fn compile(request: CompileRequest<'_, Self>) -> Result<Executable> {
        Executable::compile(request)
    }

    fn deserialize(request: DeserializeRequest<'_, Self>) -> Result<Executable> {
        Executable::deserialize(request)
    }

    fn load(&self, executable: &Arc<Executable>, assignment: &DeviceAssignment) -> Result<Loaded> {
        Loaded::load(self, executable, assignment)
    }

    fn execute(&self, loaded: &Loaded, execution: Execution<Buffer>) -> Result<()> {
        let part = |id: &DeviceId| {
            let device = self.device(*id)?;
            Ok(Part { program: loaded.program(device, *id)?, threads: Arc::clone(&device.threads) })
        };
        let parts: Vec<Part> = execution.devices().iter().map(part).collect::<Result<_>>()?;
        let executable = Arc::clone(&loaded.executable);
        let (target, host) = (self.settings.target, thread::current().id());
        // The calls need the memory of the inputs, but not their data: the fences of the inputs ensure the order.
        execution.when_allocated(move |ready| {
            // A thread of the device starts calls that wait, and those of executions whose inputs get memory on other threads.
            let waits = match target.runs_program {
                true => !ready.ready_events().iter().flatten().all(Event::is_ready),
                false => target.can_block || parts.iter().any(|part| part.program.is_waiting()),
            };
            let threads = Arc::clone(&parts[0].threads);
            let start = move || launch(&executable, &parts, ready);
            if waits || thread::current().id() != host { threads.launch(start) } else { start() }
        });
        Ok(())
    }

    fn buffer_from_host(&self, data: HostBuffer, to: Placement<'_, Self>) -> Result<Pending<Buffer>> {
        Buffer::upload(data, to)
    }
}

impl Profiler for Iree {
    fn start_tracing() -> Result<()> {
        *timeline::spans() = Some(BTreeMap::new());
        Ok(())
    }

    fn stop_tracing() -> Result<Vec<Timeline>> {
        let by_device = timeline::spans().take().unwrap_or_default();
        Ok(by_device.into_iter().map(|(name, spans)| Timeline { name, spans }).collect())
    }
}

/// Starts the devices of the options.
fn start_devices(settings: &Settings) -> Result<Vec<Device>> {
    let kind = settings.target.driver;
    let driver = Driver::open(kind).map_err(|error| missing(kind, error))?;
    let infos = driver.devices().map_err(|error| missing(kind, error))?;
    let ordinals = settings.ordinals.clone().unwrap_or_else(|| (0..infos.len()).collect());
    if infos.is_empty() || ordinals.is_empty() {
        let message = format!("the driver {kind} has no devices");
        return Err(Error::not_found(message)
            .with_hint("set the option device to another driver, such as local-task"));
    }
    let start = |(id, ordinal): (DeviceId, usize)| {
        let model = infos.get(ordinal).map_or("", |info| &info.name);
        Device::start(id, &driver, settings, ordinal, model)
            .map_err(|error| error.context(format!("cannot start the device {kind}:{ordinal}")))
    };
    (0..).zip(ordinals).map(start).collect()
}

/// Returns the error of a driver that cannot be used.
fn missing(kind: &str, error: iree_runtime::Error) -> Error {
    let hint = match (kind, error.code()) {
        ("vulkan", _) => "install a Vulkan driver, such as Debian's mesa-vulkan-drivers for the processor",
        ("cuda", Code::NotFound) => "build the plugin with the feature cuda, and install NVIDIA's driver",
        _ => "set the option device to another driver, such as local-task",
    };
    convert::error(error).context(format!("cannot start the driver {kind}")).with_hint(hint)
}
