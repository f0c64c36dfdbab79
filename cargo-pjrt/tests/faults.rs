//! Every check of the conformance kit notices the fault that is planted for it, and others do not fail with it.
//!
//! The tests that are ignored need built plugins: docs/conformance.md says how to run them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use cargo_pjrt::conform::{Check, Report, Status, checks};

/// How many faults are tried at the same time.
const WORKERS: usize = 6;

fn library(variable: &str) -> PathBuf {
    std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names a shared library")).into()
}

/// What the kit says about a plugin.
fn conform(plugin: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Report {
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-pjrt"))
        .args(["conform", "--json", "--option=num_devices=2"])
        .args(arguments)
        .arg(plugin)
        .envs(environment.iter().copied())
        .output()
        .expect("the kit runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Whether a row's name is one of those, where `*` at the end stands for anything.
fn is_among(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *pattern,
    })
}

/// What is wrong with how the kit sees a fault.
fn seen(check: &Check, report: &Report) -> Result<(), String> {
    let failed = |row: &&cargo_pjrt::conform::Row| row.status.is_failure();
    let noticed = report.rows.iter().filter(failed).any(|row| row.name == check.name);
    let others: Vec<&str> = report
        .rows
        .iter()
        .filter(failed)
        .map(|row| row.name.as_str())
        .filter(|name| *name != check.name && !is_among(name, check.also))
        .collect();
    match (noticed, others.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{}: not noticed: {}", check.name, check.fault)),
        (true, false) => Err(format!("{}: {} also failed: {}", check.name, check.fault, others.join(" "))),
    }
}

#[test]
#[ignore = "needs built plugins: see docs/conformance.md"]
fn every_fault_is_noticed_by_its_check_and_no_unrelated_one() {
    let (plugin, proxy) = (library("TEST_REFCPU"), library("TEST_FAULT_PROXY"));
    let inner = plugin.display().to_string();
    let good = conform(&proxy, &[("FAULT_PROXY_INNER", &inner), ("FAULT_PROXY", "")], &["--shared"]);
    let applies =
        |check: &Check| good.rows.iter().any(|row| row.name == check.name && row.status == Status::Passed);
    let mut complaints: Vec<String> =
        good.rows.iter().filter(|row| row.status.is_failure()).map(|row| row.text()).collect();
    let only = std::env::var("FAULT_FILTER").unwrap_or_default();
    let checks: Vec<Check> =
        checks().into_iter().filter(|check| applies(check) && check.name.contains(&only)).collect();
    let planted = checks.len();
    // Mostly waiting, for what a fault keeps from coming.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut complaints = Vec::new();
        while let Some(check) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let environment = [("FAULT_PROXY_INNER", inner.as_str()), ("FAULT_PROXY", check.fault.as_str())];
            let report = conform(&proxy, &environment, &["--shared", "--timeout=5"]);
            complaints.extend(seen(check, &report).err());
        }
        complaints
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            complaints.extend(worker.join().expect("a worker ends"));
        }
    });
    complaints.sort_unstable();
    assert!(complaints.is_empty(), "of {planted} faults:\n{}", complaints.join("\n"));
    assert!(planted > 0, "no fault could be planted");
}

#[test]
#[ignore = "needs built plugins: see docs/conformance.md"]
fn a_plugin_that_crashes_at_every_call_does_not_end_the_kit() {
    let (plugin, proxy) = (library("TEST_REFCPU"), library("TEST_FAULT_PROXY"));
    let inner = plugin.display().to_string();
    let environment = [("FAULT_PROXY_INNER", inner.as_str()), ("FAULT_PROXY", "PJRT_Client_Create crash")];
    let report = conform(&proxy, &environment, &["--filter=client/", "--shared"]);
    assert!(report.rows.len() > 5 && report.rows.iter().all(|row| row.status == Status::Crashed));
}

#[test]
fn a_file_that_is_no_plugin_fails_every_check_with_the_reason() {
    let report = conform(Path::new(env!("CARGO_BIN_EXE_cargo-pjrt")), &[], &["--filter=plugin/", "--shared"]);
    assert!(report.rows.iter().all(|row| row.status == Status::Wrong), "{report:?}");
}
