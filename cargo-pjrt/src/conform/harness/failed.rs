//! The comparison of an error that the host passed with what the observers of an event receive.

use super::causes::{
    CHANGED_BY_CALLBACK, MISSED_CALLBACKS, NEVER_COMPLETE, NO_CALLBACK_OF_FAILED, NOT_IN_READY_EVENT,
};
use super::context::patience;
use super::verdict::{Finding, LOST_BY_CALLBACK, LOST_CALLBACK, Verdict, described, kept_text};
use pjrt_testing::host::{Buffer, Code, Event, Result};

/// An error of the host: its code, and a text that its message contains.
type HostError<'t> = (Code, &'t str);

fn is_own(got: &Result<()>, (code, text): HostError<'_>) -> bool {
    got.as_ref().is_err_and(|got| got.code == code && got.message.contains(text))
}

/// Returns why the callback of an event was not called in time.
fn why_it_hangs(event: &Event) -> String {
    if !event.is_ready().unwrap_or(false) {
        return NEVER_COMPLETE.to_owned();
    }
    match event.wait() {
        Ok(()) => format!("is complete, but its callback was not called: {}", why_of(event)),
        Err(error) => {
            format!("has the error {error}, but its callback was not called: {NO_CALLBACK_OF_FAILED}")
        }
    }
}

/// Returns why the callback of an event without an error, which is ready now, was not called.
fn why_of(event: &Event) -> &'static str {
    let later = event.on_ready().ok().and_then(|called| called.wait(patience() / 4));
    if later.is_none() { MISSED_CALLBACKS } else { LOST_CALLBACK }
}

/// Returns the finding about an event, which `what` names, whose callback was not called in time.
pub(crate) fn hangs(what: &str, event: &Event) -> Finding {
    Finding::Wrong(format!("{what} {}", why_it_hangs(event)))
}

/// Returns what is wrong about the error of an event, and whether the event completed without an error for each observer.
fn wrong_of(event: &Event, error: HostError<'_>) -> Result<Option<(String, bool)>> {
    let Some(called) = event.on_ready()?.wait(patience()) else {
        return Ok(Some((why_it_hangs(event), false)));
    };
    let (awaited, asked) = (event.wait(), event.error());
    let (again, last) = (event.on_ready()?.wait(patience()).unwrap_or(Ok(())), event.wait());
    let observed = [
        ("the callback of PJRT_Event_OnReady", &called),
        ("PJRT_Event_Await", &awaited),
        ("PJRT_Event_Error", &asked),
        ("a second callback", &again),
        ("a second PJRT_Event_Await", &last),
    ];
    let is_right = observed.map(|(_, got)| is_own(got, error));
    if is_right.iter().all(|right| *right) {
        return Ok(None);
    }
    let is_lost = observed.iter().all(|(_, got)| got.is_ok());
    let cause = cause_of(&observed, is_right);
    let observer = observed.iter().zip(is_right).find(|(_, right)| !right).map(|(observed, _)| *observed);
    let right: Vec<&str> =
        observed.iter().zip(is_right).filter(|(_, right)| *right).map(|((name, _), _)| *name).collect();
    let others = match right.is_empty() {
        true => String::new(),
        false => format!(" ({} received it)", right.join(", ")),
    };
    let ended = if is_lost { "completes" } else { "failed" };
    let (name, got) = observer.map_or(("", String::new()), |(name, got)| (name, described(Some(got))));
    Ok(Some((format!("{ended}, and {name} receives {got}{others}: {cause}"), is_lost)))
}

/// Returns the probable cause of an error that some observers do not receive: a callback, PJRT_Event_Await, PJRT_Event_Error, a second
/// callback and a second PJRT_Event_Await, in this order.
fn cause_of(observed: &[(&str, &Result<()>); 5], is_right: [bool; 5]) -> &'static str {
    let kept = observed.iter().find_map(|(_, got)| kept_text(&got.as_ref().err()?.message));
    let lost = observed.map(|(_, got)| got.is_ok());
    match is_right {
        _ if kept.is_some() => kept.unwrap_or_default(),
        _ if lost == [true; 5] => {
            "no observer receives the error, which the plugin probably loses before it completes the event"
        }
        [false, true, true, false, true] if lost[0] => LOST_BY_CALLBACK,
        [false, true, true, false, true] => CHANGED_BY_CALLBACK,
        [false, false, false, false, false] => {
            "the plugin probably replaces the code, or cuts the message, before it completes the event"
        }
        [true, false, ..] => {
            "the plugin probably hands its only error object to the first observer; each one receives an error of its own"
        }
        _ => "the plugin probably drops or replaces the error for this observer",
    }
}

/// Returns the end of a message: the error that the observers should have received.
fn expected((code, text): HostError<'_>) -> String {
    let shown: String = text.chars().take(40).collect();
    format!("Expected the host's error {code} with a message of {} bytes, {shown:?}", text.len())
}

/// Fails the check unless each observer of an event, which `what` names, receives the error of the host.
pub(crate) fn event_fails_with(what: &str, event: &Event, error: HostError<'_>) -> Verdict {
    match wrong_of(event, error)? {
        None => Ok(()),
        Some((wrong, _)) => Err(Finding::Wrong(format!("{what} {wrong}. {}", expected(error)))),
    }
}

/// Fails the check unless each observer of the ready event of an array, which `what` names, receives the error of the host. If
/// only the ready event lacks it, the message says so.
pub(crate) fn array_fails_with(what: &str, array: &Buffer, error: HostError<'_>) -> Verdict {
    let Some((wrong, is_lost)) = wrong_of(&array.ready()?, error)? else { return Ok(()) };
    // A readback of an array that is never ready hangs.
    let is_in_readback = is_lost && is_own(&array.read().map(drop), error);
    let cause = match is_in_readback {
        true => format!(". A readback of the array has the error: {NOT_IN_READY_EVENT}"),
        false => String::new(),
    };
    Err(Finding::Wrong(format!("the ready event of {what} {wrong}{cause}. {}", expected(error))))
}
