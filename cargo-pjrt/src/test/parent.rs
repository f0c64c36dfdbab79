//! Runs the programs in all hosts.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::host::Host;
use super::installation::{self, Installation};
use super::options::Options;
use super::programs::PROGRAMS;
use super::report::{HostRow, Outcome, Report};
use super::session::{self, Request};
use crate::inspect::{self, Step};
use crate::process::{Scratch, output};
use crate::{needs, wheel};

/// Runs a plugin's programs in hosts. `program` is the path of this program, which must have the hidden subcommands `inspect-child`
/// and `needs-child`.
///
/// # Errors
///
/// Returns an error if the plugin cannot be built, or if no client can be created, if a host that was asked for is not installed,
/// if its installation fails, or if a process cannot be started.
pub fn test(options: &Options, program: &Path) -> Result<Report, String> {
    let plugin = match &options.plugin {
        Some(plugin) => plugin.clone(),
        None => wheel::build_current("dev")?,
    };
    let plugin = plugin.canonicalize().map_err(|error| format!("{}: {error}", plugin.display()))?;
    let platform = platform(&plugin, options, program)?;
    let is_chosen =
        |name: &str| options.programs.is_empty() || options.programs.iter().any(|chosen| chosen == name);
    let names = PROGRAMS.iter().map(|program| program.name).filter(|name| is_chosen(name));
    let request = Request {
        library: plugin.clone(),
        platform: platform.clone(),
        options: session::json_options(&options.options)?,
        programs: names.map(str::to_owned).collect(),
        tolerance: options.tolerance,
    };
    let scratch = Scratch::new("test")?;
    let plugins = scratch.folder("plugins")?;
    // The name by which go-xla finds plugins.
    std::os::unix::fs::symlink(&plugin, plugins.join(format!("pjrt_c_api_{platform}_plugin.so")))
        .map_err(|error| format!("{}: {error}", plugins.display()))?;
    let hosts = if options.hosts.is_empty() { Host::ALL.to_vec() } else { options.hosts.clone() };
    let mut rows = Vec::new();
    for host in hosts {
        let row = match installation::find(host, options, &scratch)? {
            Installation::Missing(what, fix) if options.hosts.contains(&host) => {
                return Err(format!("{}: {what}\nto do: {fix}", host.title()));
            }
            Installation::Missing(what, fix) => missing(host, what, fix),
            Installation::Found(program, arguments) => {
                output::print_error(&format!(
                    "running {} programs in {}",
                    request.programs.len(),
                    host.title()
                ));
                session::run(host, (&program, &arguments), &plugins, &request, options.timeout)?
            }
        };
        rows.push(row);
    }
    require_recorded(&mut rows, &plugin, options, program)?;
    Ok(Report { plugin, platform, hosts: rows })
}

fn missing(host: Host, what: String, fix: String) -> HostRow {
    HostRow { host, version: None, missing: Some((what, fix)), failure: None, programs: Vec::new() }
}

/// Returns the platform name that the plugin's client reports.
fn platform(plugin: &Path, options: &Options, program: &Path) -> Result<String, String> {
    let located = |why: &str| format!("{}: {why}", plugin.display());
    let report = inspect::inspect(plugin, program, &options.options, options.timeout)
        .map_err(|error| located(&error.to_string()))?;
    let fault = report.load_error.as_ref().or_else(|| report.faults.first());
    if let Some(fault) = fault {
        return Err(located(&format!(
            "{fault} (hint: cargo pjrt doctor explains why a plugin does not load)"
        )));
    }
    match (report.platform, &report.client) {
        (Some(platform), _) => Ok(platform),
        (None, Step::Error(error)) => Err(located(&format!("no client can be created: {error}"))),
        (None, _) => Err(located("the client reports no platform name")),
    }
}

/// Makes a refusal in JAX a failure if the plugin compiles the recorded form of the program, which JAX made.
fn require_recorded(
    rows: &mut [HostRow],
    plugin: &Path,
    options: &Options,
    program: &Path,
) -> Result<(), String> {
    let refused =
        |row: &HostRow| row.programs.iter().any(|program| matches!(program.outcome, Outcome::Refused(_)));
    let Some(row) = rows.iter_mut().find(|row| row.host == Host::Jax && refused(row)) else { return Ok(()) };
    let recorded: Vec<(&str, &str)> = PROGRAMS.iter().map(|program| program.recorded).collect();
    let plugin: PathBuf = plugin.to_owned();
    let compiled = needs::accepted(&recorded, &plugin, &options.options, program, options.timeout)?;
    let compiled: HashSet<(&str, &str)> = compiled.into_iter().collect();
    for of_row in &mut row.programs {
        let Outcome::Refused(why) = &of_row.outcome else { continue };
        let known = PROGRAMS.iter().find(|program| program.name == of_row.name);
        if let Some(known) = known.filter(|known| compiled.contains(&known.recorded)) {
            let (tier, name) = known.recorded;
            of_row.outcome = Outcome::Failed(format!(
                "refused in JAX, but the plugin compiles its recorded form, {name} of the tier {tier}: {why}"
            ));
        }
    }
    Ok(())
}
