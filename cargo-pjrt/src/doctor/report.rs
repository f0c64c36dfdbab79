//! The report of the findings.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::finding::{Finding, Level};
use super::selection::Choice;
use crate::process::output::visible;

/// The findings, and the platform that JAX chooses.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The library or the environment, and a finding about it.
    pub findings: Vec<(String, Finding)>,
    /// The platform that JAX chooses.
    pub choice: Choice,
}

impl Report {
    pub(super) fn new(findings: Vec<(String, Finding)>, choice: Choice) -> Self {
        Self { findings, choice }
    }

    fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|(_, finding)| finding.level == level).count()
    }

    /// Returns the number of problems.
    #[must_use]
    pub fn problems(&self) -> usize {
        self.count(Level::Problem)
    }

    /// Formats the report.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut section = "";
        // Writing to a string does not fail.
        for (of, finding) in &self.findings {
            if section != of {
                let gap = if section.is_empty() { "" } else { "\n" };
                let _ = writeln!(text, "{gap}{of}");
                section = of;
            }
            let level = match finding.level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Problem => "PROBLEM",
            };
            let _ = writeln!(text, "  {level:<8} {}", finding.message.replace('\n', "\n           "));
            if !finding.fix.is_empty() {
                let _ = writeln!(text, "           to do: {}", finding.fix);
            }
        }
        let _ = writeln!(text, "\n{} problems, {} warnings", self.problems(), self.count(Level::Warning));
        let platform = self.choice.platform.as_deref().unwrap_or("nothing");
        let _ = writeln!(text, "JAX would choose: {platform}, because {}", self.choice.because);
        visible(&text).into_owned()
    }
}
