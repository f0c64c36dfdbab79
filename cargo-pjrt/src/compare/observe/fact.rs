//! Facts about a plugin, as a child process sends them to its parent.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

use crate::process::child;
use crate::session::log::Shape;
use pjrt_testing::host::{Error, Result};

/// A message of a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The library cannot be loaded as a plugin.
    Unusable(String),
    /// The library is loaded, and reports this version of the C API.
    Loaded((i32, i32)),
    /// The child is about to create the client that the following subjects use.
    Creating,
    /// The child begins to observe the subject with this index.
    Begins(usize),
    /// A fact about the current subject.
    Fact(Fact),
}

/// A fact about a plugin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fact {
    pub(crate) what: String,
    pub(crate) kind: Kind,
    pub(crate) value: Value,
}

/// The meaning of a difference in a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// A host may notice the difference.
    Behavior,
    /// Correct plugins differ here: names, versions, ids, sizes of temporary memory, texts of errors.
    Identity,
    /// The reason why something is not compared.
    Skipped,
    /// `always`, `never` or `sometimes`: how often one event was complete before another.
    Timing,
}

/// The value of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Value {
    /// A text.
    Text(String),
    /// An array, whose bytes are in a file.
    Array(Shape, PathBuf),
}

/// The facts about a plugin in one subject.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    pub(crate) facts: Vec<Fact>,
    /// The reason why the subject was not observed to the end.
    pub(crate) end: Option<String>,
}

/// Sends a message to the parent.
pub(crate) fn send(message: &Message) {
    if let Ok(json) = serde_json::to_string(message) {
        child::send(&json);
    }
}

/// Sends a fact to the parent.
pub(crate) fn note(what: impl Into<String>, kind: Kind, value: Value) {
    send(&Message::Fact(Fact { what: what.into(), kind, value }));
}

/// Notes a fact in which plugins should agree.
pub(crate) fn behavior(what: impl Into<String>, value: impl ToString) {
    note(what, Kind::Behavior, Value::Text(value.to_string()));
}

/// Notes a fact in which correct plugins differ.
pub(crate) fn identity(what: impl Into<String>, value: impl ToString) {
    note(what, Kind::Identity, Value::Text(value.to_string()));
}

/// Notes the reason why something is not compared.
pub(crate) fn skipped(what: impl Into<String>, why: &str) {
    note(what, Kind::Skipped, Value::Text(why.to_owned()));
}

/// Notes the error of a call: its code is behavior, and its message is not.
pub(crate) fn failed(what: &str, error: &Error) {
    behavior(what, format!("error {}", error.code));
    identity(format!("{what}: message"), &error.message);
}

/// Notes the outcome of a call, and returns its value. `shown` converts the value to a text.
pub(crate) fn outcome<T>(what: &str, outcome: Result<T>, shown: impl FnOnce(&T) -> String) -> Option<T> {
    match outcome {
        Ok(value) => {
            behavior(what, shown(&value));
            Some(value)
        }
        Err(error) => {
            failed(what, &error);
            None
        }
    }
}

/// Notes the outcome of a call whose value correct plugins differ in, and returns the value.
pub(crate) fn own<T>(what: &str, outcome: Result<T>, shown: impl FnOnce(&T) -> String) -> Option<T> {
    match outcome {
        Ok(value) => {
            behavior(format!("{what}: outcome"), "ok");
            identity(what, shown(&value));
            Some(value)
        }
        Err(error) => {
            failed(&format!("{what}: outcome"), &error);
            None
        }
    }
}

/// Notes an array, whose bytes are written to a new file in this folder.
pub(crate) fn array(what: &str, shape: &Shape, bytes: &[u8], folder: &Path) {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("{}-{number}", std::process::id()));
    // If the write fails, the parent cannot read the file and ends with an error.
    let _ = std::fs::write(&path, bytes);
    note(what, Kind::Behavior, Value::Array(shape.clone(), path));
}

/// A count of the times that a condition held.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    held: usize,
    seen: usize,
}

impl Tally {
    pub(crate) fn count(&mut self, holds: bool) {
        self.held += usize::from(holds);
        self.seen += 1;
    }

    /// Notes the frequency.
    pub(crate) fn note(&self, what: &str) {
        let often = match self.held {
            0 => "never",
            held if held == self.seen => "always",
            _ => "sometimes",
        };
        note(what, Kind::Timing, Value::Text(often.to_owned()));
    }
}
