//! The parent's handle of a child process that runs checks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use super::harness::{Check, Finished, Message, Status, Step};
use super::options::{Isolation, Options};
use crate::process::child::{Ending, Prints, Received, Worker};

/// The number of consecutive checks that must fail in the same time-consuming way before the remaining checks
/// are skipped.
pub(super) const TRIES: usize = 3;

/// A process that runs checks.
pub(super) struct Process {
    worker: Worker,
    reached: Reached,
    isolation: Isolation,
    /// The number of clients that the process tried to create, and whether the last attempt ended.
    clients: (usize, bool),
    /// The name of the current check.
    check: String,
    /// The plugin's message about an option that it does not know.
    pub(super) unknown_option: Option<String>,
    /// The step of a random sequence of calls that the current check performs.
    performed: Option<String>,
    /// The functions that the current check called, in the order of their first calls.
    called: Vec<String>,
    /// `true` if the process ended because it could no longer write to its parent.
    pub(super) is_lost: bool,
}

/// The current activity of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    Loading,
    Loaded,
    Initializing,
    Checking,
}

/// The end of a check.
pub(super) enum End {
    /// The check returned an outcome.
    Finished(Finished),
    /// The check entered a step that took too long in earlier checks.
    Skipped(Step),
    /// The process cannot continue.
    Broken(Status, String),
}

impl Process {
    pub(super) fn start<'c>(
        options: &Options,
        program: &Path,
        no_client: Option<&str>,
        waited: usize,
        failed: impl Iterator<Item = &'c str>,
        checks: impl Iterator<Item = &'c &'c Check>,
    ) -> Result<Self, String> {
        let mut arguments: Vec<OsString> = vec!["conform-child".into(), options.plugin.clone().into()];
        arguments.extend(options.create_options.iter().map(|option| format!("--option={option}").into()));
        arguments.extend(no_client.map(|why| format!("--no-client={why}").into()));
        arguments.push(format!("--waited={waited}").into());
        arguments.extend(failed.map(|name| format!("--failed={name}").into()));
        arguments.push(format!("--seed={}", options.sequences.seed).into());
        arguments.extend(options.sequences.rounds.map(|rounds| format!("--rounds={rounds}").into()));
        arguments.extend(checks.map(|check| OsString::from(&check.name)));
        let worker = Worker::start(program, &arguments, Prints::Kept);
        let worker = worker.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        Ok(Self {
            worker,
            reached: Reached::Loading,
            isolation: options.isolation,
            clients: (0, true),
            check: String::new(),
            unknown_option: None,
            performed: None,
            called: Vec::new(),
            is_lost: false,
        })
    }

    /// Receives messages until a check ends. Returns an error if no process has loaded the plugin yet, and
    /// this one fails to.
    pub(super) fn receive(
        &mut self,
        timeout: Duration,
        version: &mut Option<(i32, i32)>,
        hung: &mut HashMap<Step, usize>,
    ) -> Result<(Reached, End), String> {
        let end = Instant::now() + timeout;
        let (mut within, mut risk) = (None, None);
        let (status, message) = loop {
            match self.worker.receive(end.saturating_duration_since(Instant::now())) {
                Received::Line(line) => match serde_json::from_str(&line) {
                    Ok(Message::Loaded(reported)) => {
                        *version = Some(reported);
                        self.reached = Reached::Loaded;
                    }
                    Ok(Message::Initializing) => self.reached = Reached::Initializing,
                    Ok(Message::Started(name)) => {
                        (self.reached, self.check) = (Reached::Checking, name);
                        self.called.clear();
                        self.performed = None;
                    }
                    Ok(Message::Called(function)) => self.called.push(function),
                    Ok(Message::Entered(step)) if hung.get(&step).is_some_and(|times| *times >= TRIES) => {
                        return Ok((self.reached, End::Skipped(step)));
                    }
                    Ok(Message::Entered(step)) => {
                        if step == Step::Client {
                            self.clients = (self.clients.0 + 1, false);
                        }
                        within = Some(step);
                    }
                    Ok(Message::Left(step)) => {
                        self.clients.1 |= step == Step::Client;
                        within = None;
                        hung.remove(&step);
                    }
                    Ok(Message::Risk(why)) => risk = why,
                    Ok(Message::Performing(step)) => self.performed = step,
                    Ok(Message::UnknownOption(message)) => self.unknown_option = Some(message),
                    Ok(Message::Finished(finished)) => return Ok((self.reached, End::Finished(finished))),
                    Ok(Message::Unusable(why) | Message::Uninitialized(why)) => break (Status::Wrong, why),
                    Err(_) => {}
                },
                Received::TimedOut => {
                    if let Some(step) = within {
                        *hung.entry(step).or_default() += 1;
                    }
                    break (Status::TimedOut, self.hang(timeout, within));
                }
                Received::Ended(ending) => {
                    self.is_lost = ending.is_lost();
                    let message = self.crash(ending, risk);
                    break (Status::Crashed, message);
                }
            }
        };
        if version.is_none() {
            return Err(self.why_not_loaded(status, &message));
        }
        Ok((self.reached, End::Broken(status, message)))
    }

    /// Describes a check that made no progress, perhaps within a step.
    fn hang(&self, timeout: Duration, within: Option<Step>) -> String {
        let step = within.map(|step| format!(" while {}", step.name())).unwrap_or_default();
        format!(
            "the check made no progress for {:.0} s{step}{}; --timeout changes the limit for slow devices",
            timeout.as_secs_f64(),
            self.last_call()
        )
    }

    /// Describes the end of a process. `risk` is the probable cause of an invalid access.
    fn crash(&self, ending: Ending, risk: Option<String>) -> String {
        let risk = risk.filter(|_| ending.is_invalid_access());
        let risk = risk.map(|why| format!("{why}, and ")).unwrap_or_default();
        format!("{risk}the process ended with {ending}{}", self.last_call())
    }

    /// Returns the error of a process that did not load the plugin.
    fn why_not_loaded(&mut self, status: Status, message: &str) -> String {
        let while_loading = if status == Status::Wrong { "" } else { "while loading the library: " };
        let printed = self.printed(status);
        let printed = if printed.is_empty() { printed } else { format!("; the plugin printed: {printed}") };
        format!("{while_loading}{message}{printed}")
    }

    /// Returns the functions that the current check called, in the order of their first calls.
    pub(super) fn take_called(&mut self) -> Vec<String> {
        std::mem::take(&mut self.called)
    }

    /// Describes the last function that the check called for the first time, during or after which the process
    /// ended.
    fn last_call(&self) -> String {
        let describe =
            |function: &String| format!("; the last function that the check began to use is {function}");
        let step = self.performed.as_ref().map(|step| format!("; the check performed: {step}"));
        self.called.last().map(describe).unwrap_or_default() + &step.unwrap_or_default()
    }

    /// Returns `true` if an attempt to create a client returned, with or without an error.
    pub(super) fn made_client(&self) -> bool {
        self.clients.0 > 1 || self.clients == (1, true)
    }

    /// Returns `true` if the process ended or hung while it created its first client.
    pub(super) fn is_without_client(&self) -> bool {
        self.clients == (1, false) && !self.is_lost
    }

    /// Waits for the child to end by itself after the last check, and returns the outcome.
    pub(super) fn end(&mut self, timeout: Duration) -> (Status, String) {
        let end = Instant::now() + timeout;
        loop {
            match self.worker.receive(end.saturating_duration_since(Instant::now())) {
                Received::Line(_) => {}
                Received::Ended(ending) if ending.is_good() => return (Status::Passed, String::new()),
                Received::Ended(ending) => {
                    return (
                        Status::Crashed,
                        format!("after main returned, the process ended with {ending}"),
                    );
                }
                Received::TimedOut => {
                    let seconds = timeout.as_secs_f64();
                    return (
                        Status::TimedOut,
                        format!("the process was still running {seconds:.0} s after main returned"),
                    );
                }
            }
        }
    }

    /// Returns the plugin's output during a check that failed.
    pub(super) fn printed(&mut self, status: Status) -> String {
        let is_alive =
            self.isolation == Isolation::Shared && !matches!(status, Status::Crashed | Status::TimedOut);
        if status.is_failure() && !is_alive {
            self.worker.wait_for_output();
        }
        let printed = self.worker.printed_since_mark(&self.check);
        if status.is_failure() { printed } else { String::new() }
    }
}
