//! The parent process: observes both plugins, and compares the facts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::diff::{Report, Side, diff};
use super::observe::fact::{Fact, Kind, Message, Observation, Value};
use super::options::Options;
use super::subject::{Subject, subjects};
use crate::conform::{self, Isolation, Row, Status};
use crate::process::Scratch;
use crate::process::child::{Prints, Received, Worker};
use crate::run::programs;
use crate::session::log::Log;
use pjrt_testing::host::Code;

/// A plugin, as one of the two arguments names it.
struct Named<'o> {
    path: &'o Path,
    options: &'o [String],
    scratch: PathBuf,
}

/// Compares two plugins. `program` is the path of this program, which must have the hidden subcommands
/// `compare-child` and `conform-child`.
///
/// # Errors
///
/// Returns an error if there is no program in the folder of programs, if a child cannot be started, or if a
/// library cannot be loaded as a plugin.
pub fn compare(options: &Options, program: &Path) -> Result<Report, String> {
    let programs = options.programs.as_deref().map(programs).transpose()?.unwrap_or_default();
    let mut subjects = subjects(&programs, &options.sessions);
    let scratch = Scratch::new("compare")?;
    let named =
        |path, options, name| Ok::<_, String>(Named { path, options, scratch: scratch.folder(name)? });
    let plugins = [named(&options.a, &options.options_a, "a")?, named(&options.b, &options.options_b, "b")?];
    let mut sides = Vec::new();
    for plugin in &plugins {
        sides.push(observe(plugin, options, program, &subjects)?);
    }
    if !options.no_checks {
        let checked = [check(&plugins[0], options, program)?, check(&plugins[1], options, program)?];
        let names = checked.iter().flatten().map(|row| &row.name);
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            subjects.push(Subject::new("check", name));
            let rows = checked.each_ref().map(|rows| rows.iter().find(|row| row.name == *name));
            let is_same = matches!(rows, [Some(a), Some(b)] if fail_alike((a.status, &a.message), (b.status, &b.message)));
            for (side, row) in sides.iter_mut().zip(rows) {
                side.observations.push(row.map(|row| facts_of(row, is_same)).unwrap_or_default());
            }
        }
    }
    let [a, b] = <[Side; 2]>::try_from(sides).map_err(|_| "expected two plugins".to_owned())?;
    diff(&subjects, a, b, options.tolerance)
}

impl Options {
    /// Checks the arguments that the parser of the command line cannot check.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder of programs contains none, if a session is no log, or if no check has the
    /// text of the filter in its name.
    pub fn check(&self) -> Result<(), String> {
        if let Some(folder) = &self.programs
            && programs(folder)?.is_empty()
        {
            return Err(format!(
                "{}: the folder contains no program; expected files that end with .mlir, .mlirbc, .bc, .pb or .hlo, or folders as \
                 for `run --replay`",
                folder.display()
            ));
        }
        for session in &self.sessions {
            Log::open(session)?;
        }
        conform::select(self.filter.as_deref(), &[]).map(drop)
    }
}

/// Runs the checks of the conformance kit.
fn check(plugin: &Named<'_>, options: &Options, program: &Path) -> Result<Vec<Row>, String> {
    let run = conform::Options {
        plugin: plugin.path.to_owned(),
        create_options: plugin.options.to_vec(),
        profile: None,
        filter: options.filter.clone(),
        only: Vec::new(),
        timeout: options.timeout,
        isolation: if options.shared { Isolation::Shared } else { Isolation::Each },
        jobs: None,
        sequences: conform::Sequences::default(),
        lists_advice: true,
    };
    conform::run(&run, program).map(|report| report.rows)
}

/// Returns `true` if two outcomes, which consist of a status and a message, are failures with the same codes of
/// errors, regardless of their texts.
fn fail_alike(a: (Status, &str), b: (Status, &str)) -> bool {
    let codes = |message: &str| -> Vec<Code> {
        message.split(|c: char| !c.is_ascii_uppercase() && c != '_').filter_map(Code::by_name).collect()
    };
    a.0 == b.0 && a.0.is_complaint() && codes(a.1) == codes(b.1)
}

/// Converts the outcome of a check to facts. The message of a plugin that breaks the rule is behavior, unless
/// the other plugin does the same; the reason why it lacks a feature is not.
fn facts_of(row: &Row, both_fail_alike: bool) -> Observation {
    let fact = |what: &str, kind, value: &str| Fact {
        what: what.to_owned(),
        kind,
        value: Value::Text(value.to_owned()),
    };
    let (status, kind) = match row.status {
        status if status.is_complaint() && !both_fail_alike => {
            (format!("{}: {}", status.name(), row.message), Kind::Behavior)
        }
        status => (status.name().to_owned(), Kind::Identity),
    };
    let mut facts = vec![fact("status", Kind::Behavior, &status)];
    if kind == Kind::Identity {
        facts.push(fact("message", kind, &row.message));
    }
    Observation { facts, end: None }
}

/// Observes a plugin in all subjects. A child that ends is replaced for the remaining subjects.
fn observe(
    plugin: &Named<'_>,
    options: &Options,
    program: &Path,
    subjects: &[Subject],
) -> Result<Side, String> {
    let located = |why: String| format!("{}: {why}", plugin.path.display());
    let mut side = Side { path: plugin.path.to_owned(), ..Side::default() };
    side.observations.resize_with(subjects.len(), Observation::default);
    let mut first = 0;
    while first < subjects.len() {
        let mut worker = start(plugin, program, first, &subjects[first..])?;
        let mut at = None;
        let mut creating = false;
        let end = loop {
            let line = match worker.receive(options.timeout) {
                Received::Line(line) => line,
                Received::TimedOut => {
                    break format!("it took longer than {:.0} s", options.timeout.as_secs_f64());
                }
                Received::Ended(ending) if ending.is_good() && at == Some(subjects.len() - 1) => {
                    return Ok(side);
                }
                Received::Ended(ending) => break format!("the process ended with {ending}"),
            };
            match serde_json::from_str(&line) {
                Ok(Message::Unusable(why)) => return Err(located(why)),
                Ok(Message::Loaded(version)) => side.version = Some(version),
                Ok(Message::Creating) => creating = true,
                Ok(Message::Begins(index)) => (at, creating) = (Some(index), false),
                Ok(Message::Fact(fact)) => side.observations[at.unwrap_or(first)].facts.push(fact),
                Err(_) => {}
            }
        };
        if side.version.is_none() {
            let printed = worker.printed();
            let printed = if printed.is_empty() { printed } else { format!("; it printed: {printed}") };
            return Err(located(format!("while loading the library: {end}{printed}")));
        }
        if creating {
            // Each of the remaining subjects would end in the same way.
            let next = at.map_or(first, |at| at + 1);
            side.observations[next].end = Some(format!("while creating a client, {end}"));
            side.observed = Some(next + 1);
            return Ok(side);
        }
        let at = at.unwrap_or(first);
        side.observations[at].end = Some(end);
        first = at + 1;
    }
    Ok(side)
}

/// Starts a child that observes these subjects.
fn start(plugin: &Named<'_>, program: &Path, first: usize, subjects: &[Subject]) -> Result<Worker, String> {
    let mut arguments: Vec<OsString> = vec!["compare-child".into(), plugin.path.into()];
    arguments.extend(["--scratch".into(), plugin.scratch.clone().into()]);
    arguments.push(format!("--first={first}").into());
    arguments.extend(plugin.options.iter().map(|option| format!("--option={option}").into()));
    arguments.push("--".into());
    arguments.extend(subjects.iter().map(|subject| OsString::from(subject.text())));
    Worker::start(program, &arguments, Prints::Kept)
        .map_err(|error| format!("cannot start {}: {error}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_with_the_same_codes_are_alike() {
        let first = (Status::Advice, "garbage was refused with PJRT_Client_Compile: UNKNOWN: no module");
        assert!(fail_alike(
            first,
            (Status::Advice, "garbage was refused with PJRT_Client_Compile: UNKNOWN: what?")
        ));
        assert!(!fail_alike(
            first,
            (Status::Advice, "garbage was refused with PJRT_Client_Compile: INTERNAL: no module")
        ));
        assert!(!fail_alike(first, (Status::Wrong, first.1)));
        assert!(!fail_alike((Status::Passed, ""), (Status::Passed, "")));
    }
}
