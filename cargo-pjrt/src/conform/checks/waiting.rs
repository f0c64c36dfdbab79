//! Checks of waiting: events complete when the work is done, neither earlier nor later.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::entry::{ALL, Entry, check};
use super::pending::Pending;
use super::program_text::launch;
use crate::conform::harness::{
    COMPLETE_FROM_THE_START, Context, Expected, Finding, NOT_WAITED, Verdict, add_program, compile_add,
    described, ensure, equal, f32_bytes, numbers, patience, performing, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::CompileOptions;
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Error, Event, HostArray, Launched, LoadedExecutable,
    Program, eventually,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "waiting/await_waits_for_data",
        "PJRT_Event_Await returns only when the data of the array is ready.",
        await_data,
        "PJRT_Event_Await skip",
    )
    .header("PJRT_Event_Await", "Blocks the calling thread until `event` is ready, then returns the error status.")
    .also(&["*"]),
    check(
        "waiting/await_waits_for_the_host",
        "PJRT_Event_Await on an event that the host created returns only when the host completes it.",
        await_host,
        "PJRT_Event_Await since PJRT_Event_Create skip",
    )
    .header("PJRT_Event_Await", "Blocks the calling thread until `event` is ready, then returns the error status.")
    .since(89)
    .also(&["event/*"]),
    check(
        "waiting/await_has_no_time_limit",
        "PJRT_Event_Await waits as long as the work takes: it has no time limit of its own.",
        await_long,
        "PJRT_Event_Await gives_up 150",
    )
    .header("PJRT_Event_Await", "Blocks the calling thread until `event` is ready, then returns the error status."),
    check(
        "waiting/often_polled_events",
        "PJRT_Event_IsReady returns false while work is not complete, however often a host asks.",
        often_polled,
        "PJRT_Event_IsReady call 1500 set is_ready=1",
    )
    .header("PJRT_Event_IsReady", "Returns true if this PJRT_Event has completed."),
    check(
        "waiting/data_is_there_after_await",
        "When the event of PJRT_Buffer_ToHostBuffer is complete, all bytes are in the host's memory.",
        data_after_await,
        "PJRT_Buffer_ToHostBuffer when dst_size=4194304 early_event",
    )
    .header("PJRT_Buffer_ToHostBuffer_Args::event", "Event that signals when the copy has completed."),
    check(
        "waiting/copies_wait_for_data",
        "A copy of an array whose data the host has not provided yet waits for this data, in the same memory and on another device.",
        copies_of_pending,
        "PJRT_Buffer_ReadyEvent since PJRT_Buffer_CopyToMemory set event=complete",
    )
    .header("PJRT_Buffer_CopyToMemory", "Copies the buffer to memory `dst_memory`: the copy is ready when the elements of the buffer are there.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "waiting/readback_waits_for_data",
        "A readback of an array whose data the host has not provided yet waits for this data.",
        readback_of_pending,
        "PJRT_Buffer_ToHostBuffer unwaited",
    )
    .header("PJRT_Buffer_ToHostBuffer", "Asynchronously copies the buffer's value into a preallocated host buffer: the event completes when the value is there.")
    .also(&["*"]),
    check(
        "waiting/event_comes_after_the_execution",
        "The event of a device does not complete while the execution waits for an argument.",
        done_is_late,
        "PJRT_LoadedExecutable_Execute when options>launch_id=983 early_events",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "Each `PJRT_Event` will become ready once the corresponding device execution is complete."),
    check(
        "waiting/outputs_are_ready_after_the_execution",
        "An output is not ready while the execution waits for an argument.",
        output_is_late,
        "PJRT_LoadedExecutable_Execute when options>launch_id=951 mark_outputs ready",
    )
    .header("PJRT_Buffer_ReadyEvent", "Returns an event that is triggered when the data in the PJRT_Buffer becomes ready.")
    .used_by(ALL),
    check(
        "waiting/for_arguments_of_each_kind",
        "An execution waits for the data of its argument, whether this is an alias, an array of a transfer manager, or one that was donated with a control dependency.",
        each_kind_of_argument,
        "PJRT_LoadedExecutable_Execute when options>launch_id=991 early_events",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "Each `PJRT_Event` will become ready once the corresponding device execution is complete."),
    check(
        "waiting/work_is_done_when_events_are",
        "When the event of a device or that of an output is complete, the work is: a readback does not wait for it.",
        work_is_done,
        "PJRT_Buffer_ToHostBuffer when dst_size=65536 behind 150",
    )
    .header("PJRT_LoadedExecutable_Execute_Args::device_complete_events", "Each `PJRT_Event` will become ready once the corresponding device execution is complete."),
    check(
        "waiting/is_ready_changes_by_itself",
        "PJRT_Event_IsReady becomes true although nobody waits for the event: a host may poll it.",
        polled,
        "PJRT_Event_IsReady since PJRT_LoadedExecutable_Execute set is_ready=0",
    )
    .header("PJRT_Event_IsReady", "Returns true if this PJRT_Event has completed.")
    .also(&["event/*", "lifetime/*", "waiting/*"]),
    check(
        "waiting/arguments_stay_after_launches",
        "Arrays that were arguments keep their data while the host holds them, even if other arrays are uploaded afterwards.",
        arguments_stay,
        "PJRT_LoadedExecutable_Execute when options>launch_id=952 free_arguments",
    )
    .header("PJRT_Buffer_IsDeleted", "True if and only if PJRT_Buffer_Delete has previously been called. The program donates no argument.")
    .needed_by(ALL),
    check(
        "waiting/many_launches_ahead",
        "A host can launch 400 executions without waiting for any of them.",
        launches_ahead,
        "PJRT_LoadedExecutable_Execute when options>launch_id=953 call 300 fail RESOURCE_EXHAUSTED",
    )
    .host("JAX, a training loop", "Launches steps without waiting for their results.")
    .used_by(ALL)
    .needed_by(&[Profile::Jax, Profile::TorchXla])
    .also(&["execute/by_many_threads"]),
    check(
        "waiting/many_uploads_ahead",
        "A host can upload and delete 400 arrays without waiting, and each array that it keeps has its data.",
        uploads_ahead,
        "PJRT_Client_BufferFromHostBuffer when num_dims=1 dims.0=16384 call 300 fail RESOURCE_EXHAUSTED",
    )
    .host("JAX, an input pipeline", "Uploads and deletes batches without waiting for their transfers.")
    .used_by(ALL)
    .needed_by(&[Profile::Jax, Profile::TorchXla]),
];

/// The time in which a function that does not wait would return.
const SHORT: Duration = Duration::from_millis(60);

/// Calls PJRT_Event_Await on another thread, and completes the event after this time.
fn waits(
    event: &Arc<Event>,
    time: Duration,
    (what, cause): (&str, &str),
    complete: impl FnOnce() -> Result<(), Error>,
) -> Verdict {
    let returned = Arc::new(AtomicBool::new(false));
    let (waiting, note) = (Arc::clone(event), Arc::clone(&returned));
    // The thread remains if the call does not return.
    std::thread::spawn(move || {
        let _ = waiting.wait();
        note.store(true, Ordering::SeqCst);
    });
    std::thread::sleep(time);
    let early = returned.load(Ordering::SeqCst);
    complete()?;
    ensure!(
        !early,
        "PJRT_Event_Await returned after less than {time:?} although {what}; the plugin probably {cause}. It blocks the calling \
         thread until the event is ready"
    );
    let woken = eventually(patience(), || returned.load(Ordering::SeqCst));
    ensure!(
        woken,
        "PJRT_Event_Await did not return in {limit:?} after the event was completed",
        limit = patience()
    );
    Ok(())
}

const DOES_NOTHING: &str = "does nothing in this function";

/// Waits for an array whose data the host provides after this time.
fn await_pending(context: &Context, time: Duration, cause: &str) -> Verdict {
    let client = context.client()?;
    let pending = Pending::new(&client)?;
    let ready = Arc::new(pending.array.ready()?);
    let mut array = None;
    waits(&ready, time, ("the host had not provided the data of the array", cause), || {
        array = Some(pending.provide(&client, &[1.0; 4])?);
        Ok(())
    })
}

fn await_data(context: &Context) -> Verdict {
    await_pending(context, SHORT, DOES_NOTHING)
}

fn await_long(context: &Context) -> Verdict {
    await_pending(context, 4 * SHORT, "gives up after a while, and reports success")
}

/// Checks an event of a readback that began before the array had its data, and the bytes that were read.
fn read_late(what: &str, event: &Event, bytes: impl Fn() -> Vec<u8>, expected: &[f32]) -> Verdict {
    event.wait()?;
    let (got, expected) = (bytes(), f32_bytes(expected));
    ensure!(
        got == expected,
        "{what}, which began before the array had its data, returned {got:?}; expected {expected:?}. The plugin probably does not \
         wait for the event of the array"
    );
    Ok(())
}

fn readback_of_pending(context: &Context) -> Verdict {
    const VALUES: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
    let client = context.client()?;
    let pending = Pending::new(&client)?;
    let (bytes, event) = pending.array.start_read(16, &CopyLayout::Unsaid)?;
    std::thread::sleep(SHORT / 2);
    let early = event.is_ready()?;
    ensure!(
        !early,
        "the event of PJRT_Buffer_ToHostBuffer is complete although the host has not provided the data of the array, as an alias \
         or a transfer does later: {NOT_WAITED}"
    );
    let _array = pending.provide(&client, &VALUES)?;
    read_late("PJRT_Buffer_ToHostBuffer", &event, || bytes.bytes(), &VALUES)
}

fn copies_of_pending(context: &Context) -> Verdict {
    const VALUES: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
    let client = context.client()?;
    let here = client.device()?;
    let elsewhere = client.addressable_devices()?.into_iter().find(|device| *device != here);
    type Copy<'c> = Box<dyn Fn(&Buffer) -> Result<Buffer, Error> + 'c>;
    let mut ways: Vec<(&str, Copy<'_>)> =
        vec![("PJRT_Buffer_CopyToMemory", Box::new(|array| array.copy_to_memory(here.default_memory()?)))];
    if let Some(device) = elsewhere {
        ways.push(("PJRT_Buffer_CopyToDevice", Box::new(move |array| array.copy_to_device(device))));
        let copy = move |array: &Buffer| array.copy_to_memory(device.default_memory()?);
        ways.push(("PJRT_Buffer_CopyToMemory to another device", Box::new(copy)));
    }
    for (function, copy) in ways {
        let pending = Pending::new(&client)?;
        // A plugin may refuse to copy an array without data.
        let Ok(copy) = copy(&pending.array) else { continue };
        std::thread::sleep(SHORT / 2);
        let is_early = copy.ready()?.is_ready()?;
        let _array = pending.provide(&client, &VALUES)?;
        ensure!(
            !is_early,
            "the copy of {function} is ready before the host provided the data of its source: {NOT_WAITED}"
        );
        let copied = numbers(&copy)?;
        ensure!(
            copied == VALUES,
            "the copy of {function} of an array whose data came after the call is {copied:?}; expected {VALUES:?}: {NOT_WAITED}"
        );
    }
    Ok(())
}

fn await_host(context: &Context) -> Verdict {
    let event = Arc::new(Event::create(context.plugin)?);
    waits(&event, SHORT, ("the host had not completed the event", DOES_NOTHING), || event.set(Code::OK, ""))
}

fn data_after_await(context: &Context) -> Verdict {
    let client = context.client()?;
    const ELEMENTS: usize = 1 << 20;
    let values: Vec<f32> = (0..ELEMENTS).map(|index| index as f32).collect();
    let bytes = f32_bytes(&values);
    let array = HostArray::new(&bytes, ElementType::F32, &[ELEMENTS as i64]);
    let array = client.upload(&array, Some(client.device()?), None)?.buffer;
    let read = array.read_into(bytes.len(), &CopyLayout::Unsaid)?;
    Expected::floats("an array of 4 MiB that was read when the event was complete", &bytes).check(&read)
}

/// An execution that waits for an argument.
struct Late {
    launched: Launched,
    pending: Pending,
    // The program and the other argument live as long as the execution: other checks destroy them earlier.
    _others: (LoadedExecutable, Buffer),
}

/// Launches the program that adds with an argument whose data the host withholds.
fn late(client: &Client, id: i32) -> Result<Late, Finding> {
    let (pending, other) = (Pending::new(client)?, upload_four(client, &[1.0; 4])?);
    let executable = compile_add(client)?;
    let launched = launch(&executable, &[&other, &pending.array], id)?;
    Ok(Late { launched, pending, _others: (executable, other) })
}

/// Polls the events of an array whose data comes later, of a readback of it, and of an execution with it.
fn often_polled(context: &Context) -> Verdict {
    let client = context.client()?;
    let Late { launched, pending, _others } = late(&client, 0)?;
    let (_bytes, read) = pending.array.start_read(16, &CopyLayout::Unsaid)?;
    let events = [
        ("the ready event of an array whose data the host provides later", &pending.array.ready()?),
        ("the event of a readback of such an array", &read),
        ("the event in `device_complete_events` of an execution with such an argument", &launched.done[0]),
    ];
    let early = events.iter().find_map(|(what, event)| {
        const POLLS: usize = 2000;
        let is_early = |_: &usize| event.is_ready().is_ok_and(|is_ready| is_ready);
        (1..=POLLS).find(is_early).map(|poll| (what, poll))
    });
    let _array = pending.provide(&client, &[2.0; 4])?;
    launched.done[0].wait()?;
    read.wait()?;
    let Some((what, poll)) = early else { return Ok(()) };
    let cause = match poll {
        1 => "returns events that are complete from the start",
        _ => "gives up after a number of calls",
    };
    Err(Finding::Wrong(format!(
        "PJRT_Event_IsReady of {what} is true in call {poll}, before the host provided the data; the plugin probably {cause}. It \
         returns true if the event has completed"
    )))
}

/// Fails if an event is ready before the host provides the data that an execution waits for.
fn not_yet(client: &Client, event: &Event, what: &str, pending: Pending) -> Verdict {
    std::thread::sleep(SHORT / 5);
    let ready = event.is_ready()?;
    let _array = pending.provide(client, &[2.0; 4])?;
    ensure!(
        !ready,
        "{what} {COMPLETE_FROM_THE_START}; the plugin probably returns events that \
         are complete from the start. {what} becomes ready once the execution is complete, and hosts free what the \
         execution uses then"
    );
    let outcome = event.on_ready()?.wait(patience());
    ensure!(
        outcome == Some(Ok(())),
        "{what} completed with {outcome}",
        outcome = described(outcome.as_ref())
    );
    Ok(())
}

/// Executes with an argument whose data `provide` provides, and fails if the execution does not wait for it.
fn waits_for(
    client: &Client,
    kind: &str,
    argument: &Buffer,
    provide: impl FnOnce() -> Result<(), Error>,
) -> Verdict {
    let executable = compile_add(client)?;
    let four = upload_four(client, &[10.0; 4])?;
    let launched = launch(&executable, &[argument, &four], 991)?;
    std::thread::sleep(SHORT / 5);
    let early = launched.done[0].is_ready()?;
    provide()?;
    let sum = numbers(launched.output(0, 0)?)?;
    let when = if early {
        "was complete before the host provided its data, and"
    } else {
        "that the host provided later"
    };
    ensure!(
        !early && sum == [12.0; 4],
        "an execution with {kind} as an argument {when} returned {sum:?}; expected {:?}: {NOT_WAITED}",
        [12.0; 4]
    );
    Ok(())
}

fn each_kind_of_argument(context: &Context) -> Verdict {
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let lacks = |error: &Error| error.code == Code::UNIMPLEMENTED;
    let mut kinds = 0;
    match client.alias(ElementType::F32, &[4], memory) {
        Ok((array, handle)) => {
            let two = upload_four(&client, &[2.0; 4])?;
            waits_for(&client, "an alias", &array, || client.fulfill(handle, Ok(&two)))?;
            kinds += 1;
        }
        Err(error) if lacks(&error) => {}
        Err(error) => return Err(error.into()),
    }
    match client.transfer_manager(&[(ElementType::F32, vec![4])], memory) {
        Ok(manager) => {
            let array = manager.retrieve(0)?;
            let write = || manager.write(0, &f32_bytes(&[2.0; 4]), 0, true)?.wait();
            waits_for(&client, "an array of a transfer manager", &array, write)?;
            kinds += 1;
        }
        Err(error) if lacks(&error) => {}
        Err(error) => return Err(error.into()),
    }
    match upload_four(&client, &[2.0; 4])?.donate() {
        Ok((array, dependency)) => {
            let finish = || {
                dependency.finish(Ok(()));
                Ok(())
            };
            waits_for(&client, "an array that was donated with a control dependency", &array, finish)?;
            kinds += 1;
        }
        Err(error) if lacks(&error) => {}
        Err(error) => return Err(error.into()),
    }
    match kinds {
        0 => Err(Finding::NotApplicable("no function creates an array whose data comes later".to_owned())),
        _ => Ok(()),
    }
}

fn done_is_late(context: &Context) -> Verdict {
    let client = context.client()?;
    let Late { launched, pending, _others } = late(&client, 983)?;
    not_yet(&client, &launched.done[0], "the event in `device_complete_events`", pending)
}

fn output_is_late(context: &Context) -> Verdict {
    let client = context.client()?;
    let Late { launched, pending, _others } = late(&client, 951)?;
    let output = launched.output(0, 0)?;
    not_yet(&client, &output.ready()?, "the ready event of an output", pending)?;
    equal("the sum", numbers(output)?, vec![3.0; 4])
}

/// The time of a readback that cannot be that of the copy alone, if the next one takes a quarter of it at most.
const NOTICEABLE: Duration = Duration::from_millis(10);

/// The number of times that a readback must be slow, since other processes can delay one.
const ROUNDS: usize = 4;

/// Launches additions, waits for an event of the last one and rests. Returns the times of two readbacks, and that from the launch
/// to the end of the first.
fn readbacks(
    client: &Client,
    executable: &LoadedExecutable,
    (count, of_output, rest): (usize, bool, Duration),
) -> Result<[Duration; 3], Finding> {
    let one = upload_long(client, 1.0)?;
    let mut array = upload_long(client, 0.0)?;
    let mut done = None;
    for _ in 0..count {
        let mut launched = launch(executable, &[&array, &one], 0)?;
        array = launched.take_output()?;
        done = launched.done.pop();
    }
    let launched = Instant::now();
    match done {
        Some(done) if !of_output => done.wait()?,
        _ => array.ready()?.wait()?,
    }
    std::thread::sleep(rest);
    let timed = || -> Result<Duration, Finding> {
        let start = Instant::now();
        all_are(&array, count as f32, &format!("the last of {count} results"), "")?;
        Ok(start.elapsed())
    };
    let first = timed()?;
    let total = launched.elapsed();
    Ok([first, timed()?, total])
}

fn work_is_done(context: &Context) -> Verdict {
    let client = context.client()?;
    let executable = compile_long(&client)?;
    let is_slow = |[first, second, _]: [Duration; 3]| first > NOTICEABLE && first > 4 * second;
    for (of_output, what) in
        [(false, "the event in `device_complete_events`"), (true, "the ready event of the output")]
    {
        let run = |count, rest| readbacks(&client, &executable, (count, of_output, rest));
        let mut count = 25;
        let mut times = run(count, Duration::ZERO)?;
        while count < AHEAD && times[2] < 4 * NOTICEABLE {
            count *= 4;
            times = run(count, Duration::ZERO)?;
        }
        for round in 1..=ROUNDS {
            // The readback is as slow when the work has had time to end: it is not the work that it waits for.
            if !is_slow(times) || is_slow(run(count, 2 * times[0])?) {
                break;
            }
            ensure!(
                round < ROUNDS,
                "{what} of the last of {count} executions is complete, but the first readback of its output took {:?}, the next \
                 {:?}, and both are as fast after a pause; the plugin probably completes the event when the work is in a \
                 queue, and not when it is done",
                times[0],
                times[1]
            );
            times = run(count, Duration::ZERO)?;
        }
    }
    Ok(())
}

fn polled(context: &Context) -> Verdict {
    let client = context.client()?;
    let x = upload_four(&client, &[1.0; 4])?;
    let executable = compile_add(&client)?;
    let launched = launch(&executable, &[&x, &x], 0)?;
    for (event, what) in [
        (&launched.output(0, 0)?.ready()?, "the ready event of an output"),
        (&launched.done[0], "the event in `device_complete_events`"),
    ] {
        // The first call tells whether the function exists.
        event.is_ready()?;
        let ready = eventually(patience(), || event.is_ready().unwrap_or(false));
        ensure!(
            ready,
            "PJRT_Event_IsReady on {what} is still false after {limit:?}; the plugin probably makes progress only while \
             somebody waits. It returns true if the event has completed",
            limit = patience()
        );
    }
    Ok(())
}

/// The number of elements of the arrays of long queues: 64 KiB.
const ELEMENTS: usize = 16384;

fn upload_long(client: &Client, value: f32) -> Result<Buffer, Error> {
    let bytes = f32_bytes(&[value; ELEMENTS]);
    let array = HostArray::new(&bytes, ElementType::F32, &[ELEMENTS as i64]);
    Ok(client.upload(&array, Some(client.device()?), None)?.buffer)
}

/// Fails unless all elements of a long array have this value.
fn all_are(array: &Buffer, value: f32, what: &str, cause: &str) -> Verdict {
    let got = numbers(array)?;
    equal("the number of elements", got.len(), ELEMENTS)?;
    let other = got.iter().position(|got| *got != value);
    ensure!(
        other.is_none(),
        "element {} of {what} is {}; expected {value}. {cause}",
        other.unwrap_or(0),
        got[other.unwrap_or(0)]
    );
    Ok(())
}

fn compile_long(client: &Client) -> Result<LoadedExecutable, Error> {
    let text = add_program(&format!("{ELEMENTS}x"));
    client.compile(&Program::mlir(&text), &CompileOptions::default().encode())
}

fn arguments_stay(context: &Context) -> Verdict {
    const CAUSE: &str = "The plugin probably frees the memory of arguments after a launch, although the host did not \
                         destroy them and the program does not donate them";
    let client = context.client()?;
    let executable = compile_long(&client)?;
    let (x, y) = (upload_long(&client, 1.0)?, upload_long(&client, 2.0)?);
    for _ in 0..10 {
        let launched = launch(&executable, &[&x, &y], 952)?;
        // These use the memory of the arguments if it was freed.
        let _others = [upload_long(&client, -1.0)?, upload_long(&client, -2.0)?];
        all_are(launched.output(0, 0)?, 3.0, "the sum", CAUSE)?;
    }
    all_are(&x, 1.0, "the first argument after 10 launches", CAUSE)?;
    all_are(&y, 2.0, "the second argument after 10 launches", CAUSE)
}

/// The number of calls that a host makes without waiting.
const AHEAD: usize = 400;

/// The time in which the queued work must end.
const LONG: Duration = Duration::from_secs(30);

fn launches_ahead(context: &Context) -> Verdict {
    const CAUSE: &str =
        "The plugin probably uses memory for a later execution before an earlier one has read it";
    let client = context.client()?;
    let executable = compile_long(&client)?;
    let start = Instant::now();
    let one = upload_long(&client, 1.0)?;
    let mut array = upload_long(&client, 0.0)?;
    let mut kept = Vec::new();
    for count in 1..=AHEAD {
        let started =
            performing(format!("launch {count} of {AHEAD}"), || launch(&executable, &[&array, &one], 953));
        let mut launched = started.map_err(|error| {
            Finding::Wrong(format!(
                "launch {count} of {AHEAD} was refused with {error}. The plugin probably holds memory for each execution \
                 from its launch until the host waits for it: hosts launch without waiting, so memory must be waited for \
                 or reused in the order of the queue"
            ))
        })?;
        let next = launched.take_output()?;
        let before = std::mem::replace(&mut array, next);
        if count % 50 == 1 {
            kept.push((count - 1, before));
        }
    }
    all_are(&array, AHEAD as f32, "the last of 400 results", CAUSE)?;
    for (count, array) in kept {
        all_are(&array, count as f32, &format!("result {count} of {AHEAD}"), CAUSE)?;
    }
    let time = start.elapsed();
    ensure!(
        time < LONG,
        "{AHEAD} executions of an addition took {time:?}; expected less than {LONG:?}. The plugin probably waits for each \
         execution with a timeout, or looks through all unfinished ones in each launch"
    );
    Ok(())
}

fn uploads_ahead(context: &Context) -> Verdict {
    const CAUSE: &str = "The plugin probably uses the memory of a deleted array before a queued operation has read it, or \
                         reads the host's memory after the call";
    let client = context.client()?;
    let executable = compile_long(&client)?;
    let mut kept = Vec::new();
    for count in 1..=AHEAD {
        let upload = upload_long(&client, count as f32).map_err(|error| {
            Finding::Wrong(format!(
                "upload {count} of {AHEAD} was refused with {error}. The plugin probably keeps staging memory until the \
                 host waits; the memory of a deleted array is freed when the operations that use it have completed \
                 (PJRT_Buffer_Delete)"
            ))
        })?;
        if count % 20 == 0 {
            let launched = launch(&executable, &[&upload, &upload], 0)?;
            kept.push((count, launched));
        }
        upload.delete()?;
    }
    for (count, launched) in kept {
        let what = format!("the sum of upload {count} with itself");
        all_are(launched.output(0, 0)?, 2.0 * count as f32, &what, CAUSE)?;
    }
    Ok(())
}
