//! The messages of a process that runs checks to its parent.

use serde::{Deserialize, Serialize};

use super::causes::PAST_THE_END;
use super::verdict::Status;
use crate::process::child;

/// A message of a child.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// The library cannot be loaded as a plugin.
    Unusable(String),
    /// The library is loaded, and reports this version of the C API.
    Loaded((i32, i32)),
    /// The child is about to initialize the plugin.
    Initializing,
    /// The initialization failed.
    Uninitialized(String),
    /// Arrays are in the memory of the host's processor.
    OnCpu,
    /// A check begins.
    Started(String),
    /// The check calls this function for the first time.
    Called(String),
    /// A call that compiles or loads a program returned.
    Compiled,
    /// The check enters a step that many checks share.
    Entered(Step),
    /// The step ended, with or without an error.
    Left(Step),
    /// The check begins calls that make the process access invalid memory if the plugin breaks the rule; the text
    /// says why. `None` ends these calls.
    Risk(Option<String>),
    /// The check performs this step, such as one of a random sequence of calls. `None` ends it.
    Performing(Option<String>),
    /// The plugin's message about an option that it does not know, which often names the options that exist.
    UnknownOption(String),
    /// The check ended.
    Finished(Finished),
}

/// The outcome of a check, as the child reports it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Finished {
    pub(crate) status: Status,
    /// The reason, unless the check passed.
    pub(crate) message: String,
    /// The functions that the check called.
    pub(crate) functions: Vec<String>,
    /// `true` if the check created a client.
    pub(crate) had_client: bool,
    /// `true` if the check did not apply because no client can be created.
    pub(crate) lacks_client: bool,
    /// `true` if the check failed after it had waited for a callback or a condition in vain.
    pub(crate) in_vain: bool,
}

/// Sends a message to the parent.
pub(crate) fn send(message: &Message) {
    if let Ok(json) = serde_json::to_string(message) {
        child::send(&json);
    }
}

/// Performs a step of a check, and reports its beginning and its end to the parent.
pub(crate) fn in_step<T>(step: Step, work: impl FnOnce() -> T) -> T {
    send(&Message::Entered(step));
    let done = work();
    send(&Message::Left(step));
    done
}

/// Performs calls that crash if the plugin breaks the rule, for this reason.
pub(crate) fn risky<T>(why: &str, work: impl FnOnce() -> T) -> T {
    send(&Message::Risk(Some(why.to_owned())));
    let done = work();
    send(&Message::Risk(None));
    done
}

/// Performs a step of a check, such as one of a random sequence of calls, which the report names if the plugin crashes or hangs
/// in it. The time limit begins anew.
pub(crate) fn performing<T>(what: String, work: impl FnOnce() -> T) -> T {
    send(&Message::Performing(Some(what)));
    let done = work();
    send(&Message::Performing(None));
    done
}

/// Performs calls with guarded structs, so that an invalid access is one past a struct's end or of an invalid pointer
/// in it.
pub(crate) fn guarded<T>(fence: &str, work: impl FnOnce() -> T) -> T {
    let why = format!("{PAST_THE_END}: the host passed {fence}");
    risky(&why, work)
}

/// A step that many checks begin with. If a plugin hangs in it, each of these checks would run into the time
/// limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Creates a client.
    Client,
    /// Compiles the program that all checks run.
    Compilation,
    /// Transfers four numbers to a device.
    Upload,
}

impl Step {
    /// Returns a description.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Client => "creating a client",
            Self::Compilation => "compiling the program add",
            Self::Upload => "transferring four numbers to a device",
        }
    }
}
