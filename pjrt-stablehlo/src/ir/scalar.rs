//! Elementwise operations on single elements: for interpreters, for compilers that evaluate constants, and for simulated devices.
//!
//! An element is a number of 64 bits, which has the bits of the element in its low bits and zeros in the others.
//!
//! ```
//! use pjrt_stablehlo::ir::scalar::{float, from_float, function, load, store};
//! use pjrt_stablehlo::ir::{ElementType, Op};
//!
//! let module = pjrt_stablehlo::parse(
//!     "func.func @main(%x: tensor<2xbf16>, %y: tensor<2xbf16>) -> tensor<2xbf16> {
//!         %0 = stablehlo.add %x, %y : tensor<2xbf16>
//!         return %0 : tensor<2xbf16>
//!     }",
//! )?;
//! let (_, add) = module.main().unwrap().ops().next().unwrap();
//! let bf16 = ElementType::BF16;
//! let add = function(&add.kind, bf16, bf16).unwrap();
//!
//! assert_eq!(float(bf16, add(&[from_float(bf16, 1.5), from_float(bf16, 2.0)])), 3.5);
//! assert_eq!(store(&load(&[0xc0, 0x3f], 2), 2), [0xc0, 0x3f]);
//! # Ok::<(), pjrt_stablehlo::Error>(())
//! ```

use std::cmp::Ordering;
use std::sync::Arc;

use super::floats::{float_bits, float_value};
use super::{ComparisonDirection, ComparisonType, ElementKind, ElementType, Op};

/// A function that computes an element of the result from one element of each operand. It panics if there are fewer elements than
/// the operation has operands.
pub type Function = Arc<dyn Fn(&[u64]) -> u64 + Send + Sync>;

/// Returns the function of an elementwise operation. `operand` is the type of its last operand, and `result` that of its result.
///
/// Floating-point functions are computed with 64 bits and rounded to the type. Integers wrap. Where StableHLO leaves a result
/// open (division by zero, conversions of numbers that are too large), it is that of XLA.
///
/// Returns `None` for operations that are not elementwise, for complex and quantized types, for `bitcast_convert` between types
/// of different sizes, and for arithmetic shifts of unsigned integers.
#[must_use]
pub fn function(op: &Op, operand: ElementType, result: ElementType) -> Option<Function> {
    let is_number = |ty: ElementType| ty.is_float() || ty.is_integer() || ty == ElementType::I1;
    match op {
        Op::Select(_) => Some(Arc::new(|x| if x[0] != 0 { x[1] } else { x[2] })),
        _ if !is_number(operand) || !is_number(result) => None,
        Op::BitcastConvert(_) if operand.bits() == result.bits() => Some(Arc::new(|x| x[0])),
        Op::Convert(_) => Some(conversion(operand, result)),
        Op::Compare(compare) => {
            let compares = comparison(compare.comparison_direction);
            let order = order(operand, compare.compare_type);
            Some(Arc::new(move |x| u64::from(compares(order(x[0], x[1])))))
        }
        Op::IsFinite(_) => Some(Arc::new(move |x| u64::from(float(operand, x[0]).is_finite()))),
        _ if operand.is_float() => of_floats(op, operand),
        _ => of_integers(op, operand),
    }
}

fn of_floats(op: &Op, ty: ElementType) -> Option<Function> {
    if let Op::Clamp(_) = op {
        let (maximum, minimum) = (maximum as fn(f64, f64) -> f64, minimum as fn(f64, f64) -> f64);
        return Some(Arc::new(move |x| {
            let [least, number, most] = [0, 1, 2].map(|at| float(ty, x[at]));
            from_float(ty, minimum(maximum(least, number), most))
        }));
    }
    if let Some(f) = float_unary(op) {
        return Some(Arc::new(move |x| from_float(ty, f(float(ty, x[0])))));
    }
    let f = float_binary(op)?;
    Some(Arc::new(move |x| from_float(ty, f(float(ty, x[0]), float(ty, x[1])))))
}

fn of_integers(op: &Op, ty: ElementType) -> Option<Function> {
    let bits = ty.bits();
    match op {
        Op::Clamp(_) => {
            return Some(Arc::new(move |x| {
                let [least, number, most] = [0, 1, 2].map(|at| integer(ty, x[at]));
                from_integer(ty, number.max(least).min(most))
            }));
        }
        Op::ShiftRightLogical(_) => {
            return Some(Arc::new(move |x| if x[1] < u64::from(bits) { x[0] >> x[1] } else { 0 }));
        }
        Op::PopulationCount(_) => return Some(Arc::new(|x| u64::from(x[0].count_ones()))),
        Op::CountLeadingZeros(_) => {
            return Some(Arc::new(move |x| u64::from(x[0].leading_zeros() - (64 - bits))));
        }
        _ => {}
    }
    if let Some(f) = integer_unary(op) {
        return Some(Arc::new(move |x| from_integer(ty, f(integer(ty, x[0])))));
    }
    let f = integer_binary(op, ty)?;
    Some(Arc::new(move |x| from_integer(ty, f(integer(ty, x[0]), integer(ty, x[1])))))
}

fn float_unary(op: &Op) -> Option<fn(f64) -> f64> {
    Some(match op {
        Op::Abs(_) => f64::abs,
        Op::Cbrt(_) => f64::cbrt,
        Op::Ceil(_) => f64::ceil,
        Op::Cosine(_) => f64::cos,
        Op::Exponential(_) => f64::exp,
        Op::ExponentialMinusOne(_) => f64::exp_m1,
        Op::Floor(_) => f64::floor,
        Op::Log(_) => f64::ln,
        Op::LogPlusOne(_) => f64::ln_1p,
        Op::Logistic(_) => |x| 1.0 / (1.0 + (-x).exp()),
        Op::Negate(_) => |x| -x,
        Op::RoundNearestAfz(_) => f64::round,
        Op::RoundNearestEven(_) => f64::round_ties_even,
        Op::Rsqrt(_) => |x| 1.0 / x.sqrt(),
        Op::Sign(_) => |x| if x == 0.0 || x.is_nan() { x } else { x.signum() },
        Op::Sine(_) => f64::sin,
        Op::Sqrt(_) => f64::sqrt,
        Op::Tan(_) => f64::tan,
        Op::Tanh(_) => f64::tanh,
        _ => return None,
    })
}

fn float_binary(op: &Op) -> Option<fn(f64, f64) -> f64> {
    Some(match op {
        Op::Add(_) => |x, y| x + y,
        Op::Atan2(_) => f64::atan2,
        Op::Divide(_) => |x, y| x / y,
        Op::Maximum(_) => maximum,
        Op::Minimum(_) => minimum,
        Op::Multiply(_) => |x, y| x * y,
        Op::Power(_) => f64::powf,
        Op::Remainder(_) => |x, y| x % y,
        Op::Subtract(_) => |x, y| x - y,
        _ => return None,
    })
}

/// Returns the larger number, or NaN if one of them is NaN, which `f64::max` would ignore. 0 is larger than -0.
fn maximum(x: f64, y: f64) -> f64 {
    match x.partial_cmp(&y) {
        None => f64::NAN,
        Some(Ordering::Greater) => x,
        Some(Ordering::Less) => y,
        Some(Ordering::Equal) => {
            if x.is_sign_negative() {
                y
            } else {
                x
            }
        }
    }
}

fn minimum(x: f64, y: f64) -> f64 {
    -maximum(-x, -y)
}

fn integer_unary(op: &Op) -> Option<fn(i128) -> i128> {
    Some(match op {
        Op::Abs(_) => i128::abs,
        Op::Negate(_) => |x| -x,
        Op::Not(_) => |x| !x,
        Op::Sign(_) => i128::signum,
        _ => return None,
    })
}

/// Returns the exact operation, whose results are wrapped afterwards.
fn integer_binary(op: &Op, ty: ElementType) -> Option<fn(i128, i128) -> i128> {
    Some(match op {
        Op::Add(_) if ty == ElementType::I1 => |x, y| x | y,
        Op::Add(_) => |x, y| x + y,
        Op::And(_) => |x, y| x & y,
        Op::Divide(_) => |x, y| if y == 0 { -1 } else { x / y },
        Op::Maximum(_) => i128::max,
        Op::Minimum(_) => i128::min,
        Op::Multiply(_) => |x, y| x.wrapping_mul(y),
        Op::Or(_) => |x, y| x | y,
        Op::Power(_) => power,
        Op::Remainder(_) => |x, y| if y == 0 { x } else { x % y },
        Op::ShiftLeft(_) => |x, y| if (0..64).contains(&y) { x << y } else { 0 },
        // Negative shift amounts are interpreted as large unsigned ones.
        Op::ShiftRightArithmetic(_) if ty.kind() == ElementKind::SignedInteger => {
            |x, y| x >> (if (0..64).contains(&y) { y } else { 64 })
        }
        Op::Subtract(_) => |x, y| x - y,
        Op::Xor(_) => |x, y| x ^ y,
        _ => return None,
    })
}

/// Returns a power modulo 2^128. A negative power of a number other than 1 and -1 is 0.
fn power(x: i128, exponent: i128) -> i128 {
    match (x, exponent) {
        (1, _) => 1,
        (-1, _) => 1 - 2 * (exponent & 1),
        (_, ..0) => 0,
        _ => {
            let (mut result, mut square, mut left) = (1_i128, x, exponent);
            while left > 0 {
                if left & 1 == 1 {
                    result = result.wrapping_mul(square);
                }
                square = square.wrapping_mul(square);
                left >>= 1;
            }
            result
        }
    }
}

fn comparison(direction: ComparisonDirection) -> fn(Option<Ordering>) -> bool {
    match direction {
        ComparisonDirection::Eq => |order| order.is_some_and(Ordering::is_eq),
        // This is true for NaN as well, which is unordered.
        ComparisonDirection::Ne => |order| order.is_none_or(Ordering::is_ne),
        ComparisonDirection::Ge => |order| order.is_some_and(Ordering::is_ge),
        ComparisonDirection::Gt => |order| order.is_some_and(Ordering::is_gt),
        ComparisonDirection::Le => |order| order.is_some_and(Ordering::is_le),
        ComparisonDirection::Lt => |order| order.is_some_and(Ordering::is_lt),
    }
}

/// A function that compares two elements. Floats may be unordered.
type Order = Box<dyn Fn(u64, u64) -> Option<Ordering> + Send + Sync>;

fn order(ty: ElementType, comparison: ComparisonType) -> Order {
    if !ty.is_float() {
        Box::new(move |x, y| Some(integer(ty, x).cmp(&integer(ty, y))))
    } else if comparison == ComparisonType::TotalOrder {
        // The order of the magnitudes, which that of the signs reverses.
        let sign = 1 << (ty.bits() - 1);
        let key = move |x: u64| if x & sign == 0 { i128::from(x) } else { -1 - i128::from(x & !sign) };
        Box::new(move |x, y| Some(key(x).cmp(&key(y))))
    } else {
        Box::new(move |x, y| float(ty, x).partial_cmp(&float(ty, y)))
    }
}

fn conversion(from: ElementType, to: ElementType) -> Function {
    match (from.is_float(), to.is_float()) {
        (true, true) if from == to => Arc::new(|x| x[0]),
        (true, true) => Arc::new(move |x| from_float(to, float(from, x[0]))),
        (true, false) if to == ElementType::I1 => Arc::new(move |x| u64::from(float(from, x[0]) != 0.0)),
        (true, false) => {
            let (least, most) = limits(to);
            Arc::new(move |x| from_integer(to, (float(from, x[0]) as i128).clamp(least, most)))
        }
        (false, true) => Arc::new(move |x| from_float(to, rounded_to_odd(integer(from, x[0]), to))),
        (false, false) if to == ElementType::I1 => Arc::new(|x| u64::from(x[0] != 0)),
        (false, false) => Arc::new(move |x| from_integer(to, integer(from, x[0]))),
    }
}

/// Converts an integer to a float that is rounded correctly when it is rounded again, to a type of fewer bits.
fn rounded_to_odd(integer: i128, to: ElementType) -> f64 {
    let excess = (128 - integer.unsigned_abs().leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    if excess == 0 || to == ElementType::F64 {
        return integer as f64;
    }
    let kept = integer.unsigned_abs() >> excess;
    let is_inexact = kept << excess != integer.unsigned_abs();
    let magnitude = ((kept | u128::from(is_inexact)) << excess) as f64;
    if integer < 0 { -magnitude } else { magnitude }
}

/// Loads dense elements of this size in bytes, from 1 to 8.
#[must_use]
pub fn load(dense: &[u8], element_size: usize) -> Vec<u64> {
    let element = |bytes: &[u8]| bytes.iter().rev().fold(0, |element, byte| element << 8 | u64::from(*byte));
    dense.chunks_exact(element_size.max(1)).map(element).collect()
}

/// Stores elements as dense elements of this size in bytes, from 1 to 8.
#[must_use]
pub fn store(elements: &[u64], element_size: usize) -> Vec<u8> {
    elements.iter().flat_map(|element| element.to_le_bytes().into_iter().take(element_size)).collect()
}

/// Returns the value of an element of an integer or boolean type.
#[must_use]
pub fn integer(ty: ElementType, element: u64) -> i128 {
    if ty.kind() == ElementKind::SignedInteger {
        let unused = 64 - ty.bits().min(64);
        i128::from((element << unused) as i64 >> unused)
    } else {
        i128::from(element)
    }
}

/// Returns the element of an integer or boolean type with a value, which is truncated to the bits of the type.
#[must_use]
pub fn from_integer(ty: ElementType, value: i128) -> u64 {
    let unused = 64 - ty.bits().clamp(1, 64);
    (value as u64) << unused >> unused
}

/// Returns the value of an element of a floating-point type.
#[must_use]
pub fn float(ty: ElementType, element: u64) -> f64 {
    float_value(ty, element)
}

/// Returns the element of a floating-point type that is nearest to a value, ties to even.
#[must_use]
pub fn from_float(ty: ElementType, value: f64) -> u64 {
    float_bits(ty, value)
}

/// Returns the smallest and the largest integer of a type.
fn limits(ty: ElementType) -> (i128, i128) {
    if ty.kind() == ElementKind::SignedInteger {
        let half = 1 << (ty.bits() - 1);
        (-half, half - 1)
    } else {
        (0, (1 << ty.bits()) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ElementType as T;

    /// Evaluates an operation, given by its name and attributes, on elements of a type.
    fn evaluate(op: &str, operand: T, result: T, elements: &[u64]) -> u64 {
        let (of, to) = (format!("tensor<{operand}>"), format!("tensor<{result}>"));
        let arguments: Vec<String> = (0..elements.len()).map(|at| format!("%{at}: {of}")).collect();
        let operands: Vec<String> = (0..elements.len()).map(|at| format!("%{at}")).collect();
        let (name, attributes) = op.split_once(' ').unwrap_or((op, ""));
        let types = vec![of; elements.len()].join(", ");
        let text = format!(
            "func.func @main({}) -> {to} {{
                %r = \"stablehlo.{name}\"({}) {attributes} : ({types}) -> {to}
                return %r : {to}
            }}",
            arguments.join(", "),
            operands.join(", ")
        );
        let module = crate::parse(text.clone()).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let (_, op) = module.main().unwrap().ops().next().unwrap();
        function(&op.kind, operand, result).unwrap_or_else(|| panic!("{text}"))(elements)
    }

    fn of_floats(op: &str, ty: T, numbers: &[f64]) -> f64 {
        let elements: Vec<u64> = numbers.iter().map(|number| from_float(ty, *number)).collect();
        float(ty, evaluate(op, ty, ty, &elements))
    }

    fn of_integers(op: &str, ty: T, numbers: &[i128]) -> i128 {
        let elements: Vec<u64> = numbers.iter().map(|number| from_integer(ty, *number)).collect();
        integer(ty, evaluate(op, ty, ty, &elements))
    }

    #[test]
    fn elements_of_every_size_are_loaded_and_stored() {
        for size in [1, 2, 4, 8] {
            let dense: Vec<u8> = (0..24).collect();
            let elements = load(&dense, size);
            assert_eq!((elements.len(), store(&elements, size)), (24 / size, dense));
        }
    }

    #[test]
    fn integers_have_their_sign_and_wrap() {
        assert_eq!((integer(T::I8, 0xff), integer(T::Ui8, 0xff), integer(T::I4, 0xf)), (-1, 255, -1));
        assert_eq!((from_integer(T::I8, 128), from_integer(T::Ui64, -1)), (0x80, u64::MAX));
        assert_eq!((limits(T::I8), limits(T::I1)), ((-128, 127), (0, 1)));
        assert_eq!(of_integers("add", T::I8, &[127, 1]), -128);
        assert_eq!(of_integers("multiply", T::Ui64, &[1 << 63, 3]), 1 << 63);
        assert_eq!(of_integers("divide", T::I32, &[-7, 0]), -1);
        assert_eq!(of_integers("divide", T::I32, &[i128::from(i32::MIN), -1]), i128::from(i32::MIN));
        assert_eq!(of_integers("remainder", T::I32, &[-7, 3]), -1);
        assert_eq!(of_integers("shift_right_arithmetic", T::I8, &[-128, 100]), -1);
        assert_eq!(of_integers("shift_right_logical", T::I8, &[-128, 7]), 1);
        assert_eq!(of_integers("count_leading_zeros", T::I8, &[1]), 7);
        assert_eq!(of_integers("popcnt", T::I8, &[-1]), 8);
        assert_eq!(of_integers("power", T::I32, &[-3, 3]), -27);
        assert_eq!(of_integers("power", T::I32, &[2, -1]), 0);
        assert_eq!(of_integers("clamp", T::I32, &[0, 9, 5]), 5);
    }

    #[test]
    fn floats_are_rounded_to_their_type_and_nan_spreads() {
        assert_eq!(of_floats("add", T::F32, &[16_777_216.0, 1.0]), 16_777_216.0);
        assert_eq!(of_floats("add", T::BF16, &[256.0, 1.0]), 256.0);
        assert_eq!(of_floats("multiply", T::F16, &[300.0, 300.0]), f64::INFINITY);
        assert_eq!(of_floats("exponential", T::F64, &[1.0]), std::f64::consts::E);
        assert!(of_floats("maximum", T::F32, &[f64::NAN, 1.0]).is_nan());
        assert_eq!(of_floats("minimum", T::F32, &[-0.0, 0.0]).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(of_floats("sign", T::F32, &[-2.5]), -1.0);
        assert_eq!(of_floats("round_nearest_even", T::F32, &[2.5]), 2.0);
    }

    #[test]
    fn conversions_saturate_and_round_once() {
        let convert = |from: T, to: T, element: u64| evaluate("convert", from, to, &[element]);
        assert_eq!(integer(T::I8, convert(T::F32, T::I8, from_float(T::F32, 300.5))), 127);
        assert_eq!(convert(T::F32, T::I8, from_float(T::F32, f64::NAN)), 0);
        // Between two numbers of f32: twice rounded, it would be the even one.
        let between = (1_i128 << 62) + (1 << 38) + 1;
        let expected = from_float(T::F32, ((1_i128 << 62) + (1 << 39)) as f64);
        assert_eq!(convert(T::I64, T::F32, from_integer(T::I64, between)), expected);
        assert_eq!(convert(T::F32, T::I1, from_float(T::F32, 0.5)), 1);
    }

    #[test]
    fn nan_is_unordered_except_in_the_total_order() {
        let compare = |direction: &str, kind: &str, x: f64, y: f64| {
            let attributes = format!(
                "compare {{comparison_direction = #stablehlo<comparison_direction {direction}>, \
                 compare_type = #stablehlo<comparison_type {kind}>}}"
            );
            evaluate(&attributes, T::F32, T::I1, &[x, y].map(|number| from_float(T::F32, number))) == 1
        };
        assert!(!compare("EQ", "FLOAT", f64::NAN, f64::NAN) && compare("NE", "FLOAT", f64::NAN, 1.0));
        assert!(compare("EQ", "FLOAT", -0.0, 0.0) && compare("LT", "TOTALORDER", -0.0, 0.0));
        assert!(compare("EQ", "TOTALORDER", f64::NAN, f64::NAN));
        assert!(compare("LT", "TOTALORDER", -2.0, -1.0) && compare("GT", "TOTALORDER", 1.0, -5.0));
    }
}
