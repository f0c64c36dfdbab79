//! The options of a run.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use super::harness::Sequences;
use crate::requirements::Profile;
use pjrt_testing::host::CreateOption;

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
    /// The number of processes that run checks at once. By default, two for each core, and at most 4, if the plugin's arrays are
    /// in the memory of the host's processor, and otherwise 1.
    pub jobs: Option<NonZero<usize>>,
    /// The seed and the number of the random sequences of calls.
    pub sequences: Sequences,
    /// `true` if the report as text lists the advice of a whole run, and not only the number.
    pub lists_advice: bool,
}

/// The arguments of the hidden subcommand that runs checks.
#[derive(Debug, Clone, clap::Args)]
pub struct ChildOptions {
    /// Client option
    #[arg(long = "option")]
    pub options: Vec<CreateOption>,
    /// Reason why checks create no client
    #[arg(long)]
    pub no_client: Option<String>,
    /// Time limit of each check in milliseconds
    #[arg(long)]
    pub timeout: u64,
    /// Number of earlier checks that waited in vain
    #[arg(long, default_value_t = 0)]
    pub waited: usize,
    /// Earlier check that failed
    #[arg(long)]
    pub failed: Vec<String>,
    /// File for the calls of each thread
    #[arg(long)]
    pub calls: Option<PathBuf>,
    /// Seed of the first random sequence of calls
    #[arg(long)]
    pub seed: u64,
    /// Number of random sequences of calls
    #[arg(long)]
    pub rounds: Option<u64>,
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// Names of the checks
    pub checks: Vec<String>,
}

/// The isolation of the checks from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Each check runs in its own process.
    Each,
    /// Each process runs many checks, and is replaced if it ends. This is faster, but damage that one check
    /// does may make later ones fail.
    Shared,
}
