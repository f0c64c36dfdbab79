//! Checks of the callbacks of the events of each function that returns one: each is called once, with its own argument.

use std::sync::Arc;
use std::time::Duration;

use super::entry::{ALL, Entry, check};
use super::pending::Pending;
use super::program_text::launch;
use crate::conform::harness::{
    Context, Finding, LOST_BY_CALLBACK, LOST_BY_EXECUTION, LOST_CALLBACK, NEVER_COMPLETE, Verdict,
    compile_add, described, ensure, f32_bytes, kept_text, patience, upload_four, upload_to,
};
use pjrt_testing::host::{
    Buffer, Client, Code, CopyLayout, ElementType, Error, Event, Layout, Outcome, TransferManager, ViewMemory,
};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "event/callbacks_of_each_function",
        "Several callbacks of an event are each called once, with their own argument, whichever function returned the event: before and after it completes, and although the host destroys it right after the registration.",
        of_each_function,
        "PJRT_Event_OnReady since PJRT_AsyncHostToDeviceTransferManager_TransferLiteral callback twice",
    )
    .header("PJRT_Event_OnReady", "`callback` will be called once `event` is ready, with `user_arg`.")
    .used_by(ALL)
    .also(&["*"]),
    check(
        "event/callbacks_of_each_failure",
        "Several callbacks of an event that fails later are each called once, with the error, whichever function returned the event.",
        of_each_failure,
        "PJRT_Event_OnReady since PJRT_Buffer_CopyRawToHost callback error_twice",
    )
    .header("PJRT_Event_OnReady", "`callback` will be called once `event` is ready, with `user_arg` and the error, which it owns.")
    .used_by(ALL)
    .also(&["*"]),
];

/// An event, and the function that it is from.
type Source = (&'static str, Event);

/// The objects that events come from, which live longer than these.
#[derive(Default)]
struct Owners {
    arrays: Vec<Buffer>,
    managers: Vec<TransferManager>,
}

/// Returns events of functions that complete without further calls.
fn completing(client: &Client, owners: &mut Owners) -> Result<Vec<Source>, Error> {
    let device = client.device()?;
    let memory = device.default_memory()?;
    let uploaded = upload_to(client, &[1.0, 2.0, 3.0, 4.0], device)?;
    let array = uploaded.buffer;
    let program = compile_add(client)?;
    let mut launched = launch(&program, &[&array, &array], 0)?;
    let output = launched.take_output()?;
    let copy = array.copy_to_memory(memory)?;
    let mut sources = vec![
        ("PJRT_Client_BufferFromHostBuffer", uploaded.done),
        ("PJRT_Buffer_ReadyEvent of an upload", array.ready()?),
        ("PJRT_Buffer_ToHostBuffer", array.start_read(16, &CopyLayout::Unsaid)?.1),
        ("PJRT_LoadedExecutable_Execute", launched.done.remove(0)),
        ("PJRT_Buffer_ReadyEvent of an output", output.ready()?),
        ("PJRT_Buffer_ReadyEvent of a copy", copy.ready()?),
    ];
    if let Ok((_, event)) = array.start_read_raw(0, 16) {
        sources.push(("PJRT_Buffer_CopyRawToHost", event));
    }
    let shapes = [(ElementType::F32, vec![4]), (ElementType::F32, vec![4])];
    if let Ok(manager) = client.transfer_manager(&shapes, memory) {
        let bytes = f32_bytes(&[5.0; 4]);
        sources
            .push(("PJRT_AsyncHostToDeviceTransferManager_TransferData", manager.write(0, &bytes, 0, true)?));
        let filled = manager.retrieve(0)?;
        sources.push(("PJRT_Buffer_ReadyEvent of an array of a transfer manager", filled.ready()?));
        owners.arrays.push(filled);
        let literal = manager.write_array(1, &bytes, ElementType::F32, &[4], &Layout::dense(1));
        if let Ok(event) = literal {
            sources.push(("PJRT_AsyncHostToDeviceTransferManager_TransferLiteral", event));
        }
        owners.managers.push(manager);
    }
    if let Ok(array) = client.uninitialized(ElementType::F32, &[4], memory) {
        sources.push(("PJRT_Buffer_ReadyEvent of an array without initial data", array.ready()?));
        owners.arrays.push(array);
    }
    if let Ok(view) = client.view(&ViewMemory::new(&f32_bytes(&[6.0; 4])), ElementType::F32, &[4], device) {
        sources.push(("PJRT_Buffer_ReadyEvent of a view", view.ready()?));
        owners.arrays.push(view);
    }
    owners.arrays.extend([array, output, copy]);
    Ok(sources)
}

/// Returns events of functions that wait for the data of an array, or nothing if the plugin has no such arrays.
fn waiting(client: &Client, array: &Buffer, owners: &mut Owners) -> Result<Vec<Source>, Error> {
    let other = upload_four(client, &[1.0; 4])?;
    let mut sources = vec![("PJRT_Buffer_ReadyEvent of an array whose data comes later", array.ready()?)];
    if let Ok((_, event)) = array.start_read(16, &CopyLayout::Unsaid) {
        sources.push(("PJRT_Buffer_ToHostBuffer", event));
    }
    if let Ok((_, event)) = array.start_read_raw(0, 16) {
        sources.push(("PJRT_Buffer_CopyRawToHost", event));
    }
    if let Ok(copy) = array.copy_to_memory(client.device()?.default_memory()?) {
        sources.push(("PJRT_Buffer_ReadyEvent of a copy", copy.ready()?));
        owners.arrays.push(copy);
    }
    if let Ok(mut launched) = launch(&compile_add(client)?, &[array, &other], 0) {
        let output = launched.take_output()?;
        sources.push(("PJRT_LoadedExecutable_Execute", launched.done.remove(0)));
        sources.push(("PJRT_Buffer_ReadyEvent of an output", output.ready()?));
        owners.arrays.push(output);
    }
    owners.arrays.push(other);
    Ok(sources)
}

/// The callbacks that were registered for an event.
struct Registered {
    function: &'static str,
    outcomes: Vec<Arc<Outcome>>,
}

/// Registers two callbacks for each event. Every second event is destroyed right afterwards; the others are returned.
fn registered(sources: Vec<Source>) -> Result<(Vec<Registered>, Vec<Option<Event>>), Error> {
    let (mut all, mut kept) = (Vec::new(), Vec::new());
    for (index, (function, event)) in sources.into_iter().enumerate() {
        all.push(Registered { function, outcomes: vec![event.on_ready()?, event.on_ready()?] });
        kept.push((index % 2 == 0).then_some(event));
    }
    Ok((all, kept))
}

/// Waits for the callbacks, registers one more for each event that still exists, and compares what all of them received.
fn settle(
    what: &str,
    mut all: Vec<Registered>,
    kept: Vec<Option<Event>>,
    is_right: impl Fn(&Result<(), Error>) -> bool,
) -> Verdict {
    let is_missed = |outcome: &Arc<Outcome>| outcome.wait(patience()).is_none();
    let missed = |function: &str, which: &str| {
        Finding::Wrong(format!("{what}: {which} of an event of {function} was not called; {LOST_CALLBACK}"))
    };
    for (registered, event) in all.iter_mut().zip(&kept) {
        if let Some(at) = registered.outcomes.iter().position(is_missed) {
            if let Some(event) = event
                && !event.is_ready()?
            {
                let message = format!("{what}: an event of {} {NEVER_COMPLETE}", registered.function);
                return Err(Finding::Wrong(message));
            }
            return Err(missed(registered.function, ["the first callback", "the second callback"][at]));
        }
        if let Some(event) = event {
            registered.outcomes.push(event.on_ready()?);
            if registered.outcomes.last().is_some_and(is_missed) {
                return Err(missed(
                    registered.function,
                    "a callback that was registered after the completion",
                ));
            }
        }
    }
    // Without an event that still exists, nothing tells whose fault a lost error is.
    let lost: Vec<bool> =
        kept.iter().map(|event| event.as_ref().is_some_and(|event| event.wait().is_ok())).collect();
    drop(kept);
    // A second call may come from another thread.
    std::thread::sleep(Duration::from_millis(5));
    for (Registered { function, outcomes }, is_lost) in all.iter().zip(lost) {
        for (at, outcome) in outcomes.iter().enumerate() {
            ensure!(
                outcome.calls() == 1,
                "{what}: callback {} of {} of an event of {function} was called {} times; each is called once",
                at + 1,
                outcomes.len(),
                outcome.calls()
            );
            let got = outcome.wait(patience()).unwrap_or(Ok(()));
            let cause = match &got {
                Err(error) => kept_text(&error.message).unwrap_or_default(),
                Ok(()) if is_lost => {
                    "PJRT_Event_Await returns no error either: the event completes without the error"
                }
                Ok(()) if *function == "PJRT_LoadedExecutable_Execute" => LOST_BY_EXECUTION,
                Ok(()) => LOST_BY_CALLBACK,
            };
            ensure!(
                is_right(&got),
                "{what}: callback {} of {} of an event of {function} received {}. {cause}",
                at + 1,
                outcomes.len(),
                described(Some(&got))
            );
        }
    }
    Ok(())
}

fn of_each_function(context: &Context) -> Verdict {
    let client = context.client()?;
    let mut owners = Owners::default();
    let (all, kept) = registered(completing(&client, &mut owners)?)?;
    settle("several callbacks of one event", all, kept, Result::is_ok)?;
    let Ok(pending) = Pending::new(&client) else { return Ok(()) };
    let (array, gate) = pending.split();
    let (all, kept) = registered(waiting(&client, &array, &mut owners)?)?;
    gate.provide(&client, &[1.0; 4])?;
    settle("several callbacks of one event that completes later", all, kept, Result::is_ok)
}

fn of_each_failure(context: &Context) -> Verdict {
    const GONE: (Code, &str) = (Code::DATA_LOSS, "lost on the way");
    let client = context.client()?;
    let mut owners = Owners::default();
    let pending = Pending::new(&client)?;
    let (all, kept) = registered(waiting(&client, &pending.array, &mut owners)?)?;
    let _array = pending.fail(&client, GONE)?;
    settle("several callbacks of one event that fails later", all, kept, |got| {
        got.as_ref().is_err_and(|error| error.message.contains(GONE.1))
    })
}
