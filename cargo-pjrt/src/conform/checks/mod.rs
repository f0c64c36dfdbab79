//! The checks, in one module per area.

/// The functions that the language of the fault plugin can name.
#[cfg(test)]
mod functions {
    pub(super) use pjrt_testing::host::EXTENSION_FUNCTIONS;
}

/// The language of the fault plugin.
#[cfg(test)]
#[path = "../../../examples/fault_proxy/fault.rs"]
#[allow(dead_code, reason = "tests only parse faults; the proxy injects them")]
mod fault;

mod aftermath;
mod agreement;
mod arrays;
mod bitcasts;
mod bits;
mod buffer;
mod callbacks;
mod calls;
mod chains;
mod channels;
mod client;
mod codes;
mod combinations;
mod compile;
mod concurrent;
mod contexts;
mod default_layouts;
mod derived;
mod devices;
mod donation;
mod entry;
mod event;
mod executables;
mod execute;
mod exhaustion;
mod extended;
mod extension;
mod extremes;
mod failures;
mod growth;
mod hazards;
mod hosts;
mod isolation;
mod layouts;
mod leaks;
mod lent;
mod lifetime;
mod memory;
mod observers;
mod optimized;
mod options;
mod orders;
mod outliving;
mod outputs;
mod ownership;
mod pairs;
mod passed;
mod pending;
mod pending_uses;
mod placement;
mod plugin;
mod process_state;
mod processes;
mod profiler;
mod program_text;
mod programs;
mod properties;
mod rare_extensions;
mod raw_buffers;
mod readback;
mod readers;
mod reentrant;
mod reloaded;
mod repeats;
mod reports;
mod results;
mod returned;
mod reuse;
mod samples;
mod shapes;
mod sizes;
mod special;
mod struct_size;
mod texts;
mod threads;
mod transfer;
mod upload;
mod uses;
mod variations;
mod view;
mod waiting;
mod ways;
mod wide;
mod without_hazard;

use crate::conform::harness::Check;
use crate::conform::random::by_theme;
pub(super) use process_state::note_start;

/// The tables of checks, in the order in which they run.
const TABLES: &[&[entry::Entry]] = &[
    plugin::CHECKS,
    client::CHECKS,
    memory::CHECKS,
    event::CHECKS,
    upload::CHECKS,
    readback::CHECKS,
    sizes::CHECKS,
    buffer::CHECKS,
    derived::CHECKS,
    special::CHECKS,
    view::CHECKS,
    transfer::CHECKS,
    compile::CHECKS,
    execute::CHECKS,
    programs::CHECKS,
    executables::CHECKS,
    devices::CHECKS,
    placement::CHECKS,
    passed::CHECKS,
    failures::CHECKS,
    waiting::CHECKS,
    lifetime::CHECKS,
    hosts::CHECKS,
    ownership::CHECKS,
    layouts::CHECKS,
    bits::CHECKS,
    lent::CHECKS,
    reuse::CHECKS,
    hazards::CHECKS,
    exhaustion::CHECKS,
    donation::CHECKS,
    properties::CHECKS,
    optimized::CHECKS,
    extension::CHECKS,
    texts::CHECKS,
    agreement::CHECKS,
    repeats::CHECKS,
    isolation::CHECKS,
    reloaded::CHECKS,
    processes::CHECKS,
    options::CHECKS,
    reports::CHECKS,
    pairs::CHECKS,
    codes::CHECKS,
    default_layouts::CHECKS,
    bitcasts::CHECKS,
    raw_buffers::CHECKS,
    outliving::CHECKS,
    extremes::CHECKS,
    observers::CHECKS,
    leaks::CHECKS,
    growth::CHECKS,
    orders::CHECKS,
    reentrant::CHECKS,
    process_state::CHECKS,
    extended::CHECKS,
    profiler::CHECKS,
    contexts::CHECKS,
    chains::CHECKS,
    results::CHECKS,
    callbacks::CHECKS,
    combinations::CHECKS,
    wide::CHECKS,
    rare_extensions::CHECKS,
    channels::CHECKS,
    pending_uses::CHECKS,
];

/// Returns the checks of all areas, in the order in which they run.
pub(super) fn all() -> Vec<Check> {
    let mut checks: Vec<Check> = TABLES.iter().copied().flatten().map(Check::from).collect();
    checks.extend(upload::by_type());
    checks.extend(view::by_type());
    checks.extend(shapes::by_property());
    checks.extend(ways::by_way());
    checks.extend(readers::by_reader());
    // These take longer than others, so that they must not be the last ones.
    checks.extend(by_theme());
    checks.extend(struct_size::by_function());
    checks.extend(outputs::by_function());
    checks.extend(returned::by_function());
    checks.extend(aftermath::by_way());
    checks.extend(extension::by_extension());
    checks.extend(concurrent::by_work());
    checks.extend(variations::by_area());
    checks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::harness::Source;

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

    /// Faults select executions by the launch id, so a shared one would inject a fault into an unrelated check.
    #[test]
    fn faults_select_executions_of_one_check() {
        let checks = all();
        let id = |check: &Check| check.fault.split_once("launch_id=").map(|(_, rest)| rest[..3].to_owned());
        let mut ids: Vec<String> = checks.iter().filter_map(id).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }

    #[test]
    fn every_rule_has_a_source() {
        for check in all() {
            let (place, text) = match check.source {
                Source::Header { place, text } | Source::Host { place, text } => (place, text),
                Source::Advice { text } => ("-", text),
            };
            let is_sentence = text.ends_with(['.', '?']) && text.len() > 10;
            assert!(!place.is_empty() && is_sentence, "{}: {}", check.name, check.source);
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
