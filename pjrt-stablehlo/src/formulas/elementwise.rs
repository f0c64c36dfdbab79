//! Elementwise operations, expressed by more basic ones.
//!
//! Each formula is exact or adds a few rounding errors to those of its operations. No formula cancels or depends on the
//! rounding of an intermediate result, so compilers may simplify them.

use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementType, ValueId};

/// `clamp`: `minimum(maximum(operand, min), max)`.
pub(crate) fn clamp(b: &mut Builder, min: ValueId, x: ValueId, max: ValueId) -> ValueId {
    let dims = b.dims(x);
    let (min, max) = (b.broadcast_scalar(min, &dims), b.broadcast_scalar(max, &dims));
    let raised = b.maximum(x, min);
    b.minimum(raised, max)
}

/// `cbrt`: a power with one step of Newton's method, with the sign of the operand.
pub(crate) fn cbrt(b: &mut Builder, x: ValueId) -> ValueId {
    let magnitude = b.abs(x);
    let third = b.number(1.0 / 3.0, x);
    let root = b.power(magnitude, third);
    // root - (root - magnitude / root^2) / 3
    let square = b.multiply(root, root);
    let quotient = b.divide(magnitude, square);
    let difference = b.subtract(root, quotient);
    let correction = b.multiply(difference, third);
    let corrected = b.subtract(root, correction);
    let is_finite = b.subtract(quotient, quotient);
    let is_correctable = b.compare_with(Cmp::Eq, is_finite, 0.0);
    let root = b.select(is_correctable, corrected, root);
    let negative = b.negate(root);
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    let signed = b.select(is_negative, negative, root);
    let is_zero = b.compare_with(Cmp::Eq, x, 0.0);
    b.select(is_zero, x, signed)
}

/// `exponential_minus_one`: `2 t / (1 - t)` with `t = tanh(x / 2)` near 0, where `exp(x) - 1` would cancel.
pub(crate) fn exponential_minus_one(b: &mut Builder, x: ValueId) -> ValueId {
    let (one, half) = (b.number(1.0, x), b.number(0.5, x));
    let half_x = b.multiply(x, half);
    let t = b.tanh(half_x);
    let double = b.add(t, t);
    let less = b.subtract(one, t);
    let small = b.divide(double, less);
    let exponential = b.exponential(x);
    let great = b.subtract(exponential, one);
    let magnitude = b.abs(x);
    let is_small = b.compare(Cmp::Lt, magnitude, one);
    b.select(is_small, small, great)
}

/// `log_plus_one`: `2 artanh(s)` with `s = x / (2 + x)` near 0, where `1 + x` would lose digits of `x`.
pub(crate) fn log_plus_one(b: &mut Builder, x: ValueId) -> ValueId {
    /// The maximum `s` for which the series is used.
    const SERIES_LIMIT: f64 = 0.2;
    let (one, two) = (b.number(1.0, x), b.number(2.0, x));
    let more = b.add(x, two);
    let s = b.divide(x, more);
    // artanh(s) = s (1 + s^2 / 3 + s^4 / 5 + ...)
    let terms = if b.element(x) == ElementType::F64 { 12 } else { 6 };
    let square = b.multiply(s, s);
    let mut sum = b.number(1.0 / f64::from(2 * terms + 1), x);
    for term in (0..terms).rev() {
        let coefficient = b.number(1.0 / f64::from(2 * term + 1), x);
        let product = b.multiply(sum, square);
        sum = b.add(product, coefficient);
    }
    let product = b.multiply(s, sum);
    let small = b.add(product, product);
    let u = b.add(x, one);
    let great = b.log(u);
    let magnitude = b.abs(s);
    let is_small = b.compare_with(Cmp::Lt, magnitude, SERIES_LIMIT);
    b.select(is_small, small, great)
}

/// `is_finite`: the difference of a number and itself is zero for finite numbers only.
pub(crate) fn is_finite(b: &mut Builder, x: ValueId) -> ValueId {
    let difference = b.subtract(x, x);
    b.compare_with(Cmp::Eq, difference, 0.0)
}

/// `logistic`: `1 / (1 + exp(-x))`.
pub(crate) fn logistic(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    let negative = b.negate(x);
    let exponential = b.exponential(negative);
    let denominator = b.add(one, exponential);
    b.divide(one, denominator)
}

/// `rsqrt`: `1 / sqrt(x)`.
pub(crate) fn rsqrt(b: &mut Builder, x: ValueId) -> ValueId {
    let root = b.sqrt(x);
    let one = b.number(1.0, x);
    b.divide(one, root)
}

/// `tan`: sine over cosine.
pub(crate) fn tan(b: &mut Builder, x: ValueId) -> ValueId {
    let sine = b.sine(x);
    let cosine = b.cosine(x);
    b.divide(sine, cosine)
}

/// `sign` of real numbers. Zeros and NaN are returned unchanged.
pub(crate) fn sign(b: &mut Builder, x: ValueId) -> ValueId {
    let (one, minus_one) = (b.number(1.0, x), b.number(-1.0, x));
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    let is_positive = b.compare_with(Cmp::Gt, x, 0.0);
    let rest = b.select(is_negative, minus_one, x);
    b.select(is_positive, one, rest)
}

/// `round_nearest_afz`: rounds halves away from zero.
pub(crate) fn round_nearest_afz(b: &mut Builder, x: ValueId) -> ValueId {
    round(b, x, |b, _, fraction| b.compare_with(Cmp::Ge, fraction, 0.5))
}

/// `round_nearest_even`: rounds halves to the even neighbor.
pub(crate) fn round_nearest_even(b: &mut Builder, x: ValueId) -> ValueId {
    round(b, x, |b, whole, fraction| {
        let half = b.number(0.5, whole);
        let halves = b.multiply(whole, half);
        let floored = b.floor(halves);
        let is_odd = b.compare(Cmp::Ne, halves, floored);
        let is_half = b.compare(Cmp::Eq, fraction, half);
        let is_odd_half = b.and(is_odd, is_half);
        let is_more = b.compare(Cmp::Gt, fraction, half);
        b.or(is_more, is_odd_half)
    })
}

/// Rounds the magnitudes. `goes_up` receives the integer and fractional parts, and returns `true` where to round up.
fn round(
    b: &mut Builder,
    x: ValueId,
    goes_up: impl FnOnce(&mut Builder, ValueId, ValueId) -> ValueId,
) -> ValueId {
    let magnitude = b.abs(x);
    let whole = b.floor(magnitude);
    let fraction = b.subtract(magnitude, whole);
    let goes_up = goes_up(b, whole, fraction);
    let one = b.number(1.0, x);
    let above = b.add(whole, one);
    let rounded = b.select(goes_up, above, whole);
    let negative = b.negate(rounded);
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    let signed = b.select(is_negative, negative, rounded);
    // Integers, zeros, infinities and NaN are returned unchanged.
    let has_fraction = b.compare_with(Cmp::Gt, fraction, 0.0);
    b.select(has_fraction, signed, x)
}
