//! Checks that each observer of an event receives its error, in whatever order they observe it.

use std::sync::Arc;

use super::entry::{Entry, check};
use super::pending::in_error;
use super::program_text::launch;
use crate::conform::harness::{
    CHANGED_BY_CALLBACK, Context, Finding, LOST_CALLBACK, NO_CALLBACK_OF_FAILED, Verdict, compile_add,
    ensure, kept_text, lost_error, patience, permutations, upload_four,
};
use pjrt_testing::host::{Client, Code, CopyLayout, Error, Event, Outcome, Result};

pub(super) const CHECKS: &[Entry] = &[
    check(
        "event/every_observer_gets_the_error",
        "PJRT_Event_Await, PJRT_Event_Error and each callback return the error of an event, in whatever order and however often.",
        created,
        "PJRT_Event_Error after PJRT_Event_Await skip",
    )
    .header("PJRT_Event_Error", "Each of these `PJRT_Error *` pointers are independent of `PJRT_Error *`s returned by other function calls, so they must each be freed separately.")
    .since(89)
    .also(&[
        "event/callback_of_a_failed_one",
        "event/callbacks_of_a_created_one",
        "event/each_asking_gives_a_new_error",
        "event/every_observer_of_data_gets_the_error",
        "event/set_an_error",
        "isolation/events",
        "codes/*",
    ]),
    check(
        "event/every_observer_of_data_gets_the_error",
        "Each observer of a failed array, readback or execution receives its error: PJRT_Event_Await, PJRT_Event_Error, callbacks, and the events of a second query.",
        of_data,
        "PJRT_Event_Await after PJRT_Event_Await skip",
    )
    .header("PJRT_Event_Error", "Each of these `PJRT_Error *` pointers are independent of `PJRT_Error *`s returned by other function calls, so they must each be freed separately.")
    .also(&["event/every_observer_gets_the_error"]),
];

/// An observer of an event: its name, and the function that returns what it observes.
type Observer = (&'static str, fn(&Event) -> Result<()>);

/// The observers after the event is complete.
const OBSERVERS: [Observer; 4] = [
    ("PJRT_Event_Await", Event::wait),
    ("PJRT_Event_Error", Event::error),
    ("a callback of PJRT_Event_OnReady that is registered afterwards", called_back),
    ("a second PJRT_Event_Await", Event::wait),
];

fn called_back(event: &Event) -> Result<()> {
    outcome_of(&*event.on_ready()?)
}

/// The message about a callback that was not called.
const MISSED: &str = "it succeeded, but the callback was not called";

fn outcome_of(outcome: &Outcome) -> Result<()> {
    outcome.wait(patience()).unwrap_or_else(|| Err(Error::broken("PJRT_Event_OnReady", MISSED)))
}

/// The orders in which the observers observe an event.
fn orders() -> Vec<Vec<usize>> {
    let mut orders = permutations(OBSERVERS.len());
    orders.push((0..OBSERVERS.len()).collect());
    orders
}

/// Lets all observers observe an event of which the callbacks were registered before it completed, and compares what they
/// receive.
fn observe(
    what: &str,
    event: &Event,
    before: &[Arc<Outcome>],
    order: &[usize],
    expected: (Code, &str),
) -> Verdict {
    let early = before.iter().map(|outcome| ("a callback of PJRT_Event_OnReady", outcome_of(outcome)));
    let late = order.iter().map(|index| (OBSERVERS[*index].0, OBSERVERS[*index].1(event)));
    let mut received: Option<&str> = None;
    let mut has_called = false;
    let all: Vec<_> = early.chain(late).collect();
    if all.iter().all(|(_, got)| got.is_ok()) {
        return Err(Finding::Wrong(format!(
            "{what} failed with {}: {:?}, and no observer receives the error: the plugin probably loses it where the event fails",
            expected.0, expected.1
        )));
    }
    for (observer, got) in all {
        let is_right =
            got.as_ref().is_err_and(|got| got.code == expected.0 && got.message.contains(expected.1));
        if is_right {
            received = Some(observer);
            has_called |= observer.contains("callback");
            continue;
        }
        let earlier = received.map(|earlier| format!("; {earlier} received it before")).unwrap_or_default();
        if got.as_ref().is_err_and(|got| got.message.contains(MISSED)) {
            let cause = if has_called { LOST_CALLBACK } else { NO_CALLBACK_OF_FAILED };
            return Err(Finding::Wrong(format!(
                "{what} failed, and {observer} was not called in {limit:?}{earlier}; {cause}",
                limit = patience()
            )));
        }
        let cause = match (&got, received) {
            (Err(got), _) if kept_text(&got.message).is_some() => kept_text(&got.message).unwrap_or_default(),
            (Ok(()), Some(_)) => {
                "the plugin probably hands its only error object to the first observer; each one receives an error of its own"
            }
            (Ok(()), None) => lost_error(observer),
            (Err(_), _) if observer.contains("callback") => CHANGED_BY_CALLBACK,
            _ => "the plugin probably replaces the error for this observer",
        };
        let got = got.err().map_or_else(|| "no error".to_owned(), |error| error.to_string());
        return Err(Finding::Wrong(format!(
            "{what} failed with {}: {:?}. {observer} received {got}{earlier}: {cause}",
            expected.0, expected.1
        )));
    }
    Ok(())
}

const GONE: (Code, &str) = (Code::DATA_LOSS, "all gone");

fn created(context: &Context) -> Verdict {
    for order in orders() {
        for callbacks in [0, 2] {
            let event = Event::create(context.plugin)?;
            let before = (0..callbacks).map(|_| event.on_ready()).collect::<Result<Vec<_>>>()?;
            let early = before.iter().map(|outcome| outcome.calls()).sum::<usize>();
            ensure!(
                early == 0,
                "PJRT_Event_OnReady called the callback of an event before the host completed it: the plugin probably does not ask whether \
                 the event is ready"
            );
            event.set(GONE.0, GONE.1)?;
            observe("an event that the host completed with PJRT_Event_Set", &event, &before, &order, GONE)?;
        }
    }
    Ok(())
}

/// Returns events that fail with the host's error, each with its name.
fn failed_events(client: &Client) -> std::result::Result<Vec<(&'static str, Event)>, Finding> {
    let bad = in_error(client, GONE)?;
    let mut events = vec![
        ("the ready event of an array in error", bad.ready()?),
        ("the second ready event of an array in error", bad.ready()?),
    ];
    // The call may return the error instead of an event.
    if let Ok((_, event)) = bad.start_read(16, &CopyLayout::Unsaid) {
        events.push(("the event of a readback of an array in error", event));
    }
    let good = upload_four(client, &[1.0; 4])?;
    if let Ok(mut launched) = launch(&compile_add(client)?, &[&good, &bad], 0) {
        let output = launched.take_output()?;
        events.push(("the ready event of an output of a failed execution", output.ready()?));
        events.push(("the event of a device of a failed execution", launched.done.remove(0)));
    }
    Ok(events)
}

fn of_data(context: &Context) -> Verdict {
    let client = context.client()?;
    for order in orders() {
        for (what, event) in failed_events(&client)? {
            // Other checks compare the error of an execution with that of its argument, and find events without an error.
            let Err(first) = event.wait() else { continue };
            let message: String = first.message.chars().take(40).collect();
            observe(what, &event, &[], &order, (first.code, &message))?;
        }
    }
    Ok(())
}
