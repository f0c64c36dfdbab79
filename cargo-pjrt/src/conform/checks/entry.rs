//! The tables of checks, which consist of an [`Entry`] for each check.

use crate::conform::harness::{Check, Context, Source, Users, Verdict};
use crate::requirements::Profile;

/// A check in the table of an area.
pub(super) struct Entry {
    name: &'static str,
    rule: &'static str,
    run: fn(&Context) -> Verdict,
    fault: &'static str,
    source: Source,
    is_of_the_table: bool,
    since: i32,
    needed_by: &'static [Profile],
    used_by: &'static [Profile],
    is_only_used_by: bool,
    needed_since: i32,
    also: &'static [&'static str],
}

/// All hosts.
pub(super) const ALL: &[Profile] = &Profile::ALL;

/// No host: the hosts that call the function never do what the rule is about.
pub(super) const NONE: &[Profile] = &[];

/// Creates a row of a table: the name, the rule, the check, and the fault that it detects.
pub(super) const fn check(
    name: &'static str,
    rule: &'static str,
    run: fn(&Context) -> Verdict,
    fault: &'static str,
) -> Entry {
    Entry {
        name,
        rule,
        run,
        fault,
        source: Source::Header { place: "", text: "" },
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        used_by: &[],
        is_only_used_by: false,
        needed_since: 0,
        also: &[],
    }
}

impl Entry {
    /// Sets the sentence of the header that demands the rule, and the function, struct or field that the
    /// sentence is about.
    pub(super) const fn header(self, place: &'static str, text: &'static str) -> Self {
        Self { source: Source::Header { place, text }, ..self }
    }

    /// Sets the file and the function of a host that depends on the rule, and the host's behavior.
    pub(super) const fn host(self, place: &'static str, text: &'static str) -> Self {
        Self { source: Source::Host { place, text }, ..self }
    }

    /// Marks a rule that neither the header nor a host demands, and states the benefit of following it.
    pub(super) const fn advice(self, text: &'static str) -> Self {
        Self { source: Source::Advice { text }, ..self }
    }

    /// Marks a check that calls no function of the table, so that the plugin need not be initialized.
    pub(super) const fn of_the_table(self) -> Self {
        Self { is_of_the_table: true, ..self }
    }

    /// Sets the minor version from which the rule applies.
    pub(super) const fn since(self, minor: i32) -> Self {
        Self { since: minor, ..self }
    }

    /// Sets the hosts that require the rule, and do not tolerate a plugin that lacks the feature.
    pub(super) const fn needed_by(self, profiles: &'static [Profile]) -> Self {
        Self { needed_by: profiles, ..self }
    }

    /// Adds hosts that use the feature if the plugin has it: they crash, hang or compute wrong results if the plugin then
    /// breaks the rule. Those of the [source](Source::hosts) do.
    pub(super) const fn used_by(self, profiles: &'static [Profile]) -> Self {
        Self { used_by: profiles, ..self }
    }

    /// Sets the hosts that use the feature if the plugin has it, because not all hosts of the source do what the rule is about.
    pub(super) const fn only_used_by(self, profiles: &'static [Profile]) -> Self {
        Self { is_only_used_by: true, ..self.used_by(profiles) }
    }

    /// Sets the minor version from which these hosts require the rule. They accept older plugins that break
    /// it, or the kit cannot check the rule for older plugins.
    pub(super) const fn needed_since(self, minor: i32) -> Self {
        Self { needed_since: minor, ..self }
    }

    /// Sets the other checks that detect the fault.
    pub(super) const fn also(self, checks: &'static [&'static str]) -> Self {
        Self { also: checks, ..self }
    }
}

impl From<&Entry> for Check {
    fn from(entry: &Entry) -> Self {
        Self {
            name: entry.name.to_owned(),
            rule: entry.rule.into(),
            source: entry.source,
            is_of_the_table: entry.is_of_the_table,
            since: entry.since,
            needed_by: entry.needed_by,
            users: match entry.is_only_used_by {
                true => Users::These(entry.used_by),
                false => Users::OfSource(entry.used_by),
            },
            needed_since: entry.needed_since,
            fault: entry.fault.into(),
            also: entry.also,
            run: Box::new(entry.run),
        }
    }
}
