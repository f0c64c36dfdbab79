//! The report of a comparison, as text.

use std::fmt::Write as _;

use super::diff::{Difference, Report};
use super::subject::Subject;
use crate::process::output::visible;

/// The maximum number of names that are listed for one difference.
const NAMED: usize = 8;

/// The maximum length of a value, in characters.
const SHOWN: usize = 240;

impl Report {
    /// Formats the report. Differences with the same values are one entry.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (name, (path, (major, minor))) in ["A", "B"].iter().zip(self.plugins.iter().zip(&self.versions)) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name}: {}, version {major}.{minor} of the C API", path.display());
        }
        list(&mut text, "differences", &self.differences);
        list(&mut text, "not compared", &self.skipped);
        list(&mut text, "identity, in which correct plugins differ", &self.identity);
        let _ = writeln!(
            text,
            "\n{} facts the same, {} arrays within the tolerance, {} differences, {} of identity",
            self.same,
            self.within_tolerance,
            self.differences.len(),
            self.identity.len()
        );
        if self.not_compared > 0 {
            let _ = writeln!(
                text,
                "{} subjects not compared, because one plugin cannot create a client",
                self.not_compared
            );
        }
        if self.refused_by_both > 0 {
            let _ = writeln!(
                text,
                "{} programs not run, because neither plugin compiles them",
                self.refused_by_both
            );
        }
        visible(&text).into_owned()
    }
}

/// Lists differences by area. Those with the same values are one entry.
fn list(text: &mut String, title: &str, differences: &[Difference]) {
    if differences.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}:");
    let mut shown: Vec<&Difference> = Vec::new();
    for first in differences {
        let alike =
            |other: &&Difference| (&other.area, &other.a, &other.b) == (&first.area, &first.a, &first.b);
        if shown.iter().any(alike) {
            continue;
        }
        shown.push(first);
        let group: Vec<&Difference> = differences.iter().filter(alike).collect();
        let mut names: Vec<String> = group.iter().take(NAMED).map(|difference| name(difference)).collect();
        if group.len() > NAMED {
            names.push(format!("and {} more", group.len() - NAMED));
        }
        let _ = writeln!(text, "  {}: {}", first.area, names.join("; "));
        let _ = writeln!(text, "    A: {}\n    B: {}", value(&first.a), value(&first.b));
    }
}

fn name(difference: &Difference) -> String {
    let subject = Subject::new(&difference.area, &difference.subject).title();
    format!("{subject}, {}", difference.what)
}

/// Shortens a value to one line.
fn value(text: &str) -> String {
    if text.is_empty() {
        return "(nothing)".to_owned();
    }
    let line = text.replace('\n', " ");
    if line.chars().count() <= SHOWN {
        return line;
    }
    line.chars().take(SHOWN).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_with_the_same_values_are_one_entry() {
        let difference = |subject: &str, b: &str| Difference {
            area: "buffer".into(),
            subject: subject.into(),
            what: "layout".into(),
            a: "[1, 0]".into(),
            b: b.into(),
        };
        let mut differences: Vec<Difference> =
            (0..12).map(|number| difference(&format!("f{number}"), "[0, 1]")).collect();
        differences.push(difference("f99", ""));
        let text = Report { differences, ..Report::default() }.text();
        assert_eq!(text.matches("B: [0, 1]").count(), 1, "{text}");
        assert!(text.contains("f7, layout; and 4 more\n") && !text.contains("f8"), "{text}");
        assert!(text.contains("f99, layout\n    A: [1, 0]\n    B: (nothing)"), "{text}");
    }
}
