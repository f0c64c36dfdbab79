//! Arithmetic that devices with few operations lack, for all element types that the operations have.
//!
//! The formulas are exact, except those of `abs` of complex numbers, `sqrt` and `tanh`, whose errors are a few units in
//! the last place.

use super::complex;
use super::hyperbolic::odd;
use crate::build::Builder;
use crate::ir::ops::While;
use crate::ir::{ComparisonDirection as Cmp, ElementKind, ElementType, OpCode, TensorType, ValueId};

/// `abs` of numbers with a sign. The least integer is its own magnitude.
pub(crate) fn abs(b: &mut Builder, x: ValueId) -> ValueId {
    match b.element(x).kind() {
        ElementKind::Float => {
            // The difference of two zeros is positive, whatever the sign of `x`.
            let zero = b.number(0.0, x);
            let negative = b.subtract(zero, x);
            let is_not_positive = b.compare(Cmp::Le, x, zero);
            b.select(is_not_positive, negative, x)
        }
        ElementKind::Complex => complex::modulus(b, x),
        _ => {
            let negative = b.negate(x);
            let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
            b.select(is_negative, negative, x)
        }
    }
}

/// `negate`: a product, or for complex numbers the numbers of the negated parts.
pub(crate) fn negate(b: &mut Builder, x: ValueId) -> ValueId {
    if b.element(x).is_complex() {
        let (real, imag) = complex::parts(b, x);
        let (real, imag) = (b.negate(real), b.negate(imag));
        return b.complex(real, imag);
    }
    let minus_one = b.number(-1.0, x);
    b.multiply(x, minus_one)
}

/// `subtract`: a sum with the negative number.
pub(crate) fn subtract(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let negative = b.negate(y);
    b.add(x, negative)
}

/// `maximum` (`direction` is `Gt`) or `minimum` (`Lt`) of real numbers, which is NaN if an operand is. Of two zeros, the
/// negative one is less.
pub(crate) fn extremum(b: &mut Builder, direction: Cmp, x: ValueId, y: ValueId) -> ValueId {
    let is_maximum = direction == Cmp::Gt;
    match b.element(x).kind() {
        ElementKind::Boolean if is_maximum => b.or(x, y),
        ElementKind::Boolean => b.and(x, y),
        ElementKind::Float => {
            // The sum of two zeros is negative only if both are, and so is the negated sum of negated zeros.
            let of_zeros = if is_maximum {
                b.add(x, y)
            } else {
                let negative = b.negate(x);
                let difference = b.subtract(negative, y);
                b.negate(difference)
            };
            let (x_is_zero, y_is_zero) = (b.compare_with(Cmp::Eq, x, 0.0), b.compare_with(Cmp::Eq, y, 0.0));
            let of_equals = b.select(y_is_zero, of_zeros, y);
            let rest = b.select(x_is_zero, of_equals, y);
            let x_wins = b.compare(direction, x, y);
            let y_wins = b.compare(direction, y, x);
            let x_is_nan = b.compare(Cmp::Ne, x, x);
            let rest = b.select(y_wins, y, rest);
            let rest = b.select(x_wins, x, rest);
            b.select(x_is_nan, x, rest)
        }
        _ => {
            let x_wins = b.compare(direction, x, y);
            b.select(x_wins, x, y)
        }
    }
}

/// `floor`: the number converted to an integer and back, and one less if that is more. Numbers without a fraction are
/// returned unchanged.
pub(crate) fn floor(b: &mut Builder, x: ValueId) -> ValueId {
    let element = b.element(x);
    let integer = if element == ElementType::F64 { ElementType::I64 } else { ElementType::I32 };
    let magnitude = b.abs(x);
    let limit = 2f64.powi(element.mantissa_bits() as i32);
    let may_have_fraction = b.compare_with(Cmp::Lt, magnitude, limit);
    let zero = b.number(0.0, x);
    let moderate = b.select(may_have_fraction, x, zero);
    let whole = b.convert(moderate, integer);
    let whole = b.convert(whole, element);
    let one = b.number(1.0, x);
    let below = b.subtract(whole, one);
    let is_more = b.compare(Cmp::Gt, whole, moderate);
    let floor = b.select(is_more, below, whole);
    let has_no_fraction = b.compare(Cmp::Eq, whole, x);
    let floor = b.select(has_no_fraction, x, floor);
    b.select(may_have_fraction, floor, x)
}

/// `ceil`: the negated `floor` of the negative number.
pub(crate) fn ceil(b: &mut Builder, x: ValueId) -> ValueId {
    let negative = b.negate(x);
    let floor = b.floor(negative);
    b.negate(floor)
}

/// `sqrt`: `exp(log(x) / 2)` with a step of Newton's method.
pub(crate) fn sqrt(b: &mut Builder, x: ValueId) -> ValueId {
    let half = b.number(0.5, x);
    let log = b.log(x);
    let half_log = b.multiply(log, half);
    let root = b.exponential(half_log);
    let quotient = b.divide(x, root);
    let sum = b.add(root, quotient);
    let root = b.multiply(sum, half);
    // The quotients of these are NaN.
    let is_zero = b.compare_with(Cmp::Eq, x, 0.0);
    let is_infinite = b.compare_with(Cmp::Eq, x, f64::INFINITY);
    let root = b.select(is_infinite, x, root);
    b.select(is_zero, x, root)
}

/// `tanh`: Lambert's continued fraction near 0, elsewhere `1 - 2 / (exp(2 x) + 1)`.
pub(crate) fn tanh(b: &mut Builder, x: ValueId) -> ValueId {
    /// The magnitudes for which the fraction is used. With the steps below, its error is less than a rounding error.
    const LIMIT: f64 = 0.625;
    odd(b, x, |b, x| {
        let steps = if b.element(x) == ElementType::F64 { 9 } else { 5 };
        let square = b.multiply(x, x);
        let mut denominator = b.number(f64::from(2 * steps + 1), x);
        for step in (0..steps).rev() {
            let fraction = b.divide(square, denominator);
            let partial = b.number(f64::from(2 * step + 1), x);
            denominator = b.add(partial, fraction);
        }
        let small = b.divide(x, denominator);
        let (one, two) = (b.number(1.0, x), b.number(2.0, x));
        let double = b.add(x, x);
        let exponential = b.exponential(double);
        let sum = b.add(exponential, one);
        let quotient = b.divide(two, sum);
        let great = b.subtract(one, quotient);
        let is_small = b.compare_with(Cmp::Lt, x, LIMIT);
        b.select(is_small, small, great)
    })
}

/// `remainder` of integers: `x - x / y * y`.
pub(crate) fn remainder_of_integers(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let quotient = b.divide(x, y);
    let product = b.multiply(quotient, y);
    b.subtract(x, product)
}

/// `remainder` of floats, by long division: the divisor is doubled until it exceeds half of the dividend, and subtracted
/// and halved until it is less than it was. All steps are exact.
pub(crate) fn remainder_of_floats(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let (zero, one, half) = (b.number(0.0, x), b.number(1.0, x), b.number(0.5, x));
    let infinity = b.number(f64::INFINITY, x);
    let (x_size, y_size) = (b.abs(x), b.abs(y));
    let x_is_finite = b.compare(Cmp::Lt, x_size, infinity);
    let y_is_positive = b.compare(Cmp::Gt, y_size, zero);
    let is_defined = b.and(x_is_finite, y_is_positive);
    let y_is_finite = b.compare(Cmp::Lt, y_size, infinity);
    let divides = b.and(is_defined, y_is_finite);
    let dividend = b.select(divides, x_size, zero);
    let divisor = b.select(divides, y_size, one);

    let limit = b.multiply(dividend, half);
    let largest = repeat_while(
        b,
        &[divisor, limit],
        |b, state| b.compare(Cmp::Le, state[0], state[1]),
        |b, state| {
            let is_less = b.compare(Cmp::Le, state[0], state[1]);
            let double = b.add(state[0], state[0]);
            vec![b.select(is_less, double, state[0]), state[1]]
        },
    )[0];
    let rest = repeat_while(
        b,
        &[dividend, largest, divisor],
        |b, state| b.compare(Cmp::Ge, state[1], state[2]),
        |b, state| {
            let half = b.number(0.5, state[0]);
            let fits = b.compare(Cmp::Ge, state[0], state[1]);
            let is_multiple = b.compare(Cmp::Ge, state[1], state[2]);
            let is_subtracted = b.and(fits, is_multiple);
            let difference = b.subtract(state[0], state[1]);
            let rest = b.select(is_subtracted, difference, state[0]);
            vec![rest, b.multiply(state[1], half), state[2]]
        },
    )[0];
    let negative = b.negate(rest);
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    let signed = b.select(is_negative, negative, rest);
    // Zeros keep their sign, and the remainder of a division by infinity is the dividend.
    let is_zero = b.compare_with(Cmp::Eq, x, 0.0);
    let is_kept = b.not(y_is_finite);
    let is_kept = b.or(is_zero, is_kept);
    let value = b.select(is_kept, x, signed);
    let nan = b.number(f64::NAN, x);
    b.select(is_defined, value, nan)
}

/// Adds a loop over tensors that runs while `condition` holds for an element. Returns its results.
fn repeat_while(
    b: &mut Builder,
    initial: &[ValueId],
    condition: impl FnOnce(&mut Builder, &[ValueId]) -> ValueId,
    step: impl FnOnce(&mut Builder, &[ValueId]) -> Vec<ValueId>,
) -> Vec<ValueId> {
    let types: Vec<_> = initial.iter().map(|&value| b.ty(value).clone()).collect();
    let op = b.add_op(While {}, initial, types.clone());
    b.region(op, types.clone(), |b, state| {
        let holds = condition(b, state);
        let rank = b.tensor(holds).rank() as i64;
        if rank == 0 {
            return vec![holds];
        }
        let all: Vec<i64> = (0..rank).collect();
        vec![b.reduce(holds, &all, OpCode::Or, 0.0)]
    });
    b.region(op, types, step);
    b.all_results(op)
}

/// Returns a tensor of an integer type with the value of an `i1` tensor's elements, or of floats: 1 or 0.
pub(crate) fn from_boolean(b: &mut Builder, x: ValueId, element: ElementType) -> ValueId {
    let ty = TensorType::new(element, b.dims(x));
    let (one, zero) = (b.number_of_type(1.0, ty.clone()), b.number_of_type(0.0, ty));
    b.select(x, one, zero)
}
