//! Tests that each check of the conformance kit detects the fault that belongs to it, and that the fault does
//! not make other checks fail.
//!
//! The faults are injected into `hello`. Those that `hello` cannot have are injected into refcpu, which implements more of
//! the interface, if `TEST_REFCPU` names its library, and those of several devices into the accelerator, if `TEST_ACCELERATOR`
//! names its library. Each fault is tried with its own check and a few others. With `FAULT_MATRIX=full`, the other plugins
//! get the faults of `hello` too, and each is tried with every check that calls the faulty function: only those may fail in
//! which the fault occurred.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cargo_pjrt::conform::{Check, Report, Row, Status, checks};
use common::{cargo_pjrt, example, hello};

mod common;

/// The number of faults that are tried at the same time.
const WORKERS: usize = 8;

/// The checks that are tried with every fault: one for each kind of object, and those of the functions that
/// every host calls.
const SENTINELS: &[&str] = &[
    "plugin/initialize_twice",
    "client/devices_exist",
    "event/wait_for_data",
    "upload/of_each_rank",
    "buffer/dims_stay",
    "compile/name",
    "execute/adds",
];

/// A plugin, and the options of its clients.
#[derive(Clone, Copy)]
struct Subject<'a> {
    plugin: &'a Path,
    options: &'a [&'a str],
}

impl<'a> From<&'a Path> for Subject<'a> {
    fn from(plugin: &'a Path) -> Self {
        Self { plugin, options: &[] }
    }
}

/// Returns the kit's report about a plugin with a fault, or without one if the text is empty. If no names are
/// given, all checks run. `flags` are options of the kit.
fn conform_with<'a>(subject: impl Into<Subject<'a>>, fault: &str, only: &[&str], flags: &[&str]) -> Report {
    let Subject { plugin, options } = subject.into();
    let output = cargo_pjrt()
        .args(["conform", "--json", "--timeout=60"])
        .args(flags)
        .args(only.iter().map(|name| format!("--check={name}")))
        .args(options.iter().map(|option| format!("--option={option}")))
        .arg(example("fault_proxy"))
        .env("FAULT_PROXY_INNER", plugin)
        .env("FAULT_PROXY", fault)
        .env("FAULT_PROXY_NOTES", "1")
        // Only the end of what a process prints is kept.
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("the kit runs");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Checks that the report about a fault is as expected: its check failed, and all others that failed are echoes of it by the
/// table of the checks or, if `many` ran, met the fault.
fn seen(check: &Check, report: &Report, many: bool) -> Result<(), String> {
    let failed = |row: &&Row| row.status.is_complaint();
    let noticed = report.rows.iter().filter(failed).any(|row| row.name == check.name);
    let others: Vec<&Row> = report.rows.iter().filter(failed).filter(|row| row.name != check.name).collect();
    let causes = report.rows.iter().filter(|row| row.status.is_failure() && row.echo_of.is_none()).count();
    println!("{}: {} of {} others failed, {causes} causes", check.name, others.len(), report.rows.len() - 1);
    // A fault of the table exists from the start.
    let is_met = |row: &Row| check.fault.starts_with("GetPjrtApi ") || row.printed.contains(OCCURS);
    let is_related = |row: &&&Row| check.breaks(&row.name) || many && is_met(row);
    let unrelated: Vec<&str> =
        others.iter().filter(|row| !is_related(row)).map(|row| row.name.as_str()).collect();
    match (noticed, unrelated.is_empty()) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{}: not noticed: {}", check.name, check.fault)),
        (true, false) => Err(format!("{}: {} also failed: {}", check.name, check.fault, unrelated.join(" "))),
    }
}

/// The text that the proxy prints when the fault occurs.
const OCCURS: &str = "an injected fault occurs";

/// Injects the fault of a check into a plugin, and runs checks. They share a process, which is several times as fast, and
/// only those whose result is not the expected one run again in processes of their own.
fn inject(subject: Subject<'_>, check: &Check, mut names: Vec<&str>, many: bool) -> Result<(), String> {
    let report = conform_with(subject, &check.fault, &names, &["--shared", "--jobs=1"]);
    if seen(check, &report, many).is_ok() {
        return Ok(());
    }
    let is_good = |name: &str| report.rows.iter().any(|row| row.name == name && !row.status.is_complaint());
    names.retain(|name| *name == check.name || !is_good(name));
    seen(check, &conform_with(subject, &check.fault, &names, &[]), many)
}

/// Returns the checks that are tried with a fault.
fn spectators<'a>(check: &Check, good: &'a Report, full: bool) -> Vec<&'a str> {
    let function = check.fault.split(' ').next().unwrap_or("");
    let sees = |row: &&Row| {
        let calls = function == "GetPjrtApi" || row.functions.iter().any(|called| called == function);
        // The gravest faults may make any check fail.
        let is_gross = check.also.contains(&"*");
        row.name == check.name || calls && !is_gross && (full || SENTINELS.contains(&row.name.as_str()))
    };
    // The checks of whole hosts and of random sequences depend on everything that they call.
    let is_broad = |name: &str| name.starts_with("host/") || name.starts_with("random/");
    let depends = |row: &&Row| is_broad(&row.name) && row.name != check.name;
    let passed = good.rows.iter().filter(|row| row.status == Status::Passed && !depends(row));
    passed.filter(sees).map(|row| row.name.as_str()).collect()
}

/// The areas whose faults are also tried in plugins with two devices.
const OF_TWO_DEVICES: &[&str] = &[
    "devices/",
    "executables/",
    "donation/",
    "programs/",
    "failures/",
    "waiting/",
    "ownership/",
    "placement/",
    "passed/",
    "memory/stats_",
    "agreement/",
    "repeats/",
    "reloaded/",
    "shapes/",
    "channels/",
    "last_device/",
    "lifetime/",
    "options/",
    "another_thread/devices",
    "second_client/devices",
    "used_client/devices",
    "pending/",
    "random/",
];

/// The areas whose faults are also tried in a plugin with four devices, whose number is an option.
const OF_FOUR_DEVICES: &[&str] = &[
    "agreement/",
    "client/options_are_of_each_client",
    "devices/chains_of_copies",
    "devices/programs_of_copies",
    "devices/replicas_",
    "memory/stats_",
    "passed/create_options",
    "placement/",
    "repeats/on_each_device",
    "shapes/copies_to_devices",
    "texts/",
    "channels/",
    "last_device/",
    "random/",
];

/// Returns the report about a plugin without a fault.
fn report_on(subject: Subject<'_>) -> Report {
    conform_with(subject, "", &[], &["--shared"])
}

fn report_on_hello() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| report_on(hello().as_path().into()))
}

/// Returns the names of the checks whose faults are tried in hello, and so not in the other plugins.
fn tried_in_hello() -> Vec<&'static str> {
    let passed = |row: &&Row| row.status == Status::Passed && !is_full();
    report_on_hello().rows.iter().filter(passed).map(|row| row.name.as_str()).collect()
}

/// The areas of all faults.
const ALL: &[&str] = &[""];

/// Returns `true` if a fault is tried with every check, and in every plugin.
fn is_full() -> bool {
    std::env::var("FAULT_MATRIX").is_ok_and(|matrix| matrix == "full")
}

/// Injects the faults of these areas into a plugin with a report that passes, if their checks apply to it and are not excluded.
fn plant(subject: Subject<'_>, good: &Report, areas: &[&str], excluded: &[&str]) {
    let exists = |name: &&&str| checks().iter().any(|check| check.name == **name);
    assert_eq!(SENTINELS.iter().filter(exists).count(), SENTINELS.len());
    let full = is_full();
    let only = std::env::var("FAULT_FILTER").unwrap_or_default();
    let is_selected = |check: &Check| {
        only.split(',').any(|part| check.name.contains(part)) && !excluded.contains(&check.name.as_str())
    };
    let passes =
        |check: &Check| good.rows.iter().any(|row| row.name == check.name && row.status == Status::Passed);
    let mut complaints: Vec<String> =
        good.rows.iter().filter(|row| row.status.is_failure()).map(|row| row.text()).collect();
    let checks: Vec<Check> =
        checks().into_iter().filter(|check| passes(check) && is_selected(check)).collect();
    let checks: Vec<Check> =
        checks.into_iter().filter(|check| areas.iter().any(|area| check.name.starts_with(area))).collect();
    // The workers mostly wait for events that a fault prevents.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut complaints = Vec::new();
        while let Some(check) = checks.get(next.fetch_add(1, Ordering::Relaxed)) {
            complaints.extend(inject(subject, check, spectators(check, good, full), full).err());
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
    println!("{} {}: {} faults injected", subject.plugin.display(), subject.options.join(" "), checks.len());
    assert!(complaints.is_empty(), "of {} faults:\n{}", checks.len(), complaints.join("\n"));
    assert!(!checks.is_empty(), "no fault could be injected");
}

#[test]
fn every_fault_is_noticed_by_its_check_and_no_unrelated_one() {
    plant(hello().as_path().into(), report_on_hello(), ALL, &[]);
}

#[test]
fn every_fault_in_what_hello_lacks_is_noticed_too() {
    match std::env::var_os("TEST_REFCPU") {
        Some(refcpu) => {
            let refcpu = Path::new(&refcpu).into();
            plant(refcpu, &report_on(refcpu), ALL, &tried_in_hello());
        }
        None => println!("TEST_REFCPU does not name refcpu's library: only the faults of hello are tried"),
    }
}

#[test]
fn every_fault_of_two_devices_is_noticed_too() {
    match std::env::var_os("TEST_ACCELERATOR") {
        Some(accelerator) => {
            let accelerator = Path::new(&accelerator).into();
            plant(accelerator, &report_on(accelerator), OF_TWO_DEVICES, &tried_in_hello());
        }
        None => println!("TEST_ACCELERATOR does not name the accelerator's library, which has two devices"),
    }
}

#[test]
fn every_fault_of_four_devices_and_of_options_is_noticed_too() {
    match std::env::var_os("TEST_REFCPU") {
        Some(refcpu) => {
            let subject = Subject { plugin: Path::new(&refcpu), options: &["num_devices=4"] };
            plant(subject, &report_on(subject), OF_FOUR_DEVICES, &tried_in_hello());
        }
        None => println!("TEST_REFCPU does not name refcpu's library, which can have four devices"),
    }
}

#[test]
fn what_the_hosts_of_hello_tolerate_is_not_missing() {
    let unsupported = report_on_hello().rows.iter().filter(|row| row.status == Status::Unsupported);
    let names: Vec<&str> = unsupported.map(|row| row.name.as_str()).collect();
    assert!(!names.is_empty());
    for host in ["jax", "gomlx"] {
        let report = conform_with(hello().as_path(), "", &names, &["--shared", "--profile", host]);
        let failures: Vec<String> =
            report.rows.iter().filter(|row| row.status.is_failure()).map(Row::text).collect();
        assert!(failures.is_empty(), "{host}:\n{}", failures.join("\n"));
    }
}

#[test]
fn a_plugin_whose_client_crashes_is_one_failure_and_is_tried_once() {
    for fault in ["PJRT_Client_Create crash", "PJRT_Client_Create exit"] {
        let names =
            ["plugin/process_ends", "execute/adds", "client/two_at_once", "event/created_one_is_not_ready"];
        let report = conform_with(hello().as_path(), fault, &names, &[]);
        let statuses: Vec<_> = report.rows.iter().map(|row| (row.name.as_str(), row.status)).collect();
        assert_eq!(
            statuses,
            [
                ("plugin/process_ends", Status::Passed),
                ("client/can_be_made", Status::Crashed),
                ("client/two_at_once", Status::NotApplicable),
                ("event/created_one_is_not_ready", Status::Passed),
                ("execute/adds", Status::NotApplicable)
            ]
        );
        assert!(report.rows[2].message.contains("no client can be created"), "{report:?}");
    }
}

#[test]
fn without_a_client_one_check_fails_and_most_do_not_apply() {
    let names = [
        "plugin/initialize_twice",
        "client/can_be_made",
        "client/wild_callbacks_are_not_called",
        "client/two_at_once",
        "execute/adds",
        "event/set_ok",
    ];
    let report = conform_with(hello().as_path(), "PJRT_Client_Create fail FAILED_PRECONDITION", &names, &[]);
    let statuses: Vec<Status> = report.rows.iter().map(|row| row.status).collect();
    let (passed, blocked) = (Status::Passed, Status::NotApplicable);
    assert_eq!(statuses, [passed, Status::Wrong, blocked, blocked, passed, blocked], "{report:?}");
    assert!(report.rows[2].message.contains("FAILED_PRECONDITION: an injected fault"), "{report:?}");
}
