//! From the bytes of a program to the code of IREE.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use iree_runtime::{CodeTarget, CompileError, Program};
use pjrt_plugin::stablehlo::{LOCATION_PAYLOAD, OP_PAYLOAD};
use pjrt_plugin::{Error, ErrorCode, Result};
use pjrt_stablehlo::passes::{
    carried_loop_values, clamp_gather_starts, decompose, insert_barriers, scatters_within_bounds,
    separate_widening, split_elementwise, split_reductions, stable_sorts, without_annotations,
};
use pjrt_stablehlo::{Module, write_bytecode};

use crate::options::Settings;
use crate::{library, operations};

/// The flags of all compilations. Without the second one, IREE computes with f32 in place of f64.
const FLAGS: &[&str] = &["--iree-input-type=stablehlo", "--iree-input-demote-f64-to-f32=false"];

/// The number of arrays that one kernel may read. IREE has 32 bindings for a kernel's arguments and results together.
const MAX_ARRAYS: usize = 24;

/// The number of elements that one reduction may combine. IREE adds one after another, and on Vulkan ignores those after 65,535.
const MAX_TERMS: usize = 4096;

/// The time between two reports of a compilation.
const PROGRESS: Duration = Duration::from_secs(20);

/// Compiles a program.
///
/// # Errors
///
/// Returns UNIMPLEMENTED with the operation and its location in the user's program if IREE does not compile it,
/// INVALID_ARGUMENT if a flag is invalid, or an error if there is no compiler.
pub(crate) fn compile(module: &Module, settings: &Settings, flags: &[String]) -> Result<Vec<u8>> {
    let of_user = [&*settings.compiler_flags, flags].concat();
    let supported = operations::supported(settings.code.vulkan(&of_user));
    let module = without_annotations(&decompose(module, &supported)?);
    // IREE loads and stores what gathers and scatters name without a check, its sorts exchange equal elements, and it removes
    // values from loops on one side only.
    let module = scatters_within_bounds(&clamp_gather_starts(&module)?)?;
    let module = carried_loop_values(&stable_sorts(&module)?)?;
    let module = split_reductions(&insert_barriers(&module, operations::needs_barrier)?, MAX_TERMS)?;
    let mut module = split_elementwise(&module, MAX_ARRAYS)?;
    if matches!(settings.code, CodeTarget::Vulkan(_)) {
        // Invocations of a workgroup do not wait for what others have widened.
        module = separate_widening(&module)?;
    }
    // The compiler reads bytecode faster than text, and it contains all locations, which diagnostics need.
    let program = write_bytecode(&module)?;
    let flags = FLAGS.iter().copied().chain(Program::COMPILER_FLAGS).map(str::to_owned);
    let flags: Vec<String> = flags.chain(settings.code.compiler_flags(&of_user)).chain(of_user).collect();
    let name = module.name.as_deref().unwrap_or("main");
    let compiler = library::compiler(&settings.compiler)?;
    let compiled = with_progress(name, || compiler.compile(&flags, name, &program)).map_err(convert);
    let dumped = dump(&settings.dump, &module, &flags, compiled.as_deref());
    compiled.and_then(|code| dumped.map(|()| code))
}

/// Runs the compiler, and reports a long compilation.
fn with_progress<T>(name: &str, run: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    thread::scope(|scope| {
        // The channel is closed when the function returns or panics.
        let (_ends, ended) = mpsc::channel::<()>();
        let report = move || {
            while ended.recv_timeout(PROGRESS) == Err(mpsc::RecvTimeoutError::Timeout) {
                let seconds = start.elapsed().as_secs();
                // A host without a standard error stream misses the line.
                let _ = writeln!(io::stderr(), "iree: compiling {name} takes {seconds} s so far");
            }
        };
        // Without the thread, there are no reports.
        let _ = thread::Builder::new().name("iree-progress".to_owned()).spawn_scoped(scope, report);
        run()
    })
}

/// Converts the error of the compiler. A program that it cannot compile is valid, because `pjrt-stablehlo` has verified it.
fn convert(error: CompileError) -> Error {
    let code = ErrorCode::from_number(error.code as u32);
    let (operation, (location, text)) = (error.operation(), error.located());
    if code == ErrorCode::InvalidArgument {
        return Error::new(code, format!("IREE's compiler refuses the flags: {text}"))
            .with_hint("the option compiler_flags takes the flags of iree-compile");
    }
    let at = location.map(|location| format!(", at {location}")).unwrap_or_default();
    let error = Error::new(code, format!("IREE's compiler: {text}{at}"));
    let payloads = [(LOCATION_PAYLOAD, location), (OP_PAYLOAD, operation)];
    let payloads = payloads.into_iter().filter_map(|(key, value)| Some((key, value?)));
    payloads.fold(error, |error, (key, value)| error.with_payload(key, value))
}

/// Writes the files of a compilation, if there is a folder for them.
fn dump(folder: &str, module: &Module, flags: &[String], code: Result<&[u8], &Error>) -> Result<()> {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    if folder.is_empty() {
        return Ok(());
    }
    let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let name = module.name.as_deref().unwrap_or("main").replace('/', "_");
    let name = format!("{process}-{number:04}-{name}");
    let path = Path::new(folder);
    let write = |extension: &str, bytes: &[u8]| fs::write(path.join(format!("{name}.{extension}")), bytes);
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
        Error::invalid_argument(format!("cannot write the files of the option dump={folder}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iree_runtime::{Code, Diagnostic, Severity};

    fn error(code: Code, text: &str) -> Error {
        let diagnostic = Diagnostic { severity: Severity::Error, text: text.to_owned() };
        convert(CompileError { code, diagnostics: vec![diagnostic] })
    }

    fn payload<'e>(error: &'e Error, key: &str) -> Option<&'e [u8]> {
        error.payloads().iter().find(|(name, _)| name == key).map(|(_, value)| &value[..])
    }

    #[test]
    fn a_diagnostic_becomes_an_error_with_operation_and_the_location_that_it_has() {
        let error =
            error(Code::Unimplemented, "model.py:3:7: failed to legalize operation 'stablehlo.fft'\n\nnote");
        assert_eq!(error.code(), ErrorCode::Unimplemented);
        assert_eq!(payload(&error, OP_PAYLOAD), Some(&b"stablehlo.fft"[..]));
        assert_eq!(payload(&error, LOCATION_PAYLOAD), Some(&b"model.py:3:7"[..]));
        assert!(error.message().ends_with("'stablehlo.fft', at model.py:3:7"), "{error}");
        let error = self::error(Code::Unimplemented, "<unknown>:0: 'linalg.generic' op is too large");
        assert_eq!(payload(&error, OP_PAYLOAD), Some(&b"linalg.generic"[..]));
        assert_eq!(payload(&error, LOCATION_PAYLOAD), None);
        assert!(error.message().ends_with("op is too large"), "{error}");
    }

    #[test]
    fn errors_about_flags_and_of_the_system_keep_their_codes() {
        let of_flags = error(Code::InvalidArgument, "Unknown command line argument '--x'");
        assert_eq!(of_flags.code(), ErrorCode::InvalidArgument);
        assert!(of_flags.message().ends_with("refuses the flags: Unknown command line argument '--x'"));
        assert_eq!(error(Code::ResourceExhausted, "no space").code(), ErrorCode::ResourceExhausted);
    }
}
