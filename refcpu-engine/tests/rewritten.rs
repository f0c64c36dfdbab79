//! Programs that were rewritten for devices with fewer guarantees, compared with the original ones.

use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::passes::{CoreOps, decompose, scatters_within_bounds, split_reductions, stable_sorts};
use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

const COUNT: usize = 600;

fn parse(text: &str) -> Module {
    pjrt_stablehlo::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the bytes of the results of a program with these arguments: element type, dimensions and bytes.
fn results(module: &Module, arguments: &[(DType, &[usize], Vec<u8>)]) -> Vec<Vec<u8>> {
    let compiled =
        compile(module, &CompileOptions::default()).unwrap_or_else(|error| panic!("{error}\n{module}"));
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let input = |(ty, dims, bytes): &(DType, &[usize], Vec<u8>)| Input {
        array: Array::from_bytes(&runtime.allocator, *ty, dims, bytes).unwrap(),
        donatable: false,
    };
    let inputs = vec![arguments.iter().map(input).collect()];
    let results = run(&compiled.plan, &runtime, inputs, &RunOptions::default()).unwrap().remove(0);
    results.iter().map(|array| array.bytes().unwrap().to_vec()).collect()
}

fn sorted(module: &Module) -> Vec<Vec<u8>> {
    // Few different numbers, so that most elements have equal ones, with both zeros and NaN.
    let numbers = [3.0_f32, -0.0, 0.0, -1.0, f32::NAN, 7.5, -1.0];
    let element = |index: usize| numbers[index * index % numbers.len()];
    let keys: Vec<u8> = (0..COUNT).flat_map(|index| element(index).to_le_bytes()).collect();
    let values: Vec<u8> = (0..COUNT as i32).rev().flat_map(i32::to_le_bytes).collect();
    let dims = &[2, COUNT / 2][..];
    results(module, &[(DType::F32, dims, keys), (DType::S32, dims, values)])
}

/// Checks that a program has the same results if its sorts are stable because of their comparison: with the algorithm for sorts
/// that need not be stable, and if an exchange of neighbors, which visits them in another order, replaces it.
fn check(text: &str) {
    let module = parse(text);
    let expected = sorted(&module);
    let whole = decompose(&module, &CoreOps::default()).unwrap();
    let stable = stable_sorts(&whole).unwrap();
    assert!(!stable.to_string().contains("is_stable = true"), "{stable}");
    assert_eq!(sorted(&stable), expected, "{stable}");
    let exchanged = decompose(&stable, &CoreOps::default().without(OpCode::Sort)).unwrap();
    assert_eq!(sorted(&exchanged), expected, "{exchanged}");
}

/// A sort of keys and values along a dimension.
fn sort(dimension: usize, comparison: &str) -> String {
    let ty = format!("tensor<2x{}x", COUNT / 2);
    format!(
        "func.func @main(%x: {ty}f32>, %y: {ty}i32>) -> ({ty}f32>, {ty}i32>) {{
            %0:2 = \"stablehlo.sort\"(%x, %y) <{{dimension = {dimension} : i64, is_stable = true}}> ({{
            ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
                {comparison}
                stablehlo.return %p : tensor<i1>
            }}) : ({ty}f32>, {ty}i32>) -> ({ty}f32>, {ty}i32>)
            return %0#0, %0#1 : {ty}f32>, {ty}i32>
        }}"
    )
}

#[test]
fn equal_elements_keep_their_order() {
    for direction in ["LT", "GT"] {
        for dimension in [0, 1] {
            let types = "(tensor<f32>, tensor<f32>) -> tensor<i1>";
            check(&sort(
                dimension,
                &format!("%p = stablehlo.compare {direction}, %a, %b, TOTALORDER : {types}"),
            ));
        }
    }
}

#[test]
fn comparisons_of_several_operations_are_repeated_whole() {
    let scalar = "(tensor<f32>, tensor<f32>) -> tensor<i1>";
    check(&sort(
        1,
        &format!(
            "%zero = stablehlo.constant dense<0.0> : tensor<f32>
             %n = stablehlo.compare LT, %a, %zero : {scalar}
             %m = stablehlo.compare GE, %b, %zero : {scalar}
             %p = stablehlo.and %n, %m : tensor<i1>"
        ),
    ));
}

#[test]
fn the_positions_of_top_k_decide_among_equal_elements() {
    let ty = format!("tensor<2x{}xf32>", COUNT / 2);
    check(&format!(
        "func.func @main(%x: {ty}, %y: tensor<2x{}xi32>) -> (tensor<2x9xf32>, tensor<2x9xi32>) {{
            %0:2 = chlo.top_k(%x, k = 9) : {ty} -> (tensor<2x9xf32>, tensor<2x9xi32>)
            return %0#0, %0#1 : tensor<2x9xf32>, tensor<2x9xi32>
        }}",
        COUNT / 2
    ));
}

#[test]
fn a_loop_selects_the_first_elements_if_they_are_few() {
    // The operands by which the program sorts, and the comparison.
    let comparisons = [
        "%a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "%c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>",
    ];
    for (dimension, size) in [(0, 2), (1, COUNT as i64 / 2)] {
        for (k, comparison) in [1, 2, 9, 39, 60].into_iter().flat_map(|k| comparisons.map(|by| (k, by))) {
            let k = size.min(k);
            let result = if dimension == 0 { format!("{k}x{}", COUNT / 2) } else { format!("2x{k}") };
            let (whole, limit) = (format!("2x{}", COUNT / 2), result.replace('x', ", 0:"));
            let sort = sort(dimension, &format!("%p = stablehlo.compare GT, {comparison}"));
            let text = sort.replace(
                &format!("return %0#0, %0#1 : tensor<{whole}xf32>, tensor<{whole}xi32>"),
                &format!(
                    "%x1 = stablehlo.slice %0#0 [0:{limit}] : (tensor<{whole}xf32>) -> tensor<{result}xf32>
                     %y1 = stablehlo.slice %0#1 [0:{limit}] : (tensor<{whole}xi32>) -> tensor<{result}xi32>
                     return %x1, %y1 : tensor<{result}xf32>, tensor<{result}xi32>"
                ),
            );
            let text = text.replace(
                &format!("-> (tensor<{whole}xf32>, tensor<{whole}xi32>) {{"),
                &format!("-> (tensor<{result}xf32>, tensor<{result}xi32>) {{"),
            );
            let module = parse(&text);
            let selected = decompose(&module, &CoreOps::default().without(OpCode::Sort)).unwrap();
            // The exchange of neighbors joins two copies of the array.
            assert_eq!(
                selected.op_counts().contains_key("stablehlo.concatenate"),
                k > 39 || k == size,
                "{selected}"
            );
            assert_eq!(sorted(&selected), sorted(&module), "{selected}");
        }
    }
}

#[test]
fn slices_that_are_not_within_bounds_are_not_scattered() {
    let text = |ty: &str, starts: &str, numbers: &str| {
        format!(
            "func.func @main(%x: tensor<3x4xf32>, %s: tensor<{starts}x{ty}>, %y: tensor<4x2xf32>) -> tensor<3x4xf32> {{
                %0 = \"stablehlo.scatter\"(%x, %s, %y) <{{scatter_dimension_numbers = #stablehlo.scatter<{numbers}>}}> ({{
                ^bb0(%a: tensor<f32>, %b: tensor<f32>):
                    %1 = stablehlo.subtract %a, %b : tensor<f32>
                    stablehlo.return %1 : tensor<f32>
                }}) : (tensor<3x4xf32>, tensor<{starts}x{ty}>, tensor<4x2xf32>) -> tensor<3x4xf32>
                return %0 : tensor<3x4xf32>
            }}"
        )
    };
    // Index vectors of both dimensions, in rows and in columns, and indices of one dimension without vectors.
    let window = "update_window_dims = [1], inserted_window_dims = [0]";
    let cases: [(&str, &[usize], &str, &[i64]); 3] = [
        (
            "4x2",
            &[4, 2],
            "scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1",
            &[0, 2, 3, 0, -1, 1, 2, 3],
        ),
        (
            "2x4",
            &[2, 4],
            "scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 0",
            &[2, 1, -3, 3, 0, 7, 0, 2],
        ),
        ("4", &[4], "scatter_dims_to_operand_dims = [0], index_vector_dim = 1", &[2, -1, 100, 2]),
    ];
    for (ty, dtype, width) in [("i8", DType::S8, 1), ("ui32", DType::U32, 4), ("i64", DType::S64, 8)] {
        for (starts, dims, numbers, indices) in cases {
            let module = parse(&text(ty, starts, &format!("{window}, {numbers}")));
            let floats = |count: i32| (1..=count).flat_map(|value| (value as f32).to_le_bytes()).collect();
            let indices = indices.iter().flat_map(|index| index.to_le_bytes().into_iter().take(width));
            let arguments = [
                (DType::F32, &[3, 4][..], floats(12)),
                (dtype, dims, indices.collect()),
                (DType::F32, &[4, 2], floats(8)),
            ];
            let checked = scatters_within_bounds(&module).unwrap();
            assert_eq!(results(&checked, &arguments), results(&module, &arguments), "{checked}");
        }
    }
}

/// Returns whole numbers from -3 to 3 in an irregular order, whose sums are exact.
fn whole_numbers(count: usize) -> Vec<u8> {
    let number = |index: usize| (index * index % 11 * index % 7) as f32 - 3.0;
    (0..count).flat_map(|index| number(index).to_le_bytes()).collect()
}

#[test]
fn divided_reductions_have_the_same_results() {
    let (dims, ty) = (&[7, 30, 11][..], "tensor<7x30x11xf32>");
    for (dimensions, result) in
        [("0, 1, 2", "f32"), ("0, 2", "30xf32"), ("1, 0", "11xf32"), ("1", "7x11xf32")]
    {
        for code in ["add", "maximum", "minimum"] {
            let module = parse(&format!(
                "func.func @main(%x: {ty}) -> tensor<{result}> {{
                    %initial = stablehlo.constant dense<2.0> : tensor<f32>
                    %0 = stablehlo.reduce(%x init: %initial) applies stablehlo.{code} across dimensions = [{dimensions}]
                        : ({ty}, tensor<f32>) -> tensor<{result}>
                    return %0 : tensor<{result}>
                }}"
            ));
            let arguments = [(DType::F32, dims, whole_numbers(7 * 30 * 11))];
            let expected = results(&module, &arguments);
            for max_terms in [2, 5, 16, 100, 1000] {
                let divided = split_reductions(&module, max_terms).unwrap();
                assert_eq!(results(&divided, &arguments), expected, "{max_terms}: {divided}");
            }
        }
    }
}

#[test]
fn divided_joint_reductions_find_the_first_of_the_greatest_elements() {
    let count = 1000;
    let ty = |element: &str| format!("tensor<{count}x{element}>");
    let (floats, integers) = (ty("f32"), ty("i32"));
    // An element that is greater, or as great and before the other.
    let module = parse(&format!(
        "func.func @main(%x: {floats}) -> (tensor<f32>, tensor<i32>) {{
            %i = stablehlo.iota dim = 0 : {integers}
            %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
            %zero = stablehlo.constant dense<0> : tensor<i32>
            %0:2 = stablehlo.reduce(%x init: %least), (%i init: %zero) across dimensions = [0]
                : ({floats}, {integers}, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
                reducer(%p: tensor<f32>, %q: tensor<f32>) (%k: tensor<i32>, %l: tensor<i32>) {{
                    %1 = stablehlo.compare GT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
                    %2 = stablehlo.compare EQ, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
                    %3 = stablehlo.compare LT, %k, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>
                    %4 = stablehlo.and %2, %3 : tensor<i1>
                    %5 = stablehlo.or %1, %4 : tensor<i1>
                    %6 = stablehlo.select %1, %p, %q : tensor<i1>, tensor<f32>
                    %7 = stablehlo.select %5, %k, %l : tensor<i1>, tensor<i32>
                    stablehlo.return %6, %7 : tensor<f32>, tensor<i32>
                }}
            return %0#0, %0#1 : tensor<f32>, tensor<i32>
        }}"
    ));
    // The last row of several divisions has padding, and others have nothing but the least number.
    let numbers = |least: usize, greatest: &[usize]| -> Vec<u8> {
        let number = |index: usize| match index {
            _ if greatest.contains(&index) => 4.0,
            _ if index < least => f32::NEG_INFINITY,
            _ => (index % 4) as f32,
        };
        (0..count).flat_map(|index| number(index).to_le_bytes()).collect()
    };
    for (least, greatest) in [(0, &[700, 900][..]), (500, &[999]), (1000, &[])] {
        let arguments = [(DType::F32, &[count][..], numbers(least, greatest))];
        let expected = results(&module, &arguments);
        assert_eq!(expected[1], greatest.first().map_or(0, |first| *first as i32).to_le_bytes());
        for max_terms in [2, 7, 30, 999] {
            let divided = split_reductions(&module, max_terms).unwrap();
            assert_eq!(results(&divided, &arguments), expected, "{max_terms}: {divided}");
        }
    }
}

#[test]
fn divided_products_have_the_same_results() {
    let cases: [(&[usize], &[usize], &str, &str); 4] = [
        (&[97], &[97], "contracting_dims = [0] x [0]", "f32"),
        (&[3, 60], &[60, 2], "contracting_dims = [1] x [0]", "3x2xf32"),
        (&[2, 3, 60], &[60, 4, 2], "batching_dims = [0] x [2], contracting_dims = [2] x [0]", "2x3x4xf32"),
        (&[10, 2, 12], &[12, 3, 10], "contracting_dims = [0, 2] x [2, 0]", "2x3xf32"),
    ];
    for (lhs, rhs, dimensions, result) in cases {
        let ty = |dims: &[usize]| {
            let sizes: String = dims.iter().map(|size| format!("{size}x")).collect();
            format!("tensor<{sizes}f32>")
        };
        let module = parse(&format!(
            "func.func @main(%x: {lhs}, %y: {rhs}) -> tensor<{result}> {{
                %0 = stablehlo.dot_general %x, %y, {dimensions} : ({lhs}, {rhs}) -> tensor<{result}>
                return %0 : tensor<{result}>
            }}",
            lhs = ty(lhs),
            rhs = ty(rhs),
        ));
        let argument = |dims| (DType::F32, dims, whole_numbers(<[usize]>::iter(dims).product()));
        let arguments = [argument(lhs), argument(rhs)];
        let expected = results(&module, &arguments);
        for max_terms in [4, 10, 13, 50] {
            let divided = split_reductions(&module, max_terms).unwrap();
            assert!(divided.op_counts().contains_key("stablehlo.reduce"), "{divided}");
            assert_eq!(results(&divided, &arguments), expected, "{max_terms}: {divided}");
        }
    }
}
