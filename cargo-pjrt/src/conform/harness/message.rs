//! The messages of a process that runs checks to its parent.

use serde::{Deserialize, Serialize};

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

/// The sentence about a plugin that does not call the callbacks of events that are ready already, which many checks notice.
pub(crate) const MISSED_CALLBACKS: &str = "PJRT_Event_OnReady does not call the callback of an event that is ready already: the \
                                           plugin probably keeps it for a completion that does not come again";

/// The sentence about a plugin whose functions answer with what is true of an earlier object, which many checks notice.
pub(crate) const STALE: &str = "the plugin probably keeps what it knows of an object by its address, which was that of an object \
                                that the host has destroyed";

/// The words before the calls in which a process ended.
pub(crate) const DURING: &str = " during ";

/// The cause of wrong bytes of an array that the host holds, which many checks notice.
pub(crate) const FREED_WHILE_HELD: &str = "PJRT_Buffer_Delete probably frees the memory although \
                                           PJRT_Buffer_IncreaseExternalReferenceCount was called more often than \
                                           PJRT_Buffer_DecreaseExternalReferenceCount";

/// The sentence about events that have the error of an earlier call, which many checks notice.
pub(crate) const KEPT_ERROR: &str = "the plugin probably keeps the error of a call for a later event";

/// The sentence about outputs that keep their memory after they were destroyed, which many checks notice.
pub(crate) const LEAKED_OUTPUT: &str = "PJRT_Buffer_Destroy of an output of PJRT_LoadedExecutable_Execute probably does not free \
                                        its memory";

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

/// The sentence about a crash of a function that does not respect the size of its caller's struct.
pub(crate) const PAST_THE_END: &str = "the plugin accessed memory past the end of its caller's struct, or through an invalid \
                                       pointer in it";

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
