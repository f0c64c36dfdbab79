//! The arguments of `cargo pjrt compare`.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::child;
use crate::session::replay::tolerance;
use pjrt_testing::host::CreateOption;

/// The arguments of `cargo pjrt compare`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Path of the first plugin's shared library
    #[arg(value_parser = existing)]
    pub a: PathBuf,
    /// Path of the second plugin's shared library, such as XLA's CPU plugin
    #[arg(value_parser = existing)]
    pub b: PathBuf,
    /// Folder of programs to run with the same arguments: .mlir, .mlirbc, .bc, .pb and .hlo files, and
    /// folders as for `run --replay`
    #[arg(long, value_name = "FOLDER", value_parser = existing)]
    pub programs: Option<PathBuf>,
    /// Recorded session to replay; can be given several times
    #[arg(long = "session", value_name = "LOG", value_parser = existing)]
    pub sessions: Vec<PathBuf>,
    /// Largest difference of real numbers, relative to the larger number or to 1, whichever is larger; 0 by
    /// default
    #[arg(long, default_value_t = 0.0, value_parser = tolerance, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Client option of the first plugin, such as num_devices=2; can be given several times
    #[arg(long = "option-a", value_name = "NAME=VALUE", value_parser = create_option)]
    pub options_a: Vec<String>,
    /// Client option of the second plugin; can be given several times
    #[arg(long = "option-b", value_name = "NAME=VALUE", value_parser = create_option)]
    pub options_b: Vec<String>,
    /// Run only the checks whose names contain this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Do not run the checks of the conformance kit
    #[arg(long, conflicts_with = "filter")]
    pub no_checks: bool,
    /// Run all checks in one process, and start another only if it ends
    #[arg(long)]
    pub shared: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Time limit of each check and of each observation, in seconds
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// The arguments of the hidden subcommand that observes one plugin.
#[derive(Debug, Clone, clap::Args)]
pub struct ChildOptions {
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// Folder for arrays
    #[arg(long)]
    pub scratch: PathBuf,
    /// Client option
    #[arg(long = "option")]
    pub options: Vec<CreateOption>,
    /// Index of the first subject
    #[arg(long)]
    pub first: usize,
    /// Subjects to observe
    pub subjects: Vec<String>,
}

/// Parses the path of a file or folder that exists.
fn existing(text: &str) -> Result<PathBuf, String> {
    std::path::absolute(text)
        .and_then(|path| path.metadata().map(|_| path))
        .map_err(|error| error.to_string())
}

/// Checks that the text is a valid client option.
fn create_option(text: &str) -> Result<String, String> {
    text.parse::<CreateOption>().map(|_| text.to_owned())
}
