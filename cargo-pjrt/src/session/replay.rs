//! Does with a plugin what a host did with another one, and compares the results.

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

/// What to replay, and how.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The log that the recorder wrote
    pub log: PathBuf,
    /// The plugin, a shared library
    pub plugin: PathBuf,
    /// How far real numbers may differ, as a part of the larger one, or of 1 if that is larger; by default, not at all
    #[arg(long, default_value_t = 0.0, value_parser = tolerance, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// An option for the clients, such as num_devices=2, in place of those in the log; may be given several times
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<CreateOption>,
    /// Print every result, not only those that differ
    #[arg(long)]
    pub all: bool,
    /// How many seconds a step of the plugin may take, such as an execution
    #[arg(long, default_value = "600", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// A tolerance as the command line has it.
fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    number.ok_or_else(|| "a tolerance is a number that is not negative, such as 1e-6".to_owned())
}

/// What came of it.
#[derive(Debug, Clone, Default)]
struct Report {
    programs: usize,
    executions: usize,
    same: usize,
    close: usize,
    /// What does not differ, in words, if that is asked for.
    alike: Vec<String>,
    /// What differs, in words.
    different: Vec<String>,
    /// Why results could not be compared, and how many.
    skipped: BTreeMap<String, usize>,
    /// What else should be known.
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

/// Replays a log, and prints what came of it. True if nothing differs.
///
/// # Errors
///
/// If the log cannot be read, the plugin cannot be used, or nothing could be compared.
pub fn replay(options: &Options) -> Result<bool, String> {
    let log = Log::open(&options.log)?;
    child::next("the plugin was loaded");
    let plugin =
        Plugin::load(&options.plugin).map_err(|error| format!("{}: {error}", options.plugin.display()))?;
    child::next("the plugin was initialized");
    plugin.initialize().map_err(|error| error.to_string())?;
    let mut replayer = Replayer::new(&log, plugin, options.tolerance, options.options.clone());
    replayer.print_all = options.all;
    for (index, entry) in log.entries.iter().enumerate() {
        child::next(&format!("entry {} of the log was replayed: {}", index + 1, entry.name()));
        replayer.step(index, entry)?;
    }
    child::next("what the log leaves was destroyed");
    let report = replayer.end();
    output::print(&format!("{}\n", visible(&report.text())))?;
    if log.is_cut_off {
        return Err(format!(
            "{}: the log ends in the middle of entry {}: the host's process died, or the file is damaged. What is before it was \
             replayed",
            options.log.display(),
            log.entries.len() + 1
        ));
    }
    if report.same + report.close + report.different.len() == 0 {
        let why = if log.entries.iter().any(|entry| matches!(entry, Entry::Read { .. })) {
            "no result could be compared"
        } else {
            "there is nothing to compare: the host looked at no result while this was recorded"
        };
        return Err(format!("{}: {why}", options.log.display()));
    }
    Ok(report.different.is_empty())
}

/// A client in the place of a recorded one.
struct Stand {
    client: Client,
    /// The ids of the recorded one's devices.
    devices: Vec<i32>,
}

/// Something in the place of a recorded object, or why there is nothing.
type Counterpart<T> = Result<T, String>;

/// What the plugin gave for a result of the log.
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
    /// Where in the log the contents of adopted buffers are.
    contents: HashMap<u64, usize>,
    /// What buffers are, in words.
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

    /// One entry of the log. An error ends the replay; what the plugin cannot do only skips what depends on it.
    fn step(&mut self, index: usize, entry: &Entry) -> Result<(), String> {
        match entry {
            Entry::Start { .. } | Entry::Contents { .. } => {}
            Entry::CreateClient { client, platform, options, devices } => {
                let stand =
                    Stand { client: self.create_client(platform, options)?, devices: devices.clone() };
                let here = stand.client.devices().map_err(|error| error.to_string())?.len();
                if here < devices.len() {
                    self.report.notes.push(format!(
                        "the recorded client had {} devices, and this one has {here}: see --option, or the plugin's \
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
                    format!("program {number} was not compiled but loaded, in a form of the recorded plugin: {error}")
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
                    None => Err(format!("the log reads buffer {buffer}, which it does not make")),
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
            let why = "the log ends before what the host saw was written".to_owned();
            self.report.skipped.insert(why, self.seen.len());
        }
        self.report
    }

    fn stand(&self, client: u64) -> Result<&Stand, String> {
        self.clients.get(&client).ok_or_else(|| format!("the log uses client {client}, which is not there"))
    }

    /// A client with the options of the command line, or else the recorded ones. Another plugin may not know these, and then gets
    /// none.
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
                    "the plugin does not take the options of the recorded client ({platform}: {}): {}; it gets none",
                    names.join(" "),
                    error.message
                ));
                self.plugin.create_client(&[]).map_err(text)
            }
            other => other.map_err(text),
        }
    }

    /// Notes it if one plugin can do something and the other one cannot.
    fn agree<T>(
        &mut self,
        what: &str,
        recorded: Option<&Failure>,
        outcome: Result<T, crate::host::Error>,
    ) -> Counterpart<T> {
        match (recorded, outcome) {
            (None, Ok(value)) => Ok(value),
            (Some(_), Err(_)) => Err(format!("{what} failed when it was recorded, and fails here")),
            (Some(failure), Ok(value)) => {
                self.report
                    .notes
                    .push(format!("{what} works here; it was recorded to fail: {}", failure.message));
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
            .ok_or_else(|| format!("there is no element type {}", shape.element_type))?;
        let size = shape.dims.iter().try_fold(element_type.byte_size(), |size, dim| {
            usize::try_from(*dim).ok().and_then(|dim| size.checked_mul(dim))
        });
        // A plugin would read as many bytes as the dimensions say.
        if size != Some(elements.len()) {
            return Err(format!(
                "the log is damaged: {} has {} bytes in it",
                in_words(shape),
                elements.len()
            ));
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
        let index = self.contents.get(&buffer).ok_or("the log ends before an array was written")?;
        match &self.log.entries[*index] {
            Entry::Contents { shape, failure: None, .. } => {
                self.upload(shape, &self.log.bytes(*index)?, place)
            }
            Entry::Contents { failure: Some(failure), .. } => {
                Err(format!("an array could not be read when it was recorded: {}", failure.message))
            }
            _ => Err("the log ends before an array was written".to_owned()),
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
            None => Err(format!("the log uses buffer {id}, which it does not make")),
        }
    }

    /// Runs a program as the host did, and puts its results, or why there are none, in the recorded ones' place.
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
            return Err("this entry is no execution".to_owned());
        };
        if *calls_host {
            return Err("the program calls the host, which is not there".to_owned());
        }
        let (_, loaded) = match self.executables.get(executable) {
            Some(Ok(loaded)) => loaded,
            Some(Err(why)) => return Err(why.clone()),
            None => return Err("the program was made by an extension, which is not recorded".to_owned()),
        };
        // A plugin would take as many arguments of each list as the first one has.
        if arguments.iter().any(|list| list.len() != arguments[0].len()) {
            return Err(
                "the log is damaged: the devices of an execution have different numbers of arguments"
                    .to_owned(),
            );
        }
        let lists: Vec<Vec<&Buffer>> = arguments
            .iter()
            .map(|list| list.iter().map(|id| self.buffer(*id)).collect())
            .collect::<Counterpart<_>>()?;
        let named = |device: i32| {
            let owner = self.clients.values().find(|stand| stand.devices.contains(&device));
            owner.ok_or("the client is gone")?.device(device)
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
                .push(format!("{origin} is an array; it was recorded as an error: {}", failure.message)),
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
    /// The device in the place of a recorded one: the one with the same position.
    fn device(&self, id: i32) -> Counterpart<Device<'_>> {
        let position = self.devices.iter().position(|known| *known == id);
        let position =
            position.ok_or_else(|| format!("the log uses device {id}, which its client did not have"))?;
        let devices = self.client.devices().map_err(|error| error.to_string())?;
        devices.get(position).copied().ok_or_else(|| {
            format!("the log uses {} devices or more, and the plugin has {}", position + 1, devices.len())
        })
    }

    /// Device and memory in the place of recorded ones. A kind of memory that the device does not have is its default one.
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

/// How an array differs from the recorded one.
fn difference(recorded: (&Shape, &[u8]), here: (&Shape, &[u8]), tolerance: f64) -> Difference {
    if recorded.0 != here.0 {
        return Difference::Beyond(format!("here it is {}", in_words(here.0)));
    }
    if recorded.1 == here.1 {
        return Difference::None;
    }
    if recorded.1.len() != here.1.len() {
        let (there, here) = (recorded.1.len(), here.1.len());
        return Difference::Beyond(format!("it has {here} bytes here, and {there} in the log"));
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
        format!("; the largest difference is {largest:e} of the larger one, or of 1 if that is larger")
    } else {
        String::new()
    };
    Difference::Beyond(format!(
        "{count} of {} elements differ, the first at {:?}: {} was recorded, here it is {}{relative}",
        recorded.1.len() / size,
        position(index, &recorded.0.dims),
        shown(there),
        shown(here),
    ))
}

/// How far two elements that are not the same lie apart, as a part of the larger one, or of 1 if that is larger; infinitely far if
/// they are not numbers that can be close.
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

/// The indices of an element, from its number in row-major order.
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
        assert!(how.ends_with("e-5 of the larger one, or of 1 if that is larger"), "{how}");
        assert!(how.contains("1 of 4 elements") && how.contains("[1, 1]: 1000 was recorded"), "{how}");
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
