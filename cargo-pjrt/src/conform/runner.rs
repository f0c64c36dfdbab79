//! Runs checks in child processes, and collects their outcomes.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::time::{Duration, Instant};

use super::harness::{CLIENT, Check, Finished, INITIALIZES, PROCESS_ENDS, Status, Step};
use super::list::{checks, select};
use super::options::{Isolation, Options};
use super::process::{End, Process, Reached, TRIES};
use super::report::{Report, Row, cause};
use crate::process::progress::Progress;
use crate::requirements::Profile;

/// Runs the checks.
///
/// `program` is the path of this program, which must have the hidden subcommand `conform-child` (see
/// [`child`](super::child())).
///
/// # Errors
///
/// Returns an error if there is no check to run, if a child cannot be started, or if the library cannot be
/// loaded as a plugin.
pub fn run(options: &Options, program: &Path) -> Result<Report, String> {
    let selected = select(options.filter.as_deref(), &options.only)?;
    let all = checks();
    let mut run = Run::new(options, &all, &selected);
    let mut progress = Progress::new(selected.len(), "checks");
    while !run.waiting.is_empty() {
        let batch = run.batch();
        let mut process = Process::start(
            options,
            program,
            run.no_client.as_deref(),
            run.waited,
            run.failed(),
            run.waiting.iter().take(batch),
        )?;
        for _ in 0..batch {
            let Some(check) = run.waiting.pop_front() else { break };
            progress.show(run.rows.len(), &check.name);
            if !run.finish(check, &mut process)? {
                break;
            }
        }
    }
    progress.end();
    cause::group(&mut run.rows, &all);
    Ok(Report {
        plugin: options.plugin.clone(),
        create_options: options.create_options.clone(),
        version: run.version.unwrap_or_default(),
        profile: options.profile.map(|profile| profile.name().to_owned()),
        unknown_option: run.unknown_option,
        lists_advice: options.lists_advice || options.filter.is_some() || !options.only.is_empty(),
        rows: run.rows,
    })
}

/// The state of a run.
struct Run<'c> {
    options: &'c Options,
    /// All checks, including those that were not selected.
    all: &'c [Check],
    /// The checks that have not run yet, in order.
    waiting: VecDeque<&'c Check>,
    version: Option<(i32, i32)>,
    rows: Vec<Row>,
    /// For each step, the number of consecutive checks in which it took too long.
    hung: HashMap<Step, usize>,
    /// `true` if a call that creates a client returned, with or without an error.
    client_made: bool,
    /// The reason why no client can be created, if the first attempt ended the process or hung. Further
    /// attempts would do the same.
    no_client: Option<String>,
    /// The plugin's message about an option that it does not know.
    unknown_option: Option<String>,
    /// The number of checks that failed after they had waited for a callback or a condition in vain.
    waited: usize,
    /// The number of consecutive checks whose process lost its connection.
    lost: usize,
    /// The number of checks that exceeded the time limit.
    timed_out: usize,
}

/// The number of checks that exceed the time limit before the remaining checks are skipped.
const HUNG: usize = 40;

/// The number of checks that exceed the time limit before it is shortened again.
const MANY: usize = 10;

/// The shortest time limit.
const LEAST: Duration = Duration::from_secs(2);

impl<'c> Run<'c> {
    fn new(options: &'c Options, all: &'c [Check], selected: &'c [Check]) -> Self {
        Self {
            options,
            all,
            waiting: selected.iter().collect(),
            version: None,
            rows: Vec::new(),
            hung: HashMap::new(),
            client_made: false,
            no_client: None,
            unknown_option: None,
            waited: 0,
            lost: 0,
            timed_out: 0,
        }
    }

    /// Returns the number of checks that the next process runs.
    fn batch(&self) -> usize {
        match self.options.isolation {
            Isolation::Each if self.no_client.is_none() => 1,
            // The process whose end is checked runs no other check.
            _ => {
                let ends = self.waiting.iter().position(|check| check.name == PROCESS_ENDS);
                ends.map_or(self.waiting.len(), |at| at.max(1))
            }
        }
    }

    /// Returns the names of the checks that failed, for a check that runs others again.
    fn failed(&self) -> impl Iterator<Item = &str> {
        let runs_again = self.waiting.iter().take(self.batch()).any(|check| check.runs_again());
        let failed = self.rows.iter().filter(move |row| runs_again && row.status.is_failure());
        failed.map(|row| row.name.as_str())
    }

    /// Returns the time limit of the next check. A plugin that hangs would use the full limit of many checks, so that it is a tenth
    /// after several of them, and a thirtieth after many.
    fn timeout(&self) -> Duration {
        let divisor = match self.timed_out {
            0..TRIES => 1,
            TRIES..MANY => 10,
            _ => 30,
        };
        let limit = self.options.timeout / divisor;
        limit.max(LEAST).min(self.options.timeout)
    }

    /// Waits until a check ends, and records its outcome. Returns `false` if the process cannot run more
    /// checks.
    fn finish(&mut self, check: &'c Check, process: &mut Process) -> Result<bool, String> {
        let started = Instant::now();
        let (reached, end) = process
            .receive(self.timeout(), &mut self.version, &mut self.hung)
            .map_err(|error| format!("{}: {error}", self.options.plugin.display()))?;
        self.client_made |= process.made_client();
        self.unknown_option = process.unknown_option.take().or(self.unknown_option.take());
        match end {
            End::Finished(finished) => {
                self.end_finished(check, finished, process, started);
                return Ok(true);
            }
            End::Skipped(step) => {
                let why = format!(
                    "not run, because {} took longer than {:.0} s in {TRIES} checks in a row",
                    step.name(),
                    self.options.timeout.as_secs_f64()
                );
                self.end(check, Status::NotApplicable, why, Vec::new(), String::new(), started);
            }
            End::Broken(status, message) if reached == Reached::Initializing => {
                let printed = process.printed(status);
                self.end_uninitialized(check, (status, message), printed, started);
            }
            End::Broken(status, message) if !self.client_made && process.is_without_client() => {
                let printed = process.printed(status);
                self.end_without_client(check, (status, message), printed, started);
            }
            End::Broken(status, message) => {
                let called = process.take_called();
                self.timed_out += usize::from(status == Status::TimedOut);
                self.end(check, status, message, called, process.printed(status), started);
                self.lost = if process.is_lost { self.lost + 1 } else { 0 };
                if self.lost == TRIES {
                    self.skip_rest(&format!("{TRIES} checks in a row lost their connection to this program"));
                }
                if self.timed_out == HUNG {
                    self.skip_rest(&format!("{HUNG} checks exceeded the time limit"));
                }
            }
        }
        Ok(false)
    }

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
        let hosts: Vec<Profile> = check.hosts(self.version.map_or(i32::MAX, |(_, minor)| minor)).collect();
        let has_profile_in =
            |hosts: &[Profile]| self.options.profile.is_some_and(|profile| hosts.contains(&profile));
        let is_needed = has_profile_in(&hosts);
        self.rows.push(Row {
            name: check.name.clone(),
            rule: check.rule.clone(),
            source: check.source.to_string(),
            needed_by: hosts.iter().map(|profile| profile.name().to_owned()).collect(),
            status: match status {
                Status::Unsupported if is_needed && has_profile_in(check.needed_by) => Status::Missing,
                status if status.is_failure() && check.source.is_advice() && !is_needed => Status::Advice,
                status => status,
            },
            message,
            echo_of: None,
            functions,
            printed,
            seconds: started.elapsed().as_secs_f64(),
        });
    }

    /// Records the outcome that the process reported. If the check did not apply because no client can be
    /// created, the check of client creation is run, even if it was not selected: it is the one that fails.
    fn end_finished(
        &mut self,
        check: &Check,
        mut finished: Finished,
        process: &mut Process,
        started: Instant,
    ) {
        self.lost = 0;
        if check.name == PROCESS_ENDS && finished.status == Status::Passed {
            (finished.status, finished.message) = process.end(self.options.timeout);
        }
        let Finished { status, message, functions, lacks_client, in_vain } = finished;
        self.waited += usize::from(in_vain);
        self.end(check, status, message, functions, process.printed(status), started);
        let is_known = self.rows.iter().any(|row| row.name == CLIENT)
            || self.waiting.iter().any(|check| check.name == CLIENT);
        if lacks_client && !is_known {
            self.waiting.extend(self.all.iter().find(|check| check.name == CLIENT));
        }
    }

    /// Records that the creation of a client ended the process or hung. The check of the creation fails, even
    /// if it was not selected, and the others run without a client.
    fn end_without_client(
        &mut self,
        check: &'c Check,
        (status, message): (Status, String),
        printed: String,
        started: Instant,
    ) {
        self.no_client = Some(message.clone());
        self.waiting.push_front(check);
        self.waiting.retain(|check| check.name != CLIENT);
        for client in self.all.iter().filter(|check| check.name == CLIENT) {
            self.end(client, status, message.clone(), Vec::new(), printed.clone(), started);
        }
    }

    /// Skips the remaining checks for this reason.
    fn skip_rest(&mut self, why: &str) {
        for check in std::mem::take(&mut self.waiting) {
            let why = format!("not run, because {why}");
            self.end(check, Status::NotApplicable, why, Vec::new(), String::new(), Instant::now());
        }
    }

    /// Records that the plugin cannot be initialized. The check of the initialization fails, even if it was
    /// not selected, and all checks that depend on it are skipped.
    fn end_uninitialized(
        &mut self,
        check: &'c Check,
        (status, message): (Status, String),
        printed: String,
        started: Instant,
    ) {
        // The initialization may have succeeded in another process.
        self.rows.retain(|row| row.name != INITIALIZES);
        for initializes in self.all.iter().filter(|check| check.name == INITIALIZES) {
            self.end(initializes, status, message.clone(), Vec::new(), printed.clone(), started);
        }
        self.waiting.push_front(check);
        for check in std::mem::take(&mut self.waiting) {
            if check.is_of_the_table {
                self.waiting.push_back(check);
            } else if check.name != INITIALIZES {
                let why = format!("not run, because the plugin cannot be initialized: {message}");
                self.end(check, Status::NotApplicable, why, Vec::new(), String::new(), Instant::now());
            }
        }
    }
}
