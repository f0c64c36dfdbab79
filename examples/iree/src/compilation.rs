//! From the bytes of a program to the code of IREE.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use iree_runtime::{CompileError, Program, Severity};
use pjrt_plugin::stablehlo::{LOCATION_PAYLOAD, OP_PAYLOAD};
use pjrt_plugin::{Error, ErrorCode, Result};
use pjrt_stablehlo::passes::{
    carried_loop_values, clamp_gather_starts, decompose, scatters_within_bounds, split_elementwise,
    stable_sorts, without_annotations,
};
use pjrt_stablehlo::{Module, write_bytecode};

use crate::options::Settings;
use crate::{library, operations};

/// The flags of all compilations. Without the second one, IREE computes with f32 in place of f64.
const FLAGS: &[&str] = &["--iree-input-type=stablehlo", "--iree-input-demote-f64-to-f32=false"];

/// The number of arrays that one kernel may read. IREE has 32 bindings for a kernel's arguments and results together.
const MAX_ARRAYS: usize = 24;

/// The time between two reports of a compilation.
const PROGRESS: Duration = Duration::from_secs(20);

/// Compiles a program.
///
/// # Errors
///
/// Returns UNIMPLEMENTED with the operation and its location in the user's program if IREE does not compile it,
/// INVALID_ARGUMENT if a flag is invalid, or an error if there is no compiler.
pub(crate) fn compile(module: &Module, settings: &Settings, flags: &[String]) -> Result<Vec<u8>> {
    let module = without_annotations(&decompose(module, &operations::supported())?);
    // IREE loads and stores what gathers and scatters name without a check, its sorts exchange equal elements, and it removes
    // values from loops on one side only.
    let module = scatters_within_bounds(&clamp_gather_starts(&module)?)?;
    let module = carried_loop_values(&stable_sorts(&module)?)?;
    let module = split_elementwise(&module, MAX_ARRAYS)?;
    // The compiler reads bytecode faster than text, and it contains all locations, which diagnostics need.
    let program = write_bytecode(&module)?;
    let flags: Vec<String> = (FLAGS.iter().copied())
        .chain(Program::COMPILER_FLAGS)
        .chain(settings.target.flags.iter().copied())
        .map(str::to_owned)
        .chain(settings.compiler_flags.iter().chain(flags).cloned())
        .collect();
    let name = module.name.as_deref().unwrap_or("main");
    let compiler = library::compiler(&settings.compiler)?;
    let compiled =
        on_own_thread(name, || compiler.compile(&flags, name, &program))?.map_err(|error| convert(&error));
    if !settings.dump.is_empty() {
        dump(settings.dump.as_ref(), &module, &flags, compiled.as_deref())?;
    }
    compiled
}

/// Runs the compiler, and reports a long compilation.
fn on_own_thread<T: Send>(name: &str, run: impl FnOnce() -> T + Send) -> Result<T> {
    let start = Instant::now();
    let (ends, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("iree-compiler".to_owned());
        let compile = || {
            // The channel is closed when the function returns or panics.
            let _ends = ends;
            run()
        };
        let thread = builder.spawn_scoped(scope, compile).map_err(|error| {
            Error::resource_exhausted(format!("cannot create the thread of the compiler: {error}"))
        })?;
        while ended.recv_timeout(PROGRESS) == Err(mpsc::RecvTimeoutError::Timeout) {
            let seconds = start.elapsed().as_secs();
            // A host without a standard error stream misses the line.
            let _ = writeln!(io::stderr(), "iree: compiling {name} takes {seconds} s so far");
        }
        thread.join().map_err(|_| Error::internal("the thread of the compiler panicked"))
    })
}

/// Converts the diagnostics of the compiler. A program that it cannot compile is valid, because `pjrt-stablehlo` has verified it.
fn convert(error: &CompileError) -> Error {
    let errors = error.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let first = errors.map(|diagnostic| &*diagnostic.text).next().unwrap_or("no message");
    // The lines after the first one repeat the operation.
    let text = first.lines().next().unwrap_or(first);
    if let Some(flags) = first.strip_prefix("Error parsing flags:") {
        return Error::invalid_argument(format!("IREE's compiler refuses the flags: {}", flags.trim()))
            .with_hint("the option compiler_flags takes the flags of iree-compile");
    }
    let (location, text) = located(text);
    let mut converted = Error::new(ErrorCode::Unimplemented, format!("IREE's compiler: {text}"));
    if let Some(location) = location {
        converted = Error::new(ErrorCode::Unimplemented, format!("IREE's compiler: {text}, at {location}"))
            .with_payload(LOCATION_PAYLOAD, location);
    }
    match quoted(text) {
        Some(op) => converted.with_payload(OP_PAYLOAD, op),
        None => converted,
    }
}

/// Divides a message into the location of the program, such as `model.py:3:7`, and the rest.
fn located(text: &str) -> (Option<&str>, &str) {
    let split = text.find(": ").map(|end| (&text[..end], &text[end + 2..]));
    match split {
        Some((location, rest))
            if location.ends_with(|last: char| last.is_ascii_digit()) && location.contains(':') =>
        {
            (Some(location).filter(|location| !location.starts_with("<unknown>")), rest)
        }
        _ => (None, text),
    }
}

/// Returns the first name in quotation marks that is one of an operation.
fn quoted(text: &str) -> Option<&str> {
    text.split('\'').skip(1).step_by(2).find(|name| name.contains('.') && !name.contains(' '))
}

/// Writes the files of a compilation.
fn dump(folder: &Path, module: &Module, flags: &[String], code: Result<&[u8], &Error>) -> Result<()> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{number:04}-{}", module.name.as_deref().unwrap_or("main").replace('/', "_"));
    let write = |extension: &str, bytes: &[u8]| fs::write(folder.join(format!("{name}.{extension}")), bytes);
    let write_all = || {
        fs::create_dir_all(folder)?;
        write("mlir", format!("{module:#}").as_bytes())?;
        write("flags", flags.join("\n").as_bytes())?;
        match code {
            Ok(code) => write("vmfb", code),
            Err(error) => write("error", error.to_string().as_bytes()),
        }
    };
    write_all().map_err(|error| {
        Error::invalid_argument(format!(
            "cannot write the files of the option dump={}: {error}",
            folder.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iree_runtime::Diagnostic;

    fn error(text: &str) -> Error {
        convert(&CompileError {
            diagnostics: vec![Diagnostic { severity: Severity::Error, text: text.to_owned() }],
        })
    }

    fn payload<'e>(error: &'e Error, key: &str) -> Option<&'e [u8]> {
        error.payloads().iter().find(|(name, _)| name == key).map(|(_, value)| &value[..])
    }

    #[test]
    fn a_diagnostic_becomes_an_error_with_operation_and_location() {
        let error = error(
            "model.py:3:7: failed to legalize operation 'stablehlo.fft' that was explicitly marked illegal\n\nnote",
        );
        assert_eq!(error.code(), ErrorCode::Unimplemented);
        assert_eq!(payload(&error, OP_PAYLOAD), Some(&b"stablehlo.fft"[..]));
        assert_eq!(payload(&error, LOCATION_PAYLOAD), Some(&b"model.py:3:7"[..]));
        assert!(error.message().ends_with("illegal, at model.py:3:7"), "{error}");
    }

    #[test]
    fn a_diagnostic_without_a_location_has_no_payload() {
        let error = error("<unknown>:0: 'linalg.generic' op is too large");
        assert_eq!(payload(&error, OP_PAYLOAD), Some(&b"linalg.generic"[..]));
        assert_eq!(payload(&error, LOCATION_PAYLOAD), None);
        assert!(error.message().ends_with("op is too large"), "{error}");
    }

    #[test]
    fn a_wrong_flag_is_an_invalid_argument() {
        let error = error("Error parsing flags:\n  option not found: x");
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert!(error.message().ends_with("option not found: x"), "{error}");
    }
}
