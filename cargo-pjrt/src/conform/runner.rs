//! Runs the checks, in child processes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::report::{Report, Row};
use super::{Check, Context, Finding, INITIALIZES, Status, checks, select};
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
    /// It is over: what became of it, why, and the functions that it called.
    Finished(Status, String, Vec<String>),
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
    let mut run = Run { options, seen, version: None, rows: Vec::new() };
    let mut waiting: VecDeque<&Check> = checks.iter().collect();
    while !waiting.is_empty() {
        let batch = match options.isolation {
            Isolation::Each => 1,
            Isolation::Shared => waiting.len(),
        };
        let mut child = Child::start(options, program, waiting.iter().take(batch))?;
        for _ in 0..batch {
            let Some(check) = waiting.pop_front() else { break };
            let started = Instant::now();
            let (reached, end) = child
                .hear(options.timeout, &mut run.version)
                .map_err(|error| format!("{}: {error}", options.plugin.display()))?;
            match end {
                End::Finished(status, message, functions) => {
                    run.end(check, status, message, functions, child.printed(status), started);
                }
                End::Broken(status, message) if reached == Reached::Initializing => {
                    let printed = child.printed(status);
                    run.end_uninitialized(check, &mut waiting, (status, message), printed, started);
                    break;
                }
                End::Broken(status, message) => {
                    run.end(check, status, message, Vec::new(), child.printed(status), started);
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
        let needed = self.options.profile.is_some_and(|profile| check.needed_by.contains(&profile));
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
    Finished(Status, String, Vec<String>),
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
        Ok(Self { worker, reached: Reached::Loading, isolation: options.isolation })
    }

    /// Listens until a check is over. Fails if no process has loaded the plugin yet, and this one cannot.
    fn hear(
        &mut self,
        timeout: Duration,
        version: &mut Option<(i32, i32)>,
    ) -> Result<(Reached, End), String> {
        let end = Instant::now() + timeout;
        let (status, message) = loop {
            match self.worker.hear(Some(end.saturating_duration_since(Instant::now()))) {
                Heard::Line(line) => match serde_json::from_str(&line) {
                    Ok(Said::Loaded(reported)) => {
                        *version = Some(reported);
                        self.reached = Reached::Loaded;
                    }
                    Ok(Said::Initializing) => self.reached = Reached::Initializing,
                    Ok(Said::Started(_)) => self.reached = Reached::Checking,
                    Ok(Said::Finished(status, message, functions)) => {
                        return Ok((self.reached, End::Finished(status, message, functions)));
                    }
                    Ok(Said::Unusable(why) | Said::Uninitialized(why)) => break (Status::Wrong, why),
                    Err(_) => {}
                },
                Heard::TimedOut => {
                    let message = format!("nothing happened within {:.0} s", timeout.as_secs_f64());
                    break (Status::TimedOut, message);
                }
                Heard::Ended(ending) => break (Status::Crashed, format!("the process ended with {ending}")),
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

/// What the child does: runs the checks with these names, and says what becomes of each.
pub fn child(path: &Path, create_options: Vec<CreateOption>, names: &[String]) {
    let say = |said: &Said| {
        if let Ok(json) = serde_json::to_string(said) {
            tell(&json);
        }
    };
    let plugin = match Plugin::load(path) {
        Ok(plugin) => plugin,
        Err(error) => return say(&Said::Unusable(error.to_string())),
    };
    say(&Said::Loaded(plugin.version()));
    // A panic of the kit itself is a finding like others; its message goes to the report, not to the terminal.
    std::panic::set_hook(Box::new(|_| {}));
    let context = Context::new(plugin, path, create_options);
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
        let (status, message) = one(check, &context);
        let functions = take_called().into_iter().map(str::to_owned).collect();
        say(&Said::Finished(status, message, functions));
    }
    // Without destructors: a host may end like this too.
    std::process::exit(0);
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
        Ok(Err(Finding::Unsupported(message))) => (Status::Unsupported, message),
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
