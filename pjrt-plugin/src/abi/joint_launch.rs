//! Launches of a program on one device at a time (`execute_device`).
//!
//! If the devices of a program communicate, no device can run it alone. The launches on single devices wait for each other,
//! and the n-th launches on all devices are combined into one execution.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::core::event::EventSource;
use crate::core::sync::lock;
use crate::device::DeviceId;
use crate::error::{Error, Result};
use crate::execution::Execution;

/// The programs of a client with launches on single devices, by fingerprint and devices. Hosts can load one program several
/// times, for example on each of their threads.
pub(crate) struct JointLaunches<B: Send + Sync + 'static>(Mutex<HashMap<Key, Weak<JointLaunch<B>>>>);

type Key = (String, Vec<DeviceId>);

/// The launches of one program. Dropping it fails the waiting launches.
pub(crate) struct JointLaunch<B: Send + Sync + 'static>(Arc<Shared<B>>);

struct Shared<B> {
    program: String,
    devices: Vec<DeviceId>,
    limit: Duration,
    state: Mutex<State<B>>,
    /// Signalled when the program is destroyed.
    closed: Condvar,
}

struct State<B> {
    /// The number of launches on each device.
    launches: Vec<u64>,
    /// The waiting executions, by number of the launch.
    rounds: BTreeMap<u64, Round<B>>,
    /// `true` while a thread enforces the time limit.
    is_watched: bool,
    is_closed: bool,
}

/// The n-th launches on all devices.
struct Round<B> {
    since: Instant,
    waiting: Vec<Option<Waiting<B>>>,
    launched: usize,
    /// The error of a round that has failed. Later launches of the round fail with it.
    failed: Option<Error>,
}

/// An execution on one device, and the source of the event that completes when it no longer waits for the others.
type Waiting<B> = (Execution<B>, EventSource);

impl<B: Send + Sync + 'static> JointLaunches<B> {
    pub(crate) fn new() -> Self {
        Self(Mutex::default())
    }

    /// Returns the launches of a program on these devices.
    pub(crate) fn of_program(
        &self,
        name: &str,
        fingerprint: &str,
        devices: &[DeviceId],
        limit: Duration,
    ) -> Arc<JointLaunch<B>> {
        let mut all = lock(&self.0);
        all.retain(|_, joint| joint.strong_count() > 0);
        let key = (fingerprint.to_owned(), devices.to_vec());
        if let Some(joint) = all.get(&key).and_then(Weak::upgrade) {
            return joint;
        }
        let joint = Arc::new(JointLaunch::new(name, devices, limit));
        all.insert(key, Arc::downgrade(&joint));
        joint
    }
}

impl<B: Send + Sync + 'static> JointLaunch<B> {
    fn new(program: &str, devices: &[DeviceId], limit: Duration) -> Self {
        let state = State {
            launches: vec![0; devices.len()],
            rounds: BTreeMap::new(),
            is_watched: false,
            is_closed: false,
        };
        let (program, devices) = (program.to_owned(), devices.to_vec());
        Self(Arc::new(Shared { program, devices, limit, state: Mutex::new(state), closed: Condvar::new() }))
    }

    /// Adds a launch on one device. The launch on the last device runs the execution on all devices, whose error is the error
    /// of all launches. `launched` completes when the launch no longer waits for launches on other devices.
    ///
    /// # Errors
    ///
    /// Returns INTERNAL if the thread that enforces the time limit cannot be started.
    pub(crate) fn add(
        &self,
        execution: Execution<B>,
        launched: EventSource,
        run: impl FnOnce(Execution<B>) -> Result<()>,
    ) -> Result<()> {
        let device = execution.devices().first();
        let index = self.0.devices.iter().position(|id| Some(id) == device);
        let index = index.ok_or_else(|| {
            Error::internal(format!(
                "the program was launched on the devices {:?}, which are not among those that it is loaded on: {:?}",
                execution.devices(),
                self.0.devices
            ))
        })?;
        let mut state = lock(&self.0.state);
        if !state.is_watched {
            self.0.watch()?;
            state.is_watched = true;
        }
        let (parts, failed) = state.add(index, (execution, launched));
        drop(state);
        let (parts, launched): (Vec<Execution<B>>, Vec<EventSource>) = parts.into_iter().unzip();
        launched.into_iter().for_each(|source| source.complete(Ok(())));
        if let Some(error) = failed {
            parts.into_iter().for_each(|execution| execution.fail(error.clone()));
        } else if !parts.is_empty() {
            let (execution, joint) = Execution::joined(parts);
            joint.run(execution, run);
        }
        Ok(())
    }
}

impl<B> State<B> {
    /// Adds a launch on a device. Returns the executions that do not wait, in the order of the devices: those of all devices or,
    /// with the error of the round, this one.
    fn add(&mut self, index: usize, waiting: Waiting<B>) -> (Vec<Waiting<B>>, Option<Error>) {
        let number = self.launches[index];
        self.launches[index] += 1;
        let devices = self.launches.len();
        let round = self.rounds.entry(number).or_insert_with(|| Round {
            since: Instant::now(),
            waiting: (0..devices).map(|_| None).collect(),
            launched: 0,
            failed: None,
        });
        round.launched += 1;
        round.waiting[index] = Some(waiting);
        if round.launched < devices && round.failed.is_none() {
            return (vec![], None);
        }
        let parts = round.waiting.iter_mut().filter_map(Option::take).collect();
        let failed = round.failed.clone();
        if round.launched == devices {
            self.rounds.remove(&number);
        }
        (parts, failed)
    }
}

impl<B: Send + Sync + 'static> Shared<B> {
    /// Starts the thread that fails launches after the time limit. It ends when no launch waits.
    fn watch(self: &Arc<Self>) -> Result<()> {
        let shared = Arc::clone(self);
        let started = thread::Builder::new().name("pjrt-launches".to_owned()).spawn(move || shared.expire());
        started.map(drop).map_err(|error| {
            Error::internal(format!(
                "the thread that limits the waiting time of launches cannot be started: {error}"
            ))
        })
    }

    fn expire(&self) {
        let mut state = lock(&self.state);
        loop {
            let waiting = state.rounds.values().filter(|round| round.failed.is_none());
            let Some(oldest) = waiting.map(|round| round.since).min().filter(|_| !state.is_closed) else {
                state.is_watched = false;
                return;
            };
            let left = self.limit.saturating_sub(oldest.elapsed());
            if !left.is_zero() {
                let woken = self.closed.wait_timeout(state, left);
                state = woken.unwrap_or_else(std::sync::PoisonError::into_inner).0;
                continue;
            }
            let late = state.rounds.values_mut().filter(|round| round.failed.is_none());
            let late = late.filter(|round| round.since.elapsed() >= self.limit);
            let failed: Vec<(Waiting<B>, Error)> = late.flat_map(|round| self.give_up(round)).collect();
            drop(state);
            failed.into_iter().for_each(|(waiting, error)| fail(waiting, error));
            state = lock(&self.state);
        }
    }

    /// Fails a round. Returns its executions with their error.
    fn give_up(&self, round: &mut Round<B>) -> Vec<(Waiting<B>, Error)> {
        let list = |launched: bool| {
            let all = self.devices.iter().zip(&round.waiting);
            let mut text = String::new();
            for (device, _) in all.filter(|(_, waiting)| waiting.is_some() == launched) {
                let _ = write!(text, "{}{device}", if text.is_empty() { "" } else { ", " });
            }
            text
        };
        let error = Error::deadline_exceeded(format!(
            "the program '{}' was launched on device {}, but not within {:?} on device {}, which it communicates with",
            self.program,
            list(true),
            self.limit,
            list(false)
        ))
        .with_hint("launch the same program on each of its devices; programs that differ between devices are not combined");
        round.failed = Some(error.clone());
        round.waiting.iter_mut().filter_map(Option::take).map(|part| (part, error.clone())).collect()
    }
}

fn fail<B: Send + Sync + 'static>((execution, launched): Waiting<B>, error: Error) {
    launched.complete(Ok(()));
    execution.fail(error);
}

impl<B: Send + Sync + 'static> Drop for JointLaunch<B> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.is_closed = true;
        let rounds = std::mem::take(&mut state.rounds);
        drop(state);
        self.0.closed.notify_all();
        let error = Error::failed_precondition(format!(
            "the program '{}' was destroyed before it was launched on all of its devices {:?}, which communicate",
            self.0.program, self.0.devices
        ));
        let waiting = rounds.into_values().flat_map(|round| round.waiting).flatten();
        waiting.for_each(|waiting| fail(waiting, error.clone()));
    }
}
