//! The checks that repeated work does not make the process larger, and opens no more files.

use std::time::{Duration, Instant};

use super::entry::{ALL, Entry, check};
use super::program_text::{compiled, launch, sums};
use crate::conform::harness::{Context, Finding, RESIDENT, Verdict, f32_bytes, performing};
use crate::process::usage::{open_files, resident_bytes};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Error, Event, HostArray, Layout, LoadedExecutable, Plugin,
    Program,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        RESIDENT,
        "The process does not grow without bound if transfers, executions, compilations and failing calls are repeated.",
        |context| keeps(context, &MEMORY),
        "PJRT_Buffer_ToHostBuffer leak_memory",
    )
    .header(FREES, FREES_TEXT)
    .used_by(ALL),
    check(
        "repeats/no_work_opens_more_files",
        "The number of open files does not grow without bound if transfers, executions and compilations are repeated.",
        |context| keeps(context, &FILES),
        "PJRT_LoadedExecutable_Execute leak_file",
    )
    .header(FREES, FREES_TEXT)
    .used_by(ALL),
];

const FREES: &str = "PJRT_Buffer_Destroy and the other functions that destroy";
const FREES_TEXT: &str = "Frees the object.";

/// The number of elements of the arrays.
const LEN: usize = 4096;

/// The number of elements of a large array, of 1 MiB.
const LARGE: usize = 1 << 18;

/// The least number of rounds of a part.
const ROUNDS: u32 = 40;

/// The number of measured parts.
const PARTS: usize = 4;

/// The maximum time for [`ROUNDS`], for compilers that take long.
const MOST: Duration = Duration::from_secs(1);

/// Resources of a process, of which it holds more if the plugin leaks them.
struct Held {
    /// The least duration of each part in which the process is measured, and of the one before, in which caches fill up.
    part: Duration,
    measure: fn() -> Result<i64, String>,
    /// The least growth in each part of this many rounds that is a leak.
    least: fn(u32) -> i64,
    unit: &'static str,
    /// The action that the plugin probably omits.
    omitted: &'static str,
}

const MEMORY: Held = Held {
    part: Duration::from_millis(15),
    measure: resident_bytes,
    // Allocators and thread pools cause less.
    least: |_| 384 << 10,
    unit: "bytes of memory",
    omitted: "free memory of the host that it uses in this work",
};

const FILES: Held = Held {
    part: Duration::ZERO,
    measure: open_files,
    // Thread pools and caches open a few.
    least: |rounds| i64::from(rounds.div_ceil(4)).max(2),
    unit: "open files",
    omitted: "close a file that it opens in this work, such as one of an event, of shared memory or of the device",
};

/// The objects that the work uses.
struct Host {
    plugin: Plugin,
    client: Client,
    bytes: Vec<u8>,
    large: Vec<u8>,
    text: String,
    /// The program, and an argument of it, unless none can be compiled.
    program: Option<(LoadedExecutable, Buffer)>,
}

impl Host {
    fn new(context: &Context) -> Result<Self, Finding> {
        let (client, bytes, ty) = (context.client()?, f32_bytes(&[1.5; LEN]), format!("{LEN}xf32"));
        let text = sums(&[&ty, &ty], &[("%p0", "%p1", &ty)]);
        let (plugin, large) = (context.plugin, f32_bytes(&vec![1.5; LARGE]));
        let mut host = Self { plugin, client, bytes, large, text, program: None };
        let program = compiled(&host.client, &host.text, &CompileOptions::default());
        host.program = program.ok().map(|program| host.upload().map(|array| (program, array))).transpose()?;
        Ok(host)
    }

    fn upload(&self) -> Result<Buffer, Error> {
        let array = HostArray::new(&self.bytes, ElementType::F32, &[LEN as i64]);
        let uploaded = self.client.upload(&array, Some(self.client.device()?), None)?;
        uploaded.done.wait()?;
        uploaded.memory.recycle();
        Ok(uploaded.buffer)
    }

    /// Uploads an array of a size for which plugins may allocate memory in another way, and destroys it.
    fn upload_large(&self) -> Result<(), Error> {
        let array = HostArray::new(&self.large, ElementType::F32, &[LARGE as i64]);
        let uploaded = self.client.upload(&array, Some(self.client.device()?), None)?;
        uploaded.done.wait()?;
        uploaded.buffer.ready()?.wait()?;
        uploaded.memory.recycle();
        Ok(())
    }

    /// Reads an array, and recycles the host's memory.
    fn read(&self, array: &Buffer, layout: &CopyLayout) -> Verdict {
        let (memory, event) = array.start_read(self.bytes.len(), layout)?;
        event.wait()?;
        memory.recycle();
        Ok(())
    }

    fn program(&self) -> Result<(&LoadedExecutable, &Buffer), Finding> {
        let (program, array) = self
            .program
            .as_ref()
            .ok_or_else(|| Finding::Unsupported("the program cannot be compiled".to_owned()))?;
        Ok((program, array))
    }
}

/// Work that leaves nothing behind: its name, and a round of it.
type Work = (&'static str, fn(&Host) -> Verdict);

const WORK: &[Work] = &[
    ("an upload and a readback", |host| host.read(&host.upload()?, &CopyLayout::Unsaid)),
    ("an upload of 1 MiB", |host| match host.upload_large() {
        Err(error) if error.code == Code::RESOURCE_EXHAUSTED => Err(Finding::Unsupported(error.to_string())),
        outcome => Ok(outcome?),
    }),
    ("an event of the host", |host| {
        const EVENTS: usize = 200;
        for _ in 0..EVENTS {
            let event = Event::create(host.plugin)?;
            event.set(Code::OK, "")?;
        }
        Ok(())
    }),
    ("an upload and a readback with a layout", |host| {
        host.read(&host.upload()?, &CopyLayout::Layout(Layout::dense(1)))
    }),
    ("an upload and PJRT_Buffer_Delete while an event of PJRT_Buffer_ReadyEvent exists", |host| {
        let array = host.upload()?;
        let ready = array.ready()?;
        ready.wait()?;
        array.delete()?;
        drop(ready);
        Ok(())
    }),
    ("a copy to a memory", |host| {
        let (_, array) = host.program()?;
        Ok(array.copy_to_memory(host.client.device()?.default_memory()?)?.ready()?.wait()?)
    }),
    ("an execution", |host| {
        let (program, array) = host.program()?;
        let launched = launch(program, &[array, array], 0)?;
        launched.done[0].wait()?;
        host.read(launched.output(0, 0)?, &CopyLayout::Unsaid)
    }),
    ("an execution that is refused because of too few arguments", |host| {
        let (program, array) = host.program()?;
        drop(launch(program, &[array], 0));
        Ok(())
    }),
    ("a compilation", |host| compiled(&host.client, &host.text, &CompileOptions::default()).map(drop)),
    ("a compilation that is refused because of the text", |host| {
        drop(host.client.compile(&Program::mlir("module {"), &[]));
        Ok(())
    }),
];

/// Performs rounds of the work for a while. Returns their number, and by how much the process grew.
fn part(host: &Host, work: Work, held: &Held) -> Result<(u32, i64), Finding> {
    let measure = || (held.measure)().map_err(Finding::NotApplicable);
    let (before, start) = (measure()?, Instant::now());
    let mut rounds = 0;
    while start.elapsed() < if rounds < ROUNDS { MOST } else { held.part } {
        (work.1)(host)?;
        rounds += 1;
    }
    Ok((rounds, measure()? - before))
}

/// Returns the number of rounds of the work, and by how much these make the process grow, if there is no end of it.
fn growth(host: &Host, work: Work, held: &Held) -> Result<Option<(u32, i64)>, Finding> {
    part(host, work, held)?;
    let (mut rounds, mut growth) = (0, 0);
    // A cache, or an allocator, grows in some of the parts only.
    for _ in 0..PARTS {
        let (more, grown) = part(host, work, held)?;
        if grown < (held.least)(more) {
            return Ok(None);
        }
        (rounds, growth) = (rounds + more, growth + grown);
    }
    Ok(Some((rounds, growth)))
}

fn keeps(context: &Context, held: &Held) -> Verdict {
    let host = Host::new(context)?;
    let Held { unit, omitted, .. } = held;
    for work in WORK {
        match performing(work.0.to_owned(), || growth(&host, *work, held)) {
            Ok(Some((rounds, growth))) => {
                return Err(Finding::Wrong(format!(
                    "{rounds} repetitions of {} leave {growth} {unit} behind, in each part of them as many; the plugin probably \
                     does not {omitted}",
                    work.0
                )));
            }
            Ok(None) | Err(Finding::Unsupported(_)) => {}
            Err(finding) => return Err(finding),
        }
    }
    Ok(())
}
