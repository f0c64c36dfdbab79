//! Records the calls of a host to a plugin.
//!
//! The recorder is itself a plugin: the example `recorder` of this crate. It forwards all calls to another
//! plugin, and writes a log of the programs and their options, the arrays that the host transfers to devices,
//! the executions in their order, and the arrays that the host reads. [`replay`](super::replay) repeats a log
//! on another plugin.
//!
//! | environment variable | value |
//! |---|---|
//! | `PJRT_RECORD_PLUGIN` | the plugin to record |
//! | `PJRT_RECORD_LOG` | the file to write; `%p` in the name is replaced with the process id |

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::log::{Entry, Log};
use super::recorder::{LOG, PLUGIN};
use super::recorder_library;
use crate::inspect;
use crate::process::output;

/// The arguments of `cargo pjrt record`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Path of the plugin's shared library
    pub plugin: PathBuf,
    /// File to write
    #[arg(long, short)]
    pub output: PathBuf,
    /// Platform name that the host should use; by default, the name that the plugin reports
    #[arg(long)]
    pub name: Option<String>,
    /// Path of the recorder's shared library; by default, the one in the folder of this program, or one that cargo builds in the
    /// user's cache folder at the first use
    #[arg(long, env = "PJRT_RECORDER")]
    pub recorder: Option<PathBuf>,
    /// Command line of the host; if absent, the environment variables for the host are printed
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// Runs a host with the recorder in place of the plugin. Without a host, prints the environment variables to
/// set. `program` is the path of this program, as for [`inspect::inspect`].
///
/// # Errors
///
/// Returns an error if a file is missing, or if the host does not load the plugin.
pub fn record(options: &Options, program: &Path) -> Result<bool, String> {
    let environment = environment(options, program)?;
    let Some((command, arguments)) = options.command.split_first() else {
        let line =
            |(name, value): &(String, String)| format!("export {name}='{}'\n", value.replace('\'', "'\\''"));
        return output::print(&environment.iter().map(line).collect::<String>()).map(|()| true);
    };
    // An existing file would be mistaken for the new recording.
    if options.output.exists() {
        std::fs::remove_file(&options.output)
            .map_err(|error| format!("{}: {error}", options.output.display()))?;
    }
    let status = Command::new(command)
        .args(arguments)
        .envs(environment)
        .status()
        .map_err(|error| format!("cannot start {command}: {error}"))?;
    if !options.output.exists() {
        return Err(format!("{command} ended with {status} and did not load the plugin, so there is no log"));
    }
    let log = Log::open(&options.output)?;
    output::print_error(&format!("recorded in {}: {}", options.output.display(), summary(&log)));
    if !status.success() {
        output::print_error(&format!("{command} ended with {status}"));
    }
    Ok(status.success())
}

fn summary(log: &Log) -> String {
    let count = |is: fn(&Entry) -> bool| log.entries.iter().filter(|entry| is(entry)).count();
    format!(
        "{} programs, {} arrays transferred to devices, {} executions, {} results",
        count(|entry| matches!(entry, Entry::Compile { .. } | Entry::Deserialize { .. })),
        count(|entry| matches!(entry, Entry::Upload { .. } | Entry::Adopt { .. })),
        count(|entry| matches!(entry, Entry::Execute { .. })),
        count(|entry| matches!(entry, Entry::Result { .. })),
    )
}

/// Returns the environment variables that make JAX and PyTorch/XLA load the recorder. Other hosts are given
/// the path of the recorder as that of their plugin.
fn environment(options: &Options, program: &Path) -> Result<Vec<(String, String)>, String> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        path.into_os_string()
            .into_string()
            .map_err(|path| format!("the path {} is not valid UTF-8", path.display()))
    };
    let report = inspect::inspect(&options.plugin, program, &[], Duration::from_secs(60))
        .map_err(|error| format!("{}: {error}", options.plugin.display()))?;
    if let Some(error) = report.load_error {
        return Err(format!("{}: {error}", options.plugin.display()));
    }
    let name = options.name.clone().or(report.platform).ok_or_else(|| {
        format!(
            "cannot determine the platform name of {}, because no client can be created; pass it with --name",
            options.plugin.display()
        )
    })?;
    let folder = options.output.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!("{}: there is no folder {}", options.output.display(), folder.display()));
    }
    // A recorder may have to be built, which takes minutes.
    let recorder = match &options.recorder {
        Some(path) => path.clone(),
        None => recorder_library::find(program)?,
    };
    if !recorder.exists() {
        return Err(format!("{}: no such file", recorder.display()));
    }
    let platforms = std::env::var("JAX_PLATFORMS").ok().filter(|platforms| !platforms.is_empty());
    Ok(vec![
        (PLUGIN.to_owned(), absolute(&options.plugin)?),
        (LOG.to_owned(), absolute(&options.output)?),
        ("PJRT_NAMES_AND_LIBRARY_PATHS".to_owned(), format!("{name}:{}", absolute(&recorder)?)),
        ("JAX_PLATFORMS".to_owned(), platforms.unwrap_or(format!("{name},cpu"))),
    ])
}
