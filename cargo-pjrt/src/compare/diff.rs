//! Compares the facts about two plugins.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::observe::fact::{Fact, Kind, Observation, Value};
use super::observe::{COMPILATION, PROGRAM};
use super::subject::Subject;
use crate::session::replay::{self, difference, in_words};

/// A plugin and the facts about it.
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) path: PathBuf,
    pub(super) version: Option<(i32, i32)>,
    /// One observation per subject.
    pub(super) observations: Vec<Observation>,
    /// The number of subjects that were observed, if not all.
    pub(super) observed: Option<usize>,
}

/// The result of a comparison.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Report {
    /// The paths of both plugins.
    pub plugins: [PathBuf; 2],
    /// The major and minor versions of the C API that they report.
    pub versions: [(i32, i32); 2],
    /// The differences in behavior.
    pub differences: Vec<Difference>,
    /// The differences that any two correct plugins may have.
    pub identity: Vec<Difference>,
    /// The facts that cannot be compared, with the reasons of both plugins.
    pub skipped: Vec<Difference>,
    /// The number of facts that are the same.
    pub same: usize,
    /// The number of arrays that differ within the tolerance.
    pub within_tolerance: usize,
    /// The number of subjects that only one plugin was observed in, because the process of the other one
    /// cannot create a client.
    pub not_compared: usize,
    /// The number of programs that neither plugin compiles, so that nothing else is compared.
    pub refused_by_both: usize,
}

/// A difference between the plugins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The area, such as `buffer` or `program`.
    pub area: String,
    /// The name in the area, such as an element type or the path of a program.
    pub subject: String,
    /// The name of the fact.
    pub what: String,
    /// The first plugin's value, or an empty text if there is none.
    pub a: String,
    /// The second plugin's value, or an empty text if there is none.
    pub b: String,
}

/// The origin of the values of a difference.
const NAMES: [&str; 2] = ["in A", "in B"];

/// Compares the facts about two plugins, which are in the order of the subjects.
pub(super) fn diff(subjects: &[Subject], a: Side, b: Side, tolerance: f64) -> Result<Report, String> {
    let mut report = Report {
        plugins: [a.path, b.path],
        versions: [a.version.unwrap_or_default(), b.version.unwrap_or_default()],
        ..Report::default()
    };
    // The checks follow the observed subjects, and report the missing client themselves.
    let unobserved = |index: usize, subject: &Subject| {
        let is_after = |observed: Option<usize>| observed.is_some_and(|observed| index >= observed);
        subject.area != "check" && (is_after(a.observed) || is_after(b.observed))
    };
    for (index, (subject, (a, b))) in
        subjects.iter().zip(a.observations.iter().zip(&b.observations)).enumerate()
    {
        if unobserved(index, subject) {
            report.not_compared += 1;
        } else {
            report.add(subject, a, b, tolerance)?;
        }
    }
    Ok(report)
}

impl Report {
    /// Compares the facts about one subject.
    fn add(
        &mut self,
        subject: &Subject,
        a: &Observation,
        b: &Observation,
        tolerance: f64,
    ) -> Result<(), String> {
        let at = |what: &str, a: String, b: String| Difference {
            area: subject.area.clone(),
            subject: subject.name.clone(),
            what: what.to_owned(),
            a,
            b,
        };
        let before = self.differences.len();
        let is_skipped = |fact: &&Fact| fact.kind == Kind::Skipped;
        for fact in a.facts.iter().filter(is_skipped) {
            let why = b
                .facts
                .iter()
                .filter(is_skipped)
                .find(|other| other.what == fact.what)
                .map(|other| text(&other.value));
            self.skipped.push(at(&fact.what, text(&fact.value), why.unwrap_or_default()));
        }
        for fact in a.facts.iter().filter(|fact| !is_skipped(fact)) {
            let Some(other) = b.facts.iter().find(|other| other.what == fact.what) else { continue };
            match compare(fact, other, tolerance)? {
                Outcome::Same => self.same += 1,
                Outcome::WithinTolerance => self.within_tolerance += 1,
                Outcome::Different(a, b) if fact.kind == Kind::Identity => {
                    self.identity.push(at(&fact.what, a, b));
                }
                Outcome::Different(a, b) => self.differences.push(at(&fact.what, a, b)),
            }
        }
        let refuses = |side: &Observation| side.facts.iter().any(is_refused);
        self.refused_by_both += usize::from(subject.area == PROGRAM && refuses(a) && refuses(b));
        let reached = |end: &Option<String>| end.clone().unwrap_or_else(|| "ok".to_owned());
        match (&a.end, &b.end) {
            (None, None) if self.differences.len() == before => {
                // Otherwise, the facts that only one plugin has are consequences of a difference.
                let [only_a, only_b] = [missing(&a.facts, &b.facts), missing(&b.facts, &a.facts)];
                if !only_a.is_empty() || !only_b.is_empty() {
                    self.differences.push(at("facts of one plugin", only_a, only_b));
                }
            }
            (None, None) => {}
            (a, b) if a == b => self.same += 1,
            (a, b) => self.differences.push(at("process", reached(a), reached(b))),
        }
        Ok(())
    }
}

/// Returns `true` if the fact is that the plugin does not compile a program.
fn is_refused(fact: &Fact) -> bool {
    fact.what == COMPILATION && matches!(&fact.value, Value::Text(value) if value.starts_with("error "))
}

/// Returns the names of the facts that the other plugin does not have, as text, with the errors among them.
fn missing(facts: &[Fact], others: &[Fact]) -> String {
    let names: BTreeSet<&str> = others.iter().map(|fact| fact.what.as_str()).collect();
    let of_behavior = facts.iter().filter(|fact| fact.kind == Kind::Behavior);
    let named = |fact: &Fact| match &fact.value {
        Value::Text(value) if value.starts_with("error ") => format!("{}: {value}", fact.what),
        _ => fact.what.clone(),
    };
    let missing: Vec<String> =
        of_behavior.filter(|fact| !names.contains(fact.what.as_str())).map(named).collect();
    missing.join(", ")
}

/// The outcome of the comparison of two facts.
#[derive(Debug, PartialEq)]
enum Outcome {
    Same,
    WithinTolerance,
    Different(String, String),
}

fn compare(a: &Fact, b: &Fact, tolerance: f64) -> Result<Outcome, String> {
    Ok(match (&a.value, &b.value) {
        (Value::Array(shape_a, in_a), Value::Array(shape_b, in_b)) => {
            let read =
                |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
            let (a, b) = (read(in_a)?, read(in_b)?);
            match difference((shape_a, &a), (shape_b, &b), tolerance, NAMES) {
                replay::Difference::None => Outcome::Same,
                // Among others, zeros of another sign, and NaN with other bits.
                replay::Difference::WithinTolerance => Outcome::WithinTolerance,
                replay::Difference::Beyond(how) => Outcome::Different(in_words(shape_a), how),
            }
        }
        (a, b) if a == b => Outcome::Same,
        (Value::Text(a_text), Value::Text(b_text)) => {
            let is_unsteady = |text: &str| text == "sometimes";
            if a.kind == Kind::Timing && (is_unsteady(a_text) || is_unsteady(b_text)) {
                return Ok(Outcome::Same);
            }
            Outcome::Different(a_text.clone(), b_text.clone())
        }
        (a, b) => Outcome::Different(text(a), text(b)),
    })
}

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Array(shape, _) => in_words(shape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(what: &str, kind: Kind, value: &str) -> Fact {
        Fact { what: what.into(), kind, value: Value::Text(value.into()) }
    }

    fn compared(a: Observation, b: Observation) -> Report {
        let side = |observation| Side { observations: vec![observation], ..Side::default() };
        diff(&[Subject::new("buffer", "f32")], side(a), side(b), 0.0).unwrap()
    }

    fn seen(facts: Vec<Fact>) -> Observation {
        Observation { facts, end: None }
    }

    #[test]
    fn differences_in_behavior_and_in_identity_are_apart() {
        let facts = |dims, name, often| {
            seen(vec![
                fact("dims", Kind::Behavior, dims),
                fact("platform", Kind::Identity, name),
                fact("ready at once", Kind::Timing, often),
            ])
        };
        let report = compared(facts("[2]", "hello", "always"), facts("[3]", "cpu", "sometimes"));
        assert_eq!((report.differences.len(), report.identity.len(), report.same), (1, 1, 1), "{report:?}");
        assert_eq!((report.differences[0].a.as_str(), report.differences[0].b.as_str()), ("[2]", "[3]"));
        let report = compared(facts("[2]", "hello", "always"), facts("[2]", "hello", "never"));
        assert_eq!(report.differences[0].what, "ready at once");
    }

    #[test]
    fn programs_that_neither_plugin_compiles_are_counted() {
        let compiled = |value| Side {
            observations: vec![seen(vec![fact(COMPILATION, Kind::Behavior, value)])],
            ..Side::default()
        };
        let count = |a, b| {
            diff(&[Subject::new(PROGRAM, "p.mlir")], compiled(a), compiled(b), 0.0).unwrap().refused_by_both
        };
        assert_eq!(count("error UNIMPLEMENTED", "error INTERNAL"), 1);
        assert_eq!(count("ok", "error INTERNAL") + count("ok", "ok"), 0);
    }

    #[test]
    fn a_process_that_ends_is_one_difference_and_its_missing_facts_are_none() {
        let facts = || vec![fact("dims", Kind::Behavior, "[2]"), fact("layout", Kind::Behavior, "[0]")];
        let crashed = Observation { facts: facts()[..1].to_vec(), end: Some("an abort".into()) };
        let report = compared(seen(facts()), crashed);
        assert_eq!(report.differences.len(), 1, "{report:?}");
        assert_eq!((report.differences[0].a.as_str(), report.differences[0].b.as_str()), ("ok", "an abort"));
        let report = compared(seen(facts()), seen(facts()[..1].to_vec()));
        assert_eq!(report.differences[0].a, "layout", "{report:?}");
        let refused = vec![fact("array", Kind::Behavior, "error UNIMPLEMENTED")];
        let report = compared(seen(facts()), seen(refused));
        assert_eq!(report.differences[0].b, "array: error UNIMPLEMENTED", "{report:?}");
    }
}
