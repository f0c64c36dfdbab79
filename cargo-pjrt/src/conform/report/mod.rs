//! The report of the checks, as text, JSON, JUnit XML or HTML.

pub(super) mod cause;
pub(super) mod explanation;
mod html;
mod junit;
mod printed;
mod text;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::harness::{ONE_DEVICE, Sequences, Status, TIMEOUT};
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
    /// The options of the plugin's clients, as `name=value`.
    pub create_options: Vec<String>,
    /// The name of the host's profile.
    pub profile: Option<String>,
    /// The plugin's message about an option that it does not know, if that was checked. It often names the options
    /// that exist.
    pub unknown_option: Option<String>,
    /// `true` if a signal ended the run before all checks had run.
    pub interrupted: bool,
    /// `true` if the text lists the advice, and not only the number.
    #[serde(skip)]
    pub lists_advice: bool,
    /// The time limit of each check.
    #[serde(skip)]
    pub timeout: Duration,
    /// The seed and the number of the random sequences of calls.
    #[serde(skip)]
    pub sequences: Sequences,
    /// The outcomes of the checks, in order.
    pub rows: Vec<Row>,
    /// The duration of the run in seconds. Several checks may have run at once.
    pub seconds: f64,
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
    /// The name of the failed check whose failure probably has the same cause, and explains this one.
    pub echo_of: Option<String>,
    /// The functions of the plugin that the check called; if the process crashed or hung, in the order of their
    /// first calls.
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
        text::complaint(self)
    }
}

/// The number of checks whose times the report lists.
const SLOWEST: usize = 5;

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

    /// Returns the advice, except where a failure explains why the plugin does not follow it.
    fn advice(&self) -> Vec<&Row> {
        let is_advice = |row: &&Row| row.status == Status::Advice && row.echo_of.is_none();
        self.rows.iter().filter(is_advice).collect()
    }

    /// Returns the number of failures that fail the run: with a profile, those of rules that its host needs.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.needed().len()
    }

    /// Returns the failures of rules that the host of the profile does not need.
    fn tolerated(&self) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.status.is_failure() && !self.is_needed(row)).collect()
    }

    /// Returns the failures that fail the run.
    fn needed(&self) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.status.is_failure() && self.is_needed(row)).collect()
    }

    /// Returns the number of failures that fail the run and that no other of them explains.
    #[must_use]
    pub fn causes(&self) -> usize {
        let needed = self.needed();
        let is_listed = |cause: &String| needed.iter().any(|row| row.name == *cause);
        needed.iter().filter(|row| !row.echo_of.as_ref().is_some_and(is_listed)).count()
    }

    /// Returns advice if checks did not apply because the plugin has only one device.
    fn needs_devices(&self) -> Option<String> {
        let lacks = |row: &&Row| row.status == Status::NotApplicable && row.message == ONE_DEVICE;
        let number = self.rows.iter().filter(lacks).count();
        let checks = match number {
            0 => return None,
            1 => "1 check needs".to_owned(),
            _ => format!("{number} checks need"),
        };
        let said = self.unknown_option.as_ref().filter(|message| message.contains("device")).map(|message| {
            format!(". The plugin says about an option that it does not know: {}", visible(message))
        });
        Some(format!(
            "{checks} two devices. If the plugin has an option for the number of its devices, pass it with --option, such as \
             --option num_devices=2{}",
            said.unwrap_or_default()
        ))
    }

    /// Returns the failures that this failure probably explains.
    fn echoes(&self, cause: &Row) -> Vec<&Row> {
        self.rows.iter().filter(|row| row.echo_of.as_ref() == Some(&cause.name)).collect()
    }

    /// Returns the command that runs a check again.
    fn again(&self, check: &str) -> String {
        let mut command = self.without_a_limit(check);
        let timeout = self.timeout.as_secs_f64().to_string();
        if !self.timeout.is_zero() && timeout != TIMEOUT {
            command += &format!(" --timeout {timeout}");
        }
        command
    }

    /// Returns the command that runs a check again, without a time limit.
    fn without_a_limit(&self, check: &str) -> String {
        let options: String =
            self.create_options.iter().map(|option| format!(" --option {}", quoted(option))).collect();
        let profile = self.profile.as_ref().map(|name| format!(" --profile {name}")).unwrap_or_default();
        let Sequences { seed, rounds } = self.sequences;
        let is_random = check.starts_with("random/") && self.sequences != Sequences::default();
        let rounds = rounds.map(|rounds| format!(" --rounds {rounds}")).unwrap_or_default();
        let sequences = if is_random { format!(" --seed {seed}{rounds}") } else { String::new() };
        format!(
            "cargo pjrt conform {} --check {check}{profile}{options}{sequences}",
            quoted(&self.plugin.display().to_string())
        )
    }

    /// Returns the command that runs a check in gdb, without a time limit that would end a debugging session.
    fn debugger(&self, check: &str) -> String {
        let command = self.without_a_limit(check).replacen("cargo pjrt", "cargo-pjrt", 1);
        format!("gdb -ex 'set follow-fork-mode child' --args {command} --timeout 86400")
    }

    /// Returns the time of the run, and the slowest checks.
    fn times(&self) -> String {
        let mut slowest: Vec<&Row> = self.rows.iter().collect();
        slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let named = slowest.iter().take(SLOWEST).map(|row| format!("{} {:.2} s", row.name, row.seconds));
        format!("{:.1} s; slowest: {}", self.seconds, named.collect::<Vec<_>>().join(", "))
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
        match self.causes() {
            0 => {}
            1 => summary.push_str(" (1 cause)"),
            causes => _ = write!(summary, " ({causes} causes)"),
        }
        // Writing to a string does not fail.
        if let Some(profile) = &self.profile {
            let _ = write!(summary, ", {} failed that {profile} does not need", self.tolerated().len());
        }
        match self.advice().len() {
            0 => {}
            count => _ = write!(summary, ", {count} advice"),
        }
        if self.interrupted {
            summary.push_str("; interrupted");
        }
        summary
    }

    /// Formats the report. Text contains only the checks that did not pass.
    #[must_use]
    pub fn print(&self, format: Format) -> String {
        match format {
            Format::Text => text::format(self),
            Format::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
            Format::Junit => junit::format(self),
            Format::Html => html::format(self),
        }
    }
}

/// Quotes an argument for a shell, if it has characters with a meaning there.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-=+:,@%".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the outcome of a check that the plugin's output says nothing about.
    pub(in crate::conform::report) fn row(name: &str, status: Status, message: &str) -> Row {
        Row {
            name: name.into(),
            rule: "a < b".into(),
            source: "advice: a reason.".into(),
            needed_by: Vec::new(),
            status,
            message: message.into(),
            echo_of: None,
            functions: Vec::new(),
            printed: String::new(),
            seconds: 0.5,
        }
    }

    fn report(rows: Vec<Row>) -> Report {
        let create_options = vec!["num_devices=2".into()];
        Report {
            plugin: "a plugin.so".into(),
            version: (0, 117),
            create_options,
            profile: None,
            unknown_option: Some("the options are: num_devices".into()),
            interrupted: false,
            lists_advice: false,
            timeout: Duration::from_secs(60),
            sequences: Sequences::default(),
            rows,
            seconds: 1.0,
        }
    }

    #[test]
    fn checks_that_did_not_apply_for_the_same_reason_are_together() {
        let name = |number: usize| format!("area/rule_{number}");
        let mut rows: Vec<Row> =
            (0..30).map(|number| row(&name(number), Status::NotApplicable, "no client")).collect();
        rows.insert(1, row(&name(30), Status::Unsupported, "other"));
        rows.push(row(&name(31), Status::Wrong, "no client"));
        let text = report(rows).print(Format::Text);
        assert_eq!(text.matches("no client").count(), 2, "{text}");
        assert!(
            text.contains("30 checks: area/rule_0, ")
                && !text.contains("area/rule_20")
                && text.contains("area/rule_19 and 10 more\n"),
            "{text}"
        );
        assert!(text.starts_with("WRONG          area/rule_31") && text.contains("area/rule_30\n"), "{text}");
    }

    #[test]
    fn a_report_about_one_device_says_how_to_get_two() {
        let report = report(vec![row("devices/a", Status::NotApplicable, ONE_DEVICE)]);
        let text = report.print(Format::Text);
        assert!(text.contains("1 check needs two devices"), "{text}");
        assert!(text.contains("--option num_devices=2. The plugin says"), "{text}");
        assert!(report.print(Format::Html).contains("1 check needs two devices"));
        assert!(!self::report(Vec::new()).print(Format::Text).contains("two devices"));
    }

    #[test]
    fn advice_is_counted_unless_it_is_asked_for() {
        let rows = (0..30).map(|number| row(&format!("area/rule_{number}"), Status::Advice, "a code"));
        let mut report = report(rows.collect());
        let text = report.print(Format::Text);
        assert!(
            text.contains("30 pieces of advice: area/rule_0, ") && text.contains(" and 10 more"),
            "{text}"
        );
        assert!(!text.contains("a code") && text.contains("--advice"), "{text}");
        report.lists_advice = true;
        assert_eq!(report.print(Format::Text).matches("a code").count(), 30);
    }

    #[test]
    fn echoes_stand_below_their_cause_in_each_format() {
        let mut echo = row("area/echo", Status::Crashed, "an abort");
        echo.echo_of = Some("area/cause".into());
        let report = report(vec![echo, row("area/cause", Status::Wrong, "it is 2")]);
        let text = report.print(Format::Text);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part:?} is not in {text}"));
        assert!(
            at("WRONG          area/cause") < at("echoes")
                && at("echoes") < at("CRASHED   area/echo: an abort")
        );
        assert!(
            report.print(Format::Html).contains("1 probable echo of this failure"),
            "the page groups them"
        );
        assert!(report.print(Format::Junit).contains("Probably an echo of area/cause."));
        assert_eq!(report.failures(), 2, "an echo is a failure");
        assert!(report.summary().contains("2 failed (1 cause)"), "{}", report.summary());
    }

    #[test]
    fn commands_repeat_the_options_and_quote_them() {
        let mut report =
            report(vec![row("area/rule", Status::Wrong, ""), row("random/a", Status::Wrong, "b")]);
        let text = report.print(Format::Text);
        let again = "cargo pjrt conform 'a plugin.so' --check area/rule --option num_devices=2\n";
        assert!(text.contains(again), "{text}");
        assert!(text.contains("--args cargo-pjrt conform 'a plugin.so' --check NAME"), "{text}");
        report.timeout = Duration::from_millis(2500);
        report.sequences = Sequences { seed: 7, rounds: Some(3) };
        let text = report.print(Format::Text);
        assert!(text.contains("--check area/rule --option num_devices=2 --timeout 2.5\n"), "{text}");
        let random = "--check random/a --option num_devices=2 --seed 7 --rounds 3 --timeout 2.5\n";
        assert!(text.contains(random), "{text}");
    }

    #[test]
    fn reports_escape_what_plugins_say() {
        let row = Row { printed: "\u{1b}[2J\npassed".into(), ..row("area/rule", Status::Wrong, "\"<&\u{1}") };
        let report = report(vec![row]);
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
