//! The command line. Parsed by hand, so that the library's users do not build a parser of command lines.

use std::ffi::OsString;

pub(crate) const USAGE: &str = "Usage: stablehlo-cat [--check | --statistics | --locations] [FILE]...\n";

pub(crate) const HELP: &str = "\
Reads StableHLO programs, checks them, and prints them as MLIR text.

Usage: stablehlo-cat [--check | --statistics | --locations] [FILE]...

Each FILE is a program in any form that the library reads, such as MLIR bytecode with VHLO, or MLIR text. Without FILE, or
where FILE is -, the program comes from standard input.

Options:
  -l, --locations   print the text with source locations
  -s, --statistics  print what the program consists of instead of its text
  -c, --check       print nothing; the exit code says whether the programs are valid
  -h, --help        print this help
  -V, --version     print the version

Exit codes: 0 when all programs are valid, 1 when one is not, 2 when a file cannot be read or the command line is wrong.
";

/// The name that stands for standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// What is printed of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    TextWithLocations,
    Statistics,
    Nothing,
}

/// What to do with which files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) output: Output,
    /// At least one.
    pub(crate) files: Vec<String>,
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Run(Arguments),
    Help,
    Version,
}

impl Arguments {
    /// The command line without the program's name; or what is wrong with it.
    pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Action, String> {
        let mut output = None;
        let mut files = Vec::new();
        let mut only_files = false;
        for argument in arguments {
            let argument = argument
                .into_string()
                .map_err(|argument| format!("argument '{}' is not UTF-8", argument.to_string_lossy()))?;
            let wanted = match &*argument {
                _ if only_files => None,
                "-l" | "--locations" => Some(Output::TextWithLocations),
                "-s" | "--statistics" => Some(Output::Statistics),
                "-c" | "--check" => Some(Output::Nothing),
                "-h" | "--help" => return Ok(Action::Help),
                "-V" | "--version" => return Ok(Action::Version),
                "--" => {
                    only_files = true;
                    continue;
                }
                option if option.starts_with('-') && option != STANDARD_INPUT => {
                    return Err(format!("there is no option '{option}'"));
                }
                _ => None,
            };
            match (wanted, output) {
                (None, _) => files.push(argument),
                (Some(wanted), Some(other)) if wanted != other => {
                    return Err(format!("'{argument}' contradicts an option before it"));
                }
                (Some(_), _) => output = wanted,
            }
        }
        if files.is_empty() {
            files.push(STANDARD_INPUT.to_owned());
        }
        Ok(Action::Run(Arguments { output: output.unwrap_or(Output::Text), files }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Action, String> {
        Arguments::parse(arguments.iter().map(OsString::from))
    }

    fn run(output: Output, files: &[&str]) -> Result<Action, String> {
        Ok(Action::Run(Arguments { output, files: files.iter().map(ToString::to_string).collect() }))
    }

    #[test]
    fn options_and_files_mix() {
        assert_eq!(parse(&[]), run(Output::Text, &["-"]));
        assert_eq!(parse(&["a", "-c", "-"]), run(Output::Nothing, &["a", "-"]));
        assert_eq!(parse(&["-s", "--statistics", "a"]), run(Output::Statistics, &["a"]));
        assert_eq!(parse(&["--", "-c"]), run(Output::Text, &["-c"]));
        assert_eq!(parse(&["x", "-h"]), Ok(Action::Help));
    }

    #[test]
    fn senseless_options_are_refused() {
        assert_eq!(parse(&["--chek"]), Err("there is no option '--chek'".to_owned()));
        assert_eq!(parse(&["-c", "-l"]), Err("'-l' contradicts an option before it".to_owned()));
    }

    #[test]
    fn help_has_every_option() {
        for option in ["--locations", "--statistics", "--check", "--help", "--version"] {
            assert!(HELP.contains(option));
        }
        assert!(HELP.contains(USAGE.trim_end()));
    }
}
