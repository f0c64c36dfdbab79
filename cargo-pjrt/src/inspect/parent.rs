//! The parent process, which survives a plugin that crashes or hangs.

use std::path::Path;
use std::time::Duration;

use super::exports::exports;
use super::report::{Report, Step};
use super::stage::Stage;
use crate::process::child::{Prints, Received, Worker};

/// Inspects a plugin. A child process calls the plugin's functions; it runs this program with the hidden
/// subcommand `inspect-child` (see [`child`](super::child())).
///
/// # Errors
///
/// Returns an error if the file cannot be read, or if the child process cannot be started.
pub fn inspect(
    path: &Path,
    program: &Path,
    options: &[String],
    timeout: Duration,
) -> std::io::Result<Report> {
    let mut report = exports(path)?;
    let mut arguments = vec!["inspect-child".into(), path.as_os_str().to_owned()];
    arguments.extend(options.iter().map(Into::into));
    let mut worker = Worker::start(program, &arguments, Prints::Kept)?;
    let mut stage = Stage::Loading;
    let step = loop {
        match worker.receive(timeout) {
            Received::Line(line) => {
                let Ok((now, received)) = serde_json::from_str::<(Stage, Report)>(&line) else { continue };
                report = Report {
                    path: report.path,
                    file_size: report.file_size,
                    exports: report.exports,
                    num_exports: report.num_exports,
                    ..received
                };
                stage = now;
                if stage == Stage::End {
                    break None;
                }
            }
            Received::TimedOut => break Some(Step::TimedOut),
            Received::Ended(ending) => break Some(Step::Crashed(ending.to_string())),
        }
    };
    if let Some(step) = step {
        report.faults.push(format!("{}: {}", stage.name(), step.text()));
        stage.note(&mut report, step);
    }
    report.printed = worker.printed();
    Ok(report)
}
