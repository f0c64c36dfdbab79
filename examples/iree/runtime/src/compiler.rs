//! The compiler, which is a shared library.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError, RwLock};
use std::{fmt, ptr, slice};

use eerie_sys::compiler as sys;

use crate::status::{Code, Error, Result};
use crate::strings::text_of;

/// The compiler. It stays in the process until the process ends, because it cannot be started again.
pub struct Compiler(&'static sys::IreeCompiler);

/// The errors and warnings of a compilation that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileError {
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
    /// Creates the error of a compilation that does not have the diagnostics of the compiler.
    fn of_text(text: impl Into<String>) -> Self {
        Self { diagnostics: vec![Diagnostic { severity: Severity::Error, text: text.into() }] }
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
    /// Loads the compiler from the path of `libIREECompiler.so`. The Python package `iree-base-compiler` contains it.
    ///
    /// # Errors
    ///
    /// Returns NOT_FOUND if the library cannot be loaded, or INCOMPATIBLE if it is not a compiler with the interface 1.4 or a
    /// newer minor version.
    pub fn load(path: &Path) -> Result<Self> {
        // The initialization of the library is not thread-safe.
        static LOADING: Mutex<()> = Mutex::new(());
        let _one_at_a_time = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: The library is the one that the caller names as the compiler. Its initialization has no preconditions.
        let api = unsafe { sys::IreeCompiler::open(path) };
        let api = api.map_err(|error| match error {
            sys::LoadError::Library(error) => Error::new(Code::NotFound, error.to_string()),
            error => Error::new(Code::Incompatible, error.to_string()),
        })?;
        let api = Box::leak(Box::new(api));
        // SAFETY: The function may be called several times. The compiler is not shut down, so it can be used from now on.
        unsafe { api.ireeCompilerGlobalInitialize() };
        Ok(Self(api))
    }

    /// Returns the version of the compiler, such as `3.13.0`, as its builders named it.
    #[must_use]
    pub fn revision(&self) -> String {
        // SAFETY: The compiler is initialized. The string is static.
        let revision = unsafe { CStr::from_ptr(self.0.ireeCompilerGetRevision()) };
        revision.to_string_lossy().into_owned()
    }

    /// Compiles a program, which is the text or the bytecode of a module in MLIR, and returns its code. `name` is the name of the
    /// program in diagnostics.
    ///
    /// # Errors
    ///
    /// Returns the diagnostics of the compiler.
    pub fn compile(&self, flags: &[String], name: &str, program: &[u8]) -> Result<Vec<u8>, CompileError> {
        static INITIALIZED: RwLock<BTreeSet<Vec<String>>> = RwLock::new(BTreeSet::new());
        // The first compilation for a target initializes it in the library, which is not thread-safe, so it runs alone.
        let known = INITIALIZED.read().unwrap_or_else(PoisonError::into_inner);
        if known.contains(flags) {
            return self.compile_concurrently(flags, name, program);
        }
        drop(known);
        let mut known = INITIALIZED.write().unwrap_or_else(PoisonError::into_inner);
        let compiled = self.compile_concurrently(flags, name, program);
        if compiled.is_ok() {
            known.insert(flags.to_vec());
        }
        compiled
    }

    /// Compiles a program while other threads may do the same.
    fn compile_concurrently(
        &self,
        flags: &[String],
        name: &str,
        program: &[u8],
    ) -> Result<Vec<u8>, CompileError> {
        let session = Session::new(self.0)?;
        session.set_flags(flags)?;
        let diagnostics = Mutex::new(Vec::new());
        let compiled = session.compile(name, program, &diagnostics);
        let diagnostics = diagnostics.into_inner().unwrap_or_else(PoisonError::into_inner);
        compiled.map_err(|error| if diagnostics.is_empty() { error } else { CompileError { diagnostics } })
    }
}

/// A session of the compiler, which belongs to one thread.
struct Session {
    api: &'static sys::IreeCompiler,
    session: *mut sys::iree_compiler_session_t,
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: The session is alive, and everything that was created in it is destroyed.
        unsafe { self.api.ireeCompilerSessionDestroy(self.session) }
    }
}

/// An object that is destroyed with a function of the compiler.
struct Owned<'a, T> {
    api: &'a sys::IreeCompiler,
    object: *mut T,
    destroy: unsafe fn(&sys::IreeCompiler, *mut T),
}

impl<T> Drop for Owned<'_, T> {
    fn drop(&mut self) {
        // SAFETY: The function is that of the object's type, and the object is alive and not used any more.
        unsafe { (self.destroy)(self.api, self.object) }
    }
}

impl Session {
    fn new(api: &'static sys::IreeCompiler) -> Result<Self, CompileError> {
        // SAFETY: The compiler is initialized.
        let session = unsafe { api.ireeCompilerSessionCreate() };
        if session.is_null() {
            return Err(CompileError::of_text("the compiler cannot create a session"));
        }
        Ok(Self { api, session })
    }

    fn set_flags(&self, flags: &[String]) -> Result<(), CompileError> {
        let flags = flags.iter().map(|flag| c_string(flag)).collect::<Result<Vec<_>, _>>()?;
        let pointers: Vec<*const c_char> = flags.iter().map(|flag| flag.as_ptr()).collect();
        // SAFETY: The session is alive, and the list of strings is valid for the call.
        let error = unsafe {
            let (count, pointers) = (pointers.len() as c_int, pointers.as_ptr());
            self.api.ireeCompilerSessionSetFlags(self.session, count, pointers)
        };
        // SAFETY: The function has returned the error.
        unsafe { self.check(error) }
    }

    fn compile(
        &self,
        name: &str,
        program: &[u8],
        diagnostics: &Mutex<Vec<Diagnostic>>,
    ) -> Result<Vec<u8>, CompileError> {
        let api = self.api;
        // A text must end with a null character, and bytecode may.
        let program: Vec<u8> = program.iter().copied().chain([0]).collect();
        let name = c_string(name)?;
        let (mut source, bytes) = (ptr::null_mut(), program.as_ptr().cast());
        // SAFETY: The session is alive, the pointer is valid for writes, and name and bytes are valid longer than the source.
        let error = unsafe {
            let (name, size) = (name.as_ptr(), program.len());
            api.ireeCompilerSourceWrapBuffer(self.session, name, bytes, size, true, &mut source)
        };
        // SAFETY: The function has returned the error.
        unsafe { self.check(error)? };
        let source = Owned { api, object: source, destroy: sys::IreeCompiler::ireeCompilerSourceDestroy };
        // SAFETY: The session is alive.
        let invocation = unsafe { api.ireeCompilerInvocationCreate(self.session) };
        let destroy = sys::IreeCompiler::ireeCompilerInvocationDestroy;
        let invocation = Owned { api, object: invocation, destroy };
        let user_data = ptr::from_ref(diagnostics).cast_mut().cast();
        // SAFETY: Invocation and source are alive. The callback has this signature, and the diagnostics outlive the invocation.
        let is_compiled = unsafe {
            api.ireeCompilerInvocationEnableCallbackDiagnostics(
                invocation.object,
                0,
                Some(collect),
                user_data,
            );
            let standard = sys::iree_compiler_pipeline_t_IREE_COMPILER_PIPELINE_STD;
            api.ireeCompilerInvocationParseSource(invocation.object, source.object)
                && api.ireeCompilerInvocationPipeline(invocation.object, standard)
        };
        if !is_compiled {
            return Err(CompileError::of_text("the compiler failed without a message"));
        }
        self.output(&invocation)
    }

    /// Returns the code of a program that was compiled.
    fn output(
        &self,
        invocation: &Owned<'_, sys::iree_compiler_invocation_t>,
    ) -> Result<Vec<u8>, CompileError> {
        let (api, mut output) = (self.api, ptr::null_mut());
        // SAFETY: The pointer is valid for writes, and the function has returned the error.
        unsafe { self.check(api.ireeCompilerOutputOpenMembuffer(&mut output))? };
        let output = Owned { api, object: output, destroy: sys::IreeCompiler::ireeCompilerOutputDestroy };
        let (mut contents, mut size) = (ptr::null_mut(), 0);
        // SAFETY: Invocation and output are alive, the pointers are valid for writes, and the functions have returned the errors.
        unsafe {
            self.check(api.ireeCompilerInvocationOutputVMBytecode(invocation.object, output.object))?;
            self.check(api.ireeCompilerOutputMapMemory(output.object, &mut contents, &mut size))?;
        }
        if contents.is_null() {
            return Err(CompileError::of_text("the compiler returned no code"));
        }
        // SAFETY: The contents are valid for this size until the output is destroyed.
        Ok(unsafe { slice::from_raw_parts(contents.cast::<u8>(), size as usize) }.to_vec())
    }

    /// Converts an error, and destroys it.
    ///
    /// # Safety
    ///
    /// A function of the compiler must have returned the error, and the caller must not use it any more.
    unsafe fn check(&self, error: *mut sys::iree_compiler_error_t) -> Result<(), CompileError> {
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: The error is alive, and the string is alive as long as the error.
        let text = unsafe { CStr::from_ptr(self.api.ireeCompilerErrorGetMessage(error)) };
        let text = text.to_string_lossy().into_owned();
        // SAFETY: This is the last use of the error.
        unsafe { self.api.ireeCompilerErrorDestroy(error) };
        Err(CompileError::of_text(text))
    }
}

fn c_string(text: &str) -> Result<CString, CompileError> {
    CString::new(text).map_err(|_| CompileError::of_text(format!("{text:?} contains a null character")))
}

/// Collects a diagnostic. The compiler calls this from any thread.
unsafe extern "C" fn collect(
    severity: sys::iree_compiler_diagnostic_severity_t,
    message: *const c_char,
    size: usize,
    diagnostics: *mut c_void,
) {
    let severity = match severity {
        sys::iree_compiler_diagnostic_severity_t_IREE_COMPILER_DIAGNOSTIC_SEVERITY_ERROR => Severity::Error,
        sys::iree_compiler_diagnostic_severity_t_IREE_COMPILER_DIAGNOSTIC_SEVERITY_WARNING => {
            Severity::Warning
        }
        sys::iree_compiler_diagnostic_severity_t_IREE_COMPILER_DIAGNOSTIC_SEVERITY_NOTE => Severity::Note,
        _ => Severity::Remark,
    };
    // SAFETY: The message is valid for this size during the call.
    let text = unsafe { text_of(message, size) };
    // SAFETY: `compile` passed the pointer, and the lock is alive until the invocation is destroyed.
    let diagnostics = unsafe { &*diagnostics.cast::<Mutex<Vec<Diagnostic>>>() };
    diagnostics.lock().unwrap_or_else(PoisonError::into_inner).push(Diagnostic { severity, text });
}
