//! Runs checks in child processes, and collects their outcomes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::harness::{CLIENT, Check, Finished, INITIALIZES, PROCESS_ENDS, RESIDENT, Status};
use super::list::{checks, select};
use super::options::{Isolation, Options};
use super::process::{End, Hung, INTERRUPTED, Process, Reached, TRIES, arguments};
use super::report::explanation::{AFTER_OTHERS, ALONE, SLOW, SOMETIMES};
use super::report::{Report, Row, cause};
use crate::process::{Scratch, interrupt, progress::Progress};
use crate::requirements::Profile;

/// Runs the checks.
///
/// `program` is the path of this program, which must have the hidden subcommand `conform-child` (see
/// [`child`](super::child())).
///
/// # Errors
///
/// Returns an error if there is no check to run, if temporary files or a child cannot be created, or if the library cannot be
/// loaded as a plugin.
pub fn run(options: &Options, program: &Path) -> Result<Report, String> {
    let started = Instant::now();
    // Checks that cannot create files would seem not to apply.
    drop(Scratch::new("conform")?);
    let selected = select(options.filter.as_deref(), &options.only)?;
    let all = checks();
    let jobs = options.jobs.unwrap_or_else(|| default_jobs(options, selected.len(), program));
    // A process without a check would only load the plugin.
    let jobs = NonZero::new(selected.len()).map_or(jobs, |most| jobs.min(most));
    let run = Mutex::new(Run::new(options, &all, &selected));
    let hung = Hung::default();
    let start_round = || lock(&run).start_round(jobs);
    while let Some(workers) = start_round() {
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..workers.get()).map(|_| scope.spawn(|| work(&run, &hung, workers, program))).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
    }
    let mut run = run.into_inner().unwrap_or_else(PoisonError::into_inner);
    run.progress.end();
    let interrupted = run.why_skipped.as_deref() == Some(INTERRUPTED);
    if options.isolation == Isolation::Shared && !interrupted {
        repeat_alone(options, &mut run.rows, program)?;
    }
    run.rows.sort_by_key(|row| all.iter().position(|check| check.name == row.name));
    cause::group(&mut run.rows, &all);
    Ok(Report {
        plugin: options.plugin.clone(),
        create_options: options.create_options.clone(),
        version: run.version.unwrap_or_default(),
        profile: options.profile.map(|profile| profile.name().to_owned()),
        unknown_option: run.unknown_option,
        interrupted,
        timeout: options.timeout,
        sequences: options.sequences,
        lists_advice: options.lists_advice || options.filter.is_some() || !options.only.is_empty(),
        rows: run.rows,
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Runs the checks that failed in shared processes once more, each in a process of its own. The failure of one that passes there
/// depends on what other checks did before, and says so.
fn repeat_alone(options: &Options, rows: &mut [Row], program: &Path) -> Result<(), String> {
    let is_random = |row: &&Row| row.name.starts_with("random/");
    let named = |statuses: &[Status], most: usize| -> Vec<String> {
        let failed = rows.iter().filter(|row| statuses.contains(&row.status) && !is_random(row));
        failed.map(|row| row.name.clone()).take(most).collect()
    };
    let only = [
        named(&[Status::Wrong, Status::Crashed], REPEATED),
        named(&[Status::TimedOut], REPEATED_AFTER_HANGS),
    ]
    .concat();
    let passed = passed_alone(options, only, program)?;
    // A check that passes by chance fails in one of a few runs.
    let mut runs = vec![passed.clone()];
    for _ in 1..RUNS_ALONE {
        runs.push(passed_alone(options, passed.clone(), program)?);
    }
    for name in passed {
        let count = runs.iter().filter(|passed| passed.contains(&name)).count();
        for row in rows.iter_mut().filter(|row| row.name == name) {
            let why = match (count, row.status) {
                (RUNS_ALONE, _) => format!("{ALONE}: {AFTER_OTHERS}"),
                (_, Status::TimedOut) => format!("{ALONE} in {count} of {RUNS_ALONE} runs: {SLOW}"),
                _ => format!("{ALONE} in {count} of {RUNS_ALONE} runs: {SOMETIMES}"),
            };
            row.message = format!("{}. {why}", row.message.trim_end_matches('.'));
        }
    }
    Ok(())
}

/// Runs checks, each in a process of its own, and returns the names of those that passed.
fn passed_alone(options: &Options, only: Vec<String>, program: &Path) -> Result<Vec<String>, String> {
    if only.is_empty() {
        return Ok(only);
    }
    let alone = Options {
        filter: None,
        only,
        isolation: Isolation::Each,
        profile: None,
        // Without the other checks, these are short.
        timeout: options.timeout / 6,
        ..options.clone()
    };
    let rows = run(&alone, program)?.rows.into_iter();
    Ok(rows.filter(|row| row.status == Status::Passed).map(|row| row.name).collect())
}

/// The number of times that a check which failed and passes alone is run alone.
const RUNS_ALONE: usize = 3;

/// The maximum number of checks that are repeated.
const REPEATED: usize = 100;

/// The maximum number of repeated checks among those that hung. One may have waited for a lock that a thread of an earlier
/// check holds.
const REPEATED_AFTER_HANGS: usize = 4;

/// Runs checks until none is left. `hung` counts the steps that took too long.
fn work(run: &Mutex<Run<'_>>, hung: &Hung, jobs: NonZero<usize>, program: &Path) -> Result<(), String> {
    let options = lock(run).options;
    loop {
        let (mut batch, arguments) = {
            let mut run = lock(run);
            let batch = run.take_batch(jobs);
            let arguments = run.arguments(&batch);
            (batch, arguments)
        };
        if batch.is_empty() {
            return Ok(());
        }
        let process = Process::start(options, program, &arguments);
        let outcome = run_batch(run, hung, &mut batch, process);
        let mut run = lock(run);
        // The process ended before it came to these.
        run.give_back(batch);
        if outcome.is_err() {
            run.waiting.clear();
        }
        outcome?;
    }
}

/// Runs checks in a process until it ends, and removes those that it ran.
fn run_batch<'c>(
    run: &Mutex<Run<'c>>,
    hung: &Hung,
    batch: &mut VecDeque<&'c Check>,
    process: Result<Process, String>,
) -> Result<(), String> {
    let mut process = process?;
    while let Some(check) = batch.pop_front() {
        let (timeout, is_known) = {
            let mut run = lock(run);
            if interrupt::is_requested() {
                run.skip_rest(INTERRUPTED);
            }
            if run.why_skipped.is_some() {
                batch.push_front(check);
                break;
            }
            run.show_progress(check);
            (run.timeout(), run.version.is_some())
        };
        let started = Instant::now();
        let received = process.receive(timeout, is_known, hung);
        let mut run = lock(run);
        let (reached, end) =
            received.map_err(|error| format!("{}: {error}", run.options.plugin.display()))?;
        if !run.finish(check, &mut process, (reached, end), started) {
            break;
        }
    }
    Ok(())
}

fn lock<'l, 'c>(run: &'l Mutex<Run<'c>>) -> MutexGuard<'l, Run<'c>> {
    run.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of processes that run checks at once, unless the user chooses it. Only one process may be able to use a
/// device; several can use the host's processor, and two on each core use the time in which a check waits.
fn default_jobs(options: &Options, checks: usize, program: &Path) -> NonZero<usize> {
    const MOST: NonZero<usize> = NonZero::new(4).unwrap();
    // The process that finds it out takes longer than a few checks.
    const FEW: usize = 32;
    let is_on_cpu = || {
        let process = Process::start(options, program, &arguments(options, options.timeout, None, 0));
        process.is_ok_and(|mut process| process.is_on_cpu(options.timeout.min(PROBE)))
    };
    match thread::available_parallelism() {
        Ok(count) if checks > FEW && is_on_cpu() => count.saturating_add(count.get()).min(MOST),
        _ => NonZero::<usize>::MIN,
    }
}

/// The maximum time to find out whether the devices are the host's processor.
const PROBE: Duration = Duration::from_secs(5);

/// The state of a run.
struct Run<'c> {
    options: &'c Options,
    /// All checks, including those that were not selected.
    all: &'c [Check],
    /// The checks of this round that have not run yet, in order.
    waiting: VecDeque<&'c Check>,
    /// The checks of the next round, which run others again, and need to know which of them failed.
    next_round: VecDeque<&'c Check>,
    /// The checks of the last round, in which one process runs at a time: what they find depends on the speed of threads.
    last_round: VecDeque<&'c Check>,
    progress: Progress,
    version: Option<(i32, i32)>,
    rows: Vec<Row>,
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
    /// The reason why the checks that have not run are skipped.
    why_skipped: Option<String>,
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
            waiting: selected.iter().filter(|check| !check.runs_again() && !check.runs_by_itself()).collect(),
            next_round: selected.iter().filter(|check| check.runs_again()).collect(),
            last_round: selected.iter().filter(|check| check.runs_by_itself()).collect(),
            progress: Progress::new(selected.len(), "checks"),
            version: None,
            rows: Vec::new(),
            client_made: false,
            no_client: None,
            unknown_option: None,
            waited: 0,
            lost: 0,
            timed_out: 0,
            why_skipped: None,
        }
    }

    /// Begins the next round that has checks. Returns the number of processes that run them at once, or `None` if no check is left.
    fn start_round(&mut self, jobs: NonZero<usize>) -> Option<NonZero<usize>> {
        let mut workers = jobs;
        if self.waiting.is_empty() {
            self.waiting = std::mem::take(&mut self.next_round);
        }
        if self.waiting.is_empty() {
            self.waiting = std::mem::take(&mut self.last_round);
            workers = NonZero::<usize>::MIN;
        }
        (!self.waiting.is_empty()).then_some(workers)
    }

    /// Removes and returns the checks that the next process runs.
    fn take_batch(&mut self, jobs: NonZero<usize>) -> VecDeque<&'c Check> {
        let len = match self.options.isolation {
            Isolation::Each if self.no_client.is_none() => 1,
            // Several processes end at about the same time if each takes a part of those that are left.
            _ if jobs.get() > 1 => self.waiting.len().div_ceil(2 * jobs.get()).max(self.least_batch()),
            _ => self.waiting.len(),
        };
        // The process whose end or size is checked runs no other check.
        let is_alone = |check: &&Check| [PROCESS_ENDS, RESIDENT].contains(&check.name.as_str());
        let alone = self.waiting.iter().position(is_alone);
        let len = len.min(alone.map_or(len, |at| at.max(1)));
        self.waiting.drain(..len.min(self.waiting.len())).collect()
    }

    /// Returns the least number of checks for which a process is started if checks share processes. A check that runs
    /// others again takes as long as all of these.
    fn least_batch(&self) -> usize {
        if self.waiting.iter().any(|check| check.runs_again()) { 6 } else { 24 }
    }

    /// Takes back the checks of a batch that did not run, which are skipped if all others were skipped meanwhile.
    fn give_back(&mut self, batch: VecDeque<&'c Check>) {
        batch.into_iter().rev().for_each(|check| self.waiting.push_front(check));
        if let Some(why) = self.why_skipped.clone() {
            self.skip_rest(&why);
        }
    }

    /// Returns the arguments of a process that runs checks.
    fn arguments(&self, batch: &VecDeque<&Check>) -> Vec<OsString> {
        let mut arguments = arguments(self.options, self.timeout(), self.no_client.as_deref(), self.waited);
        if batch.iter().any(|check| check.runs_again()) {
            let failed = self.rows.iter().filter(|row| row.status.is_failure());
            arguments.extend(failed.map(|row| format!("--failed={}", row.name).into()));
        }
        arguments.extend(batch.iter().map(|check| OsString::from(&check.name)));
        arguments
    }

    fn show_progress(&mut self, check: &Check) {
        self.progress.show(self.rows.len(), &check.name);
    }

    /// Returns the time limit of the next check. A plugin that hangs would use the full limit of many checks, so that it is a
    /// quarter after the first of them, a tenth after several, and a thirtieth after many.
    fn timeout(&self) -> Duration {
        let divisor = match self.timed_out {
            0 => 1,
            1..TRIES => 4,
            TRIES..MANY => 10,
            _ => 30,
        };
        let limit = self.options.timeout / divisor;
        limit.max(LEAST).min(self.options.timeout)
    }

    /// Records the outcome of a check. Returns `false` if the process cannot run more checks.
    fn finish(
        &mut self,
        check: &'c Check,
        process: &mut Process,
        (reached, end): (Reached, End),
        started: Instant,
    ) -> bool {
        self.version = self.version.or(process.version);
        self.client_made |= process.made_client();
        self.unknown_option = process.unknown_option.take().or(self.unknown_option.take());
        match end {
            // Other checks say that a process can have only so many clients.
            End::Finished(finished) if finished.lacks_client && process.had_client => {
                self.waiting.push_front(check);
                return false;
            }
            End::Finished(finished) => {
                process.had_client |= finished.had_client;
                self.end_finished(check, finished, process, started);
                return true;
            }
            End::Skipped(step) => {
                let why = format!(
                    "not run, because {} took longer than {:.0} s in {TRIES} checks in a row",
                    step.name(),
                    self.options.timeout.as_secs_f64()
                );
                self.end(check, Status::NotApplicable, why, Vec::new(), String::new(), started);
            }
            End::Interrupted => {
                self.waiting.push_front(check);
                self.skip_rest(INTERRUPTED);
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
        false
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
            rule: check.rule.clone().into_owned(),
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
        let Finished { status, message, functions, lacks_client, in_vain, .. } = finished;
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
        self.waiting.push_front(check);
        // Another process may have been the first.
        if self.no_client.is_some() {
            return;
        }
        self.no_client = Some(message.clone());
        self.waiting.retain(|check| check.name != CLIENT);
        for client in self.all.iter().filter(|check| check.name == CLIENT) {
            self.end(client, status, message.clone(), Vec::new(), printed.clone(), started);
        }
    }

    /// Removes and returns the checks that have not run, of this round and of the next ones.
    fn take_rest(&mut self) -> VecDeque<&'c Check> {
        let mut rest = std::mem::take(&mut self.waiting);
        rest.append(&mut self.next_round);
        rest.append(&mut self.last_round);
        rest
    }

    /// Skips the remaining checks for this reason. Other processes have taken some of them, which they give back.
    fn skip_rest(&mut self, why: &str) {
        self.why_skipped = Some(why.to_owned());
        for check in self.take_rest() {
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
        for check in self.take_rest() {
            if check.is_of_the_table {
                self.waiting.push_back(check);
            } else if check.name != INITIALIZES {
                let why = format!("not run, because the plugin cannot be initialized: {message}");
                self.end(check, Status::NotApplicable, why, Vec::new(), String::new(), Instant::now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::harness::Sequences;

    #[test]
    fn checks_that_a_process_gives_back_are_skipped_if_all_others_were() {
        let options = Options {
            plugin: "plugin.so".into(),
            create_options: Vec::new(),
            profile: None,
            filter: None,
            only: Vec::new(),
            timeout: Duration::from_secs(1),
            isolation: Isolation::Shared,
            jobs: None,
            sequences: Sequences { seed: 1, rounds: None },
            lists_advice: false,
        };
        let all = checks();
        let selected = select(Some("upload/"), &[]).unwrap();
        let mut run = Run::new(&options, &all, &selected);
        let batch = run.take_batch(NonZero::new(2).unwrap());
        assert!(!batch.is_empty() && !run.waiting.is_empty());
        run.skip_rest("a plugin that hangs");
        run.give_back(batch);
        assert_eq!((run.rows.len(), run.waiting.len()), (selected.len(), 0));
        assert!(run.rows.iter().all(|row| row.message == "not run, because a plugin that hangs"));
    }
}
