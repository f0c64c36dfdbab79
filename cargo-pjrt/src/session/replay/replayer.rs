//! A replay in progress: the objects that replace the recorded ones, and the differences so far.

use std::collections::HashMap;

use super::difference::{Difference, difference, in_words};
use super::options::Options;
use super::report::Report;
use crate::session::log::{Entry, Failure, Log, Place, Shape};
use pjrt_testing::host::{
    Buffer, Client, Code, CreateOption, Device, ElementType, Error, ExecuteOptions, HostArray,
    LoadedExecutable, Memory, NamedValue, Plugin, Program,
};

/// The client that replaces a recorded one.
struct ReplayClient {
    client: Client,
    /// The ids of the recorded client's devices.
    devices: Vec<i32>,
}

/// The object that replaces a recorded one, or the reason why there is none.
type Counterpart<T> = Result<T, String>;

/// The plugin's value for a result in the log: a description of the buffer, and its contents.
struct Readback {
    origin: String,
    outcome: Counterpart<Result<(Shape, Vec<u8>), Error>>,
}

/// The observations of a replay, for a caller that compares it with another replay instead of with the recording.
pub(crate) enum Observed<'o> {
    /// A call succeeded, or failed with this error.
    Call(Result<(), &'o Error>),
    /// The host read an array.
    Array(&'o Shape, &'o [u8]),
    /// The array that the host read is an error.
    Failed(&'o Error),
    /// The result cannot be compared, for this reason.
    Skipped(&'o str),
}

/// Receives the name of a call or of a result, and what was observed of it.
type Visitor<'l> = Box<dyn FnMut(&str, Observed<'_>) + 'l>;

/// A replay in progress.
pub(crate) struct Replayer<'l> {
    log: &'l Log,
    plugin: Plugin,
    options: &'l Options,
    report: Report,
    /// The entries with the contents of adopted buffers, as indices.
    contents: HashMap<u64, usize>,
    /// Descriptions of the buffers.
    origins: HashMap<u64, String>,
    /// The results that the plugin returned and that the log has not reached yet.
    readbacks: HashMap<u64, Readback>,
    buffers: HashMap<u64, Counterpart<Buffer>>,
    executables: HashMap<u64, Counterpart<(String, LoadedExecutable)>>,
    clients: HashMap<u64, ReplayClient>,
    /// Receives the outcomes in place of the comparison with the recording.
    visitor: Option<Visitor<'l>>,
}

impl<'l> Replayer<'l> {
    pub(crate) fn new(log: &'l Log, plugin: Plugin, options: &'l Options) -> Self {
        let contents = log.entries.iter().enumerate().filter_map(|(index, entry)| match entry {
            Entry::Contents { buffer, .. } => Some((*buffer, index)),
            _ => None,
        });
        Self {
            log,
            plugin,
            options,
            report: Report::default(),
            contents: contents.collect(),
            origins: HashMap::new(),
            readbacks: HashMap::new(),
            buffers: HashMap::new(),
            executables: HashMap::new(),
            clients: HashMap::new(),
            visitor: None,
        }
    }

    /// Makes the replay pass outcomes to a function, instead of comparing them with the recording.
    pub(crate) fn visited_by(mut self, visitor: impl FnMut(&str, Observed<'_>) + 'l) -> Self {
        self.visitor = Some(Box::new(visitor));
        self
    }

    /// Replays one entry. An error ends the replay. If the plugin does not support an operation, only the
    /// entries that depend on it are skipped.
    pub(crate) fn step(&mut self, index: usize, entry: &Entry) -> Result<(), String> {
        match entry {
            Entry::Start { .. } | Entry::Contents { .. } => {}
            Entry::CreateClient { client, platform, options, devices } => {
                let created = self.create_client(platform, options, devices)?;
                self.clients.insert(*client, created);
            }
            Entry::DestroyClient { client } => drop(self.clients.remove(client)),
            Entry::Compile { executable, .. } => {
                let compiled = self.compile(index, entry)?;
                self.add_executable(*executable, compiled);
            }
            Entry::Deserialize { client, executable } => {
                let loaded = self.deserialize(index, *client)?;
                self.add_executable(*executable, loaded);
            }
            Entry::DestroyExecutable { executable } => drop(self.executables.remove(executable)),
            Entry::Upload { buffer, shape, place } => {
                let uploaded = self.upload(shape, &self.log.bytes(index)?, place);
                self.add_buffer(*buffer, format!("the array of entry {}", index + 1), uploaded);
            }
            Entry::Adopt { buffer, place } => {
                let adopted = self.adopted(*buffer, place);
                self.add_buffer(*buffer, format!("the array of entry {}", index + 1), adopted);
            }
            Entry::Copy { from, buffer, place } => {
                let copy = self.copy(*from, place);
                let origin = self.origins.get(from);
                let origin = origin.map_or_else(String::new, |origin| format!("a copy of {origin}"));
                self.add_buffer(*buffer, origin, copy);
            }
            Entry::Execute { .. } => self.execute(entry),
            Entry::Read { buffer } => self.read(*buffer),
            Entry::Result { buffer, shape, failure } => {
                if let Some(readback) = self.readbacks.remove(buffer) {
                    let recorded = match failure {
                        Some(failure) => Err(failure),
                        None => Ok((shape, self.log.bytes(index)?)),
                    };
                    self.compare(readback, recorded);
                }
            }
            Entry::DeleteBuffer { buffer } => {
                if let Some(Ok(buffer)) = self.buffers.get(buffer) {
                    buffer.delete().map_err(|error| format!("entry {}: {error}", index + 1))?;
                }
            }
            Entry::DestroyBuffer { buffer } => {
                self.buffers.remove(buffer);
                self.origins.remove(buffer);
            }
        }
        Ok(())
    }

    /// Destroys the remaining objects, and returns the report.
    pub(super) fn end(mut self) -> Report {
        if !self.readbacks.is_empty() {
            let why = "the log ends before the result that the host read".to_owned();
            self.report.skipped.insert(why, self.readbacks.len());
        }
        self.report
    }

    /// Returns the client that replaces a recorded one.
    fn client(&self, id: u64) -> Result<&ReplayClient, String> {
        let client = self.clients.get(&id);
        client.ok_or_else(|| format!("the log uses client {id}, which does not exist at this point"))
    }

    /// Compiles the program of an entry.
    fn compile(&mut self, index: usize, entry: &Entry) -> Result<Counterpart<LoadedExecutable>, String> {
        let Entry::Compile { client, format, options_size, failure, .. } = entry else {
            return Err("this entry is not a compilation".to_owned());
        };
        let bytes = self.log.bytes(index)?;
        let (options, code) = bytes.split_at_checked(*options_size).unwrap_or((&bytes, &[]));
        let compiled = self.client(*client)?.client.compile(&Program { code, format }, options);
        self.report.programs += 1;
        let what = format!("compiling program {}", self.report.programs);
        Ok(self.agree(&what, failure.as_ref(), compiled))
    }

    /// Loads the serialized program of an entry.
    fn deserialize(&mut self, index: usize, client: u64) -> Result<Counterpart<LoadedExecutable>, String> {
        let loaded = self.client(client)?.client.deserialize(&self.log.bytes(index)?);
        self.report.programs += 1;
        let number = self.report.programs;
        Ok(loaded.map_err(|error| {
            format!("program {number} was loaded from the recorded plugin's serialized form, which this plugin cannot load: {error}")
        }))
    }

    /// Stores the program that replaces a recorded one, which is the last that was compiled or loaded.
    fn add_executable(&mut self, id: u64, loaded: Counterpart<LoadedExecutable>) {
        let number = self.report.programs;
        self.executables.insert(id, loaded.map(|loaded| (name_of(&loaded, number), loaded)));
    }

    /// Stores the buffer that replaces a recorded one, with its description.
    fn add_buffer(&mut self, id: u64, origin: String, buffer: Counterpart<Buffer>) {
        self.origins.insert(id, origin);
        self.buffers.insert(id, buffer);
    }

    /// Reads a buffer, and stores its contents until the log reaches the recorded ones.
    fn read(&mut self, buffer: u64) {
        let outcome = match self.buffers.get(&buffer) {
            Some(Ok(buffer)) => Ok(read(buffer)),
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("the log reads buffer {buffer}, but does not create it")),
        };
        let origin = self.origins.get(&buffer).cloned().unwrap_or_default();
        self.readbacks.insert(buffer, Readback { origin, outcome });
    }

    /// Creates the client that replaces a recorded one.
    fn create_client(
        &mut self,
        platform: &str,
        options: &[NamedValue],
        devices: &[i32],
    ) -> Result<ReplayClient, String> {
        let client = self.client_with_options(platform, options)?;
        let here = client.devices().map_err(|error| error.to_string())?.len();
        if here < devices.len() {
            self.report.notes.push(format!(
                "the recorded client had {} devices, but this one has {here}; change this with --option or the plugin's \
                 environment variables",
                devices.len()
            ));
        }
        Ok(ReplayClient { client, devices: devices.to_vec() })
    }

    /// Creates a client with the options of the command line, or else with the recorded ones. If the plugin
    /// rejects the recorded options, creates a client without options.
    fn client_with_options(&mut self, platform: &str, recorded: &[NamedValue]) -> Result<Client, String> {
        let text = |error: Error| error.to_string();
        if !self.options.options.is_empty() || recorded.is_empty() {
            return self.plugin.create_client(&self.options.options).map_err(text);
        }
        let options: Vec<CreateOption> = recorded.iter().cloned().map(CreateOption).collect();
        match self.plugin.create_client(&options) {
            Err(error) if error.code == Code::INVALID_ARGUMENT => {
                let names: Vec<String> =
                    recorded.iter().map(|option| format!("{}={}", option.name, option.value)).collect();
                self.report.notes.push(format!(
                    "the plugin rejects the options of the recorded client ({platform}: {}): {}; the client was created without options",
                    names.join(" "),
                    error.message
                ));
                self.plugin.create_client(&[]).map_err(text)
            }
            other => other.map_err(text),
        }
    }

    /// Compares the outcome of a call with the recorded one, and notes a difference.
    fn agree<T>(
        &mut self,
        what: &str,
        recorded: Option<&Failure>,
        outcome: Result<T, Error>,
    ) -> Counterpart<T> {
        if let Some(visitor) = &mut self.visitor {
            visitor(what, Observed::Call(outcome.as_ref().map(drop)));
            return outcome.map_err(|_| format!("{what} failed"));
        }
        match (recorded, outcome) {
            (None, Ok(value)) => Ok(value),
            (Some(_), Err(_)) => Err(format!("{what} failed in the recording and fails here")),
            (Some(failure), Ok(value)) => {
                self.report
                    .notes
                    .push(format!("{what} succeeds here; it failed in the recording: {}", failure.message));
                Ok(value)
            }
            (None, Err(error)) => {
                self.report.different.push(format!("{what} failed: {error}"));
                Err(format!("{what} failed"))
            }
        }
    }

    fn upload(&self, shape: &Shape, elements: &[u8], place: &Place) -> Counterpart<Buffer> {
        let element_type = ElementType::by_stablehlo_name(&shape.element_type)
            .ok_or_else(|| format!("unknown element type {}", shape.element_type))?;
        let size = shape.dims.iter().try_fold(element_type.byte_size(), |size, dim| {
            usize::try_from(*dim).ok().and_then(|dim| size.checked_mul(dim))
        });
        // A plugin would read as many bytes as the dimensions imply.
        if size != Some(elements.len()) {
            return Err(format!("the log is damaged: {} has {} bytes", in_words(shape), elements.len()));
        }
        let client = self.client(place.client)?;
        let (device, memory) = client.resolve(place)?;
        let array = HostArray::new(elements, element_type, &shape.dims);
        let device = if memory.is_some() { None } else { Some(device) };
        let uploaded = client.client.upload(&array, device, memory).map_err(|error| error.to_string())?;
        uploaded.done.wait().map_err(|error| error.to_string())?;
        Ok(uploaded.buffer)
    }

    fn adopted(&self, buffer: u64, place: &Place) -> Counterpart<Buffer> {
        let index = self.contents.get(&buffer).ok_or("the log ends before the contents of an array")?;
        match &self.log.entries[*index] {
            Entry::Contents { shape, failure: None, .. } => {
                self.upload(shape, &self.log.bytes(*index)?, place)
            }
            Entry::Contents { failure: Some(failure), .. } => {
                Err(format!("an array could not be read during the recording: {}", failure.message))
            }
            _ => Err("the log ends before the contents of an array".to_owned()),
        }
    }

    fn copy(&self, from: u64, place: &Place) -> Counterpart<Buffer> {
        let source = self.buffer(from)?;
        let (device, memory) = self.client(place.client)?.resolve(place)?;
        let memory = match memory {
            Some(memory) => memory,
            None => device.default_memory().map_err(|error| error.to_string())?,
        };
        source.copy_to_memory(memory).map_err(|error| error.to_string())
    }

    fn buffer(&self, id: u64) -> Counterpart<&Buffer> {
        match self.buffers.get(&id) {
            Some(Ok(buffer)) => Ok(buffer),
            Some(Err(why)) => Err(why.clone()),
            None => Err(format!("the log uses buffer {id}, but does not create it")),
        }
    }

    /// Executes a program as the host did, and stores its results, or the reason why there are none.
    fn execute(&mut self, entry: &Entry) {
        let Entry::Execute { outputs, failure, executable, .. } = entry else { return };
        self.report.executions += 1;
        let number = self.report.executions;
        let program = match self.executables.get(executable) {
            Some(Ok((name, _))) => name.clone(),
            _ => String::new(),
        };
        let launched = match self.launch(entry) {
            Err(why) => Err(why),
            Ok(outcome) => self.agree(&format!("execution {number} ({program})"), failure.as_ref(), outcome),
        };
        for (device, outputs) in outputs.iter().enumerate() {
            for (index, output) in outputs.iter().enumerate() {
                let on = if device == 0 { String::new() } else { format!(" on device {device}") };
                self.origins.insert(*output, format!("result {index} of execution {number} ({program}){on}"));
            }
        }
        match launched {
            Ok(buffers) => {
                let ids = outputs.iter().flatten().copied();
                self.buffers.extend(ids.zip(buffers.into_iter().flatten().map(Ok)));
            }
            Err(why) => {
                self.buffers.extend(outputs.iter().flatten().map(|output| (*output, Err(why.clone()))))
            }
        }
    }

    fn launch(&self, entry: &Entry) -> Counterpart<Result<Vec<Vec<Buffer>>, Error>> {
        let Entry::Execute { executable, device, arguments, launch_id, non_donatable, calls_host, .. } =
            entry
        else {
            return Err("this entry is not an execution".to_owned());
        };
        if *calls_host {
            return Err("the program calls the host, which a replay cannot do".to_owned());
        }
        let (_, loaded) = match self.executables.get(executable) {
            Some(Ok(loaded)) => loaded,
            Some(Err(why)) => return Err(why.clone()),
            None => {
                return Err(
                    "the program was created by an extension, whose calls are not recorded".to_owned()
                );
            }
        };
        // A plugin would assume that all lists are as long as the first one.
        if arguments.iter().any(|list| list.len() != arguments[0].len()) {
            return Err(
                "the log is damaged: the numbers of arguments of an execution differ between devices"
                    .to_owned(),
            );
        }
        let lists: Vec<Vec<&Buffer>> = arguments
            .iter()
            .map(|list| list.iter().map(|id| self.buffer(*id)).collect())
            .collect::<Counterpart<_>>()?;
        let named = |device: i32| {
            let owner = self.clients.values().find(|client| client.devices.contains(&device));
            owner.ok_or("the client was destroyed")?.device(device)
        };
        let on = device.map(named).transpose()?;
        let options = ExecuteOptions {
            launch_id: *launch_id,
            non_donatable: non_donatable.clone(),
            ..ExecuteOptions::default()
        };
        let launched = loaded.launch(&lists, &options, on, false).map_err(|refused| refused.error);
        Ok(launched.map(|launched| launched.outputs))
    }

    /// Compares the contents of a buffer with the recorded ones, and notes a difference.
    fn compare(&mut self, readback: Readback, recorded: Result<(&Shape, Vec<u8>), &Failure>) {
        let Readback { origin, outcome } = readback;
        if let Some(visitor) = &mut self.visitor {
            return match &outcome {
                Err(why) => visitor(&origin, Observed::Skipped(why)),
                Ok(Err(error)) => visitor(&origin, Observed::Failed(error)),
                Ok(Ok((shape, bytes))) => visitor(&origin, Observed::Array(shape, bytes)),
            };
        }
        let report = &mut self.report;
        match (outcome, recorded) {
            (Err(why), _) => *report.skipped.entry(why).or_default() += 1,
            (Ok(Err(_)), Err(_)) => report.same += 1,
            (Ok(Err(error)), Ok(_)) => report.different.push(format!("{origin} is an error: {error}")),
            (Ok(Ok(_)), Err(failure)) => report
                .different
                .push(format!("{origin} is an array, but an error in the recording: {}", failure.message)),
            (Ok(Ok((shape, here))), Ok((recorded_shape, there))) => {
                match difference((recorded_shape, &there), (&shape, &here), self.options.tolerance, NAMES) {
                    Difference::None => report.same += 1,
                    Difference::WithinTolerance => report.close += 1,
                    Difference::Beyond(how) => {
                        report.different.push(format!("{origin}, {}: {how}", in_words(recorded_shape)));
                        return;
                    }
                }
                if self.options.all {
                    report.alike.push(format!("{origin}, {}: as recorded", in_words(recorded_shape)));
                }
            }
        }
    }
}

impl ReplayClient {
    /// Returns the device that replaces a recorded one: the one with the same position in the client's list.
    fn device(&self, id: i32) -> Counterpart<Device<'_>> {
        let position = self.devices.iter().position(|known| *known == id);
        let position =
            position.ok_or_else(|| format!("the log uses device {id}, which its client did not have"))?;
        let devices = self.client.devices().map_err(|error| error.to_string())?;
        devices.get(position).copied().ok_or_else(|| {
            format!("the log uses at least {} devices, but the plugin has {}", position + 1, devices.len())
        })
    }

    /// Returns the device and the memory that replace recorded ones. If the device has no memory of this
    /// kind, returns its default memory.
    fn resolve(&self, place: &Place) -> Counterpart<(Device<'_>, Option<Memory<'_>>)> {
        let device = self.device(place.device)?;
        let memory = place.memory.as_ref().and_then(|kind| {
            let memories = device.memories().ok()?;
            memories.into_iter().find(|memory| memory.kind().is_ok_and(|other| other == *kind))
        });
        Ok((device, memory))
    }
}

/// The origin of the arrays of a comparison.
const NAMES: [&str; 2] = ["in the recording", "here"];

/// Returns the name of a program, or its number if it has no name.
fn name_of(loaded: &LoadedExecutable, number: usize) -> String {
    let name = loaded.executable().and_then(|program| program.name());
    name.unwrap_or_else(|_| format!("program {number}"))
}

/// Returns the shape and the elements of a buffer.
fn read(buffer: &Buffer) -> Result<(Shape, Vec<u8>), Error> {
    let element_type = buffer.element_type()?;
    let shape = Shape { element_type: element_type.stablehlo_name().to_owned(), dims: buffer.dims()? };
    Ok((shape, buffer.read()?))
}
