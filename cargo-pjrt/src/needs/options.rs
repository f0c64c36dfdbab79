//! The arguments of `cargo pjrt needs`.

use std::path::PathBuf;
use std::time::Duration;

use crate::process::child;
use pjrt_testing::host::CreateOption;

/// The end of the help, which explains the table.
const HELP: &str = "\
Without programs, the command uses programs that JAX 0.10.2 made, in tiers from arithmetic to training steps. They show what a \
new device needs first.

With --plugin, the plugin compiles each program in a child process; nothing runs on the device. For each refused program, the \
plugin also compiles each operation alone, with the operands as arguments, and the table contains its answer:

  accepted   the plugin compiles it
  refused    the plugin refuses it alone; the message follows
  contains   its regions, or the function that it calls, contain a refused operation
  -          not compiled

An operation can have several forms with the same element types, such as the types of a comparison. If the plugin refuses only \
some of them, the table says how many, and by which attributes and operands the first of these differs from all accepted ones.

The exit status is 0 if the plugin accepts all required programs, 1 if it refuses one or a program cannot be read, and 2 if the \
arguments are wrong. Required are the programs of the arguments, and the recorded programs of the tiers that --require names. \
The other recorded programs are a survey, which no device has to pass.

A program that needs an operation that the device lacks may still compile: pjrt_stablehlo::passes::decompose replaces many \
operations by others. Without --plugin, the table shows which ones.";

/// The arguments of `cargo pjrt needs`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = HELP)]
pub struct Options {
    /// Programs, folders of programs, and recordings of `cargo pjrt record`; by default, programs of JAX that this program
    /// contains
    pub programs: Vec<PathBuf>,
    /// Path of the shared library of a plugin that compiles the programs
    #[arg(long, env = "PJRT_PLUGIN")]
    pub plugin: Option<PathBuf>,
    /// Use only the recorded programs of this tier; can be given several times
    #[arg(long = "tier", value_name = "TIER", value_parser = super::recorded::tier_names(), conflicts_with = "programs")]
    pub tiers: Vec<String>,
    /// Fail if the plugin refuses a recorded program of this tier; can be given several times
    #[arg(long = "require", value_name = "TIER", value_parser = super::recorded::tier_names(), requires = "plugin")]
    #[arg(conflicts_with = "programs")]
    pub required: Vec<String>,
    /// Client option, such as num_devices=2; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option, requires = "plugin")]
    pub options: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Time limit of each compilation, in seconds
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// The arguments of the hidden subcommand that compiles programs.
#[derive(Debug, Clone, clap::Args)]
pub struct ChildOptions {
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// Folder of the programs, which are folders with numbers as names
    #[arg(long)]
    pub jobs: PathBuf,
    /// Number of the first program
    #[arg(long)]
    pub first: usize,
    /// Number after that of the last program
    #[arg(long)]
    pub end: usize,
    /// Client option
    #[arg(long = "option")]
    pub options: Vec<CreateOption>,
}

/// Checks that the text is a valid client option.
fn create_option(text: &str) -> Result<String, String> {
    text.parse::<CreateOption>().map(|_| text.to_owned())
}
