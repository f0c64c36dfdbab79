//! The table of the operations that IREE's compiler refuses, compared with what it does. The environment variable
//! `IREE_COMPILER_LIBRARY` names the compiler; `cargo xtask iree --test` sets it.

use std::path::PathBuf;

use iree_pjrt::Iree;
use iree_runtime::{Compiler, Program, VulkanFeatures};
use pjrt_testing::{Array, Client, Code};

#[path = "../src/operations.rs"]
#[expect(dead_code, reason = "only the table is compared")]
mod table;

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
fn a_scatter_skips_slices_that_are_not_within_the_operand() {
    let text =
        "func.func @main(%x: tensor<3xf32>, %rows: tensor<4x1xi32>, %y: tensor<4xf32>) -> tensor<3xf32> {
        %0 = \"stablehlo.scatter\"(%x, %rows, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
            inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            stablehlo.return %b : tensor<f32>
        }) : (tensor<3xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<3xf32>
        return %0 : tensor<3xf32>
    }";
    let x = Array::new(&[3], &[1.0_f32, 2.0, 3.0]).unwrap();
    let rows = Array::new(&[4, 1], &[100_000_000_i32, 1, -1, -100_000_000]).unwrap();
    let y = Array::new(&[4], &[10.0_f32, 20.0, 30.0, 40.0]).unwrap();
    assert_eq!(first::<f32>(text, &[x, rows, y]), [1.0, 20.0, 3.0]);
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
    let results = client.evaluate(&text, &[x, starts, updates.clone()]).unwrap();
    assert_eq!(results[0].elements::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 0.0]);

    let text = scatter(
        "tensor<6xf32>, tensor<2x1xi32>, tensor<2x2xf32>",
        "update_window_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 1",
    );
    let x = Array::new(&[6], &[0.0_f32; 6]).unwrap();
    let starts = Array::new(&[2, 1], &[1_i32, 2]).unwrap();
    let results = client.evaluate(&text, &[x, starts, updates]).unwrap();
    assert_eq!(results[0].elements::<f32>().unwrap(), [0.0, 1.0, 5.0, 4.0, 0.0, 0.0]);
}

/// Runs a program with arguments of `f32` and of `i32`, and returns the elements of its first result.
fn first<T: pjrt_testing::Element>(text: &str, arguments: &[Array]) -> Vec<T> {
    let client = Client::of(pjrt_plugin::api_table!(Iree), &[]).unwrap();
    let results = client.evaluate(text, arguments).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    results[0].elements().unwrap()
}

#[test]
fn equal_elements_keep_their_order_in_sorts() {
    let text = "func.func @main(%x: tensor<40xf32>) -> tensor<40xi32> {
        %i = stablehlo.iota dim = 0 : tensor<40xi32>
        %n = stablehlo.negate %i : tensor<40xi32>
        %0:2 = \"stablehlo.sort\"(%x, %n) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
            %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %p : tensor<i1>
        }) : (tensor<40xf32>, tensor<40xi32>) -> (tensor<40xf32>, tensor<40xi32>)
        return %0#1 : tensor<40xi32>
    }";
    let keys: Vec<f32> = (0..40).map(|index| (index * index % 3) as f32).collect();
    let mut expected: Vec<i32> = (0..40).collect();
    expected.sort_by(|a, b| keys[*a as usize].total_cmp(&keys[*b as usize]));
    let expected: Vec<i32> = expected.into_iter().map(|position| -position).collect();
    assert_eq!(first::<i32>(text, &[Array::new(&[40], &keys).unwrap()]), expected);
}

#[test]
fn the_first_of_equal_elements_is_the_first_of_the_greatest() {
    let text = "func.func @main(%x: tensor<2x3xi32>) -> tensor<2x2xi32> {
        %0:2 = chlo.top_k(%x, k = 2) : tensor<2x3xi32> -> (tensor<2x2xi32>, tensor<2x2xi32>)
        return %0#1 : tensor<2x2xi32>
    }";
    let x = Array::new(&[2, 3], &[1, 1, 1, 0, 2, 2]).unwrap();
    assert_eq!(first::<i32>(text, &[x]), [0, 1, 1, 2]);
}

#[test]
fn long_arrays_are_sorted() {
    let text = "func.func @main(%x: tensor<5000xf32>) -> tensor<5000xf32> {
        %0 = \"stablehlo.sort\"(%x) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %p : tensor<i1>
        }) : (tensor<5000xf32>) -> tensor<5000xf32>
        return %0 : tensor<5000xf32>
    }";
    let mut x: Vec<f32> = (0..5000).map(|index| (index * 7919 % 5003) as f32).collect();
    let found = first::<f32>(text, &[Array::new(&[5000], &x).unwrap()]);
    x.sort_by(|a, b| b.total_cmp(a));
    assert_eq!(found, x);
}

#[test]
fn loops_run_whose_values_the_compiler_would_remove_on_one_side() {
    let run = |condition: &str, iteration: &str, result: &str| {
        let text = format!(
            "func.func @main(%x: tensor<f32>, %v: tensor<2xf32>) -> tensor<2xf32> {{
                %c = stablehlo.constant dense<9.0> : tensor<f32>
                %0:3 = stablehlo.while(%a = %x, %b = %v, %d = %v) : tensor<f32>, tensor<2xf32>, tensor<2xf32>
                cond {{
                    %s = stablehlo.slice {condition} [0:1] : (tensor<2xf32>) -> tensor<1xf32>
                    %r = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
                    %n = stablehlo.maximum %r, %a : tensor<f32>
                    %p = stablehlo.compare LT, %n, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
                    stablehlo.return %p : tensor<i1>
                }} do {{
                    %1 = stablehlo.add %a, %a : tensor<f32>
                    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2xf32>
                    %3 = stablehlo.add %b, %d : tensor<2xf32>
                    stablehlo.return {iteration} : tensor<f32>, tensor<2xf32>, tensor<2xf32>
                }}
                return {result} : tensor<2xf32>
            }}"
        );
        let (x, v) = (Array::scalar(1.0_f32), Array::new(&[2], &[1.0_f32, 2.0]).unwrap());
        first::<f32>(&text, &[x, v])
    };
    // The next %b does not depend on the previous one.
    assert_eq!(run("%d", "%1, %2, %d", "%0#1"), [16.0, 16.0]);
    // Only the condition reads %b.
    assert_eq!(run("%b", "%1, %2, %3", "%0#2"), [16.0, 18.0]);
    // Two values are equal after the first iteration.
    assert_eq!(run("%b", "%1, %3, %3", "%0#2"), [16.0, 32.0]);
}

#[test]
fn a_counter_is_converted_to_an_unsigned_number() {
    let text = "func.func @main(%x: tensor<2xui32>) -> tensor<2xui32> {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %end = stablehlo.constant dense<4> : tensor<i32>
        %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<2xui32>
        cond {
            %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
        } do {
            %1 = stablehlo.convert %i : (tensor<i32>) -> tensor<ui32>
            %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<2xui32>
            %3 = stablehlo.add %y, %2 : tensor<2xui32>
            %4 = stablehlo.add %i, %one : tensor<i32>
            stablehlo.return %4, %3 : tensor<i32>, tensor<2xui32>
        }
        return %0#1 : tensor<2xui32>
    }";
    assert_eq!(first::<u32>(text, &[Array::new(&[2], &[10_u32, 20]).unwrap()]), [16, 26]);
}

#[test]
fn constants_of_complex_numbers_are_results() {
    for constant in ["[(1.0, 2.0), (3.0, 4.0)]", "(1.0, 2.0)"] {
        let text = format!(
            "func.func @main(%x: tensor<2xf64>) -> (tensor<2xf64>, tensor<2xcomplex<f64>>) {{
                %0 = stablehlo.constant dense<{constant}> : tensor<2xcomplex<f64>>
                %1 = stablehlo.imag %0 : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
                %2 = stablehlo.add %1, %x : tensor<2xf64>
                return %2, %0 : tensor<2xf64>, tensor<2xcomplex<f64>>
            }}"
        );
        let imag = first::<f64>(&text, &[Array::new(&[2], &[0.0_f64, 0.0]).unwrap()]);
        assert_eq!(imag[0], 2.0);
    }
}

#[test]
fn transforms_of_all_lengths_run() {
    let text = "func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {
        %0 = stablehlo.fft %x, type = RFFT, length = [6] : (tensor<6xf32>) -> tensor<4xcomplex<f32>>
        %1 = stablehlo.fft %0, type = IRFFT, length = [6] : (tensor<4xcomplex<f32>>) -> tensor<6xf32>
        return %1 : tensor<6xf32>
    }";
    let x = [1.0_f32, -2.0, 3.0, 0.5, 0.0, 7.0];
    let found = first::<f32>(text, &[Array::new(&[6], &x).unwrap()]);
    assert!(found.iter().zip(x).all(|(found, x)| (found - x).abs() < 1e-5), "{found:?}");
}

#[test]
fn a_product_without_terms_is_zeros() {
    let text = "func.func @main(%x: tensor<2x0xf32>, %y: tensor<0x2xf32>) -> tensor<2x2xf32> {
        %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
            : (tensor<2x0xf32>, tensor<0x2xf32>) -> tensor<2x2xf32>
        return %0 : tensor<2x2xf32>
    }";
    let empty = |dims: &[i64]| Array::new::<f32>(dims, &[]).unwrap();
    assert_eq!(first::<f32>(text, &[empty(&[2, 0]), empty(&[0, 2])]), [0.0; 4]);
}

#[test]
fn numbers_are_converted_between_types_that_the_compiler_has_no_conversion_for() {
    for (from, to) in [("i32", "bf16"), ("i1", "bf16"), ("f16", "f8E5M2"), ("f64", "f8E4M3FN")] {
        let text = format!(
            "func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {{
                %0 = stablehlo.convert %x : (tensor<16xf32>) -> tensor<16x{from}>
                %1 = stablehlo.convert %0 : (tensor<16x{from}>) -> tensor<16x{to}>
                %2 = stablehlo.convert %1 : (tensor<16x{to}>) -> tensor<16xf32>
                return %2 : tensor<16xf32>
            }}"
        );
        let ones = Array::new(&[16], &[1.0_f32; 16]).unwrap();
        assert_eq!(first::<f32>(&text, &[ones]), [1.0; 16], "{from} to {to}");
    }
}

#[test]
fn a_dimension_of_a_sort_may_count_from_the_end() {
    let text = "func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
        %0 = \"stablehlo.sort\"(%x) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
        }) {dimension = -1 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
        return %0 : tensor<2x3xf32>
    }";
    let x = Array::new(&[2, 3], &[3.0_f32, 1.0, 2.0, 5.0, 6.0, 4.0]).unwrap();
    assert_eq!(first::<f32>(text, &[x]), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
}

#[test]
fn vulkan_devices_without_narrow_elements_refuse_them_by_the_features() {
    let program = |element: &str| {
        let text = format!(
            "func.func @main(%x: tensor<4x{element}>) -> tensor<4x{element}> {{
                %0 = stablehlo.add %x, %x : tensor<4x{element}>
                return %0 : tensor<4x{element}>
            }}"
        );
        let module = pjrt_stablehlo::parse(text).unwrap();
        pjrt_stablehlo::passes::decompose(&module, &table::supported(Some(VulkanFeatures::default())))
    };
    assert!(program("f32").is_ok() && program("i64").is_ok());
    for (element, feature) in [("i8", "storageBuffer8BitAccess"), ("bf16", "storageBuffer16BitAccess")] {
        let message = program(element).unwrap_err().message;
        assert!(message.contains(feature) && message.contains(element), "{message}");
    }
}

#[test]
fn narrow_elements_on_vulkan_are_right() {
    let options = ["device=vulkan".parse().unwrap()];
    let Ok(client) = Client::of(pjrt_plugin::api_table!(Iree), &options) else {
        eprintln!("skipped: there is no Vulkan device");
        return;
    };
    // The rows are broadcast, so that the sum reads the converted elements again.
    let text = "func.func @main(%x: tensor<9xi8>, %y: tensor<9x16xi8>) -> (tensor<9xi8>, tensor<16xi32>, tensor<i32>) {
        %zero = stablehlo.constant dense<0> : tensor<i32>
        %0 = stablehlo.add %x, %x : tensor<9xi8>
        %1 = stablehlo.convert %x : (tensor<9xi8>) -> tensor<9xi32>
        %2 = stablehlo.convert %y : (tensor<9x16xi8>) -> tensor<9x16xi32>
        %3 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<9xi32>) -> tensor<9x16xi32>
        %4 = stablehlo.multiply %2, %3 : tensor<9x16xi32>
        %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<9x16xi32>, tensor<i32>) -> tensor<16xi32>
        %6 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<9xi8>, tensor<9xi8>) -> tensor<i32>
        return %0, %5, %6 : tensor<9xi8>, tensor<16xi32>, tensor<i32>
    }";
    let x: [i8; 9] = [-4, -3, -2, -1, 0, 1, 2, 3, 9];
    let arguments = [Array::new(&[9], &x).unwrap(), Array::new(&[9, 16], &[-2_i8; 144]).unwrap()];
    let results = client.evaluate(text, &arguments).unwrap();
    assert_eq!(results[0].elements::<i8>().unwrap(), x.map(|x| 2 * x));
    assert_eq!(results[1].elements::<i32>().unwrap(), [-10; 16]);
    assert_eq!(results[2].elements::<i32>().unwrap(), [125]);
}
