//! Runs a program in the Python environment that collects the facts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::environment::{Environment, Facts, Jax, Registered};
use super::finding::Finding;
use super::options::Options;

const PROGRAM: &str = include_str!("../../python/doctor/environment.py");

/// The start of a line with facts. The rest of the output is that of plugins and hosts.
const MARK: &str = "PJRT-DOCTOR:";

/// The variables that select or exclude plugins, and what else decides.
const VARIABLES: [&str; 10] = [
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "PJRT_NAMES_AND_LIBRARY_PATHS",
    "PJRT_DEVICE",
    "PJRT_LIBRARY_PATH",
    "ENABLE_PJRT_COMPATIBILITY",
    "PJRT_PLUGIN_API_MINOR",
    "XLA_STABLEHLO_COMPILE",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
];

/// The environment, or the reason why it cannot be examined, and the findings about both.
pub(super) struct Examined {
    pub(super) environment: Option<Environment>,
    pub(super) findings: Vec<Finding>,
}

/// Examines the environment.
pub(super) fn environment(options: &Options) -> Examined {
    let mut findings = Vec::new();
    let facts = match run::<Facts>(options, "facts") {
        Ok((facts, _)) => facts,
        Err(why) => {
            let fix =
                "name the Python that runs your program with --python, such as --python venv/bin/python";
            return Examined { environment: None, findings: vec![Finding::problem(why, fix)] };
        }
    };
    let variables: BTreeMap<&'static str, String> =
        VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var(name).ok()?))).collect();
    let (named, wrong) = named(variables.get("PJRT_NAMES_AND_LIBRARY_PATHS").map_or("", String::as_str));
    findings.extend(wrong);
    let mut jax = None;
    if facts.packages.get("jax").is_some_and(Option::is_some) {
        match run::<Jax>(options, "jax") {
            Ok((found, end)) => {
                jax = Some(Jax { error: found.error.or(end), ..found });
            }
            Err(why) => findings.push(Finding::problem(
                format!("JAX cannot be examined: {why}"),
                "run python -c 'import jax; jax.devices()' to see the whole error",
            )),
        }
    }
    Examined { environment: Some(Environment { facts, jax, named, variables }), findings }
}

/// Parses `PJRT_NAMES_AND_LIBRARY_PATHS`, and finds what JAX would ignore or fail to load.
fn named(value: &str) -> (Vec<Registered>, Vec<Finding>) {
    let (mut named, mut findings) = (Vec::new(), Vec::new());
    for entry in value.split(',').filter(|_| !value.is_empty()) {
        let parts: Vec<&str> = entry.split(':').collect();
        let [name, path] = parts[..] else {
            findings.push(Finding::problem(
                format!("PJRT_NAMES_AND_LIBRARY_PATHS contains {entry:?}, which JAX ignores"),
                "write NAME:PATH, and a comma between two plugins; a path must not contain a colon or a comma",
            ));
            continue;
        };
        let path = PathBuf::from(path);
        if !path.exists() {
            findings.push(Finding::problem(
                format!("PJRT_NAMES_AND_LIBRARY_PATHS names {}, which does not exist", path.display()),
                format!(
                    "correct the path of {name:?}; use an absolute path, because programs change their folder"
                ),
            ));
        }
        // A JSON file names the library and its options.
        let library = (path.extension().is_none_or(|extension| extension != "json")).then_some(path);
        named.push(Registered { name: name.to_owned(), library });
    }
    (named, findings)
}

/// Runs a step of the program. Returns its last facts, and how the process ended if it ended badly.
fn run<T: DeserializeOwned>(options: &Options, step: &str) -> Result<(T, Option<String>), String> {
    let python = options.python.display();
    let mut child = Command::new(&options.python)
        .args(["-c", PROGRAM, step])
        .env("TF_CPP_MIN_LOG_LEVEL", "3")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot run {python}: {error}"))?;
    let [out, err] = [drain(child.stdout.take()), drain(child.stderr.take())];
    let started = Instant::now();
    let end = loop {
        match child.try_wait().map_err(|error| format!("{python}: {error}"))? {
            Some(status) if status.success() => break None,
            Some(status) => break Some(format!("Python ended with {status}, perhaps in a plugin")),
            None if started.elapsed() > options.timeout => {
                // It may have ended in the meantime.
                let _ = child.kill();
                let seconds = options.timeout.as_secs();
                break Some(format!(
                    "JAX and its plugins took longer than {seconds} s; --timeout changes the limit"
                ));
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    // A process that the child started may hold its output open after a timeout.
    let text = |reader: std::sync::mpsc::Receiver<String>| {
        reader.recv_timeout(Duration::from_secs(2)).unwrap_or_default()
    };
    let (out, err) = (text(out), text(err));
    let facts = out.lines().rev().find_map(|line| line.strip_prefix(MARK));
    let facts = facts.and_then(|json| serde_json::from_str(json).ok());
    let last = err.trim_end().lines().last().unwrap_or("it printed no facts").to_owned();
    facts.map(|facts| (facts, end.clone())).ok_or_else(|| format!("{python}: {}", end.unwrap_or(last)))
}

/// Reads a pipe until its end, in a thread.
fn drain(pipe: Option<impl std::io::Read + Send + 'static>) -> std::sync::mpsc::Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read before an error is enough.
            let _ = pipe.read_to_end(&mut bytes);
        }
        // The receiver is gone after a timeout.
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_jax_ignores_and_files_that_are_missing_are_problems() {
        let (plugins, findings) = named("a:/bin/sh,b,c:/no/such.so");
        let names: Vec<&str> = plugins.iter().map(|plugin| plugin.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
        let messages: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert!(messages[0].contains("\"b\"") && messages[1].contains("/no/such.so"), "{messages:?}");
        assert_eq!(named(""), (Vec::new(), Vec::new()));
    }
}
