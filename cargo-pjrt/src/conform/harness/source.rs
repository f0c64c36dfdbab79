//! The sources of rules: who demands that plugins follow them.

use std::fmt;

use serde::Serialize;

/// The source of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Source {
    /// The header `pjrt_c_api.h`, or the header of an extension.
    Header {
        /// The function, struct or field that the sentence is about.
        place: &'static str,
        /// The sentence, quoted or in other words.
        text: &'static str,
    },
    /// A host that depends on the rule.
    Host {
        /// The host's file and function.
        place: &'static str,
        /// The host's behavior.
        text: &'static str,
    },
    /// Neither the header nor a host demands the rule. A plugin that does not follow it fails no run.
    Advice {
        /// The benefit of following the rule.
        text: &'static str,
    },
}

impl Source {
    /// Returns `true` if neither the header nor a host demands the rule.
    #[must_use]
    pub fn is_advice(self) -> bool {
        matches!(self, Self::Advice { .. })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { place, text } => write!(f, "header, {place}: {text}"),
            Self::Host { place, text } => write!(f, "host, {place}: {text}"),
            Self::Advice { text } => write!(f, "advice: {text}"),
        }
    }
}
