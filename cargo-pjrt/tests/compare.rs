//! Tests of `cargo pjrt compare` with hello, and with hello with a fault: each difference is found, and equal
//! plugins have none.

use std::process::Command;

use cargo_pjrt::compare::{Difference, Report};
use common::{Scratch, cargo_pjrt, data, example, fail, faulty, hello, refuse, run, text, with_fault};
use pjrt_testing::CompileOptions;

mod common;

/// Returns the command that compares hello with hello with a fault.
fn with(fault: &str) -> Command {
    let mut command = with_fault("compare", fault);
    command.arg(hello()).arg(faulty());
    command
}

/// Returns the differences in a report as JSON.
fn differences(command: &mut Command) -> Vec<Difference> {
    let output = command.arg("--json").output().expect("the program starts");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    serde_json::from_slice::<Report>(&output.stdout).expect("the report is JSON").differences
}

/// Writes a folder with a program as a file and one for `run --replay`.
fn programs(scratch: &Scratch) -> std::path::PathBuf {
    let program = std::fs::read(data("add.mlir")).unwrap();
    scratch.write("programs/first.mlir", &program);
    scratch.write("programs/README.md", "not a program");
    scratch.write("programs/more/second/program", &program);
    scratch.write("programs/more/second/format", "mlir\n");
    scratch.write("programs/more/second/options.pb", CompileOptions::default().encode());
    scratch.path("programs")
}

#[test]
fn a_plugin_does_not_differ_from_itself() {
    let scratch = Scratch::new("compare-same");
    let mut command = cargo_pjrt();
    command.arg("compare").args([hello(), hello()]).args(["--shared", "--programs"]).arg(programs(&scratch));
    let printed = run(&mut command);
    assert!(printed.contains(" 0 differences, "), "{printed}");
    assert!(!printed.contains("differences:"), "{printed}");
}

#[test]
fn each_kind_of_difference_is_found_and_named() {
    for (fault, area, what, b) in [
        ("GetPjrtApi null PJRT_Buffer_Bitcast", "table", "PJRT_Buffer_Bitcast", "null"),
        ("PJRT_Client_ProcessIndex set process_index=3", "client", "process index", "3"),
        ("PJRT_Memory_Kind set kind_size-1", "client", "memory 0: kind", "devic"),
        ("PJRT_Client_Compile code INTERNAL", "compile", "compilation", "error INTERNAL"),
        ("PJRT_Executable_NumReplicas set num_replicas=2", "executable", "replicas", "2"),
        ("PJRT_Buffer_Dimensions set num_dims=0", "buffer", "dimensions", "[]"),
        ("PJRT_Buffer_IsDeleted set is_deleted=0", "error", "outcome", "false"),
    ] {
        let found = differences(with(fault).arg("--no-checks"));
        let is_it = |difference: &&Difference| {
            difference.area == area && difference.what == what && difference.b == b
        };
        assert!(found.iter().any(|difference| is_it(&difference)), "{fault}: {found:#?}");
    }
}

#[test]
fn events_that_are_complete_in_another_order_are_found() {
    let found = differences(with("PJRT_Event_IsReady set is_ready=0").arg("--no-checks"));
    assert!(!found.is_empty() && found.iter().all(|difference| difference.area == "events"), "{found:#?}");
    assert!(found.iter().all(|difference| difference.b == "never"), "{found:#?}");
}

#[test]
fn a_crash_and_a_hang_are_one_difference_each_and_the_rest_is_compared() {
    for (action, b) in [("crash", "the process ended with an abort"), ("hang", "it took longer than 5 s")] {
        let fault = format!("PJRT_Buffer_CopyRawToHost {action}");
        let found = differences(with(&fault).args(["--no-checks", "--timeout=5"]));
        let ended: Vec<&Difference> =
            found.iter().filter(|difference| difference.what == "process").collect();
        assert!(
            !ended.is_empty() && ended.iter().all(|difference| difference.b == b),
            "{action}: {found:#?}"
        );
        assert_eq!(ended.len(), found.len(), "{action}: {found:#?}");
    }
    let found = differences(with("PJRT_Client_Create crash").arg("--no-checks"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].b, "while creating a client, the process ended with an abort");
    let found = differences(with("PJRT_Plugin_Initialize crash_at_exit").arg("--no-checks"));
    assert_eq!((found.len(), found[0].area.as_str()), (1, "process"), "{found:#?}");
}

#[test]
fn checks_with_different_outcomes_are_differences() {
    let printed = fail(with("PJRT_Buffer_IsDeleted set is_deleted=0").args(["--shared", "--filter=buffer/"]));
    assert!(printed.contains("check: buffer/"), "{printed}");
    assert!(printed.contains("A: passed\n    B: WRONG: "), "{printed}");
}

#[test]
fn results_of_programs_are_compared_bit_by_bit_or_with_a_tolerance() {
    let scratch = Scratch::new("compare-programs");
    let folder = programs(&scratch);
    let fault = "PJRT_LoadedExecutable_Execute give_other_argument";
    let printed = fail(with(fault).arg("--no-checks").arg("--programs").arg(&folder));
    for part in ["program: first.mlir, result 0; second, result 0", "6 of 6 elements differ"] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    let mut tolerant = with(fault);
    tolerant.args(["--no-checks", "--tolerance=100", "--programs"]).arg(&folder);
    let output = tolerant.output().unwrap();
    assert!(text(&output).contains("arrays within the tolerance"), "{}", text(&output));
    assert!(!text(&output).contains("program: first.mlir"), "{}", text(&output));
}

#[test]
fn recorded_sessions_are_replayed_on_both_plugins() {
    let scratch = Scratch::new("compare-session");
    let log = scratch.path("log");
    let mut record = cargo_pjrt();
    record.arg("record").arg(hello()).arg("-o").arg(&log).arg("--recorder").arg(example("recorder"));
    record.arg("--").arg(env!("CARGO_BIN_EXE_cargo-pjrt")).arg("run").arg(data("add.mlir"));
    run(record.args(["--args", "random", "--repeat", "2", "--plugin"]).arg(example("recorder")));
    let same = |command: &mut Command| run(command.args(["--no-checks", "--session"]).arg(&log));
    same(cargo_pjrt().arg("compare").args([hello(), hello()]));
    let fault = "PJRT_LoadedExecutable_Execute give_other_argument";
    let printed = fail(with(fault).arg("--no-checks").arg("--session").arg(&log));
    assert!(printed.contains("session: log, result 0 of execution 1 (add)"), "{printed}");
    let cut = scratch.write("cut", "no log");
    let mut command = cargo_pjrt();
    command.arg("compare").args([hello(), hello()]).args(["--no-checks", "--session"]);
    let printed = refuse(command.arg(&cut));
    assert!(printed.contains("not a log of the recorder"), "{printed}");
}

#[test]
fn mistakes_of_the_user_are_named_with_status_2() {
    let scratch = Scratch::new("compare-mistakes");
    scratch.write("empty/README.md", "not a program");
    let error = refuse(cargo_pjrt().args(["compare", "/no/such.so"]).arg(hello()));
    assert!(error.contains("/no/such.so") && error.contains("No such file"), "{error}");
    let compare = || {
        let mut command = cargo_pjrt();
        command.arg("compare").args([hello(), hello()]);
        command
    };
    let error = refuse(compare().arg("--programs").arg(scratch.path("empty")));
    assert!(error.contains("contains no program") && error.contains(".mlirbc"), "{error}");
    let error = refuse(compare().args(["--option-a", "num_devices"]));
    assert!(error.contains("name=value"), "{error}");
    refuse(compare().args(["--session", "/no/such.log"]));
    refuse(compare().args(["--tolerance", "-1"]));
    let error = refuse(compare().args(["--filter", "no/such/check"]));
    assert!(error.contains("no/such/check"), "{error}");
    let text = scratch.write("text.so", "not a library\n");
    let error = fail(cargo_pjrt().arg("compare").arg(hello()).arg(&text));
    assert!(error.contains("text.so") && error.contains("not a shared library"), "{error}");
}
