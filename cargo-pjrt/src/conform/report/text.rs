//! The report as text: failures by cause, then everything else that did not pass.

use std::fmt::Write as _;

use super::cause::listed;
use super::explanation::depends_on_timing;
use super::printed::without_repetitions;
use super::{Report, Row};
use crate::conform::harness::Status;
use crate::process::output::visible;

/// The indentation of continuation lines.
const INDENT: &str = "                 ";

/// The maximum number of names that are listed for one reason.
const NAMED: usize = 20;

/// Formats the report, which ends with the plugin and the summary.
pub(super) fn format(report: &Report) -> String {
    let tolerated = report.tolerated();
    let mut texts = causes(report, &report.needed());
    if let Some(profile) = report.profile.as_ref().filter(|_| !tolerated.is_empty()) {
        texts.push(format!("not needed by {profile}:"));
        texts.extend(causes(report, &tolerated));
    }
    texts.extend(advice(report));
    let others: Vec<&Row> =
        report.rows.iter().filter(|row| row.status != Status::Passed && !row.status.is_complaint()).collect();
    let has_failed = report.rows.iter().any(|row| row.status.is_failure());
    if !has_failed && !others.is_empty() {
        texts.push("no check failed; these do not apply to the plugin:".to_owned());
    }
    texts.extend(without_complaint(&others));
    if has_failed {
        texts.push(format!("in a debugger: {}", report.debugger("NAME")));
    }
    texts.extend(report.needs_devices());
    texts.extend([report.times(), report.subject(), report.summary()]);
    texts.join("\n") + "\n"
}

/// Formats failures: each cause with its echoes. A failure whose cause is not among them stands alone.
fn causes(report: &Report, failures: &[&Row]) -> Vec<String> {
    listed(failures).into_iter().map(|cause| one_cause(report, cause, failures)).collect()
}

fn one_cause(report: &Report, cause: &Row, failures: &[&Row]) -> String {
    let mut text = complaint(cause);
    if !cause.needed_by.is_empty() {
        let _ = write!(text, "\n{INDENT}needed by: {}", cause.needed_by.join(", "));
    }
    let _ = write!(text, "\n{INDENT}again: {}", report.again(&cause.name));
    if depends_on_timing(&cause.name) {
        text.push_str(" (the outcome depends on the timing of threads: repeat it)");
    }
    let echoes = report.echoes(cause);
    let echoes: Vec<&&Row> =
        echoes.iter().filter(|echo| failures.iter().any(|row| row.name == echo.name)).collect();
    if !echoes.is_empty() {
        let _ = write!(text, "\n{INDENT}probably echoes of this failure:");
        let (shown, more) = echoes.split_at(echoes.len().min(NAMED));
        for echo in shown {
            let _ = write!(text, "\n{INDENT}  {:<9} {}", echo.status.name(), echo.name);
            let message = if echo.message.is_empty() { &echo.rule } else { &echo.message };
            let _ = write!(text, ": {}", visible(message).replace('\n', " "));
        }
        if !more.is_empty() {
            let names: Vec<&str> = more.iter().map(|echo| echo.name.as_str()).collect();
            let _ = write!(text, "\n{INDENT}  and {}: {}", more.len(), names.join(", "));
        }
    }
    text
}

/// Formats an outcome as a line, followed by the reason, the rule and its source if the plugin does not follow
/// it, and what the plugin printed.
pub(super) fn complaint(row: &Row) -> String {
    let mut text = format!("{:<14} {}", row.status.name(), row.name);
    // Writing to a string does not fail.
    if !row.message.is_empty() {
        let _ = write!(text, "\n{INDENT}{}", indented(&row.message));
    }
    if row.status.is_complaint() {
        let _ = write!(text, "\n{INDENT}rule: {}\n{INDENT}source: {}", row.rule, row.source);
    }
    if !row.printed.is_empty() {
        let _ = write!(text, "\n{INDENT}it printed: {}", indented(&without_repetitions(&row.printed)));
    }
    text
}

/// Formats the advice, or its number and names if it was not asked for.
fn advice(report: &Report) -> Vec<String> {
    let rows = report.advice();
    if report.lists_advice || rows.is_empty() {
        return rows.into_iter().map(complaint).collect();
    }
    let names = some_of(&rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>());
    let count = match rows.len() {
        1 => "1 piece of advice".to_owned(),
        count => format!("{count} pieces of advice"),
    };
    vec![format!(
        "{:<14} {count}: {names}\n{INDENT}--advice lists them with their reasons",
        Status::Advice.name()
    )]
}

/// Formats the checks that are no complaint. Checks with the same status and reason are grouped.
fn without_complaint(rows: &[&Row]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut shown: Vec<(Status, &str)> = Vec::new();
    for row in rows {
        let key = (row.status, row.message.as_str());
        if shown.contains(&key) {
            continue;
        }
        shown.push(key);
        let alike = |other: &&&Row| (other.status, other.message.as_str()) == key;
        let names: Vec<&str> = rows.iter().filter(alike).map(|row| row.name.as_str()).collect();
        if names.len() == 1 {
            texts.push(complaint(row));
            continue;
        }
        let (status, count) = (row.status.name(), names.len());
        let reason = indented(&row.message);
        texts.push(format!("{status:<14} {count} checks: {}\n{INDENT}{reason}", some_of(&names)));
    }
    texts
}

/// Lists the first few names, and the number of the others.
fn some_of(names: &[&str]) -> String {
    let (named, more) = names.split_at(names.len().min(NAMED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    named.join(", ") + &more
}

/// Indents a plugin's text, so that it does not look like another part of the report.
fn indented(text: &str) -> String {
    visible(text).replace('\n', &format!("\n{INDENT}"))
}
