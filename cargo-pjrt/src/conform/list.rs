//! The list of the checks, and the selection of some of them.

use serde::Serialize;

use super::harness::{Check, Source};

/// Returns all checks, in the order in which they run.
#[must_use]
pub fn checks() -> Vec<Check> {
    super::checks::all()
}

/// Selects checks by exact names and by a part of the name. Without names and filter, returns all checks.
///
/// # Errors
///
/// Returns an error if there is no such check.
pub fn select(filter: Option<&str>, names: &[String]) -> Result<Vec<Check>, String> {
    let mut checks = checks();
    if let Some(unknown) = names.iter().find(|name| checks.iter().all(|check| check.name != **name)) {
        return Err(format!("unknown check {unknown:?}; --list lists all checks"));
    }
    checks.retain(|check| {
        filter.is_none_or(|filter| check.name.contains(filter))
            && (names.is_empty() || names.contains(&check.name))
    });
    match filter {
        Some(filter) if checks.is_empty() => {
            Err(format!("no selected check has {filter:?} in its name; --list lists all checks"))
        }
        _ => Ok(checks),
    }
}

/// A check, as `--list` prints it in JSON.
#[derive(Debug, Serialize)]
pub struct Listed<'c> {
    name: &'c str,
    rule: &'c str,
    source: Source,
    since: i32,
    needed_by: Vec<&'static str>,
    used_by: Vec<&'static str>,
}

impl<'c> From<&'c Check> for Listed<'c> {
    fn from(check: &'c Check) -> Self {
        Self {
            name: &check.name,
            rule: &check.rule,
            source: check.source,
            since: check.since,
            needed_by: check.needed_by.iter().map(|profile| profile.name()).collect(),
            used_by: check.used_by().iter().map(|profile| profile.name()).collect(),
        }
    }
}
