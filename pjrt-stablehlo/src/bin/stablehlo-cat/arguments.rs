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
  -s, --statistics  print what the program consists of instead of its text (also: --stats)
  -c, --check       print nothing; the exit code says whether the programs are valid
  -h, --help        print this help
  -V, --version     print the version

Errors show the line and column of a text, the column in bytes from 1, or the byte of another program, from 0.

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
    pub(crate) files: Vec<OsString>,
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
            let text = argument.to_string_lossy().into_owned();
            let names: Vec<String> = match text.strip_prefix('-') {
                None | Some("") => Vec::new(),
                _ if only_files => Vec::new(),
                Some("-") => {
                    only_files = true;
                    continue;
                }
                Some(long) if long.starts_with('-') => vec![text.to_string()],
                Some(letters) => letters.chars().map(|letter| format!("-{letter}")).collect(),
            };
            if names.is_empty() {
                files.push(argument);
                continue;
            }
            for name in names {
                let wanted = match &*name {
                    "-l" | "--locations" => Output::TextWithLocations,
                    "-s" | "--statistics" | "--stats" => Output::Statistics,
                    "-c" | "--check" => Output::Nothing,
                    "-h" | "--help" => return Ok(Action::Help),
                    "-V" | "--version" => return Ok(Action::Version),
                    _ if name == text => return Err(format!("there is no option '{name}'")),
                    _ => return Err(format!("there is no option '{name}' as in '{text}'")),
                };
                if output.is_some_and(|output| output != wanted) {
                    return Err(format!("'{name}' contradicts an option before it"));
                }
                output = Some(wanted);
            }
        }
        if files.is_empty() {
            files.push(STANDARD_INPUT.into());
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
        Ok(Action::Run(Arguments { output, files: files.iter().map(OsString::from).collect() }))
    }

    #[test]
    fn options_and_files_mix() {
        assert_eq!(parse(&[]), run(Output::Text, &["-"]));
        assert_eq!(parse(&["a", "-c", "-"]), run(Output::Nothing, &["a", "-"]));
        assert_eq!(parse(&["-s", "--statistics", "--stats", "a"]), run(Output::Statistics, &["a"]));
        assert_eq!(parse(&["-ll", "a"]), run(Output::TextWithLocations, &["a"]));
        assert_eq!(parse(&["-cV"]), Ok(Action::Version));
        assert_eq!(parse(&["--", "-c"]), run(Output::Text, &["-c"]));
        assert_eq!(parse(&["x", "-h"]), Ok(Action::Help));
    }

    #[test]
    fn senseless_options_are_refused() {
        assert_eq!(parse(&["--chek"]), Err("there is no option '--chek'".to_owned()));
        assert_eq!(parse(&["-lx"]), Err("there is no option '-x' as in '-lx'".to_owned()));
        assert_eq!(parse(&["-ls"]), Err("'-s' contradicts an option before it".to_owned()));
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
