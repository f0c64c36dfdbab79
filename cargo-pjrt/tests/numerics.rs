//! Tests of `cargo pjrt numerics`: with hello, and with wrong arithmetic in refcpu, if `TEST_REFCPU` names its library.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cargo_pjrt::numerics::{Report, Row, Status};
use common::{Scratch, cargo_pjrt, data, example, fail, faulty, hello, run, text, with_fault};

mod common;

fn report(output: &std::process::Output) -> Report {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(output)))
}

/// Returns refcpu's library, if there is one.
fn refcpu() -> Option<PathBuf> {
    let library = std::env::var_os("TEST_REFCPU").map(PathBuf::from);
    if library.is_none() {
        println!("TEST_REFCPU does not name refcpu's library");
    }
    library
}

/// Returns the operations and element types that a fault in refcpu makes wrong.
fn wrong_with(refcpu: &Path, fault: &str) -> BTreeSet<(String, String)> {
    let mut command = cargo_pjrt();
    command
        .env("FAULT_PROXY_INNER", refcpu)
        .env("FAULT_PROXY", format!("PJRT_Client_Compile rewrite {fault}"));
    let output = command.args(["numerics", "--json"]).arg(example("fault_proxy")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{fault}: {}", text(&output));
    let report = report(&output);
    let wrong = report.rows.iter().filter(|row| row.status == Status::Wrong);
    wrong.filter(|row| row.suite == "operations").map(|row| (row.op.clone(), row.element.clone())).collect()
}

#[test]
fn wrong_arithmetic_is_named_by_operation_and_element_type() {
    let Some(refcpu) = refcpu() else { return };
    let f32s = ["f32"].as_slice();
    let floats = ["f32", "f64", "bf16", "f16", "i8", "i64", "ui32", "complex<f32>"].as_slice();
    for (fault, op, elements, others) in [
        ("dot_transposed", "dot_general", floats, ["dot"].as_slice()),
        ("add_flushes", "add", f32s, &[]),
        // JAX lowers erfc to an expression with an exponential.
        ("exponential_off", "exponential", f32s, &["erfc"]),
        ("divide_rounds_down", "divide", &["i32"], &[]),
        ("reduce_drops_last", "reduce", floats, &[]),
    ] {
        let wrong = wrong_with(&refcpu, fault);
        for element in elements {
            assert!(wrong.contains(&(op.to_owned(), (*element).to_owned())), "{fault} {element}: {wrong:?}");
        }
        let unexpected: Vec<_> =
            wrong.iter().filter(|(name, _)| name != op && !others.contains(&name.as_str())).collect();
        assert!(unexpected.is_empty(), "{fault}: {unexpected:?}");
    }
}

/// Programs of other operations, such as `pad` and the convolutional network, spread scalars too.
#[test]
fn a_wrong_broadcast_of_a_scalar_is_named_before_what_contains_it() {
    let Some(refcpu) = refcpu() else { return };
    let mut command = cargo_pjrt();
    command
        .env("FAULT_PROXY_INNER", refcpu)
        .env("FAULT_PROXY", "PJRT_Client_Compile rewrite scalar_to_zeros");
    let printed = fail(command.arg("numerics").arg(example("fault_proxy")));
    let first = printed.lines().find(|line| line.starts_with("WRONG ")).unwrap_or_default();
    assert!(first.starts_with("WRONG broadcast_in_dim f32 scalar_to_rank_3"), "{printed}");
    let model = printed.lines().find(|line| line.starts_with("WRONG cnn f32")).unwrap_or_default();
    assert!(model.contains("contains broadcast_in_dim, "), "{printed}");
}

#[test]
fn no_result_of_refcpu_is_wrong_and_none_is_refused() {
    let Some(refcpu) = refcpu() else { return };
    let printed = run(cargo_pjrt().arg("numerics").arg(refcpu));
    assert!(printed.contains(" 0 wrong, 0 refused"), "{printed}");
}

#[test]
fn no_result_of_the_accelerator_is_wrong() {
    let Some(accelerator) = std::env::var_os("TEST_ACCELERATOR") else {
        println!("TEST_ACCELERATOR does not name the accelerator's library");
        return;
    };
    let printed = run(cargo_pjrt().arg("numerics").arg(accelerator));
    assert!(printed.contains(" 0 wrong, "), "{printed}");
}

#[test]
fn no_result_of_hello_is_wrong_and_what_it_lacks_is_refused() {
    let output = cargo_pjrt().args(["numerics", "--json"]).arg(hello()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let report = report(&output);
    let right: BTreeSet<_> =
        report.rows.iter().filter(|row| row.status == Status::Right).map(|row| row.op.as_str()).collect();
    assert!(right.contains("add"), "{right:?}");
    let printed =
        run(cargo_pjrt().args(["numerics", "--op=exponential", "--op=add", "--refused"]).arg(hello()));
    assert!(printed.contains("refused exponential") && printed.contains("UNIMPLEMENTED"), "{printed}");
    let error = fail(cargo_pjrt().args(["numerics", "--op=exponential"]).arg(hello()));
    assert!(error.contains("nothing was compared"), "{error}");
}

#[test]
fn a_result_that_is_right_again_or_alone_is_no_matter_of_the_operation() {
    for (fault, reason) in [
        (
            "PJRT_LoadedExecutable_Execute call 3 zeroed_output 0",
            "3 of 3 further runs are right: the result depends on timing",
        ),
        (
            "PJRT_Client_Compile first_program",
            "in a process of its own, the result is right: the plugin probably returns an earlier program",
        ),
    ] {
        let mut command = with_fault("numerics", fault);
        let printed = fail(command.args(["--op=add", "--element=f32", "--element=i32"]).arg(faulty()));
        let first = printed.lines().find(|line| line.starts_with("WRONG add ")).unwrap_or_default();
        assert!(first.contains(reason), "{fault}: {printed}");
    }
}

#[test]
fn a_wrong_result_is_written_with_its_program_and_runs_again() {
    let scratch = Scratch::new("numerics-dump");
    let mut command = with_fault("numerics", "PJRT_Buffer_ToHostBuffer last_byte 100 1000");
    let printed =
        fail(command.args(["--op=add", "--element=f32", "--dump"]).arg(scratch.path("")).arg(faulty()));
    assert!(printed.contains("WRONG add f32") && printed.contains("expected"), "{printed}");
    let folder = scratch.path("add-f32-ordinary");
    let again = run(cargo_pjrt().args(["run", "--replay"]).arg(&folder).arg("--plugin").arg(hello()));
    assert!(again.contains("result 0: tensor<"), "{again}");
    assert!(folder.join("expected_0.npy").exists() && folder.join("result_0.npy").exists());
}

#[test]
fn a_program_that_ends_the_process_is_named_and_the_others_run() {
    let mut command = with_fault("numerics", "PJRT_Client_Compile call 3 crash");
    let output = command.args(["--op=add", "--json"]).arg(faulty()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let report = report(&output);
    let crashed: Vec<usize> =
        (0..report.rows.len()).filter(|at| report.rows[*at].status == Status::Crashed).collect();
    assert!(crashed.starts_with(&[2]) && report.rows.len() > 30, "{crashed:?}");
    assert!(report.rows[2].message.contains("an abort"), "{:?}", report.rows[2]);
}

#[test]
fn programs_that_hang_have_shorter_and_shorter_time_limits() {
    let mut command = with_fault("numerics", "PJRT_Client_Compile call 2 hang");
    let output =
        command.args(["--op=add", "--element=f32", "--timeout=4", "--json"]).arg(faulty()).output().unwrap();
    let report = report(&output);
    let hung: Vec<&Row> = report.rows.iter().filter(|row| row.status == Status::TimedOut).collect();
    assert!(hung.len() > 1, "{report:?}");
    // Each process runs one program, and hangs in the next one.
    assert!(hung[0].message.contains("after 4 s") && hung[1].message.contains("after 2 s"), "{hung:?}");
    assert!(report.stopped.is_none());
}

#[test]
fn a_recorded_suite_compares_a_plugin_with_the_recorded_one() {
    let scratch = Scratch::new("numerics-record");
    let suite = scratch.path("mine.zip");
    let printed =
        run(cargo_pjrt().args(["numerics", "--record"]).arg(&suite).arg(hello()).arg(data("add.mlir")));
    assert!(printed.contains("1 programs"), "{printed}");
    let printed = run(cargo_pjrt().args(["numerics", "--suite"]).arg(&suite).arg(hello()));
    assert!(printed.contains("1 right, 0 wrong"), "{printed}");
    let error = fail(
        with_fault("numerics", "PJRT_Buffer_ToHostBuffer last_byte 1 1000")
            .arg("--suite")
            .arg(&suite)
            .arg(faulty()),
    );
    assert!(error.contains("WRONG add f32 recorded"), "{error}");
}

#[test]
fn a_selection_without_programs_lists_the_names() {
    let error = fail(cargo_pjrt().args(["numerics", "--op=dott"]).arg(hello()));
    assert!(
        error.contains("dot_general") && error.contains("transformer") && error.contains("complex<f32>"),
        "{error}"
    );
}
