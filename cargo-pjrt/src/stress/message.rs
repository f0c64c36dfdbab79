//! The messages of a child to its parent.

use serde::{Deserialize, Serialize};

use crate::process::child;
use pjrt_testing::host::{Code, Error};

/// A message of a child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// The library cannot be loaded as a plugin, or no client can be created.
    Unusable(String),
    /// The child does this next, or makes progress with it.
    At(String),
    /// The scenario failed.
    Failed(String),
    /// The plugin lacks a feature that the scenario needs.
    Unsupported(String),
    /// The scenario ended well, with this summary.
    Done(String),
}

/// Sends a message to the parent.
pub(super) fn send(message: &Message) {
    if let Ok(json) = serde_json::to_string(message) {
        child::send(&json);
    }
}

/// The reason why a scenario did not end well.
#[derive(Debug)]
pub(super) enum Stop {
    /// The plugin did something wrong.
    Failed(String),
    /// The plugin lacks a feature that the scenario needs.
    Unsupported(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error.code {
            Code::UNIMPLEMENTED => Self::Unsupported(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// The summary of a scenario that ended well, or the reason why it did not.
pub(super) type Verdict<T = String> = Result<T, Stop>;
