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

#[test]
fn a_gather_moves_slices_that_are_not_within_the_operand_into_it() {
    let client = Client::of(pjrt_plugin::api_table!(Iree), &[]).unwrap();
    let text = "func.func @main(%x: tensor<3x2xf32>, %rows: tensor<3x1xi32>) -> tensor<3x2xf32> {
        %0 = \"stablehlo.gather\"(%x, %rows) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
            collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}>
            : (tensor<3x2xf32>, tensor<3x1xi32>) -> tensor<3x2xf32>
        return %0 : tensor<3x2xf32>
    }";
    let x = Array::new(&[3, 2], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let rows = Array::new(&[3, 1], &[7_i32, 1, -2]).unwrap();
    let results = client.evaluate(text, &[x, rows]).unwrap();
    assert_eq!(results[0].elements::<f32>().unwrap(), [5.0, 6.0, 3.0, 4.0, 1.0, 2.0]);
}

#[test]
fn scatters_that_the_compiler_does_not_take_run() {
    let client = Client::of(pjrt_plugin::api_table!(Iree), &[]).unwrap();
    let scatter = |types: &str, numbers: &str| {
        let names: Vec<&str> = types.split(", ").collect();
        format!(
            "func.func @main(%x: {x}, %i: {i}, %u: {u}) -> {x} {{
                %0 = \"stablehlo.scatter\"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                    %s = stablehlo.add %a, %b : tensor<f32>
                    stablehlo.return %s : tensor<f32>
                }}) : ({types}) -> {x}
                return %0 : {x}
            }}",
            x = names[0],
            i = names[1],
            u = names[2]
        )
    };
    let x = Array::new(&[2, 3], &[0.0_f32; 6]).unwrap();
    let updates = Array::new(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let columns = Array::new(&[2, 2, 1], &[0_i32, 2, 1, 7]).unwrap();
    let text = scatter(
        "tensor<2x3xf32>, tensor<2x2x1xi32>, tensor<2x2xf32>",
        "inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0],
            scatter_dims_to_operand_dims = [1], index_vector_dim = 2",
    );
    let results = client.evaluate(&text, &[x.clone(), columns, updates.clone()]).unwrap();
    assert_eq!(results[0].elements::<f32>().unwrap(), [1.0, 0.0, 2.0, 0.0, 3.0, 0.0]);

    let starts = Array::new(&[2, 2], &[0_i32, 1, 1, 0]).unwrap();
    let text = scatter(
        "tensor<2x3xf32>, tensor<2x2xi32>, tensor<2x2xf32>",
        "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
    );
    let results = client.evaluate(&text, &[x, starts, updates]).unwrap();
    assert_eq!(results[0].elements::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]);
}
