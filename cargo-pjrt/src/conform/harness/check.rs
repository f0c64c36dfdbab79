//! A check: a rule, and the code that checks it.

use std::borrow::Cow;

use super::context::Context;
use super::source::Source;
use super::verdict::Verdict;
use crate::requirements::Profile;

/// A rule, and the code that checks it.
pub struct Check {
    /// The name, `area/rule`.
    pub name: String,
    /// The rule, as a sentence that tells an author what the plugin must do.
    pub rule: Cow<'static, str>,
    /// The reason for the rule. If it is only advice, the check fails no run.
    pub source: Source,
    /// `true` if the check only examines the table, and calls no function.
    pub is_of_the_table: bool,
    /// The minor version of the C API from which the rule holds.
    pub since: i32,
    /// The hosts that require the rule, and do not tolerate a plugin that lacks the feature.
    pub needed_by: &'static [Profile],
    /// The hosts that use the feature if the plugin has it, and then require the rule.
    pub(crate) users: Users,
    /// The minor version of the C API from which these hosts require the rule. They accept older plugins
    /// without it, or the kit can only check newer ones.
    pub needed_since: i32,
    /// A fault that breaks the rule, for the fault plugin.
    pub fault: Cow<'static, str>,
    /// Other checks that this fault makes fail, because they depend on the behavior that it breaks. A name
    /// that ends with `*` matches all names with this prefix.
    pub also: &'static [&'static str],
    pub(crate) run: Box<dyn Fn(&Context) -> Verdict + Send + Sync>,
}

/// The hosts that use the feature of a rule if the plugin has it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Users {
    /// These hosts.
    These(&'static [Profile]),
    /// The hosts that call this function of the table.
    Callers(&'static str),
    /// The hosts that the source of the rule is about, and these.
    OfSource(&'static [Profile]),
}

impl Check {
    /// Returns the hosts that use the feature if the plugin has it, and then require the rule.
    #[must_use]
    pub fn used_by(&self) -> Vec<Profile> {
        match self.users {
            Users::These(hosts) => hosts.to_vec(),
            Users::Callers(function) => Profile::that_call(function),
            Users::OfSource(others) => {
                let of_source = self.source.hosts();
                let uses = |host: &Profile| others.contains(host) || of_source.contains(host);
                Profile::ALL.into_iter().filter(uses).collect()
            }
        }
    }

    /// Returns `true` if a plugin that breaks this rule necessarily fails the check with this name too.
    #[must_use]
    pub fn breaks(&self, name: &str) -> bool {
        self.also.iter().any(|pattern| matches(pattern, name))
    }

    /// Returns `true` if the check runs other checks again.
    pub(crate) fn runs_again(&self) -> bool {
        runs_again(&self.name)
    }

    /// Returns `true` if other processes disturb the check, because what it finds depends on the speed of threads, or it fills the
    /// memory of a device.
    pub(crate) fn runs_by_itself(&self) -> bool {
        ["hazards/", "exhaustion/"].iter().any(|area| self.name.starts_with(area))
    }

    /// Returns the hosts that a plugin of this minor version fails if it breaks the rule.
    pub(crate) fn hosts(&self, minor: i32) -> impl Iterator<Item = Profile> {
        let users = self.used_by();
        Profile::ALL.into_iter().filter(move |host| {
            minor >= self.needed_since && (self.needed_by.contains(host) || users.contains(host))
        })
    }
}

/// Returns `true` if the name matches the pattern, in which a final `*` matches any suffix.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

impl std::fmt::Debug for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Check({})", self.name)
    }
}

/// The default time limit of each check in seconds.
pub const TIMEOUT: &str = "60";

/// The check that fails if the plugin cannot be initialized. Then only the checks of the table run.
pub(crate) const INITIALIZES: &str = "plugin/initializes";

/// The check after which the process ends normally, so that its exit status and duration can be examined.
pub(crate) const PROCESS_ENDS: &str = "plugin/process_ends";

/// The check that measures the process, whose memory must not contain what other checks freed.
pub(crate) const RESIDENT: &str = "repeats/no_work_grows_the_process";

/// The check that fails if no client can be created. Then the other checks do not apply.
pub(crate) const CLIENT: &str = "client/can_be_made";

/// The areas of the checks that run other checks again, with a variation.
const AGAIN: [&str; 5] = ["last_device", "second_client", "another_thread", "another_memory", "used_client"];

/// Returns `true` if the check with this name runs other checks again.
pub(crate) fn runs_again(name: &str) -> bool {
    name.split_once('/').is_some_and(|(area, _)| AGAIN.contains(&area))
}
