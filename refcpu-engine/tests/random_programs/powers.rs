//! Powers with constant exponents.

use crate::decompositions::{Outcome, compared, runtime};
use crate::program::{self, Argument, GeneratedProgram, Statement, to_hex};
use crate::random;
use crate::results::Tolerance;
use crate::types::{self, Element, Fill};
use pjrt_stablehlo::ir::{ElementType, OpCode};
use pjrt_stablehlo::passes::CoreOps;

const EXPONENTS: [f64; 18] =
    [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, -1.5, 2.0, -2.0, 2.5, 3.0, -3.0, 7.0, -8.0, 31.0, 0.3, 1e9];

/// Returns the bytes of special and random elements.
fn elements(ty: ElementType, count: u64) -> Vec<u8> {
    let elements = (0..count).flat_map(|number| {
        let mut random = random::Random::new(7, number);
        let fill = if number % 2 == 0 { Fill::Any } else { Fill::Tame };
        types::bytes(&mut random, Element::Plain(ty), fill)
    });
    elements.collect()
}

fn compare_power(ty: ElementType, exponent: &str, units: f64) -> Outcome {
    const COUNT: u64 = 400;
    let tensor = format!("tensor<{COUNT}x{}>", ty.name());
    let statement = |op: &str, text: String, uses: &[&str], name: &str| Statement {
        op: op.to_owned(),
        text,
        uses: uses.iter().map(|&name| name.to_owned()).collect(),
        defines: vec![program::Typed { name: name.to_owned(), ty: tensor.clone() }],
    };
    let constant = format!("%y = stablehlo.constant dense<{exponent}> : {tensor}");
    let power = format!("%r = stablehlo.power %x, %y : {tensor}");
    let program = GeneratedProgram {
        arguments: vec![Argument {
            value: program::Typed { name: "%x".to_owned(), ty: tensor.clone() },
            data: to_hex(&elements(ty, COUNT)),
        }],
        statements: vec![
            statement("stablehlo.constant", constant, &[], "%y"),
            statement("stablehlo.power", power, &["%x", "%y"], "%r"),
        ],
        results: vec!["%r".to_owned()],
        functions: Vec::new(),
    };
    let core = CoreOps::default().without(OpCode::Power);
    compared(&program, &core, Tolerance { units, any_zero: false }, &runtime())
}

#[test]
fn powers_of_floats_with_constant_exponents_are_those_of_ieee_754() {
    for ty in [ElementType::F16, ElementType::BF16, ElementType::F32, ElementType::F64] {
        for exponent in EXPONENTS {
            let is_chain = exponent.abs() <= 32.0 && (2.0 * exponent).fract() == 0.0;
            let units = if is_chain { 20.0 } else { 130.0 };
            let text = format!("{exponent:e}");
            let text = if text.contains('.') { text } else { text.replace('e', ".0e") };
            match compare_power(ty, &text, units) {
                Outcome::Same => assert!(is_chain || ty != ElementType::F64, "{ty} {exponent}"),
                Outcome::Refused(message) => {
                    assert!(!is_chain && ty == ElementType::F64, "{ty} {exponent}: {message}");
                    assert!(message.contains("would lose up to 10 bits"), "{message}");
                }
                Outcome::NotRun => panic!("{ty} {exponent} does not run"),
            }
        }
    }
}

#[test]
fn powers_of_integers_with_constant_exponents_wrap() {
    let signed = [ElementType::I8, ElementType::I16, ElementType::I32, ElementType::I64];
    let unsigned = [ElementType::Ui8, ElementType::Ui16, ElementType::Ui32, ElementType::Ui64];
    for ty in signed.into_iter().chain(unsigned) {
        for exponent in ["0", "1", "2", "3", "7", "100"] {
            assert!(matches!(compare_power(ty, exponent, 0.0), Outcome::Same), "{ty} {exponent}");
        }
    }
    for ty in signed {
        for exponent in ["-1", "-2", "-7"] {
            assert!(matches!(compare_power(ty, exponent, 0.0), Outcome::Same), "{ty} {exponent}");
        }
    }
}
