//! The report of a stress test.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::process::output::visible;

/// The outcomes of all scenarios.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The path of the plugin.
    pub plugin: PathBuf,
    /// The seed of the random operations.
    pub seed: u64,
    /// The number of threads.
    pub threads: u64,
    /// The outcomes, in order.
    pub rows: Vec<Row>,
    /// The number of scenarios that were not run to the end, and why, if not all were.
    pub stopped: Option<String>,
}

/// The outcome of a scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The scenario's name.
    pub name: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The summary, or the reason if the outcome is not [`Outcome::Ok`].
    pub message: String,
    /// The duration in seconds.
    pub seconds: f64,
}

/// The outcome of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing was wrong.
    Ok,
    /// The plugin lacks a feature that the scenario needs.
    Unsupported,
    /// The plugin did something wrong, crashed or hung.
    Failed,
}

impl Report {
    /// Returns the number of failures.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.rows.iter().filter(|row| row.outcome == Outcome::Failed).count()
    }

    /// Formats the report.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let outcome = match row.outcome {
                Outcome::Ok => "ok",
                Outcome::Unsupported => "unsupported",
                Outcome::Failed => "FAILED",
            };
            // Writing to a string does not fail.
            let _ = writeln!(text, "{outcome:<12} {:<40} {}", row.name, row.message.replace('\n', " "));
            if row.outcome == Outcome::Failed {
                let part = row.name.split('/').next().unwrap_or_default();
                let _ = writeln!(
                    text,
                    "{:<12} repeat with: --only {part} --threads {} --seed {}",
                    "", self.threads, self.seed
                );
            }
        }
        if let Some(stopped) = &self.stopped {
            let _ = writeln!(text, "{stopped}");
        }
        let _ = writeln!(text, "{}: seed {}, {} failures", self.plugin.display(), self.seed, self.failures());
        visible(&text).into_owned()
    }
}
