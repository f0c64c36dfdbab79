//! The parent process, which survives a program that ends the plugin's process or never ends.

use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

use super::message::{Message, Outcome};
use super::options::Options;
use super::report::{Report, Row, Status};
use super::suite::{Case, Suite};
use super::{features, identity};
use crate::process::child::{Prints, Received, Worker};
use crate::process::progress::Progress;

/// The number of processes that may end in a row before a program ran.
const TRIES: usize = 3;

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
    let started = Instant::now();
    let mut progress = Progress::new(cases.len(), "programs");
    let mut rows: Vec<Row> = Vec::new();
    let mut broken = 0;
    while rows.len() < cases.len() {
        let before = rows.len();
        run_from(options, program, &cases, &mut rows, &mut progress)?;
        broken = if rows.len() == before + 1 { broken + 1 } else { 0 };
        if broken == TRIES && rows.len() < cases.len() {
            progress.end();
            return Err(format!(
                "{TRIES} programs in a row ended the plugin's process; the last one is {}: {}",
                cases[rows.len() - 1].1.label(),
                rows[rows.len() - 1].message
            ));
        }
    }
    progress.end();
    features::explain(&cases, &mut rows);
    features::name_causes(&cases, &mut rows);
    Ok(Report { plugin: options.plugin.clone(), rows, seconds: started.elapsed().as_secs_f64() })
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
        let (status, mut message) = match worker.receive(options.timeout) {
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
            Received::TimedOut => {
                let seconds = options.timeout.as_secs_f64();
                (Status::TimedOut, format!("no result after {seconds:.0} s; --timeout changes the limit"))
            }
        };
        let printed = worker.printed_so_far();
        if !printed.is_empty() {
            message = format!("{message}; the plugin printed: {printed}");
        }
        let Some(index) = at else {
            let when = "while the plugin was loaded and a client created, or between two programs";
            return Err(format!("{}: {message} {when}", options.plugin.display()));
        };
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
        Outcome::Wrong(faults) => Row { status: Status::Wrong, faults, ..row },
    }
}

fn start(options: &Options, program: &Path, first: usize) -> Result<Worker, String> {
    let mut arguments: Vec<OsString> = vec!["numerics-child".into(), options.plugin.clone().into()];
    arguments.push(format!("--first={first}").into());
    arguments.extend(options.selection.arguments());
    Worker::start(program, &arguments, Prints::Kept)
        .map_err(|error| format!("cannot start {}: {error}", program.display()))
}
