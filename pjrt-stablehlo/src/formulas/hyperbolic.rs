//! Inverse trigonometric and hyperbolic functions of real numbers. Those of complex numbers are in
//! [`complex`](super::complex).
//!
//! The formulas avoid cancellation and overflow, so results are accurate to a few units in the last place as far as the
//! functions in the formulas are.

use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementType, ValueId};

/// Applies `compute` to the magnitude, and restores the sign of the operand. Zeros are returned unchanged.
pub(super) fn odd(
    b: &mut Builder,
    x: ValueId,
    compute: impl FnOnce(&mut Builder, ValueId) -> ValueId,
) -> ValueId {
    let magnitude = b.abs(x);
    let value = compute(b, magnitude);
    let negative = b.negate(value);
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    let signed = b.select(is_negative, negative, value);
    let is_zero = b.compare_with(Cmp::Eq, x, 0.0);
    b.select(is_zero, x, signed)
}

/// Returns a limit below which squares do not overflow, and above which constant terms are less than the rounding error.
pub(super) fn square_limit(element: ElementType) -> f64 {
    if element == ElementType::F64 { 1e150 } else { 1e18 }
}

/// Returns a limit below which `exp` does not overflow.
pub(super) fn exponent_limit(element: ElementType) -> f64 {
    if element == ElementType::F64 { 709.0 } else { 88.0 }
}

/// `sqrt((1 - x) * (1 + x))`.
fn cathetus(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    let (less, more) = (b.subtract(one, x), b.add(one, x));
    let product = b.multiply(less, more);
    b.sqrt(product)
}

/// `chlo.acos`: `2 atan2(sqrt(1 - x^2), 1 + x)`.
pub(crate) fn acos(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    let cathetus = cathetus(b, x);
    let more = b.add(one, x);
    let half = b.atan2(cathetus, more);
    let angle = b.add(half, half);
    // Both operands of the second case are zero at -1.
    let pi = b.number(std::f64::consts::PI, x);
    let is_minus_one = b.compare_with(Cmp::Eq, x, -1.0);
    b.select(is_minus_one, pi, angle)
}

/// `chlo.asin`: `2 atan2(x, 1 + sqrt(1 - x^2))`.
pub(crate) fn asin(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    let cathetus = cathetus(b, x);
    let more = b.add(one, cathetus);
    let half = b.atan2(x, more);
    b.add(half, half)
}

/// `chlo.atan`: `atan2(x, 1)`.
pub(crate) fn atan(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    b.atan2(x, one)
}

/// `chlo.acosh`: `log1p(t + sqrt(t (t + 2)))` with `t = x - 1`; `log(2 x)` for large numbers.
pub(crate) fn acosh(b: &mut Builder, x: ValueId) -> ValueId {
    let (one, two) = (b.number(1.0, x), b.number(2.0, x));
    let t = b.subtract(x, one);
    let more = b.add(t, two);
    let square = b.multiply(t, more);
    let root = b.sqrt(square);
    let sum = b.add(t, root);
    let value = b.log_plus_one(sum);
    let great = log_of_double(b, x);
    let is_great = b.compare_with(Cmp::Ge, x, square_limit(b.element(x)));
    let value = b.select(is_great, great, value);
    let nan = b.number(f64::NAN, x);
    let is_outside = b.compare(Cmp::Lt, x, one);
    b.select(is_outside, nan, value)
}

fn log_of_double(b: &mut Builder, x: ValueId) -> ValueId {
    let (log, ln_2) = (b.log(x), b.number(std::f64::consts::LN_2, x));
    b.add(log, ln_2)
}

/// `chlo.asinh`: `log1p(x + x^2 / (1 + sqrt(1 + x^2)))`; `log(2 x)` for large numbers.
pub(crate) fn asinh(b: &mut Builder, x: ValueId) -> ValueId {
    odd(b, x, |b, x| {
        let one = b.number(1.0, x);
        let square = b.multiply(x, x);
        let more = b.add(one, square);
        let root = b.sqrt(more);
        let denominator = b.add(one, root);
        let quotient = b.divide(square, denominator);
        let sum = b.add(x, quotient);
        let value = b.log_plus_one(sum);
        let great = log_of_double(b, x);
        let is_great = b.compare_with(Cmp::Ge, x, square_limit(b.element(x)));
        b.select(is_great, great, value)
    })
}

/// `chlo.atanh`: `(log1p(x) - log1p(-x)) / 2`, whose terms have the same sign.
pub(crate) fn atanh(b: &mut Builder, x: ValueId) -> ValueId {
    odd(b, x, |b, x| {
        let half = b.number(0.5, x);
        let negative = b.negate(x);
        let (above, below) = (b.log_plus_one(x), b.log_plus_one(negative));
        let difference = b.subtract(above, below);
        b.multiply(difference, half)
    })
}

/// `exp(x) / 2` as the square of `exp(x / 2)`, which does not overflow while the result is finite.
fn half_exponential(b: &mut Builder, x: ValueId) -> ValueId {
    let half = b.number(0.5, x);
    let half_x = b.multiply(x, half);
    let root = b.exponential(half_x);
    let half_root = b.multiply(root, half);
    b.multiply(half_root, root)
}

/// `sinh` for arguments from 0 to [`exponent_limit`]: `(e + e / (e + 1)) / 2` with `e = exp(x) - 1`.
pub(super) fn moderate_sinh(b: &mut Builder, x: ValueId) -> ValueId {
    let (one, half) = (b.number(1.0, x), b.number(0.5, x));
    let e = b.exponential_minus_one(x);
    let more = b.add(e, one);
    let ratio = b.divide(e, more);
    let sum = b.add(e, ratio);
    b.multiply(sum, half)
}

/// `cosh` for arguments from 0 to [`exponent_limit`]: `(e + 1 / e) / 2` with `e = exp(x)`.
pub(super) fn moderate_cosh(b: &mut Builder, x: ValueId) -> ValueId {
    let (one, half) = (b.number(1.0, x), b.number(0.5, x));
    let e = b.exponential(x);
    let inverse = b.divide(one, e);
    let sum = b.add(e, inverse);
    b.multiply(sum, half)
}

/// `chlo.sinh`: [`moderate_sinh`], and `exp(x) / 2` for large numbers.
pub(crate) fn sinh(b: &mut Builder, x: ValueId) -> ValueId {
    odd(b, x, |b, x| {
        let value = moderate_sinh(b, x);
        let great = half_exponential(b, x);
        let is_great = b.compare_with(Cmp::Ge, x, exponent_limit(b.element(x)));
        b.select(is_great, great, value)
    })
}

/// `chlo.cosh`: [`moderate_cosh`], and `exp(x) / 2` for large numbers.
pub(crate) fn cosh(b: &mut Builder, x: ValueId) -> ValueId {
    let magnitude = b.abs(x);
    let value = moderate_cosh(b, magnitude);
    let great = half_exponential(b, magnitude);
    let is_great = b.compare_with(Cmp::Ge, magnitude, exponent_limit(b.element(x)));
    b.select(is_great, great, value)
}
