//! `cargo pjrt`: inspects, tests and runs PJRT plugins.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use cargo_pjrt::host::CreateOption;
use cargo_pjrt::profile::Profile;
use cargo_pjrt::{conform, inspect, record, replay, run};
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

/// A day.
const MOST_SECONDS: u64 = 24 * 60 * 60;

/// Inspects, tests and runs PJRT plugins
#[derive(Parser)]
#[command(name = "cargo-pjrt", bin_name = "cargo pjrt", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Say what a plugin is: version, functions, extensions, attributes, which hosts it suits
    Inspect(Inspect),
    /// Run a StableHLO or HLO program through a plugin
    Run(run::Options),
    /// Check a plugin against the rules of the interface, and what hosts need of it
    Conform(Conform),
    /// Write down what a host does with a plugin: cargo pjrt record plugin.so -o log -- python program.py
    Record(record::Options),
    /// Do what a log says with a plugin, and compare the results
    Replay(replay::Options),
    #[command(hide = true)]
    InspectChild { plugin: PathBuf, options: Vec<String> },
    #[command(hide = true)]
    ConformChild {
        #[arg(long)]
        option: Vec<String>,
        plugin: PathBuf,
        checks: Vec<String>,
    },
}

#[derive(Args)]
struct Inspect {
    /// The plugin, a shared library
    plugin: PathBuf,
    /// An option for the client, such as num_devices=2; may be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option)]
    options: Vec<String>,
    /// List every function
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// How many seconds a step of the plugin may take
    #[arg(long, default_value_t = 30, value_parser = value_parser!(u64).range(1..=MOST_SECONDS))]
    timeout: u64,
}

#[derive(Args)]
struct Conform {
    /// The plugin, a shared library
    #[arg(required_unless_present = "list")]
    plugin: Option<PathBuf>,
    /// The host that the plugin is for: what it cannot do without must be there
    #[arg(long)]
    profile: Option<Profile>,
    /// Only checks whose names contain this
    #[arg(long)]
    filter: Option<String>,
    /// Only the check with this name; may be given several times
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// An option for the client, such as num_devices=2; may be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option)]
    options: Vec<String>,
    /// How the report is printed
    #[arg(long, value_enum, default_value_t = FormatName::Text)]
    format: FormatName,
    /// The same as --format json
    #[arg(long)]
    json: bool,
    /// The same as --format junit
    #[arg(long)]
    junit: bool,
    /// The same as --format html
    #[arg(long)]
    html: bool,
    /// How many seconds a check may take
    #[arg(long, default_value_t = 60, value_parser = value_parser!(u64).range(1..=MOST_SECONDS))]
    timeout: u64,
    /// Run all checks in one process, as long as it lives
    #[arg(long)]
    shared: bool,
    /// List the checks and their rules, and run none
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatName {
    Text,
    Json,
    Junit,
    Html,
}

fn main() -> ExitCode {
    // Cargo calls `cargo-pjrt pjrt ...`.
    let arguments = std::env::args_os().enumerate();
    let arguments = arguments.filter(|(index, word)| *index != 1 || word != "pjrt").map(|(_, word)| word);
    let outcome = match Cli::parse_from(arguments).verb {
        Verb::Inspect(options) => inspect_plugin(&options),
        Verb::Run(options) => run::run(&options).map(|()| true),
        Verb::Conform(options) => conform_plugin(&options),
        Verb::Record(options) => this_program().and_then(|program| record::record(&options, &program)),
        Verb::Replay(options) => replay::replay(&options),
        Verb::InspectChild { plugin, options } => {
            inspect::child(&plugin, &options);
            Ok(true)
        }
        Verb::ConformChild { plugin, option, checks } => {
            conform::child(&plugin, &option, &checks);
            Ok(true)
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn this_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("this program does not know where it is: {error}"))
}

/// An option as it is written, if it is one.
fn create_option(text: &str) -> Result<String, String> {
    let option = CreateOption::parse(text).map(|_| text.to_owned());
    option.ok_or_else(|| "it should be name=value".to_owned())
}

fn inspect_plugin(options: &Inspect) -> Result<bool, String> {
    let timeout = Duration::from_secs(options.timeout);
    let report = inspect::inspect(&options.plugin, &this_program()?, &options.options, timeout)
        .map_err(|error| format!("{}: {error}", options.plugin.display()))?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?);
    } else {
        print!("{}", report.text(options.all));
    }
    Ok(report.load_error.is_none())
}

fn conform_plugin(options: &Conform) -> Result<bool, String> {
    if options.list {
        for check in conform::checks() {
            println!("{:<44} {}", check.name, check.rule);
        }
        return Ok(true);
    }
    if let Some(unknown) =
        options.checks.iter().find(|name| conform::checks().iter().all(|check| check.name != **name))
    {
        return Err(format!("there is no check {unknown}; --list lists all of them"));
    }
    let format = match options.format {
        _ if options.json => conform::Format::Json,
        _ if options.junit => conform::Format::Junit,
        _ if options.html => conform::Format::Html,
        FormatName::Text => conform::Format::Text,
        FormatName::Json => conform::Format::Json,
        FormatName::Junit => conform::Format::Junit,
        FormatName::Html => conform::Format::Html,
    };
    let run = conform::Options {
        plugin: options.plugin.clone().unwrap_or_default(),
        create_options: options.options.clone(),
        profile: options.profile,
        filter: options.filter.clone(),
        only: options.checks.clone(),
        timeout: Duration::from_secs(options.timeout),
        isolation: if options.shared { conform::Isolation::Shared } else { conform::Isolation::Each },
    };
    let report = conform::run(&run, &this_program()?, |_| {}).map_err(|error| error.to_string())?;
    if let (Some(filter), true) = (&options.filter, report.rows.is_empty()) {
        return Err(format!("no check has {filter:?} in its name; --list lists all of them"));
    }
    print!("{}", report.print(format));
    Ok(report.failures() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_an_option_or_a_timeout_is_refused() {
        let is_taken =
            |arguments: &[&str]| Cli::try_parse_from([&["cargo-pjrt"], arguments].concat()).is_ok();
        for verb in ["inspect", "conform"] {
            assert!(is_taken(&[verb, "plugin.so", "--option", "num_devices=2", "--timeout", "5"]));
            assert!(!is_taken(&[verb, "plugin.so", "--option", "num_devices"]));
            assert!(!is_taken(&[verb, "plugin.so", "--timeout", "0"]));
            assert!(!is_taken(&[verb, "plugin.so", "--timeout", "18446744073709551615"]));
        }
    }
}
