//! Checks of hazards: operations that different queues of a device perform on the same memory take effect in the order of the
//! calls.
//!
//! Each check keeps one queue busy with operations on large arrays. What comes last in it is then still in progress when an
//! operation in another queue, which does not wait, reads or writes the same memory.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::arrays::{Floats, launch};
use super::entry::{ALL, Entry, check};
use super::program_text::{self, compiled, sums, with_main};
use super::without_hazard::{MOMENT, Waits, Wrong, is_without_hazard};
use crate::conform::harness::{
    Context, Expected, FREED_IN_USE, Finding, TOO_EARLY, Verdict, ensure, f32_bytes, patience, performing,
};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, CopyLayout, ElementType, Error, Event, FutureCopy, HostArray, HostMemory,
    LoadedExecutable, Memory, Uploaded,
};

const DELETE: &str = "PJRT_Buffer_Delete";
const DELETE_TEXT: &str =
    "The device memory will be freed when all async operations using the buffer have completed.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "hazards/read_after_write",
        "An execution, a readback or a copy reads an array when it is written, whichever argument it is, and whether an upload, a copy or an execution writes it.",
        read_after_write,
        "PJRT_LoadedExecutable_Execute when options>launch_id=975 copy_argument 2 1",
    )
    .header("PJRT_Buffer_ReadyEvent", "Returns an event that is triggered when the data in the PJRT_Buffer becomes ready: whatever uses the data waits for it.")
    .needed_by(ALL),
    check(
        "hazards/write_after_read",
        "A readback, a copy or an execution keeps the memory that it reads until it has ended, even if the host deletes, destroys or donates the array right after the call.",
        write_after_read,
        "PJRT_Buffer_ToHostBuffer when dst_size=4372 late_readback",
    )
    .header(DELETE, DELETE_TEXT)
    .needed_by(ALL),
    check(
        "hazards/write_after_write",
        "An upload, a copy or an execution does not write to memory that another array has got meanwhile, even if the host deletes the array that it creates right after the call.",
        write_after_write,
        "PJRT_Client_BufferFromHostBuffer when dims.0=1097 same_upload",
    )
    .header(DELETE, DELETE_TEXT)
    .used_by(ALL),
    check(
        "hazards/outputs_and_their_events",
        "When the event of a device or that of an output is complete, each of eight outputs has its data, also while a callback of the event runs.",
        outputs_of_events,
        "PJRT_LoadedExecutable_Execute when options>launch_id=976 zeroed_output 7",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "Each `PJRT_Event` will become ready once the corresponding device execution is complete.")
    .needed_by(ALL),
];

/// An operation that reads an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Readback,
    RawCopy,
    LaterRawCopy,
    Copy,
    CopyToLast,
    Execution,
}

impl Reader {
    const ALL: [Self; 6] =
        [Self::Readback, Self::RawCopy, Self::LaterRawCopy, Self::Copy, Self::CopyToLast, Self::Execution];

    fn name(self) -> &'static str {
        match self {
            Self::Readback => "a readback",
            Self::RawCopy => "a raw copy to the host",
            Self::LaterRawCopy => "a raw copy whose destination the host names later",
            Self::Copy => "a copy in the same memory",
            Self::CopyToLast => "a copy to the last device",
            Self::Execution => "an execution",
        }
    }
}

/// An operation that creates an array on the first device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Upload,
    Copy,
    CopyFromLast,
    Execution,
}

impl Writer {
    const ALL: [Self; 4] = [Self::Upload, Self::Copy, Self::CopyFromLast, Self::Execution];

    fn name(self) -> &'static str {
        match self {
            Self::Upload => "an upload",
            Self::Copy => "a copy in the same memory",
            Self::CopyFromLast => "a copy from the last device",
            Self::Execution => "an execution",
        }
    }
}

/// A read that is in progress.
enum InProgress {
    /// The function that reads, the memory, and the event.
    Readback(&'static str, HostMemory, Event),
    Later(FutureCopy),
    Copy(Buffer),
    /// The bytes.
    Ended(Vec<u8>),
}

impl InProgress {
    /// Waits for the end.
    fn end(self, size: usize) -> Result<Self, Error> {
        match &self {
            Self::Readback(_, _, event) => event.wait()?,
            Self::Copy(copy) => copy.ready()?.wait()?,
            // It does not begin before the host names the destination.
            Self::Later(_) => return self.finish(size).map(Self::Ended),
            Self::Ended(_) => {}
        }
        Ok(self)
    }

    /// Waits for the end, and returns the bytes.
    fn finish(self, size: usize) -> Result<Vec<u8>, Error> {
        let (function, memory, event) = match self {
            Self::Readback(function, memory, event) => (function, memory, event),
            Self::Later(copy) => return copy.finish(),
            Self::Ended(bytes) => return Ok(bytes),
            Self::Copy(copy) => {
                let (memory, event) = copy.start_read(size, &CopyLayout::Unsaid)?;
                ("PJRT_Buffer_ToHostBuffer", memory, event)
            }
        };
        event.wait()?;
        let bytes = memory.written(function)?;
        memory.recycle();
        Ok(bytes)
    }
}

/// An array of zeros, and the programs for arrays of its size.
struct OfSize {
    size: usize,
    zeros: Buffer,
    sum: LoadedExecutable,
}

impl OfSize {
    fn new(client: &Client, len: usize) -> Result<Self, Finding> {
        let bytes = vec![0; 4 * len];
        let dims = [len as i64];
        let array = HostArray::new(&bytes, ElementType::F32, &dims);
        let zeros = client.upload(&array, Some(client.device()?), None)?.buffer;
        zeros.ready()?.wait()?;
        let sum = Floats::new(client, len).program()?;
        Ok(Self { size: bytes.len(), zeros, sum })
    }

    /// Starts to read an array of this size.
    fn start(&self, reader: Reader, client: &Client, array: &Buffer) -> Result<InProgress, Error> {
        let size = self.size;
        Ok(match reader {
            Reader::Readback => {
                let (memory, event) = array.start_read(size, &CopyLayout::Unsaid)?;
                InProgress::Readback("PJRT_Buffer_ToHostBuffer", memory, event)
            }
            Reader::RawCopy => {
                let (memory, event) = array.start_read_raw(0, size)?;
                InProgress::Readback("PJRT_Buffer_CopyRawToHost", memory, event)
            }
            Reader::LaterRawCopy => InProgress::Later(array.read_raw_later(0, size as i64)?),
            Reader::Copy => InProgress::Copy(array.copy_to_memory(client.device()?.default_memory()?)?),
            Reader::CopyToLast => InProgress::Copy(array.copy_to_memory(last_memory(client)?)?),
            Reader::Execution => InProgress::Copy(launch(&self.sum, [array, &self.zeros], 0)?),
        })
    }
}

/// Returns the number of elements of an array of f32 that occupies this part of the device's memory, within these limits. A
/// device may store arrays with padding.
fn fitting(client: &Client, part: i64, least: i64, most: i64) -> Result<usize, Error> {
    const PROBE: i64 = 4096;
    let device = client.device()?;
    let Some(limit) = device.memory_stats().ok().and_then(|stats| stats.bytes_limit) else {
        return Ok(most as usize);
    };
    let bytes = vec![0; 4 * PROBE as usize];
    let probe = client.upload(&HostArray::new(&bytes, ElementType::F32, &[PROBE]), Some(device), None)?;
    let on_device = probe.buffer.on_device_size().map_or(0, |size| i64::try_from(size).unwrap_or(i64::MAX));
    let of_element = on_device.max(4 * PROBE).saturating_add(PROBE - 1) / PROBE;
    Ok((limit / part / of_element).clamp(least, most) as usize)
}

/// Returns the default memory of the last device.
fn last_memory(client: &Client) -> Result<Memory<'_>, Error> {
    let last = client.addressable_devices()?.pop();
    last.map_or_else(|| client.device(), Ok)?.default_memory()
}

/// The number of large operations that keep a queue busy.
const BUSY: usize = 4;

/// The source from which a writer makes an array. Its elements differ from those of all others, because memory that is read too
/// early would otherwise be right by chance: temporary memory of a launch has the elements of its output.
struct Source {
    number: u8,
    /// The array that the writer reads; an upload reads none.
    array: Option<Buffer>,
}

impl Source {
    fn array(&self) -> &Buffer {
        self.array.as_ref().expect("only uploads have no source on a device")
    }
}

/// The arrays and programs that the cases of a check use.
struct Fixture<'c> {
    client: &'c Client,
    floats: Floats<'c>,
    small: OfSize,
    large: OfSize,
    /// The bytes of a large array.
    bytes: Vec<u8>,
    has_others: bool,
}

impl<'c> Fixture<'c> {
    fn new(client: &'c Client, len: usize) -> Result<Self, Finding> {
        const MOST: i64 = 1 << 19;
        // The arrays that exist at the same time fit into a part of the device's memory.
        let large = fitting(client, 16, 1 << 10, MOST)?;
        let floats = Floats::new(client, len);
        Ok(Self {
            client,
            floats,
            small: OfSize::new(client, len)?,
            large: OfSize::new(client, large)?,
            bytes: vec![0; 4 * large],
            has_others: client.addressable_devices()?.len() > 1,
        })
    }

    /// Prepares the sources of arrays that a writer will create.
    fn sources(&self, writer: Writer, count: usize) -> Result<Vec<Source>, Error> {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let source = |_| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let array = match writer {
                Writer::Upload => None,
                Writer::Copy | Writer::Execution => Some(self.floats.upload(number)?),
                Writer::CopyFromLast => {
                    Some(self.floats.upload(number)?.copy_to_memory(last_memory(self.client)?)?)
                }
            };
            array.iter().try_for_each(|array| array.ready()?.wait())?;
            Ok(Source { number, array })
        };
        (0..count).map(source).collect()
    }

    /// Begins to upload zeros.
    fn start_zeros(&self) -> Result<Uploaded, Error> {
        let bytes = vec![0; self.small.size];
        let dims = [self.small.size as i64 / 4];
        let array = HostArray::new(&bytes, ElementType::F32, &dims);
        self.client.upload(&array, Some(self.client.device()?), None)
    }

    /// Returns the operations that read arrays and that the plugin has.
    fn readers(&self) -> Vec<Reader> {
        let exists = |reader: &Reader| {
            *reader == Reader::Execution
                || (self.has_others || *reader != Reader::CopyToLast)
                    && self.small.start(*reader, self.client, &self.small.zeros).is_ok()
        };
        Reader::ALL.into_iter().filter(exists).collect()
    }

    /// Returns the operations that create arrays and that the plugin has.
    fn writers(&self) -> Vec<Writer> {
        let exists = |writer: &Writer| match writer {
            Writer::Copy | Writer::CopyFromLast => {
                (self.has_others || *writer == Writer::Copy)
                    && self.sources(*writer, 1).is_ok_and(|sources| self.write(*writer, &sources[0]).is_ok())
            }
            Writer::Upload | Writer::Execution => true,
        };
        Writer::ALL.into_iter().filter(exists).collect()
    }

    /// Begins to create an array.
    fn write(&self, writer: Writer, source: &Source) -> Result<Buffer, Error> {
        match writer {
            Writer::Upload => self.floats.start_upload(source.number),
            Writer::Copy | Writer::CopyFromLast => {
                source.array().copy_to_memory(self.client.device()?.default_memory()?)
            }
            Writer::Execution => launch(&self.small.sum, [source.array(), &self.small.zeros], 0),
        }
    }

    /// Begins to create arrays.
    fn write_all(&self, writer: Writer, sources: &[Source]) -> Result<Vec<Buffer>, Error> {
        sources.iter().map(|source| self.write(writer, source)).collect()
    }

    /// Keeps the queue of a kind of readers busy.
    fn read_large(&self, reader: Reader) -> Result<Busy, Error> {
        let read = || self.large.start(reader, self.client, &self.large.zeros);
        Ok(Busy {
            size: self.bytes.len(),
            reads: (0..BUSY).map(|_| read()).collect::<Result<_, _>>()?,
            uploads: Vec::new(),
        })
    }

    /// Keeps the queue of a kind of writers busy.
    fn write_large(&self, writer: Writer) -> Result<Busy, Error> {
        let dims = [self.bytes.len() as i64 / 4];
        let array = HostArray::new(&self.bytes, ElementType::F32, &dims);
        match writer {
            Writer::Upload => {
                let device = self.client.device()?;
                let upload = || self.client.upload(&array, Some(device), None);
                let uploads = (0..BUSY).map(|_| upload()).collect::<Result<_, _>>()?;
                Ok(Busy { size: self.bytes.len(), reads: Vec::new(), uploads })
            }
            Writer::Copy => self.read_large(Reader::Copy),
            Writer::CopyFromLast => self.read_large(Reader::CopyToLast),
            Writer::Execution => self.read_large(Reader::Execution),
        }
    }

    /// Reads an array, and describes the elements that differ from those of the array with this number, and whether they do so a moment
    /// later, too.
    fn differences_of(&self, array: &Buffer, number: u8) -> Result<Option<String>, Error> {
        let Some(differences) = self.differences(&array.read()?, number) else { return Ok(None) };
        std::thread::sleep(MOMENT);
        Ok(Some(match self.differences(&array.read()?, number) {
            Some(_) => differences,
            None => {
                format!("{differences}; a moment later, the array has the expected elements: {TOO_EARLY}")
            }
        }))
    }

    /// Describes the elements of an array that differ from those of the array with this number.
    fn differences(&self, read: &[u8], number: u8) -> Option<String> {
        let expected = self.floats.bytes(number);
        if read == expected {
            return None;
        }
        let numbers = |bytes: &[u8]| -> Vec<f32> {
            bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        };
        let pairs: Vec<(f32, f32)> = numbers(read).into_iter().zip(numbers(&expected)).collect();
        let wrong = pairs.iter().filter(|(got, expected)| got.to_bits() != expected.to_bits());
        let of_others = wrong.clone().filter(|(got, expected)| Floats::are_of_two(*got, *expected));
        let whose = match of_others.count() {
            0 => String::new(),
            of => format!(" ({of} are those of another array)"),
        };
        Some(format!("{} of {} wrong elements{whose}", wrong.count(), pairs.len()))
    }
}

/// Operations on large arrays, which keep a queue busy.
struct Busy {
    size: usize,
    reads: Vec<InProgress>,
    uploads: Vec<Uploaded>,
}

impl Busy {
    fn finish(self) -> Result<(), Error> {
        for read in self.reads {
            read.finish(self.size)?;
        }
        for uploaded in self.uploads {
            uploaded.done.wait()?;
            uploaded.buffer.ready()?.wait()?;
            uploaded.memory.recycle();
        }
        Ok(())
    }
}

fn read_after_write(context: &Context) -> Verdict {
    let client = context.client()?;
    // Drivers and devices move large arrays in other ways than small ones.
    let large = fitting(&client, 64, 1090, LARGE)?;
    let lens: [usize; ROUNDS] = [1089, 20_011.min(large), large];
    for (round, len) in lens.into_iter().enumerate() {
        reads_of_length(&client, len, round)?;
    }
    Ok(())
}

/// The number of elements of the largest arrays that are read right after they are written: more than a mebibyte.
const LARGE: i64 = 300_007;

/// The number of lengths of arrays.
const ROUNDS: usize = 3;

fn reads_of_length(client: &Client, len: usize, round: usize) -> Verdict {
    const CAUSE: &str = "does not wait for the event of each array that an operation reads, but only for that of the first one, or for none";
    let fixture = Fixture::new(client, len)?;
    let ty = format!("tensor<{len}xf32>");
    let lines = format!("    %s0 = stablehlo.add %p0, %p1 : {ty}\n    %s1 = stablehlo.add %s0, %p2 : {ty}\n");
    let text = with_main(&format!("%p0: {ty}, %p1: {ty}, %p2: {ty}"), &lines, "%s1", &ty);
    let three = compiled(client, &text, &CompileOptions::default())?;
    // Operations of one queue wait for each other. Each time, another one is the first, which is most probably wrong.
    let mut readers = fixture.readers();
    let first = round * readers.len() / ROUNDS;
    readers.rotate_left(first);
    for writer in fixture.writers() {
        performing(format!("reads of {len} elements after {}", writer.name()), || {
            is_without_hazard(CAUSE, |waits| reads_after(&fixture, writer, &readers, &three, waits))
        })?;
    }
    Ok(())
}

/// Creates arrays, and reads each of them right after the call.
fn reads_after(
    fixture: &Fixture<'_>,
    writer: Writer,
    readers: &[Reader],
    three: &LoadedExecutable,
    waits: Waits,
) -> Result<Wrong, Finding> {
    let sources = fixture.sources(writer, 3 + readers.len())?;
    let mut unused = sources.iter();
    let mut write = || {
        let source = unused.next().expect("there is a source for each read");
        let array = fixture.write(writer, source)?;
        waits.until(|| array.ready()?.wait())?;
        Ok::<_, Error>((array, source.number))
    };
    let busy = fixture.write_large(writer)?;
    let mut reads = Vec::new();
    // In the queue of executions, the others wait for the first one. It must be the one that is most probably wrong.
    for position in [2, 1, 0] {
        let (array, number) = write()?;
        let mut arguments = [&fixture.small.zeros; 3];
        arguments[position] = &array;
        let sum = program_text::launch(three, &arguments, 975)?.take_output()?;
        reads.push((
            format!("an execution with three arguments of which number {} is", position + 1),
            (array, number),
            InProgress::Copy(sum),
        ));
    }
    for reader in readers {
        let (array, number) = write()?;
        let read = fixture.small.start(*reader, fixture.client, &array)?;
        reads.push((format!("{} of", reader.name()), (array, number), read));
    }
    busy.finish()?;
    for (what, (_array, number), read) in reads {
        if let Some(differences) = fixture.differences(&read.finish(fixture.small.size)?, number) {
            return Ok(Some(format!(
                "{what} an array of {} bytes that {} creates, called right after that, has {differences}",
                fixture.small.size,
                writer.name()
            )));
        }
    }
    Ok(None)
}

/// The number of arrays that the host gives up in each case, and of those that get their memory.
const GIVEN_UP: usize = 4;

/// Deletes every other array, and destroys the rest.
fn give_up(arrays: Vec<Buffer>) -> Result<Vec<Buffer>, Error> {
    let mut deleted = Vec::new();
    for (at, array) in arrays.into_iter().enumerate() {
        if at % 2 == 0 {
            array.delete()?;
            deleted.push(array);
        }
    }
    Ok(deleted)
}

fn write_after_read(context: &Context) -> Verdict {
    const RUNS: usize = 4;
    const DONATES: &str = "lets an execution write to the memory of a donated argument although an operation in another queue still \
                           reads it";
    let client = context.client()?;
    let fixture = Fixture::new(&client, 1093)?;
    let donating = fixture.floats.donating_program()?;
    let of_given_up = |reader, writer| {
        is_without_hazard(&frees("reads", writer), |waits| reads_of_given_up(&fixture, reader, writer, waits))
    };
    for reader in fixture.readers() {
        for writer in fixture.writers() {
            performing(format!("{} before {}", reader.name(), writer.name()), || {
                of_given_up(reader, writer)
            })?;
        }
        let donated = performing(format!("{} before a donation", reader.name()), || {
            is_without_hazard(DONATES, |waits| reads_of_donated(&fixture, reader, &donating, waits))
        });
        // If the memory of a deleted array is not kept either, although only now and then, donation is not the reason.
        let again =
            || (0..RUNS).flat_map(|_| fixture.writers()).try_for_each(|writer| of_given_up(reader, writer));
        donated.or_else(|found| again().and(Err(found)))?;
    }
    for writer in fixture.writers() {
        let cause = frees("reads", writer);
        performing(format!("a donation before {}", writer.name()), || {
            is_without_hazard(&cause, |waits| reads_by_donation(&fixture, writer, &donating, waits))
        })?;
    }
    Ok(())
}

/// Describes what a plugin probably does if a writer changes memory that a queue still uses in this way.
fn frees(uses: &str, writer: Writer) -> String {
    let writer = writer.name();
    format!(
        "{FREED_IN_USE} {uses} it, or {writer} does not wait until that operation has ended. {DELETE_TEXT}"
    )
}

/// Transfers arrays. Returns their numbers and the arrays.
fn uploaded(fixture: &Fixture<'_>) -> Result<(Vec<u8>, Vec<Buffer>), Error> {
    let sources = fixture.sources(Writer::Copy, GIVEN_UP)?;
    Ok(sources.into_iter().filter_map(|source| Some((source.number, source.array?))).unzip())
}

/// Reads of arrays that are in progress.
struct Reads {
    busy: Busy,
    numbers: Vec<u8>,
    arrays: Vec<Buffer>,
    reads: Vec<InProgress>,
}

/// Starts to read arrays, while the queue of the reader is busy.
fn start_reads(fixture: &Fixture<'_>, reader: Reader, waits: Waits) -> Result<Reads, Finding> {
    let (numbers, arrays) = uploaded(fixture)?;
    let busy = fixture.read_large(reader)?;
    let start = |array| fixture.small.start(reader, fixture.client, array);
    let mut reads = arrays.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    waits.until(|| {
        let ended = std::mem::take(&mut reads).into_iter().map(|read| read.end(fixture.small.size));
        reads = ended.collect::<Result<_, _>>()?;
        Ok(())
    })?;
    Ok(Reads { busy, numbers, arrays, reads })
}

fn reads_of_given_up(
    fixture: &Fixture<'_>,
    reader: Reader,
    writer: Writer,
    waits: Waits,
) -> Result<Wrong, Finding> {
    let sources = fixture.sources(writer, GIVEN_UP)?;
    let Reads { busy, numbers, arrays, reads } = start_reads(fixture, reader, waits)?;
    let _deleted = give_up(arrays)?;
    let others = fixture.write_all(writer, &sources)?;
    busy.finish()?;
    let (reader, writer) = (reader.name(), writer.name());
    for (at, (read, number)) in reads.into_iter().zip(numbers).enumerate() {
        let end = if at % 2 == 0 { "deleted" } else { "destroyed" };
        if let Some(differences) = fixture.differences(&read.finish(fixture.small.size)?, number) {
            return Ok(Some(format!(
                "{reader} of an array that the host {end} right after the call, before {writer} of another one, has {differences}"
            )));
        }
    }
    for (other, source) in others.iter().zip(&sources) {
        if let Some(differences) = fixture.differences_of(other, source.number)? {
            return Ok(Some(format!(
                "an array of {writer}, called right after {reader} of another array and its deletion, has {differences}"
            )));
        }
    }
    Ok(None)
}

fn reads_of_donated(
    fixture: &Fixture<'_>,
    reader: Reader,
    donating: &LoadedExecutable,
    waits: Waits,
) -> Result<Wrong, Finding> {
    let other = fixture.sources(Writer::Execution, 1)?;
    let Reads { busy, numbers, arrays, reads } = start_reads(fixture, reader, waits)?;
    let donate = |array| launch(donating, [array, other[0].array()], 0);
    let _outputs = arrays.iter().map(donate).collect::<Result<Vec<_>, _>>()?;
    busy.finish()?;
    for (read, number) in reads.into_iter().zip(numbers) {
        if let Some(differences) = fixture.differences(&read.finish(fixture.small.size)?, number) {
            let reader = reader.name();
            return Ok(Some(format!(
                "{reader} of an array that the host donated to an execution right after the call has {differences}"
            )));
        }
    }
    Ok(None)
}

/// Donates arrays to executions that cannot begin, because their other argument is still being uploaded, and creates other arrays
/// meanwhile.
fn reads_by_donation(
    fixture: &Fixture<'_>,
    writer: Writer,
    donating: &LoadedExecutable,
    waits: Waits,
) -> Result<Wrong, Finding> {
    let sources = fixture.sources(writer, GIVEN_UP)?;
    let (numbers, arrays) = uploaded(fixture)?;
    let busy = fixture.write_large(Writer::Upload)?;
    let late = fixture.start_zeros()?;
    let donate = |array| launch(donating, [array, &late.buffer], 0);
    let outputs = arrays.iter().map(donate).collect::<Result<Vec<_>, _>>()?;
    waits.until(|| outputs.iter().try_for_each(|output| output.ready()?.wait()))?;
    let _others = fixture.write_all(writer, &sources)?;
    busy.finish()?;
    late.done.wait()?;
    for (output, number) in outputs.iter().zip(numbers) {
        if let Some(differences) = fixture.differences(&output.read()?, number) {
            let writer = writer.name();
            return Ok(Some(format!(
                "the sum of a donated array and zeros that are still being uploaded, before {writer} of another array, has \
                 {differences}"
            )));
        }
    }
    Ok(None)
}

fn write_after_write(context: &Context) -> Verdict {
    let client = context.client()?;
    let fixture = Fixture::new(&client, 1097)?;
    let writers = fixture.writers();
    for first in &writers {
        for second in writers.iter().filter(|second| *second != first) {
            let cause = frees("writes to", *second);
            performing(format!("{} after {}", second.name(), first.name()), || {
                is_without_hazard(&cause, |waits| writes_after(&fixture, *first, *second, waits))
            })?;
        }
    }
    Ok(())
}

/// Creates arrays that the host gives up at once, and others in another way.
fn writes_after(
    fixture: &Fixture<'_>,
    first: Writer,
    second: Writer,
    waits: Waits,
) -> Result<Wrong, Finding> {
    let of_first = fixture.sources(first, GIVEN_UP)?;
    let of_second = fixture.sources(second, GIVEN_UP)?;
    let busy = fixture.write_large(first)?;
    let arrays = fixture.write_all(first, &of_first)?;
    waits.until(|| arrays.iter().try_for_each(|array| array.ready()?.wait()))?;
    let _deleted = give_up(arrays)?;
    let others = fixture.write_all(second, &of_second)?;
    busy.finish()?;
    // What was in the queue of the first operations has ended when this has.
    fixture.write(first, &of_first[0])?.ready()?.wait()?;
    for (other, source) in others.iter().zip(&of_second) {
        if let Some(differences) = fixture.differences_of(other, source.number)? {
            let (first, second) = (first.name(), second.name());
            return Ok(Some(format!(
                "an array of {second}, called right after {first} of another array and its deletion, has {differences}"
            )));
        }
    }
    Ok(None)
}

/// The events that a host waits for before it reads the outputs of an execution, and whether it reads the last output first.
const WAITS: [(&str, Wait, bool); 4] = [
    ("the event of the device", Wait::Device, true),
    ("the event of the first output", Wait::FirstOutput, true),
    ("the event of the device", Wait::Device, false),
    ("the event of the last output", Wait::LastOutput, false),
];

#[derive(Clone, Copy)]
enum Wait {
    Device,
    FirstOutput,
    LastOutput,
}

/// Waits until the callback of an event begins. The callback lasts a while, in which the thread that calls it does nothing else:
/// work that comes after the event is not done yet.
fn begins(event: &Event) -> Verdict {
    const LASTS: Duration = Duration::from_millis(10);
    let (begin, begins) = mpsc::channel();
    event.on_ready_then(move || {
        // The receiver is gone if the check has given up.
        let _ = begin.send(());
        std::thread::sleep(LASTS);
    })?;
    ensure!(
        begins.recv_timeout(patience()).is_ok(),
        "the callback of an event of an execution is not called after {:?}",
        patience()
    );
    Ok(())
}

fn outputs_of_events(context: &Context) -> Verdict {
    const OUTPUTS: usize = 8;
    const MOST: i64 = 1 << 16;
    let client = context.client()?;
    let len = fitting(&client, 32, 1 << 8, MOST)?;
    let dims = [len as i64];
    let ty = format!("{len}xf32");
    let text = sums(&[ty.as_str(); OUTPUTS], &[("%p0", "%p1", ty.as_str()); OUTPUTS]);
    let program = compiled(&client, &text, &CompileOptions::default())?;
    for (round, (of, wait, is_last_first)) in WAITS.into_iter().enumerate() {
        // The values differ in each round: the memory of an earlier output has other ones.
        let value = (round + 1) as f32;
        let bytes = f32_bytes(&vec![value; len]);
        let array = HostArray::new(&bytes, ElementType::F32, &dims);
        let argument = client.upload(&array, Some(client.device()?), None)?.buffer;
        let launched = program_text::launch(&program, &[&argument; OUTPUTS], 976)?;
        let outputs = launched.outputs_of(0, OUTPUTS)?;
        match wait {
            Wait::Device => begins(&launched.done[0])?,
            Wait::FirstOutput => begins(&outputs[0].ready()?)?,
            Wait::LastOutput => begins(&outputs[OUTPUTS - 1].ready()?)?,
        }
        let expected = f32_bytes(&vec![2.0 * value; len]);
        let mut order: Vec<usize> = (0..OUTPUTS).collect();
        if is_last_first {
            order.reverse();
        }
        for at in order {
            let what = format!("output {at} of {OUTPUTS}, read when {of} is complete");
            Expected::floats(&what, &expected).check_array(&outputs[at])?;
        }
    }
    Ok(())
}
