//! Why a program could not be partitioned.

use pjrt_stablehlo::ir::Location;
use std::fmt;

/// Kinds of [`Error`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program, the options, or what a [`CallPartitioner`](crate::CallPartitioner) gave is wrong.
    Invalid,
    /// The program needs something that this crate does not support.
    Unsupported,
    /// A [`CallPartitioner`](crate::CallPartitioner) needs more memory than there is.
    ResourceExhausted,
    /// A mistake of this crate or of a [`CallPartitioner`](crate::CallPartitioner).
    Internal,
}

/// Why a program could not be partitioned: what is wrong, in which operation, from where in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Which kind of error.
    pub kind: ErrorKind,
    /// The name of the operation, such as `stablehlo.sort`; empty if the error is of no operation.
    pub op: String,
    /// Where in the source program the operation comes from.
    pub location: String,
    /// What is wrong, what was found and what was expected.
    pub message: String,
}

/// The result of a step of this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns an error of this kind that is of no operation (yet).
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, op: String::new(), location: String::new(), message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The same error with an operation and its location, unless it has one.
    #[must_use]
    pub fn in_op(mut self, op: &str, location: &Location) -> Self {
        if self.op.is_empty() {
            self.op = op.to_owned();
            self.location = location.brief().to_string();
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.op.is_empty() {
            write!(f, "{}: ", self.op)?;
        }
        f.write_str(&self.message)?;
        if !self.location.is_empty() && self.location != "unknown" {
            write!(f, " (at {})", self.location)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
