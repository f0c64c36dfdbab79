//! The parent process, which survives a plugin that crashes or hangs.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::child::BEGINNING;
use super::message::Message;
use super::options::Options;
use super::report::{Outcome, Report, Row};
use super::scenario::{KILLED, SCENARIOS, Scenario};
use crate::process::child::{Prints, Received, Worker};
use crate::process::interrupt;

/// Runs the scenarios. `program` is the path of this program, which must have the hidden subcommand
/// `stress-child`.
///
/// # Errors
///
/// Returns an error if a child cannot be started, or if the plugin cannot be used.
pub fn stress(options: &Options, program: &Path) -> Result<Report, String> {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let seed = options.seed.unwrap_or_else(clock);
    let mut rows = Vec::new();
    let selected: Vec<&Scenario> = SCENARIOS
        .iter()
        .filter(|scenario| options.only.is_empty() || options.only.contains(&scenario.part))
        .collect();
    for scenario in &selected {
        let started = Instant::now();
        let mut outcome = (Outcome::Ok, String::new());
        for time in 0..scenario.times {
            outcome = run(options, program, scenario, seed.wrapping_add(time), rows.is_empty())?;
            if interrupt::is_requested() {
                let (plugin, threads) = (options.plugin.clone(), options.threads);
                let not_run = selected.len() - rows.len();
                let stopped = Some(format!(
                    "{not_run} scenarios were not run to the end, because a signal ended the run"
                ));
                return Ok(Report { plugin, seed, threads, rows, stopped });
            }
            if outcome.0 != Outcome::Ok {
                break;
            }
        }
        let (outcome, message) = outcome;
        let seconds = started.elapsed().as_secs_f64();
        rows.push(Row { name: scenario.name.to_owned(), outcome, message, seconds });
    }
    Ok(Report { plugin: options.plugin.clone(), seed, threads: options.threads, rows, stopped: None })
}

/// Runs a scenario once. If it is the first one, the plugin cannot be used unless it creates a client.
fn run(
    options: &Options,
    program: &Path,
    scenario: &Scenario,
    seed: u64,
    is_first: bool,
) -> Result<(Outcome, String), String> {
    let mut worker = start(options, program, scenario, seed)?;
    let (mut at, mut done) = ("starting".to_owned(), None);
    // The child reports a thread that makes no progress itself, and says which one it is.
    let timeout = options.timeout + options.timeout / 2;
    let how = loop {
        match worker.receive(timeout) {
            Received::Line(line) => match serde_json::from_str(&line) {
                Ok(Message::Unusable(why)) => return Err(format!("{}: {why}", options.plugin.display())),
                Ok(Message::At(what)) => {
                    let is_in_flight = scenario.name == KILLED && what.starts_with("ending");
                    at = what;
                    if is_in_flight {
                        // Dropping the worker kills the child.
                        return Ok((Outcome::Ok, at.replace("ending", "killed")));
                    }
                }
                Ok(Message::Failed(how)) => break how,
                Ok(Message::Unsupported(why)) => return Ok((Outcome::Unsupported, why)),
                Ok(Message::Done(summary)) => {
                    done = Some(summary);
                    "ending".clone_into(&mut at);
                }
                Err(_) => {}
            },
            Received::Ended(ending) if ending.is_good() => {
                let exits = scenario.name == "ending/exit_on_another_thread" && at.starts_with("ending");
                match done {
                    Some(summary) => return Ok((Outcome::Ok, summary)),
                    None if exits => return Ok((Outcome::Ok, at.replace("ending", "exited"))),
                    None => break format!("the plugin ended the process with {ending} while {at}"),
                }
            }
            Received::Ended(ending) => break format!("the process ended with {ending} while {at}"),
            // The caller does not report this outcome.
            Received::TimedOut if interrupt::is_requested() => return Ok((Outcome::Ok, String::new())),
            Received::TimedOut => {
                break format!("the process made no progress for {:.0} s while {at}", timeout.as_secs_f64());
            }
        }
    };
    let printed = worker.printed_so_far();
    let printed = if printed.is_empty() { printed } else { format!("; it printed: {printed}") };
    if is_first && BEGINNING.contains(&at.as_str()) {
        return Err(format!("{}: {how}{printed}", options.plugin.display()));
    }
    Ok((Outcome::Failed, format!("{how}{printed}")))
}

fn start(options: &Options, program: &Path, scenario: &Scenario, seed: u64) -> Result<Worker, String> {
    let mut arguments: Vec<OsString> = vec!["stress-child".into(), options.plugin.clone().into()];
    arguments.push(format!("--scenario={}", scenario.name).into());
    arguments.push(format!("--seed={seed}").into());
    arguments.push(format!("--seconds={}", options.seconds.as_secs()).into());
    arguments.push(format!("--threads={}", options.threads).into());
    arguments.push(format!("--rounds={}", options.rounds).into());
    arguments.push(format!("--timeout={}", options.timeout.as_secs()).into());
    arguments.extend(options.options.iter().map(|option| format!("--option={option}").into()));
    Worker::start(program, &arguments, Prints::Kept)
        .map_err(|error| format!("cannot start {}: {error}", program.display()))
}
