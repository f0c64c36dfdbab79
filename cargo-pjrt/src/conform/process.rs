//! The parent's handle of a child process that runs checks.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::harness::{DURING, Finished, Message, Status, Step};
use super::options::{Isolation, Options};
use crate::process::Scratch;
use crate::process::child::{Ending, Prints, Received, Worker};
use crate::process::interrupt;
use pjrt_testing::host::{TracedCall, traced_calls};

/// The number of consecutive checks that must fail in the same time-consuming way before the remaining checks
/// are skipped.
pub(super) const TRIES: usize = 3;

/// The sentence about a crash in a function that destroys an object.
const FREED_BEFORE: &str = "The plugin probably freed the object, or one that it refers to, in an earlier call, although the host had \
                            not destroyed this object, or something wrote over its memory";

/// The reason why checks did not run after a signal.
pub(super) const INTERRUPTED: &str = "a signal interrupted the run";

/// For each step, the number of consecutive checks in which it took too long.
#[derive(Default)]
pub(super) struct Hung(Mutex<HashMap<Step, usize>>);

impl Hung {
    fn times(&self, step: Step) -> usize {
        self.lock().get(&step).copied().unwrap_or_default()
    }

    fn count(&self, step: Step) {
        *self.lock().entry(step).or_default() += 1;
    }

    fn reset(&self, step: Step) {
        self.lock().remove(&step);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Step, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the arguments of a process that runs checks, before their names.
pub(super) fn arguments(
    options: &Options,
    timeout: Duration,
    no_client: Option<&str>,
    waited: usize,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["conform-child".into(), options.plugin.clone().into()];
    arguments.extend(options.create_options.iter().map(|option| format!("--option={option}").into()));
    arguments.extend(no_client.map(|why| format!("--no-client={why}").into()));
    arguments.push(format!("--timeout={}", timeout.as_millis()).into());
    arguments.push(format!("--waited={waited}").into());
    arguments.push(format!("--seed={}", options.sequences.seed).into());
    arguments.extend(options.sequences.rounds.map(|rounds| format!("--rounds={rounds}").into()));
    arguments
}

/// A process that runs checks.
pub(super) struct Process {
    worker: Worker,
    trace: Option<Trace>,
    reached: Reached,
    isolation: Isolation,
    /// The version of the C API that the library reported.
    pub(super) version: Option<(i32, i32)>,
    /// The number of clients that the process tried to create, and whether the last attempt ended.
    clients: (usize, bool),
    /// `true` if an earlier check of the process created a client.
    pub(super) had_client: bool,
    /// The name of the current check.
    check: String,
    /// The plugin's message about an option that it does not know.
    pub(super) unknown_option: Option<String>,
    /// The step that the current check performs, and the steps that this one is a part of, from the outermost to the innermost.
    performed: Vec<String>,
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
    /// This program was asked to end during the check.
    Interrupted,
    /// The process cannot continue.
    Broken(Status, String),
}

/// The file in which a process notes the calls that its threads perform. A process that ends or hangs in a call cannot report it.
struct Trace {
    path: PathBuf,
    /// Deletes the file.
    _folder: Scratch,
}

impl Trace {
    /// Returns `None` if there is no place for the file; reports then do not name the last call.
    fn new() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let folder = Scratch::new(&format!("calls-{}", NUMBER.fetch_add(1, Ordering::Relaxed))).ok()?;
        Some(Self { path: folder.file("calls"), _folder: folder })
    }

    /// Returns the last call of each thread.
    fn calls(&self) -> Vec<TracedCall> {
        std::fs::read(&self.path).map(|content| traced_calls(&content)).unwrap_or_default()
    }
}

/// Repeats the start of a process for some time if the system has as many processes and threads as it permits: others end
/// soon, and a run without a process would lose its results.
fn started<T>(mut start: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let until = Instant::now() + PATIENCE;
    loop {
        match start() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                std::thread::sleep(PATIENCE / 50);
            }
            outcome => return outcome,
        }
    }
}

impl Process {
    /// Starts a process with [`arguments`], to which the names of the checks are added.
    pub(super) fn start(options: &Options, program: &Path, arguments: &[OsString]) -> Result<Self, String> {
        let trace = Trace::new();
        let mut arguments = arguments.to_vec();
        arguments.extend(trace.as_ref().map(|trace| {
            let mut option = OsString::from("--calls=");
            option.push(&trace.path);
            option
        }));
        let worker = started(|| Worker::start(program, &arguments, Prints::Kept));
        let worker = worker.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        Ok(Self {
            worker,
            trace,
            reached: Reached::Loading,
            isolation: options.isolation,
            version: None,
            clients: (0, true),
            had_client: false,
            check: String::new(),
            unknown_option: None,
            performed: Vec::new(),
            called: Vec::new(),
            is_lost: false,
        })
    }

    /// Receives messages until a check ends. Returns an error if no process has loaded the plugin yet, and
    /// this one fails to. `is_known` is `true` if another process has loaded it.
    pub(super) fn receive(
        &mut self,
        timeout: Duration,
        is_known: bool,
        hung: &Hung,
    ) -> Result<(Reached, End), String> {
        let mut end = Instant::now() + timeout;
        let (mut within, mut risk) = (None, None);
        let (status, message) = loop {
            match self.worker.receive(end.saturating_duration_since(Instant::now())) {
                Received::Line(line) => match serde_json::from_str(&line) {
                    Ok(Message::Loaded(reported)) => {
                        self.version = Some(reported);
                        self.reached = Reached::Loaded;
                    }
                    Ok(Message::Initializing) => self.reached = Reached::Initializing,
                    Ok(Message::Started(name)) => self.begin(name),
                    Ok(Message::Called(function)) => self.called.push(function),
                    // Compilers that take long are no fault.
                    Ok(Message::Compiled) => end = Instant::now() + timeout,
                    Ok(Message::Entered(step)) if hung.times(step) >= TRIES => {
                        return Ok((self.reached, End::Skipped(step)));
                    }
                    Ok(Message::Entered(step)) => {
                        self.note_client(step, false);
                        within = Some(step);
                    }
                    Ok(Message::Left(step)) => {
                        self.note_client(step, true);
                        within = None;
                        hung.reset(step);
                    }
                    Ok(Message::Risk(why)) => risk = why,
                    // A step is progress.
                    Ok(Message::Performing(Some(step))) => {
                        self.performed.push(step);
                        end = Instant::now() + timeout;
                    }
                    Ok(Message::Performing(None)) => drop(self.performed.pop()),
                    Ok(Message::UnknownOption(message)) => self.unknown_option = Some(message),
                    Ok(Message::OnCpu) | Err(_) => {}
                    Ok(Message::Finished(finished)) => return Ok((self.reached, End::Finished(finished))),
                    Ok(Message::Unusable(why) | Message::Uninitialized(why)) => break (Status::Wrong, why),
                },
                Received::TimedOut if interrupt::is_requested() => {
                    return Ok((self.reached, End::Interrupted));
                }
                Received::TimedOut => {
                    within.into_iter().for_each(|step| hung.count(step));
                    break (Status::TimedOut, self.hang(timeout, within, risk));
                }
                Received::Ended(ending) => {
                    self.is_lost = ending.is_lost();
                    let message = self.crash(ending, risk);
                    break (Status::Crashed, message);
                }
            }
        };
        if self.version.is_none() && !is_known {
            return Err(self.why_not_loaded(status, &message));
        }
        Ok((self.reached, End::Broken(status, message)))
    }

    /// Notes that a check began.
    fn begin(&mut self, name: String) {
        (self.reached, self.check) = (Reached::Checking, name);
        self.called.clear();
        self.performed.clear();
    }

    /// Notes that a step began, or ended, if it is the creation of a client.
    fn note_client(&mut self, step: Step, is_end: bool) {
        if step == Step::Client {
            self.clients = (self.clients.0 + usize::from(!is_end), is_end);
        }
    }

    /// Describes a check that did not end in time, counted from its last step, perhaps within a step that many checks share. `risk` is
    /// what may have broken objects of the plugin.
    fn hang(&self, timeout: Duration, within: Option<Step>, risk: Option<String>) -> String {
        let step = within.map(|step| format!(" while {}", step.name())).unwrap_or_default();
        let what = match self.reached {
            Reached::Loading => "an initializer of the library, or GetPjrtApi,",
            Reached::Loaded | Reached::Initializing | Reached::Checking => "the check",
        };
        let risk = risk.map(|why| format!("{why}, and ")).unwrap_or_default();
        format!(
            "{risk}{what} did not end in {:.0} s{step}{}{}; --timeout changes the limit for slow devices",
            timeout.as_secs_f64(),
            self.last_calls(),
            self.steps()
        )
    }

    /// Describes the end of a process. `risk` is the probable cause of an invalid access.
    fn crash(&self, ending: Ending, risk: Option<String>) -> String {
        let risk = risk.filter(|_| ending.is_invalid_access());
        let destroys = |call: &TracedCall| call.is_running && call.function.ends_with("_Destroy");
        let is_freed_before =
            ending.is_invalid_access() && risk.is_none() && self.calls().iter().any(destroys);
        let freed = if is_freed_before { format!(". {FREED_BEFORE}") } else { String::new() };
        let risk = risk.map(|why| format!("{why}, and ")).unwrap_or_default();
        format!("{risk}the process ended with {ending}{}{}{freed}", self.last_calls(), self.steps())
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

    fn calls(&self) -> Vec<TracedCall> {
        self.trace.as_ref().map(Trace::calls).unwrap_or_default()
    }

    /// Describes the calls in which the threads of the process were when it ended or hung, or the last call before.
    fn last_calls(&self) -> String {
        let calls = self.calls();
        let mut running: Vec<String> =
            calls.iter().filter(|call| call.is_running).map(TracedCall::to_string).collect();
        running.sort();
        running.dedup();
        let last = calls.first().map(|call| format!(" after {call}")).unwrap_or_default();
        if running.is_empty() { last } else { format!("{DURING}{}", running.join(" and ")) }
    }

    /// Describes the step that the check performed.
    fn steps(&self) -> String {
        let traced = self.calls().into_iter().map(|call| call.step).find(|step| !step.is_empty());
        let steps: Vec<String> = self.performed.iter().cloned().chain(traced).collect();
        if steps.is_empty() {
            return String::new();
        }
        format!("; the check performed: {}", steps.join(": "))
    }

    /// Returns `true` if an attempt to create a client returned, with or without an error.
    pub(super) fn made_client(&self) -> bool {
        self.clients.0 > 1 || self.clients == (1, true)
    }

    /// Returns `true` if the process ended or hung while it created its first client.
    pub(super) fn is_without_client(&self) -> bool {
        self.clients == (1, false) && !self.is_lost
    }

    /// Returns `true` if a process without checks reports that arrays are in the memory of the host's processor.
    pub(super) fn is_on_cpu(&mut self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        while let Received::Line(line) = self.worker.receive(end.saturating_duration_since(Instant::now())) {
            if matches!(serde_json::from_str(&line), Ok(Message::OnCpu)) {
                return true;
            }
        }
        false
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
                Received::TimedOut if interrupt::is_requested() => {
                    return (Status::NotApplicable, format!("not run, because {INTERRUPTED}"));
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

    /// Returns the plugin's output during a check that complained.
    pub(super) fn printed(&mut self, status: Status) -> String {
        let is_alive =
            self.isolation == Isolation::Shared && !matches!(status, Status::Crashed | Status::TimedOut);
        if status.is_complaint() && !is_alive {
            self.worker.wait_for_output();
        }
        let printed = self.worker.printed_since_mark(&self.check);
        if status.is_complaint() { printed } else { String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_starts_when_the_system_has_resources_again() {
        let mut attempts = 0;
        let outcome = started(|| {
            attempts += 1;
            if attempts < 3 { Err(ErrorKind::WouldBlock.into()) } else { Ok(attempts) }
        });
        assert_eq!(outcome.unwrap(), 3);
        let missing = started(|| Err::<(), _>(ErrorKind::NotFound.into()));
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    }
}
