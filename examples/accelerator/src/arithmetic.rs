//! Operations on single elements.

use std::cmp::Ordering;
use std::sync::Arc;

use pjrt_stablehlo::ir::{ComparisonDirection, ComparisonType, ElementKind, ElementType, Op};

use crate::element_type::{float, from_float, from_integer, integer, limits};

/// A function that computes an element of the result from one element of each operand.
pub(crate) type Scalar = Arc<dyn Fn(&[u64]) -> u64 + Send + Sync>;

/// Returns the function of an elementwise operation for operands and results of these types. Returns `None`
/// if the operation is not elementwise, or if the device does not support it for these types.
pub(crate) fn scalar(op: &Op, operand: ElementType, result: ElementType) -> Option<Scalar> {
    match op {
        Op::Select(_) => Some(Arc::new(|x| if x[0] != 0 { x[1] } else { x[2] })),
        Op::BitcastConvert(_) if operand.bits() == result.bits() => Some(Arc::new(|x| x[0])),
        Op::Convert(_) => Some(conversion(operand, result)),
        Op::Compare(compare) => {
            let compares = comparison(compare.comparison_direction)?;
            let order = order(operand, compare.compare_type);
            Some(Arc::new(move |x| u64::from(compares(order(x[0], x[1])))))
        }
        _ if operand.is_float() => float_unary(op)
            .map(|f| -> Scalar { Arc::new(move |x| from_float(f(float(x[0])))) })
            .or_else(|| {
                let f = float_binary(op)?;
                Some(Arc::new(move |x| from_float(f(float(x[0]), float(x[1])))))
            }),
        _ => integer_unary(op)
            .map(|f| -> Scalar { Arc::new(move |x| from_integer(operand, f(integer(operand, x[0])))) })
            .or_else(|| {
                let f = integer_binary(op, operand)?;
                Some(Arc::new(move |x| {
                    from_integer(operand, f(integer(operand, x[0]), integer(operand, x[1])))
                }))
            })
            .or_else(|| match op {
                Op::ShiftRightLogical(_) => {
                    Some(Arc::new(move |x| if x[1] < u64::from(operand.bits()) { x[0] >> x[1] } else { 0 }))
                }
                _ => None,
            }),
    }
}

fn float_unary(op: &Op) -> Option<fn(f32) -> f32> {
    Some(match op {
        Op::Abs(_) => f32::abs,
        Op::Ceil(_) => f32::ceil,
        Op::Cosine(_) => f32::cos,
        Op::Exponential(_) => f32::exp,
        Op::Floor(_) => f32::floor,
        Op::Log(_) => f32::ln,
        Op::Negate(_) => |x| -x,
        Op::Sine(_) => f32::sin,
        Op::Sqrt(_) => f32::sqrt,
        Op::Tanh(_) => f32::tanh,
        _ => return None,
    })
}

fn float_binary(op: &Op) -> Option<fn(f32, f32) -> f32> {
    Some(match op {
        Op::Add(_) => |x, y| x + y,
        Op::Subtract(_) => |x, y| x - y,
        Op::Multiply(_) => |x, y| x * y,
        Op::Divide(_) => |x, y| x / y,
        Op::Remainder(_) => |x, y| x % y,
        Op::Power(_) => f32::powf,
        Op::Atan2(_) => f32::atan2,
        // `f32::max` alone would ignore NaN.
        Op::Maximum(_) => |x, y| if x.is_nan() || y.is_nan() { f32::NAN } else { x.max(y) },
        Op::Minimum(_) => |x, y| if x.is_nan() || y.is_nan() { f32::NAN } else { x.min(y) },
        _ => return None,
    })
}

fn integer_unary(op: &Op) -> Option<fn(i128) -> i128> {
    Some(match op {
        Op::Abs(_) => i128::abs,
        Op::Negate(_) => |x| -x,
        Op::Not(_) => |x| !x,
        _ => return None,
    })
}

/// Returns the exact integer operation; results are wrapped afterwards. Where StableHLO leaves the result
/// open (division by zero), it is XLA's.
fn integer_binary(op: &Op, ty: ElementType) -> Option<fn(i128, i128) -> i128> {
    Some(match op {
        Op::Add(_) if ty == ElementType::I1 => |x, y| x | y,
        Op::Add(_) => |x, y| x + y,
        Op::Subtract(_) => |x, y| x - y,
        Op::Multiply(_) => |x, y| x.wrapping_mul(y),
        Op::Divide(_) => |x, y| if y == 0 { -1 } else { x / y },
        Op::Remainder(_) => |x, y| if y == 0 { x } else { x % y },
        Op::Maximum(_) => i128::max,
        Op::Minimum(_) => i128::min,
        Op::And(_) => |x, y| x & y,
        Op::Or(_) => |x, y| x | y,
        Op::Xor(_) => |x, y| x ^ y,
        Op::ShiftLeft(_) => |x, y| if (0..64).contains(&y) { x << y } else { 0 },
        // Negative shift amounts are interpreted as large unsigned ones.
        Op::ShiftRightArithmetic(_) if ty.kind() == ElementKind::SignedInteger => {
            |x, y| x >> (if (0..64).contains(&y) { y } else { 64 })
        }
        _ => return None,
    })
}

fn comparison(direction: ComparisonDirection) -> Option<fn(Option<Ordering>) -> bool> {
    Some(match direction {
        ComparisonDirection::Eq => |order| order.is_some_and(|order| order.is_eq()),
        // This is true for NaN as well, which is unordered.
        ComparisonDirection::Ne => |order| order.is_none_or(|order| order.is_ne()),
        ComparisonDirection::Ge => |order| order.is_some_and(|order| order.is_ge()),
        ComparisonDirection::Gt => |order| order.is_some_and(|order| order.is_gt()),
        ComparisonDirection::Le => |order| order.is_some_and(|order| order.is_le()),
        ComparisonDirection::Lt => |order| order.is_some_and(|order| order.is_lt()),
        _ => return None,
    })
}

/// A function that compares two elements. Floats may be unordered.
type Order = Box<dyn Fn(u64, u64) -> Option<Ordering> + Send + Sync>;

fn order(ty: ElementType, comparison: ComparisonType) -> Order {
    if !ty.is_float() {
        Box::new(move |x, y| Some(integer(ty, x).cmp(&integer(ty, y))))
    } else if comparison == ComparisonType::TotalOrder {
        Box::new(|x, y| Some(float(x).total_cmp(&float(y))))
    } else {
        Box::new(|x, y| float(x).partial_cmp(&float(y)))
    }
}

fn conversion(from: ElementType, to: ElementType) -> Scalar {
    match (from.is_float(), to.is_float()) {
        (true, true) => Arc::new(|x| x[0]),
        (true, false) if to == ElementType::I1 => Arc::new(|x| u64::from(float(x[0]) != 0.0)),
        (true, false) => {
            let (least, most) = limits(to);
            Arc::new(move |x| from_integer(to, (float(x[0]) as i128).clamp(least, most)))
        }
        (false, true) => Arc::new(move |x| from_float(integer(from, x[0]) as f32)),
        (false, false) if to == ElementType::I1 => Arc::new(|x| u64::from(x[0] != 0)),
        (false, false) => Arc::new(move |x| from_integer(to, integer(from, x[0]))),
    }
}
