//! Events that the host completes, observed in random orders.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use super::plan::{Theme, without_parts, write_steps};
use super::world::{IN_VAIN, World};
use crate::array::random::Random;
use crate::conform::harness::{Finding, LOST_CALLBACK, Verdict, ensure, equal, lost_error, patience};
use pjrt_testing::host::{Code, Error, Event, Outcome, Plugin};

/// Events of a plugin.
pub(super) struct Events<'w, 'c>(pub(super) &'w World<'c>, pub(super) Plugin);

#[derive(Clone)]
enum Step {
    Create(usize),
    OnReady(usize),
    /// Waits on another thread.
    Await(usize),
    IsReady(usize),
    /// Completes the event with this code, and a message of this length.
    Set(usize, u32, usize),
    /// Queries the error several times.
    Error(usize),
    /// Destroys a complete event.
    Destroy(usize),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(event) => write!(f, "create event {event}"),
            Self::OnReady(event) => write!(f, "PJRT_Event_OnReady of event {event}"),
            Self::Await(event) => write!(f, "PJRT_Event_Await of event {event} on a thread"),
            Self::IsReady(event) => write!(f, "PJRT_Event_IsReady of event {event}"),
            Self::Set(event, 0, _) => write!(f, "complete event {event}"),
            Self::Set(event, code, len) => {
                write!(f, "complete event {event} with {} and a message of {len} bytes", Code(*code))
            }
            Self::Error(event) => write!(f, "PJRT_Event_Error of event {event}"),
            Self::Destroy(event) => write!(f, "destroy event {event}"),
        }
    }
}

#[derive(Clone)]
pub(super) struct Plan(Vec<Step>);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_steps(f, &self.0)
    }
}

impl Theme for Events<'_, '_> {
    type Plan = Plan;

    fn plan(&self, random: &mut Random) -> Plan {
        let (events, mut steps) = (1 + random.below(5), Vec::new());
        for event in 0..events {
            steps.push(Step::Create(event));
        }
        for _ in 0..5 + random.below(60) {
            let event = random.below(events);
            steps.push(match random.below(24) {
                0..=9 => Step::OnReady(event),
                10..=13 => Step::Await(event),
                14..=17 => Step::IsReady(event),
                18..=19 => {
                    let code = if random.one_in(4) { 0 } else { 1 + random.below(16) as u32 };
                    Step::Set(event, code, 1 + random.below(300))
                }
                20..=21 => Step::Error(event),
                22 => Step::Destroy(event),
                _ => Step::Create(events + steps.len()),
            });
        }
        Plan(steps)
    }

    fn run(&self, Plan(steps): &Plan) -> Verdict {
        let mut run = Run { plugin: self.1, events: BTreeMap::new() };
        for step in steps {
            self.0.performing(step, || run.step(step))?;
        }
        run.end()
    }

    fn simpler(&self, Plan(steps): &Plan) -> Vec<Plan> {
        without_parts(steps).into_iter().map(Plan).collect()
    }
}

/// An observer of an event.
enum Observer {
    Callback(Arc<Outcome>),
    Thread(Receiver<Result<(), Error>>),
}

/// The code and the message of an event; `OK` has none.
type Status = (Code, String);

struct Observed {
    /// `None` if it was destroyed.
    event: Option<Arc<Event>>,
    observers: Vec<Observer>,
    status: Option<Status>,
}

struct Run {
    plugin: Plugin,
    events: BTreeMap<usize, Observed>,
}

/// Returns a message of this length, which differs for each event.
fn message(event: usize, len: usize) -> String {
    let text = format!("event {event} failed \u{e4}\u{20ac} ");
    let mut message: String = text.chars().cycle().take(len).collect();
    message.push('.');
    message
}

impl Run {
    fn step(&mut self, step: &Step) -> Verdict {
        let (Step::Create(number)
        | Step::OnReady(number)
        | Step::Await(number)
        | Step::IsReady(number)
        | Step::Set(number, ..)
        | Step::Error(number)
        | Step::Destroy(number)) = step;
        if let Step::Create(_) = step {
            let event = Some(Arc::new(Event::create(self.plugin)?));
            self.events.insert(*number, Observed { event, observers: Vec::new(), status: None });
            return Ok(());
        }
        let Some(observed) = self.events.get_mut(number) else { return Ok(()) };
        let Some(event) = observed.event.clone() else { return Ok(()) };
        match step {
            Step::OnReady(_) => observed.observers.push(Observer::Callback(event.on_ready()?)),
            Step::Await(_) => observed.observers.push(Observer::Thread(waiting(event))),
            Step::IsReady(_) => {
                equal(
                    &format!("PJRT_Event_IsReady of event {number}"),
                    event.is_ready()?,
                    observed.status.is_some(),
                )?;
            }
            Step::Set(_, code, len) if observed.status.is_none() => {
                let (code, message) = (Code(*code), message(*number, *len));
                event.set(code, if code == Code::OK { "" } else { &message })?;
                observed.status = Some((code, message));
            }
            Step::Error(_) => observed.has_error(*number, &event)?,
            // A thread that waits still uses the event.
            Step::Destroy(_) if observed.status.is_some() => {
                observed.finish(*number)?;
                observed.event = None;
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes all events, and compares what all observers were told.
    fn end(mut self) -> Verdict {
        for (number, observed) in &mut self.events {
            if let (None, Some(event)) = (&observed.status, &observed.event) {
                event.set(Code::OK, "")?;
                observed.status = Some((Code::OK, String::new()));
            }
            observed.finish(*number)?;
        }
        Ok(())
    }
}

/// Waits for an event on a thread, which remains if the call does not return.
fn waiting(event: Arc<Event>) -> Receiver<Result<(), Error>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let outcome = event.wait();
        // The event is not needed longer than the call.
        drop(event);
        let _ = send.send(outcome);
    });
    receive
}

impl Observed {
    /// Fails unless the outcome is the status of the event.
    fn is_told(&self, what: &str, outcome: Result<(), Error>) -> Verdict {
        let Some((code, message)) = &self.status else { return Ok(()) };
        match outcome {
            Ok(()) => ensure!(
                *code == Code::OK,
                "{what} reports no error; expected {code}: {message}; {}",
                lost_error(what)
            ),
            Err(error) => ensure!(
                error.code == *code && error.message.contains(message.as_str()),
                "{what} reports {error}; expected {code}: {message}"
            ),
        }
        Ok(())
    }

    fn has_error(&self, number: usize, event: &Event) -> Verdict {
        if self.status.is_none() {
            return Ok(());
        }
        self.is_told(&format!("PJRT_Event_Error of event {number}"), event.error())?;
        let (first, second, _) = event.error_twice()?;
        for (how, error) in [("first", first), ("second", second)] {
            let what = format!("the {how} of two copies of the error of event {number}");
            self.is_told(&what, error.map_or(Ok(()), Err))?;
        }
        Ok(())
    }

    /// Compares what the observers were told.
    fn finish(&mut self, number: usize) -> Verdict {
        let of = self.observers.len();
        for (at, observer) in std::mem::take(&mut self.observers).into_iter().enumerate() {
            let (what, outcome) = match &observer {
                Observer::Callback(outcome) => ("callback", outcome.wait(patience())),
                Observer::Thread(thread) => ("PJRT_Event_Await", thread.recv_timeout(patience()).ok()),
            };
            let what = format!("observer {at} of {of} ({what} of event {number})");
            let Some(outcome) = outcome else {
                let cause = match observer {
                    Observer::Callback(_) => format!("; {LOST_CALLBACK}"),
                    Observer::Thread(_) => String::new(),
                };
                return Err(Finding::Wrong(format!(
                    "the event of {what} {IN_VAIN} {limit:?} after it was set{cause}",
                    limit = patience()
                )));
            };
            if let Observer::Callback(outcome) = &observer {
                equal(&format!("the number of calls of {what}"), outcome.calls(), 1)?;
            }
            self.is_told(&what, outcome)?;
        }
        Ok(())
    }
}
