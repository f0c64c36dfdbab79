//! A program whose needs are listed.

use crate::run::Job;

/// A program, or the error of reading it.
pub(super) struct Source {
    /// The tier, folder or recording that it belongs to.
    pub(super) tier: String,
    pub(super) name: String,
    /// `true` if it is a failure that a plugin refuses the program.
    pub(super) required: bool,
    pub(super) job: Result<Job, String>,
}
