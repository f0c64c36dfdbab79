//! Runs the checks, in child processes.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::report::{Report, Row};
use super::{Check, Context, Finding, Status, checks};
use crate::child::{Heard, Worker, tell};
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

/// What comes before a line that counts.
const MARK: &str = "\u{1}conform ";

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// The plugin cannot be used at all.
    Unusable(String),
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
/// If a child cannot be started.
pub fn run(options: &Options, program: &Path, mut seen: impl FnMut(&Row)) -> std::io::Result<Report> {
    let wanted = |check: &Check| {
        options.filter.as_ref().is_none_or(|filter| check.name.contains(filter))
            && (options.only.is_empty() || options.only.contains(&check.name))
    };
    let checks: Vec<Check> = checks().into_iter().filter(wanted).collect();
    let mut waiting: VecDeque<&Check> = checks.iter().collect();
    let mut rows = Vec::new();
    while !waiting.is_empty() {
        let batch = match options.isolation {
            Isolation::Each => 1,
            Isolation::Shared => waiting.len(),
        };
        let mut arguments = vec!["conform-child".to_owned(), options.plugin.display().to_string()];
        arguments.extend(options.create_options.iter().map(|option| format!("--option={option}")));
        arguments.extend(waiting.iter().take(batch).map(|check| check.name.clone()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut worker = Worker::start(program, &arguments)?;
        for _ in 0..batch {
            let Some(check) = waiting.pop_front() else { break };
            let started = Instant::now();
            let (status, message, functions) = hear(&mut worker, options.timeout);
            let alive = !matches!(status, Status::Crashed | Status::TimedOut);
            let mut row = Row {
                name: check.name.clone(),
                rule: check.rule.clone(),
                status,
                message,
                functions,
                seconds: started.elapsed().as_secs_f64(),
            };
            let needed = options.profile.is_some_and(|profile| check.needed_by.contains(&profile));
            if needed && row.status == Status::Unsupported {
                row.status = Status::Missing;
            }
            seen(&row);
            rows.push(row);
            if !alive {
                break;
            }
        }
    }
    Ok(Report { plugin: options.plugin.clone(), profile: options.profile.map(|p| p.name().to_owned()), rows })
}

/// Listens until a check is over.
fn hear(worker: &mut Worker, timeout: Duration) -> (Status, String, Vec<String>) {
    let end = Instant::now() + timeout;
    loop {
        match worker.hear(end.saturating_duration_since(Instant::now())) {
            Heard::Line(line) => {
                // Behind what the plugin has printed without ending its line.
                let said = line.split_once(MARK).and_then(|(_, json)| serde_json::from_str(json).ok());
                match said {
                    Some(Said::Finished(status, message, functions)) => return (status, message, functions),
                    Some(Said::Unusable(why)) => return (Status::Wrong, why, Vec::new()),
                    Some(Said::Started(_)) | None => {}
                }
            }
            Heard::TimedOut => {
                let message = format!("nothing happened within {:.0} s", timeout.as_secs_f64());
                return (Status::TimedOut, message, Vec::new());
            }
            Heard::Ended(how) => {
                return (Status::Crashed, format!("the process ended with {how}"), Vec::new());
            }
        }
    }
}

/// What the child does: runs the checks with these names, and says what becomes of each.
pub fn child(path: &Path, create_options: &[String], names: &[String]) {
    let say = |said: &Said| {
        if let Ok(json) = serde_json::to_string(said) {
            tell(&format!("{MARK}{json}"));
        }
    };
    let options: Vec<CreateOption> =
        create_options.iter().filter_map(|text| CreateOption::parse(text)).collect();
    let plugin = match Plugin::load(path) {
        Ok(plugin) => plugin,
        Err(error) => return names.iter().for_each(|_| say(&Said::Unusable(error.to_string()))),
    };
    if let Err(error) = plugin.initialize() {
        return names.iter().for_each(|_| say(&Said::Unusable(error.to_string())));
    }
    // A panic of the kit itself is a finding like others; its message goes to the report, not to the terminal.
    std::panic::set_hook(Box::new(|_| {}));
    let context = Context::new(plugin, path, options);
    let checks = checks();
    for name in names {
        let Some(check) = checks.iter().find(|check| check.name == *name) else { continue };
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
