//! Tests of `cargo pjrt needs`.

mod common;

use std::path::Path;

use common::{Scratch, cargo_pjrt, data, fail, faulty, hello, refuse, run, text, with_fault};
use serde_json::Value;

/// Returns the report as JSON.
fn report(arguments: &[&std::ffi::OsStr]) -> Value {
    let output = cargo_pjrt().args(["needs", "--json"]).args(arguments).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)))
}

/// Returns the answers of the plugin for an operation in a tier, each with the element types.
fn answers<'r>(tier: &'r Value, op: &str) -> Vec<(String, &'r Value)> {
    let rows = tier["ops"].as_array().unwrap().iter().filter(|row| row["op"] == op);
    rows.map(|row| (row["element_types"].to_string(), &row["outcome"])).collect()
}

#[test]
fn recorded_programs_have_tiers_and_need_no_plugin() {
    let printed = run(cargo_pjrt().arg("needs"));
    for part in ["arithmetic: ", "training: ", "stablehlo.dot_general", "element types", "--plugin PATH"] {
        assert!(printed.contains(part), "{part} is not in {printed}");
    }
    let one = run(cargo_pjrt().args(["needs", "--tier", "random"]));
    assert!(one.contains("random: ") && !one.contains("arithmetic: "), "{one}");
    assert!(one.contains("stablehlo.shift_right_logical"), "{one}");
}

#[test]
fn a_plugin_accepts_or_refuses_each_operation_by_element_type() {
    let plugin = hello();
    let report = report(&["--tier".as_ref(), "arithmetic".as_ref(), "--plugin".as_ref(), plugin.as_ref()]);
    let tier = &report["tiers"][0];
    let adds = answers(tier, "stablehlo.add");
    assert!(adds.contains(&("[\"f32\"]".to_owned(), &Value::from("accepted"))), "{adds:?}");
    let half = adds.iter().find(|(types, _)| types == "[\"bf16\"]").unwrap();
    let message = half.1["refused"].as_str().unwrap();
    assert!(message.contains("hello supports this operation for i32, f32, but not for bf16"), "{message}");
    let (_, exponential) = &answers(tier, "stablehlo.exponential")[0];
    let message = exponential["refused"].as_str().unwrap();
    assert!(message.contains("hello does not support this operation"), "{message}");
    // A reduction is refused itself, because the addition in it is not.
    let reductions = answers(tier, "stablehlo.reduce");
    assert!(reductions.iter().any(|(_, answer)| answer["refused"].is_string()), "{reductions:?}");
    let programs = tier["programs"].as_array().unwrap();
    let add = programs.iter().find(|program| program["name"] == "add").unwrap();
    assert_eq!(add["outcome"], "accepted");
    for refused in programs.iter().filter(|program| program["outcome"]["refused"].is_string()) {
        assert!(!refused["refused_ops"].as_array().unwrap().is_empty(), "{refused}");
    }
}

#[test]
fn the_exit_status_says_whether_the_plugin_accepts_all() {
    let accepted = run(cargo_pjrt().arg("needs").arg(data("add.mlir")).arg("--plugin").arg(hello()));
    assert!(accepted.contains("1 programs, 1 accepted, 0 refused"), "{accepted}");
    // Recorded programs are required only if a tier is named.
    let survey = run(cargo_pjrt().args(["needs", "--tier", "random", "--plugin"]).arg(hello()));
    assert!(survey.contains("operations that are refused alone: "), "{survey}");
    let tiers = ["needs", "--tier", "random", "--require", "indexing", "--plugin"];
    let refused = fail(cargo_pjrt().args(tiers).arg(hello()));
    assert!(refused.contains("random: ") && refused.contains("indexing: "), "{refused}");
    assert!(refused.contains(" required programs fail"), "{refused}");
    let error = refuse(cargo_pjrt().args(["needs", "--require", "random"]));
    assert!(error.contains("--plugin"), "{error}");
}

#[test]
fn folders_and_exports_are_read_and_damaged_files_are_reported() {
    let scratch = Scratch::new("needs");
    let exports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pjrt-stablehlo/tests/data");
    scratch.write("export.pb", std::fs::read(exports.join("export_0.10.2.jax")).unwrap());
    scratch.write("in/add.mlirbc", std::fs::read(data("add.mlirbc")).unwrap());
    scratch.write("in/add.options.pb", "not a program");
    let folder = scratch.path("");
    let printed = run(cargo_pjrt().arg("needs").arg(&folder));
    assert!(printed.contains("stablehlo.add") && printed.contains("2 programs;"), "{printed}");
    scratch.write("broken.mlir", "module {");
    let printed = fail(cargo_pjrt().arg("needs").arg(&folder));
    assert!(printed.contains("broken.mlir: cannot be read: "), "{printed}");
    assert!(printed.contains("1 programs cannot be read"), "{printed}");
}

#[test]
fn an_export_of_jax_runs() {
    let exports = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pjrt-stablehlo/tests/data");
    for version in ["0.4.30", "0.10.2"] {
        let program = exports.join(format!("export_{version}.jax"));
        let mut command = cargo_pjrt();
        command.arg("run").arg(program).arg("--plugin").arg(hello()).args(["--args", "ones"]);
        assert_eq!(run(&mut command), "result 0: tensor<2x3xf32> [2, 2, 2, 2, 2, 2]\n");
    }
}

#[test]
fn mistakes_of_the_user_are_named() {
    let scratch = Scratch::new("needs-mistakes");
    scratch.write("empty/readme.txt", "");
    let error = fail(cargo_pjrt().args(["needs", "/no/such/program"]));
    assert!(error.contains("/no/such/program"), "{error}");
    let error = fail(cargo_pjrt().arg("needs").arg(scratch.path("empty")));
    assert!(error.contains("contains no program"), "{error}");
    let error = fail(cargo_pjrt().arg("needs").args(["--plugin", "/no/such/plugin.so"]));
    assert!(error.contains("/no/such/plugin.so"), "{error}");
    let error = refuse(cargo_pjrt().args(["needs", "--tier", "quantum"]));
    assert!(error.contains("quantum") && error.contains("arithmetic"), "{error}");
    let error = refuse(cargo_pjrt().args(["needs", "x.mlir", "--option", "a=b"]));
    assert!(error.contains("--plugin"), "{error}");
}

#[test]
fn a_plugin_that_crashes_or_hangs_refuses_the_program() {
    for (action, why) in
        [("crash", "the plugin ended the process with an abort"), ("hang", "took longer than 2 s")]
    {
        let mut command = with_fault("needs", &format!("PJRT_Client_Compile call 2 {action}"));
        let scratch = Scratch::new(&format!("needs-{action}"));
        for name in ["a.mlir", "b.mlir", "c.mlir"] {
            scratch.write(name, std::fs::read(data("add.mlir")).unwrap());
        }
        command.arg(scratch.path("")).arg("--plugin").arg(faulty()).args(["--json", "--timeout", "2"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let outcomes: Vec<&Value> = report["tiers"][0]["programs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|program| &program["outcome"])
            .collect();
        assert_eq!(
            (outcomes[0], outcomes[2]),
            (&Value::from("accepted"), &Value::from("accepted")),
            "{action}"
        );
        let message = outcomes[1]["refused"].as_str().unwrap();
        assert!(message.contains(why), "{message}");
    }
}
