//! Runs programs in a host, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::host::Host;
use super::report::{HostRow, Outcome, ProgramRow};
use crate::process::child::{Prints, Received, Worker};
use pjrt_testing::host::{CreateOption, Value};

/// The first argument of the process.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Request {
    pub(super) library: PathBuf,
    pub(super) platform: String,
    pub(super) options: serde_json::Map<String, serde_json::Value>,
    pub(super) programs: Vec<String>,
    pub(super) tolerance: f64,
}

/// A message of the process.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Message {
    Ready { version: String },
    Begins { program: String },
    Right { program: String, error: f64, message: Option<String> },
    Wrong { program: String, error: Option<f64>, message: Option<String> },
    Refused { program: String, message: String },
    Failed { program: String, message: String },
    Absent { program: String },
    End,
}

/// The end of a process before its last program.
enum Ended {
    /// It took too long.
    TimedOut(String),
    /// It crashed, or it exited with an error.
    Crashed(String),
}

/// Returns create options as JSON.
///
/// # Errors
///
/// Returns an error if an option is invalid.
pub(super) fn json_options(options: &[String]) -> Result<serde_json::Map<String, serde_json::Value>, String> {
    let json = |text: &String| {
        let option: CreateOption = text.parse()?;
        let value = match option.0.value {
            Value::String(text) => text.into(),
            Value::Int64(number) => number.into(),
            Value::Int64List(numbers) => numbers.into(),
            Value::Float(number) => f64::from(number).into(),
            Value::Bool(truth) => truth.into(),
            Value::Unknown(_) => serde_json::Value::Null,
        };
        Ok((option.0.name, value))
    };
    options.iter().map(json).collect()
}

/// Runs the programs. A process that ends is replaced for the programs after the one that ended it; after one that takes too long,
/// the remaining programs are not run.
///
/// # Errors
///
/// Returns an error if a process cannot be started.
pub(super) fn run(
    host: Host,
    command: (&Path, &[PathBuf]),
    plugins: &Path,
    request: &Request,
    timeout: Duration,
) -> Result<HostRow, String> {
    let mut row = HostRow { host, version: None, missing: None, failure: None, programs: Vec::new() };
    while row.programs.len() < request.programs.len() {
        let rest = Request { programs: request.programs[row.programs.len()..].to_vec(), ..request.clone() };
        let mut worker = start(command, plugins, &rest)?;
        let Some(ended) = collect(&mut worker, &mut row, timeout) else { break };
        let printed = worker.printed();
        let printed = printed
            .trim()
            .lines()
            .last()
            .map(|line| format!("; its last output: {line}"))
            .unwrap_or_default();
        let (why, is_last) = match ended {
            Ended::TimedOut(why) => (why, true),
            Ended::Crashed(why) => (why, false),
        };
        if row.version.is_none() {
            row.failure = Some(format!("{} did not start: {why}{printed}", host.title()));
            break;
        }
        // The program that ended the process is the first one without an outcome.
        let Some(name) = request.programs.get(row.programs.len()) else { break };
        row.programs
            .push(ProgramRow { name: name.clone(), outcome: Outcome::Failed(format!("{why}{printed}")) });
        if is_last {
            let skipped = request.programs[row.programs.len()..].iter();
            let skipped = skipped.map(|name| ProgramRow { name: name.clone(), outcome: Outcome::Skipped });
            row.programs.extend(skipped.collect::<Vec<_>>());
        }
    }
    Ok(row)
}

fn start(
    (program, arguments): (&Path, &[PathBuf]),
    plugins: &Path,
    request: &Request,
) -> Result<Worker, String> {
    let mut command = Command::new(program);
    command.args(arguments).arg(serde_json::to_string(request).map_err(|error| error.to_string())?);
    // Settings of the user's shell must not select another plugin.
    for variable in
        ["PJRT_NAMES_AND_LIBRARY_PATHS", "PJRT_LIBRARY_PATH", "PJRT_DEVICE", "PYTHONPATH", "PYTHONHOME"]
    {
        command.env_remove(variable);
    }
    command.env("PJRT_PLUGIN_LIBRARY_PATH", plugins).env("GOMLX_NO_AUTO_INSTALL", "1");
    Worker::start_command(command, Prints::Kept)
        .map_err(|error| format!("cannot start {}: {error}", program.display()))
}

/// Collects outcomes until the last one. Returns the way in which the process ended before.
fn collect(worker: &mut Worker, row: &mut HostRow, timeout: Duration) -> Option<Ended> {
    let mut running = "starting".to_owned();
    loop {
        let line = match worker.receive(timeout) {
            Received::Line(line) => line,
            Received::TimedOut => {
                let seconds = timeout.as_secs_f64();
                return Some(Ended::TimedOut(format!(
                    "it took longer than {seconds:.0} s while {running}; --timeout changes the limit"
                )));
            }
            Received::Ended(ending) => {
                return Some(Ended::Crashed(format!("its process ended with {ending} while {running}")));
            }
        };
        let Ok(message) = serde_json::from_str(&line) else { continue };
        let (name, outcome) = match message {
            Message::Ready { version } => {
                row.version = Some(version);
                continue;
            }
            Message::Begins { program } => {
                running = format!("running the program {program}");
                continue;
            }
            Message::Right { program, error, message } => (program, Outcome::Right { error, note: message }),
            Message::Wrong { program, error, message } => (program, Outcome::Wrong { error, message }),
            Message::Refused { program, message } => (program, Outcome::Refused(message)),
            Message::Failed { program, message } => (program, Outcome::Failed(message)),
            Message::Absent { program } => (program, Outcome::Absent),
            Message::End => return None,
        };
        row.programs.push(ProgramRow { name, outcome });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_their_types_in_the_hosts() {
        let options = ["num_devices=2", "name=chip", "fast=true"].map(str::to_owned);
        let json = serde_json::Value::from(json_options(&options).unwrap());
        assert_eq!(json, serde_json::json!({"num_devices": 2, "name": "chip", "fast": true}));
        assert!(json_options(&["num_devices".to_owned()]).is_err());
    }
}
