//! Sine, cosine and the angle of a point on a device that has none of them, compared with the exact functions.

use pjrt_stablehlo::ir::OpCode;
use pjrt_stablehlo::passes::{CoreOps, decompose};
use refcpu_engine::compile::{CompileOptions, compile};
use refcpu_engine::exec::{Input, RunOptions, Runtime, run};
use refcpu_engine::storage::{Allocator, AllocatorOptions, Array};
use refcpu_kernels::{DType, Pool};

/// Returns the results of `stablehlo.{op}` of arrays of these numbers, by its decomposition.
fn decomposed(op: &str, ty: DType, operands: &[&[f64]]) -> Vec<f64> {
    let is_wide = ty == DType::F64;
    let array = format!("tensor<{}x{}>", operands[0].len(), if is_wide { "f64" } else { "f32" });
    let names: Vec<String> = (0..operands.len()).map(|at| format!("%a{at}")).collect();
    let parameters: Vec<String> = names.iter().map(|name| format!("{name}: {array}")).collect();
    let (parameters, names) = (parameters.join(", "), names.join(", "));
    let text = format!(
        "func.func @main({parameters}) -> {array} {{
            %r = stablehlo.{op} {names} : {array}
            return %r : {array}
        }}"
    );
    let lacking = [OpCode::Sine, OpCode::Cosine, OpCode::Atan2, OpCode::Tan];
    let core = lacking.into_iter().fold(CoreOps::default(), CoreOps::without);
    let module = decompose(&pjrt_stablehlo::parse(text).unwrap(), &core).unwrap();
    let compiled = compile(&module, &CompileOptions::default()).unwrap();
    let runtime = Runtime::new(Pool::inline(), Allocator::new(AllocatorOptions::default()));
    let input = |numbers: &&[f64]| {
        let bytes = numbers.iter().flat_map(|x| match is_wide {
            true => x.to_le_bytes().to_vec(),
            false => (*x as f32).to_le_bytes().to_vec(),
        });
        let bytes: Vec<u8> = bytes.collect();
        Input {
            array: Array::from_bytes(&runtime.allocator, ty, &[numbers.len()], &bytes).unwrap(),
            donatable: false,
        }
    };
    let inputs = vec![operands.iter().map(input).collect()];
    let results = run(&compiled.plan, &runtime, inputs, &RunOptions::default()).unwrap().remove(0);
    let bytes = results[0].bytes().unwrap();
    match is_wide {
        true => bytes.chunks_exact(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect(),
        false => {
            bytes.chunks_exact(4).map(|x| f64::from(f32::from_le_bytes(x.try_into().unwrap()))).collect()
        }
    }
}

/// Checks that numbers are within some units in the last place of the exact ones, with the same signs of zeros.
fn check(name: &str, ty: DType, units: f64, numbers: &[f64], exact: &[f64], of: impl Fn(usize) -> String) {
    let (precision, least) = match ty {
        DType::F64 => (f64::EPSILON, f64::MIN_POSITIVE),
        _ => (f64::from(f32::EPSILON), f64::from(f32::MIN_POSITIVE)),
    };
    for (at, (found, exact)) in numbers.iter().zip(exact).enumerate() {
        let is_near = (found - exact).abs() <= units * precision * exact.abs().max(least);
        let is_same = found.is_nan() && exact.is_nan() || *exact == 0.0 && found.to_bits() == exact.to_bits();
        assert!(is_same || is_near && *exact != 0.0, "{name} of {}: {found}, expected {exact}", of(at));
    }
}

/// Angles of all sizes up to a limit, with multiples of a quarter turn, zeros and infinities, as numbers of the type.
fn angles(ty: DType, limit: f64) -> Vec<f64> {
    let quarters = (-2000..2000).map(|n| f64::from(n) * std::f64::consts::FRAC_PI_2);
    let sizes = (0..20000).map(|n| {
        limit.powf(f64::from(n % 1999) / 1500.0 - 0.33) * f64::from(n * 7919 % 2003 - 1001) / 1001.0
    });
    let special = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-30, -1e-30];
    let round = |x: f64| if ty == DType::F64 { x } else { f64::from(x as f32) };
    quarters.chain(sizes).chain(special).map(round).filter(|x| !(x.abs() > limit && x.is_finite())).collect()
}

#[test]
fn sine_cosine_and_tangent_are_right_to_the_last_digits() {
    // The remainder of large f32 has fewer digits.
    for (ty, limit, units) in [(DType::F32, 1e5, 2.0), (DType::F32, 1e6, 32.0), (DType::F64, 1e12, 2.0)] {
        let angles = angles(ty, limit);
        let functions = [("sine", f64::sin as fn(f64) -> f64), ("cosine", f64::cos), ("tan", f64::tan)];
        for (name, function) in functions {
            // A tangent is a quotient of two of them.
            let units = if name == "tan" { 2.0 * units } else { units };
            let exact: Vec<f64> = angles.iter().map(|x| function(*x)).collect();
            check(name, ty, units, &decomposed(name, ty, &[&angles]), &exact, |at| angles[at].to_string());
        }
    }
}

#[test]
fn angles_without_digits_are_nan() {
    assert!(decomposed("sine", DType::F32, &[&[1e10, -1e30]]).iter().all(|x| x.is_nan()));
}

#[test]
fn the_angle_of_a_point_is_right_in_all_quadrants() {
    #[rustfmt::skip]
    let numbers = [
        0.0, -0.0, 1.0, -1.0, 0.25, -0.3, 0.577, 0.268, 7.5, -3.0, 1e-20, -1e-20, 1e20, -1e20, f64::INFINITY, f64::NEG_INFINITY, f64::NAN,
    ];
    for ty in [DType::F32, DType::F64] {
        let round = |x: f64| if ty == DType::F64 { x } else { f64::from(x as f32) };
        let dense = (0..400).map(|n| [f64::from(n % 20) / 7.0 - 1.3, f64::from(n / 20) / 9.0 - 1.1]);
        let pairs: Vec<[f64; 2]> =
            numbers.iter().flat_map(|y| numbers.map(|x| [*y, x])).chain(dense).collect();
        let (y, x): (Vec<f64>, Vec<f64>) = pairs.iter().map(|[y, x]| (round(*y), round(*x))).unzip();
        let exact: Vec<f64> = y.iter().zip(&x).map(|(y, x)| y.atan2(*x)).collect();
        check("atan2", ty, 2.0, &decomposed("atan2", ty, &[&y, &x]), &exact, |at| {
            format!("{}, {}", y[at], x[at])
        });
    }
}
