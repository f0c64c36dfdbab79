//! The arguments of `cargo pjrt test`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;

use super::host::Host;
use super::programs::PROGRAMS;
use crate::process::child;
use crate::session::replay;
use pjrt_testing::host::CreateOption;

/// The long help, which explains the table.
const HELP: &str = "\
Run a plugin's programs inside real hosts: JAX, PyTorch/XLA and GoMLX, where they are installed

Each host runs small programs on the plugin, in a process of its own: additions, matrix products, reductions, donation, gradients, \
and a training of a few steps. It loads the plugin as from its wheel, but no wheel is needed. The results are compared with those of \
the host's own CPU device.

  right     the largest error, relative to the largest expected number (or to 1), is within --tolerance
  WRONG     a result differs by more; the table shows the largest error
  refused   the plugin did not compile the program; its message is below the table
  FAILED    the host or the plugin reported another error, crashed, or took too long
  -         the host has no such program

A program that JAX's plugin refuses is FAILED if the plugin compiles its recorded form, which `cargo pjrt needs` contains.

Hosts are looked for in the Python of --python; by default in `python3`, in the folders .venv and venv, in the environments of \
`cargo pjrt wheel`, and in those that --install created. GoMLX needs Go and a C compiler.

The exit status is 1 if a program is wrong or failed, or if a host that --host names is not installed.

  cargo pjrt test                                        build the plugin of this folder, and test it in all hosts
  cargo pjrt test libmy_chip.so --host jax --install     in JAX, which is installed into a virtual environment if it is missing
  cargo pjrt test libmy_chip.so --program training --option num_devices=2";

/// The arguments of `cargo pjrt test`.
#[derive(Debug, Clone, clap::Args)]
#[command(long_about = HELP)]
pub struct Options {
    /// Path of the plugin's shared library; by default, the package of the current folder is built
    pub plugin: Option<PathBuf>,
    /// Run only in this host; can be given several times
    #[arg(long = "host", value_enum, value_name = "HOST")]
    pub hosts: Vec<Host>,
    /// Run only this program; can be given several times
    #[arg(long = "program", value_name = "NAME", value_parser = PossibleValuesParser::new(PROGRAMS.iter().map(|program| program.name)))]
    pub programs: Vec<String>,
    /// Python of the environment with JAX or PyTorch/XLA
    #[arg(long, value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// Install the hosts that --host names, if they are missing: into new virtual environments, and into Go's cache of modules
    #[arg(long, requires = "hosts")]
    pub install: bool,
    /// Client option, such as num_devices=2; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option)]
    pub options: Vec<String>,
    /// Largest error of a right result, relative to the largest expected number
    #[arg(long, default_value = "1e-4", value_name = "NUMBER", value_parser = replay::tolerance)]
    pub tolerance: f64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Time limit of each program, and of the start of each host, in seconds
    #[arg(long, default_value = "120", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
}

/// Checks that the text is a valid client option.
fn create_option(text: &str) -> Result<String, String> {
    text.parse::<CreateOption>().map(|_| text.to_owned())
}
