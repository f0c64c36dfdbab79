//! Every check of the conformance kit notices the fault that is planted for it, and others do not fail with it.
//!
//! The faults are planted into `hello`, and where `TEST_REFCPU` names refcpu's library, into that too, which has more of the
//! interface. With `FAULT_MATRIX=full`, each fault is shown to every check that calls the faulty function; the others see
//! the good plugin, so that they cannot fail with it. Otherwise to its own check and a few that stand for the others.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use cargo_pjrt::conform::{Check, Report, Row, Status, checks};
use common::{cargo_pjrt, example, hello};

mod common;

/// How many faults are tried at the same time.
const WORKERS: usize = 8;

/// What stands for all other checks: one of each kind of object, and of what every host does.
const SENTINELS: &[&str] = &[
    "plugin/initialize_twice",
    "client/devices_exist",
    "event/wait_for_data",
    "upload/of_rank_6",
    "buffer/dims_stay",
    "compile/name",
    "execute/adds",
];

/// What the kit says about a plugin with a fault; without one if the text is empty. Of all checks if none are named.
fn conform_with(plugin: &Path, fault: &str, only: &[&str], timeout: u64) -> Report {
    let output = cargo_pjrt()
        .args(["conform", "--json", &format!("--timeout={timeout}")])
        .args(only.iter().map(|name| format!("--check={name}")))
        .arg(example("fault_proxy"))
        .env("FAULT_PROXY_INNER", plugin)
        .env("FAULT_PROXY", fault)
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
    let failed = |row: &&Row| row.status.is_failure();
    let noticed = report.rows.iter().filter(failed).any(|row| row.name == check.name);
    let names = report.rows.iter().filter(failed).map(|row| row.name.as_str());
    let mut others: Vec<&str> = names.filter(|name| *name != check.name).collect();
    println!(
        "{}: {} of {} others failed: {}",
        check.name,
        others.len(),
        report.rows.len() - 1,
        others.join(" ")
    );
    others.retain(|name| !is_among(name, check.also));
    match (noticed, others.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{}: not noticed: {}", check.name, check.fault)),
        (true, false) => Err(format!("{}: {} also failed: {}", check.name, check.fault, others.join(" "))),
    }
}

/// The checks that a fault is shown to.
fn spectators<'a>(check: &Check, good: &'a Report, full: bool) -> Vec<&'a str> {
    let function = check.fault.split(' ').next().unwrap_or("");
    let sees = |row: &&Row| {
        let calls = function == "GetPjrtApi" || row.functions.iter().any(|called| called == function);
        // With the grossest faults, anything may fail.
        let is_gross = check.also.contains(&"*");
        row.name == check.name || calls && !is_gross && (full || SENTINELS.contains(&row.name.as_str()))
    };
    let passed = good.rows.iter().filter(|row| row.status == Status::Passed);
    passed.filter(sees).map(|row| row.name.as_str()).collect()
}

/// Plants all faults into a plugin that passes, as far as its checks apply.
fn plant_all(plugin: &Path) {
    let exists = |name: &&&str| checks().iter().any(|check| check.name == **name);
    assert_eq!(SENTINELS.iter().filter(exists).count(), SENTINELS.len());
    let full = std::env::var("FAULT_MATRIX").is_ok_and(|matrix| matrix == "full");
    let only = std::env::var("FAULT_FILTER").unwrap_or_default();
    let good = conform_with(plugin, "", &[], 60);
    let passes =
        |check: &Check| good.rows.iter().any(|row| row.name == check.name && row.status == Status::Passed);
    let mut complaints: Vec<String> =
        good.rows.iter().filter(|row| row.status.is_failure()).map(|row| row.text()).collect();
    let checks: Vec<Check> =
        checks().into_iter().filter(|check| passes(check) && check.name.contains(&only)).collect();
    // Mostly waiting, for what a fault keeps from coming.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut complaints = Vec::new();
        while let Some(check) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let report = conform_with(plugin, &check.fault, &spectators(check, &good, full), 60);
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
    println!("{}: {} faults planted", plugin.display(), checks.len());
    assert!(complaints.is_empty(), "of {} faults:\n{}", checks.len(), complaints.join("\n"));
    assert!(!checks.is_empty(), "no fault could be planted");
}

#[test]
fn every_fault_is_noticed_by_its_check_and_no_unrelated_one() {
    plant_all(&hello());
}

#[test]
fn every_fault_in_what_hello_lacks_is_noticed_too() {
    match std::env::var_os("TEST_REFCPU") {
        Some(refcpu) => plant_all(Path::new(&refcpu)),
        None => println!("TEST_REFCPU does not name refcpu's library: only hello's faults are tried"),
    }
}

#[test]
fn a_plugin_that_crashes_at_every_call_does_not_end_the_kit() {
    let names: Vec<String> =
        checks().into_iter().map(|check| check.name).filter(|name| name.starts_with("client/")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let report = conform_with(&hello(), "PJRT_Client_Create crash", &names, 60);
    assert!(report.rows.len() > 5 && report.rows.iter().all(|row| row.status == Status::Crashed));
}

#[test]
fn without_a_client_one_check_fails_and_most_do_not_apply() {
    let names = [
        "plugin/initialize_twice",
        "client/can_be_made",
        "client/two_at_once",
        "execute/adds",
        "event/set_ok",
    ];
    let report = conform_with(&hello(), "PJRT_Client_Create fail FAILED_PRECONDITION", &names, 60);
    let statuses: Vec<Status> = report.rows.iter().map(|row| row.status).collect();
    let (passed, blocked) = (Status::Passed, Status::NotApplicable);
    assert_eq!(statuses, [passed, Status::Wrong, blocked, passed, blocked], "{report:?}");
    assert!(report.rows[2].message.contains("FAILED_PRECONDITION: a planted fault"), "{report:?}");
}
