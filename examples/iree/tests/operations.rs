//! The table of the operations that IREE's compiler refuses, compared with what it does. The environment variable
//! `IREE_COMPILER_LIBRARY` names the compiler; `cargo xtask iree --test` sets it.

use std::path::PathBuf;

use iree_pjrt::Iree;
use iree_runtime::{Compiler, Program};
use pjrt_testing::{Array, Client, Code};

/// Programs of the operations that the compiler does not legalize, by their names in the table.
const PROGRAMS: &[(&str, &str, &str)] = &[
    (
        "Cholesky",
        "stablehlo.cholesky",
        "func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
            %0 = stablehlo.cholesky %x, lower = true : tensor<2x2xf32>
            return %0 : tensor<2x2xf32>
        }",
    ),
    (
        "CustomCall",
        "stablehlo.custom_call",
        "func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
            %0 = stablehlo.custom_call @f(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
            return %0 : tensor<2x2xf32>
        }",
    ),
    (
        "TriangularSolve",
        "stablehlo.triangular_solve",
        "func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
            %0 = \"stablehlo.triangular_solve\"(%x, %x) {left_side = true, lower = true, unit_diagonal = false,
                transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
            return %0 : tensor<2x2xf32>
        }",
    ),
];

#[test]
fn the_compiler_refuses_the_operations_that_the_table_says_it_does() {
    let table = include_str!("../src/operations.rs");
    let refused =
        table.lines().filter_map(|line| line.trim().strip_prefix("(OpCode::")?.strip_suffix(", FAILED),"));
    assert_eq!(refused.collect::<Vec<_>>(), PROGRAMS.iter().map(|(code, ..)| *code).collect::<Vec<_>>());
    let path =
        std::env::var_os("IREE_COMPILER_LIBRARY").expect("IREE_COMPILER_LIBRARY names libIREECompiler.so");
    let compiler = Compiler::load(&PathBuf::from(path)).unwrap();
    let flags = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"];
    let flags: Vec<String> = flags.into_iter().chain(Program::COMPILER_FLAGS).map(str::to_owned).collect();
    for (_, op, text) in PROGRAMS {
        let error = compiler.compile(&flags, "main", text.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(&format!("failed to legalize operation '{op}'")), "{error}");
    }
}

#[test]
fn refused_operations_with_a_decomposition_run_and_others_are_unimplemented() {
    let client = Client::of(pjrt_plugin::api_table!(Iree), &[]).unwrap();
    let x = Array::new(&[2, 2], &[4.0_f32, 2.0, 2.0, 5.0]).unwrap();
    for (code, op, text) in PROGRAMS {
        let results = client.evaluate(text, std::slice::from_ref(&x));
        match *code {
            "Cholesky" => assert_eq!(results.unwrap()[0].elements::<f32>().unwrap(), [2.0, 0.0, 1.0, 2.0]),
            "TriangularSolve" => {
                assert_eq!(results.unwrap()[0].elements::<f32>().unwrap(), [1.0, 0.5, 0.0, 0.8]);
            }
            _ => {
                let error = results.unwrap_err();
                assert!(error.code == Code::UNIMPLEMENTED && error.message.contains(op), "{error:?}");
            }
        }
    }
}
