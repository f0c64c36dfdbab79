//! Replays a recorded session on a plugin and compares the results.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use super::log::{Entry, Failure, Log, Place, Shape};
use crate::host::{
    Buffer, Client, Code, CreateOption, Device, ElementType, ExecuteOptions, HostArray, LoadedExecutable,
    Memory, NamedValue, Plugin, Program,
};
use crate::output::{self, visible};
use crate::{child, number};

/// The arguments of `cargo pjrt replay`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Log that the recorder wrote
    pub log: PathBuf,
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// Largest difference of real numbers, relative to the larger number or to 1, whichever is larger; 0 by
    /// default
    #[arg(long, default_value_t = 0.0, value_parser = tolerance, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Client option, such as num_devices=2, in place of the recorded options; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<CreateOption>,
    /// Print all results, not only those that differ
    #[arg(long)]
    pub all: bool,
    /// Time limit of each step, such as one execution, in seconds
    #[arg(long, default_value = "600", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// Parses a tolerance on the command line.
fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    number.ok_or_else(|| "expected a number that is not negative, such as 1e-6".to_owned())
}

/// The outcome of a replay.
#[derive(Debug, Clone, Default)]
struct Report {
    programs: usize,
    executions: usize,
    same: usize,
    close: usize,
    /// Descriptions of the results that do not differ, if they were requested.
    alike: Vec<String>,
    /// Descriptions of the differences.
    different: Vec<String>,
    /// The reasons why results could not be compared, and the number of results for each.
    skipped: BTreeMap<String, usize>,
    /// Further information for the user.
    notes: Vec<String>,
}

impl Report {
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.notes.iter().map(|note| format!("note: {note}")).collect();
        lines.extend(self.alike.iter().cloned());
        lines.extend(self.different.iter().map(|difference| format!("DIFFERENT: {difference}")));
        lines.extend(self.skipped.iter().map(|(why, count)| format!("{count} results skipped: {why}")));
        lines.push(format!(
            "{} programs, {} executions, results: {} the same, {} within the tolerance, {} skipped; {} differences",
            self.programs,
            self.executions,
            self.same,
            self.close,
            self.skipped.values().sum::<usize>(),
            self.different.len()
        ));
        lines.join("\n")
    }
}

/// Replays a log, and prints the outcome. Returns `true` if nothing differs.
///
/// # Errors
///
/// Returns an error if the log cannot be read, if the plugin cannot be used, or if nothing could be compared.
pub fn replay(options: &Options) -> Result<bool, String> {
    let log = Log::open(&options.log)?;
    child::next("loading the plugin");
    let plugin =
        Plugin::load(&options.plugin).map_err(|error| format!("{}: {error}", options.plugin.display()))?;
    child::next("initializing the plugin");
    plugin.initialize().map_err(|error| error.to_string())?;
    let mut replayer = Replayer::new(&log, plugin, options.tolerance, options.options.clone());
    replayer.print_all = options.all;
    for (index, entry) in log.entries.iter().enumerate() {
        child::next(&format!("replaying entry {} of the log: {}", index + 1, entry.name()));
        replayer.step(index, entry)?;
    }
    child::next("destroying the remaining objects");
    let report = replayer.end();
    output::print(&format!("{}\n", visible(&report.text())))?;
    if log.is_cut_off {
        return Err(format!(
            "{}: the log ends in the middle of entry {}, because the host crashed or the file is damaged. The entries before it were \
             replayed",
            options.log.display(),
            log.entries.len() + 1
        ));
    }
    if report.same + report.close + report.different.len() == 0 {
        let why = if log.entries.iter().any(|entry| matches!(entry, Entry::Read { .. })) {
            "no result could be compared"
        } else {
            "there is nothing to compare, because the host read no result during the recording"
        };
        return Err(format!("{}: {why}", options.log.display()));
    }
    Ok(report.different.is_empty())
}

/// The client that replaces a recorded one.
struct Stand {
    client: Client,
    /// The ids of the recorded client's devices.
    devices: Vec<i32>,
}

/// The object that replaces a recorded one, or the reason why there is none.
type Counterpart<T> = Result<T, String>;

/// The plugin's value for a result in the log.
struct Seen {
    origin: String,
    outcome: Counterpart<Result<(Shape, Vec<u8>), crate::host::Error>>,
}

struct Replayer<'l> {
    log: &'l Log,
    plugin: Plugin,
    tolerance: f64,
    own_options: Vec<CreateOption>,
    print_all: bool,
    report: Report,
    /// The entries with the contents of adopted buffers, as indices.
    contents: HashMap<u64, usize>,
    /// Descriptions of the buffers.
    origins: HashMap<u64, String>,
    seen: HashMap<u64, Seen>,
    buffers: HashMap<u64, Counterpart<Buffer>>,
    executables: HashMap<u64, Counterpart<(String, LoadedExecutable)>>,
    clients: HashMap<u64, Stand>,
}

impl<'l> Replayer<'l> {
    fn new(log: &'l Log, plugin: Plugin, tolerance: f64, own_options: Vec<CreateOption>) -> Self {
        let contents = log.entries.iter().enumerate().filter_map(|(index, entry)| match entry {
            Entry::Contents { buffer, .. } => Some((*buffer, index)),
            _ => None,
        });
        Self {
            log,
            plugin,
            tolerance,
            own_options,
            print_all: false,
            report: Report::default(),
            contents: contents.collect(),
            origins: HashMap::new(),
            seen: HashMap::new(),
            buffers: HashMap::new(),
            executables: HashMap::new(),
            clients: HashMap::new(),
        }
    }

    /// Replays one entry. An error ends the replay. If the plugin does not support an operation, only the
    /// entries that depend on it are skipped.
    fn step(&mut self, index: usize, entry: &Entry) -> Result<(), String> {
        match entry {
            Entry::Start { .. } | Entry::Contents { .. } => {}
            Entry::CreateClient { client, platform, options, devices } => {
                let stand =
                    Stand { client: self.create_client(platform, options)?, devices: devices.clone() };
                let here = stand.client.devices().map_err(|error| error.to_string())?.len();
                if here < devices.len() {
                    self.report.notes.push(format!(
                        "the recorded client had {} devices, but this one has {here}; change this with --option or the plugin's \
                         environment variables",
                        devices.len()
                    ));
                }
                self.clients.insert(*client, stand);
            }
            Entry::DestroyClient { client } => drop(self.clients.remove(client)),
            Entry::Compile { client, executable, format, options_size, failure } => {
                let bytes = self.log.bytes(index)?;
                let (options, code) = bytes.split_at_checked(*options_size).unwrap_or((&bytes, &[]));
                self.report.programs += 1;
                let number = self.report.programs;
                let compiled = self.stand(*client)?.client.compile(&Program { code, format }, options);
                let compiled = self.agree(&format!("compiling program {number}"), failure.as_ref(), compiled);
                self.executables
                    .insert(*executable, compiled.map(|loaded| (name_of(&loaded, number), loaded)));
            }
            Entry::Deserialize { client, executable } => {
                self.report.programs += 1;
                let number = self.report.programs;
                let loaded = self.stand(*client)?.client.deserialize(&self.log.bytes(index)?);
                let loaded = loaded.map_err(|error| {
                    format!("program {number} was loaded from the recorded plugin's serialized form, which this plugin cannot load: {error}")
                });
                self.executables.insert(*executable, loaded.map(|loaded| (name_of(&loaded, number), loaded)));
            }
            Entry::DestroyExecutable { executable } => drop(self.executables.remove(executable)),
            Entry::Upload { buffer, shape, place } => {
                let uploaded = self.upload(shape, &self.log.bytes(index)?, place);
                self.origins.insert(*buffer, format!("the array of entry {}", index + 1));
                self.buffers.insert(*buffer, uploaded);
            }
            Entry::Adopt { buffer, place } => {
                let adopted = self.adopted(*buffer, place);
                self.origins.insert(*buffer, format!("the array of entry {}", index + 1));
                self.buffers.insert(*buffer, adopted);
            }
            Entry::Copy { from, buffer, place } => {
                let copy = self.copy(*from, place);
                let origin =
                    self.origins.get(from).map_or_else(String::new, |origin| format!("a copy of {origin}"));
                self.origins.insert(*buffer, origin);
                self.buffers.insert(*buffer, copy);
            }
            Entry::Execute { .. } => self.execute(entry),
            Entry::Read { buffer } => {
                let outcome = match self.buffers.get(buffer) {
                    Some(Ok(buffer)) => Ok(read(buffer)),
                    Some(Err(why)) => Err(why.clone()),
                    None => Err(format!("the log reads buffer {buffer}, but does not create it")),
                };
                let origin = self.origins.get(buffer).cloned().unwrap_or_default();
                self.seen.insert(*buffer, Seen { origin, outcome });
            }
            Entry::Result { buffer, shape, failure } => {
                if let Some(seen) = self.seen.remove(buffer) {
                    let recorded = match failure {
                        Some(failure) => Err(failure),
                        None => Ok((shape, self.log.bytes(index)?)),
                    };
                    self.compare(seen, recorded);
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

    fn end(mut self) -> Report {
        if !self.seen.is_empty() {
            let why = "the log ends before the result that the host read".to_owned();
            self.report.skipped.insert(why, self.seen.len());
        }
        self.report
    }

    fn stand(&self, client: u64) -> Result<&Stand, String> {
        self.clients
            .get(&client)
            .ok_or_else(|| format!("the log uses client {client}, which does not exist at this point"))
    }

    /// Creates a client with the options of the command line, or else with the recorded ones. If the plugin
    /// rejects the recorded options, creates a client without options.
    fn create_client(&mut self, platform: &str, recorded: &[NamedValue]) -> Result<Client, String> {
        let text = |error: crate::host::Error| error.to_string();
        if !self.own_options.is_empty() || recorded.is_empty() {
            return self.plugin.create_client(&self.own_options).map_err(text);
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
        outcome: Result<T, crate::host::Error>,
    ) -> Counterpart<T> {
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
        let element_type = ElementType::by_name(&shape.element_type)
            .ok_or_else(|| format!("unknown element type {}", shape.element_type))?;
        let size = shape.dims.iter().try_fold(element_type.byte_size(), |size, dim| {
            usize::try_from(*dim).ok().and_then(|dim| size.checked_mul(dim))
        });
        // A plugin would read as many bytes as the dimensions imply.
        if size != Some(elements.len()) {
            return Err(format!("the log is damaged: {} has {} bytes", in_words(shape), elements.len()));
        }
        let stand = self.stand(place.client)?;
        let (device, memory) = stand.resolve(place)?;
        let array = HostArray::new(elements, element_type, &shape.dims);
        let device = if memory.is_some() { None } else { Some(device) };
        let uploaded = stand.client.upload(&array, device, memory).map_err(|error| error.to_string())?;
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
        let (device, memory) = self.stand(place.client)?.resolve(place)?;
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

    fn launch(&self, entry: &Entry) -> Counterpart<Result<Vec<Vec<Buffer>>, crate::host::Error>> {
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
            let owner = self.clients.values().find(|stand| stand.devices.contains(&device));
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

    fn compare(&mut self, seen: Seen, recorded: Result<(&Shape, Vec<u8>), &Failure>) {
        let Seen { origin, outcome } = seen;
        let report = &mut self.report;
        match (outcome, recorded) {
            (Err(why), _) => *report.skipped.entry(why).or_default() += 1,
            (Ok(Err(_)), Err(_)) => report.same += 1,
            (Ok(Err(error)), Ok(_)) => report.different.push(format!("{origin} is an error: {error}")),
            (Ok(Ok(_)), Err(failure)) => report
                .different
                .push(format!("{origin} is an array, but an error in the recording: {}", failure.message)),
            (Ok(Ok((shape, here))), Ok((recorded_shape, there))) => {
                match difference((recorded_shape, &there), (&shape, &here), self.tolerance) {
                    Difference::None => report.same += 1,
                    Difference::WithinTolerance => report.close += 1,
                    Difference::Beyond(how) => {
                        report.different.push(format!("{origin}, {}: {how}", in_words(recorded_shape)));
                        return;
                    }
                }
                if self.print_all {
                    report.alike.push(format!("{origin}, {}: as recorded", in_words(recorded_shape)));
                }
            }
        }
    }
}

impl Stand {
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

fn name_of(loaded: &LoadedExecutable, number: usize) -> String {
    let name = loaded.executable().and_then(|program| program.name());
    name.unwrap_or_else(|_| format!("program {number}"))
}

fn read(buffer: &Buffer) -> Result<(Shape, Vec<u8>), crate::host::Error> {
    let element_type = buffer.element_type()?;
    let shape = Shape { element_type: element_type.name().to_owned(), dims: buffer.dims()? };
    Ok((shape, buffer.read()?))
}

fn in_words(shape: &Shape) -> String {
    let dims: String = shape.dims.iter().map(|dim| format!("{dim}x")).collect();
    format!("tensor<{dims}{}>", shape.element_type)
}

#[derive(Debug, PartialEq)]
enum Difference {
    None,
    WithinTolerance,
    Beyond(String),
}

/// Describes how an array differs from the recorded one.
fn difference(recorded: (&Shape, &[u8]), here: (&Shape, &[u8]), tolerance: f64) -> Difference {
    if recorded.0 != here.0 {
        return Difference::Beyond(format!("it is {} here", in_words(here.0)));
    }
    if recorded.1 == here.1 {
        return Difference::None;
    }
    if recorded.1.len() != here.1.len() {
        let (there, here) = (recorded.1.len(), here.1.len());
        return Difference::Beyond(format!("it has {here} bytes here, but {there} in the log"));
    }
    let name = &recorded.0.element_type;
    let size = ElementType::by_name(name).map_or(1, ElementType::byte_size).max(1);
    let (mut first, mut count, mut largest) = (None, 0, 0.0_f64);
    let pairs = recorded.1.chunks_exact(size).zip(here.1.chunks_exact(size));
    for (index, (there, here)) in pairs.enumerate().filter(|(_, (there, here))| there != here) {
        let distance = distance(name, there, here);
        if distance > tolerance {
            count += 1;
            largest = largest.max(distance);
            first.get_or_insert((index, there, here));
        }
    }
    let Some((index, there, here)) = first else { return Difference::WithinTolerance };
    let shown = |element: &[u8]| crate::run::element_text(name, element);
    let relative = if largest.is_finite() {
        format!("; the largest difference, relative to the larger number or to 1, is {largest:e}")
    } else {
        String::new()
    };
    Difference::Beyond(format!(
        "{count} of {} elements differ, the first at {:?}: {} in the recording, {} here{relative}",
        recorded.1.len() / size,
        position(index, &recorded.0.dims),
        shown(there),
        shown(here),
    ))
}

/// Returns the difference of two unequal elements, relative to the larger one or to 1, whichever is larger.
/// Returns infinity if they are not finite numbers.
fn distance(type_name: &str, there: &[u8], here: &[u8]) -> f64 {
    let (Some(there), Some(here)) = (number::reals(type_name, there), number::reals(type_name, here)) else {
        return f64::INFINITY;
    };
    let apart = |(there, here): (&f64, &f64)| {
        if there == here || there.is_nan() && here.is_nan() {
            return 0.0;
        }
        let apart = (there - here).abs() / there.abs().max(here.abs()).max(1.0);
        if apart.is_nan() { f64::INFINITY } else { apart }
    };
    there.iter().zip(&here).map(apart).fold(0.0, f64::max)
}

/// Converts an element's number in row-major order to its indices.
fn position(mut index: usize, dims: &[i64]) -> Vec<usize> {
    let mut position = vec![0; dims.len()];
    for (place, dim) in position.iter_mut().zip(dims).rev() {
        let dim = usize::try_from(*dim).unwrap_or(1).max(1);
        *place = index % dim;
        index /= dim;
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn arrays_differ_by_the_bits_or_beyond_the_tolerance() {
        let shape = Shape { element_type: "f32".into(), dims: vec![2, 2] };
        let compare = |there: &[f32], here: &[f32], tolerance| {
            difference((&shape, &f32s(there)), (&shape, &f32s(here)), tolerance)
        };
        let recorded = [1.0, 2.0, f32::NAN, 1000.0];
        assert_eq!(compare(&recorded, &recorded, 0.0), Difference::None);
        let close = [1.0, 2.0, -f32::NAN, 1000.1];
        assert_eq!(compare(&recorded, &close, 1e-3), Difference::WithinTolerance);
        let Difference::Beyond(how) = compare(&recorded, &close, 1e-5) else { panic!("it is too far") };
        assert!(how.ends_with("e-5") && how.contains("relative to the larger number or to 1"), "{how}");
        assert!(how.contains("1 of 4 elements") && how.contains("[1, 1]: 1000 in the recording"), "{how}");
        // A zero of the other sign, and infinity.
        assert_eq!(compare(&[0.0; 4], &[-0.0; 4], 0.0), Difference::WithinTolerance);
        assert!(matches!(compare(&[1.0; 4], &[f32::INFINITY; 4], 10.0), Difference::Beyond(_)));
    }

    #[test]
    fn integers_and_shapes_must_be_the_same() {
        let shape = Shape { element_type: "i32".into(), dims: vec![1] };
        let other = Shape { element_type: "i32".into(), dims: vec![] };
        assert!(matches!(
            difference((&shape, &[1, 0, 0, 0]), (&shape, &[2, 0, 0, 0]), 1.0),
            Difference::Beyond(_)
        ));
        assert!(matches!(
            difference((&shape, &[1, 0, 0, 0]), (&other, &[1, 0, 0, 0]), 1.0),
            Difference::Beyond(_)
        ));
    }
}
