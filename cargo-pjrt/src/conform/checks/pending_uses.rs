//! Checks of objects that the host gives up while work that uses them waits for data.

use super::arrays::launch as launch_sum;
use super::devices::others;
use super::entry::{ALL, Entry, check};
use super::pending::Pending;
use crate::conform::harness::{
    Context, Finding, Verdict, compile_add, ensure, equal, f32_bytes, numbers, patience, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Event, HostArray, HostMemory, Semantics, ViewMemory,
    eventually,
};

const DELETE: &str = "PJRT_Buffer_Delete";
const DELETE_TEXT: &str =
    "The device memory will be freed when all async operations using the buffer have completed.";
const VIEW: &str = "PJRT_Client_CreateViewOfDeviceBuffer_Args::on_delete_callback";
const VIEW_TEXT: &str = "A callback to be performed when the PJRT_Buffer is done with the on-device buffer. An execution that waits still uses it.";

pub(super) const CHECKS: &[Entry] = &[
    check(
        "pending/arguments",
        "An execution that waits for one argument keeps the memory of the other, even if the host deletes or destroys the arrays, the program and its own copies of the data.",
        |context| each(context, Kind::ALL, given_up),
        "PJRT_LoadedExecutable_Execute when options>launch_id=711 zeroed_output 0",
    )
    .header(DELETE, DELETE_TEXT)
    .used_by(ALL),
    check(
        "pending/many_executions",
        "Each of 24 executions of one program that the host launches before the data of an argument is there has its outputs.",
        many,
        "PJRT_LoadedExecutable_Execute when options>launch_id=712 call 20 zeroed_output 0",
    )
    .host("JAX, a training loop", "Launches steps without waiting for their results.")
    .used_by(ALL),
    check(
        "pending/views",
        "The callback of a view that the host deleted or destroyed comes after an execution that waits has read the view, and not before.",
        |context| each(context, &[Kind::View], given_up),
        "PJRT_Client_CreateViewOfDeviceBuffer when num_dims=1 dims.0=4 give on_delete_callback=null",
    )
    .header(VIEW, VIEW_TEXT)
    .used_by(&[Profile::Jax]),
    check(
        "pending/sources",
        "A copy or a readback of an array whose data comes later is complete although the host deleted or destroyed the array before.",
        sources,
        "PJRT_Buffer_ToHostBuffer unwaited",
    )
    .header(DELETE, DELETE_TEXT)
    .used_by(ALL)
    .also(&["upload/of_each_rank", "upload/sizes_around_pages", "execute/adds"]),
    check(
        "pending/events",
        "The event of an array whose data comes later completes with the data, and not when the host deletes or destroys the array.",
        events,
        "PJRT_Buffer_ReadyEvent set event=complete",
    )
    .header("PJRT_Buffer_ReadyEvent", "Returns an event that is triggered when the data in the PJRT_Buffer becomes ready, or an error has occurred.")
    .also(&["event/wait_for_data", "pending/*"]),
    check(
        "pending/fulfilled_with_a_pending_array",
        "An alias that the host fulfills with an array whose data comes later receives this data, although the host deleted or destroyed the array after the call.",
        chained,
        "PJRT_Client_FulfillAliasBuffer call 2 skip",
    )
    .header("PJRT_Client_FulfillAliasBuffer_Args::buffer", "The alias becomes the array, with its data or its error, once that is there."),
    check(
        "pending/transfer_managers",
        "An array of a transfer manager receives its data although the host destroyed the manager after it had passed the last piece, and an execution or a copy that waited for the array is complete.",
        managers,
        "PJRT_AsyncHostToDeviceTransferManager_TransferData give is_last_transfer=0",
    )
    .header("PJRT_AsyncHostToDeviceTransferManager_Destroy", "Frees the manager. Its arrays are objects of their own.")
    .since(62),
];

/// The origin of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Uploaded,
    ZeroCopy,
    MutableZeroCopy,
    View,
    Output,
    Copy,
}

impl Kind {
    const ALL: &'static [Self] =
        &[Self::Uploaded, Self::ZeroCopy, Self::MutableZeroCopy, Self::Output, Self::Copy];

    fn name(self) -> &'static str {
        match self {
            Self::Uploaded => "an uploaded array",
            Self::ZeroCopy => "an array of kImmutableZeroCopy",
            Self::MutableZeroCopy => "an array of kMutableZeroCopy",
            Self::View => "a view",
            Self::Output => "an output",
            Self::Copy => "a copy",
        }
    }
}

/// The way in which the host gives up an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Delete,
    Destroy,
    DeleteAndDestroy,
}

impl End {
    const ALL: [Self; 3] = [Self::Delete, Self::Destroy, Self::DeleteAndDestroy];

    fn name(self) -> &'static str {
        match self {
            Self::Delete => "deleted",
            Self::Destroy => "destroyed",
            Self::DeleteAndDestroy => "deleted and destroyed",
        }
    }

    /// Gives up an array, and returns it if it is not destroyed.
    fn of(self, array: Buffer) -> Result<Option<Buffer>, Finding> {
        if self != Self::Destroy {
            array.delete()?;
        }
        Ok(Some(array).filter(|_| self == Self::Delete))
    }
}

/// An array, and the host's memory that it may use.
struct Held {
    array: Buffer,
    lent: Option<(HostMemory, Event)>,
    view: Option<ViewMemory>,
}

const NUMBERS: [f32; 4] = [1.5, 20.0, -3.0, 400.0];
const LATER: [f32; 4] = [0.25, 0.5, 1.0, 2.0];

/// Creates an array with [`NUMBERS`].
fn array(client: &Client, kind: Kind) -> Result<Held, Finding> {
    let of = |array| Held { array, lent: None, view: None };
    let bytes = f32_bytes(&NUMBERS);
    let lent = |semantics| {
        let host = HostArray { semantics, ..HostArray::new(&bytes, ElementType::F32, &[4]) };
        let uploaded = client.upload(&host, Some(client.device()?), None)?;
        Ok(Held { array: uploaded.buffer, lent: Some((uploaded.memory, uploaded.done)), view: None })
    };
    match kind {
        Kind::Uploaded => Ok(of(upload_four(client, &NUMBERS)?)),
        Kind::ZeroCopy => lent(Semantics::ImmutableZeroCopy),
        Kind::MutableZeroCopy => lent(Semantics::MutableZeroCopy),
        Kind::View => {
            let memory = ViewMemory::new(&bytes);
            let array = client.view(&memory, ElementType::F32, &[4], client.device()?)?;
            Ok(Held { array, lent: None, view: Some(memory) })
        }
        Kind::Output => {
            let zeros = upload_four(client, &[0.0; 4])?;
            let x = upload_four(client, &NUMBERS)?;
            Ok(of(launch_sum(&compile_add(client)?, [&x, &zeros], 0)?))
        }
        Kind::Copy => {
            Ok(of(upload_four(client, &NUMBERS)?.copy_to_memory(client.device()?.default_memory()?)?))
        }
    }
}

/// Runs a check with each kind of array and each way to give it up.
fn each(context: &Context, kinds: &[Kind], work: impl Fn(&Client, Kind, End) -> Verdict) -> Verdict {
    let client = context.client()?;
    let mut lacking = None;
    let mut checked = 0;
    for kind in kinds {
        for end in End::ALL {
            match work(&client, *kind, end) {
                Err(Finding::Unsupported(why)) => lacking = Some(why),
                outcome => {
                    outcome?;
                    checked += 1;
                }
            }
        }
    }
    match lacking {
        Some(why) if checked == 0 => Err(Finding::Unsupported(why)),
        _ => Ok(()),
    }
}

/// Fills memory that has become free.
fn use_memory(client: &Client) -> Result<Vec<Buffer>, Finding> {
    Ok((0..16).map(|_| upload_four(client, &[-77.0; 4])).collect::<Result<Vec<_>, _>>()?)
}

/// Fails unless an event is complete soon.
fn completes(event: &Event, what: &str) -> Verdict {
    match event.on_ready()?.wait(patience()) {
        Some(outcome) => {
            outcome.map_err(|error| Finding::Wrong(format!("{what} failed: {error}; expected success")))
        }
        None => Err(Finding::Wrong(format!(
            "{what} is not complete {limit:?} after the data was provided",
            limit = patience()
        ))),
    }
}

/// The number of executions that wait at the same time. XLA's CPU client lets 32 wait for each device, and then waits itself.
const MANY: usize = 24;

fn many(context: &Context) -> Verdict {
    let client = context.client()?;
    let pending = Pending::new(&client)?;
    let program = compile_add(&client)?;
    let mut outputs = Vec::new();
    for count in 0..MANY {
        let other = upload_four(&client, &[count as f32; 4])?;
        outputs.push(launch_sum(&program, [&pending.array, &other], 712)?);
    }
    let _array = pending.provide(&client, &LATER)?;
    for (count, output) in outputs.iter().enumerate() {
        completes(
            &output.ready()?,
            &format!("the output of execution {count} of {MANY} that waited for one argument"),
        )?;
        let (got, expected) = (numbers(output)?, LATER.map(|value| value + count as f32));
        ensure!(
            got == expected,
            "the output of execution {count} of {MANY} that waited for one argument is {got:?}; expected {expected:?}. The plugin \
             probably drops or mixes up executions if many wait"
        );
    }
    Ok(())
}

fn given_up(client: &Client, kind: Kind, end: End) -> Verdict {
    let Held { array, lent, view } = array(client, kind)?;
    if let Some(view) = &view {
        equal("the number of calls of the callback of a view that exists", view.deleted(), 0)?;
    }
    let pending = Pending::new(client)?;
    let program = compile_add(client)?;
    let mut launched = program
        .launch(
            &[vec![&pending.array, &array]],
            &pjrt_testing::host::ExecuteOptions { launch_id: 711, ..Default::default() },
            None,
            true,
        )
        .map_err(|refused| refused.error)?;
    let (given, name) = (end.of(array)?, kind.name());
    program.delete().or_else(|error| if error.code == Code::UNIMPLEMENTED { Ok(()) } else { Err(error) })?;
    drop(program);
    let what = format!(
        "{name} that was {} while an execution that uses it waited for its other argument",
        end.name()
    );
    let cause = "the plugin probably releases the memory in PJRT_Buffer_Delete or PJRT_Buffer_Destroy, without regard to executions \
                 that wait";
    if let Some(view) = &view {
        // A plugin that releases the memory on another thread needs some time.
        std::thread::sleep(std::time::Duration::from_millis(2));
        ensure!(
            view.deleted() == 0,
            "on_delete_callback of {what} was called before the execution began: {cause}"
        );
    }
    if let Some((memory, done)) = &lent
        && done.is_ready()?
    {
        memory.overwrite();
    }
    let _others = use_memory(client)?;
    let _array = pending.provide(client, &LATER)?;
    completes(&launched.done[0], "the event of an execution whose argument was given up")?;
    let output = launched.take_output()?;
    let expected: Vec<f32> = NUMBERS.iter().zip(LATER).map(|(x, y)| x + y).collect();
    let got = numbers(&output)?;
    ensure!(got == expected, "the sum of {what} is {got:?}; expected {expected:?}: {cause}");
    if let Some(view) = &view {
        drop((output, given));
        let is_released = eventually(patience(), || view.deleted() > 0);
        ensure!(
            is_released,
            "on_delete_callback of {what} was not called {limit:?} after the execution ended",
            limit = patience()
        );
        equal(&format!("the number of calls of on_delete_callback of {what}"), view.deleted(), 1)?;
    }
    Ok(())
}

fn sources(context: &Context) -> Verdict {
    let client = context.client()?;
    for end in End::ALL {
        let pending = Pending::new(&client)?;
        let (array, gate) = pending.split();
        let mut copies =
            vec![("a copy to the default memory", array.copy_to_memory(client.device()?.default_memory()?)?)];
        for device in others(&client)? {
            copies.push(("a copy to another device", array.copy_to_device(device)?));
        }
        let (memory, read) = array.start_read(16, &CopyLayout::Unsaid)?;
        let _given = end.of(array)?;
        let _others = use_memory(&client)?;
        gate.provide(&client, &LATER)?;
        let when = format!("of an array that was {} before its data was there", end.name());
        completes(&read, &format!("the event of a readback {when}"))?;
        let read = memory.written("PJRT_Buffer_ToHostBuffer")?;
        equal(&format!("the bytes of a readback {when}"), read, f32_bytes(&LATER))?;
        for (copy, array) in copies {
            completes(&array.ready()?, &format!("{copy} {when}"))?;
            equal(&format!("{copy} {when}"), numbers(&array)?, LATER.to_vec())?;
        }
    }
    Ok(())
}

fn events(context: &Context) -> Verdict {
    let client = context.client()?;
    for end in End::ALL {
        let pending = Pending::new(&client)?;
        let (array, gate) = pending.split();
        let ready = array.ready()?;
        let given = end.of(array)?;
        ensure!(
            !ready.is_ready()?,
            "the event of an array whose data comes later is complete when the array was {}, before the data is there; the \
             plugin probably completes the events of arrays that are given up",
            end.name()
        );
        gate.provide(&client, &LATER)?;
        completes(
            &ready,
            &format!("the event of an array that was {} before its data was there", end.name()),
        )?;
        drop(given);
    }
    Ok(())
}

fn chained(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    for end in End::ALL {
        let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
        let pending = Pending::new(&client)?;
        let (source, gate) = pending.split();
        client.fulfill(handle, Ok(&source))?;
        let ready = alias.ready()?;
        ensure!(
            !ready.is_ready()?,
            "an alias that was fulfilled with an array without data is ready before the data is there"
        );
        let given = end.of(source);
        let _others = use_memory(&client)?;
        gate.provide(&client, &LATER)?;
        let what = format!(
            "an alias that was fulfilled with an array that was {} before its data was there",
            end.name()
        );
        completes(&ready, &what)?;
        equal(&what, numbers(&alias)?, LATER.to_vec())?;
        drop(given?);
    }
    Ok(())
}

fn managers(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let program = compile_add(&client)?;
    for pieces in [1, 2] {
        let manager = client.transfer_manager(&[(ElementType::F32, vec![4])], memory)?;
        let array = manager.retrieve(0)?;
        let sum = launch_sum(&program, [&array, &array], 0)?;
        let copy = array.copy_to_memory(memory)?;
        let bytes = f32_bytes(&LATER);
        let size = bytes.len() / pieces;
        for (index, piece) in bytes.chunks(size).enumerate() {
            drop(manager.write(0, piece, (index * size) as i64, index + 1 == pieces)?);
        }
        drop(manager);
        let when = format!("of an array whose {pieces} pieces were passed before its manager was destroyed");
        let cause = "the plugin probably ends the arrays of a transfer manager with it";
        ensure!(
            !array.is_deleted()?,
            "an array of a transfer manager is deleted after the manager was destroyed: {cause}"
        );
        completes(&array.ready()?, &format!("the ready event {when}"))?;
        equal(&format!("the data {when}"), numbers(&array)?, LATER.to_vec())?;
        equal(&format!("a sum {when}"), numbers(&sum)?, LATER.map(|value| 2.0 * value).to_vec())?;
        equal(&format!("a copy {when}"), numbers(&copy)?, LATER.to_vec())?;
    }
    Ok(())
}
