//! The report of the checks, as text, JSON, JUnit XML or HTML.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};
use serde::{Deserialize, Serialize};

use super::harness::Status;
use crate::process::output::visible;
use crate::requirements::Profile;

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text.
    Text,
    /// JSON.
    Json,
    /// JUnit XML, which CI systems read.
    Junit,
    /// An HTML page.
    Html,
}

/// The outcomes of all checks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The path of the plugin.
    pub plugin: PathBuf,
    /// The major and minor version of the C API that the plugin reports.
    pub version: (i32, i32),
    /// The name of the host's profile.
    pub profile: Option<String>,
    /// The outcomes of the checks, in order.
    pub rows: Vec<Row>,
}

/// The outcome of one check.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The check's name.
    pub name: String,
    /// The rule that the check protects.
    pub rule: String,
    /// The source of the rule, as text.
    pub source: String,
    /// The names of the hosts that need the rule of a plugin of this version.
    pub needed_by: Vec<String>,
    /// The outcome.
    pub status: Status,
    /// The reason, unless the check passed.
    pub message: String,
    /// The functions of the plugin that the check called; empty if the process crashed.
    pub functions: Vec<String>,
    /// If the check failed, the end of the plugin's output to standard output and standard error during the
    /// check.
    pub printed: String,
    /// The duration in seconds.
    pub seconds: f64,
}

impl Row {
    /// Formats the outcome as a line, followed by the rule and its source if the plugin does not follow it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{:<14} {}", self.status.name(), self.name);
        // Writing to a string does not fail.
        if !self.message.is_empty() {
            let _ = write!(text, "\n{INDENT}{}", indented(&self.message));
        }
        if self.status.is_complaint() {
            let _ = write!(text, "\n{INDENT}rule: {}\n{INDENT}source: {}", self.rule, self.source);
        }
        if !self.printed.is_empty() {
            let _ = write!(text, "\n{INDENT}it printed: {}", indented(&self.printed));
        }
        text
    }

    /// Converts the outcome to a JUnit test case, whose class is the area of the check.
    fn test_case(&self, is_needed: bool) -> TestCase {
        let fails = self.status.is_failure() && is_needed;
        let mut status = match self.status {
            Status::Passed => TestCaseStatus::success(),
            _ if fails => TestCaseStatus::non_success(NonSuccessKind::Failure),
            _ => TestCaseStatus::skipped(),
        };
        if self.status != Status::Passed {
            status.set_message(self.message.as_str());
        }
        if fails {
            status.set_type(self.status.name()).set_description(self.rule.as_str());
        }
        let (area, rule) = self.name.split_once('/').unwrap_or(("", &self.name));
        let mut case = TestCase::new(rule, status);
        case.set_classname(area).set_time(Duration::try_from_secs_f64(self.seconds).unwrap_or_default());
        if !self.printed.is_empty() {
            case.set_system_out(self.printed.as_str());
        }
        case
    }
}

/// The indentation of continuation lines.
const INDENT: &str = "                 ";

/// Indents a plugin's text, so that it does not look like another part of the report.
fn indented(text: &str) -> String {
    visible(text).replace('\n', &format!("\n{INDENT}"))
}

/// The maximum number of names that are listed for one reason.
const NAMED: usize = 20;

/// Formats the checks that did not pass. Checks that did not apply for the same reason are grouped.
fn not_passed(rows: &[&Row]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut shown: Vec<(Status, &str)> = Vec::new();
    for row in rows.iter().filter(|row| row.status != Status::Passed) {
        let key = (row.status, row.message.as_str());
        let alike = |other: &&&Row| (other.status, other.message.as_str()) == key;
        if row.status.is_complaint() || rows.iter().filter(alike).count() == 1 {
            texts.push(row.text());
        } else if !shown.contains(&key) {
            shown.push(key);
            let names: Vec<&str> = rows.iter().filter(alike).map(|row| row.name.as_str()).collect();
            let (named, more) = names.split_at(names.len().min(NAMED));
            let mut lines: Vec<String> =
                named.iter().map(|name| format!("{:<14} {name}", row.status.name())).collect();
            if !more.is_empty() {
                lines.push(format!("{INDENT}and {} more", more.len()));
            }
            lines.push(format!("{INDENT}{}", indented(&row.message)));
            texts.push(lines.join("\n"));
        }
    }
    texts
}

impl Report {
    /// Returns the number of checks with this outcome.
    #[must_use]
    pub fn count(&self, status: Status) -> usize {
        self.rows.iter().filter(|row| row.status == status).count()
    }

    /// Returns `true` if the host of the profile needs the rule, or if there is no profile.
    fn is_needed(&self, row: &Row) -> bool {
        let needs = |profile: &String| row.status == Status::Missing || row.needed_by.contains(profile);
        self.profile.as_ref().is_none_or(needs)
    }

    /// Returns the number of failures that fail the run: with a profile, those of rules that its host needs.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.status.is_failure() && self.is_needed(row)).count()
    }

    /// Returns the failures of rules that the host of the profile does not need.
    fn tolerated(&self) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.status.is_failure() && !self.is_needed(row)).collect()
    }

    /// Returns `true` if no check applied, so that the report contains no information about the plugin.
    #[must_use]
    pub fn checked_nothing(&self) -> bool {
        self.rows.iter().all(|row| row.status == Status::NotApplicable)
    }

    /// Returns the plugin, its version, and the host of the profile.
    #[must_use]
    pub fn subject(&self) -> String {
        let (major, minor) = self.version;
        let profile = self.profile.as_ref().and_then(|name| name.parse::<Profile>().ok());
        let host = profile.map_or_else(String::new, |profile| format!(", for {}", profile.title()));
        visible(&format!("{}, version {major}.{minor} of the C API{host}", self.plugin.display()))
            .into_owned()
    }

    /// Returns a summary in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut summary = format!(
            "{} passed, {} unsupported, {} not applicable, {} failed",
            self.count(Status::Passed),
            self.count(Status::Unsupported),
            self.count(Status::NotApplicable),
            self.failures()
        );
        // Writing to a string does not fail.
        if let Some(profile) = &self.profile {
            let _ = write!(summary, ", {} failed that {profile} does not need", self.tolerated().len());
        }
        match self.count(Status::Advice) {
            0 => {}
            count => _ = write!(summary, ", {count} advice"),
        }
        summary
    }

    /// Formats the report. Text contains only the checks that did not pass.
    #[must_use]
    pub fn print(&self, format: Format) -> String {
        match format {
            Format::Text => {
                let tolerated = self.tolerated();
                let is_tolerated = |row: &&Row| tolerated.iter().any(|other| other.name == row.name);
                let rows: Vec<&Row> = self.rows.iter().filter(|row| !is_tolerated(row)).collect();
                let mut texts = not_passed(&rows);
                if let Some(profile) = self.profile.as_ref().filter(|_| !tolerated.is_empty()) {
                    texts.push(format!("not needed by {profile}:"));
                    texts.extend(tolerated.iter().map(|row| row.text()));
                }
                texts.into_iter().chain([self.subject(), self.summary()]).collect::<Vec<_>>().join("\n")
                    + "\n"
            }
            Format::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
            Format::Junit => self.junit(),
            Format::Html => self.html(),
        }
    }

    fn junit(&self) -> String {
        let mut suite = TestSuite::new(self.subject());
        suite.add_test_cases(self.rows.iter().map(|row| row.test_case(self.is_needed(row))));
        let mut report = quick_junit::Report::new("cargo pjrt conform");
        report.add_test_suite(suite);
        // Writing to a string does not fail.
        report.to_string().unwrap_or_default()
    }

    fn html(&self) -> String {
        let title = escaped(&format!("Conformance of {}", self.subject()));
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>\
             body{{font-family:sans-serif}}td{{padding:.2em .6em;vertical-align:top}}\
             .bad{{background:#fdd}}.good{{background:#dfd}}</style></head>\n<body><h1>{title}</h1>\n<p>{}</p>\n<table>\n",
            escaped(&self.summary())
        );
        for row in &self.rows {
            let class = match row.status {
                Status::Passed => "good",
                status if status.is_failure() && self.is_needed(row) => "bad",
                _ => "",
            };
            let _ = writeln!(
                page,
                "<tr class=\"{class}\"><td>{}</td><td>{}</td><td>{}<br><small>{}</small></td><td>{}<pre>{}</pre></td></tr>",
                row.status.name(),
                escaped(&row.name),
                escaped(&row.rule),
                escaped(&row.source),
                escaped(&row.message),
                escaped(&row.printed)
            );
        }
        page.push_str("</table></body></html>\n");
        page
    }
}

/// Escapes text for HTML. Control characters are replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_that_did_not_apply_for_the_same_reason_are_together() {
        let row = |number: usize, status, message: &str| Row {
            name: format!("area/rule_{number}"),
            rule: "a rule.".into(),
            source: "advice: a reason.".into(),
            needed_by: Vec::new(),
            status,
            message: message.into(),
            functions: Vec::new(),
            printed: String::new(),
            seconds: 0.0,
        };
        let mut rows: Vec<Row> =
            (0..30).map(|number| row(number, Status::NotApplicable, "no client")).collect();
        rows.insert(1, row(30, Status::Unsupported, "other"));
        rows.push(row(31, Status::Wrong, "no client"));
        let text =
            Report { plugin: "x.so".into(), version: (0, 117), profile: None, rows }.print(Format::Text);
        assert_eq!(text.matches("no client").count(), 2, "{text}");
        assert!(
            text.contains("area/rule_19\n")
                && !text.contains("area/rule_20")
                && text.contains("and 10 more\n"),
            "{text}"
        );
        assert!(text.contains("WRONG          area/rule_31") && text.contains("area/rule_30\n"), "{text}");
    }

    #[test]
    fn reports_escape_what_plugins_say() {
        let row = Row {
            name: "area/rule".into(),
            rule: "a < b".into(),
            source: "advice: a reason.".into(),
            needed_by: Vec::new(),
            status: Status::Wrong,
            message: "\"<&\u{1}".into(),
            functions: Vec::new(),
            printed: "\u{1b}[2J\npassed".into(),
            seconds: 0.5,
        };
        let report = Report { plugin: "x.so".into(), version: (0, 117), profile: None, rows: vec![row] };
        let xml = report.print(Format::Junit);
        assert!(xml.contains("message=\"&quot;&lt;&amp;\" type=\"WRONG\">a &lt; b</failure>"), "{xml}");
        assert!(!xml.contains('\u{1b}'), "{xml}");
        assert!(report.print(Format::Html).contains("&quot;&lt;&amp;"));
        let text = report.print(Format::Text);
        assert!(text.contains("it printed: \\u{1b}[2J\n                 passed\n"), "{text}");
        let read: Report = serde_json::from_str(&report.print(Format::Json)).unwrap();
        assert_eq!(read.failures(), 1);
    }
}
