//! The messages of a child to its parent.

use serde::{Deserialize, Serialize};

use crate::process::child;

/// A message of a child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// The library cannot be loaded as a plugin, or no client can be created.
    Unusable(String),
    /// The client exists.
    Ready,
    /// The program with this number, among those selected, runs next.
    Begins(usize),
    /// The program ended.
    Ends(Outcome),
}

/// The outcome of a program that did not end the process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// All results are right. Contains the largest error.
    Right(Option<Measure>),
    /// The plugin does not compile the program, or does not take its arguments. Contains the plugin's error.
    Refused(String),
    /// The execution failed, or its results cannot be read. Contains the plugin's error.
    Failed(String),
    /// Results are wrong. Contains in how many of [`AGAIN`] further runs they are right.
    Wrong(Vec<Fault>, usize),
}

/// The number of further runs of a program that is wrong.
pub(super) const AGAIN: usize = 3;

/// The error of an element.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// The number of steps to the expected floating-point number. For complex numbers, the relative error in units of the
    /// precision. The largest `f64` if one of both is NaN.
    #[serde(with = "finite")]
    pub ulps: f64,
    /// The distance divided by the expected number.
    #[serde(with = "finite")]
    pub relative: f64,
    /// The part of the tolerance that the error uses: at most 1 if the element is right.
    #[serde(with = "finite")]
    pub of_tolerance: f64,
}

/// JSON has no infinities.
mod finite {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(number.min(f64::MAX))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<f64, D::Error> {
        f64::deserialize(deserializer)
    }
}

impl Measure {
    /// Returns the larger value of each error.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            ulps: self.ulps.max(other.ulps),
            relative: self.relative.max(other.relative),
            of_tolerance: self.of_tolerance.max(other.of_tolerance),
        }
    }
}

/// The wrong elements of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// The number of the result.
    pub result: usize,
    /// The number of wrong elements.
    pub wrong: usize,
    /// The number of elements.
    pub total: usize,
    /// The indices of the first wrong element.
    pub position: Vec<usize>,
    /// The expected element, or the expected type.
    pub expected: String,
    /// The plugin's element, or the type of its result.
    pub found: String,
    /// The largest error, if the elements are floating-point or complex numbers.
    pub largest: Option<Measure>,
    /// The tolerance and its reason.
    pub tolerance: String,
    /// The relation of the wrong elements to the expected ones, if it is a simple one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

/// Sends a message to the parent.
pub(super) fn send(message: &Message) {
    if let Ok(json) = serde_json::to_string(message) {
        child::send(&json);
    }
}
