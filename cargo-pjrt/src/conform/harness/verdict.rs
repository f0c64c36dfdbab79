//! The result of a check, and the assertions that checks consist of.

use serde::{Deserialize, Serialize};

use pjrt_testing::host::{Code, Error, Result};

/// The result of a check.
pub(crate) type Verdict = std::result::Result<(), Finding>;

/// The reason why a check did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The plugin breaks the rule.
    Wrong(String),
    /// The plugin follows the rule, but not the advice that comes with it, such as which code an error has.
    Advice(String),
    /// The plugin does not support the feature.
    Unsupported(String),
    /// The rule does not apply, such as one about several devices to a plugin that has one.
    NotApplicable(String),
}

impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        if error.code == Code::UNIMPLEMENTED {
            Self::Unsupported(error.to_string())
        } else {
            Self::Wrong(error.to_string())
        }
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The plugin follows the rule.
    Passed,
    /// The plugin does not support the feature.
    Unsupported,
    /// The rule does not apply to the plugin.
    NotApplicable,
    /// The plugin breaks the rule.
    Wrong,
    /// The process crashed.
    Crashed,
    /// The check took too long.
    TimedOut,
    /// The plugin does not support the feature, which the host of the profile requires.
    Missing,
    /// The plugin does not follow a rule that neither the header nor a host demands.
    Advice,
}

impl Status {
    /// Returns `true` if the outcome is a failure.
    #[must_use]
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Wrong | Self::Crashed | Self::TimedOut | Self::Missing)
    }

    /// Returns `true` if the plugin does not follow the rule, even if that is not a failure.
    #[must_use]
    pub fn is_complaint(self) -> bool {
        self.is_failure() || self == Self::Advice
    }

    /// Returns a short name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unsupported => "unsupported",
            Self::NotApplicable => "not applicable",
            Self::Wrong => "WRONG",
            Self::Crashed => "CRASHED",
            Self::TimedOut => "TIMED OUT",
            Self::Missing => "MISSING",
            Self::Advice => "ADVICE",
        }
    }
}

/// The reason why a check of several devices does not apply. The report counts these checks.
pub(crate) const ONE_DEVICE: &str = "there is only one device";

/// Fails the check unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conform::harness::Finding::Wrong(format!($($message)+)));
        }
    };
}
pub(crate) use ensure;

/// Fails the check unless the values are equal.
pub(crate) fn equal<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> Verdict {
    ensure!(got == expected, "{what} is {}; expected {}", shortened(&got), shortened(&expected));
    Ok(())
}

/// Returns the text of a value for a message. Of a long one, such as the bytes of an array, it is the beginning.
fn shortened(value: &impl std::fmt::Debug) -> String {
    const LONGEST: usize = 240;
    let text = format!("{value:?}");
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} characters)", &text[..end], text.chars().count()),
        None => text,
    }
}

/// Fails the check unless the call returned an error. If it does not have this code, or its message does not
/// contain these texts, the plugin does not follow advice, because the header prescribes neither.
pub(crate) fn refused<T>(what: &str, outcome: Result<T>, code: Code, contains: &[&str]) -> Verdict {
    refused_with(what, outcome, &[code], contains)
}

/// The same as [`refused`], with several permitted codes.
pub(crate) fn refused_with<T>(what: &str, outcome: Result<T>, codes: &[Code], contains: &[&str]) -> Verdict {
    let names: Vec<String> = codes.iter().map(ToString::to_string).collect();
    let names = names.join(" or ");
    let Err(error) = outcome else {
        return Err(Finding::Wrong(format!("{what} was accepted; expected the error {names}")));
    };
    if error.code == Code::UNIMPLEMENTED && !codes.contains(&error.code) {
        return Err(error.into());
    }
    ensure!(!error.is_of_success, "{what} was accepted ({error}); expected the error {names}");
    if !codes.contains(&error.code) {
        return Err(Finding::Advice(format!("{what} was refused with {error}; the usual code is {names}")));
    }
    match contains.iter().find(|part| !error.message.contains(**part)) {
        None => Ok(()),
        Some(part) => Err(Finding::Advice(format!(
            "{what} was refused with {:?}; a message that contains {part:?} tells the user why",
            error.message
        ))),
    }
}

/// The sentence about a plugin that keeps the pointer to a text of the host, which many checks notice.
pub(crate) const KEPT_TEXT: &str = "the text consists of the bytes with which the host overwrote its memory after the call: the \
                                    plugin probably keeps the pointer to the text instead of a copy";

/// The text about a callback that a check waited for in vain.
pub(crate) const NOT_CALLED: &str = "no outcome: the callback was not called";

/// Describes the first call of a callback, or that there was none.
pub(crate) fn described(outcome: Option<&Result<()>>) -> String {
    match outcome {
        None => NOT_CALLED.to_owned(),
        Some(Ok(())) => "success".to_owned(),
        Some(Err(error)) => format!("the error {error}"),
    }
}

/// Returns a number and the noun in the right form, such as `1 byte` or `2 bytes`.
pub(crate) fn count_of(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Returns the sentence about a text that the plugin did not copy, if a message consists of the bytes with which the host
/// overwrites what it passed. Such bytes are not UTF-8.
pub(crate) fn kept_text(message: &str) -> Option<&'static str> {
    message.contains("\u{fffd}\u{fffd}\u{fffd}").then_some(KEPT_TEXT)
}

/// The sentences about an observer that receives success instead of an error, which many checks notice.
pub(crate) const LOST_BY_CALLBACK: &str =
    "the plugin probably does not pass the error of the event to the callback of PJRT_Event_OnReady";
pub(crate) const LOST_BY_EXECUTION: &str = "the plugin probably completes the event in `device_complete_events` of a failed \
                                            execution before the execution, or without its error";

/// The sentence about a callback that is never called, which many checks notice.
pub(crate) const LOST_CALLBACK: &str = "the plugin probably keeps one callback for each event, or drops the callbacks of an event that the \
     host destroys";

/// The sentence about arrays that are not in the default memory, which many checks notice.
pub(crate) const NOT_THE_DEFAULT: &str =
    "PJRT_Device_DefaultMemory does not return the memory in which arrays are by default";

/// Returns the sentence about an observer that receives success instead of an error. The text names the observer.
pub(crate) fn lost_error(observer: &str) -> &'static str {
    match observer {
        _ if observer.contains("callback of") || observer.contains("the callback") => LOST_BY_CALLBACK,
        _ if observer.contains("the event of an execution")
            || observer.contains("device_complete_events") =>
        {
            LOST_BY_EXECUTION
        }
        _ => "the plugin probably drops or replaces the error for this observer",
    }
}

/// Fails the check unless the outcome is the host's own error, with this code and a message that contains this
/// text.
pub(crate) fn fails_with<T>(what: &str, outcome: Result<T>, code: Code, text: &str) -> Verdict {
    let Err(error) = outcome else {
        let cause = lost_error(what);
        return Err(Finding::Wrong(format!(
            "{what} reports success; expected the host's error {code}: {text}; {cause}"
        )));
    };
    if error.code == Code::UNIMPLEMENTED && code != Code::UNIMPLEMENTED {
        return Err(error.into());
    }
    let cause = kept_text(&error.message).map_or(String::new(), |cause| format!("; {cause}"));
    ensure!(
        error.code == code && error.message.contains(text),
        "{what} failed with {error}; expected the host's error {code}: {text}{cause}"
    );
    Ok(())
}
