//! Errors of readers, the verifier and passes.

use std::fmt;

use super::{Location, Str};

/// An error of a reader, the verifier or a pass.
///
/// The text says what is wrong, what was expected, and, where they are known, the operation, its location in the source
/// program, and the byte of the input.
///
/// ```
/// use pjrt_stablehlo::{Constraint, Error, ErrorKind};
///
/// let program = r#"
///     func.func @main(%x: tensor<2x3xf32>) -> tensor<3x3xf32> {
///         %0 = stablehlo.transpose %x, dims = [1, 1] : (tensor<2x3xf32>) -> tensor<3x3xf32>
///         return %0 : tensor<3x3xf32>
///     }"#;
/// let error: Error = pjrt_stablehlo::parse(program.to_owned()).unwrap_err();
/// assert_eq!(error.kind, ErrorKind::Invalid);
/// assert_eq!(error.op.as_deref(), Some("stablehlo.transpose"));
/// assert_eq!(error.constraint, Some(Constraint::C(2)));
/// assert!(error.to_string().contains("at \"program\":3:9"));
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub struct Error {
    /// The kind of error.
    pub kind: ErrorKind,
    /// The problem and the expectation, without the other fields.
    pub message: String,
    /// The offset in bytes from the start of the input at which the error was found, if it is known.
    pub offset: Option<usize>,
    /// The name of the operation that the error concerns, if it is known.
    pub op: Option<Str>,
    /// The constraint of the specification that the operation violates, if it violates one.
    pub constraint: Option<Constraint>,
    /// The location of the operation in the source program.
    pub location: Location,
}

/// A constraint that the StableHLO specification states for an operation, with the specification's number. See [`Error`]
/// for an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constraint {
    /// `C7`: constraint number 7.
    C(u8),
    /// `I1`: the type of input number 1.
    I(u8),
    /// `O1`: the type of output number 1, counted from 1 in the order of the specification, which does not number outputs.
    O(u8),
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constraint::C(number) => write!(f, "C{number}"),
            Constraint::I(number) => write!(f, "I{number}"),
            Constraint::O(number) => write!(f, "O{number}"),
        }
    }
}

/// The kinds of [`Error`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is not in its format: truncated, damaged, or not a program.
    Malformed,
    /// The input is well-formed, but contains something that this crate does not support.
    Unsupported,
    /// The program violates a rule of StableHLO.
    Invalid,
    /// The input exceeds one of the [`limits`](crate::limits).
    TooLarge,
}

/// The maximum lengths in bytes of a message, and of the operation's name before it. Programs contain names and types
/// of any length.
const MAX_MESSAGE: usize = 1000;
const MAX_NAME: usize = 100;

/// Removes the middle of a text that is longer than `most` bytes.
fn cut(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let boundary =
        |from: usize| (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    format!("{} [...] {}", &text[..boundary(most * 2 / 3)], &text[boundary(text.len() - most / 3)..])
}

impl Error {
    /// Creates an error without a byte offset, an operation or a location. The middle of a long message is removed.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error {
            kind,
            message: cut(message.into(), MAX_MESSAGE),
            offset: None,
            op: None,
            constraint: None,
            location: Location::UNKNOWN,
        }
    }

    /// Returns this error with a byte offset, unless it has one.
    #[must_use]
    pub fn at_offset(mut self, offset: usize) -> Self {
        self.offset.get_or_insert(offset);
        self
    }

    /// Returns this error with an operation and its location, unless it has an operation.
    #[must_use]
    pub fn in_op(mut self, op: impl Into<Str>, location: &Location) -> Self {
        if self.op.is_none() {
            let op: Str = op.into();
            let is_long = op.len() > MAX_NAME;
            self.op = Some(if is_long { cut(op.to_string(), MAX_NAME).into() } else { op });
            self.location = location.clone();
        }
        self
    }

    fn text(&self) -> String {
        // Messages about programs as text begin with the line and column. These precede the operation, and make the
        // byte redundant.
        let place = self.message.strip_prefix("line ").and_then(|rest| rest.find(": "));
        let (place, message) = self.message.split_at(place.map_or(0, |end| "line ".len() + end + ": ".len()));
        let mut text = place.to_owned();
        if let Some(op) = &self.op {
            text.push_str(op);
            if let Some(constraint) = self.constraint {
                text.push_str(&format!(" ({constraint})"));
            }
            text.push_str(": ");
        }
        text.push_str(message);
        if let Some(offset) = self.offset.filter(|_| place.is_empty()) {
            text.push_str(&format!(" (byte {offset} of the input)"));
        }
        if !self.location.is_unknown() {
            text.push_str(&format!(" at {}", self.location.brief()));
        }
        text
    }
}
