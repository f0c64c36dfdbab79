//! The report: a table of operations by element type, the wrong results, and the models.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::elements::COLUMNS;
use super::message::{Fault, Measure};
use super::order::{IDENTITY, Order};
use super::suite::{Case, MODELS};
use crate::process::output::visible;

/// The maximum number of programs of a suite that are printed one by one, unless they are in the table.
const LISTED: usize = 64;

/// The number of elements of a message about a program that are printed for each operation and element type.
const SHOWN: usize = 4;

/// The outcomes of all programs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The path of the plugin.
    pub plugin: PathBuf,
    /// The outcomes, in order.
    pub rows: Vec<Row>,
    /// The number of programs that were not run, and why, if not all were.
    pub stopped: Option<String>,
    /// The duration in seconds.
    pub seconds: f64,
}

/// The outcome of a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The suite's name.
    pub suite: String,
    /// The operation or the model.
    pub op: String,
    /// The element type, as StableHLO names it.
    pub element: String,
    /// The name of the program among those of the operation and element type.
    pub name: String,
    /// The outcome.
    pub status: Status,
    /// The plugin's error, or how the process ended.
    pub message: String,
    /// The largest error of right results, if these are floating-point or complex numbers.
    pub largest: Option<Measure>,
    /// The wrong results.
    pub faults: Vec<Fault>,
}

/// The outcome of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All results are within the tolerance.
    Right,
    /// The plugin does not compile the program, or does not take its arguments.
    Refused,
    /// Results are beyond the tolerance.
    Wrong,
    /// The execution returned an error.
    Failed,
    /// The process ended.
    Crashed,
    /// The program did not end in time.
    TimedOut,
}

impl Status {
    /// Returns `true` if the plugin did something wrong.
    #[must_use]
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::Right | Self::Refused)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Refused => "refused",
            Self::Wrong => "WRONG",
            Self::Failed => "FAILED",
            Self::Crashed => "CRASHED",
            Self::TimedOut => "TIMED OUT",
        }
    }
}

impl Row {
    pub(super) fn new(suite: &str, case: &Case, status: Status, message: String) -> Self {
        let [suite, op, element, name] = [suite, &case.op, &case.element, &case.name].map(str::to_owned);
        Self { suite, op, element, name, status, message, largest: None, faults: Vec::new() }
    }

    /// Describes what is wrong with the program.
    fn complaint(&self) -> String {
        let mut text = format!("{} {} {} {}", self.status.word(), self.op, self.element, self.name);
        if !self.message.is_empty() {
            let _ = write!(text, ": {}", self.message.replace('\n', " "));
        }
        for fault in &self.faults {
            let _ = write!(text, "\n      {}", fault.text());
        }
        text
    }
}

impl Fault {
    pub(super) fn text(&self) -> String {
        let mut text = format!("result {}: ", self.result);
        if self.total == 0 {
            let _ = write!(text, "expected {}, found {}", self.expected, self.found);
        } else {
            let _ = write!(
                text,
                "{} of {} elements, the first at {:?}: expected {}, found {}",
                self.wrong, self.total, self.position, self.expected, self.found
            );
        }
        if let Some(largest) = self.largest {
            let _ = write!(text, "; the largest error is {}", measure_text(largest));
        }
        if let Some(pattern) = &self.pattern {
            let _ = write!(text, "; {pattern}");
        }
        text + "\n      tolerance: " + &self.tolerance
    }
}

/// Formats an error in words.
fn measure_text(measure: Measure) -> String {
    let number = |number: f64| match number {
        _ if number >= f64::MAX => "infinite".to_owned(),
        _ if number < 1e6 && number.fract() == 0.0 => format!("{number}"),
        _ => format!("{number:.3e}"),
    };
    format!("{} ulps, relative {}", number(measure.ulps), number(measure.relative))
}

impl Report {
    /// Returns the number of programs with wrong results, failures, crashes and timeouts.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.status.is_failure()).count()
    }

    /// Returns `true` if the plugin refused every program, so that nothing was compared.
    #[must_use]
    pub fn compared_nothing(&self) -> bool {
        self.rows.iter().all(|row| row.status == Status::Refused)
    }

    fn count(&self, status: Status) -> usize {
        self.rows.iter().filter(|row| row.status == status).count()
    }

    /// Formats the report, with the plugin's messages about refused programs if `with_refused` is `true`.
    #[must_use]
    pub fn text(&self, with_refused: bool) -> String {
        let is_of_table = |row: &&Row| COLUMNS.iter().any(|(element, _)| *element == row.element);
        let (table, others): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| row.suite == "operations" && is_of_table(row));
        let mut text = String::new();
        write_table(&mut text, &table);
        let (counted, listed): (Vec<&Row>, Vec<&Row>) = others
            .into_iter()
            .partition(|row| self.rows.iter().filter(|other| other.suite == row.suite).count() > LISTED);
        write_counts(&mut text, &counted);
        for row in listed {
            let percent =
                |largest: Measure| format!(", with {:.1} % of the tolerance", largest.of_tolerance * 100.0);
            let largest = row.largest.map(percent);
            let _ = writeln!(
                text,
                "{:<26} {:<12} {:<10} {}{}",
                row.op,
                row.element,
                row.name,
                row.status.word(),
                largest.unwrap_or_default()
            );
        }
        let failures: Vec<&Row> = self.rows.iter().filter(|row| row.status.is_failure()).collect();
        write_failures(&mut text, &failures);
        if with_refused {
            self.write_refused(&mut text);
        }
        let _ = writeln!(
            text,
            "\n{}: {} programs in {:.1} s: {} right, {} wrong, {} refused",
            self.plugin.display(),
            self.rows.len(),
            self.seconds,
            self.count(Status::Right),
            self.failures(),
            self.count(Status::Refused)
        );
        if let Some(stopped) = &self.stopped {
            let _ = writeln!(text, "{stopped}");
        }
        if self.count(Status::Refused) > 0 && !with_refused {
            text.push_str("--refused prints the plugin's messages about the programs that it refused\n");
        }
        visible(&text).into_owned()
    }

    /// Writes the refused programs: for each operation, the element types by the plugin's message. Of messages that differ only
    /// in types and numbers, the first is printed.
    fn write_refused(&self, text: &mut String) {
        let mut by_op: BTreeMap<(&str, String), (BTreeSet<&str>, &str)> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.status == Status::Refused) {
            let group = by_op.entry((&row.op, kind_of_message(&row.message)));
            group.or_insert((BTreeSet::new(), &row.message)).0.insert(&row.element);
        }
        for ((op, _), (elements, message)) in by_op {
            let elements: Vec<&str> = elements.into_iter().collect();
            let _ =
                writeln!(text, "refused {op} {}: {}", elements.join(" "), message.replace('\n', "\n      "));
        }
    }
}

/// Returns a message without its types and numbers.
fn kind_of_message(message: &str) -> String {
    let mut parts = message.split("tensor<");
    let mut kind = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kind.push_str(part.trim_start_matches(|c: char| c.is_alphanumeric() || "<>".contains(c)));
    }
    kind.retain(|c| !c.is_ascii_digit());
    kind
}

/// Writes a row for each operation and a column for each element type.
fn write_table(text: &mut String, rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    let order = Order::new();
    let mut by_op: BTreeMap<_, BTreeMap<&str, Vec<&Row>>> = BTreeMap::new();
    for row in rows {
        by_op.entry(order.key(&row.op)).or_default().entry(&row.element).or_default().push(row);
    }
    let used: Vec<&(&str, &str)> =
        COLUMNS.iter().filter(|(element, _)| rows.iter().any(|row| row.element == *element)).collect();
    let titles: String = used.iter().map(|(_, title)| format!(" {title:>5}")).collect();
    let _ = writeln!(text, "{:<22}{titles}", "");
    for ((_, _, op), elements) in by_op {
        let cell = |(element, _): &&(&str, &str)| {
            format!(" {:>5}", elements.get(element).map_or("", |rows| cell(rows)))
        };
        let cells: String = used.iter().map(cell).collect();
        let _ = writeln!(text, "{}", format!("{op:<22}{cells}").trim_end());
    }
    text.push_str(
        "\nok: all programs are right, -: all are refused, part: some are refused and the others right\n\n",
    );
}

/// Writes the numbers of outcomes for each operation of each suite.
fn write_counts(text: &mut String, rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    let mut by_op: BTreeMap<(&str, &str), [usize; 4]> = BTreeMap::new();
    for row in rows {
        let place = match row.status {
            Status::Right => 1,
            Status::Refused => 2,
            _ => 3,
        };
        let counts = by_op.entry((&row.suite, &row.op)).or_default();
        counts[0] += 1;
        counts[place] += 1;
    }
    let _ = writeln!(text, "{:<36}{:>9}{:>9}{:>9}{:>9}", "", "programs", "right", "refused", "wrong");
    for ((suite, op), [programs, right, refused, wrong]) in by_op {
        let name = format!("{suite}: {op}");
        let _ = writeln!(text, "{name:<36}{programs:>9}{right:>9}{refused:>9}{wrong:>9}");
    }
    text.push('\n');
}

/// Returns the word for all programs of an operation and element type.
fn cell(rows: &[&Row]) -> &'static str {
    let refused = rows.iter().filter(|row| row.status == Status::Refused).count();
    match refused {
        _ if rows.iter().any(|row| row.status.is_failure()) => "WRONG",
        0 => "ok",
        _ if refused == rows.len() => "-",
        _ => "part",
    }
}

/// Writes the failures, a few for each operation and element type. Those of operations that others are decomposed into come
/// first.
fn write_failures(text: &mut String, failures: &[&Row]) {
    let order = Order::new();
    let mut failures = failures.to_vec();
    failures.sort_by_cached_key(|row| (row.suite == MODELS, order.key(&row.op)));
    let failed: BTreeSet<(&str, &str)> = failures.iter().map(|row| (&*row.op, &*row.element)).collect();
    if failures.first().is_some_and(|row| row.op == IDENTITY) {
        text.push_str(
            "The device does not return the elements that it is given. As long as it does not, other results say little.\n",
        );
    }
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in &failures {
        let count = counts.entry((&row.op, &row.element)).or_default();
        *count += 1;
        if *count <= SHOWN {
            let _ = writeln!(text, "{}", row.complaint());
            let parts = order.parts(&row.op).into_iter();
            let wrong: Vec<&str> = parts.filter(|part| failed.contains(&(*part, &*row.element))).collect();
            if *count == 1 && !wrong.is_empty() {
                let _ = writeln!(
                    text,
                    "      if it is decomposed, this may follow from the results of {} {}",
                    wrong.join(", "),
                    row.element
                );
            }
        } else if *count == SHOWN + 1 {
            let _ = writeln!(text, "... and more of {} {}: --json prints all", row.op, row.element);
        }
    }
    if let Some(row) = failures.iter().find(|row| row.status == Status::Wrong) {
        let _ = writeln!(
            text,
            "\n--op {} --dump FOLDER writes the program, its arguments and both results; cargo pjrt run --replay runs it again",
            row.op
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(op: &str, element: &str, status: Status) -> Row {
        let [suite, op, element, name] = ["operations", op, element, "ordinary"].map(str::to_owned);
        let message =
            if status == Status::Refused { "UNIMPLEMENTED: no such type".to_owned() } else { String::new() };
        Row { suite, op, element, name, status, message, largest: None, faults: Vec::new() }
    }

    #[test]
    fn a_cell_is_wrong_if_one_program_is_and_refusals_are_no_failures() {
        let rows = [Status::Right, Status::Refused, Status::Wrong].map(|status| row("add", "f32", status));
        let cells = |indices: &[usize]| cell(&indices.iter().map(|index| &rows[*index]).collect::<Vec<_>>());
        assert_eq!(
            [cells(&[0]), cells(&[1]), cells(&[0, 1]), cells(&[0, 1, 2])],
            ["ok", "-", "part", "WRONG"]
        );
        let report = Report { plugin: "p.so".into(), rows: rows.to_vec(), stopped: None, seconds: 1.0 };
        assert_eq!((report.failures(), report.compared_nothing()), (1, false));
        let text = report.text(true);
        assert!(text.contains("1 right, 1 wrong, 1 refused") && text.contains("no such type"), "{text}");
    }

    #[test]
    fn the_identity_comes_first_and_parts_before_what_is_decomposed_into_them() {
        let rows = ["erf", "exponential", "identity"].map(|op| row(op, "f32", Status::Wrong));
        let text =
            Report { plugin: "p.so".into(), rows: rows.to_vec(), stopped: None, seconds: 1.0 }.text(false);
        let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
        assert!(place("\nidentity") < place("\nexponential") && place("\nexponential") < place("\nerf"));
        assert!(place("does not return the elements") < place("WRONG identity"));
        assert!(place("WRONG identity") < place("WRONG exponential"));
        assert!(place("WRONG exponential") < place("WRONG erf"));
        assert!(place("WRONG erf") < place("may follow from the results of exponential f32"));
    }

    #[test]
    fn a_large_suite_is_counted_by_operation() {
        let own = |index: usize| {
            let status = if index == 0 { Status::Crashed } else { Status::Right };
            Row { suite: "mine".into(), name: format!("case-{index}"), ..row("dynamic", "f32", status) }
        };
        let text = |count| {
            Report { plugin: "p.so".into(), rows: (0..count).map(own).collect(), stopped: None, seconds: 1.0 }
                .text(false)
        };
        assert!(text(LISTED).contains("case-1 "), "{}", text(LISTED));
        let large = text(LISTED + 1);
        let counts: Vec<&str> = large.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(counts, ["mine:", "dynamic", "65", "64", "0", "1"]);
        assert!(!large.contains("case-1 "), "{large}");
    }

    #[test]
    fn messages_that_differ_only_in_types_and_places_are_one_kind() {
        let kind =
            |ty: &str, line: usize| kind_of_message(&format!("no {ty} in stablehlo.add, at \"-\":{line}:10"));
        assert_eq!(kind("tensor<9xbf16>", 3), kind("tensor<2x3xcomplex<f32>>", 14));
        assert_ne!(kind("tensor<9xbf16>", 3), kind_of_message("no layout in stablehlo.add"));
    }

    #[test]
    fn a_report_is_the_same_after_json() {
        let fault = Fault {
            result: 0,
            wrong: 1,
            total: 2,
            position: vec![1],
            expected: "1".into(),
            found: "NaN".into(),
            largest: Some(Measure { ulps: f64::INFINITY, relative: 0.5, of_tolerance: 9.0 }),
            tolerance: "exact".into(),
            pattern: None,
        };
        let wrong = Row { faults: vec![fault], ..row("add", "f32", Status::Wrong) };
        let report = Report { plugin: "p.so".into(), rows: vec![wrong], stopped: None, seconds: 1.0 };
        let json = serde_json::to_string(&report).unwrap();
        let read: Report = serde_json::from_str(&json).unwrap();
        assert_eq!(read.text(false), report.text(false));
        assert!(read.text(false).contains("infinite ulps, relative 5.000e-1"), "{}", read.text(false));
    }
}
