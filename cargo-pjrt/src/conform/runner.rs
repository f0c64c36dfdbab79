//! Runs the checks, in child processes.

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

/// What to run, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The plugin.
    pub plugin: PathBuf,
    /// Options for its clients, `name=value`.
    pub create_options: Vec<String>,
    /// The host that it is meant for.
    pub profile: Option<Profile>,
    /// Only checks whose names contain this.
    pub filter: Option<String>,
    /// Only the checks with these names; all if there are none.
    pub only: Vec<String>,
    /// How long a check may take.
    pub timeout: Duration,
    /// How far checks are kept apart.
    pub isolation: Isolation,
}

/// How far checks are kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A process for each.
    Each,
    /// One process, and another whenever one dies. Faster; what one check breaks, later ones may notice.
    Shared,
}

/// The check that fails where no client can be made; others then do not apply.
const CLIENT: &str = "client/can_be_made";

/// In how many checks in a row the same must go wrong, at the cost of much time, until no others try.
const TRIES: usize = 3;

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// The library is no plugin that can be loaded.
    Unusable(String),
    /// It is one, and reports this version of the C API.
    Loaded((i32, i32)),
    /// It is about to be initialized.
    Initializing,
    /// That failed.
    Uninitialized(String),
    /// A check begins.
    Started(String),
    /// It comes to a step that many begin with.
    Entered(Step),
    /// That is over, well or not.
    Left(Step),
    /// It is over.
    Finished(Finished),
}

/// How a check ended.
#[derive(Debug, Serialize, Deserialize)]
struct Finished {
    status: Status,
    /// Why.
    message: String,
    /// The functions that it called.
    functions: Vec<String>,
    /// Whether it did not apply because no client can be made.
    lacks_client: bool,
}

fn say(said: &Said) {
    if let Ok(json) = serde_json::to_string(said) {
        tell(&json);
    }
}

/// Does a step of a check, so that the parent knows of it.
pub(super) fn in_step<T>(step: Step, work: impl FnOnce() -> T) -> T {
    say(&Said::Entered(step));
    let done = work();
    say(&Said::Left(step));
    done
}

/// Runs the checks; `seen` is told of each.
///
/// `program` is this program, which must have the hidden verb `conform-child` (see [`child`]).
///
/// # Errors
///
/// If there is no check to run, a child cannot be started, or the library cannot be loaded as a plugin.
pub fn run(options: &Options, program: &Path, seen: impl FnMut(&Row)) -> Result<Report, String> {
    let checks = select(options.filter.as_deref(), &options.only)?;
    let all = super::checks();
    let mut run = Run { options, seen, version: None, rows: Vec::new(), hung: HashMap::new(), lost: 0 };
    let mut waiting: VecDeque<&Check> = checks.iter().collect();
    while !waiting.is_empty() {
        let batch = match options.isolation {
            Isolation::Each => 1,
            // The process that is to end runs nothing else.
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
                        // What fails is that, also if nobody asked for it.
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

/// What is known so far.
struct Run<'o, F> {
    options: &'o Options,
    seen: F,
    version: Option<(i32, i32)>,
    rows: Vec<Row>,
    /// In how many checks in a row a step took too long.
    hung: HashMap<Step, usize>,
    /// How many checks in a row ended with the connection to their process.
    lost: usize,
}

impl<F: FnMut(&Row)> Run<'_, F> {
    /// Notes what became of a check.
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

    /// Notes that nothing can be heard of checks with this plugin: those that wait do not run.
    fn end_lost(&mut self, waiting: &mut VecDeque<&Check>) {
        for check in waiting.drain(..) {
            let why =
                format!("not run, because {TRIES} checks in a row lost their connection to this program");
            self.end(check, Status::NotApplicable, why, Vec::new(), String::new(), Instant::now());
        }
    }

    /// Notes that the plugin cannot be initialized: what failed is that, also if nobody asked for it, and all checks that need it
    /// do not run.
    fn end_uninitialized<'c>(
        &mut self,
        check: &'c Check,
        waiting: &mut VecDeque<&'c Check>,
        (status, message): (Status, String),
        printed: String,
        started: Instant,
    ) {
        // In another process, it may have gone well.
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
    /// Whether it ended because it could not say anything any more.
    is_lost: bool,
}

/// What a child is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    Loading,
    Loaded,
    Initializing,
    Checking,
}

/// How a check ended.
enum End {
    /// In order.
    Finished(Finished),
    /// It came to a step that takes too long.
    Skipped(Step),
    /// There is no plugin to go on with.
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
        let worker = worker.map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        Ok(Self { worker, reached: Reached::Loading, isolation: options.isolation, is_lost: false })
    }

    /// Listens until a check is over. Fails if no process has loaded the plugin yet, and this one cannot.
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
                    let mut message = format!("nothing happened within {:.0} s", timeout.as_secs_f64());
                    if let Some(step) = within {
                        *hung.entry(step).or_default() += 1;
                        message = format!("{message}, while {}", step.name());
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
            let while_loading = if status == Status::Wrong { "" } else { "while the library was loaded: " };
            let printed = self.printed(status);
            let printed =
                if printed.is_empty() { printed } else { format!("; the plugin printed: {printed}") };
            return Err(format!("{while_loading}{message}{printed}"));
        }
        Ok((self.reached, End::Broken(status, message)))
    }

    /// Waits until it has ended, of itself and with everything done, and says how that went.
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
                        format!("{seconds:.0} s after main returned, the process still ran"),
                    );
                }
            }
        }
    }

    /// What the plugin printed during a check that failed.
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

/// What the child does: runs the checks with these names, and says what becomes of each. Its caller then returns from the main
/// function.
pub fn child(path: &Path, create_options: &[CreateOption], names: &[String]) {
    let plugin = match Plugin::load(path) {
        Ok(plugin) => plugin,
        Err(error) => return say(&Said::Unusable(error.to_string())),
    };
    say(&Said::Loaded(plugin.version()));
    // A panic of the kit itself is a finding like others; its message goes to the report, not to the terminal.
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
        let message = format!("the plugin reports 0.{}, the rule is from 0.{}", context.minor(), check.since);
        return (Status::Unsupported, message);
    }
    match catch_unwind(AssertUnwindSafe(|| (check.run)(context))) {
        Ok(Ok(())) => (Status::Passed, String::new()),
        Ok(Err(Finding::Wrong(message))) => match context.why_no_client() {
            Some(why) if check.name != CLIENT => {
                (Status::NotApplicable, format!("no client can be made: {why}"))
            }
            _ => (Status::Wrong, message),
        },
        Ok(Err(Finding::Unsupported(message))) => match context.why_no_client() {
            None => (Status::Unsupported, message),
            // No host can do without clients.
            Some(_) if check.name == CLIENT => (Status::Wrong, message),
            Some(why) => (Status::NotApplicable, format!("no client can be made: {why}")),
        },
        Ok(Err(Finding::NotApplicable(message))) => (Status::NotApplicable, message),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            (Status::Wrong, format!("the check itself failed: {}", text.unwrap_or_default()))
        }
    }
}
