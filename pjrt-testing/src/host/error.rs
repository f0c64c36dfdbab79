//! Errors of plugins.

use std::fmt;

/// An error code of the interface. The codes from 1 to 16 are those of absl.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident $number:literal $doc:literal;)*) => {
        impl Code {
            $(#[doc = $doc] pub const $name: Self = Self($number);)*

            /// Returns the name, or `None` if the code is unknown.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// Returns the code of this name, or `None` if there is none.
            #[must_use]
            pub fn by_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    OK 0 "No error. Not a code of a `PJRT_Error`.";
    CANCELLED 1 "The operation was cancelled.";
    UNKNOWN 2 "The cause is unknown.";
    INVALID_ARGUMENT 3 "The caller passed an invalid argument.";
    DEADLINE_EXCEEDED 4 "The deadline expired before the operation completed.";
    NOT_FOUND 5 "The object was not found.";
    ALREADY_EXISTS 6 "The object already exists.";
    PERMISSION_DENIED 7 "The caller has no permission.";
    RESOURCE_EXHAUSTED 8 "Memory or another resource is exhausted.";
    FAILED_PRECONDITION 9 "The object is not in the state that the operation requires.";
    ABORTED 10 "The operation was aborted.";
    OUT_OF_RANGE 11 "A value is out of range.";
    UNIMPLEMENTED 12 "The plugin does not implement the operation.";
    INTERNAL 13 "The plugin has a bug.";
    UNAVAILABLE 14 "The service is currently unavailable.";
    DATA_LOSS 15 "Data was lost or corrupted.";
    UNAUTHENTICATED 16 "The caller is not authenticated.";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            // The code is an enum in C, whose values are signed.
            None => write!(f, "code {}", self.0.cast_signed()),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error of a function of the interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{function}: {}{message}", self.code_text())]
pub struct Error {
    /// The function that was called, such as `PJRT_Client_Compile`.
    pub function: &'static str,
    /// The code. UNIMPLEMENTED if the table has no such function.
    pub code: Code,
    /// The plugin's message.
    pub message: String,
    /// `true` if the plugin's message is not valid; `message` then describes the problem.
    pub message_is_broken: bool,
    /// `true` if the plugin reported success, but its outputs are unusable.
    pub is_of_success: bool,
    /// The payloads: key and value.
    pub payloads: Vec<(String, Vec<u8>)>,
}

/// The result of a function of the interface.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates the error for a function that the table lacks.
    pub(crate) fn missing(function: &'static str) -> Self {
        let message = "the table has no such function".to_owned();
        Self { code: Code::UNIMPLEMENTED, is_of_success: false, ..Self::broken(function, message) }
    }

    /// Creates the error for arguments of this crate's own functions that are wrong.
    pub(crate) fn of_caller(function: &'static str, message: impl Into<String>) -> Self {
        Self { code: Code::INVALID_ARGUMENT, is_of_success: false, ..Self::broken(function, message) }
    }

    /// Returns the code and a colon, or nothing if the plugin returned no error: the message says that.
    fn code_text(&self) -> String {
        if self.is_of_success { String::new() } else { format!("{}: ", self.code) }
    }

    /// Creates the error for a result that the interface does not allow.
    #[must_use]
    pub fn broken(function: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            function,
            code: Code::INTERNAL,
            message,
            message_is_broken: false,
            is_of_success: true,
            payloads: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_types_are_shown_by_name_and_unknown_ones_by_number() {
        use crate::host::ElementType;
        assert_eq!(format!("{:?} {}", Code::INTERNAL, Code(u32::MAX)), "INTERNAL code -1");
        assert_eq!(format!("{:?} {}", ElementType::F32, ElementType(77)), "F32 unknown type 77");
    }
}
