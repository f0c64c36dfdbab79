//! The plugin: its version, its functions, and the creation of a client.

use std::path::Path;

use super::finding::Finding;
use super::options::Options;
use crate::inspect::{self, Step};
use crate::requirements::{Profile, table};

/// The hosts that are examined. Functions that another host needs are listed by `cargo pjrt inspect`.
const HOSTS: [Profile; 3] = [Profile::Jax, Profile::TorchXla, Profile::Gomlx];

/// The number of missing functions that are listed.
const LISTED: usize = 6;

/// Loads the plugin in a child process. Returns the findings and the platform name that its client reports.
pub(super) fn findings(
    path: &Path,
    options: &Options,
    program: &Path,
) -> Result<(Vec<Finding>, Option<String>), String> {
    let report = inspect::inspect(path, program, &options.options, options.timeout)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    if let Some(error) = &report.load_error {
        // A symbol that is missing at the first call ends the process, and only the loader's output names it.
        let printed = if report.printed.is_empty() { String::new() } else { format!("; {}", report.printed) };
        return Ok((vec![load_error(&format!("{error}{printed}"))], None));
    }
    let mut findings = vec![version(report.version)];
    for fault in &report.faults {
        let fix =
            "cargo pjrt conform shows the rule and the call; cargo pjrt inspect shows the plugin's output";
        findings.push(Finding::problem(fault.clone(), fix));
    }
    if report.initialize == Step::NotReached {
        return Ok((findings, None));
    }
    for host in HOSTS {
        let missing = report.missing_for(host);
        findings.push(if missing.is_empty() {
            Finding::ok(format!("has the functions that {} needs", host.title()))
        } else {
            let more = missing.len().saturating_sub(LISTED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            Finding::warning(
                format!("{} needs {}{more}", host.title(), missing[..missing.len().min(LISTED)].join(", ")),
                format!(
                    "implement them for this host; cargo pjrt conform --profile {} checks them",
                    host.name()
                ),
            )
        });
    }
    findings.extend(client(&report));
    Ok((findings, report.platform))
}

fn load_error(error: &str) -> Finding {
    let fix = if error.contains("undefined symbol") {
        "the symbol belongs to a library that the plugin was not linked with: link it, or build the plugin against the same version"
    } else if error.contains("cannot open shared object file") {
        "install the library that is named, or add its folder to LD_LIBRARY_PATH"
    } else if error.contains("GLIBC") {
        "build on an older system, or with cargo pjrt wheel --glibc 2.N"
    } else {
        "LD_DEBUG=libs cargo pjrt inspect PLUGIN shows how the loader searches"
    };
    Finding::problem(format!("the library cannot be loaded: {error}"), fix)
}

fn version(version: (i32, i32)) -> Finding {
    let checked = table::check_major(version).and_then(|()| table::check_minor(version));
    match checked {
        Ok(()) => {
            Finding::ok(format!("version {}.{} of the C API, which all hosts accept", version.0, version.1))
        }
        Err(why) => {
            Finding::problem(why, "build the plugin with a newer header or SDK; unset PJRT_PLUGIN_API_MINOR")
        }
    }
}

fn client(report: &inspect::Report) -> Vec<Finding> {
    match &report.client {
        Step::Ok if report.devices.is_empty() => vec![Finding::problem(
            "a client can be created, but it has no devices",
            "check that the driver is loaded and the device is visible to this user; JAX refuses a platform without devices",
        )],
        Step::Ok => {
            let platform = report.platform.as_deref().unwrap_or_default();
            vec![Finding::ok(format!(
                "a client of the platform {platform:?} with {} devices",
                report.devices.len()
            ))]
        }
        Step::Error(error) => vec![Finding::problem(
            format!("no client can be created: {error}"),
            "the message is the plugin's; --option passes options as a host would",
        )],
        // Among the faults.
        Step::NotReached | Step::Crashed(_) | Step::TimedOut => Vec::new(),
    }
}
