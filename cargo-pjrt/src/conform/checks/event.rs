//! Checks of events and errors.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::entry::{ALL, Entry, NONE, check};
use super::pending::{Gate, Pending, in_error};
use crate::conform::harness::{
    Context, ENDS_WITH_ANOTHER, Finding, LOST_BY_CALLBACK, LOST_CALLBACK, MISSED_CALLBACKS, NEVER_COMPLETE,
    NO_CALLBACK_OF_FAILED, Verdict, any_error, compile_add, described, ensure, equal, event_fails_with,
    fails_with, hangs, numbers, overwrite_freed, patience, risky, upload_four,
};
use crate::requirements::Profile;
use pjrt_testing::host::{Buffer, Client, Code, ElementType, Error, Event, Outcome};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "event/wait_for_data",
        "PJRT_Event_Await returns without an error once the data is ready.",
        wait,
        "PJRT_Event_Await fail INTERNAL",
    )
    .header("PJRT_Event_Await", "Blocks the calling thread until `event` is ready, then returns the error status (with `nullptr` indicating no error).")
    .needed_by(&[Profile::Gomlx])
    .also(&["*"]),
    check(
        "event/is_ready_after_waiting",
        "A completed event reports that it is ready.",
        ready_after,
        "PJRT_Event_IsReady after PJRT_Event_Await set is_ready=0",
    )
    .header("PJRT_Event_IsReady", "Returns true if this PJRT_Event has completed, including if an error has occurred.")
    .needed_by(&[Profile::Jax, Profile::Zml])
    .also(&[
        "event/data_events_are_destroyed_one_by_one",
        "lifetime/event_after_its_buffer",
        "lifetime/event_after_its_client",
    ]),
    check(
        "event/callback_of_a_completed_one",
        "PJRT_Event_OnReady of a completed event calls the callback without an error.",
        callback,
        "PJRT_Event_OnReady after PJRT_Event_Await callback never",
    )
    .header("PJRT_Event_OnReady", "Registers `callback` to be called once `event` is ready, with `event`'s error status.")
    .needed_by(&[Profile::Jax, Profile::TorchXla, Profile::Zml]),
    check(
        "event/callbacks_come_once",
        "A callback is called exactly once.",
        once,
        "PJRT_Event_OnReady callback twice",
    )
    .header("PJRT_Event_OnReady", "Registers `callback` to be called once `event` is ready. Ownership of `error` is passed to the callback.")
    .also(&["event/completing_races_with_callbacks", "event/many_callbacks", "failures/callbacks_come_once"]),
    check(
        "event/many_callbacks",
        "Every callback of an event is called.",
        many,
        "PJRT_Event_OnReady call 3 callback never",
    )
    .header("PJRT_Event_OnReady", "Registers `callback` to be called once `event` is ready.")
    .also(&["event/completing_races_with_callbacks"]),
    check(
        "event/callbacks_of_a_pending_one",
        "All callbacks that are registered before and after an event completes are called once, also those of other events of the same array.",
        pending_callbacks,
        "PJRT_Event_OnReady after PJRT_Event_OnReady callback never",
    )
    .header("PJRT_Event_OnReady", "Registers `callback` to be called once `event` is ready.")
    .also(&["event/callbacks_of_a_created_one", "event/many_callbacks", "failures/callbacks_come_once"]),
    check(
        "event/callbacks_of_a_created_one",
        "All callbacks of an event that the host created are called once when the host completes it.",
        created_callbacks,
        "PJRT_Event_OnReady since PJRT_Event_Create after PJRT_Event_OnReady callback never",
    )
    .header("PJRT_Event_OnReady", "Registers `callback` to be called once `event` is ready.")
    .only_used_by(NONE)
    .since(89)
    .also(&["event/callbacks_of_a_pending_one", "event/many_callbacks", "failures/callbacks_come_once"]),
    check(
        "event/destroyed_before_its_callback",
        "A callback is called even if its event is destroyed right after the registration, as XLA's client does.",
        destroyed_early,
        "PJRT_Event_Destroy forget_callbacks",
    )
    .host("XLA's client, PjRtCApiClient::BufferFromHostBufferInternal", "Destroys the event right after it registered a callback, which releases the host's memory.")
    .needed_by(ALL)
    .since(89)
    .needed_since(89),
    check(
        "event/is_ready_in_its_callback",
        "Within its callback, an event is ready: PJRT_Event_IsReady, PJRT_Event_Error and PJRT_Event_Await return its outcome, also that of an event that fails.",
        ready_inside,
        "PJRT_Event_IsReady inside_callback set is_ready=0",
    )
    .header("PJRT_Event_OnReady", "`callback` will be called once `event` is ready.")
    .since(77)
    .also(&["*"]),
    check(
        "event/destroyed_in_its_callback",
        "An event can be destroyed within its own callback.",
        destroyed_inside,
        "PJRT_Event_Destroy inside_callback crash",
    )
    .host("XLA's client, pjrt_c_api_helpers.cc, ConvertCEventToCppFuture", "The callback destroys the event.")
    .since(77)
    .also(&["event/api_calls_in_a_callback"]),
    check(
        "event/callback_registers_a_callback",
        "A callback can register another callback: no lock is held while callbacks run.",
        nested,
        "PJRT_Event_OnReady inside_callback hang",
    )
    .host("XLA's client, pjrt_c_api_helpers.cc, ConvertCEventToCppFuture", "The callback fulfills a future, whose continuations may call the plugin.")
    .since(89),
    check(
        "event/api_calls_in_a_callback",
        "A callback can call the plugin, for example to destroy and to upload buffers.",
        api_in_callback,
        "PJRT_Buffer_Destroy inside_callback hang",
    )
    .host("XLA's client, pjrt_c_api_helpers.cc, ConvertCEventToCppFuture", "The callback fulfills a future, whose continuations may destroy buffers and start transfers.")
    .since(89),
    check(
        "event/created_one_is_not_ready",
        "An event that the host created is not ready before the host completes it.",
        created,
        "PJRT_Event_IsReady since PJRT_Event_Create set is_ready=1",
    )
    .header("PJRT_Event_Create", "Creates a new PJRT_Event. PJRT_Event_Set sets it as completed.")
    .since(89),
    check(
        "event/set_ok",
        "Completing an event without an error makes it ready, and wakes the waiting threads.",
        set_ok,
        "PJRT_Event_Set when error_code=0 skip",
    )
    .header("PJRT_Event_Set", "Sets the PJRT_Event as completed with the given error code and message.")
    .since(89).also(&["event/api_calls_in_a_callback", "event/callback_registers_a_callback", "event/completing_races_with_callbacks", "event/error_of_a_good_one", "event/many_threads_wait", "event/set_twice", "waiting/await_waits_for_the_host"]),
    check(
        "event/set_an_error",
        "Completing an event with an error returns this code and message to the waiting threads.",
        set_error,
        "PJRT_Event_Set when error_code=15 give error_code=13",
    )
    .header("PJRT_Event_Set", "Sets the PJRT_Event as completed with the given error code and message.")
    .since(89),
    check(
        "event/callback_of_a_failed_one",
        "PJRT_Event_OnReady of an event that has completed with an error calls the callback with this error, which PJRT_Event_Await and PJRT_Event_Error return too.",
        failed_callback,
        "PJRT_Event_OnReady after PJRT_Event_Await callback no_error",
    )
    .header("PJRT_Event_OnReady", "Registers `callback` to be called once `event` is ready, with `event`'s error status.")
    .since(89)
    .also(&[
        "failures/callbacks_come_once",
        "failures/error_spreads",
        "failures/event_has_the_error",
        "failures/event_of_a_later_failure",
        "failures/outputs_are_ready_with_the_error",
    ]),
    check(
        "event/a_failed_one_is_ready",
        "An event with an error is ready.",
        failed_is_ready,
        "PJRT_Event_Set when error_code=10 skip",
    )
    .header("PJRT_Event_IsReady", "Returns true if this PJRT_Event has completed, including if an error has occurred.")
    .since(89),
    check(
        "event/set_twice",
        "Completing an event a second time is refused, and has no effect.",
        set_twice,
        "PJRT_Event_Set accept",
    )
    .advice("The header does not say what a second PJRT_Event_Set does. A host that calls it twice has a bug, which an error code reports better than an abort.")
    .since(89),
    check(
        "event/each_asking_gives_a_new_error",
        "PJRT_Event_Error returns a new object each time, which its caller destroys.",
        distinct_errors,
        "PJRT_Event_Error call 2 stale",
    )
    .header("PJRT_Event_Error", "Each of these `PJRT_Error *` pointers are independent of `PJRT_Error *`s returned by other function calls, so they must each be freed separately.")
    .since(89),
    check(
        "event/error_of_a_good_one",
        "PJRT_Event_Error of an event without an error returns null.",
        no_error,
        "PJRT_Event_Error since PJRT_Event_Set fail INTERNAL",
    )
    .header("PJRT_Event_Error", "Returns `nullptr` if there is no error.")
    .since(89),
    check(
        "event/callback_gets_the_error",
        "A callback receives the event's error, with code and message.",
        callback_error,
        "PJRT_Event_OnReady callback no_error",
    )
    .header("PJRT_Event_OnReadyCallback", "It will be called on the event's error state.")
    .used_by(&[Profile::Jax, Profile::TorchXla])
    .since(89)
    .also(&[
        "failures/error_spreads",
        "failures/event_has_the_error",
        "failures/event_of_a_later_failure",
        "failures/outputs_are_ready_with_the_error",
    ]),
    check(
        "event/many_threads_wait",
        "Many threads can wait for an event, and all of them wake up.",
        many_wait,
        "PJRT_Event_Await after PJRT_Event_Await hang",
    )
    .header("PJRT_Event_Await", "Blocks the calling thread until `event` is ready.")
    .since(89),
    check(
        "event/completing_races_with_callbacks",
        "A callback that is registered while the event is being completed is called once.",
        race,
        "PJRT_Event_OnReady call 40 callback never",
    )
    .header("PJRT_Event_OnReady", "Registers `callback` to be called once `event` is ready.")
    .since(89),
    check(
        "event/data_events_are_destroyed_one_by_one",
        "PJRT_Buffer_ReadyEvent returns an event that the host destroys each time; the other events remain usable.",
        own_events,
        "PJRT_Event_IsReady since PJRT_Event_Destroy set is_ready=0",
    )
    .header("PJRT_Buffer_ReadyEvent_Args::event", "The caller is responsible for calling PJRT_Event_Destroy on `event`."),
    check(
        "error/codes_exist",
        "Errors have codes from 1 to 16.",
        code_exists,
        "PJRT_Error_GetCode set code=77",
    )
    .header("PJRT_Error_Code", "Lists the codes.")
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "error/messages_are_not_empty",
        "Errors have a message.",
        message_exists,
        "PJRT_Error_Message set message_size=0",
    )
    .header("PJRT_Error_Message", "Gets the human-readable reason for `error`.")
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "error/messages_are_as_long_as_they_say",
        "PJRT_Error_Message returns a credible size, and a pointer to that number of bytes.",
        message_is_sane,
        "PJRT_Error_Message set message_size=1099511627776",
    )
    .header("PJRT_Error_Message", "`message` has the lifetime of `error`.")
    .needed_by(ALL)
    .also(&["*"]),
    check(
        "error/payloads_can_be_asked_for",
        "PJRT_Error_ForEachPayload succeeds for every error: if it fails, JAX recurses until its stack overflows.",
        payloads,
        "PJRT_Error_ForEachPayload fail UNIMPLEMENTED",
    )
    .host("XLA's client, pjrt_c_api_status_utils.cc, PjrtErrorToStatus", "Calls the function for each error, also for an error of this function.")
    .since(100),
    check(
        "error/own_functions_agree",
        "The functions that the first word of an error points to return the same values as those of the table.",
        own_table,
        "PJRT_Error_Message set message_size-1",
    )
    .header("PJRT_Error_FunctionTable", "The table has the same functions as PJRT_Api: message, get_code, for_each_payload, destroy.")
    .since(112).also(&["buffer/donate_with_failed_dependency", "event/callback_gets_the_error", "event/set_an_error", "readback/raw_never", "special/alias_fails", "special/error_cannot_be_read", "special/error_is_ready", "special/error_spreads", "transfer/error", "failures/error_spreads", "failures/event_has_the_error", "failures/event_of_a_later_failure", "failures/outputs_are_ready_with_the_error", "failures/outputs_cannot_be_read"]),
];

/// Returns the error of a call that must fail.
fn failure(client: &Client) -> Result<Error, Finding> {
    let accepted =
        "the plugin accepts an unknown device, a program and an executable of garbage, so that no call fails";
    any_error(client).ok_or_else(|| Finding::NotApplicable(accepted.to_owned()))
}

fn wait(context: &Context) -> Verdict {
    let client = context.client()?;
    Ok(upload_four(&client, &[1.0; 4])?.ready()?.wait()?)
}

fn ready_after(context: &Context) -> Verdict {
    let client = context.client()?;
    let event = upload_four(&client, &[1.0; 4])?.ready()?;
    event.wait()?;
    equal("is_ready", event.is_ready()?, true)
}

fn callback(context: &Context) -> Verdict {
    let client = context.client()?;
    let event = upload_four(&client, &[1.0; 4])?.ready()?;
    event.wait()?;
    match event.on_ready()?.wait(patience()) {
        Some(outcome) => Ok(outcome?),
        None => Err(Finding::Wrong(MISSED_CALLBACKS.to_owned())),
    }
}

fn once(context: &Context) -> Verdict {
    let client = context.client()?;
    let event = upload_four(&client, &[1.0; 4])?.ready()?;
    let outcome = event.on_ready()?;
    ensure!(outcome.wait(patience()).is_some(), "the callback was not called");
    std::thread::sleep(Duration::from_millis(50));
    equal("the number of calls of the callback", outcome.calls(), 1)
}

fn many(context: &Context) -> Verdict {
    let client = context.client()?;
    let event = upload_four(&client, &[1.0; 4])?.ready()?;
    let outcomes = (0..10).map(|_| event.on_ready()).collect::<Result<Vec<_>, _>>()?;
    for (index, outcome) in outcomes.iter().enumerate() {
        ensure!(outcome.wait(patience()).is_some(), "callback {index} of 10 was not called");
    }
    std::thread::sleep(Duration::from_millis(20));
    for outcome in outcomes {
        equal("the number of calls of a callback", outcome.calls(), 1)?;
    }
    Ok(())
}

/// Checks that each callback is called exactly once.
fn called_once(what: &str, outcomes: &[Arc<Outcome>], cause: &str) -> Verdict {
    for (index, outcome) in outcomes.iter().enumerate() {
        ensure!(
            outcome.wait(patience()).is_some(),
            "callback {index} of {}, {what}, was not called; {cause}",
            outcomes.len()
        );
    }
    std::thread::sleep(Duration::from_millis(20));
    for (index, outcome) in outcomes.iter().enumerate() {
        equal(&format!("the number of calls of callback {index}, {what},"), outcome.calls(), 1)?;
    }
    Ok(())
}

/// Registers several callbacks.
fn registered(event: &Event, what: &str) -> Result<Vec<Arc<Outcome>>, Finding> {
    let outcomes = (0..3).map(|_| event.on_ready()).collect::<Result<Vec<_>, _>>()?;
    for outcome in &outcomes {
        equal(&format!("the number of calls of a callback of {what}"), outcome.calls(), 0)?;
    }
    Ok(outcomes)
}

fn pending_callbacks(context: &Context) -> Verdict {
    let client = context.client()?;
    let pending = Pending::new(&client)?;
    let events = [pending.array.ready()?, pending.array.ready()?];
    let before = events
        .iter()
        .map(|event| registered(event, "an array whose data the host has not provided"))
        .collect::<Result<Vec<_>, _>>()?;
    let _array = pending.provide(&client, &[1.0; 4])?;
    called_once("registered before the event completed", &before.concat(), LOST_CALLBACK)?;
    let after = (0..2).map(|_| events[0].on_ready()).collect::<Result<Vec<_>, _>>()?;
    let cause = "the plugin probably keeps callbacks of an event that is ready already, and calls them when it completes, \
                 which it does not again";
    called_once("registered after the event completed", &after, cause)?;
    called_once("registered before the event completed", &before.concat(), LOST_CALLBACK)
}

fn created_callbacks(context: &Context) -> Verdict {
    for (code, message) in [(Code::OK, ""), (Code::ABORTED, "given up")] {
        let event = Event::create(context.plugin)?;
        let outcomes = registered(&event, "an event that the host has not completed")?;
        event.set(code, message)?;
        // The event without an error comes first.
        let cause = if code == Code::OK { LOST_CALLBACK } else { NO_CALLBACK_OF_FAILED };
        called_once("of an event that the host completed", &outcomes, cause)?;
        for outcome in &outcomes {
            let error = outcome.wait(patience()).and_then(std::result::Result::err);
            equal("the code that a callback received", error.map_or(Code::OK, |error| error.code), code)?;
        }
    }
    Ok(())
}

fn destroyed_early(context: &Context) -> Verdict {
    // The buffer becomes ready after its event is destroyed.
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
    let event = alias.ready()?;
    let outcome = event.on_ready()?;
    drop(event);
    equal("the number of calls of the callback before the event is complete", outcome.calls(), 0)?;
    client.fulfill(handle, Ok(&upload_four(&client, &[1.0; 4])?))?;
    ensure!(
        outcome.wait(patience()).is_some(),
        "the callback was not called, because its event was destroyed"
    );
    Ok(())
}

fn destroyed_inside(context: &Context) -> Verdict {
    // The buffer becomes ready later, so that nothing else uses its event when the callback destroys it.
    let client = context.client()?;
    let memory = client.device()?.default_memory()?;
    let (alias, handle) = client.alias(ElementType::F32, &[4], memory)?;
    let event = alias.ready()?;
    let owner = Arc::new(Mutex::new(None));
    let inner = Arc::clone(&owner);
    let outcome = event.on_ready_then(move || drop(lock(&inner).take()))?;
    *lock(&owner) = Some(event);
    client.fulfill(handle, Ok(&upload_four(&client, &[1.0; 4])?))?;
    ensure!(outcome.wait(patience()).is_some(), "the callback was not called, or did not return");
    ensure!(lock(&owner).is_none(), "the event was not destroyed within its callback");
    equal("the buffer afterwards", numbers(&alias)?, vec![1.0; 4])
}

/// Contains what an event says within its own callback: whether it is ready, its error, and the outcome of waiting for it.
type Inside = (Result<bool, Error>, Result<(), Error>, Result<(), Error>);

/// Asks an event within its own callback. `complete` makes the event complete.
fn asked_inside(event: Event, complete: impl FnOnce() -> Result<(), Error>) -> Result<Inside, Finding> {
    let (owner, answer) = (Arc::new(Mutex::new(None::<Event>)), Arc::new(Mutex::new(None)));
    let (inner, said) = (Arc::clone(&owner), Arc::clone(&answer));
    let outcome = event.on_ready_then(move || {
        if let Some(event) = &*lock(&inner) {
            *lock(&said) = Some((event.is_ready(), event.error(), event.wait()));
        }
    })?;
    *lock(&owner) = Some(event);
    complete()?;
    ensure!(
        outcome.wait(patience()).is_some(),
        "the callback was not called, or a call with its own event within it does not return"
    );
    let said = lock(&answer).take();
    said.ok_or_else(|| Finding::Wrong("the callback was called before its event was complete".to_owned()))
}

fn ready_inside(context: &Context) -> Verdict {
    let client = context.client()?;
    let program = compile_add(&client)?;
    for (fails, of_execution) in [(false, false), (true, false), (false, true), (true, true)] {
        let pending = Pending::new(&client)?;
        let launched = program.run(&[&pending.array, &pending.array])?;
        let (event, of) = match of_execution {
            false => (pending.array.ready()?, "an array whose data comes later"),
            true => (launched.output(0, 0)?.ready()?, "an output of an execution that waits for an argument"),
        };
        let complete = || match fails {
            false => pending.provide(&client, &[1.0; 4]).map(drop),
            true => pending.fail(&client, (Code::ABORTED, "not today")).map(drop),
        };
        let (is_ready, error, waited) = asked_inside(event, complete)?;
        let outcome = if fails { "failed" } else { "completed" };
        let what = format!("the ready event of {of}, which {outcome}, within its own callback");
        ensure!(
            is_ready?,
            "PJRT_Event_IsReady of {what} is false: the plugin probably calls the callbacks of an event before it sets its state"
        );
        for (function, got) in [("PJRT_Event_Error", error), ("PJRT_Event_Await", waited)] {
            let expected = if fails { "an error" } else { "no error" };
            ensure!(
                got.is_err() == fails,
                "{function} of {what} returns {}; expected {expected}",
                described(Some(&got))
            );
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nested(context: &Context) -> Verdict {
    let _client = context.client()?;
    let event = Arc::new(Event::create(context.plugin)?);
    let reached = Arc::new(AtomicBool::new(false));
    let (inner, inner_reached) = (Arc::clone(&event), Arc::clone(&reached));
    let outcome = event.on_ready_then(move || {
        let then = Arc::clone(&inner_reached);
        // A failed registration is detected because the callback is not called.
        let _ = inner.on_ready_then(move || then.store(true, Ordering::SeqCst));
    })?;
    event.set(Code::OK, "")?;
    ensure!(outcome.wait(patience()).is_some(), "the callback was not called");
    let done = pjrt_testing::host::eventually(patience(), || reached.load(Ordering::SeqCst));
    ensure!(done, "a callback that was registered within a callback was not called");
    Ok(())
}

fn api_in_callback(context: &Context) -> Verdict {
    let client = Arc::new(context.client()?);
    let buffer = upload_four(&client, &[1.0; 4])?;
    let event = Event::create(context.plugin)?;
    let uploaded = Arc::new(AtomicBool::new(false));
    let (inner_client, inner_uploaded) = (Arc::clone(&client), Arc::clone(&uploaded));
    let outcome = event.on_ready_then(move || {
        drop(buffer);
        inner_uploaded.store(upload_four(&inner_client, &[2.0; 4]).is_ok(), Ordering::SeqCst);
    })?;
    event.set(Code::OK, "")?;
    ensure!(outcome.wait(patience()).is_some(), "the callback was not called, or did not return");
    equal("the success of an upload within a callback", uploaded.load(Ordering::SeqCst), true)
}

fn created(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    equal("is_ready", event.is_ready()?, false)
}

fn set_ok(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    let outcome = event.on_ready()?;
    event.set(Code::OK, "")?;
    equal("is_ready", event.is_ready()?, true)?;
    ensure!(
        outcome.wait(patience()) == Some(Ok(())),
        "the callback was not called, or was called with an error"
    );
    Ok(event.wait()?)
}

fn set_error(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::DATA_LOSS, "all gone")?;
    event_fails_with("an event that the host completed", &event, (Code::DATA_LOSS, "all gone"))
}

fn failed_callback(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::DATA_LOSS, "all gone")?;
    fails_with("PJRT_Event_Await of a ready event", event.wait(), Code::DATA_LOSS, "all gone")?;
    fails_with("PJRT_Event_Error of a ready event", event.error(), Code::DATA_LOSS, "all gone")?;
    match event.on_ready()?.wait(patience()) {
        None => {
            Err(Finding::Wrong("PJRT_Event_OnReady of a ready event did not call the callback".to_owned()))
        }
        Some(Ok(())) => Err(Finding::Wrong(format!(
            "PJRT_Event_Await and PJRT_Event_Error return the error DATA_LOSS of a ready event, but PJRT_Event_OnReady calls \
             the callback without an error: {LOST_BY_CALLBACK} if the event is ready already"
        ))),
        Some(error) => fails_with("the callback of a ready event", error, Code::DATA_LOSS, "all gone"),
    }
}

fn failed_is_ready(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::ABORTED, "given up")?;
    ensure!(
        event.is_ready()?,
        "PJRT_Event_IsReady is false for an event that the host completed with an error: the plugin probably takes only events \
         without an error for ready"
    );
    Ok(())
}

fn set_twice(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::OK, "")?;
    ensure!(event.set(Code::INTERNAL, "again").is_err(), "an event was completed twice");
    Ok(event.wait()?)
}

fn distinct_errors(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::CANCELLED, "no more")?;
    let (first, second, distinct) = event.error_twice()?;
    ensure!(
        first.is_some() && second.is_some(),
        "PJRT_Event_Error returned null, which means success, for an event that was completed with CANCELLED"
    );
    ensure!(distinct, "both calls returned the same object, which its two owners would destroy twice");
    ensure!(first == second, "the two calls returned different errors: {first:?} and {second:?}");
    Ok(())
}

fn no_error(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::OK, "")?;
    Ok(event.error()?)
}

fn callback_error(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    let outcome = event.on_ready()?;
    event.set(Code::UNAVAILABLE, "not today")?;
    match outcome.wait(patience()) {
        Some(outcome) => fails_with("the callback", outcome, Code::UNAVAILABLE, "not today"),
        None => Err(hangs("an event that the host completed with PJRT_Event_Set", &event)),
    }
}

fn many_wait(context: &Context) -> Verdict {
    let _client = context.client()?;
    let event = Event::create(context.plugin)?;
    let woken = Arc::new(AtomicUsize::new(0));
    let event = Arc::new(event);
    for _ in 0..4 {
        let (event, woken) = (Arc::clone(&event), Arc::clone(&woken));
        std::thread::spawn(move || {
            if event.wait().is_ok() {
                woken.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
    std::thread::sleep(Duration::from_millis(20));
    event.set(Code::OK, "")?;
    let all = pjrt_testing::host::eventually(patience(), || woken.load(Ordering::SeqCst) == 4);
    ensure!(
        all,
        "only {} of 4 threads that wait in PJRT_Event_Await for one event woke up when it was complete",
        woken.load(Ordering::SeqCst)
    );
    Ok(())
}

fn race(context: &Context) -> Verdict {
    let _client = context.client()?;
    for round in 0..100 {
        let event = Arc::new(Event::create(context.plugin)?);
        let setter = Arc::clone(&event);
        let thread = std::thread::spawn(move || setter.set(Code::OK, ""));
        let outcome = event.on_ready()?;
        let set = thread.join().map_err(|_| Finding::Wrong("a thread panicked".to_owned()))?;
        set?;
        ensure!(outcome.wait(patience()).is_some(), "the callback was not called in round {round}");
        equal("the number of calls of the callback", outcome.calls(), 1)?;
    }
    Ok(())
}

fn own_events(context: &Context) -> Verdict {
    let client = context.client()?;
    one_by_one(&client, "an array", upload_four(&client, &[1.0; 4])?, None)?;
    // Events of arrays that are ready may be one object that is never freed.
    if let Ok(pending) = Pending::new(&client) {
        let (array, gate) = pending.split();
        one_by_one(&client, "an array whose data comes later", array, Some(gate))?;
    }
    match in_error(&client, (Code::DATA_LOSS, "all gone")) {
        Ok(array) => one_by_one(&client, IN_ERROR, array, None),
        Err(_) => Ok(()),
    }
}

/// The array whose events fail, in messages.
const IN_ERROR: &str = "an array in error";

/// Destroys two ready events of an array, one after the other, and uses the second one and a third one in between. Equal pointers
/// are no error, because the plugin may count the owners of an event, or return one that it never frees.
fn one_by_one(client: &Client, what: &str, array: Buffer, gate: Option<Gate>) -> Verdict {
    let (first, second) = (array.ready()?, array.ready()?);
    // This fails if the plugin does not support the query at all.
    first.is_ready()?;
    let why = format!(
        "two calls of PJRT_Buffer_ReadyEvent for {what} returned an event each, and the host destroyed them: {ENDS_WITH_ANOTHER}"
    );
    let wrong = |found: &str| Finding::Wrong(format!("{why}. {found}"));
    risky(&why, || {
        drop(first);
        let _memory = overwrite_freed();
        if gate.is_none() {
            drop(second.wait());
            ensure!(
                second.is_ready()?,
                "the event of {what} is not ready after another event of the array was destroyed"
            );
        }
        drop(second);
        let _more = overwrite_freed();
        let other = Event::create(client.plugin()).ok();
        let third = array.ready()?;
        let called = third.on_ready()?;
        if let Some(gate) = gate {
            gate.provide(client, &[1.0; 4])?;
        }
        let Some(outcome) = called.wait(patience()) else {
            return Err(match third.is_ready()? {
                true => hangs(&format!("the ready event of {what}"), &third),
                false => wrong(&format!("A third event {NEVER_COMPLETE}")),
            });
        };
        if let Some(other) = &other {
            let is_ready = other.is_ready()?;
            ensure!(!is_ready, "{why}. An event that the host created and did not complete is ready");
            other.set(Code::OK, "")?;
        }
        match outcome {
            // Other checks compare the error.
            Err(_) if what == IN_ERROR => Ok(()),
            Err(error) => Err(wrong(&format!("A third event failed: {error}"))),
            Ok(()) => Ok(()),
        }
    })
}

fn code_exists(context: &Context) -> Verdict {
    let error = failure(&context.client()?)?;
    ensure!(
        error.code.name().is_some() && error.code != Code::OK,
        "the code is {}",
        error.code.0.cast_signed()
    );
    Ok(())
}

fn message_exists(context: &Context) -> Verdict {
    ensure!(!failure(&context.client()?)?.message.is_empty(), "the message is empty");
    Ok(())
}

fn message_is_sane(context: &Context) -> Verdict {
    let error = failure(&context.client()?)?;
    ensure!(!error.message_is_broken, "{}", error.message);
    Ok(())
}

fn payloads(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::INTERNAL, "for its payloads")?;
    let outcome = event.payloads_of_error()?;
    outcome.map_err(|why| Finding::Wrong(format!("PJRT_Error_ForEachPayload failed: {why}")))
}

fn own_table(context: &Context) -> Verdict {
    let event = Event::create(context.plugin)?;
    event.set(Code::INTERNAL, "for its table")?;
    match event.error_through_own_table()? {
        Some(((code, message), error)) => {
            equal("the code that the error's own function returns", code, error.code)?;
            equal("the message that the error's own function returns", message, error.message)
        }
        None => Err(Finding::Unsupported("errors have no functions of their own".to_owned())),
    }
}
