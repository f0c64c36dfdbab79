//! The checks, in one module per area.

/// The functions that the language of the fault plugin can name.
#[cfg(test)]
mod functions {
    pub(super) use crate::host::EXTENSION_FUNCTIONS;
}

/// The language of the fault plugin.
#[cfg(test)]
#[path = "../../../examples/fault_proxy/fault.rs"]
#[allow(dead_code, reason = "tests only parse faults; the proxy injects them")]
mod fault;

mod buffer;
mod client;
mod compile;
mod event;
mod execute;
mod extension;
mod lifetime;
mod memory;
mod outputs;
mod plugin;
mod readback;
mod scenes;
mod special;
mod struct_size;
mod transfer;
mod upload;
mod view;

use super::{Check, Context, Finding, Verdict};
use crate::profile::Profile;

/// A check in the table of an area.
struct Entry {
    name: &'static str,
    rule: &'static str,
    run: fn(&Context) -> Verdict,
    fault: &'static str,
    is_of_the_table: bool,
    since: i32,
    needed_by: &'static [Profile],
    needed_since: i32,
    also: &'static [&'static str],
}

/// All hosts.
const ALL: &[Profile] = &Profile::ALL;

/// Creates a row of a table: the name, the rule, the check, and the fault that it detects.
const fn check(
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
        is_of_the_table: false,
        since: 0,
        needed_by: &[],
        needed_since: 0,
        also: &[],
    }
}

impl Entry {
    /// Marks a check that calls no function of the table, so that the plugin need not be initialized.
    const fn of_the_table(self) -> Self {
        Self { is_of_the_table: true, ..self }
    }

    /// Sets the minor version from which the rule applies.
    const fn since(self, minor: i32) -> Self {
        Self { since: minor, ..self }
    }

    /// Sets the hosts that require the rule.
    const fn needed_by(self, profiles: &'static [Profile]) -> Self {
        Self { needed_by: profiles, ..self }
    }

    /// Sets the minor version from which these hosts require the rule. They accept older plugins that break
    /// it, or the kit cannot check the rule for older plugins.
    const fn needed_since(self, minor: i32) -> Self {
        Self { needed_since: minor, ..self }
    }

    /// Sets the other checks that detect the fault.
    const fn also(self, checks: &'static [&'static str]) -> Self {
        Self { also: checks, ..self }
    }
}

impl From<&Entry> for Check {
    fn from(entry: &Entry) -> Self {
        Self {
            name: entry.name.to_owned(),
            rule: entry.rule.to_owned(),
            is_of_the_table: entry.is_of_the_table,
            since: entry.since,
            needed_by: entry.needed_by,
            needed_since: entry.needed_since,
            fault: entry.fault.to_owned(),
            also: entry.also,
            run: Box::new(entry.run),
        }
    }
}

/// Runs `work` on several threads, with the number of each thread, and returns the first finding.
fn on_threads(threads: u8, work: impl Fn(u8) -> Verdict + Sync) -> Verdict {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let work = &work;
                    move || work(thread)
                })
            })
            .collect();
        for thread in running {
            thread.join().map_err(|_| Finding::Wrong("a thread panicked".to_owned()))??;
        }
        Ok(())
    })
}

pub(super) fn all() -> Vec<Check> {
    let tables = [
        plugin::CHECKS,
        client::CHECKS,
        memory::CHECKS,
        event::CHECKS,
        upload::CHECKS,
        readback::CHECKS,
        buffer::CHECKS,
        special::CHECKS,
        view::CHECKS,
        transfer::CHECKS,
        compile::CHECKS,
        execute::CHECKS,
        lifetime::CHECKS,
        extension::CHECKS,
    ];
    let mut checks: Vec<Check> = tables.into_iter().flatten().map(Check::from).collect();
    checks.extend(upload::by_type());
    checks.extend(view::by_type());
    checks.extend(struct_size::by_function());
    checks.extend(outputs::by_function());
    checks.extend(extension::by_extension());
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_have_different_names_and_rules_and_a_fault() {
        let checks = all();
        assert!(checks.len() >= 200, "{}", checks.len());
        let mut names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), checks.len());
        for check in &checks {
            assert!(check.name.contains('/') && check.rule.ends_with('.'), "{}", check.name);
            assert!(!check.fault.is_empty(), "{}", check.name);
        }
    }

    #[test]
    fn faults_can_be_planted() {
        for check in all() {
            if let Err(error) = fault::Fault::parse(&check.fault) {
                panic!("{}: {}: {error}", check.name, check.fault);
            }
        }
    }

    #[test]
    fn what_is_said_to_notice_a_fault_too_exists() {
        let checks = all();
        for check in &checks {
            for also in check.also {
                let exists = match also.strip_suffix('*') {
                    Some(start) => checks.iter().any(|other| other.name.starts_with(start)),
                    None => checks.iter().any(|other| other.name == *also),
                };
                assert!(exists, "{}: {also}", check.name);
            }
        }
    }
}
