//! Elementwise operations made of more basic ones.
//!
//! They are as accurate as what they are made of: each is exact or adds a few rounding errors. No formula cancels, or
//! depends on the rounding of an intermediate result, so a compiler may simplify them.

use super::rewriter::Rewriter;
use super::rules::mismatch;
use super::unsupported;
use crate::Error;
use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementKind, ElementType, Operation, ValueId};

/// The operand of a function of real numbers.
pub(super) fn real_operand(r: &Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    require_real(r, op, x)?;
    Ok(x)
}

/// Fails for elements that are not floats.
pub(super) fn require_real(r: &Rewriter<'_>, op: &Operation, x: ValueId) -> Result<(), Error> {
    let element = r.b.element(x);
    if !element.is_float() {
        return Err(unsupported(format!(
            "{} of {element} cannot be decomposed, only of floats",
            op.kind.name()
        )));
    }
    Ok(())
}

/// Computes in `f32` where the type is smaller.
pub(super) fn at_least_f32(
    b: &mut Builder,
    x: ValueId,
    compute: impl FnOnce(&mut Builder, ValueId) -> ValueId,
) -> ValueId {
    let element = b.element(x);
    if matches!(element, ElementType::F32 | ElementType::F64) {
        return compute(b, x);
    }
    let wide = b.convert(x, ElementType::F32);
    let result = compute(b, wide);
    b.convert(result, element)
}

/// `clamp`: `minimum(maximum(operand, min), max)`.
pub(super) fn clamp(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [min, x, max] = r.operands(op)?;
    let dims = r.b.dims(x);
    let (min, max) = (r.b.broadcast_scalar(min, &dims), r.b.broadcast_scalar(max, &dims));
    let raised = r.b.maximum(x, min);
    Ok(r.b.minimum(raised, max))
}

/// `cbrt`: a power, corrected once, with the sign of the operand.
pub(super) fn cbrt(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let x = real_operand(r, op)?;
    Ok(at_least_f32(&mut r.b, x, |b, x| {
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
    }))
}

/// `exponential_minus_one`: `2 t / (1 - t)` with `t = tanh(x / 2)` near 0, where the exponential would cancel.
pub(super) fn exponential_minus_one(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let x = real_operand(r, op)?;
    Ok(at_least_f32(&mut r.b, x, |b, x| {
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
    }))
}

/// `log_plus_one`: `2 artanh(s)` with `s = x / (2 + x)` near 0, where the sum would lose digits of `x`.
pub(super) fn log_plus_one(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    /// Up to this `s` its series is summed.
    const SERIES_LIMIT: f64 = 0.2;
    let x = real_operand(r, op)?;
    Ok(at_least_f32(&mut r.b, x, |b, x| {
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
    }))
}

/// `is_finite`: only finite numbers differ from themselves by zero.
pub(super) fn is_finite(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let x = real_operand(r, op)?;
    let difference = r.b.subtract(x, x);
    Ok(r.b.compare_with(Cmp::Eq, difference, 0.0))
}

/// `logistic`: `1 / (1 + exp(-x))`.
pub(super) fn logistic(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let x = real_operand(r, op)?;
    Ok(at_least_f32(&mut r.b, x, |b, x| {
        let one = b.number(1.0, x);
        let negative = b.negate(x);
        let exponential = b.exponential(negative);
        let denominator = b.add(one, exponential);
        b.divide(one, denominator)
    }))
}

/// `rsqrt`: `1 / sqrt(x)`.
pub(super) fn rsqrt(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let x = real_operand(r, op)?;
    let root = r.b.sqrt(x);
    let one = r.b.number(1.0, x);
    Ok(r.b.divide(one, root))
}

/// `tan`: sine over cosine.
pub(super) fn tan(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    let sine = r.b.sine(x);
    let cosine = r.b.cosine(x);
    Ok(r.b.divide(sine, cosine))
}

/// `sign` of real numbers: zeros and NaN stay as they are.
pub(super) fn sign(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x] = r.operands(op)?;
    let kind = r.b.element(x).kind();
    if !matches!(kind, ElementKind::Float | ElementKind::SignedInteger) {
        return Err(mismatch(op));
    }
    let (one, minus_one) = (r.b.number(1.0, x), r.b.number(-1.0, x));
    let is_negative = r.b.compare_with(Cmp::Lt, x, 0.0);
    let is_positive = r.b.compare_with(Cmp::Gt, x, 0.0);
    let rest = r.b.select(is_negative, minus_one, x);
    Ok(r.b.select(is_positive, one, rest))
}

/// `round_nearest_afz`: halves away from zero.
pub(super) fn round_nearest_afz(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let x = real_operand(r, op)?;
    Ok(round(&mut r.b, x, |b, _, fraction| b.compare_with(Cmp::Ge, fraction, 0.5)))
}

/// `round_nearest_even`: halves to the even neighbour.
pub(super) fn round_nearest_even(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let x = real_operand(r, op)?;
    Ok(round(&mut r.b, x, |b, whole, fraction| {
        let half = b.number(0.5, whole);
        let halves = b.multiply(whole, half);
        let floored = b.floor(halves);
        let is_odd = b.compare(Cmp::Ne, halves, floored);
        let is_half = b.compare(Cmp::Eq, fraction, half);
        let is_odd_half = b.and(is_odd, is_half);
        let is_more = b.compare(Cmp::Gt, fraction, half);
        b.or(is_more, is_odd_half)
    }))
}

/// Rounds magnitudes: up where `goes_up` says so of their whole and fractional parts.
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
    // Whole numbers, zeros of either sign, infinities and NaN are what they are.
    let has_fraction = b.compare_with(Cmp::Gt, fraction, 0.0);
    b.select(has_fraction, signed, x)
}
