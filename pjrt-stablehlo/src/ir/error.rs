//! Errors of readers and the verifier.

use std::fmt;

use super::{Location, Str};

/// Why a program could not be read.
///
/// The text says what is wrong, what was expected, in which operation and where in the source program that
/// operation comes from, and at which byte of the input, as far as they are known.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub struct Error {
    /// Which kind of error.
    pub kind: ErrorKind,
    /// What is wrong and what was expected.
    pub message: String,
    /// Byte of the input at which the error was found.
    pub offset: Option<usize>,
    /// Operation that the error is in.
    pub op: Option<Str>,
    /// Which of the specification's rules for that operation is broken.
    pub constraint: Option<Constraint>,
    /// Where in the source program that operation comes from.
    pub location: Location,
}

/// A rule that the StableHLO specification has for an operation, as it numbers them there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Constraint {
    /// `C7`: number 7 of the operation's constraints.
    C(u8),
    /// `I1`: the type of number 1 of the operation's inputs.
    I(u8),
    /// `O1`: the type of number 1 of the operation's outputs, which the specification lists without numbers.
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

/// Kinds of [`Error`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The input is not what its format says: cut off, damaged, or never was a program.
    Malformed,
    /// The input is well-formed, and this crate does not support something in it.
    Unsupported,
    /// The program breaks a rule of StableHLO.
    Invalid,
    /// The input exceeds one of the [`limits`](crate::limits).
    TooLarge,
}

/// Bytes of a message, and of the name of an operation in front of it: programs have names and types of any length.
const MAX_MESSAGE: usize = 1000;
const MAX_NAME: usize = 100;

/// A text without its middle where it has more than so many bytes.
fn cut(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let boundary =
        |from: usize| (from..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    format!("{} [...] {}", &text[..boundary(most * 2 / 3)], &text[boundary(text.len() - most / 3)..])
}

impl Error {
    /// An error of this kind without place. A message that is too long to be read is cut in its middle.
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

    /// The same error with a byte offset, unless it has one.
    #[must_use]
    pub fn at_offset(mut self, offset: usize) -> Self {
        self.offset.get_or_insert(offset);
        self
    }

    /// The same error with an operation and its location, unless it has one.
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
        // Messages about texts begin with the line and column, which go before the operation and say more than the byte.
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
