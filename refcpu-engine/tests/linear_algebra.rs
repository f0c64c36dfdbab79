//! The decompositions of linear algebra, compared with refcpu's kernels.

use pjrt_stablehlo::Module;
use pjrt_stablehlo::ir::{Op, OpCode};
use pjrt_stablehlo::passes::{CoreOps, decompose};
use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

/// The element types: the name, the type, and the number of parts of an element.
const TYPES: [(&str, DType, usize); 4] = [
    ("f32", DType::F32, 1),
    ("f64", DType::F64, 1),
    ("complex<f32>", DType::C64, 2),
    ("complex<f64>", DType::C128, 2),
];

fn parse(text: &str) -> Module {
    pjrt_stablehlo::parse(text.to_owned()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The program without operations of linear algebra.
fn decomposed(text: &str) -> Module {
    let core = [OpCode::Cholesky, OpCode::TriangularSolve, OpCode::CustomCall, OpCode::Fft]
        .into_iter()
        .fold(CoreOps::default(), CoreOps::without);
    decompose(&parse(text), &core).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Numbers between -1 and 1.
fn numbers(count: usize) -> Vec<f64> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1_u64 << 23) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn results(module: &Module, ty: DType, inputs: &[(&[usize], Vec<f64>)]) -> Vec<Vec<f64>> {
    let compiled =
        compile(module, &CompileOptions::default()).unwrap_or_else(|error| panic!("{error}\n{module}"));
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let is_wide = matches!(ty, DType::F64 | DType::C128);
    let input = |(dims, parts): &(&[usize], Vec<f64>)| {
        let bytes: Vec<u8> = match is_wide {
            true => parts.iter().flat_map(|part| part.to_le_bytes()).collect(),
            false => parts.iter().flat_map(|part| (*part as f32).to_le_bytes()).collect(),
        };
        Input { array: Array::from_bytes(&runtime.allocator, ty, dims, &bytes).unwrap(), donatable: false }
    };
    let inputs = inputs.iter().map(input).collect();
    let results = run(&compiled.plan, &runtime, vec![inputs], &RunOptions::default()).unwrap().remove(0);
    let parts = |array: &Array| {
        let bytes = array.bytes().unwrap();
        match is_wide {
            true => bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
            false => {
                bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
            }
        }
    };
    results.iter().map(parts).collect()
}

/// Checks that the decomposition of a program has the results of the kernels.
fn assert_same(text: &str, ty: DType, inputs: &[(&[usize], Vec<f64>)]) {
    let (of_kernels, of_formulas) =
        (results(&parse(text), ty, inputs), results(&decomposed(text), ty, inputs));
    let tolerance = if matches!(ty, DType::F64 | DType::C128) { 1e-11 } else { 1e-4 };
    assert_eq!(of_kernels.len(), of_formulas.len());
    for (a, b) in of_kernels.iter().flatten().zip(of_formulas.iter().flatten()) {
        let is_close = (a - b).abs() <= tolerance * a.abs().max(1.0);
        assert!(is_close || a.is_nan() && b.is_nan(), "{a} {b}\n{text}\n{of_kernels:?}\n{of_formulas:?}");
    }
}

/// Two matrices of 5x5 with a large diagonal; the others of their elements are small, so that they are definite.
fn definite(parts: usize) -> Vec<f64> {
    let mut values = numbers(2 * 5 * 5 * parts);
    for (at, value) in values.iter_mut().enumerate() {
        let (part, at) = (at % parts, at / parts);
        if at / 5 % 5 == at % 5 {
            *value = if part == 0 { 4.0 + value.abs() } else { 0.0 };
        }
    }
    values
}

#[test]
fn factors_of_cholesky_are_those_of_the_kernel() {
    for (element, ty, parts) in TYPES {
        for lower in [true, false] {
            // A kernel may leave anything in the other triangle.
            let (row, column) = if lower { ("%r", "%c") } else { ("%c", "%r") };
            let text = format!(
                "func.func @main(%x: tensor<2x5x5x{element}>) -> tensor<2x5x5x{element}> {{
                   %0 = \"stablehlo.cholesky\"(%x) {{lower = {lower}}} : (tensor<2x5x5x{element}>) -> tensor<2x5x5x{element}>
                   %r = stablehlo.iota dim = 1 : tensor<2x5x5xi32>
                   %c = stablehlo.iota dim = 2 : tensor<2x5x5xi32>
                   %p = stablehlo.compare GE, {row}, {column} : (tensor<2x5x5xi32>, tensor<2x5x5xi32>) -> tensor<2x5x5xi1>
                   %z = stablehlo.subtract %x, %x : tensor<2x5x5x{element}>
                   %1 = stablehlo.select %p, %0, %z : tensor<2x5x5xi1>, tensor<2x5x5x{element}>
                   return %1 : tensor<2x5x5x{element}>
                 }}"
            );
            assert_same(&text, ty, &[(&[2, 5, 5], definite(parts))]);
        }
    }
}

#[test]
fn a_matrix_that_is_not_definite_has_no_factor() {
    let text = "func.func @main(%x: tensor<2x2x2xf32>) -> tensor<2x2x2xf32> {
        %0 = \"stablehlo.cholesky\"(%x) {lower = true} : (tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
        return %0 : tensor<2x2x2xf32>
    }";
    let found = results(&decomposed(text), DType::F32, &[(&[2, 2, 2], vec![4., 0., 2., 5., 1., 0., 2., 1.])]);
    assert_eq!(found[0][..4], [2., 0., 1., 2.]);
    assert!(found[0][4..].iter().all(|element| element.is_nan()), "{found:?}");
}

#[test]
fn solutions_of_triangular_systems_are_those_of_the_kernel() {
    for (element, ty, parts) in TYPES {
        for case in 0..24 {
            let (left, lower, unit) = (case % 2 == 0, case / 2 % 2 == 0, case / 4 % 2 == 0);
            let transpose = ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"][case / 8];
            let dims: &[usize] = if left { &[2, 5, 3] } else { &[2, 3, 5] };
            let rhs = format!("tensor<2x{}x{}x{element}>", dims[1], dims[2]);
            let matrix = format!("tensor<2x5x5x{element}>");
            let text = format!(
                "func.func @main(%a: {matrix}, %b: {rhs}) -> {rhs} {{
                   %0 = \"stablehlo.triangular_solve\"(%a, %b) {{left_side = {left}, lower = {lower}, unit_diagonal = {unit}, \
                   transpose_a = #stablehlo<transpose {transpose}>}} : ({matrix}, {rhs}) -> {rhs}
                   return %0 : {rhs}
                 }}"
            );
            let mut a = definite(parts);
            if parts == 2 {
                // A diagonal that is not real.
                a.iter_mut().skip(1).step_by(12).for_each(|part| *part += 0.5);
            }
            assert_same(&text, ty, &[(&[2, 5, 5], a), (dims, numbers(30 * parts))]);
        }
    }
}

#[test]
fn reflectors_of_qr_and_their_products_are_those_of_the_kernel() {
    for (element, ty, parts) in TYPES {
        for dims in [[2, 6, 4], [2, 4, 4], [2, 3, 5]] {
            let ([_, rows, columns], least) = (dims, dims[1].min(dims[2]));
            let (a, factors) =
                (format!("tensor<2x{rows}x{columns}x{element}>"), format!("tensor<2x{least}x{element}>"));
            let q = format!("tensor<2x{rows}x{least}x{element}>");
            let text = format!(
                "func.func @main(%a: {a}) -> ({a}, {factors}, {q}) {{
                   %0:2 = \"stablehlo.custom_call\"(%a) {{call_target_name = \"Qr\"}} : ({a}) -> ({a}, {factors})
                   %1 = stablehlo.slice %0#0 [0:2, 0:{rows}, 0:{least}] : ({a}) -> {q}
                   %2 = \"stablehlo.custom_call\"(%1, %0#1) {{call_target_name = \"ProductOfElementaryHouseholderReflectors\"}} \
                   : ({q}, {factors}) -> {q}
                   return %0#0, %0#1, %2 : {a}, {factors}, {q}
                 }}"
            );
            let mut values = numbers(dims.iter().product::<usize>() * parts);
            assert_same(&text, ty, &[(&dims, values.clone())]);
            // The first column has nothing to make zero.
            let row = columns * parts;
            for start in (row..rows * row).step_by(row) {
                values[start..start + parts].fill(0.0);
            }
            values[parts - 1] = values[0] * (2 - parts) as f64;
            assert_same(&text, ty, &[(&dims, values)]);
        }
    }
}

/// A product of an 8x64 and a 64x4 matrix with an algorithm, which the decomposition does not have.
fn product(x: &[f64], precision: &str, components: i64, products: i64) -> Vec<f64> {
    let core = CoreOps::default().with_condition(
        OpCode::DotGeneral,
        |_, op| matches!(&op.kind, Op::DotGeneral(dot) if dot.algorithm.is_none()),
    );
    let text = format!(
        "func.func @main(%x: tensor<8x64xf32>, %y: tensor<64x4xf32>) -> tensor<8x4xf32> {{
           %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], \
             algorithm = <lhs_precision_type = {precision}, rhs_precision_type = {precision}, accumulation_type = f32, \
             lhs_component_count = {components}, rhs_component_count = {components}, num_primitive_operations = {products}, \
             allow_imprecise_accumulation = false> : (tensor<8x64xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
           return %0 : tensor<8x4xf32>
         }}"
    );
    let module = decompose(&parse(&text), &core).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let inputs: [(&[usize], _); 2] = [(&[8, 64], x.to_vec()), (&[64, 4], numbers(64 * 4))];
    results(&module, DType::F32, &inputs).remove(0)
}

#[test]
fn products_have_the_accuracy_of_their_algorithm() {
    let (x, y) = (numbers(8 * 64), numbers(64 * 4));
    let exact = |row: usize, column: usize| (0..64).map(|k| x[row * 64 + k] * y[k * 4 + column]).sum::<f64>();
    for (precision, components, products, least, most) in [
        ("bf16", 1, 1, 1e-3, 0.1),
        ("tf32", 1, 1, 1e-4, 1e-2),
        ("f16", 1, 1, 1e-4, 1e-2),
        ("bf16", 2, 3, 1e-6, 1e-3),
        ("bf16", 3, 6, 0.0, 1e-5),
        ("bf16", 3, 9, 0.0, 1e-5),
        ("f32", 1, 1, 0.0, 1e-5),
    ] {
        let found = product(&x, precision, components, products);
        let errors = found.iter().enumerate().map(|(at, value)| (value - exact(at / 4, at % 4)).abs());
        let error = errors.fold(0.0, f64::max);
        assert!((least..most).contains(&error), "{precision} {components} {products}: {error}");
    }
}

#[test]
fn components_of_infinities_are_not_nan() {
    let mut x = numbers(8 * 64);
    x[0] = f64::INFINITY;
    let found = product(&x, "bf16", 3, 6);
    assert!(found[..4].iter().all(|value| value.is_infinite()), "{found:?}");
    assert!(found[4..].iter().all(|value| value.is_finite()), "{found:?}");
}

#[test]
fn transforms_of_all_lengths_are_products() {
    // Lengths of one product, of several, primes, and those without elements in some dimension.
    for lengths in [&[1][..], &[2], &[7], &[32], &[33], &[96], &[128], &[211], &[3, 40], &[2, 3, 5]] {
        let dims: Vec<usize> = [2].into_iter().chain(lengths.iter().map(|length| *length as usize)).collect();
        let mut half = dims.clone();
        *half.last_mut().unwrap() = half.last().unwrap() / 2 + 1;
        for (kind, from, to) in
            [("FFT", &dims, &dims), ("IFFT", &dims, &dims), ("RFFT", &dims, &half), ("IRFFT", &half, &dims)]
        {
            for (real, ty) in [("f32", [DType::F32, DType::C64]), ("f64", [DType::F64, DType::C128])] {
                let complex = format!("complex<{real}>");
                let element = |is_real: bool| if is_real { real } else { &complex };
                let name = |dims: &[usize], is_real| {
                    let dims: String = dims.iter().map(|dim| format!("{dim}x")).collect();
                    format!("tensor<{dims}{}>", element(is_real))
                };
                let (operand, result) = (name(from, kind == "RFFT"), name(to, kind == "IRFFT"));
                let text = format!(
                    "func.func @main(%x: {operand}) -> {result} {{
                        %0 = stablehlo.fft %x, type = {kind}, length = {lengths:?} : ({operand}) -> {result}
                        return %0 : {result}
                    }}"
                );
                let is_complex = usize::from(kind != "RFFT");
                let count = from.iter().product::<usize>() * (1 + is_complex);
                assert_same(&text, ty[is_complex], &[(from, numbers(count))]);
            }
        }
    }
}

#[test]
fn a_transform_with_a_large_prime_factor_is_refused_by_its_length() {
    let text = "func.func @main(%x: tensor<514xcomplex<f32>>) -> tensor<514xcomplex<f32>> {
        %0 = stablehlo.fft %x, type = FFT, length = [514] : (tensor<514xcomplex<f32>>) -> tensor<514xcomplex<f32>>
        return %0 : tensor<514xcomplex<f32>>
    }";
    let error = decompose(&parse(text), &CoreOps::default().without(OpCode::Fft)).unwrap_err();
    assert!(error.message.contains("length 514") && error.message.contains("above 256"), "{error}");
}
