//! The arguments of `cargo pjrt doctor`.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::child;
use pjrt_testing::host::CreateOption;

/// The arguments of `cargo pjrt doctor`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examines the library (its file, the shared libraries and the glibc that it needs, GetPjrtApi), the plugin (the version of the C
API, the functions that each host needs, the creation of a client), and the Python environment (the versions of JAX and PyTorch/XLA,
the plugins that they discover, name clashes, and the environment variables that select or exclude a plugin). Ends with the
platform that JAX chooses. The exit status is 1 if there is a problem.

  cargo pjrt doctor my_plugin.so                            why does this library not load or work?
  cargo pjrt doctor --python venv/bin/python                which plugins does this environment have?
  JAX_PLATFORMS=my_chip cargo pjrt doctor my_plugin.so      with the variables that your program runs with")]
pub struct Options {
    /// Path of the plugin's shared library; by default, those of the plugins that the environment has
    pub plugin: Option<PathBuf>,
    /// Python of the environment to examine
    #[arg(long, default_value = "python3", value_name = "PROGRAM")]
    pub python: PathBuf,
    /// Client option, such as num_devices=2; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option)]
    pub options: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Time limit of each step, in seconds
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// Checks that the text is a valid client option.
fn create_option(text: &str) -> Result<String, String> {
    text.parse::<CreateOption>().map(|_| text.to_owned())
}
