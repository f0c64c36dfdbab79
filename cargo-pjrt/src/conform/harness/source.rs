//! The sources of rules: who demands that plugins follow them.

use std::fmt;

use serde::Serialize;

use crate::requirements::Profile;

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

    /// Returns the hosts that depend on the rule as far as the source says: those that call the function that the header's sentence is
    /// about, and the host that is named.
    pub(crate) fn hosts(self) -> Vec<Profile> {
        match self {
            Self::Header { place, .. } => Profile::that_call(function_of(place)),
            Self::Host { place, .. } => {
                let is_of = |(prefix, _): &&(&str, &[Profile])| place.starts_with(prefix);
                HOSTS.iter().find(is_of).map_or_else(Vec::new, |(_, hosts)| hosts.to_vec())
            }
            Self::Advice { .. } => Vec::new(),
        }
    }
}

/// The names of hosts at the start of a place. XLA's client is a library of two of them.
const HOSTS: &[(&str, &[Profile])] = &[
    ("JAX", &[Profile::Jax]),
    ("XLA's client", &[Profile::Jax, Profile::TorchXla]),
    ("PyTorch/XLA", &[Profile::TorchXla]),
    ("go-xla", &[Profile::Gomlx]),
    ("ZML", &[Profile::Zml]),
    ("crate pjrt", &[Profile::PjrtRs]),
    ("XLA, ", &[Profile::Jax, Profile::TorchXla]),
    ("A training loop of JAX or PyTorch/XLA", &[Profile::Jax, Profile::TorchXla]),
    ("NumPy", &Profile::ALL),
];

/// Returns the function of the table that a place of the header is about: itself, or the function to which a struct belongs.
fn function_of(place: &str) -> &str {
    let name = place.split("::").next().unwrap_or(place);
    match name {
        "PJRT_ExecuteOptions" => "PJRT_LoadedExecutable_Execute",
        "PJRT_Program" => "PJRT_Client_Compile",
        _ => name.trim_end_matches("_Args"),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn header(place: &'static str) -> Vec<Profile> {
        Source::Header { place, text: "" }.hosts()
    }

    #[test]
    fn hosts_that_call_the_function_of_the_sentence_depend_on_the_rule() {
        let callers = Profile::that_call("PJRT_LoadedExecutable_Execute");
        assert_eq!(callers, Profile::ALL);
        assert_eq!(header("PJRT_LoadedExecutable_Execute_Args::output_lists"), callers);
        assert_eq!(header("PJRT_ExecuteOptions::launch_id"), callers);
        assert_eq!(header("PJRT_Buffer_Bitcast"), [Profile::Gomlx]);
        assert!(header("pjrt_c_api_raw_buffer_extension.h").is_empty());
    }

    #[test]
    fn a_host_that_is_named_depends_on_the_rule() {
        let host = |place| Source::Host { place, text: "" }.hosts();
        assert_eq!(host("ZML, zml/mem.zig"), [Profile::Zml]);
        assert_eq!(host("XLA's client, pjrt_api.cc"), [Profile::Jax, Profile::TorchXla]);
        assert!(Source::Advice { text: "" }.hosts().is_empty());
    }
}
