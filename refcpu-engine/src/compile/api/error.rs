//! Why a program could not be compiled.

use std::fmt;

/// What kind of failure it is; PJRT's error codes follow from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileErrorKind {
    /// The program or the options are wrong.
    InvalidArgument,
    /// The program needs something that refcpu does not have.
    Unimplemented,
    /// The program needs more memory than there is.
    ResourceExhausted,
    /// A mistake of refcpu.
    Internal,
}

/// Why a program could not be compiled: what is wrong, in which operation, from where in the source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct CompileError {
    /// What kind of failure it is.
    pub kind: CompileErrorKind,
    /// The operation's name, such as `stablehlo.sort`; empty if the failure is of no operation.
    pub op: String,
    /// The types of the operation's operands and results, as in `(tensor<4xf32>) -> tensor<4xf32>`.
    pub types: String,
    /// Where in the source program the operation comes from.
    pub location: String,
    /// What is wrong.
    pub message: String,
}

impl CompileError {
    /// An error that is of no operation (yet).
    pub fn new(kind: CompileErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            op: String::new(),
            types: String::new(),
            location: String::new(),
            message: message.into(),
        }
    }

    /// What refcpu does not have.
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(CompileErrorKind::Unimplemented, message)
    }

    /// What is wrong with the program.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(CompileErrorKind::InvalidArgument, message)
    }

    /// A mistake of refcpu.
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

/// The result of a compiler step.
pub(crate) type Result<T, E = CompileError> = std::result::Result<T, E>;

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
