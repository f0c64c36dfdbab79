//! Values of the decompositions of CHLO's special functions, which are evaluated number by number.

use std::collections::HashMap;

use pjrt_stablehlo::ir::{ComparisonDirection as Cmp, ElementType, Op, TensorType, ValueId};
use pjrt_stablehlo::passes::{CoreOps, decompose};

/// The numbers of a value: one for a scalar, all elements for a table.
type Numbers = Vec<f64>;

/// A function of scalars of type `element` at a point, with operations rounded to the type.
fn evaluate(name: &str, element: &str, arguments: &[f64]) -> f64 {
    let ty = format!("tensor<{element}>");
    let names: Vec<String> = (0..arguments.len()).map(|index| format!("%a{index}")).collect();
    let parameters: Vec<String> = names.iter().map(|name| format!("{name}: {ty}")).collect();
    let types = vec![ty.as_str(); arguments.len()].join(", ");
    let text = format!(
        "func.func @main({}) -> {ty} {{\n  %0 = {name} {} : {types} -> {ty}\n  return %0 : {ty}\n}}",
        parameters.join(", "),
        names.join(", ")
    );
    let module = pjrt_stablehlo::parse(text.into_bytes()).unwrap();
    let module = decompose(&module, &CoreOps::default()).unwrap();
    let main = module.main().unwrap();
    let mut values: HashMap<ValueId, Numbers> =
        main.arguments().iter().copied().zip(arguments.iter().map(|&number| vec![number])).collect();
    for (_, op) in main.body.all_ops() {
        if let Op::FuncReturn(_) = op.kind {
            return values[&op.operand(0)][0];
        }
        let ty = main.body.ty(op.result()).as_tensor().unwrap();
        let operands: Vec<&Numbers> = op.operands.iter().map(|operand| &values[operand]).collect();
        let result = apply(&op.kind, &operands, ty);
        values.insert(op.result(), result);
    }
    panic!("the function does not return");
}

fn apply(op: &Op, operands: &[&Numbers], ty: &TensorType) -> Numbers {
    let number = |index: usize| operands[index][0];
    let truth = |value: bool| f64::from(u8::from(value));
    let value = match op {
        Op::Constant(constant) => {
            let numbers = constant.value.to_f64s(1000);
            let integers = || constant.value.to_i64s(1000).map(|all| all.iter().map(|&i| i as f64).collect());
            return numbers.or_else(integers).unwrap();
        }
        Op::Gather(_) => operands[0][number(1) as usize],
        Op::Abs(_) => number(0).abs(),
        Op::Negate(_) => -number(0),
        Op::Floor(_) => number(0).floor(),
        Op::Sqrt(_) => number(0).sqrt(),
        Op::Log(_) => number(0).ln(),
        Op::LogPlusOne(_) => number(0).ln_1p(),
        Op::Exponential(_) => number(0).exp(),
        Op::Sine(_) => number(0).sin(),
        Op::Cosine(_) => number(0).cos(),
        Op::Convert(_) => number(0),
        Op::Add(_) => number(0) + number(1),
        Op::Subtract(_) => number(0) - number(1),
        Op::Multiply(_) => number(0) * number(1),
        Op::Divide(_) => number(0) / number(1),
        Op::Power(_) => number(0).powf(number(1)),
        Op::Maximum(_) => number(0).max(number(1)),
        Op::Minimum(_) => number(0).min(number(1)),
        Op::And(_) => truth(number(0) != 0.0 && number(1) != 0.0),
        Op::Or(_) => truth(number(0) != 0.0 || number(1) != 0.0),
        Op::Select(_) => number(if number(0) != 0.0 { 1 } else { 2 }),
        Op::Compare(compare) => truth(match compare.comparison_direction {
            Cmp::Eq => number(0) == number(1),
            Cmp::Ne => number(0) != number(1),
            Cmp::Lt => number(0) < number(1),
            Cmp::Le => number(0) <= number(1),
            Cmp::Gt => number(0) > number(1),
            Cmp::Ge => number(0) >= number(1),
            other => panic!("{other:?} is no direction that is known"),
        }),
        other => panic!("{other} is not one of the operations that special functions are made of"),
    };
    // Sums, products, quotients and roots of f32 are the same by way of f64.
    vec![if ty.element_type() == ElementType::F32 { f64::from(value as f32) } else { value }]
}

fn assert_close(name: &str, arguments: &[f64], expected: f64) {
    for (element, tolerance) in [("f64", 2e-15), ("f32", 2e-6)] {
        let found = evaluate(name, element, arguments);
        let is_close = (found - expected).abs() <= tolerance * expected.abs() || found == expected;
        assert!(
            is_close || found.is_nan() && expected.is_nan(),
            "{name}{arguments:?} of {element}: expected {expected}, found {found}"
        );
    }
}

/// From mpmath.
#[test]
fn zeta_and_polygamma_are_defined_below_zero() {
    assert_close("chlo.zeta", &[2.0, -0.5], 8.934802200544679);
    assert_close("chlo.zeta", &[3.0, -0.5], 0.414398322117160);
    assert_close("chlo.zeta", &[2.0, 1.0], 1.6449340668482264);
    assert_close("chlo.zeta", &[2.0, -30.25], 19.706691341963048);
    assert_close("chlo.polygamma", &[2.0, -0.5], -0.82879664423432);
    assert_close("chlo.polygamma", &[1.0, -0.5], 8.934802200544679);
    assert_close("chlo.polygamma", &[10.0, 2.5], -156.229596593233);
}

#[test]
fn zeta_has_poles_and_a_domain() {
    let zeta = |x: f64, q: f64| evaluate("chlo.zeta", "f64", &[x, q]);
    assert_eq!(zeta(2.0, -1.0), f64::INFINITY);
    assert_eq!(zeta(2.0, 0.0), f64::INFINITY);
    assert!(zeta(3.0, -1.0).is_nan(), "the limits from both sides differ");
    assert!(zeta(1.5, -0.5).is_nan(), "powers of negative numbers that are not whole are not real");
    assert!(zeta(0.5, 2.0).is_nan());
    assert_eq!(zeta(1.0, 2.0), f64::INFINITY);
    assert_eq!(zeta(2.0, f64::INFINITY), 0.0);
    assert_eq!(zeta(1e300, 1.0), 1.0);
    assert!(zeta(2.0, f64::NAN).is_nan() && zeta(f64::NAN, 2.0).is_nan());
    assert!(evaluate("chlo.polygamma", "f64", &[1.5, 2.0]).is_nan());
    assert_eq!(evaluate("chlo.polygamma", "f64", &[1.0, -2.0]), f64::INFINITY);
}

#[test]
fn digamma_is_accurate_at_its_zeros_and_small_below_zero() {
    assert_close("chlo.digamma", &[1.5], 0.03648997397857652);
    assert_close("chlo.digamma", &[-0.5], 0.03648997397857652);
    assert_close("chlo.digamma", &[1.4609375], -0.0006724023902428804);
    assert_close("chlo.digamma", &[10.0], 2.251752589066721);
    assert!(evaluate("chlo.digamma", "f32", &[-15577761.0]).is_nan(), "a pole");
    let small = evaluate("chlo.digamma", "f32", &[-2f64.powi(-100)]);
    assert_eq!(small, 2f64.powi(100));
}

#[test]
fn lgamma_is_accurate_near_one_and_infinite_at_poles() {
    let near = 1.0 - 2f64.powi(-24);
    assert_close("chlo.lgamma", &[near], 3.440473758723674e-8);
    for number in [-1.0, -3e38, f64::NEG_INFINITY, f64::INFINITY, 0.0] {
        assert_eq!(evaluate("chlo.lgamma", "f32", &[number]), f64::INFINITY, "{number}");
    }
}

#[test]
fn bessel_i1e_is_accurate_where_its_series_ends() {
    assert_close("chlo.bessel_i1e", &[7.5], 0.1380412115485542);
    assert_close("chlo.bessel_i1e", &[-0.25], -0.09811262869736825);
}

/// From Arb.
#[test]
fn bessel_i1e_loses_no_digits_below_the_end_of_its_power_series() {
    for (element, tolerance) in [("f64", 9e-16), ("f32", 4e-7)] {
        for (x, expected) in
            [(3.0, 0.19682671329730085), (7.75, 0.136_051_100_080_339_1), (8.0, 0.13414249329269818)]
        {
            let error = (evaluate("chlo.bessel_i1e", element, &[x]) / expected - 1.0).abs();
            assert!(error < tolerance, "{x} of {element}: {error}");
        }
    }
}
