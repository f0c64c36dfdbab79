//! Checks of functions that several threads call at once: each thread has objects and values of its own.

use std::sync::{Barrier, Mutex, PoisonError};

use super::devices::id_of;
use super::program_text::{compiled, launch, sums};
use super::threads::on_threads;
use crate::conform::harness::{
    Check, Context, Finding, Source, Users, Verdict, ensure, equal, f32_bytes, numbers, patience, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Event, HostArray, Layout, LoadedExecutable, Program,
};

/// A thread and the number of its round, from which its values are made.
#[derive(Clone, Copy)]
struct Turn {
    thread: u8,
    round: u8,
}

impl Turn {
    /// Returns four numbers that no other turn has.
    fn values(self) -> [f32; 4] {
        let first = 1000.0 * (1.0 + f32::from(self.thread)) + 10.0 * f32::from(self.round);
        [first, first + 1.0, first + 2.0, first + 3.0]
    }

    fn all() -> impl Iterator<Item = Self> {
        (0..THREADS).flat_map(|thread| (0..ROUNDS).map(move |round| Self { thread, round }))
    }

    /// Returns the turn that numbers belong to, if they are those of one.
    fn of(values: &[f32]) -> Option<Self> {
        Self::all().find(|turn| turn.values()[..] == *values)
    }

    /// Uploads the numbers of this turn. Only one thread at once does so, because most work is about another function.
    fn upload(self, client: &Client) -> Result<Buffer, Finding> {
        alone(|| {
            let array = upload_four(client, &self.values())?;
            array.ready()?.wait()?;
            Ok(array)
        })
    }

    /// Fails unless an array has the numbers of this turn. Only one thread at once reads.
    fn has(self, what: &str, array: &Buffer) -> Verdict {
        self.is(what, &alone(|| numbers(array))?)
    }

    fn is(self, what: &str, got: &[f32]) -> Verdict {
        let cause = match Self::of(got) {
            Some(other) if other.thread != self.thread => "; these are the numbers of another thread",
            Some(_) => "; these are the numbers of another call",
            None => "",
        };
        ensure!(got == self.values(), "{what} is {got:?}; expected {:?}{cause}", self.values());
        Ok(())
    }
}

const THREADS: u8 = 6;
const ROUNDS: u8 = 8;

/// What the threads share.
struct Shared<'c> {
    context: &'c Context,
    client: Client,
    /// A program that adds two arrays, unless none can be compiled.
    adds: Option<LoadedExecutable>,
}

/// Work that several threads do at once.
struct Work {
    name: &'static str,
    /// The function that the work is about.
    function: &'static str,
    what: &'static str,
    run: fn(&Shared<'_>, Turn) -> Verdict,
    /// The misbehavior of the function while another thread is in it.
    fault: &'static str,
}

const fn work(
    name: &'static str,
    function: &'static str,
    what: &'static str,
    run: fn(&Shared<'_>, Turn) -> Verdict,
    fault: &'static str,
) -> Work {
    Work { name, function, what, run, fault }
}

const WORKS: &[Work] = &[
    work(
        "arguments",
        "PJRT_LoadedExecutable_Execute",
        "execute one program with arguments of their own",
        arguments,
        "mixed argument_lists",
    ),
    work("copies", "PJRT_Buffer_CopyToMemory", "copy arrays", copies, "mixed buffer"),
    work(
        "large_uploads",
        "PJRT_Client_BufferFromHostBuffer",
        "upload arrays of 4, 64 and 256 KiB, and read them",
        large_uploads,
        "give data=zeros",
    ),
    work(
        "large_readbacks",
        "PJRT_Buffer_ToHostBuffer",
        "read arrays of 4, 64 and 256 KiB",
        large_readbacks,
        "mixed src",
    ),
    work("raw_copies", "PJRT_Buffer_CopyRawToHost", "read parts of arrays", raw_copies, "mixed buffer"),
    work(
        "transfers",
        "PJRT_AsyncHostToDeviceTransferManager_TransferData",
        "fill arrays of transfer managers",
        transfers,
        "mixed transfer_manager",
    ),
    work(
        "readbacks_in_other_orders",
        "PJRT_Buffer_ToHostBuffer",
        "read arrays of other dimensions in another order",
        readbacks,
        "mixed host_layout",
    ),
    work("events", "PJRT_Event_Set", "complete events", events, "mixed event"),
    work("errors", "PJRT_Client_LookupDevice", "make calls that fail", errors, "mixed id"),
    work(
        "descriptions_of_arrays",
        "PJRT_Buffer_Dimensions",
        "ask for the dimensions of arrays",
        arrays,
        "set num_dims=1",
    ),
    work(
        "descriptions_of_programs",
        "PJRT_Executable_OutputDimensions",
        "ask for the outputs of new programs",
        programs,
        "set num_outputs=0",
    ),
    work(
        "serialized_programs",
        "PJRT_Executable_DeserializeAndLoad",
        "serialize and load programs",
        serialized,
        "fail INTERNAL",
    ),
    work(
        "donations",
        "PJRT_LoadedExecutable_Execute",
        "execute programs that donate arrays",
        donations,
        "zeroed_output 0",
    ),
    work("clients", "PJRT_Client_Create", "create and destroy clients", clients, "fail RESOURCE_EXHAUSTED"),
];

/// Returns a check for each work.
pub(super) fn by_work() -> Vec<Check> {
    let check = |work: &'static Work| Check {
        name: format!("threads/{}", work.name),
        rule: format!("Several threads can {} at the same time, and each gets its own results.", work.what)
            .into(),
        source: Source::Host {
            place: "JAX, jaxlib/py_client.cc and jaxlib/pjit.cc",
            text: "Releases Python's lock during calls of the plugin, so that threads of one process call each function at the same time.",
        },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        users: Users::These(&Profile::ALL),
        needed_since: 0,
        fault: format!("{} at_once {}", work.function, work.fault).into(),
        also: also(work.name),
        run: Box::new(move |context| at_once(context, work)),
    };
    WORKS.iter().map(check).collect()
}

/// Returns the other checks that call the function on several threads.
fn also(name: &str) -> &'static [&'static str] {
    match name {
        "arguments" | "donations" => &[
            "threads/arguments",
            "threads/donations",
            "threads/serialized_programs",
            "execute/by_many_threads",
        ],
        _ => &[],
    }
}

/// Runs work on one thread, and then on several at once.
fn at_once(context: &Context, work: &Work) -> Verdict {
    let client = context.client()?;
    let adds =
        compiled(&client, &sums(&["4xf32"; 2], &[("%p0", "%p1", "4xf32")]), &CompileOptions::default());
    let shared = Shared { context, client, adds: adds.ok() };
    let once = || (work.run)(&shared, Turn { thread: 0, round: 0 });
    once().map_err(|finding| not_of_threads(finding, "one thread"))?;
    on_threads(1, |_| once())
        .map_err(|finding| not_of_threads(finding, "one thread that did not create the client"))?;
    let start = Barrier::new(usize::from(THREADS));
    on_threads(THREADS, |thread| {
        let mut outcome = Ok(());
        for round in 0..ROUNDS {
            // A thread that failed still takes part, because the others wait for it.
            start.wait();
            outcome = outcome.and_then(|()| (work.run)(&shared, Turn { thread, round }));
        }
        outcome
    })
    .map_err(|finding| {
        let why = match finding {
            Finding::Wrong(why) | Finding::Unsupported(why) | Finding::NotApplicable(why) | Finding::Advice(why) => why,
        };
        let is_name = |part: &&str| {
            part.starts_with("PJRT_") && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let function = why.split(": ").find(is_name).unwrap_or(work.function);
        Finding::Wrong(format!(
            "{THREADS} threads {} at once, and one gets a wrong result: {why}. The same work on one thread is right: \
             {function} probably keeps what belongs to one call, such as its arguments, in memory that all threads share",
            work.what
        ))
    })
}

/// Returns what the failure of work without other threads means: another check is about it.
fn not_of_threads(finding: Finding, on: &str) -> Finding {
    match finding {
        Finding::Wrong(why) => Finding::NotApplicable(format!("it is wrong on {on} too: {why}")),
        other => other,
    }
}

fn arguments(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let Some(program) = &shared.adds else {
        return Err(Finding::Unsupported("the program cannot be compiled".to_owned()));
    };
    let (x, y) = (turn.upload(&shared.client)?, turn.upload(&shared.client)?);
    let launched = launch(program, &[&x, &y], 0)?;
    let got = alone(|| numbers(launched.output(0, 0)?))?;
    let halves: Vec<f32> = got.iter().map(|sum| sum / 2.0).collect();
    turn.is("half of the sum of two equal arguments", &halves)
}

fn copies(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let array = turn.upload(&shared.client)?;
    let copy = array.copy_to_memory(shared.client.device()?.default_memory()?)?;
    turn.has("a copy of an array", &copy)
}

/// The numbers of elements of arrays that plugins transfer through memory that they keep.
const LARGE: [usize; 3] = [1 << 10, 1 << 14, 1 << 16];

/// Uploads a large array of equal numbers, which no other turn has.
fn upload_large(shared: &Shared<'_>, value: f32, len: usize) -> Result<Buffer, Finding> {
    let bytes = value.to_le_bytes().repeat(len);
    let dims = [len as i64];
    let array = HostArray::new(&bytes, ElementType::F32, &dims);
    Ok(shared.client.upload(&array, Some(shared.client.device()?), None)?.buffer)
}

/// Fails unless all numbers of a large array have this value.
fn has_value(what: &str, array: &Buffer, value: f32) -> Verdict {
    let got = array.read()?;
    let wrong = got.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).find(|got| *got != value);
    let Some(wrong) = wrong else { return Ok(()) };
    let cause = match Turn::all().any(|other| other.values()[0] == wrong) {
        true => "; this is a number of another thread or call",
        false => "",
    };
    Err(Finding::Wrong(format!("{what} has the element {wrong}; expected {value}{cause}")))
}

/// Held by the calls that only one thread makes at once.
static ALONE: Mutex<()> = Mutex::new(());

fn alone<T>(call: impl FnOnce() -> T) -> T {
    let _held = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    call()
}

/// Uploads large arrays on all threads at once. Only one thread at once reads.
fn large_uploads(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let [value, ..] = turn.values();
    LARGE.iter().try_for_each(|len| {
        let array = upload_large(shared, value, *len)?;
        alone(|| has_value("an array that was uploaded while other threads upload", &array, value))
    })
}

/// Reads large arrays on all threads at once. Only one thread at once uploads.
fn large_readbacks(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let [value, ..] = turn.values();
    LARGE.iter().try_for_each(|len| {
        let array = alone(|| upload_large(shared, value, *len))?;
        array.ready()?.wait()?;
        (0..4).try_for_each(|_| has_value("an array that was read while other threads read", &array, value))
    })
}

fn raw_copies(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let array = turn.upload(&shared.client)?;
    let got = array.read_raw(0, 16)??;
    let got: Vec<f32> = got.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    turn.is("a raw copy", &got)
}

fn transfers(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let shapes = [(ElementType::F32, vec![4])];
    let manager = shared.client.transfer_manager(&shapes, shared.client.device()?.default_memory()?)?;
    let array = manager.retrieve(0)?;
    let bytes = f32_bytes(&turn.values());
    manager.write(0, &bytes[8..], 8, false)?.wait()?;
    manager.write(0, &bytes[..8], 0, true)?.wait()?;
    let outcome = array.ready()?.on_ready()?.wait(patience());
    ensure!(outcome.is_some(), "an array of a transfer manager is not ready after its last piece");
    turn.has("an array of a transfer manager", &array)
}

fn readbacks(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let bytes = f32_bytes(&turn.values());
    let array = HostArray::new(&bytes, ElementType::F32, &[2, 2]);
    let array = alone(|| {
        let array = shared.client.upload(&array, Some(shared.client.device()?), None)?.buffer;
        array.ready()?.wait()?;
        Ok::<_, Finding>(array)
    })?;
    let is_column_major = turn.thread.is_multiple_of(2);
    let order = if is_column_major { vec![0, 1] } else { vec![1, 0] };
    let got = array.read_into(16, &CopyLayout::Layout(Layout::MinorToMajor(order)))?;
    let mut got: Vec<f32> = got.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    if is_column_major {
        got.swap(1, 2);
    }
    turn.is("an array that was read in the order that its thread passed", &got)
}

fn events(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let event = Event::create(shared.context.plugin)?;
    let outcome = event.on_ready()?;
    let message = format!("the error of thread {} in round {}", turn.thread, turn.round);
    event.set(Code::ABORTED, &message)?;
    for (how, got) in [("a callback", outcome.wait(patience())), ("PJRT_Event_Error", Some(event.error()))] {
        let got = got.and_then(Result::err);
        ensure!(
            got.as_ref().is_some_and(|got| got.message.contains(&message)),
            "{how} of an event that failed with {message:?} receives {}",
            got.map_or_else(|| "no error".to_owned(), |error| format!("{:?}", error.message))
        );
    }
    Ok(())
}

fn errors(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let id = 10_000 + 100 * i32::from(turn.thread) + i32::from(turn.round);
    let Some(error) = shared.client.lookup_device(id).err() else {
        return Err(Finding::NotApplicable("a device with an unknown id is found".to_owned()));
    };
    let other = (0..THREADS)
        .filter(|thread| *thread != turn.thread)
        .flat_map(|thread| (0..ROUNDS).map(move |round| 10_000 + 100 * i32::from(thread) + i32::from(round)))
        .find(|other| error.message.contains(&other.to_string()));
    ensure!(
        other.is_none(),
        "the error of a lookup of the id {id} is {:?}, which is about another id",
        error.message
    );
    Ok(())
}

fn arrays(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let dims = [2 + i64::from(turn.thread), 3, 1 + i64::from(turn.round)];
    let bytes = vec![0; 4 * dims.iter().product::<i64>() as usize];
    let array = HostArray::new(&bytes, ElementType::F32, &dims);
    let array = shared.client.upload(&array, Some(shared.client.device()?), None)?.buffer;
    equal("the dimensions of an array", array.dims()?, dims.to_vec())?;
    equal("the type of the array", array.element_type()?, ElementType::F32)?;
    ensure!(array.on_device_size()? >= bytes.len(), "the size of the array is {}", array.on_device_size()?);
    Ok(())
}

fn programs(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let dims = vec![2 + i64::from(turn.thread), 2 + i64::from(turn.round)];
    let ty = format!("{}x{}xf32", dims[0], dims[1]);
    let program =
        compiled(&shared.client, &sums(&[&ty], &[("%p0", "%p0", &ty)]), &CompileOptions::default())?;
    let program = program.executable()?;
    equal("the dimensions of the outputs of a program", program.output_dims()?, vec![dims])?;
    equal("the types of its outputs", program.output_types()?, vec![ElementType::F32])
}

fn serialized(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let Some(program) = &shared.adds else {
        return Err(Finding::Unsupported("the program cannot be compiled".to_owned()));
    };
    let loaded = shared.client.deserialize(&program.executable()?.serialize()?.bytes)?;
    let (x, zeros) = (turn.upload(&shared.client)?, alone(|| upload_four(&shared.client, &[0.0; 4]))?);
    turn.has("the result of a program that was loaded", launch(&loaded, &[&x, &zeros], 0)?.output(0, 0)?)
}

fn donations(shared: &Shared<'_>, turn: Turn) -> Verdict {
    let text = crate::conform::harness::add_program("4x");
    let argument = "%x: tensor<4xf32>";
    let text = text.replacen(argument, &format!("{argument} {{tf.aliasing_output = 0 : i32}}"), 1);
    let program = match shared.client.compile(&Program::mlir(&text), &CompileOptions::default().encode()) {
        Ok(program) => program,
        Err(error) => return Err(Finding::Unsupported(error.to_string())),
    };
    let zeros = alone(|| upload_four(&shared.client, &[0.0; 4]))?;
    let mut array = turn.upload(&shared.client)?;
    for _ in 0..3 {
        array = launch(&program, &[&array, &zeros], 0)?.take_output()?;
    }
    turn.has("an array after three programs that donate it", &array)
}

fn clients(shared: &Shared<'_>, turn: Turn) -> Verdict {
    if turn.round >= 2 {
        return Ok(());
    }
    let client = shared.context.client().map_err(|error| match turn.thread {
        0 => Finding::NotApplicable(format!("there can be only one client: {error}")),
        _ => error.into(),
    })?;
    let ids = |client: &Client| client.devices()?.into_iter().map(id_of).collect::<Result<Vec<_>, _>>();
    equal("the ids of the devices of a client", ids(&client)?, ids(&shared.client)?)?;
    turn.has("an array of the client", &turn.upload(&client)?)
}
