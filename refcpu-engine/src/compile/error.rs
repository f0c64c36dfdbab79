//! The error type of the compiler.

use std::fmt;

/// The kinds of [`CompileError`], which determine PJRT's error codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileErrorKind {
    /// The program or the options are invalid.
    InvalidArgument,
    /// The program uses a feature that refcpu does not implement.
    Unimplemented,
    /// There is not enough memory.
    ResourceExhausted,
    /// A bug in refcpu.
    Internal,
}

/// An error in compiling a program, with the operation and its location in the source program.
///
/// `Display` prints `op : types: message (at location)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// The kind of the error.
    pub kind: CompileErrorKind,
    /// The name of the operation, such as `stablehlo.sort`; empty if the error concerns no single operation.
    pub op: String,
    /// The types of the operation's operands and results, as in `(tensor<4xf32>) -> tensor<4xf32>`.
    pub types: String,
    /// The location of the operation in the source program; empty if `op` is empty.
    pub location: String,
    /// A description of the error.
    pub message: String,
}

impl CompileError {
    /// Creates an error without an operation.
    pub fn new(kind: CompileErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            op: String::new(),
            types: String::new(),
            location: String::new(),
            message: message.into(),
        }
    }

    /// Creates an error of the kind [`CompileErrorKind::Unimplemented`].
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(CompileErrorKind::Unimplemented, message)
    }

    /// Creates an error of the kind [`CompileErrorKind::InvalidArgument`].
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(CompileErrorKind::InvalidArgument, message)
    }

    /// Creates an error of the kind [`CompileErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(CompileErrorKind::Internal, message)
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.op.is_empty() {
            write!(f, "{}", self.op)?;
            if !self.types.is_empty() {
                write!(f, " : {}", self.types)?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        if !self.location.is_empty() && self.location != "unknown" {
            write!(f, " (at {})", self.location)?;
        }
        Ok(())
    }
}

impl std::error::Error for CompileError {}

/// The result type of the compiler's functions.
pub(super) type Result<T, E = CompileError> = std::result::Result<T, E>;

impl From<pjrt_sharding::Error> for CompileError {
    fn from(error: pjrt_sharding::Error) -> Self {
        let kind = match error.kind {
            pjrt_sharding::ErrorKind::Invalid => CompileErrorKind::InvalidArgument,
            pjrt_sharding::ErrorKind::Unsupported => CompileErrorKind::Unimplemented,
            pjrt_sharding::ErrorKind::ResourceExhausted => CompileErrorKind::ResourceExhausted,
            _ => CompileErrorKind::Internal,
        };
        Self { op: error.op, location: error.location, ..Self::new(kind, error.message) }
    }
}
