//! Reads, checks, prints and converts StableHLO programs.

mod diagnostic;
mod statistics;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pjrt_stablehlo::versions::{CURRENT_VERSION, Version};
use pjrt_stablehlo::{Bytes, Error, Module};
use statistics::Statistics;

use crate::process::output;

/// The arguments of `cargo pjrt cat`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Programs as MLIR text, bytecode or a serialized HLO module; "-" is standard input
    #[arg(default_value = STANDARD_INPUT)]
    pub files: Vec<PathBuf>,
    /// Print source locations with the text
    #[arg(long, short, group = "printed")]
    pub locations: bool,
    /// Print the numbers of operations, constants and values instead of the text
    #[arg(long, short, visible_alias = "stats", group = "printed")]
    pub statistics: bool,
    /// Print nothing; the exit status says whether the programs are valid
    #[arg(long, short, group = "printed")]
    pub check: bool,
    /// The form to write: "text", "bytecode" (StableHLO bytecode), or "portable" (a portable artifact; "portable=1.9.0"
    /// for readers of StableHLO 1.9.0)
    #[arg(long, value_name = "FORM", default_value = "text", conflicts_with_all = ["statistics", "check"])]
    pub to: Form,
    /// Write the output to this file instead of standard output
    #[arg(long, short)]
    pub output: Option<PathBuf>,
}

/// The form in which a program is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// MLIR text in the generic form.
    Text,
    /// StableHLO bytecode.
    Bytecode,
    /// A portable artifact of this version.
    Portable(Version),
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Form, String> {
        match text.split_once('=') {
            None if text == "text" => Ok(Form::Text),
            None if text == "bytecode" => Ok(Form::Bytecode),
            None if text == "portable" => Ok(Form::Portable(CURRENT_VERSION)),
            Some(("portable", version)) => {
                version.parse().map(Form::Portable).map_err(|error| format!("{error}, found '{version}'"))
            }
            _ => Err("expected text, bytecode, portable or portable=VERSION".to_owned()),
        }
    }
}

impl Form {
    /// Returns the program in this form.
    fn write(self, module: &Module, locations: bool) -> Result<Vec<u8>, Error> {
        match self {
            Form::Text if locations => Ok(format!("{module:#}").into_bytes()),
            Form::Text => Ok(module.to_string().into_bytes()),
            Form::Bytecode => pjrt_stablehlo::write_bytecode(module),
            Form::Portable(version) => pjrt_stablehlo::write_portable_artifact(module, version),
        }
    }
}

/// The file name that denotes standard input.
const STANDARD_INPUT: &str = "-";

/// The exit status if a program is invalid.
const INVALID: u8 = 1;
/// The exit status if a file cannot be read.
const UNREADABLE: u8 = 2;

/// Prints or converts the programs, and returns the exit status: 0 if all are valid, 1 if one is invalid or cannot be
/// written in the form, 2 if a file cannot be read.
///
/// Errors show the line of a text, or a hex dump of another program. If standard output is closed, the
/// function returns early.
///
/// # Errors
///
/// Returns an error if the output cannot be written, for example because the disk is full, if it would be bytecode on a
/// terminal, or if it would be the bytecode of several programs.
pub fn cat(options: &Options) -> Result<u8, String> {
    if options.to != Form::Text {
        if options.files.len() > 1 {
            let count = options.files.len();
            return Err(format!("expected one program for bytecode, found {count}: convert each separately"));
        }
        if options.output.is_none() && io::stdout().is_terminal() {
            return Err(
                "bytecode is not written to a terminal: use --output FILE or redirect the output".to_owned()
            );
        }
    }
    if let Some(path) = &options.output {
        return cat_to_file(options, path);
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut status = 0;
    let mut print_all = || -> io::Result<()> {
        for file in &options.files {
            status = status.max(print(file, options, &mut out)?);
        }
        out.flush()
    };
    match print_all() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!("standard output: {error}")),
        _ => Ok(status),
    }
}

/// Writes the programs to a file, which is created only if all of them are valid.
fn cat_to_file(options: &Options, path: &Path) -> Result<u8, String> {
    let mut contents = Vec::new();
    let mut status = 0;
    let written = options
        .files
        .iter()
        .try_for_each(|file| print(file, options, &mut contents).map(|outcome| status = status.max(outcome)));
    if status == 0 {
        written
            .and_then(|()| fs::write(path, &contents))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(status)
}

/// Prints one program, and returns the exit status, or an error if the output cannot be written.
fn print(path: &Path, options: &Options, out: &mut impl Write) -> io::Result<u8> {
    let name = &*path.to_string_lossy();
    let program = match read(path) {
        Ok(program) => Bytes::from(program),
        Err(error) => {
            output::print_error(&format!("error: cannot read {name}: {error}"));
            return Ok(UNREADABLE);
        }
    };
    let module = match pjrt_stablehlo::parse(program.clone()) {
        Ok(module) => module,
        Err(error) => {
            output::print_error(diagnostic::diagnostic(name, &program, &error).trim_end());
            return Ok(INVALID);
        }
    };
    if options.statistics {
        write!(out, "{}", Statistics::of(name, &program, &module))?;
    } else if !options.check {
        match options.to.write(&module, options.locations) {
            Ok(bytes) => out.write_all(&bytes)?,
            Err(error) => {
                output::print_error(&format!("error: {name}: {error}"));
                return Ok(INVALID);
            }
        }
    }
    Ok(0)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path.as_os_str() != OsStr::new(STANDARD_INPUT) {
        return fs::read(path);
    }
    let mut program = Vec::new();
    io::stdin().lock().read_to_end(&mut program)?;
    Ok(program)
}
