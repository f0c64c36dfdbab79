//! The error type of this crate.

use pjrt_stablehlo::ir::Location;
use std::fmt;

/// The kinds of [`Error`]. See [`Error`] for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program or the options are invalid, or the result of a [`CallPartitioner`](crate::CallPartitioner) does not fit its
    /// call.
    Invalid,
    /// The program uses a feature that this crate does not support.
    Unsupported,
    /// A [`CallPartitioner`](crate::CallPartitioner) ran out of memory.
    ResourceExhausted,
    /// A bug in this crate or in a [`CallPartitioner`](crate::CallPartitioner).
    Internal,
}

/// An error in propagating shardings or in partitioning a program, with the operation and its location in the source program.
///
/// `Display` prints `op: message (at location)`.
///
/// ```
/// use pjrt_sharding::{ErrorKind, Options, propagate};
///
/// let module = pjrt_stablehlo::parse(
///     r#"func.func @main(%a: tensor<4xf32> {mhlo.sharding = "{maximal device=1}"}) -> tensor<4xf32> {
///       return %a : tensor<4xf32>
///     }"#,
/// )?;
/// let error = propagate(&module, &Options { num_partitions: 2, ..Options::default() }).unwrap_err();
/// assert_eq!(error.kind, ErrorKind::Unsupported);
/// assert!(error.message.contains("maximal"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// The name of the operation, such as `stablehlo.sort`; empty if the error concerns no single operation.
    pub op: String,
    /// The location of the operation in the source program; empty if `op` is empty.
    pub location: String,
    /// A description of the error: what was expected and what was found.
    pub message: String,
}

/// The result type of this crate's functions.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error without an operation. [`Error::in_op`] adds one.
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

    /// Returns the error with this operation and location, unless it already has an operation.
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
