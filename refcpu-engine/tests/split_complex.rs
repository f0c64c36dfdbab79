//! Programs of complex numbers on a device that has none, compared with refcpu's kernels for complex numbers.

use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::passes::{CoreOps, decompose};
use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

/// The parts of numbers that meet each other: zeros, infinities, NaN, the limits of f32, and numbers of all sizes.
#[rustfmt::skip]
const PARTS: &[f64] = &[
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.6, -0.8, 1.5, 3.25, -7.0, 2.0, 1e-3, -1e-3, 1e-10, 1e10, -1e10, 30.0, -30.0, 87.0, 1e-30, -1e-30,
    1e30, 2e38, -2e38, 2e-38, f64::INFINITY, f64::NEG_INFINITY, f64::NAN,
];

/// The numbers of an operand: all pairs of parts, in an order of its own.
fn numbers(step: usize) -> Vec<[f64; 2]> {
    let count = PARTS.len() * PARTS.len();
    (0..count).map(|i| i * step % count).map(|i| [PARTS[i / PARTS.len()], PARTS[i % PARTS.len()]]).collect()
}

fn parse(text: &str) -> Module {
    pjrt_stablehlo::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the parts of the results of a program. Its arguments are arrays of `ty`, with the parts of complex numbers.
fn results(module: &Module, ty: DType, arguments: &[(Vec<usize>, &[[f64; 2]])]) -> Vec<Vec<f64>> {
    let compiled =
        compile(module, &CompileOptions::default()).unwrap_or_else(|error| panic!("{error}\n{module}"));
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let is_wide = matches!(ty, DType::F64 | DType::C128);
    let bytes = |number: &f64| {
        if is_wide { number.to_le_bytes().to_vec() } else { (*number as f32).to_le_bytes().to_vec() }
    };
    let input = |(dims, numbers): &(Vec<usize>, &[[f64; 2]])| {
        let bytes: Vec<u8> = numbers.iter().flatten().flat_map(bytes).collect();
        Input { array: Array::from_bytes(&runtime.allocator, ty, dims, &bytes).unwrap(), donatable: false }
    };
    let inputs = vec![arguments.iter().map(input).collect()];
    let results = run(&compiled.plan, &runtime, inputs, &RunOptions::default()).unwrap().remove(0);
    let numbers = |array: &Array| -> Vec<f64> {
        let bytes = array.bytes().unwrap();
        match array.dtype() {
            DType::C64 | DType::F32 => bytes
                .chunks_exact(4)
                .map(|part| f64::from(f32::from_le_bytes(part.try_into().unwrap())))
                .collect(),
            DType::C128 | DType::F64 => {
                bytes.chunks_exact(8).map(|part| f64::from_le_bytes(part.try_into().unwrap())).collect()
            }
            _ => bytes.iter().map(|byte| f64::from(*byte)).collect(),
        }
    };
    results.iter().map(numbers).collect()
}

/// The parts of the results of a program as it is, and without complex numbers.
struct Both {
    /// The precision of the element type.
    precision: f64,
    expected: Vec<Vec<f64>>,
    found: Vec<Vec<f64>>,
}

/// Runs a program of arrays of complex numbers as it is, and without complex numbers. `T` is the complex type in its text, and
/// `dims` are the sizes of its arguments. Returns the results for each element type.
fn both(text: &str, dims: &[usize], arguments: &[&[[f64; 2]]]) -> [Both; 2] {
    let types = [
        ("f32", DType::C64, DType::F32, f64::from(f32::EPSILON)),
        ("f64", DType::C128, DType::F64, f64::EPSILON),
    ];
    types.map(|(name, complex, part, precision)| {
        let module = parse(&text.replace("ELEMENT", &format!("complex<{name}>")).replace("PART", name));
        let core = CoreOps::default().without_complex_numbers().without(OpCode::FuncCall);
        let split = decompose(&module, &core).unwrap_or_else(|error| panic!("{error}\n{module}"));
        assert!(!split.to_string().contains("complex<"), "{split}");
        let whole = arguments.iter().map(|numbers| (dims.to_vec(), *numbers)).collect::<Vec<_>>();
        let parts = arguments.iter().map(|numbers| ([dims, &[2]].concat(), *numbers)).collect::<Vec<_>>();
        let (expected, found) = (results(&module, complex, &whole), results(&split, part, &parts));
        Both { precision, expected, found }
    })
}

/// Checks that both programs have the same numbers, with NaN and infinities in the same parts.
fn check(text: &str, dims: &[usize], arguments: &[&[[f64; 2]]]) {
    for Both { expected, found, .. } in both(text, dims, arguments) {
        let bits = |all: &[Vec<f64>]| -> Vec<u64> {
            all.iter().flatten().map(|x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() }).collect()
        };
        assert_eq!(bits(&found), bits(&expected), "{text}");
    }
}

/// The operands on which functions are compared, and the difference that is allowed, as a multiple of the precision of the modulus.
struct Limits {
    difference: f64,
    /// The greatest magnitude of parts.
    greatest: f64,
}

/// Returns the results of a function that differ from those of refcpu's kernel.
fn differences(name: &str, limits: &Limits) -> Vec<String> {
    let numbers = [numbers(1), numbers(10)];
    let dims = [numbers[0].len()];
    let ty = format!("tensor<{}xELEMENT>", dims[0]);
    let is_binary = matches!(name, "divide" | "multiply" | "power" | "maximum" | "minimum");
    let operands = if is_binary { "%x, %y" } else { "%x" };
    let text = format!(
        "func.func @main(%x: {ty}, %y: {ty}) -> {ty} {{
            %r = stablehlo.{name} {operands} : {ty}
            return %r : {ty}
        }}"
    );
    let mut wrong = Vec::new();
    for Both { precision, expected, found } in both(&text, &dims, &[&numbers[0], &numbers[1]]) {
        let least = if precision > 1e-10 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
        let pairs = expected[0].chunks_exact(2).zip(found[0].chunks_exact(2));
        for (index, (expected, found)) in pairs.enumerate() {
            let operands = [&numbers[0][index], &numbers[1][index]];
            let operands = &operands[..if is_binary { 2 } else { 1 }];
            let modulus = expected[0].hypot(expected[1]);
            let within = |part: &f64| part.abs() <= limits.greatest;
            let allowed = limits.difference * precision * modulus.max(least);
            let is_near = |part: usize| {
                let (expected, found) = (expected[part], found[part]);
                expected.is_nan() && found.is_nan()
                    || expected == found
                    || (expected - found).abs() <= allowed
            };
            // The kernel of products scales large numbers, and the formula does not.
            let is_large = name == "multiply" && !modulus.is_finite();
            if operands.iter().copied().flatten().all(within) && !is_large && !(is_near(0) && is_near(1)) {
                wrong.push(format!("{name} {operands:?}: expected {expected:?}, found {found:?}"));
            }
        }
    }
    wrong
}

#[test]
fn functions_of_complex_numbers_are_as_accurate_as_those_of_real_numbers() {
    #[rustfmt::skip]
    let names = [
        "multiply", "divide", "sqrt", "rsqrt", "exponential", "exponential_minus_one", "log", "log_plus_one", "sine", "cosine",
        "tan", "tanh", "logistic", "sign", "cbrt", "maximum", "minimum",
    ];
    let finite = Limits { difference: 16.0, greatest: f64::MAX };
    let mut wrong: Vec<String> = names.iter().flat_map(|name| differences(name, &finite)).collect();
    // The error of the exponent grows with its size.
    wrong.extend(differences("power", &Limits { difference: 300.0, greatest: 3.5 }));
    assert!(wrong.is_empty(), "{}\n{} differ", wrong.join("\n"), wrong.len());
}

/// Whole numbers, of which sums and products are exact in any order.
fn whole_numbers(count: usize) -> Vec<[f64; 2]> {
    (0..count).map(|i| [(i * 7 % 11) as f64 - 5.0, (i * 5 % 13) as f64 - 6.0]).collect()
}

/// Checks a function body of matrices `%x` and `%y` of 6x4 whole numbers, which returns `%r` of the type `result`.
fn check_matrices(result: &str, body: &str) {
    let ty = "tensor<6x4xELEMENT>";
    let text = format!("func.func @main(%x: {ty}, %y: {ty}) -> {result} {{ {body} return %r : {result} }}");
    let numbers = whole_numbers(48);
    check(&text, &[6, 4], &[&numbers[..24], &numbers[24..]]);
}

#[test]
fn elements_are_moved_as_pairs() {
    let ty = "tensor<6x4xELEMENT>";
    for (result, op) in [
        (ty, format!("stablehlo.reverse %x, dims = [0, 1] : {ty}")),
        (
            "tensor<4x6xELEMENT>",
            format!("stablehlo.transpose %x, dims = [1, 0] : ({ty}) -> tensor<4x6xELEMENT>"),
        ),
        (
            "tensor<12x4xELEMENT>",
            format!("stablehlo.concatenate %x, %y, dim = 0 : ({ty}, {ty}) -> tensor<12x4xELEMENT>"),
        ),
        ("tensor<3x2xELEMENT>", format!("stablehlo.slice %x [0:6:2, 1:3] : ({ty}) -> tensor<3x2xELEMENT>")),
        ("tensor<24xELEMENT>", format!("stablehlo.reshape %x : ({ty}) -> tensor<24xELEMENT>")),
        (
            "tensor<2x6x4xELEMENT>",
            format!("stablehlo.broadcast_in_dim %x, dims = [1, 2] : ({ty}) -> tensor<2x6x4xELEMENT>"),
        ),
        (ty, format!("stablehlo.negate %x : {ty}")),
        ("tensor<6x4xi1>", format!("stablehlo.compare EQ, %x, %y : ({ty}, {ty}) -> tensor<6x4xi1>")),
        (ty, format!("stablehlo.iota dim = 1 : {ty}")),
        (ty, format!("stablehlo.constant dense<(1.0, -2.0)> : {ty}")),
        ("tensor<6x4xcomplex<f32>>", format!("stablehlo.convert %x : ({ty}) -> tensor<6x4xcomplex<f32>>")),
        ("tensor<6x4xi32>", format!("stablehlo.convert %x : ({ty}) -> tensor<6x4xi32>")),
    ] {
        check_matrices(result, &format!("%r = {op}"));
    }
}

#[test]
fn selections_gathers_and_paddings_take_pairs() {
    let ty = "tensor<6x4xELEMENT>";
    check_matrices(
        ty,
        &format!(
            "%c = stablehlo.compare NE, %x, %y : ({ty}, {ty}) -> tensor<6x4xi1>
             %r = stablehlo.select %c, %x, %y : tensor<6x4xi1>, {ty}"
        ),
    );
    check_matrices(
        "tensor<9x7xELEMENT>",
        &format!(
            "%v = stablehlo.constant dense<(9.0, 8.0)> : tensor<ELEMENT>
             %r = stablehlo.pad %x, %v, low = [1, 0], high = [2, 0], interior = [0, 1]
                : ({ty}, tensor<ELEMENT>) -> tensor<9x7xELEMENT>"
        ),
    );
    check_matrices(
        "tensor<3x4xELEMENT>",
        &format!(
            "%i = stablehlo.constant dense<[[4], [0], [5]]> : tensor<3x1xi64>
             %r = \"stablehlo.gather\"(%x, %i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
                collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
                slice_sizes = array<i64: 1, 4>}}> : ({ty}, tensor<3x1xi64>) -> tensor<3x4xELEMENT>"
        ),
    );
}

#[test]
fn products_and_sums_are_those_of_complex_numbers() {
    let ty = "tensor<6x4xELEMENT>";
    check_matrices(
        "tensor<6x6xELEMENT>",
        &format!(
            "%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : ({ty}, {ty}) -> tensor<6x6xELEMENT>"
        ),
    );
    for region in [
        "%s = stablehlo.add %a, %b : tensor<ELEMENT> stablehlo.return %s : tensor<ELEMENT>",
        "%s = stablehlo.multiply %a, %b : tensor<ELEMENT> %t = stablehlo.sign %s : tensor<ELEMENT>
         stablehlo.return %s : tensor<ELEMENT>",
        "%p = stablehlo.real %a : (tensor<ELEMENT>) -> tensor<PART> %q = stablehlo.real %b : (tensor<ELEMENT>) -> tensor<PART>
         %c = stablehlo.compare GE, %p, %q : (tensor<PART>, tensor<PART>) -> tensor<i1>
         %s = stablehlo.select %c, %a, %b : tensor<i1>, tensor<ELEMENT> stablehlo.return %s : tensor<ELEMENT>",
    ] {
        let arguments = "(%a: tensor<ELEMENT>, %b: tensor<ELEMENT>)";
        check_matrices(
            "tensor<4xELEMENT>",
            &format!(
                "%i = stablehlo.constant dense<(1.0, 0.0)> : tensor<ELEMENT>
                 %r = stablehlo.reduce(%x init: %i) across dimensions = [0] : ({ty}, tensor<ELEMENT>) -> tensor<4xELEMENT>
                    reducer{arguments} {{ {region} }}"
            ),
        );
    }
}

#[test]
fn updates_are_scattered_to_both_parts() {
    let ty = "tensor<6x4xELEMENT>";
    for region in [
        "stablehlo.return %b : tensor<ELEMENT>",
        "%s = stablehlo.add %a, %b : tensor<ELEMENT> stablehlo.return %s : tensor<ELEMENT>",
        "%s = stablehlo.multiply %a, %b : tensor<ELEMENT> stablehlo.return %s : tensor<ELEMENT>",
    ] {
        check_matrices(
            ty,
            &format!(
                "%i = stablehlo.constant dense<[[4], [0], [5], [1], [3], [2]]> : tensor<6x1xi64>
                 %r = \"stablehlo.scatter\"(%x, %i, %y) <{{scatter_dimension_numbers = #stablehlo.scatter<
                    update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
                    index_vector_dim = 1>}}> ({{ ^bb0(%a: tensor<ELEMENT>, %b: tensor<ELEMENT>): {region} }})
                    : ({ty}, tensor<6x1xi64>, {ty}) -> {ty}"
            ),
        );
    }
}

#[test]
fn loops_branches_calls_and_sorts_have_both_parts() {
    let ty = "tensor<6x4xELEMENT>";
    check_matrices(
        ty,
        &format!(
            "%z = stablehlo.constant dense<0> : tensor<i32>
             %0:2 = stablehlo.while(%a = %x, %i = %z) : {ty}, tensor<i32>
                cond {{
                    %n = stablehlo.constant dense<3> : tensor<i32>
                    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
                    stablehlo.return %c : tensor<i1>
                }} do {{
                    %one = stablehlo.constant dense<1> : tensor<i32>
                    %j = stablehlo.add %i, %one : tensor<i32>
                    %s = stablehlo.multiply %a, %y : {ty}
                    stablehlo.return %s, %j : {ty}, tensor<i32>
                }}
             %p = stablehlo.constant dense<true> : tensor<i1>
             %r = \"stablehlo.if\"(%p) ({{ stablehlo.return %0#0 : {ty} }}, {{ stablehlo.return %x : {ty} }}) : (tensor<i1>) -> {ty}"
        ),
    );
    check_matrices(
        ty,
        &format!(
            "%0:2 = \"stablehlo.sort\"(%x, %y) <{{dimension = 0 : i64, is_stable = true}}> ({{
             ^bb0(%a: tensor<ELEMENT>, %b: tensor<ELEMENT>, %c: tensor<ELEMENT>, %d: tensor<ELEMENT>):
                %u = stablehlo.imag %c : (tensor<ELEMENT>) -> tensor<PART>
                %v = stablehlo.imag %d : (tensor<ELEMENT>) -> tensor<PART>
                %p = stablehlo.compare LT, %u, %v : (tensor<PART>, tensor<PART>) -> tensor<i1>
                stablehlo.return %p : tensor<i1>
             }}) : ({ty}, {ty}) -> ({ty}, {ty})
             %r = stablehlo.subtract %0#0, %0#1 : {ty}"
        ),
    );
}
