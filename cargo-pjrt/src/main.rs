//! `cargo pjrt`: inspects, tests and runs PJRT plugins.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use cargo_pjrt::conform::Format;
use cargo_pjrt::process::{child, interrupt, output};
use cargo_pjrt::requirements::Profile;
use cargo_pjrt::session::{record, replay};
use cargo_pjrt::{cat, compare, conform, doctor, inspect, needs, new, numerics, run, stress, test, wheel};
use clap::{Args, Parser, Subcommand};
use pjrt_testing::host::CreateOption;

/// Inspects, tests and runs PJRT plugins
#[derive(Parser)]
#[command(name = "cargo-pjrt", bin_name = "cargo pjrt", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Create the repository of a new plugin: cargo pjrt new my-chip
    New(new::Options),
    /// Report a plugin's version, functions, extensions, attributes, and the hosts that it supports
    Inspect(Inspect),
    /// Explain why a plugin does not load, or why JAX does not choose it
    Doctor(doctor::Options),
    /// Run a StableHLO or HLO program on a plugin
    Run(run::Options),
    /// List the operations that programs need, and those that a plugin refuses: cargo pjrt needs --plugin plugin.so
    Needs(needs::Options),
    /// Check a plugin against the rules of the interface and the requirements of hosts
    Conform(Conform),
    /// Record a host's calls to a plugin: cargo pjrt record plugin.so -o log -- python program.py
    Record(record::Options),
    /// Repeat a recording on a plugin and compare the results
    Replay(replay::Options),
    /// Compare a plugin's results with known ones: each operation on each element type, and whole models
    Numerics(numerics::Options),
    /// Run a plugin's programs inside JAX, PyTorch/XLA and GoMLX, and compare the results: cargo pjrt test plugin.so
    Test(test::Options),
    /// List the differences between two plugins: checks, attributes, events, programs and recorded sessions
    Compare(compare::Options),
    /// Use a plugin from several threads, measure its memory over many rounds, and end in the middle
    Stress(stress::Options),
    /// Check StableHLO programs and print them as MLIR text: cargo pjrt cat program.mlirbc
    Cat(cat::Options),
    /// Build a Python wheel of a plugin for JAX and PyTorch/XLA, and try it
    Wheel(wheel::Options),
}

/// A part of another subcommand, in a process that a plugin may end
#[derive(Parser)]
#[command(bin_name = "cargo pjrt")]
struct ChildCli {
    #[command(subcommand)]
    verb: ChildVerb,
}

/// The subcommands that are run by others. Their parser is separate, because many processes start in a run, and the parser of all
/// subcommands takes longer to build than a short check to run.
#[derive(Subcommand)]
enum ChildVerb {
    #[command(name = "inspect-child")]
    Inspect { plugin: PathBuf, options: Vec<CreateOption> },
    #[command(name = "run-child")]
    Run(run::Options),
    #[command(name = "conform-child")]
    Conform(conform::ChildOptions),
    #[command(name = "conform-another-child")]
    ConformAnother(conform::AnotherOptions),
    #[command(name = "replay-child")]
    Replay(replay::Options),
    #[command(name = "needs-child")]
    Needs(needs::ChildOptions),
    #[command(name = "compare-child")]
    Compare(compare::ChildOptions),
    #[command(name = "stress-child")]
    Stress(stress::ChildOptions),
    #[command(name = "numerics-child")]
    Numerics(numerics::ChildOptions),
    #[command(name = "numerics-record-child")]
    NumericsRecord(numerics::Options),
}

#[derive(Args)]
struct Inspect {
    /// Path of the plugin's shared library
    plugin: PathBuf,
    /// Client option, such as num_devices=2; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option)]
    options: Vec<String>,
    /// List all functions
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Time limit of each step, in seconds
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = child::seconds())]
    timeout: Duration,
}

#[derive(Args)]
struct Conform {
    /// Path of the plugin's shared library
    #[arg(required_unless_present = "list")]
    plugin: Option<PathBuf>,
    /// Host that the plugin is for; functions that this host requires must not be missing
    #[arg(long)]
    profile: Option<Profile>,
    /// Run only the checks whose names contain this text
    #[arg(long)]
    filter: Option<String>,
    /// Run only the check with this name; can be given several times. With --filter, only those that both select
    #[arg(long = "check", value_name = "NAME")]
    checks: Vec<String>,
    /// Client option, such as num_devices=2; can be given several times
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = create_option)]
    options: Vec<String>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Text, group = "printed")]
    format: Format,
    /// Same as --format json
    #[arg(long, group = "printed")]
    json: bool,
    /// Same as --format junit
    #[arg(long, group = "printed")]
    junit: bool,
    /// Same as --format html
    #[arg(long, group = "printed")]
    html: bool,
    /// Time limit of each check, in seconds
    #[arg(long, default_value = conform::TIMEOUT, value_name = "SECONDS", value_parser = child::seconds())]
    timeout: Duration,
    /// Run many checks in each process, and start another only if it ends
    #[arg(long)]
    shared: bool,
    /// Number of processes that run checks at once; by default, two for each core, and at most 4, if the devices are the host's
    /// processor, and otherwise 1
    #[arg(long, value_name = "COUNT")]
    jobs: Option<NonZero<usize>>,
    /// Seed of the first random sequence of calls, for the checks under random/
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of random sequences of each check under random/; by default, as many as take a short time
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// List the advice in the text of a whole run, and not only its number
    #[arg(long)]
    advice: bool,
    /// List the selected checks and their rules, as text or JSON, without running them
    #[arg(long, conflicts_with_all = ["junit", "html"])]
    list: bool,
}

/// The exit status for invalid arguments, the same as clap's.
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    // Cargo runs `cargo-pjrt pjrt ...`.
    let arguments = std::env::args_os().enumerate();
    let arguments = arguments.filter(|(index, word)| *index != 1 || word != "pjrt").map(|(_, word)| word);
    let arguments: Vec<OsString> = arguments.collect();
    let is_child = arguments.get(1).is_some_and(|verb| verb.to_string_lossy().ends_with("-child"));
    let outcome = if is_child {
        let verb = ChildCli::parse_from(&arguments).verb;
        child::connect().map_err(|error| error.to_string()).and_then(|()| perform_child(verb))
    } else {
        perform(Cli::parse_from(&arguments).verb, &arguments)
    };
    let status = outcome.unwrap_or_else(|message| {
        output::print_error(&format!("error: {message}"));
        1
    });
    child::done(status);
    ExitCode::from(status)
}

/// Runs a subcommand, and returns the exit status.
fn perform(verb: Verb, arguments: &[OsString]) -> Result<u8, String> {
    let status = |is_good: bool| u8::from(!is_good);
    // The same arguments, with the hidden subcommand in place of the given one.
    let supervise = |verb: &str, plugin: PathBuf, timeout: Duration| {
        let arguments = std::iter::once(verb.into()).chain(arguments[2..].iter().cloned());
        child::supervise(&this_program()?, arguments, timeout)
            .map_err(|error| format!("{}: {error}", plugin.display()))
    };
    match verb {
        Verb::New(options) => new::new(&options).map(|()| 0),
        Verb::Inspect(options) => inspect_plugin(&options).map(status),
        Verb::Doctor(options) => diagnose(&options),
        Verb::Run(options) => supervise("run-child", options.plugin, options.timeout),
        Verb::Needs(options) => list_needs(&options),
        Verb::Conform(options) => conform_plugin(&options),
        Verb::Record(options) => {
            this_program().and_then(|program| record::record(&options, &program)).map(status)
        }
        Verb::Replay(options) => supervise("replay-child", options.plugin, options.timeout),
        Verb::Numerics(options) if options.record.is_some() => {
            supervise("numerics-record-child", options.plugin, options.timeout)
        }
        Verb::Numerics(options) => check_numerics(&options),
        Verb::Test(options) => test_in_hosts(&options),
        Verb::Compare(options) => compare_plugins(&options),
        Verb::Stress(options) => stress_plugin(&options),
        Verb::Cat(options) => cat::cat(&options),
        Verb::Wheel(options) => wheel::wheel(&options).map(|()| 0),
    }
}

/// Runs a subcommand of a child, and returns the exit status.
fn perform_child(verb: ChildVerb) -> Result<u8, String> {
    match verb {
        ChildVerb::Inspect { plugin, options } => {
            inspect::child(&plugin, &options);
            Ok(0)
        }
        ChildVerb::Run(options) => run::run(&options).map(|()| 0),
        ChildVerb::Conform(options) => {
            conform::child(&options);
            Ok(0)
        }
        ChildVerb::ConformAnother(options) => {
            conform::another_process(&options);
            Ok(0)
        }
        ChildVerb::Replay(options) => replay::replay(&options).map(|is_good| u8::from(!is_good)),
        ChildVerb::Needs(options) => {
            needs::child(&options);
            Ok(0)
        }
        ChildVerb::Compare(options) => {
            compare::child(&options);
            Ok(0)
        }
        ChildVerb::Stress(options) => {
            stress::child(&options);
            Ok(0)
        }
        ChildVerb::Numerics(options) => {
            numerics::child(&options);
            Ok(0)
        }
        ChildVerb::NumericsRecord(options) => {
            let to = options.record.clone().unwrap_or_default();
            numerics::record(&options, &to).map(|()| 0)
        }
    }
}

fn this_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| format!("cannot determine the path of this program: {error}"))
}

/// Checks that the text is a valid client option.
fn create_option(text: &str) -> Result<String, String> {
    text.parse::<CreateOption>().map(|_| text.to_owned())
}

fn inspect_plugin(options: &Inspect) -> Result<bool, String> {
    let report = inspect::inspect(&options.plugin, &this_program()?, &options.options, options.timeout)
        .map_err(|error| format!("{}: {error}", options.plugin.display()))?;
    if options.json {
        print_json(&report)?;
    } else {
        output::print(&report.text(options.all))?;
    }
    Ok(report.faults.is_empty())
}

fn print_json(value: &impl serde::Serialize) -> Result<(), String> {
    let json = serde_json::to_string_pretty(value).map_err(|error| error.to_string())?;
    output::print(&format!("{json}\n"))
}

/// Checks a plugin, or lists the checks, and returns the exit status.
fn conform_plugin(options: &Conform) -> Result<u8, String> {
    let checks = match conform::select(options.filter.as_deref(), &options.checks) {
        Ok(checks) => checks,
        Err(message) => return Ok(usage_error(&message)),
    };
    let format = match options.format {
        _ if options.json => Format::Json,
        _ if options.junit => Format::Junit,
        _ if options.html => Format::Html,
        format => format,
    };
    let Some(plugin) = options.plugin.clone().filter(|_| !options.list) else {
        return list_checks(&checks, format);
    };
    let run = conform::Options {
        plugin,
        create_options: options.options.clone(),
        profile: options.profile,
        filter: options.filter.clone(),
        only: options.checks.clone(),
        timeout: options.timeout,
        isolation: if options.shared { conform::Isolation::Shared } else { conform::Isolation::Each },
        jobs: options.jobs,
        sequences: conform::Sequences { seed: options.seed, rounds: options.rounds },
        lists_advice: options.advice,
    };
    interrupt::handle()?;
    let report = conform::run(&run, &this_program()?)?;
    output::print(&report.print(format))?;
    if report.interrupted {
        return Ok(interrupt::STATUS);
    }
    if report.checked_nothing() {
        return Err(
            "nothing was checked, because none of the selected checks applies to this plugin".to_owned()
        );
    }
    Ok(u8::from(report.failures() > 0))
}

fn list_checks(checks: &[conform::Check], format: Format) -> Result<u8, String> {
    match format {
        Format::Text => {
            let line = |check: &conform::Check| {
                format!("{:<44} {}\n{:<44} {}\n", check.name, check.rule, "", check.source)
            };
            output::print(&checks.iter().map(line).collect::<String>())?;
        }
        Format::Json => {
            let listed: Vec<conform::Listed<'_>> = checks.iter().map(conform::Listed::from).collect();
            print_json(&listed)?;
        }
        Format::Junit | Format::Html => {
            return Ok(usage_error("--list supports only --format text and --format json"));
        }
    }
    Ok(0)
}

/// Lists the needs of programs, and returns the exit status.
fn list_needs(options: &needs::Options) -> Result<u8, String> {
    interrupt::end()?;
    let report = needs::needs(options, &this_program()?)?;
    if options.json {
        print_json(&report)?;
    } else {
        output::print(&report.text())?;
    }
    Ok(u8::from(report.failures() > 0))
}

/// Examines a plugin and a Python environment, and returns the exit status.
fn diagnose(options: &doctor::Options) -> Result<u8, String> {
    let report = doctor::doctor(options, &this_program()?)?;
    if options.json {
        print_json(&report)?;
    } else {
        output::print(&report.text())?;
    }
    Ok(u8::from(report.problems() > 0))
}

/// Compares a plugin's results with known ones, and returns the exit status.
fn check_numerics(options: &numerics::Options) -> Result<u8, String> {
    interrupt::handle()?;
    let report = numerics::numerics(options, &this_program()?)?;
    if options.json {
        print_json(&report)?;
    } else {
        output::print(&report.text(options.refused))?;
    }
    if interrupt::is_requested() {
        return Ok(interrupt::STATUS);
    }
    if report.compared_nothing() {
        return Err(
            "nothing was compared, because the plugin refused every program; --refused prints its messages"
                .to_owned(),
        );
    }
    Ok(u8::from(report.failures() > 0))
}

/// Runs programs in hosts, and returns the exit status.
fn test_in_hosts(options: &test::Options) -> Result<u8, String> {
    let report = test::test(options, &this_program()?)?;
    if options.json {
        print_json(&report)?;
    } else {
        output::print(&report.text())?;
    }
    if report.failures() == 0 && report.compared_nothing() {
        return Err("nothing was compared, because no host is installed or the plugin refused every program"
            .to_owned());
    }
    Ok(u8::from(report.failures() > 0))
}

/// Compares two plugins, and returns the exit status.
fn compare_plugins(options: &compare::Options) -> Result<u8, String> {
    if let Err(message) = options.check() {
        return Ok(usage_error(&message));
    }
    interrupt::end()?;
    let report = compare::compare(options, &this_program()?)?;
    if options.json {
        print_json(&report)?;
    } else {
        output::print(&report.text())?;
    }
    Ok(u8::from(!report.differences.is_empty()))
}

/// Stresses a plugin, and returns the exit status.
fn stress_plugin(options: &stress::Options) -> Result<u8, String> {
    interrupt::handle()?;
    let report = stress::stress(options, &this_program()?)?;
    if options.json {
        print_json(&report)?;
    } else {
        output::print(&report.text())?;
    }
    if interrupt::is_requested() {
        return Ok(interrupt::STATUS);
    }
    Ok(u8::from(report.failures() > 0))
}

/// Prints an error about the arguments, and returns the exit status.
fn usage_error(message: &str) -> u8 {
    output::print_error(&format!("error: {message}"));
    USAGE_ERROR
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
        for verb in [&["run", "x.mlir", "--plugin"][..], &["replay", "log"]] {
            let taken = |more: &[&str]| is_taken(&[verb, &["plugin.so"], more].concat());
            assert!(taken(&["--option", "num_devices=2", "--timeout", "5"]) && !taken(&["--timeout", "0"]));
            assert!(!taken(&["--option", "num_devices"]) && !taken(&["--option", "=2"]));
        }
        assert!(!is_taken(&["run", "x.mlir", "--plugin", "plugin.so", "--repeat", "0"]));
        assert!(is_taken(&["replay", "log", "plugin.so", "--tolerance", "1e-6"]));
        for tolerance in ["-1", "nan", "some"] {
            assert!(!is_taken(&["replay", "log", "plugin.so", "--tolerance", tolerance]), "{tolerance}");
        }
    }

    #[test]
    fn the_help_explains_the_exit_status() {
        for verb in ["doctor", "needs", "test"] {
            let help = Cli::try_parse_from(["cargo-pjrt", verb, "--help"]).err().unwrap().to_string();
            assert!(help.contains("exit status"), "{verb}: {help}");
        }
    }

    #[test]
    fn a_report_is_printed_in_one_form() {
        let is_taken = |arguments: &[&str]| {
            Cli::try_parse_from([&["cargo-pjrt", "conform", "plugin.so"], arguments].concat()).is_ok()
        };
        assert!(is_taken(&["--json"]) && is_taken(&["--format", "junit"]) && is_taken(&["--list", "--json"]));
        assert!(!is_taken(&["--json", "--junit"]) && !is_taken(&["--format", "html", "--json"]));
        assert!(!is_taken(&["--list", "--junit"]));
    }
}
