//! The parent process, which survives a program that ends the plugin's process or never ends.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use super::message::{AGAIN, Message, Outcome};
use super::options::Options;
use super::order::Order;
use super::report::{Report, Row, Status};
use super::suite::{Case, Suite};
use super::{features, identity};
use crate::process::child::{Prints, Received, Worker};
use crate::process::progress::Progress;
use crate::process::{interrupt, usable_folder};

/// The numbers of programs that exceed the time limit, and that end the process, before the rest is not run.
const HUNG: usize = 40;
const CRASHED: usize = 100;

/// The shortest time limit.
const LEAST: Duration = Duration::from_secs(2);

/// Runs the selected programs on the plugin. `program` is the path of this program, which must have the hidden subcommand
/// `numerics-child`.
///
/// # Errors
///
/// Returns an error if no program is selected, if a suite cannot be read, if a child cannot be started, or if the plugin cannot
/// be used.
pub fn numerics(options: &Options, program: &Path) -> Result<Report, String> {
    let suites = identity::suites(&options.selection)?;
    let cases: Vec<(&Suite, &Case)> = suites
        .iter()
        .flat_map(|suite| suite.cases(&options.selection).map(move |case| (suite, case)))
        .collect();
    if cases.is_empty() {
        return Err(none_selected(&suites, options));
    }
    if let Some(folder) = &options.selection.dump {
        usable_folder(folder)?;
    }
    let started = Instant::now();
    let mut progress = Progress::new(cases.len(), "programs");
    let mut rows: Vec<Row> = Vec::new();
    let mut stopped = None;
    while rows.len() < cases.len() && stopped.is_none() {
        run_from(options, program, &cases, &mut rows, &mut progress)?;
        let count = |status| rows.iter().filter(|row| row.status == status).count();
        stopped = match () {
            () if interrupt::is_requested() => Some("a signal ended the run".to_owned()),
            () if count(Status::TimedOut) == HUNG => Some(format!("{HUNG} programs exceeded the time limit")),
            () if count(Status::Crashed) == CRASHED => Some(format!("{CRASHED} programs ended the process")),
            () => None,
        };
    }
    progress.end();
    let (seconds, not_run) = (started.elapsed().as_secs_f64(), cases.len() - rows.len());
    let stopped =
        stopped.filter(|_| not_run > 0).map(|why| format!("{not_run} programs were not run, because {why}"));
    if !interrupt::is_requested() {
        run_alone(options, program, &cases, &mut rows)?;
    }
    features::explain(&cases, &mut rows);
    features::name_causes(&cases, &mut rows);
    Ok(Report { plugin: options.plugin.clone(), rows, stopped, seconds })
}

/// Returns the time limit of the next program. A plugin that hangs would use the full limit for many programs, so that it is a quarter
/// after the first of them, and a tenth after several.
fn limit(options: &Options, rows: &[Row]) -> Duration {
    let divisor = match rows.iter().filter(|row| row.status == Status::TimedOut).count() {
        0 => 1,
        1 | 2 => 4,
        _ => 10,
    };
    (options.timeout / divisor).max(LEAST).min(options.timeout)
}

/// Returns the error for a selection that matches nothing: the names that exist.
fn none_selected(suites: &[Suite], options: &Options) -> String {
    let mut all = options.selection.clone();
    (all.op, all.element, all.skip) = (Vec::new(), Vec::new(), Vec::new());
    let names = |name: fn(&Case) -> &String| {
        let mut names: Vec<&String> = suites.iter().flat_map(|suite| suite.cases(&all)).map(name).collect();
        names.sort_unstable();
        names.dedup();
        names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    format!(
        "no program is selected; the values of --op are {}; those of --element are {}",
        names(|case| &case.op),
        names(|case| &case.element)
    )
}

/// Runs the first wrong program of each of a few operations once more, in a process of its own, and adds to its message if it is
/// right there.
fn run_alone(
    options: &Options,
    program: &Path,
    cases: &[(&Suite, &Case)],
    rows: &mut [Row],
) -> Result<(), String> {
    const MOST: usize = 8;
    let order = Order::new();
    let mut seen = HashSet::new();
    let is_first = |at: &usize| rows[*at].status == Status::Wrong && seen.insert(&rows[*at].op);
    let mut wrong: Vec<usize> = (0..rows.len()).filter(is_first).collect();
    wrong.sort_by_cached_key(|at| order.key(&cases[*at].1.op));
    wrong.truncate(MOST);
    for at in wrong {
        let mut worker = start(options, program, at)?;
        let ends = loop {
            match worker.receive(options.timeout) {
                Received::Line(line) => {
                    if let Ok(Message::Ends(outcome)) = serde_json::from_str(&line) {
                        break Some(outcome);
                    }
                }
                Received::Ended(_) | Received::TimedOut => break None,
            }
        };
        if let (Some(Outcome::Right(_)), true) = (ends, rows[at].message.is_empty()) {
            rows[at].message = "in a process of its own, the result is right: the plugin probably returns an earlier program, or keeps \
                                state of what ran before"
                .to_owned();
        }
    }
    Ok(())
}

/// Runs programs in one child, until all have run or the child ends.
fn run_from(
    options: &Options,
    program: &Path,
    cases: &[(&Suite, &Case)],
    rows: &mut Vec<Row>,
    progress: &mut Progress,
) -> Result<(), String> {
    let mut worker = start(options, program, rows.len())?;
    let mut at = None;
    let row = |index: usize, status: Status, message: String| {
        let (suite, case) = cases[index];
        Row::new(&suite.name, case, status, message)
    };
    while rows.len() < cases.len() {
        if interrupt::is_requested() {
            return Ok(());
        }
        let timeout = limit(options, rows);
        let (status, mut message) = match worker.receive(timeout) {
            Received::Line(line) => {
                match serde_json::from_str(&line) {
                    Ok(Message::Unusable(why)) => return Err(format!("{}: {why}", options.plugin.display())),
                    Ok(Message::Begins(index)) => {
                        at = Some(index);
                        progress.show(index, &cases[index].1.label());
                    }
                    Ok(Message::Ends(outcome)) => {
                        rows.push(finished(row(rows.len(), Status::Right, String::new()), outcome));
                        at = None;
                    }
                    Ok(Message::Ready) | Err(_) => {}
                }
                continue;
            }
            Received::Ended(ending) => (Status::Crashed, format!("the process ended with {ending}")),
            Received::TimedOut if interrupt::is_requested() => return Ok(()),
            Received::TimedOut => {
                let seconds = timeout.as_secs_f64();
                (Status::TimedOut, format!("no result after {seconds:.0} s; --timeout changes the limit"))
            }
        };
        if at.is_none() {
            let when = "while the plugin was loaded and a client created, or between two programs";
            message = format!("{}: {when}: {message}", options.plugin.display());
        }
        let printed = worker.printed_so_far();
        if !printed.is_empty() {
            message = format!("{message}; the plugin printed: {printed}");
        }
        let Some(index) = at else { return Err(message) };
        rows.push(row(index, status, message));
        return Ok(());
    }
    Ok(())
}

/// Adds the outcome to a row.
fn finished(row: Row, outcome: Outcome) -> Row {
    match outcome {
        Outcome::Right(largest) => Row { largest, ..row },
        Outcome::Refused(message) => Row { status: Status::Refused, message, ..row },
        Outcome::Failed(message) => Row { status: Status::Failed, message, ..row },
        Outcome::Wrong(faults, 0) => Row { status: Status::Wrong, faults, ..row },
        Outcome::Wrong(faults, right) => {
            let message = format!(
                "{right} of {AGAIN} further runs are right: the result depends on timing, such as on data that the plugin does not wait \
                 for, or on what ran before"
            );
            Row { status: Status::Wrong, message, faults, ..row }
        }
    }
}

fn start(options: &Options, program: &Path, first: usize) -> Result<Worker, String> {
    let mut arguments: Vec<OsString> = vec!["numerics-child".into(), options.plugin.clone().into()];
    arguments.push(format!("--first={first}").into());
    arguments.extend(options.selection.arguments());
    Worker::start(program, &arguments, Prints::Kept)
        .map_err(|error| format!("cannot start {}: {error}", program.display()))
}
