//! Complex numbers.

use super::*;

fn c128s(runtime: &Runtime, values: &[[f64; 2]]) -> Array {
    let bytes: Vec<u8> = values.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
    Array::from_bytes(&runtime.allocator, DType::C128, &[values.len()], &bytes).unwrap()
}

fn to_c128s(array: &Array) -> Vec<[f64; 2]> {
    let bytes = array.bytes().unwrap();
    let part = |b: &[u8]| f64::from_le_bytes(b.try_into().unwrap());
    bytes.chunks_exact(16).map(|b| [part(&b[..8]), part(&b[8..])]).collect()
}

#[test]
fn complex_numbers_are_compared_by_real_then_imaginary_parts() {
    let rt = runtime();
    let values = [[1.0, 2.0], [1.0, 3.0], [2.0, 0.0], [1.0, 2.0]];
    let others = [[1.0, 3.0], [1.0, 2.0], [1.0, 9.0], [1.0, 2.0]];
    for (relation, expected) in [
        ("LT", [1, 0, 0, 0]),
        ("LE", [1, 0, 0, 1]),
        ("GT", [0, 1, 1, 0]),
        ("GE", [0, 1, 1, 1]),
        ("EQ", [0, 0, 0, 1]),
    ] {
        let text = format!(
            "func.func @main(%x: tensor<4xcomplex<f64>>, %y: tensor<4xcomplex<f64>>) -> tensor<4xi1> {{
               %0 = stablehlo.compare {relation}, %x, %y
                 : (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) -> tensor<4xi1>
               return %0 : tensor<4xi1>
             }}"
        );
        let got = run_one(&text, &rt, vec![c128s(&rt, &values), c128s(&rt, &others)]);
        assert_eq!(got[0].bytes().unwrap(), expected, "{relation}");
    }
}

/// Functions of complex numbers: name, arguments and values, parts of C99's Annex G and points on both sides of branch
/// cuts. Signs of zeros count.
const SPECIAL_VALUES: &[(&str, &[[[f64; 2]; 2]])] = {
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_3, FRAC_PI_4, PI};
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    const ACOSH_2: f64 = 1.3169578969248167;
    const ATANH_HALF: f64 = 0.5493061443340549;
    &[
        (
            "acos",
            &[
                [[2., 0.], [0., -ACOSH_2]],
                [[2., -0.], [0., ACOSH_2]],
                [[-2., 0.], [PI, -ACOSH_2]],
                [[-INF, INF], [3. * FRAC_PI_4, -INF]],
                [[INF, 1.], [0., -INF]],
                [[0., NAN], [FRAC_PI_2, NAN]],
                [[NAN, INF], [NAN, -INF]],
                [[NAN, 0.], [NAN, NAN]],
            ],
        ),
        (
            "acosh",
            &[
                [[1., 0.], [0., 0.]],
                [[0.5, -0.], [0., -FRAC_PI_3]],
                [[-1., -0.], [0., -PI]],
                [[-INF, NAN], [INF, NAN]],
                [[INF, -INF], [INF, -FRAC_PI_4]],
            ],
        ),
        (
            "asin",
            &[
                [[0., -0.], [0., -0.]],
                [[-0., 0.], [-0., 0.]],
                [[2., 0.], [FRAC_PI_2, ACOSH_2]],
                [[2., -0.], [FRAC_PI_2, -ACOSH_2]],
                [[-2., 0.], [-FRAC_PI_2, ACOSH_2]],
                [[1e-300, 1e-300], [1e-300, 1e-300]],
                [[INF, INF], [FRAC_PI_4, INF]],
                [[1., -INF], [0., -INF]],
                [[0., NAN], [0., NAN]],
            ],
        ),
        (
            "asinh",
            &[
                [[0., 2.], [ACOSH_2, FRAC_PI_2]],
                [[-0., 2.], [-ACOSH_2, FRAC_PI_2]],
                [[-INF, 1.], [-INF, 0.]],
                [[NAN, 0.], [NAN, 0.]],
            ],
        ),
        (
            "atan",
            &[
                [[0., 2.], [FRAC_PI_2, ATANH_HALF]],
                [[-0., 2.], [-FRAC_PI_2, ATANH_HALF]],
                [[0., 1.], [0., INF]],
                [[-INF, 1.], [-FRAC_PI_2, 0.]],
                [[NAN, 0.], [NAN, 0.]],
            ],
        ),
        (
            "atanh",
            &[
                [[2., 0.], [ATANH_HALF, FRAC_PI_2]],
                [[2., -0.], [ATANH_HALF, -FRAC_PI_2]],
                [[1., 0.], [INF, 0.]],
                [[1., -1e-300], [345.73433753938684, -FRAC_PI_4]],
                [[1e300, 1e300], [5e-301, FRAC_PI_2]],
                [[-0., NAN], [-0., NAN]],
                [[INF, -1.], [0., -FRAC_PI_2]],
                [[INF, NAN], [0., NAN]],
            ],
        ),
        (
            "cosh",
            &[
                [[-0., 0.], [1., -0.]],
                [[0., INF], [NAN, 0.]],
                [[-INF, 0.], [INF, -0.]],
                [[INF, 2.], [-INF, INF]],
                [[NAN, 0.], [NAN, 0.]],
            ],
        ),
        (
            "sinh",
            &[
                [[-0., INF], [-0., NAN]],
                [[INF, 0.], [INF, 0.]],
                [[INF, -2.], [-INF, -INF]],
                [[-INF, NAN], [-INF, NAN]],
                [[NAN, -0.], [NAN, -0.]],
                // The exponential of 711 is not finite.
                [[711., 1.5], [2.1478033373565021e307, INF]],
            ],
        ),
        (
            "square",
            &[
                [[f64::MAX, f64::MAX], [0., INF]],
                [[f64::MAX, -f64::MAX], [0., -INF]],
                [[-INF, 1.], [INF, -INF]],
                [[1e-200, INF], [-INF, INF]],
            ],
        ),
    ]
};

#[test]
fn functions_of_complex_numbers_have_the_special_values_of_c99() {
    let rt = runtime();
    for (name, cases) in SPECIAL_VALUES {
        let ty = format!("tensor<{}xcomplex<f64>>", cases.len());
        let text = format!(
            "func.func @main(%x: {ty}) -> {ty} {{
               %0 = chlo.{name} %x : {ty} -> {ty}
               return %0 : {ty}
             }}"
        );
        let arguments: Vec<_> = cases.iter().map(|[z, _]| *z).collect();
        let results = run_one(&text, &rt, vec![c128s(&rt, &arguments)]);
        for ([z, expected], found) in cases.iter().zip(to_c128s(&results[0])) {
            for (e, f) in expected.iter().zip(found) {
                let is_close = e == &f && e.is_sign_negative() == f.is_sign_negative()
                    || (e - f).abs() <= 1e-15 * e.abs()
                    || e.is_nan() && f.is_nan();
                assert!(is_close, "{name} of {z:?}: expected {expected:?}, found {found:?}");
            }
        }
    }
}

#[test]
fn complex_numbers_are_ordered_by_real_then_imaginary_parts() {
    const PROGRAM: &str = "func.func @main(%x: tensor<4xcomplex<f64>>, %y: tensor<4xcomplex<f64>>)
        -> (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<complex<f64>>) {
      %0 = stablehlo.minimum %x, %y : tensor<4xcomplex<f64>>
      %1 = stablehlo.maximum %x, %y : tensor<4xcomplex<f64>>
      %least = stablehlo.constant dense<(1.0, 3.0)> : tensor<complex<f64>>
      %most = stablehlo.constant dense<(2.0, -1.0)> : tensor<complex<f64>>
      %2 = stablehlo.clamp %least, %x, %most
          : (tensor<complex<f64>>, tensor<4xcomplex<f64>>, tensor<complex<f64>>) -> tensor<4xcomplex<f64>>
      %3 = stablehlo.reduce(%x init: %most) applies stablehlo.maximum across dimensions = [0]
          : (tensor<4xcomplex<f64>>, tensor<complex<f64>>) -> tensor<complex<f64>>
      return %0, %1, %2, %3
          : tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>, tensor<complex<f64>>
    }";
    let rt = runtime();
    let x = [[1., 5.], [1., 2.], [-0., 1.], [3., -9.]];
    let y = [[2., -7.], [1., -2.], [0., 4.], [3., -9.]];
    let results = run_one(PROGRAM, &rt, vec![c128s(&rt, &x), c128s(&rt, &y)]);
    assert_eq!(to_c128s(&results[0]), [[1., 5.], [1., -2.], [-0., 1.], [3., -9.]]);
    assert_eq!(to_c128s(&results[1]), [[2., -7.], [1., 2.], [0., 4.], [3., -9.]]);
    assert_eq!(to_c128s(&results[2]), [[1., 5.], [1., 3.], [1., 3.], [2., -1.]]);
    assert_eq!(to_c128s(&results[3]), [[3., -9.]]);
}
