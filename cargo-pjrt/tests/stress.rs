//! Tests of `cargo pjrt stress` with hello, and with hello with faults that appear only under load: each is
//! found with what was seen, and hello passes.

use cargo_pjrt::stress::{Outcome, Report};
use common::{cargo_pjrt, fail, faulty, hello, refuse, run, text, with_fault};

mod common;

/// Returns the report about hello with a fault, of a part of the test.
fn stress(fault: &str, part: &str, more: &[&str]) -> Report {
    let mut command = with_fault("stress", fault);
    command.arg(faulty()).args(["--json", "--only", part, "--seconds=20"]).args(more);
    let output = command.output().expect("the program starts");
    let report: Report =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)));
    assert_eq!(output.status.code(), Some(i32::from(report.failures() > 0)));
    report
}

/// Returns the messages of the failures.
fn failures(report: &Report) -> Vec<String> {
    let failed = report.rows.iter().filter(|row| row.outcome == Outcome::Failed);
    failed.map(|row| format!("{}: {}", row.name, row.message)).collect()
}

#[test]
fn hello_passes_and_the_slopes_are_reported() {
    let printed =
        run(cargo_pjrt().arg("stress").arg(hello()).args(["--seconds=1", "--rounds=2000", "--seed=7"]));
    assert!(printed.contains("4 threads, ") && printed.contains(": seed 7, 0 failures"), "{printed}");
    assert!(printed.contains("2000 rounds: resident memory "), "{printed}");
}

#[test]
fn what_goes_wrong_when_two_threads_call_at_once_is_found_with_the_seed() {
    let fault = "PJRT_Buffer_ToHostBuffer at_once last_byte 1 1000000";
    let mut command = with_fault("stress", fault);
    command.arg(faulty()).args(["--only=threads", "--seconds=20", "--seed=7"]);
    let printed = fail(&mut command);
    assert!(printed.contains("thread ") && printed.contains("; expected "), "{printed}");
    assert!(printed.contains("repeat with: --only threads --threads 4 --seed 7"), "{printed}");
}

#[test]
fn wrong_data_and_errors_and_crashes_of_one_call_among_many_are_found() {
    for (fault, part) in [
        ("PJRT_Buffer_ToHostBuffer call 60 fail INTERNAL", "INTERNAL: an injected fault"),
        ("PJRT_Buffer_Dimensions call 3 set num_dims=0", "the dimensions are []"),
        ("PJRT_Client_BufferFromHostBuffer call 50 crash", "the process ended with an abort while running"),
    ] {
        let report = stress(fault, "threads", &[]);
        assert!(failures(&report).iter().any(|how| how.contains(part)), "{fault}: {report:?}");
    }
    let report = stress("PJRT_Event_Await call 90 hang", "threads", &["--timeout=4"]);
    assert!(failures(&report)[0].contains("made no progress for 4 s"), "{report:?}");
}

#[test]
fn leaks_are_found_and_the_slope_is_reported() {
    for (fault, scenarios, rounds) in [
        ("PJRT_Buffer_Destroy skip", &["memory/transfers", "memory/executions", "memory/copies"][..], 1000),
        ("PJRT_LoadedExecutable_Destroy skip", &["memory/programs"], 4000),
    ] {
        let report = stress(fault, "memory", &[&format!("--rounds={rounds}")]);
        let failures = failures(&report);
        for scenario in scenarios {
            let found =
                failures.iter().any(|how| how.starts_with(scenario) && how.contains(" bytes per round"));
            assert!(found, "{fault}: {scenario}: {report:?}");
        }
    }
    assert_eq!(failures(&stress("", "memory", &["--rounds=1000"])), [""; 0]);
}

#[test]
fn a_process_that_does_not_end_well_is_found() {
    let report = stress("PJRT_Plugin_Initialize crash_at_exit", "ending", &[]);
    let ended = failures(&report);
    for scenario in ["main_returns", "main_returns_without_destroying", "exit_on_another_thread"] {
        assert!(ended.iter().any(|how| how.starts_with(&format!("ending/{scenario}: "))), "{report:?}");
    }
    assert!(ended.iter().all(|how| how.contains("an abort while ending")), "{report:?}");
    let report = stress("PJRT_Plugin_Initialize hang_at_exit", "ending", &["--timeout=4"]);
    let hangs = |how: &String| how.contains("made no progress for 6 s while ending");
    assert!(failures(&report).iter().any(hangs), "{report:?}");
}

#[test]
fn mistakes_of_the_user_are_named() {
    for arguments in [["--threads", "0"], ["--rounds", "5"], ["--seconds", "0"], ["--only", "disk"]] {
        refuse(cargo_pjrt().arg("stress").arg(hello()).args(arguments));
    }
    let error = fail(cargo_pjrt().args(["stress", "/no/such.so"]));
    assert!(error.contains("/no/such.so"), "{error}");
}
