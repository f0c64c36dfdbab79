//! The options of a run.

use std::path::PathBuf;
use std::time::Duration;

use super::harness::Sequences;
use crate::requirements::Profile;

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The path of the plugin.
    pub plugin: PathBuf,
    /// The options for the plugin's clients, as `name=value`.
    pub create_options: Vec<String>,
    /// The host whose requirements apply: a check that the host needs is MISSING, instead of UNSUPPORTED, if the plugin does not
    /// implement its functions.
    pub profile: Option<Profile>,
    /// If set, only the checks whose names contain this text run.
    pub filter: Option<String>,
    /// If not empty, only the checks with these names run.
    pub only: Vec<String>,
    /// The time limit of each check.
    pub timeout: Duration,
    /// The isolation of the checks from each other.
    pub isolation: Isolation,
    /// The seed and the number of the random sequences of calls.
    pub sequences: Sequences,
    /// `true` if the report as text lists the advice of a whole run, and not only the number.
    pub lists_advice: bool,
}

/// The isolation of the checks from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Each check runs in its own process.
    Each,
    /// All checks run in one process, which is replaced if it ends. This is faster, but damage that one check
    /// does may make later ones fail.
    Shared,
}
