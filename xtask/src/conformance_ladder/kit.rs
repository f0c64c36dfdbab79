//! Runs of the conformance kit.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::plugins::Plugin;
use crate::environment::workspace;

/// The hosts that the kit's profiles are tried for, as the command line names them.
pub(super) const PROFILES: [&str; 4] = ["jax", "torch_xla", "gomlx", "zml"];

/// The kit's report.
#[derive(Deserialize)]
struct Report {
    version: (i32, i32),
    rows: Vec<Row>,
}

/// The outcome of a check.
#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) name: String,
    needed_by: Vec<String>,
    status: String,
    pub(super) message: String,
}

impl Row {
    fn is_failure(&self) -> bool {
        matches!(self.status.as_str(), "wrong" | "crashed" | "timed_out" | "missing")
    }
}

/// The outcome of all runs on a plugin.
pub(super) struct Outcome {
    pub(super) version: (i32, i32),
    pub(super) rows: Vec<Row>,
    /// The wall-clock time of the run without a profile.
    pub(super) duration: Duration,
    /// For each of `PROFILES`, the checks that fail the run.
    pub(super) failures_by_profile: Vec<Vec<String>>,
}

impl Outcome {
    /// Returns the number of checks with this status, as the kit's JSON names it.
    pub(super) fn count(&self, status: &str) -> usize {
        self.rows.iter().filter(|row| row.status == status).count()
    }

    /// Returns the checks that fail the run without a profile.
    pub(super) fn failures(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_failure())
    }

    /// Returns a summary in one line.
    pub(super) fn summary(&self) -> String {
        let failing: Vec<String> = PROFILES
            .iter()
            .zip(&self.failures_by_profile)
            .map(|(profile, failures)| format!("{profile} {}", failures.len()))
            .collect();
        format!(
            "{} passed, {} failed, {} advice, {} unsupported, {} not applicable, {:.0} s; failures by profile: {}",
            self.count("passed"),
            self.failures().count(),
            self.count("advice"),
            self.count("unsupported"),
            self.count("not_applicable"),
            self.duration.as_secs_f64(),
            failing.join(", ")
        )
    }
}

/// Runs the kit without a profile, and with each profile.
pub(super) fn run(plugin: &Plugin) -> Result<Outcome> {
    let started = Instant::now();
    let report = report(plugin, &[])?;
    let duration = started.elapsed();
    let failures_by_profile =
        PROFILES.iter().map(|profile| failures_with(plugin, profile, &report)).collect::<Result<_>>()?;
    Ok(Outcome { version: report.version, rows: report.rows, duration, failures_by_profile })
}

/// Runs the kit with a profile, and returns the checks that fail the run. Checks that passed without a profile
/// are left out, because a profile changes what the outcomes of the others mean, and nothing else.
fn failures_with(plugin: &Plugin, profile: &str, without: &Report) -> Result<Vec<String>> {
    let passed = |row: &&Row| matches!(row.status.as_str(), "passed" | "not_applicable");
    let mut arguments = vec!["--profile", profile];
    for row in without.rows.iter().filter(|row| !passed(row)) {
        arguments.extend(["--check", &row.name]);
    }
    if arguments.len() == 2 {
        return Ok(Vec::new());
    }
    let rows = report(plugin, &arguments)?.rows;
    let fails = |row: &Row| {
        let is_needed = row.status == "missing" || row.needed_by.iter().any(|host| host == profile);
        row.is_failure() && is_needed
    };
    Ok(rows.into_iter().filter(fails).map(|row| row.name).collect())
}

/// Runs the kit with these arguments.
fn report(plugin: &Plugin, arguments: &[&str]) -> Result<Report> {
    let mut kit = Command::new(workspace::program("debug", "cargo-pjrt"));
    kit.arg("conform").arg(&plugin.library).arg("--json").args(arguments);
    let output = kit.output().context("cannot start cargo-pjrt")?;
    match output.status.code() {
        Some(0 | 1) if !output.stdout.is_empty() => serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the kit's report on {} is not as expected", plugin.title())),
        _ => bail!(
            "{} from the kit on {}: {}",
            output.status,
            plugin.title(),
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}
