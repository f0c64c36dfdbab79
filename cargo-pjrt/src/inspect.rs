//! Reports a plugin's version, functions, extensions and devices.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use object::{Object, ObjectSymbol};
use pjrt_sys::SLOTS;
use serde::{Deserialize, Serialize};

use crate::child::{Heard, Prints, Worker, tell};
use crate::host::{Code, CreateOption, Plugin, SlotState};
use crate::output::visible;
use crate::profile::Profile;
use crate::table;

/// The results of [`inspect`].
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// The path of the library.
    pub path: PathBuf,
    /// The size of the library in bytes.
    pub file_size: u64,
    /// The exported functions whose names begin like those of a plugin's entry point.
    pub exports: Vec<String>,
    /// The number of exported symbols.
    pub num_exports: usize,
    /// The error if the library could not be loaded. The remaining fields are then empty.
    pub load_error: Option<String>,
    /// The major and minor version of the C API that the plugin reports.
    pub version: (i32, i32),
    /// The size of its function table, in bytes.
    pub table_size: usize,
    /// The state of every slot that this crate knows, in order.
    pub slots: Vec<(String, Slot)>,
    /// The extensions: type, name, and size of the struct.
    pub extensions: Vec<(u32, String, usize)>,
    /// `true` if the chain of extensions does not end.
    pub endless_extensions: bool,
    /// The plugin's attributes.
    pub attributes: Vec<(String, String)>,
    /// The outcome of `PJRT_Plugin_Initialize`.
    pub initialize: Step,
    /// The outcome of `PJRT_Client_Create`.
    pub client: Step,
    /// The client's platform name and version.
    pub platform: Option<String>,
    /// The client's devices.
    pub devices: Vec<String>,
    /// The faults that prevent every host from using the plugin: an invalid table, a failed initialization, a
    /// crash, or a call that takes too long. A failure to create a client is not one of them, because this
    /// machine may lack the device.
    pub faults: Vec<String>,
    /// The end of the plugin's output to standard output and standard error.
    pub printed: String,
}

/// The state of a slot of the function table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slot {
    /// The table ends before the slot.
    Absent,
    /// The slot is a null pointer.
    Null,
    /// A function, which was not called.
    Function,
    /// A function that returned UNIMPLEMENTED.
    Stub,
    /// A function that was called and did not return UNIMPLEMENTED.
    Real,
}

impl Slot {
    fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Null => "null",
            Self::Function => "not called",
            Self::Stub => "stub",
            Self::Real => "real",
        }
    }
}

/// The outcome of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The step was not reached.
    #[default]
    NotReached,
    /// The step succeeded.
    Ok,
    /// The plugin returned an error.
    Error(String),
    /// The process ended.
    Crashed(String),
    /// The step took too long.
    TimedOut,
}

impl Step {
    fn text(&self) -> String {
        match self {
            Self::NotReached => "not reached".to_owned(),
            Self::Ok => "ok".to_owned(),
            Self::Error(error) => error.clone(),
            Self::Crashed(how) => format!("the process ended with {how}"),
            Self::TimedOut => "took too long".to_owned(),
        }
    }
}

/// Inspects a plugin. A child process calls the plugin's functions; it runs this program with the hidden
/// subcommand `inspect-child` (see [`child`]).
///
/// # Errors
///
/// Returns an error if the file cannot be read, or if the child process cannot be started.
pub fn inspect(
    path: &Path,
    program: &Path,
    options: &[String],
    timeout: Duration,
) -> std::io::Result<Report> {
    let mut report = exports(path)?;
    let mut arguments = vec!["inspect-child".into(), path.as_os_str().to_owned()];
    arguments.extend(options.iter().map(Into::into));
    let mut worker = Worker::start(program, &arguments, Prints::Kept)?;
    let mut reached = Reached::Loading;
    let step = loop {
        match worker.hear(timeout) {
            Heard::Line(line) => {
                let Ok((now, heard)) = serde_json::from_str::<(Reached, Report)>(&line) else { continue };
                let (path, size, exports, count) =
                    (report.path, report.file_size, report.exports, report.num_exports);
                report = heard;
                (report.path, report.file_size, report.exports, report.num_exports) =
                    (path, size, exports, count);
                reached = now;
                if reached == Reached::End {
                    break None;
                }
            }
            Heard::TimedOut => break Some(Step::TimedOut),
            Heard::Ended(ending) => break Some(Step::Crashed(ending.to_string())),
        }
    };
    if let Some(step) = step {
        report.faults.push(format!("{}: {}", reached.name(), step.text()));
        reached.note(&mut report, step);
    }
    report.printed = worker.printed();
    Ok(report)
}

/// The step that the child is performing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Reached {
    Loading,
    Reading,
    Initializing,
    Creating,
    Asking,
    End,
}

impl Reached {
    fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading the library",
            Self::Reading => "reading its function table",
            Self::Initializing => "initializing the plugin",
            Self::Creating => "creating a client",
            Self::Asking => "calling the client's query functions",
            Self::End => "the end",
        }
    }

    /// Records a step that did not succeed.
    fn note(self, report: &mut Report, step: Step) {
        match self {
            Self::Loading | Self::Reading => {
                report.load_error = Some(format!("{}: {}", self.name(), step.text()))
            }
            Self::Initializing => report.initialize = step,
            Self::Creating | Self::Asking | Self::End => report.client = step,
        }
    }
}

fn exports(path: &Path) -> std::io::Result<Report> {
    let file = std::fs::File::open(path)?;
    let file_size = file.metadata()?.len();
    let mut report = Report { path: path.to_owned(), file_size, ..Report::default() };
    let cache = object::ReadCache::new(file);
    // If the file is not a valid object file, the error of the loader describes the problem.
    if let Ok(file) = object::File::parse(&cache) {
        for symbol in file.dynamic_symbols().filter(|symbol| symbol.is_definition()) {
            report.num_exports += 1;
            let name = symbol.name().unwrap_or_default();
            if ["GetPjrtApi", "TFNPD_", "TF_Init"].iter().any(|known| name.starts_with(known)) {
                report.exports.push(name.to_owned());
            }
        }
    }
    report.exports.sort();
    Ok(report)
}

/// Calls the plugin step by step, in the child process. It sends its current report to the parent before each
/// step.
pub fn child(path: &Path, options: &[CreateOption]) {
    let mut report = Report::default();
    let say = |reached: Reached, report: &Report| {
        if let Ok(json) = serde_json::to_string(&(reached, report)) {
            tell(&json);
        }
    };
    say(Reached::Loading, &report);
    let plugin = match Plugin::load(path) {
        Ok(plugin) => plugin,
        Err(error) => {
            report.load_error = Some(error.to_string());
            report.faults.push(error.to_string());
            return say(Reached::End, &report);
        }
    };
    say(Reached::Reading, &report);
    report.version = plugin.version();
    report.table_size = plugin.table_size();
    let state = |index: usize| match plugin.slot(index) {
        SlotState::Absent => Slot::Absent,
        SlotState::Null => Slot::Null,
        SlotState::Function => Slot::Function,
    };
    report.slots =
        SLOTS.iter().enumerate().map(|(index, slot)| (slot.name.to_owned(), state(index))).collect();
    match plugin.extensions() {
        Some(extensions) => {
            let named = extensions.iter().map(|extension| {
                let name = extension.name().unwrap_or("unknown to this version").to_owned();
                (extension.type_, name, extension.struct_size)
            });
            report.extensions = named.collect();
        }
        None => report.endless_extensions = true,
    }
    report.faults = table::faults(plugin);
    say(Reached::Initializing, &report);
    let initialized = plugin.initialize();
    mark(&mut report, "PJRT_Plugin_Initialize", initialized.as_ref().err());
    report.initialize = match initialized {
        Ok(()) => Step::Ok,
        Err(error) => {
            report.faults.push(error.to_string());
            Step::Error(error.to_string())
        }
    };
    match plugin.attributes() {
        Ok(attributes) => {
            mark(&mut report, "PJRT_Plugin_Attributes", None);
            report.attributes = attributes
                .into_iter()
                .map(|attribute| (attribute.name, attribute.value.to_string()))
                .collect();
        }
        Err(error) => mark(&mut report, "PJRT_Plugin_Attributes", Some(&error)),
    }
    say(Reached::Creating, &report);
    let client = match plugin.create_client(options) {
        Ok(client) => client,
        Err(error) => {
            mark(&mut report, "PJRT_Client_Create", Some(&error));
            report.client = Step::Error(error.to_string());
            return say(Reached::End, &report);
        }
    };
    report.client = Step::Ok;
    mark(&mut report, "PJRT_Client_Create", None);
    say(Reached::Asking, &report);
    ask(&mut report, &client);
    say(Reached::End, &report);
}

/// Calls the functions that need no object but a client and that change nothing.
fn ask(report: &mut Report, client: &crate::host::Client) {
    macro_rules! asked {
        ($($function:literal $call:expr;)*) => {
            $(mark(report, $function, $call.map(drop).err().as_ref());)*
        };
    }
    report.platform = client.platform_name().ok();
    asked! {
        "PJRT_Client_PlatformName" client.platform_name();
        "PJRT_Client_PlatformVersion" client.platform_version();
        "PJRT_Client_ProcessIndex" client.process_index();
        "PJRT_Client_Devices" client.devices();
        "PJRT_Client_AddressableDevices" client.addressable_devices();
        "PJRT_Client_AddressableMemories" client.memories();
        "PJRT_Client_LookupDevice" client.lookup_device(0);
        "PJRT_Client_LookupAddressableDevice" client.lookup_addressable_device(0);
        "PJRT_Client_DefaultDeviceAssignment" client.default_assignment(1, 1, 1);
        "PJRT_Client_TopologyDescription" client.topology();
        "PJRT_ExecuteContext_Create" client.plugin().create_and_destroy_context();
    }
    for device in client.devices().unwrap_or_default() {
        let Ok(description) = device.description() else { continue };
        report.devices.push(description.to_text().unwrap_or_default());
    }
    if let Ok(device) = client.device() {
        asked! {
            "PJRT_Device_GetDescription" device.description();
            "PJRT_Device_IsAddressable" device.is_addressable();
            "PJRT_Device_LocalHardwareId" device.local_hardware_id();
            "PJRT_Device_AddressableMemories" device.memories();
            "PJRT_Device_DefaultMemory" device.default_memory();
            "PJRT_Device_MemoryStats" device.memory_stats();
            "PJRT_Device_GetAttributes" device.attributes();
            "PJRT_Device_CreateAsyncTrackingEvent" device.track("inspect");
        }
        if let Ok(description) = device.description() {
            asked! {
                "PJRT_DeviceDescription_Id" description.id();
                "PJRT_DeviceDescription_ProcessIndex" description.process_index();
                "PJRT_DeviceDescription_Attributes" description.attributes();
                "PJRT_DeviceDescription_Kind" description.kind();
                "PJRT_DeviceDescription_DebugString" description.debug_string();
                "PJRT_DeviceDescription_ToString" description.to_text();
            }
        }
        if let Ok(memory) = device.default_memory() {
            asked! {
                "PJRT_Memory_Id" memory.id();
                "PJRT_Memory_Kind" memory.kind();
                "PJRT_Memory_Kind_Id" memory.kind_id();
                "PJRT_Memory_DebugString" memory.debug_string();
                "PJRT_Memory_ToString" memory.to_text();
                "PJRT_Memory_AddressableByDevices" memory.devices();
            }
        }
    }
    if let Ok(topology) = client.topology() {
        asked! {
            "PJRT_TopologyDescription_PlatformName" topology.platform_name();
            "PJRT_TopologyDescription_PlatformVersion" topology.platform_version();
            "PJRT_TopologyDescription_GetDeviceDescriptions" topology.devices();
            "PJRT_TopologyDescription_Serialize" topology.serialize();
            "PJRT_TopologyDescription_Attributes" topology.attributes();
            "PJRT_TopologyDescription_Fingerprint" topology.fingerprint();
        }
    }
}

/// Records the state of a function that was called.
fn mark(report: &mut Report, function: &str, error: Option<&crate::host::Error>) {
    let slot = report.slots.iter_mut().find(|(name, state)| name == function && *state == Slot::Function);
    if let Some((_, state)) = slot {
        let stub = error.is_some_and(|error| error.code == Code::UNIMPLEMENTED);
        *state = if stub { Slot::Stub } else { Slot::Real };
    }
}

impl Report {
    /// Returns the number of slots in a state.
    fn count(&self, state: Slot) -> usize {
        self.slots.iter().filter(|(_, of_slot)| *of_slot == state).count()
    }

    /// Returns the requirements of a host that the plugin is known not to meet.
    #[must_use]
    pub fn missing_for(&self, profile: Profile) -> Vec<String> {
        let mut missing = Vec::new();
        if table::check_major(self.version).and_then(|()| table::check_minor(self.version)).is_err() {
            let (oldest, (major, minor)) = (table::OLDEST_MINOR, self.version);
            missing.push(format!(
                "a C API version of at least 0.{oldest} and below 1 (it reports {major}.{minor})"
            ));
        }
        for function in profile.functions() {
            let name = format!("PJRT_{function}");
            let state = self.slots.iter().find(|(slot, _)| *slot == name).map(|(_, state)| *state);
            // A function that is newer than the plugin's version is not called by the host.
            let newer = state == Some(Slot::Absent) && *function == "LoadedExecutable_GetDeviceAssignment"
                || state == Some(Slot::Absent) && *function == "Error_ForEachPayload";
            if !newer && matches!(state, None | Some(Slot::Absent | Slot::Null | Slot::Stub)) {
                missing.push(name);
            }
        }
        missing
    }

    /// Returns the report as text; `all` lists every slot.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Indents the further lines of a plugin's text, so that they do not look like lines of this
            // report.
            let value = visible(&value).trim_end().replace('\n', "\n             ");
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name:<12} {value}");
        };
        line("file", format!("{}, {:.1} MB", self.path.display(), self.file_size as f64 / 1e6));
        line("exports", format!("{} of {} symbols", list(&self.exports), self.num_exports));
        if self.load_error.is_some() {
            if !self.printed.is_empty() {
                line("printed", self.printed.clone());
            }
            for fault in &self.faults {
                line("WRONG", fault.clone());
            }
            return text;
        }
        line("version", format!("{}.{}", self.version.0, self.version.1));
        let states = [Slot::Real, Slot::Stub, Slot::Function, Slot::Null, Slot::Absent]
            .map(|state| format!("{} {}", self.count(state), state.name()));
        line("functions", format!("table of {} bytes; {}", self.table_size, states.join(", ")));
        for (name, state) in &self.slots {
            if all || matches!(state, Slot::Null | Slot::Stub) {
                line("", format!("{:<10} {name}", state.name()));
            }
        }
        let extensions: Vec<String> =
            self.extensions.iter().map(|(number, name, _)| format!("{name} ({number})")).collect();
        line(
            "extensions",
            if self.endless_extensions { "a chain that does not end".to_owned() } else { list(&extensions) },
        );
        for (name, value) in &self.attributes {
            line("attribute", format!("{name} = {value}"));
        }
        line("initialize", self.initialize.text());
        line("client", self.client.text());
        if let Some(platform) = &self.platform {
            line("platform", platform.clone());
        }
        for device in &self.devices {
            line("device", device.clone());
        }
        for profile in Profile::ALL {
            let missing = self.missing_for(profile);
            let verdict = if !missing.is_empty() {
                format!("lacks {}", list(&missing))
            } else if self.client == Step::Ok {
                "nothing is known to be missing; `cargo pjrt conform` tests the behavior".to_owned()
            } else {
                "nothing is known to be missing, but no client could be created".to_owned()
            };
            line(profile.name(), format!("{}: {verdict}", profile.title()));
        }
        if !self.printed.is_empty() {
            line("printed", self.printed.clone());
        }
        for fault in &self.faults {
            line("WRONG", fault.clone());
        }
        text
    }
}

fn list(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}
