//! Errors with a code for hosts and a message for users.

use std::fmt;
use std::sync::Arc;

/// The result of a fallible method of a plugin.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error (`PJRT_Error_Code`). The numbers are those of Abseil's status codes.
///
/// ```
/// use pjrt_plugin::ErrorCode;
///
/// assert_eq!(ErrorCode::from_number(12), ErrorCode::Unimplemented);
/// assert_eq!(ErrorCode::Unimplemented.name(), "UNIMPLEMENTED");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum ErrorCode {
    /// The operation was cancelled, usually by the caller.
    Cancelled = 1,
    /// The kind of the error is not known.
    Unknown = 2,
    /// An argument is invalid regardless of the state of the system.
    InvalidArgument = 3,
    /// The deadline expired before the operation finished.
    DeadlineExceeded = 4,
    /// A requested object does not exist.
    NotFound = 5,
    /// The object to be created already exists.
    AlreadyExists = 6,
    /// The caller does not have permission for the operation.
    PermissionDenied = 7,
    /// There is not enough memory, or not enough of another resource.
    ResourceExhausted = 8,
    /// The system is not in the state that the operation requires.
    FailedPrecondition = 9,
    /// The operation was aborted, usually because of a conflict.
    Aborted = 10,
    /// A value is past the end of the valid range.
    OutOfRange = 11,
    /// The plugin does not support the operation.
    Unimplemented = 12,
    /// An invariant is violated, which is a bug.
    Internal = 13,
    /// The operation is temporarily not possible, and may succeed if it is repeated.
    Unavailable = 14,
    /// Data is lost or corrupt, and cannot be recovered.
    DataLoss = 15,
    /// The caller is not authenticated.
    Unauthenticated = 16,
}

impl ErrorCode {
    const ALL: [Self; 16] = [
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// Returns the code with a number, or [`Unknown`](Self::Unknown) if the number is not that of an error.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        (number as usize)
            .checked_sub(1)
            .and_then(|index| Self::ALL.get(index).copied())
            .unwrap_or(Self::Unknown)
    }

    /// Returns the name in the spelling of hosts, such as `INVALID_ARGUMENT`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error with a code, a message, an optional hint and optional payloads.
///
/// A clone shares the data of the original, because the error of an execution is stored in many buffers. The SDK appends the
/// name of the PJRT function that failed, so messages need not contain it.
///
/// ```
/// use pjrt_plugin::error::{Error, ErrorCode};
///
/// let error = Error::invalid_argument("the program needs 3 arguments, not 2").with_hint("pass the bias too");
/// assert_eq!(error.code(), ErrorCode::InvalidArgument);
/// assert_eq!(error.to_string(), "the program needs 3 arguments, not 2 (hint: pass the bias too)");
/// ```
#[derive(Clone)]
pub struct Error(Arc<Data>);

#[derive(Clone)]
struct Data {
    code: ErrorCode,
    message: String,
    hint: Option<String>,
    function: Option<&'static str>,
    payloads: Vec<(String, Vec<u8>)>,
}

macro_rules! constructors {
    ($($name:ident $code:ident;)*) => {$(
        #[doc = concat!("Creates an error with the code [`", stringify!($code), "`](ErrorCode::", stringify!($code), ").")]
        #[must_use]
        pub fn $name(message: impl Into<String>) -> Self {
            Self::new(ErrorCode::$code, message)
        }
    )*};
}

impl Error {
    /// Creates an error with a code and a message. The message is read by users of the host. It begins with a lower-case
    /// letter and has no final period.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Arc::new(Data {
            code,
            message: message.into(),
            hint: None,
            function: None,
            payloads: Vec::new(),
        }))
    }

    constructors! {
        cancelled Cancelled;
        unknown Unknown;
        invalid_argument InvalidArgument;
        deadline_exceeded DeadlineExceeded;
        not_found NotFound;
        already_exists AlreadyExists;
        permission_denied PermissionDenied;
        resource_exhausted ResourceExhausted;
        failed_precondition FailedPrecondition;
        aborted Aborted;
        out_of_range OutOfRange;
        unimplemented Unimplemented;
        internal Internal;
        unavailable Unavailable;
        data_loss DataLoss;
        unauthenticated Unauthenticated;
    }

    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Returns the message, without the hint and the name of the function.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the hint, if there is one. It tells the user how to resolve the error.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Returns the payloads. Each has a key, which is a type URL by convention, and bytes. Hosts read them with
    /// `PJRT_Error_ForEachPayload`.
    #[must_use]
    pub fn payloads(&self) -> &[(String, Vec<u8>)] {
        &self.0.payloads
    }

    /// Sets the hint, which tells the user how to resolve the error.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).hint = Some(hint.into());
        self
    }

    /// Adds a payload, or replaces the one with the same key.
    #[must_use]
    pub fn with_payload(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        let (key, value) = (key.into(), value.into());
        let payloads = &mut Arc::make_mut(&mut self.0).payloads;
        payloads.retain(|(existing, _)| *existing != key);
        payloads.push((key, value));
        self
    }

    /// Prepends a context to the message: `context: message`.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        let data = Arc::make_mut(&mut self.0);
        data.message = format!("{context}: {}", data.message);
        self
    }

    /// Marks the error as one that the current function only reports, so that its name is not recorded.
    #[must_use]
    pub(crate) fn reported(self) -> Self {
        self.in_function("")
    }

    /// Records the PJRT function that failed, unless an inner function is recorded.
    #[must_use]
    pub(crate) fn in_function(mut self, function: &'static str) -> Self {
        if self.0.function.is_none() {
            Arc::make_mut(&mut self.0).function = Some(function);
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(hint) = &self.0.hint {
            write!(f, " (hint: {hint})")?;
        }
        match self.0.function {
            // Every message contains the empty name of a reported error.
            Some(function) if !self.0.message.contains(function) => write!(f, " [{function}]"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.0.code)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_number_that_hosts_know_and_comes_back_from_it() {
        for (index, code) in ErrorCode::ALL.into_iter().enumerate() {
            assert_eq!(code as usize, index + 1);
            assert_eq!(ErrorCode::from_number(code as u32), code);
        }
        assert_eq!(ErrorCode::from_number(0), ErrorCode::Unknown);
        assert_eq!(ErrorCode::from_number(17), ErrorCode::Unknown);
    }

    #[test]
    fn the_function_is_named_once_and_the_innermost_wins() {
        let error = Error::internal("broken").in_function("PJRT_Inner").in_function("PJRT_Outer");
        assert_eq!(error.to_string(), "broken [PJRT_Inner]");
        let error = Error::internal("PJRT_Inner: broken").in_function("PJRT_Inner");
        assert_eq!(error.to_string(), "PJRT_Inner: broken");
    }

    #[test]
    fn a_payload_of_the_same_key_is_replaced() {
        let error = Error::internal("x").with_payload("k", *b"1").with_payload("k", *b"2");
        assert_eq!(error.payloads(), [("k".to_owned(), b"2".to_vec())]);
    }
}
