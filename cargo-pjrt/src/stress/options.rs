//! The arguments of `cargo pjrt stress`.

use std::path::PathBuf;
use std::time::Duration;

use super::scenario::Part;
use crate::process::child;
use pjrt_testing::host::CreateOption;

/// The arguments of `cargo pjrt stress`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// Run only these parts; can be given several times
    #[arg(long, value_enum)]
    pub only: Vec<Part>,
    /// Number of seconds for which the threads run
    #[arg(long, default_value = "10", value_name = "SECONDS", value_parser = child::seconds())]
    pub seconds: Duration,
    /// Number of threads
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub threads: u64,
    /// Number of rounds over which memory is measured
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub rounds: u64,
    /// Seed of the random operations; by default, a different one each time
    #[arg(long)]
    pub seed: Option<u64>,
    /// Client option, such as num_devices=2; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option)]
    pub options: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Time limit of each step, such as one operation of a thread or the end of a process, in seconds
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// The arguments of the hidden subcommand that runs one scenario.
#[derive(Debug, Clone, clap::Args)]
pub struct ChildOptions {
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// Name of the scenario
    #[arg(long)]
    pub scenario: String,
    /// Seed of the random operations
    #[arg(long)]
    pub seed: u64,
    /// Number of seconds for which the threads run
    #[arg(long, value_parser = child::seconds())]
    pub seconds: Duration,
    /// Number of threads
    #[arg(long)]
    pub threads: u64,
    /// Number of rounds
    #[arg(long)]
    pub rounds: u64,
    /// Time limit of an operation
    #[arg(long, value_parser = child::seconds())]
    pub timeout: Duration,
    /// Client option
    #[arg(long = "option")]
    pub options: Vec<CreateOption>,
}

/// Checks that the text is a valid client option.
fn create_option(text: &str) -> Result<String, String> {
    text.parse::<CreateOption>().map(|_| text.to_owned())
}
