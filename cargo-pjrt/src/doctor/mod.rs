//! Explains why a plugin does not load, or why JAX does not choose it.
//!
//! Three parts find facts: the library's file, the plugin in a child process, and the Python environment. Each finding is good, a
//! warning or a problem, and the last two say what to do.

mod environment;
mod finding;
mod hosts;
mod library;
mod options;
mod plugin;
mod python;
mod report;
mod selection;

use std::path::{Path, PathBuf};

use environment::{Environment, Registered};
use finding::{Finding, Level};
pub use options::Options;
pub use report::Report;

/// Examines a plugin and a Python environment. `program` is the path of this program, which must have the hidden subcommand
/// `inspect-child`.
///
/// # Errors
///
/// Returns an error if a child process cannot be started.
pub fn doctor(options: &Options, program: &Path) -> Result<Report, String> {
    let environment = python::environment(options);
    let mut findings = Vec::new();
    let mut libraries: Vec<PathBuf> = options.plugin.iter().cloned().collect();
    if let (None, Some(environment)) = (&options.plugin, &environment.environment) {
        libraries = environment.registered().into_iter().filter_map(|plugin| plugin.library).collect();
        libraries.sort_unstable();
        libraries.dedup();
    }
    let mut platforms = Vec::new();
    for path in &libraries {
        let section = path.display().to_string();
        let (of_library, platform) = examine(path, options, program)?;
        findings.extend(of_library.into_iter().map(|finding| (section.clone(), finding)));
        platforms.push((path.clone(), platform));
    }
    let section = format!("Python environment of {}", options.python.display());
    let choice = match &environment.environment {
        None => {
            findings.extend(environment.findings.into_iter().map(|finding| (section.clone(), finding)));
            selection::Choice::nothing("Python cannot be examined")
        }
        Some(facts) => {
            let mut of_python = environment.findings;
            of_python.extend(hosts::findings(facts));
            of_python.extend(registrations(facts, &platforms));
            let (of_choice, choice) = selection::findings(facts, options.plugin.as_deref(), &platforms);
            of_python.extend(of_choice);
            findings.extend(of_python.into_iter().map(|finding| (section.clone(), finding)));
            choice
        }
    };
    Ok(Report::new(findings, choice))
}

/// Examines a library, and returns the platform name that its client reports.
fn examine(path: &Path, options: &Options, program: &Path) -> Result<(Vec<Finding>, Option<String>), String> {
    let mut findings = library::findings(path);
    if findings.iter().any(|finding| finding.level == Level::Problem) {
        return Ok((findings, None));
    }
    let (of_plugin, platform) = plugin::findings(path, options, program)?;
    findings.extend(of_plugin);
    Ok((findings, platform))
}

/// Compares the names under which plugins are registered with the platform names that their clients report.
fn registrations(facts: &Environment, platforms: &[(PathBuf, Option<String>)]) -> Vec<Finding> {
    let differs = |plugin: &Registered, platform: &str| !plugin.name.eq_ignore_ascii_case(platform);
    let mut findings = Vec::new();
    for (path, platform) in platforms {
        let Some(platform) = platform else { continue };
        for plugin in facts.registered() {
            if plugin.is_of(path) && differs(&plugin, platform) {
                findings.push(Finding::problem(
                    format!(
                        "{} is registered as {:?}, but its client reports the platform {platform:?}; JAX lowers programs for {platform:?}",
                        path.display(),
                        plugin.name
                    ),
                    format!("register the plugin as {platform:?}, or change PjrtClient::PLATFORM_NAME to {:?}", plugin.name),
                ));
            }
        }
    }
    findings
}
