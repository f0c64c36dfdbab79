//! What a plugin is.

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

/// What [`inspect`] finds out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub file_size: u64,
    /// Functions that the file exports and whose names begin like a plugin's.
    pub exports: Vec<String>,
    /// How many symbols it exports in all.
    pub num_exports: usize,
    /// Why it could not be loaded, if so; the rest is then empty.
    pub load_error: Option<String>,
    /// Major and minor version of the C API that it reports.
    pub version: (i32, i32),
    /// The size of its function table, in bytes.
    pub table_size: usize,
    /// The state of every slot that this crate knows, in order.
    pub slots: Vec<(String, Slot)>,
    /// Its extensions: number, name, size of the struct.
    pub extensions: Vec<(u32, String, usize)>,
    /// Whether the chain of extensions does not end.
    pub endless_extensions: bool,
    /// Its attributes.
    pub attributes: Vec<(String, String)>,
    /// How initialising it went.
    pub initialize: Step,
    /// How creating a client went.
    pub client: Step,
    /// What the client says.
    pub platform: Option<String>,
    /// Its devices.
    pub devices: Vec<String>,
    /// What keeps every host from using the plugin: an impossible table, an initialization that fails, a crash, a call that takes
    /// too long. That no client can be made is none, because the machine may lack the device.
    pub faults: Vec<String>,
    /// The end of what the plugin printed, to standard output and standard error.
    pub printed: String,
}

/// What a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slot {
    /// The table ends before it.
    Absent,
    /// A null pointer.
    Null,
    /// A function that was not called.
    Function,
    /// A function that answers UNIMPLEMENTED.
    Stub,
    /// A function that was called and did something else.
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

/// How a step went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// It was not reached.
    #[default]
    NotReached,
    /// It went well.
    Ok,
    /// The plugin gave an error.
    Error(String),
    /// The process died.
    Crashed(String),
    /// It took too long.
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

/// Inspects a plugin. What calls it is done by a child of this program, which must have the hidden verb `inspect-child` (see
/// [`child`]).
///
/// # Errors
///
/// If the file cannot be read, or the child not be started.
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

/// What the child is doing.
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
            Self::Asking => "asking the client about itself",
            Self::End => "the end",
        }
    }

    /// Notes what did not go well.
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
    // Of other files, the loader says what is wrong with them.
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

/// What the child does: calls the plugin step by step, and says before each step what it knows.
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

/// Calls what can be called with nothing but a client, and changes nothing.
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

/// Notes what a function that was called turned out to be.
fn mark(report: &mut Report, function: &str, error: Option<&crate::host::Error>) {
    let slot = report.slots.iter_mut().find(|(name, state)| name == function && *state == Slot::Function);
    if let Some((_, state)) = slot {
        let stub = error.is_some_and(|error| error.code == Code::UNIMPLEMENTED);
        *state = if stub { Slot::Stub } else { Slot::Real };
    }
}

impl Report {
    /// How many slots are in a state.
    fn count(&self, state: Slot) -> usize {
        self.slots.iter().filter(|(_, of_slot)| *of_slot == state).count()
    }

    /// What a host needs and the plugin is seen not to have.
    #[must_use]
    pub fn missing_for(&self, profile: Profile) -> Vec<String> {
        let mut missing = Vec::new();
        if table::check_major(self.version).and_then(|()| table::check_minor(self.version)).is_err() {
            let (oldest, (major, minor)) = (table::OLDEST_MINOR, self.version);
            missing.push(format!(
                "a version of the C API from 0.{oldest} on, below 1 (it reports {major}.{minor})"
            ));
        }
        for function in profile.functions() {
            let name = format!("PJRT_{function}");
            let state = self.slots.iter().find(|(slot, _)| *slot == name).map(|(_, state)| *state);
            // A function newer than the plugin's version is not called.
            let newer = state == Some(Slot::Absent) && *function == "LoadedExecutable_GetDeviceAssignment"
                || state == Some(Slot::Absent) && *function == "Error_ForEachPayload";
            if !newer && matches!(state, None | Some(Slot::Absent | Slot::Null | Slot::Stub)) {
                missing.push(name);
            }
        }
        missing
    }

    /// The report for people; `all` lists every slot.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Further lines of what a plugin says must not look like lines of this report.
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
                "nothing seen missing; `conform` tests it".to_owned()
            } else {
                "nothing seen missing, but there was no client to ask".to_owned()
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
