//! The outcomes of programs in hosts.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::host::Host;
use crate::process::output::visible;

/// The outcomes of a plugin's programs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The plugin.
    pub plugin: PathBuf,
    /// The platform name that it reports.
    pub platform: String,
    /// The hosts.
    pub hosts: Vec<HostRow>,
}

/// The outcomes in a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostRow {
    /// The host.
    pub host: Host,
    /// The version of the host, if it started.
    pub version: Option<String>,
    /// If the host is not installed, what is missing and what to do.
    pub missing: Option<(String, String)>,
    /// The reason why the host ran no program.
    pub failure: Option<String>,
    /// The programs, in order.
    pub programs: Vec<ProgramRow>,
}

/// A program in a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProgramRow {
    /// The name.
    pub name: String,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The results are within the tolerance.
    Right {
        /// The largest error, relative to the largest expected number.
        error: f64,
        /// A remark about the behavior of the plugin.
        note: Option<String>,
    },
    /// A result is not within the tolerance.
    Wrong {
        /// The largest error, if it is a number.
        error: Option<f64>,
        /// The difference, if it is not a number.
        message: Option<String>,
    },
    /// The plugin did not compile the program.
    Refused(String),
    /// Another error of the host or the plugin.
    Failed(String),
    /// The host has no such program.
    Absent,
    /// The program was not run, because one before it took too long.
    Skipped,
}

impl Outcome {
    /// Returns the entry of the table.
    fn cell(&self) -> String {
        match self {
            Self::Right { .. } => "right".to_owned(),
            Self::Wrong { error: Some(error), .. } => format!("WRONG {error:.1e}"),
            Self::Wrong { error: None, .. } => "WRONG".to_owned(),
            Self::Refused(_) => "refused".to_owned(),
            Self::Failed(_) => "FAILED".to_owned(),
            Self::Absent => "-".to_owned(),
            Self::Skipped => "not run".to_owned(),
        }
    }

    /// Returns what the table does not say.
    fn detail(&self) -> Option<String> {
        match self {
            Self::Right { note, .. } => note.as_ref().map(|note| format!("note: {note}")),
            Self::Wrong { error, message } => {
                let error = error
                    .map(|error| format!("the largest error is {error:.3e} of the largest expected number"));
                let parts: Vec<String> = error.into_iter().chain(message.clone()).collect();
                Some(format!("WRONG: {}", parts.join("; ")))
            }
            Self::Refused(message) => Some(format!("refused: {}", first_line(message))),
            Self::Failed(message) => Some(format!("FAILED: {}", message.replace('\n', "\n      "))),
            Self::Absent | Self::Skipped => None,
        }
    }
}

/// The largest number of characters of a refusal. JSON contains whole messages.
const MAX_MESSAGE: usize = 240;

/// Returns the start of a message in one line.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{} [...]", &line[..end]),
        None => line.to_owned(),
    }
}

impl HostRow {
    /// Returns the name and the version of the host.
    fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.host.title()),
            None => self.host.title().to_owned(),
        }
    }

    fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.programs.iter().filter(|program| is(&program.outcome)).count()
    }
}

impl Report {
    fn count(&self, is: impl Fn(&Outcome) -> bool + Copy) -> usize {
        self.hosts.iter().map(|row| row.count(is)).sum()
    }

    /// Returns the number of wrong and failed programs, and of hosts that did not start.
    #[must_use]
    pub fn failures(&self) -> usize {
        let is_bad = |outcome: &Outcome| matches!(outcome, Outcome::Wrong { .. } | Outcome::Failed(_));
        self.count(is_bad) + self.hosts.iter().filter(|row| row.failure.is_some()).count()
    }

    /// Returns `true` if no program was right or wrong, so that nothing is known about the plugin's results.
    #[must_use]
    pub fn compared_nothing(&self) -> bool {
        self.count(|outcome| matches!(outcome, Outcome::Right { .. } | Outcome::Wrong { .. })) == 0
    }

    /// Formats the report.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{} (platform {:?})\n", self.plugin.display(), self.platform);
        let ran: Vec<&HostRow> = self.hosts.iter().filter(|row| !row.programs.is_empty()).collect();
        table(&mut text, &ran);
        for row in &self.hosts {
            details(&mut text, row);
        }
        let right = self.count(|outcome| matches!(outcome, Outcome::Right { .. }));
        let wrong = self.count(|outcome| matches!(outcome, Outcome::Wrong { .. }));
        let refused = self.count(|outcome| matches!(outcome, Outcome::Refused(_)));
        let failed = self.failures() - wrong;
        let missing = self.hosts.iter().filter(|row| row.missing.is_some()).count();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "\n{right} right, {wrong} wrong, {failed} failed, {refused} refused; {} hosts, {missing} not installed",
            self.hosts.len() - missing
        );
        visible(&text).into_owned()
    }
}

/// Writes the table of programs by hosts.
fn table(text: &mut String, rows: &[&HostRow]) {
    let Some(first) = rows.first() else { return };
    let width =
        first.programs.iter().map(|program| program.name.len()).max().unwrap_or(0).max("program".len());
    let columns: Vec<usize> = rows.iter().map(|row| row.title().len().max("WRONG 1.0e-10".len())).collect();
    let line = |text: &mut String, name: &str, cells: Vec<String>| {
        let cells: String =
            cells.iter().zip(&columns).map(|(cell, width)| format!("  {cell:<width$}")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", format!("  {name:<width$}{cells}").trim_end());
    };
    text.push('\n');
    line(text, "program", rows.iter().map(|row| row.title()).collect());
    for (index, program) in first.programs.iter().enumerate() {
        let cell =
            |row: &&HostRow| row.programs.get(index).map(|of_row| of_row.outcome.cell()).unwrap_or_default();
        line(text, &program.name, rows.iter().map(cell).collect());
    }
}

/// Writes what the table does not say about a host.
fn details(text: &mut String, row: &HostRow) {
    let mut lines: Vec<String> = Vec::new();
    if let Some((what, fix)) = &row.missing {
        lines.push(format!("{what}\n  to do: {fix}"));
    }
    lines.extend(row.failure.iter().map(|failure| format!("FAILED: {}", failure.replace('\n', "\n    "))));
    for program in &row.programs {
        lines.extend(program.outcome.detail().map(|detail| format!("{}: {detail}", program.name)));
    }
    if !lines.is_empty() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}", row.title());
    }
    for line in lines {
        let _ = writeln!(text, "  {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: &[Outcome]) -> Report {
        let programs =
            outcomes.iter().map(|outcome| ProgramRow { name: "dot".to_owned(), outcome: outcome.clone() });
        let row = HostRow {
            host: Host::Jax,
            version: Some("0.10.2".to_owned()),
            missing: None,
            failure: None,
            programs: programs.collect(),
        };
        Report { plugin: "plugin.so".into(), platform: "chip".to_owned(), hosts: vec![row] }
    }

    #[test]
    fn a_refusal_is_no_failure_and_no_comparison() {
        let refused = report(&[Outcome::Refused("UNIMPLEMENTED: stablehlo.dot".to_owned())]);
        assert!(refused.failures() == 0 && refused.compared_nothing());
        let text = refused.text();
        assert!(text.contains("dot: refused: UNIMPLEMENTED: stablehlo.dot"), "{text}");
        assert!(text.contains("0 right, 0 wrong, 0 failed, 1 refused; 1 hosts"), "{text}");
    }

    #[test]
    fn wrong_results_are_failures_with_their_errors() {
        let wrong = report(&[Outcome::Wrong { error: Some(0.25), message: None }, Outcome::Skipped]);
        assert!(wrong.failures() == 1 && !wrong.compared_nothing());
        let text = wrong.text();
        assert!(text.contains("WRONG 2.5e-1") && text.contains("not run"), "{text}");
    }
}
