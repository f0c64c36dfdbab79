//! Reads, checks and prints StableHLO programs.

mod diagnostic;
mod statistics;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use pjrt_stablehlo::Bytes;
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
}

/// The file name that denotes standard input.
const STANDARD_INPUT: &str = "-";

/// The exit status if a program is invalid.
const INVALID: u8 = 1;
/// The exit status if a file cannot be read.
const UNREADABLE: u8 = 2;

/// Prints the programs, and returns the exit status: 0 if all are valid, 1 if one is invalid, 2 if a file
/// cannot be read.
///
/// Errors show the line of a text, or a hex dump of another program. If standard output is closed, the
/// function returns early.
///
/// # Errors
///
/// Returns an error if standard output cannot be written, for example because the disk is full.
pub fn cat(options: &Options) -> Result<u8, String> {
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
    if options.locations {
        write!(out, "{module:#}")?;
    } else if options.statistics {
        write!(out, "{}", Statistics::of(name, &program, &module))?;
    } else if !options.check {
        write!(out, "{module}")?;
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
