//! Records what a host does with a plugin.
//!
//! The recorder is a plugin itself, the example `recorder` of this crate. It forwards everything to another plugin, and writes
//! into a log: programs and their options, arrays that the host puts on devices, executions, their order, and the arrays that
//! the host looks at. [`replay`](super::replay) does the same with another plugin.
//!
//! | environment variable | names |
//! |---|---|
//! | `PJRT_RECORD_PLUGIN` | the plugin to record |
//! | `PJRT_RECORD_LOG` | the file to write; `%p` in it is the number of the process |

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::log::{Entry, Log};
use super::recorder::{LOG, PLUGIN};
use crate::{inspect, output};

/// What to record.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The plugin, a shared library
    pub plugin: PathBuf,
    /// The file to write
    #[arg(long, short)]
    pub output: PathBuf,
    /// The platform's name for the host; by default, what the plugin says
    #[arg(long)]
    pub name: Option<String>,
    /// The recorder, a shared library; by default, the one beside this program
    #[arg(long, env = "PJRT_RECORDER")]
    pub recorder: Option<PathBuf>,
    /// The host: a command and its arguments; without one, its environment is printed
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// Runs a host with the recorder in the plugin's place; without a host, prints what to put into its environment. `program` is this
/// program, as for [`inspect::inspect`].
///
/// # Errors
///
/// If something of it is not there, or the host does not load the plugin.
pub fn record(options: &Options, program: &Path) -> Result<bool, String> {
    let environment = environment(options, program)?;
    let Some((command, arguments)) = options.command.split_first() else {
        let line =
            |(name, value): &(String, String)| format!("export {name}='{}'\n", value.replace('\'', "'\\''"));
        return output::print(&environment.iter().map(line).collect::<String>()).map(|()| true);
    };
    // What is there already would be taken for what was recorded.
    if options.output.exists() {
        std::fs::remove_file(&options.output)
            .map_err(|error| format!("{}: {error}", options.output.display()))?;
    }
    let status = Command::new(command)
        .args(arguments)
        .envs(environment)
        .status()
        .map_err(|error| format!("{command} cannot be started: {error}"))?;
    if !options.output.exists() {
        return Err(format!("{command} ended with {status}, and did not load the plugin: there is no log"));
    }
    let log = Log::open(&options.output)?;
    output::complain(&format!("recorded in {}: {}", options.output.display(), summary(&log)));
    if !status.success() {
        output::complain(&format!("{command} ended with {status}"));
    }
    Ok(status.success())
}

fn summary(log: &Log) -> String {
    let count = |is: fn(&Entry) -> bool| log.entries.iter().filter(|entry| is(entry)).count();
    format!(
        "{} programs, {} arrays put on devices, {} executions, {} results",
        count(|entry| matches!(entry, Entry::Compile { .. } | Entry::Deserialize { .. })),
        count(|entry| matches!(entry, Entry::Upload { .. } | Entry::Adopt { .. })),
        count(|entry| matches!(entry, Entry::Execute { .. })),
        count(|entry| matches!(entry, Entry::Result { .. })),
    )
}

/// What a host finds the recorder by. JAX and PyTorch/XLA read these; for other hosts, the recorder is the plugin to name.
fn environment(options: &Options, program: &Path) -> Result<Vec<(String, String)>, String> {
    let absolute = |path: &Path| {
        let path = std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))?;
        path.into_os_string().into_string().map_err(|path| format!("{}: this is no UTF-8", path.display()))
    };
    let recorder = match &options.recorder {
        Some(path) => path.clone(),
        None => beside(program).ok_or(
            "the recorder is not beside this program: build it with \
             `cargo build --package cargo-pjrt --example recorder`, and name the library with --recorder",
        )?,
    };
    if !recorder.exists() {
        return Err(format!("{}: there is no such file", recorder.display()));
    }
    let report = inspect::inspect(&options.plugin, program, &[], Duration::from_secs(60))
        .map_err(|error| format!("{}: {error}", options.plugin.display()))?;
    if let Some(error) = report.load_error {
        return Err(format!("{}: {error}", options.plugin.display()));
    }
    let name = options.name.clone().or(report.platform).ok_or_else(|| {
        format!(
            "{} does not say its platform, because no client can be made: give --name",
            options.plugin.display()
        )
    })?;
    let platforms = std::env::var("JAX_PLATFORMS").ok().filter(|platforms| !platforms.is_empty());
    Ok(vec![
        (PLUGIN.to_owned(), absolute(&options.plugin)?),
        (LOG.to_owned(), absolute(&options.output)?),
        ("PJRT_NAMES_AND_LIBRARY_PATHS".to_owned(), format!("{name}:{}", absolute(&recorder)?)),
        ("JAX_PLATFORMS".to_owned(), platforms.unwrap_or(format!("{name},cpu"))),
    ])
}

/// Where cargo puts the recorder when it builds it together with this program.
fn beside(program: &Path) -> Option<PathBuf> {
    let name = format!("{}recorder{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let folder = program.parent()?;
    [folder.join("examples").join(&name), folder.join(&name)].into_iter().find(|path| path.exists())
}
