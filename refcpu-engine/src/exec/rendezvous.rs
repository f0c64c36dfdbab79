//! Collectives between runs, each of which runs the program of one device.
//!
//! Hosts can launch the devices of a computation separately, with programs that differ between devices. The runs on the devices of
//! a group meet in a session: the n-th runs on all devices of the group form its n-th session. In a session, each device executes
//! the collectives of the group one after another, so a collective is complete when all devices wait.

use super::groups::processes;
use super::process::Process;
use super::{Result, RunError, RunErrorKind};
use crate::graph::CollectiveKind;
use crate::plan::{CollectiveStep, Plan, Step};
use crate::storage::Array;
use pjrt_stablehlo::ir::Location;
use std::collections::{BTreeMap, HashMap};
use std::fmt::{Display, Formatter};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The state that all runs share that may communicate. Clones share one state.
#[derive(Clone)]
pub struct Rendezvous(Arc<Shared>);

struct Shared {
    timeout: Duration,
    /// The groups with sessions, by their devices.
    groups: Mutex<HashMap<Vec<i32>, Group>>,
}

/// A group of devices that execute collectives together.
struct Group {
    /// For each device, the number of sessions that it has joined.
    joined: Vec<u64>,
    /// The sessions that have not ended, by number.
    sessions: BTreeMap<u64, Session>,
}

/// The n-th runs on the devices of a group.
struct Session {
    members: Vec<Member>,
    /// The error of a session that has failed, and its time.
    failed: Option<(RunError, Instant)>,
    /// Signalled when a member or the session changes.
    changed: Arc<Condvar>,
}

/// A device of a session.
#[derive(Default)]
struct Member {
    state: State,
    /// `true` while the run computes: it has begun, and does not wait for other devices.
    is_computing: Arc<AtomicBool>,
}

#[derive(Default)]
enum State {
    /// The run has not been launched.
    #[default]
    Absent,
    /// The run has been launched.
    Launched,
    /// The run waits in a collective.
    Waiting(Offer),
    /// The collective is complete. These are the operands of all members.
    Complete(Arc<[Array]>),
    /// The run has ended.
    Ended,
}

/// A member's part of a collective.
struct Offer {
    kind: CollectiveKind,
    channel: i64,
    location: Location,
    operand: Array,
}

/// The participation of a run on one device in the collectives of its groups.
///
/// Dropping it before [`finish`](Self::finish) fails the runs that communicate with this one.
pub struct Peers {
    shared: Arc<Shared>,
    /// The processes of the program, in the order of the plan's lanes.
    processes: Vec<Process>,
    /// The device of each process.
    devices: Vec<i32>,
    /// The position of this run's process and device.
    lane: usize,
    memberships: Vec<Membership>,
    is_computing: Arc<AtomicBool>,
    /// The error for the other runs when this one ends.
    error: Option<RunError>,
}

/// The place of a run in a session.
struct Membership {
    group: Vec<i32>,
    session: u64,
    position: usize,
}

impl Rendezvous {
    /// Creates the state. A collective fails with [`RunErrorKind::DeadlineExceeded`] if, for `timeout`, none of the devices
    /// that it waits for computes.
    pub fn new(timeout: Duration) -> Self {
        Self(Arc::new(Shared { timeout, groups: Mutex::default() }))
    }

    /// Joins the sessions of a run of one of the plan's lanes, where `devices` contains the device of each lane. The runs on a
    /// device join in the order in which they were launched.
    ///
    /// A device that joins a session after the session has failed receives the session's error, but not longer than the
    /// timeout after the failure. After that time, the device joins the next session.
    ///
    /// # Panics
    /// Panics if `devices` does not contain a device for each lane.
    pub fn join(&self, plan: &Plan, lane: usize, devices: &[i32]) -> Peers {
        assert_eq!(devices.len(), plan.lanes(), "every lane has a device");
        let processes = (0..plan.lanes()).map(|lane| Process::of_lane(plan, lane)).collect();
        let mut peers = Peers {
            shared: Arc::clone(&self.0),
            devices: devices.to_vec(),
            lane,
            memberships: vec![],
            is_computing: Arc::default(),
            error: Some(RunError::new(
                RunErrorKind::FailedPrecondition,
                "its program was launched but could not run",
            )),
            processes,
        };
        let mut groups = self.0.lock();
        for step in &plan.program.steps {
            let Step::Collective(step) = step else { continue };
            let Some((devices, position)) = peers.group(step) else { continue };
            if devices.len() == 1 || peers.memberships.iter().any(|known| known.group == devices) {
                continue;
            }
            let group = groups.entry(devices.clone()).or_insert_with(|| Group::new(devices.len()));
            group.forget_failures(self.0.timeout);
            let session = group.joined[position];
            group.joined[position] += 1;
            let members = group.sessions.entry(session).or_insert_with(|| Session::new(devices.len()));
            members.members[position] =
                Member { state: State::Launched, is_computing: Arc::clone(&peers.is_computing) };
            peers.memberships.push(Membership { group: devices, session, position });
        }
        drop(groups);
        peers
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<i32>, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Group {
    fn new(size: usize) -> Self {
        Self { joined: vec![0; size], sessions: BTreeMap::new() }
    }

    /// Removes the sessions that failed longer ago than this, for devices that have not joined them: they were not launched.
    fn forget_failures(&mut self, timeout: Duration) {
        let joined = &mut self.joined;
        self.sessions.retain(|number, session| {
            let is_old = session.failed.as_ref().is_some_and(|(_, since)| since.elapsed() > timeout);
            let is_over =
                session.members.iter().all(|member| matches!(member.state, State::Absent | State::Ended));
            if is_old && is_over {
                for joined in &mut *joined {
                    *joined = (*joined).max(number + 1);
                }
            }
            !(is_old && is_over)
        });
    }
}

impl Session {
    fn new(size: usize) -> Self {
        let members = (0..size).map(|_| Member::default()).collect();
        Self { members, failed: None, changed: Arc::default() }
    }

    fn fail(&mut self, error: RunError) {
        self.failed.get_or_insert_with(|| (error, Instant::now()));
        self.changed.notify_all();
    }

    /// Completes the collective if all members wait. Fails the session if a collective cannot complete.
    fn advance(&mut self, devices: &[i32]) {
        let offers: Vec<(i32, &Offer)> = (devices.iter().zip(&self.members))
            .filter_map(|(device, member)| match &member.state {
                State::Waiting(offer) => Some((*device, offer)),
                _ => None,
            })
            .collect();
        let Some((first_device, first)) = offers.first() else { return };
        let ended = self.members.iter().position(|member| matches!(member.state, State::Ended));
        if let Some(ended) = ended {
            let error = format!(
                "device {first_device} waits in {first}, but device {} of its group {devices:?} has ended its program",
                devices[ended]
            );
            return self.fail(RunError::new(RunErrorKind::FailedPrecondition, error));
        }
        if offers.len() < self.members.len() {
            return;
        }
        if let Some((device, other)) = offers.iter().find(|(_, offer)| !offer.fits(first)) {
            let mut error = format!(
                "the programs of the group {devices:?} differ in their collectives: device {first_device} executes {first}, \
                 device {device} executes {other}"
            );
            if first.kind != other.kind && first.kind.name() == other.kind.name() {
                let parameters = [first, other].map(|offer| offer.kind.parameters());
                error += &format!("; the first has {}, the second {}", parameters[0], parameters[1]);
            }
            return self.fail(RunError::new(RunErrorKind::FailedPrecondition, error));
        }
        let operands: Arc<[Array]> = offers.iter().map(|(_, offer)| offer.operand.clone()).collect();
        for member in &mut self.members {
            member.state = State::Complete(Arc::clone(&operands));
        }
        self.changed.notify_all();
    }

    /// Returns the error of a member whose peers do not come.
    fn late(&self, position: usize, devices: &[i32], timeout: Duration) -> RunError {
        let State::Waiting(offer) = &self.members[position].state else {
            return RunError::new(RunErrorKind::Internal, "a member waits without an offer");
        };
        let (mut present, mut missing) = (vec![], vec![]);
        for (device, member) in devices.iter().zip(&self.members) {
            match &member.state {
                State::Waiting(_) => present.push(format!("device {device}")),
                State::Absent => missing.push(format!("device {device} (not launched)")),
                _ => missing.push(format!("device {device} (waits for its arguments or for other devices)")),
            }
        }
        let message = format!(
            "{offer} needs all of the devices {devices:?}; {} reached it, but these did not within {timeout:?}: {}",
            present.join(", "),
            missing.join(", ")
        );
        RunError::new(RunErrorKind::DeadlineExceeded, message)
    }
}

impl Offer {
    /// Returns whether these are parts of the same collective.
    fn fits(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.channel == other.channel
            && self.operand.dtype() == other.operand.dtype()
            && self.operand.dims() == other.operand.dims()
    }
}

impl Display for Offer {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let (dtype, dims) = (self.operand.dtype().mlir_name(), self.operand.dims());
        write!(f, "{} of {dtype}{dims:?}", self.kind.name())?;
        if self.channel != 0 {
            write!(f, " on channel {}", self.channel)?;
        }
        if self.location.is_unknown() { Ok(()) } else { write!(f, " at {}", self.location.brief()) }
    }
}

impl Peers {
    /// Returns the devices of the group that executes a collective with this run, and the position of this run among them;
    /// `None` if this run is in no group, or if the group contains a process that the program does not have.
    fn group(&self, step: &CollectiveStep) -> Option<(Vec<i32>, usize)> {
        let own = self.processes[self.lane];
        let lists = processes(&step.collective.groups, &self.processes).into_iter();
        lists.map(|(_, group)| group).find_map(|group| {
            let position = group.iter().position(|process| *process == own)?;
            let device = |process: &Process| {
                Some(self.devices[self.processes.iter().position(|known| known == process)?])
            };
            Some((group.iter().map(device).collect::<Option<Vec<i32>>>()?, position))
        })
    }

    /// Waits until all devices of the group have reached a collective. Returns the operands of all of them, and the position of
    /// this run among them; `None` if this run is in no group.
    ///
    /// # Errors
    /// Returns [`RunErrorKind::DeadlineExceeded`] if a device does not come, [`RunErrorKind::FailedPrecondition`] if a device has
    /// ended its program or executes another collective, and the error of a device that has failed.
    pub(super) fn exchange(
        &self,
        step: &CollectiveStep,
        location: &Location,
        operand: Array,
    ) -> Result<Option<(Arc<[Array]>, usize)>> {
        let Some((group, position)) = self.group(step) else { return Ok(None) };
        if group.len() == 1 {
            return Ok(Some((Arc::new([operand]), 0)));
        }
        let membership = self.memberships.iter().find(|membership| membership.group == group);
        let membership = membership.ok_or_else(|| {
            RunError::new(RunErrorKind::Internal, "a run has not joined the group of its collective")
        })?;
        let collective = &step.collective;
        let (kind, location) = (collective.kind.clone(), location.clone());
        let offer = Offer { kind, channel: collective.channel, location, operand };
        self.is_computing.store(false, Ordering::Relaxed);
        let operands = self.wait(membership, offer);
        self.is_computing.store(true, Ordering::Relaxed);
        Ok(Some((operands?, position)))
    }

    fn wait(&self, membership: &Membership, offer: Offer) -> Result<Arc<[Array]>> {
        let Membership { group, position, .. } = membership;
        let timeout = self.shared.timeout;
        let mut groups = self.shared.lock();
        let session = membership.session(&mut groups)?;
        session.members[*position].state = State::Waiting(offer);
        session.advance(group);
        let mut idle_since = Instant::now();
        loop {
            let session = membership.session(&mut groups)?;
            let state = &mut session.members[*position].state;
            if matches!(state, State::Complete(_)) {
                let State::Complete(operands) = mem::replace(state, State::Launched) else { unreachable!() };
                return Ok(operands);
            }
            if let Some((error, _)) = &session.failed {
                return Err(error.clone());
            }
            if session.members.iter().any(|member| member.is_computing.load(Ordering::Relaxed)) {
                idle_since = Instant::now();
            } else if idle_since.elapsed() >= timeout {
                session.fail(session.late(*position, group, timeout));
                continue;
            }
            let changed = Arc::clone(&session.changed);
            groups = changed.wait_timeout(groups, timeout / 8).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Marks the begin of the run.
    pub(super) fn begin(&self) {
        self.is_computing.store(true, Ordering::Relaxed);
    }

    /// Ends the participation. The runs that communicate with this one fail with its error.
    pub fn finish(mut self, outcome: Result<(), &RunError>) {
        self.error = outcome.err().cloned();
    }
}

impl Membership {
    fn session<'a>(&self, groups: &'a mut HashMap<Vec<i32>, Group>) -> Result<&'a mut Session> {
        let session = groups.get_mut(&self.group).and_then(|group| group.sessions.get_mut(&self.session));
        session.ok_or_else(|| {
            RunError::new(RunErrorKind::Internal, "the session of a collective ended before its members")
        })
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.is_computing.store(false, Ordering::Relaxed);
        let device = self.devices[self.lane];
        let error = self.error.take().map(|error| {
            let message =
                format!("device {device}, with which this program communicates, failed: {}", error.message);
            RunError::new(error.kind, message)
        });
        let mut groups = self.shared.lock();
        for membership in &self.memberships {
            let Ok(session) = membership.session(&mut groups) else { continue };
            session.members[membership.position].state = State::Ended;
            match &error {
                Some(error) => session.fail(error.clone()),
                None => session.advance(&membership.group),
            }
            if session.members.iter().all(|member| matches!(member.state, State::Ended))
                && let Some(group) = groups.get_mut(&membership.group)
            {
                group.sessions.remove(&membership.session);
                if group.sessions.is_empty() && group.joined.iter().all(|joined| *joined == group.joined[0]) {
                    groups.remove(&membership.group);
                }
            }
        }
    }
}
