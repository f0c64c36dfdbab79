//! Runs the checks in child processes.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::report::{Report, Row};
use super::{Check, Context, Finding, INITIALIZES, PROCESS_ENDS, Status, Step, checks, select};
use crate::child::{Heard, Prints, Worker, tell};
use crate::host::{CreateOption, Plugin, take_called};
use crate::profile::Profile;

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The path of the plugin.
    pub plugin: PathBuf,
    /// The options for the plugin's clients, as `name=value`.
    pub create_options: Vec<String>,
    /// The host that the plugin is for.
    pub profile: Option<Profile>,
    /// If set, only the checks whose names contain this text run.
    pub filter: Option<String>,
    /// If not empty, only the checks with these names run.
    pub only: Vec<String>,
    /// The time limit of each check.
    pub timeout: Duration,
    /// The isolation of the checks from each other.
    pub isolation: Isolation,
}

/// The isolation of the checks from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Each check runs in its own process.
    Each,
    /// All checks run in one process, which is replaced if it ends. This is faster, but damage that one check
    /// does may make later ones fail.
    Shared,
}

/// The check that fails if no client can be created. Then the other checks do not apply.
const CLIENT: &str = "client/can_be_made";

/// The number of consecutive checks that must fail in the same time-consuming way before the remaining checks
/// are skipped.
const TRIES: usize = 3;

/// A message of a child.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// The library cannot be loaded as a plugin.
    Unusable(String),
    /// The library is loaded, and reports this version of the C API.
    Loaded((i32, i32)),
    /// The child is about to initialize the plugin.
    Initializing,
    /// The initialization failed.
    Uninitialized(String),
    /// A check begins.
    Started(String),
    /// The check enters a step that many checks share.
    Entered(Step),
    /// The step ended, with or without an error.
    Left(Step),
    /// The check ended.
    Finished(Finished),
}

/// The outcome of a check, as the child reports it.
#[derive(Debug, Serialize, Deserialize)]
struct Finished {
    status: Status,
    /// The reason, unless the check passed.
    message: String,
    /// The functions that the check called.
    functions: Vec<String>,
    /// `true` if the check did not apply because no client can be created.
    lacks_client: bool,
}

fn say(said: &Said) {
    if let Ok(json) = serde_json::to_string(said) {
        tell(&json);
    }
}

/// Performs a step of a check, and tells the parent when the step begins and ends.
pub(super) fn in_step<T>(step: Step, work: impl FnOnce() -> T) -> T {
    say(&Said::Entered(step));
    let done = work();
    say(&Said::Left(step));
    done
}

/// Runs the checks, and calls `seen` with each outcome.
///
/// `program` is the path of this program, which must have the hidden subcommand `conform-child` (see
/// [`child`]).
///
/// # Errors
///
/// Returns an error if there is no check to run, if a child cannot be started, or if the library cannot be
/// loaded as a plugin.
pub fn run(options: &Options, program: &Path, seen: impl FnMut(&Row)) -> Result<Report, String> {
    let checks = select(options.filter.as_deref(), &options.only)?;
    let all = super::checks();
    let mut run = Run { options, seen, version: None, rows: Vec::new(), hung: HashMap::new(), lost: 0 };
    let mut waiting: VecDeque<&Check> = checks.iter().collect();
    while !waiting.is_empty() {
        let batch = match options.isolation {
            Isolation::Each => 1,
            // The child whose end is checked runs no other check.
            Isolation::Shared => waiting
                .iter()
                .position(|check| check.name == PROCESS_ENDS)
                .map_or(waiting.len(), |at| at.max(1)),
        };
        let mut child = Child::start(options, program, waiting.iter().take(batch))?;
        for _ in 0..batch {
            let Some(check) = waiting.pop_front() else { break };
            let started = Instant::now();
            let (reached, end) = child
                .hear(options.timeout, &mut run.version, &mut run.hung)
                .map_err(|error| format!("{}: {error}", options.plugin.display()))?;
            match end {
                End::Finished(mut finished) => {
                    run.lost = 0;
                    if check.name == PROCESS_ENDS && finished.status == Status::Passed {
                        (finished.status, finished.message) = child.end(options.timeout);
                    }
                    let Finished { status, message, functions, lacks_client } = finished;
                    run.end(check, status, message, functions, child.printed(status), started);
                    let is_client = |check: &&&Check| check.name == CLIENT;
                    let is_known = || run.rows.iter().any(|row| row.name == CLIENT);
                    if lacks_client && !is_known() && !waiting.iter().any(|check| is_client(&check)) {
                        // The check of client creation is the one that fails, even if it was not selected.
                        waiting.extend(all.iter().find(|check| is_client(&check)));
                    }
                }
                End::Skipped(step) => {
                    let why = format!(
                        "not run, because {} took longer than {:.0} s in {TRIES} checks in a row",
                        step.name(),
                        options.timeout.as_secs_f64()
                    );
                    run.end(check, Status::NotApplicable, why, Vec::new(), String::new(), started);
                    break;
                }
                End::Broken(status, message) if reached == Reached::Initializing => {
                    let printed = child.printed(status);
                    run.end_uninitialized(check, &mut waiting, (status, message), printed, started);
                    break;
                }
                End::Broken(status, message) => {
                    run.end(check, status, message, Vec::new(), child.printed(status), started);
                    run.lost = if child.is_lost { run.lost + 1 } else { 0 };
                    if run.lost == TRIES {
                        run.end_lost(&mut waiting);
                    }
                    break;
                }
            }
        }
    }
    Ok(Report {
        plugin: options.plugin.clone(),
        version: run.version.unwrap_or_default(),
        profile: options.profile.map(|profile| profile.name().to_owned()),
        rows: run.rows,
    })
}

/// The state of a run.
struct Run<'o, F> {
    options: &'o Options,
    seen: F,
    version: Option<(i32, i32)>,
    rows: Vec<Row>,
    /// For each step, the number of consecutive checks in which it took too long.
    hung: HashMap<Step, usize>,
    /// The number of consecutive checks whose child lost its connection.
    lost: usize,
}

impl<F: FnMut(&Row)> Run<'_, F> {
    /// Records the outcome of a check.
    fn end(
        &mut self,
        check: &Check,
        status: Status,
        message: String,
        functions: Vec<String>,
        printed: String,
        started: Instant,
    ) {
        let needed = self.options.profile.is_some_and(|profile| check.needed_by.contains(&profile))
            && self.version.is_none_or(|(_, minor)| minor >= check.needed_since);
        let row = Row {
            name: check.name.clone(),
            rule: check.rule.clone(),
            status: if needed && status == Status::Unsupported { Status::Missing } else { status },
            message,
            functions,
            printed,
            seconds: started.elapsed().as_secs_f64(),
        };
        (self.seen)(&row);
        self.rows.push(row);
    }

    /// Skips the remaining checks, because children lose their connection with this plugin.
    fn end_lost(&mut self, waiting: &mut VecDeque<&Check>) {
        for check in waiting.drain(..) {
            let why =
                format!("not run, because {TRIES} checks in a row lost their connection to this program");
            self.end(check, Status::NotApplicable, why, Vec::new(), String::new(), Instant::now());
        }
    }

    /// Records that the plugin cannot be initialized. The check of the initialization fails, even if it was
    /// not selected, and all checks that depend on it are skipped.
    fn end_uninitialized<'c>(
        &mut self,
        check: &'c Check,
        waiting: &mut VecDeque<&'c Check>,
        (status, message): (Status, String),
        printed: String,
        started: Instant,
    ) {
        // The initialization may have succeeded in another process.
        self.rows.retain(|row| row.name != INITIALIZES);
        let all = checks();
        for initializes in all.iter().filter(|check| check.name == INITIALIZES) {
            self.end(initializes, status, message.clone(), Vec::new(), printed.clone(), started);
        }
        waiting.push_front(check);
        waiting.retain(|check| {
            if !check.is_of_the_table && check.name != INITIALIZES {
                let why = format!("not run, because the plugin cannot be initialized: {message}");
                self.end(check, Status::NotApplicable, why, Vec::new(), String::new(), Instant::now());
            }
            check.is_of_the_table
        });
    }
}

/// A process that runs checks.
struct Child {
    worker: Worker,
    reached: Reached,
    isolation: Isolation,
    /// `true` if the process ended because it could no longer write to its parent.
    is_lost: bool,
}

/// The current activity of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Loading,
    Loaded,
    Initializing,
    Checking,
}

/// The end of a check.
enum End {
    /// The check returned an outcome.
    Finished(Finished),
    /// The check entered a step that took too long in earlier checks.
    Skipped(Step),
    /// The child cannot continue.
    Broken(Status, String),
}

impl Child {
    fn start<'c>(
        options: &Options,
        program: &Path,
        checks: impl Iterator<Item = &'c &'c Check>,
    ) -> Result<Self, String> {
        let mut arguments: Vec<OsString> = vec!["conform-child".into(), options.plugin.clone().into()];
        arguments.extend(options.create_options.iter().map(|option| format!("--option={option}").into()));
        arguments.extend(checks.map(|check| OsString::from(&check.name)));
        let worker = Worker::start(program, &arguments, Prints::Kept);
        let worker = worker.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        Ok(Self { worker, reached: Reached::Loading, isolation: options.isolation, is_lost: false })
    }

    /// Receives messages until a check ends. Returns an error if no process has loaded the plugin yet, and
    /// this one fails to.
    fn hear(
        &mut self,
        timeout: Duration,
        version: &mut Option<(i32, i32)>,
        hung: &mut HashMap<Step, usize>,
    ) -> Result<(Reached, End), String> {
        let end = Instant::now() + timeout;
        let mut within = None;
        let (status, message) = loop {
            match self.worker.hear(end.saturating_duration_since(Instant::now())) {
                Heard::Line(line) => match serde_json::from_str(&line) {
                    Ok(Said::Loaded(reported)) => {
                        *version = Some(reported);
                        self.reached = Reached::Loaded;
                    }
                    Ok(Said::Initializing) => self.reached = Reached::Initializing,
                    Ok(Said::Started(_)) => self.reached = Reached::Checking,
                    Ok(Said::Entered(step)) => {
                        if hung.get(&step).is_some_and(|times| *times >= TRIES) {
                            return Ok((self.reached, End::Skipped(step)));
                        }
                        within = Some(step);
                    }
                    Ok(Said::Left(step)) => {
                        within = None;
                        hung.remove(&step);
                    }
                    Ok(Said::Finished(finished)) => return Ok((self.reached, End::Finished(finished))),
                    Ok(Said::Unusable(why) | Said::Uninitialized(why)) => break (Status::Wrong, why),
                    Err(_) => {}
                },
                Heard::TimedOut => {
                    let mut message =
                        format!("the check made no progress for {:.0} s", timeout.as_secs_f64());
                    if let Some(step) = within {
                        *hung.entry(step).or_default() += 1;
                        message = format!("{message} while {}", step.name());
                    }
                    break (Status::TimedOut, message);
                }
                Heard::Ended(ending) => {
                    self.is_lost = ending.is_lost();
                    break (Status::Crashed, format!("the process ended with {ending}"));
                }
            }
        };
        if version.is_none() {
            let while_loading = if status == Status::Wrong { "" } else { "while loading the library: " };
            let printed = self.printed(status);
            let printed =
                if printed.is_empty() { printed } else { format!("; the plugin printed: {printed}") };
            return Err(format!("{while_loading}{message}{printed}"));
        }
        Ok((self.reached, End::Broken(status, message)))
    }

    /// Waits for the child to end by itself after the last check, and returns the outcome.
    fn end(&mut self, timeout: Duration) -> (Status, String) {
        let end = Instant::now() + timeout;
        loop {
            match self.worker.hear(end.saturating_duration_since(Instant::now())) {
                Heard::Line(_) => {}
                Heard::Ended(ending) if ending.is_good() => return (Status::Passed, String::new()),
                Heard::Ended(ending) => {
                    return (
                        Status::Crashed,
                        format!("after main returned, the process ended with {ending}"),
                    );
                }
                Heard::TimedOut => {
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
    fn printed(&mut self, status: Status) -> String {
        let is_alive =
            self.isolation == Isolation::Shared && !matches!(status, Status::Crashed | Status::TimedOut);
        if status.is_failure() && !is_alive {
            return self.worker.printed();
        }
        let printed = self.worker.printed_so_far();
        if status.is_failure() { printed } else { String::new() }
    }
}

/// Runs the checks with these names in the child process, and reports the outcome of each. The caller then
/// returns from the main function.
pub fn child(path: &Path, create_options: &[CreateOption], names: &[String]) {
    let plugin = match Plugin::load(path) {
        Ok(plugin) => plugin,
        Err(error) => return say(&Said::Unusable(error.to_string())),
    };
    say(&Said::Loaded(plugin.version()));
    // A panic in a check is recorded as a failure; its message goes to the report, not to the terminal.
    std::panic::set_hook(Box::new(|_| {}));
    let checks = checks();
    let mut is_initialized = false;
    for name in names {
        let Some(check) = checks.iter().find(|check| check.name == *name) else { continue };
        if !check.is_of_the_table && !is_initialized {
            say(&Said::Initializing);
            if let Err(error) = plugin.initialize() {
                return say(&Said::Uninitialized(error.to_string()));
            }
            is_initialized = true;
        }
        say(&Said::Started(name.clone()));
        drop(take_called());
        let context = Context::new(plugin, path, create_options.to_vec());
        let (status, message) = one(check, &context);
        let functions = take_called().into_iter().map(str::to_owned).collect();
        let lacks_client = status == Status::NotApplicable && context.why_no_client().is_some();
        say(&Said::Finished(Finished { status, message, functions, lacks_client }));
    }
}

fn one(check: &Check, context: &Context) -> (Status, String) {
    if context.minor() < check.since {
        let message = format!(
            "the plugin reports version 0.{}, but the rule applies from 0.{}",
            context.minor(),
            check.since
        );
        return (Status::Unsupported, message);
    }
    match catch_unwind(AssertUnwindSafe(|| (check.run)(context))) {
        Ok(Ok(())) => (Status::Passed, String::new()),
        Ok(Err(Finding::Wrong(message))) => match context.why_no_client() {
            Some(why) if check.name != CLIENT => {
                (Status::NotApplicable, format!("no client can be created: {why}"))
            }
            _ => (Status::Wrong, message),
        },
        Ok(Err(Finding::Unsupported(message))) => match context.why_no_client() {
            None => (Status::Unsupported, message),
            // Every host requires clients.
            Some(_) if check.name == CLIENT => (Status::Wrong, message),
            Some(why) => (Status::NotApplicable, format!("no client can be created: {why}")),
        },
        Ok(Err(Finding::NotApplicable(message))) => (Status::NotApplicable, message),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            (Status::Wrong, format!("the check panicked: {}", text.unwrap_or_default()))
        }
    }
}
