//! The compiler, which runs in a process of its own: an error in it that ends its process does not end that of the user.

use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fmt, fs, io};

use crate::status::{Code, Error, Result};

/// The program of the compiler.
const PROGRAM: &str = "iree-compile";

/// The script that starts the compiler with a stack of this many KiB, because it recurses along the operations of a program.
/// Where the system has `setpriv` of util-linux, the compiler ends when this process ends, also if it is killed: it would go on
/// for minutes.
const WITH_STACK: &str = "ulimit -s 262144 2>/dev/null
if setpriv --pdeathsig KILL true 2>/dev/null; then exec setpriv --pdeathsig KILL \"$0\" \"$@\"; fi
exec \"$0\" \"$@\"";

/// The line of the version begins with this text.
const VERSION: &str = "IREE compiler version ";

/// The compiler.
pub struct Compiler {
    program: PathBuf,
    revision: String,
}

/// The error of a compilation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
    /// UNIMPLEMENTED if the compiler does not compile the program, INVALID_ARGUMENT if it refuses the flags, RESOURCE_EXHAUSTED
    /// if it lacks memory or storage, FAILED_PRECONDITION if its files cannot be written, CANCELLED if a user ended its process,
    /// or INTERNAL if it cannot be started.
    pub code: Code,
    /// The messages, in the order in which the compiler reported them.
    pub diagnostics: Vec<Diagnostic>,
}

/// A message of the compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The text, which begins with the location in the program that the message concerns, if it has one.
    pub text: String,
}

/// The severity of a [`Diagnostic`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Details of the message before it.
    Note,
    /// A warning.
    Warning,
    /// An error.
    Error,
    /// A remark.
    Remark,
}

impl CompileError {
    /// Creates the error of a compiler that cannot be run, or whose files cannot be written.
    fn of_io(what: &str, error: &io::Error) -> Self {
        use io::ErrorKind::{
            NotADirectory, NotFound, OutOfMemory, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem,
            StorageFull, WouldBlock,
        };
        let code = match error.kind() {
            // The system reports too many processes as an operation that would block.
            OutOfMemory | QuotaExceeded | StorageFull | WouldBlock => Code::ResourceExhausted,
            NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem => Code::FailedPrecondition,
            _ => Code::Internal,
        };
        let text = format!("cannot {what}: {error}");
        Self { code, diagnostics: vec![Diagnostic { severity: Severity::Error, text }] }
    }

    /// Returns the first line of the first error. Those after it repeat the operation.
    fn first_line(&self) -> &str {
        let first = self.diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error);
        first.and_then(|first| first.text.lines().next()).unwrap_or("the compiler failed without a message")
    }

    /// Returns the location in the program that the first error concerns, such as `model.py:3:7`, and its message.
    pub fn located(&self) -> (Option<&str>, &str) {
        let text = self.first_line();
        let is_location =
            |text: &str| text.ends_with(|last: char| last.is_ascii_digit()) && text.contains(':');
        match text.split_once(": ").filter(|(location, _)| is_location(location)) {
            Some((location, rest)) => {
                (Some(location).filter(|location| !location.starts_with("<unknown>")), rest)
            }
            None => (None, text),
        }
    }

    /// Returns the name of the operation that the first error concerns, if it has one in quotation marks.
    pub fn operation(&self) -> Option<&str> {
        let mut names = self.first_line().split('\'').skip(1).step_by(2);
        names.find(|name| name.contains('.') && !name.contains(' '))
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error);
        f.write_str(first.map_or("the compiler failed without a message", |first| &first.text))
    }
}

impl std::error::Error for CompileError {}

impl Compiler {
    /// Finds the compiler in the folder of a file, such as `libIREECompiler.so` of the Python package `iree-base-compiler`. If
    /// the path has no folder, the program `iree-compile` is searched in `PATH`.
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if there is no compiler, or INCOMPATIBLE if the program is another one.
    pub fn load(path: &Path) -> Result<Self> {
        let program = path.with_file_name(PROGRAM);
        let shown = program.display();
        let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|error| Error::new(Code::NotFound, format!("{shown}: {error}")))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().find_map(|line| line.trim_start().strip_prefix(VERSION));
        let revision = version.and_then(|version| version.split_whitespace().next()).ok_or_else(|| {
            let (status, printed) = (output.status, String::from_utf8_lossy(&output.stderr));
            let end = format!("it ended with {status} {}", printed.lines().next().unwrap_or_default());
            let message =
                format!("{shown} does not print the version of IREE's compiler: {}", end.trim_end());
            Error::new(Code::Incompatible, message)
        })?;
        Ok(Self { revision: revision.to_owned(), program })
    }

    /// Returns the version of the compiler, such as `3.13.0`, as its builders named it.
    #[must_use]
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// Compiles a program, which is the text or the bytecode of a module in MLIR, and returns its code. `name` is the name of the
    /// program in diagnostics, without the ending `.mlir`.
    ///
    /// # Errors
    ///
    /// Returns the diagnostics of the compiler, or one that tells how its process ended.
    pub fn compile(&self, flags: &[String], name: &str, program: &[u8]) -> Result<Vec<u8>, CompileError> {
        let in_files = |error: io::Error| {
            let folder = env::temp_dir();
            let what =
                format!("write the compiler's files in {} (TMPDIR selects the folder)", folder.display());
            CompileError::of_io(&what, &error)
        };
        let files = Files::new().map_err(in_files)?;
        // Files, because a pipe that the compiler closes early is a signal that can end this process.
        let simple = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
        let source = files.0.join(format!("{}.mlir", name.chars().take(100).map(simple).collect::<String>()));
        let code = files.0.join("code.vmfb");
        fs::write(&source, program).map_err(in_files)?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WITH_STACK]).arg(&self.program).arg(&source).arg("-o").arg(&code).args(flags);
        let output = match command.stdin(Stdio::null()).output() {
            // Processes that ignore SIGCHLD, or wait for all of their children, learn from the file how the compiler ended.
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                let what = "read the code; this process ignores SIGCHLD or waits for all children, so why it is missing is unknown";
                return fs::read(&code).map_err(|error| CompileError::of_io(what, &error));
            }
            output => output.map_err(|error| CompileError::of_io("run the compiler", &error))?,
        };
        if output.status.success() {
            return fs::read(&code).map_err(|error| {
                let text = format!("the compiler wrote no code with the flags {flags:?}: {error}");
                let diagnostics = vec![Diagnostic { severity: Severity::Error, text }];
                CompileError { code: Code::InvalidArgument, diagnostics }
            });
        }
        Err(failure(&output, name, &files.0))
    }
}

/// A folder for the files of a compilation, which is removed when this is dropped.
struct Files(PathBuf);

impl Files {
    fn new() -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let folder = env::temp_dir().join(format!("iree-{}-{number}", std::process::id()));
            // Programs are nobody else's business.
            match fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Self(folder)),
                // A process with the same number was killed.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the error of a process that has ended while it compiled a program with this name: what it wrote, divided into
/// messages. Lines without a severity continue a message.
fn failure(output: &Output, name: &str, folder: &Path) -> CompileError {
    let text = String::from_utf8_lossy(&output.stderr);
    let text = text.replace(&format!("{}/", folder.display()), "");
    let mut code = Code::Unimplemented;
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for line in text.lines() {
        if let Some(text) = about_flags(line) {
            code = Code::InvalidArgument;
            diagnostics.push(Diagnostic { severity: Severity::Error, text: text.to_owned() });
            continue;
        }
        match (started(line), diagnostics.last_mut()) {
            (Some(diagnostic), _) => diagnostics.push(diagnostic),
            (None, Some(last)) => last.text = format!("{}\n{line}", last.text),
            (None, None) => {}
        }
    }
    if diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error) {
        let text =
            format!("the process of the compiler ended with {} while it compiled {name}", output.status);
        diagnostics.push(Diagnostic { severity: Severity::Error, text });
    }
    match output.status.signal() {
        // The system ends processes that need too much memory.
        Some(libc::SIGKILL) => code = Code::ResourceExhausted,
        Some(libc::SIGHUP | libc::SIGINT | libc::SIGTERM) => code = Code::Cancelled,
        _ => {}
    }
    CompileError { code, diagnostics }
}

/// Returns the message about the flags that a line contains.
fn about_flags(line: &str) -> Option<&str> {
    let text = line.strip_prefix(PROGRAM)?.strip_prefix(": ")?;
    (text.contains("argument") || text.contains("option")).then_some(text)
}

/// Returns the message that a line starts.
fn started(line: &str) -> Option<Diagnostic> {
    let severities = [
        (": error: ", Severity::Error),
        (": warning: ", Severity::Warning),
        (": note: ", Severity::Note),
        (": remark: ", Severity::Remark),
    ];
    let mut starts =
        severities.into_iter().filter_map(|(mark, severity)| Some((line.find(mark)?, mark, severity)));
    let (at, mark, severity) = starts.next()?;
    let text = format!("{}: {}", &line[..at], &line[at + mark.len()..]);
    Some(Diagnostic { severity, text })
}
