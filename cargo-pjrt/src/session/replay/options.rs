//! The arguments of `cargo pjrt replay`.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::child;
use pjrt_testing::host::CreateOption;

/// The arguments of `cargo pjrt replay`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Log that the recorder wrote
    pub log: PathBuf,
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// Largest difference of real numbers, relative to the larger number or to 1, whichever is larger; 0 by
    /// default
    #[arg(long, default_value_t = 0.0, value_parser = tolerance, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Client option, such as num_devices=2, in place of the recorded options; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE")]
    pub options: Vec<CreateOption>,
    /// Print all results, not only those that differ
    #[arg(long)]
    pub all: bool,
    /// Time limit of each step, such as one execution, in seconds
    #[arg(long, default_value = "600", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// Parses a tolerance on the command line.
pub(crate) fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    number.ok_or_else(|| "expected a number that is not negative, such as 1e-6".to_owned())
}
