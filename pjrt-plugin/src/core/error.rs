//! Errors: a code that hosts act on, a text that people read.

use std::fmt;
use std::sync::Arc;

/// What a fallible method of a plugin returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error (`PJRT_Error_Code`). The numbers are those of Abseil's status codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum ErrorCode {
    /// The operation was cancelled, usually by the caller.
    Cancelled = 1,
    /// Nothing better is known.
    Unknown = 2,
    /// An argument is wrong whatever state the system is in.
    InvalidArgument = 3,
    /// Time ran out before the operation finished.
    DeadlineExceeded = 4,
    /// What was asked for does not exist.
    NotFound = 5,
    /// What should be created exists.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// Out of memory, or out of something else.
    ResourceExhausted = 8,
    /// The system is not in the state that the operation requires.
    FailedPrecondition = 9,
    /// Aborted, usually by a conflict.
    Aborted = 10,
    /// Past the end of a valid range.
    OutOfRange = 11,
    /// The plugin cannot do this.
    Unimplemented = 12,
    /// An invariant is broken: a bug.
    Internal = 13,
    /// Not now; trying again may help.
    Unavailable = 14,
    /// Data is lost or corrupt beyond recovery.
    DataLoss = 15,
    /// The caller did not say who it is.
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

    /// The code with this number; [`Unknown`](Self::Unknown) for a number that stands for no error.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        (number as usize)
            .checked_sub(1)
            .and_then(|index| Self::ALL.get(index).copied())
            .unwrap_or(Self::Unknown)
    }

    /// The name as hosts print it: `INVALID_ARGUMENT`.
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

/// An error: code, message, an optional hint and optional payloads.
///
/// Cloning is cheap; the error of one execution ends up in many buffers. On the way to the host the SDK adds the name of
/// the PJRT function that failed; a plugin does not name it.
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
        #[doc = concat!("An error of code [`", stringify!($code), "`](ErrorCode::", stringify!($code), ").")]
        #[must_use]
        pub fn $name(message: impl Into<String>) -> Self {
            Self::new(ErrorCode::$code, message)
        }
    )*};
}

impl Error {
    /// An error with a code and a message. The message is a sentence for the user of the host, without a final dot.
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

    /// The code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The message, without hint and function.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the user could do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The payloads: key (by convention a type URL) and bytes. Hosts read them through `PJRT_Error_ForEachPayload`.
    #[must_use]
    pub fn payloads(&self) -> &[(String, Vec<u8>)] {
        &self.0.payloads
    }

    /// Says what the user could do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).hint = Some(hint.into());
        self
    }

    /// Attaches a payload; one of the same key is replaced.
    #[must_use]
    pub fn with_payload(mut self, key: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        let (key, value) = (key.into(), value.into());
        let payloads = &mut Arc::make_mut(&mut self.0).payloads;
        payloads.retain(|(existing, _)| *existing != key);
        payloads.push((key, value));
        self
    }

    /// Puts what was going on before the message: `context: message`.
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        let data = Arc::make_mut(&mut self.0);
        data.message = format!("{context}: {}", data.message);
        self
    }

    /// Keeps the function that only reports this error from being noted as the one that failed.
    #[must_use]
    pub(crate) fn reported(self) -> Self {
        self.in_function("")
    }

    /// Notes the PJRT function that failed, unless an inner one is noted.
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
            // An empty name is contained in every message.
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
