//! Findings.

use serde::{Deserialize, Serialize};

/// The level of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing to do.
    Ok,
    /// Something to know, which may be intended.
    Warning,
    /// Something that prevents a host from using the plugin.
    Problem,
}

/// A fact about a library or an environment, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The level.
    pub level: Level,
    /// The fact.
    pub message: String,
    /// The action that solves the problem, or an empty text if none is necessary.
    pub fix: String,
}

impl Finding {
    pub(super) fn ok(message: impl Into<String>) -> Self {
        Self { level: Level::Ok, message: message.into(), fix: String::new() }
    }

    pub(super) fn warning(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { level: Level::Warning, message: message.into(), fix: fix.into() }
    }

    pub(super) fn problem(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { level: Level::Problem, message: message.into(), fix: fix.into() }
    }
}
