//! The stages of an inspection, which the child process reports to its parent.

use serde::{Deserialize, Serialize};

use super::report::{Report, Step};

/// A stage of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Stage {
    Loading,
    Reading,
    Initializing,
    Creating,
    Querying,
    End,
}

impl Stage {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Loading => "loading the library",
            Self::Reading => "reading its function table",
            Self::Initializing => "initializing the plugin",
            Self::Creating => "creating a client",
            Self::Querying => "calling the client's query functions",
            Self::End => "the end",
        }
    }

    /// Records the outcome of a stage that did not succeed.
    pub(super) fn note(self, report: &mut Report, step: Step) {
        match self {
            Self::Loading | Self::Reading => {
                report.load_error = Some(format!("{}: {}", self.name(), step.text()))
            }
            Self::Initializing => report.initialize = step,
            Self::Creating | Self::Querying | Self::End => report.client = step,
        }
    }
}
