//! `stablehlo-cat`: reads, checks and shows StableHLO programs. `stablehlo-cat --help` says how.

#![forbid(unsafe_code)]

mod arguments;
mod report;
mod statistics;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use arguments::{Action, Arguments, Output};
use pjrt_stablehlo::Bytes;

/// A program was refused.
const REFUSED: u8 = 1;
/// The command line makes no sense, or a file cannot be read or the output not written.
const TROUBLE: u8 = 2;

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args_os().skip(1)) {
        Ok(Action::Run(arguments)) => arguments,
        Ok(Action::Help) => return finish(io::stdout().write_all(arguments::HELP.as_bytes()), 0),
        Ok(Action::Version) => {
            return finish(writeln!(io::stdout(), "stablehlo-cat {}", env!("CARGO_PKG_VERSION")), 0);
        }
        Err(message) => {
            complain(&format!("error: {message}\n\n{}", arguments::USAGE));
            return ExitCode::from(TROUBLE);
        }
    };
    let mut output = io::BufWriter::new(io::stdout().lock());
    let mut code = 0;
    for file in &arguments.files {
        match show(file, arguments.output, &mut output) {
            Ok(status) => code = code.max(status),
            Err(error) => return finish(Err(error), code),
        }
    }
    finish(output.flush(), code)
}

/// Reads one file and writes what is asked for. Gives the exit code; fails when the output cannot be written.
fn show(path: &OsStr, what: Output, output: &mut impl Write) -> io::Result<u8> {
    let file = &*path.to_string_lossy();
    let program = match read(path) {
        Ok(program) => Bytes::from(program),
        Err(error) => {
            complain(&format!("error: cannot read {file}: {error}\n"));
            return Ok(TROUBLE);
        }
    };
    let module = match pjrt_stablehlo::parse(program.clone()) {
        Ok(module) => module,
        Err(error) => {
            complain(&report::report(file, &program, &error));
            return Ok(REFUSED);
        }
    };
    match what {
        Output::Nothing => {}
        Output::Text => write!(output, "{module}")?,
        Output::TextWithLocations => write!(output, "{module:#}")?,
        Output::Statistics => write!(output, "{}", statistics::Statistics::of(file, &program, &module))?,
    }
    Ok(0)
}

fn read(file: &OsStr) -> io::Result<Vec<u8>> {
    if file != arguments::STANDARD_INPUT {
        return fs::read(file);
    }
    let mut program = Vec::new();
    io::stdin().lock().read_to_end(&mut program)?;
    Ok(program)
}

/// Writes to standard error; there is nobody to tell when that fails.
fn complain(message: &str) {
    let _ = io::stderr().write_all(message.as_bytes());
}

/// The exit code after the output has been written. Whoever closes our output early has seen enough.
fn finish(written: io::Result<()>, code: u8) -> ExitCode {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("error: cannot write the output: {error}\n"));
            ExitCode::from(TROUBLE)
        }
        _ => ExitCode::from(code),
    }
}
