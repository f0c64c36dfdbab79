//! Tests of `cargo pjrt run` with the smallest plugin.

use std::path::Path;
use std::process::Command;

use cargo_pjrt::array::{Array, npy};
use cargo_pjrt::protobuf::hlo_add;
use common::{Scratch, cargo_pjrt, data, fail, hello, refuse, run};
use pjrt_testing::CompileOptions;
use pjrt_testing::host::ElementType;

mod common;

fn run_command(program: &Path) -> Command {
    let mut command = cargo_pjrt();
    command.args(["pjrt", "run"]).arg(program).arg("--plugin").arg(hello());
    command
}

/// Writes an array of 2 x 3 elements of f32 to a file.
fn array(scratch: &Scratch, name: &str, values: [f32; 6]) -> std::path::PathBuf {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let path = scratch.write(name, "");
    npy::write(&path, &Array { element_type: ElementType::F32, dims: vec![2, 3], bytes }).unwrap();
    path
}

#[test]
fn a_program_runs_with_files_as_arguments_as_text_and_as_bytecode() {
    let scratch = Scratch::new("forms");
    let x = array(&scratch, "x.npy", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = array(&scratch, "y.npy", [0.5; 6]);
    for form in ["add.mlir", "add.mlirbc"] {
        let printed = run(run_command(&data(form)).arg("--args").args([&x, &y]));
        assert_eq!(printed, "result 0: tensor<2x3xf32> [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]\n", "{form}");
    }
}

#[test]
fn results_are_written_as_files_that_can_be_arguments() {
    let scratch = Scratch::new("dump");
    let results = scratch.path("results");
    run(run_command(&data("add.mlir")).args(["--args", "ones", "--dump"]).arg(&results));
    let result = results.join("result_0.npy");
    let printed = run(run_command(&data("add.mlir")).arg("--args").args([&result, &result]));
    assert_eq!(printed, "result 0: tensor<2x3xf32> [4, 4, 4, 4, 4, 4]\n");
}

/// hello does not support HLO. Its error reaches the user, and names the formats that it supports.
#[test]
fn what_the_plugin_refuses_is_said_in_its_words() {
    let scratch = Scratch::new("hlo");
    let program = scratch.write("add.pb", hlo_add(&[2, 3]));
    let error = fail(&mut run_command(&program));
    assert!(error.contains("PJRT_Client_Compile: INVALID_ARGUMENT") && error.contains("hlo"), "{error}");
    let multiplies = scratch.write(
        "multiply.mlir",
        std::fs::read_to_string(data("add.mlir")).unwrap().replace("stablehlo.add", "stablehlo.multiply"),
    );
    let error = fail(&mut run_command(&multiplies));
    assert!(error.contains("stablehlo.multiply"), "{error}");
}

#[test]
fn a_folder_is_replayed_with_its_arguments_or_with_zeros() {
    let scratch = Scratch::new("replay");
    scratch.write("case/program", std::fs::read(data("add.mlirbc")).unwrap());
    scratch.write("case/format", "mlir\n");
    scratch.write("case/options.pb", CompileOptions::default().encode());
    let replay = |scratch: &Scratch| {
        let mut command = cargo_pjrt();
        command.args(["run", "--replay"]).arg(scratch.path("case")).arg("--plugin").arg(hello());
        command
    };
    assert_eq!(run(&mut replay(&scratch)), "result 0: tensor<2x3xf32> [0, 0, 0, 0, 0, 0]\n");
    scratch.write("case/arguments/0.npy", "");
    array(&scratch, "case/arguments/0.npy", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let error = fail(&mut replay(&scratch));
    assert!(error.contains("1.npy"), "{error}");
    array(&scratch, "case/arguments/1.npy", [1.0; 6]);
    assert_eq!(run(&mut replay(&scratch)), "result 0: tensor<2x3xf32> [2, 3, 4, 5, 6, 7]\n");
    std::fs::remove_file(scratch.path("case/options.pb")).unwrap();
    let error = fail(&mut replay(&scratch));
    assert!(error.contains("options.pb"), "{error}");
}

#[test]
fn mistakes_of_the_user_are_named() {
    let scratch = Scratch::new("mistakes");
    let program = data("add.mlir");
    let one = array(&scratch, "x.npy", [1.0; 6]);
    let bytes = vec![0; 8];
    let other = scratch.write("other.npy", "");
    npy::write(&other, &Array { element_type: ElementType::F64, dims: vec![1], bytes }).unwrap();
    let text = scratch.write("text.npy", "1 2 3");
    let hlo_text = scratch.write("add.hlo", "HloModule add\n\nENTRY main {\n}\n");
    let broken = scratch.write("broken.mlir", "module {\n  func.func @main(%x: tensor<2xf33>)\n}\n");
    let dynamic = scratch.write(
        "dynamic.mlir",
        "module {\n  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {\n    return %x : tensor<?xf32>\n  }\n}\n",
    );
    let with = |program: &Path, arguments: &[&std::ffi::OsStr]| {
        let mut command = run_command(program);
        if !arguments.is_empty() {
            command.arg("--args").args(arguments);
        }
        fail(&mut command)
    };
    for (error, parts) in [
        (with(Path::new("/no/such/program"), &[]), &["/no/such/program"][..]),
        (with(&program, &[one.as_ref()]), &["2 parameters", "1 file"]),
        (with(&program, &[one.as_ref(), other.as_ref()]), &["other.npy", "F64[1]", "F32[2, 3]"]),
        (with(&program, &[one.as_ref(), text.as_ref()]), &["text.npy", ".npy file"]),
        (with(&program, &[one.as_ref(), "/no/such.npy".as_ref()]), &["/no/such.npy"]),
        (with(&program, &[one.as_ref(), "zeros".as_ref()]), &["zeros", "only argument"]),
        (with(&hlo_text, &[]), &["HLO text", "HloModuleProto"]),
        (with(&broken, &[]), &["broken.mlir", "2:"]),
        (with(&dynamic, &[]), &["parameter 0", "tensor<?xf32>"]),
    ] {
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
        assert!(!error.contains("panicked"), "{error}");
    }
    let error = refuse(run_command(&program).args(["--args", "twos"]));
    assert!(error.contains("twos") && error.contains("zeros, ones, random"), "{error}");
    let error = refuse(run_command(&program).args(["--format", "onnx"]));
    assert!(error.contains("onnx") && error.contains("hlo_with_config"), "{error}");
    let error = fail(cargo_pjrt().arg("run").arg(&program).args(["--plugin", "/no/such/plugin.so"]));
    assert!(error.contains("/no/such/plugin.so"), "{error}");
    let error = refuse(run_command(&program).args(["--option", "num_devices"]));
    assert!(error.contains("name=value"), "{error}");
    let error = refuse(run_command(&program).args(["--repeat", "0"]));
    assert!(error.contains("--repeat"), "{error}");
}
