//! The arguments of `cargo pjrt numerics`.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use super::elements::COLUMNS;
use crate::process::child;
use pjrt_testing::host::CreateOption;

/// The arguments of `cargo pjrt numerics`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Each operation runs on each element type, with ordinary values and with edge cases, and then whole models run: an MLP, a CNN, a
transformer and an LSTM, forward and with gradients. A program that the plugin does not compile counts as refused. A result
that is farther from the expected one than its tolerance is wrong, and the exit status is 1.

  cargo pjrt numerics my_plugin.so                           all programs
  cargo pjrt numerics my_plugin.so --op dot_general          one operation
  cargo pjrt numerics my_plugin.so --element f32 --refused   one element type, with the plugin's messages
  cargo pjrt numerics my_plugin.so --skip denormals          for a device that flushes denormals
  cargo pjrt numerics my_plugin.so --dump failures           writes the programs with wrong results, to run them again:
  cargo pjrt run --replay failures/add-f32-ordinary --plugin my_plugin.so

A suite of your own programs, with the results of a plugin that you trust:

  cargo pjrt numerics trusted.so --record mine.zip programs/
  cargo pjrt numerics my_plugin.so --suite mine.zip")]
pub struct Options {
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// The programs to record: StableHLO files, or folders with such files
    #[arg(requires = "record", value_name = "PROGRAMS")]
    pub programs: Vec<PathBuf>,
    /// Select programs
    #[command(flatten)]
    pub selection: Selection,
    /// Print the plugin's messages about the programs that it refused
    #[arg(long)]
    pub refused: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Time limit of each program, in seconds
    #[arg(long, default_value = "60", value_name = "SECONDS", value_parser = child::seconds())]
    pub timeout: Duration,
    /// Run programs on the plugin, with random arguments that are the same each time, and write them with their
    /// results as a suite to this file
    #[arg(long, value_name = "FILE", requires = "programs", conflicts_with_all = ["op", "element", "skip", "suite"])]
    pub record: Option<PathBuf>,
}

/// The programs to run.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Selection {
    /// Run only this operation or model, such as dot_general or transformer; can be given several times
    #[arg(long, value_name = "NAME")]
    pub op: Vec<String>,
    /// Run only programs on this element type, such as f32 or c64; can be given several times
    #[arg(long, value_name = "TYPE", value_parser = element)]
    pub element: Vec<String>,
    /// Do not run programs whose names contain this text, such as denormals; can be given several times
    #[arg(long, value_name = "TEXT")]
    pub skip: Vec<String>,
    /// Run the suite in this file instead of those of this program; can be given several times
    #[arg(long, value_name = "FILE")]
    pub suite: Vec<PathBuf>,
    /// Write each program with a wrong result to a folder of its own in this folder, with its arguments and results
    #[arg(long, value_name = "FOLDER")]
    pub dump: Option<PathBuf>,
    /// Client option, such as num_devices=2; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option)]
    pub options: Vec<String>,
}

/// The arguments of the hidden subcommand that runs the programs.
#[derive(Debug, Clone, clap::Args)]
pub struct ChildOptions {
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// Number of selected programs that ran before
    #[arg(long)]
    pub first: usize,
    /// Select programs
    #[command(flatten)]
    pub selection: Selection,
}

/// Reads the name of an element type, or the one that heads its column in the table.
fn element(text: &str) -> Result<String, Infallible> {
    let column = COLUMNS.iter().find(|(_, title)| *title == text);
    Ok(column.map_or(text, |(name, _)| name).to_owned())
}

impl Selection {
    /// Returns the client's options.
    pub(super) fn create_options(&self) -> Result<Vec<CreateOption>, String> {
        self.options.iter().map(|option| option.parse()).collect()
    }

    /// Returns these options as arguments of a command line.
    pub(super) fn arguments(&self) -> Vec<std::ffi::OsString> {
        let texts = [("--op", &self.op), ("--element", &self.element), ("--skip", &self.skip)];
        let texts =
            texts.iter().flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}")));
        let mut arguments: Vec<std::ffi::OsString> = texts.map(Into::into).collect();
        for (name, path) in self
            .suite
            .iter()
            .map(|path| ("--suite", path))
            .chain(self.dump.iter().map(|path| ("--dump", path)))
        {
            arguments.extend([name.into(), path.into()]);
        }
        arguments.extend(self.options.iter().map(|option| format!("--option={option}").into()));
        arguments
    }
}

/// Checks that the text is a valid client option.
fn create_option(text: &str) -> Result<String, String> {
    text.parse::<CreateOption>().map(|_| text.to_owned())
}
