//! `power`.

use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementKind, ElementType, ValueId};

/// The greatest exponent for which a power of floats is a chain of products. Each product adds a rounding error.
const MAX_FACTORS: u32 = 32;

/// `power` of floats with a constant exponent. Whole exponents up to [`MAX_FACTORS`] in magnitude become products, halves
/// become products of square roots, and negative exponents powers of the reciprocal. Returns `None` for other exponents.
pub(crate) fn float_constant(b: &mut Builder, x: ValueId, exponent: f64) -> Option<ValueId> {
    let size = exponent.abs();
    if size > f64::from(MAX_FACTORS) || (2.0 * size).fract() != 0.0 {
        return None;
    }
    if size == 0.0 {
        return Some(b.number(1.0, x));
    }
    let is_whole = size.fract() == 0.0;
    let root = if is_whole { x } else { square_root(b, x) };
    let base = if exponent < 0.0 {
        let one = b.number(1.0, x);
        b.divide(one, root)
    } else {
        root
    };
    let factors = if is_whole { size } else { 2.0 * size };
    Some(product(b, base, factors as u32))
}

/// `power` with exponent 0.5, which differs from `sqrt` for negative zero and negative infinity.
fn square_root(b: &mut Builder, x: ValueId) -> ValueId {
    let root = b.sqrt(x);
    let (zero, infinity) = (b.number(0.0, x), b.number(f64::INFINITY, x));
    let is_zero = b.compare(Cmp::Eq, x, zero);
    let is_below_all = b.compare_with(Cmp::Eq, x, f64::NEG_INFINITY);
    let root = b.select(is_zero, zero, root);
    b.select(is_below_all, infinity, root)
}

/// Returns the product of `count` factors `x`. No intermediate result exceeds the last one.
fn product(b: &mut Builder, x: ValueId, count: u32) -> ValueId {
    let mut value = x;
    for bit in (0..count.ilog2()).rev() {
        value = b.multiply(value, value);
        if count >> bit & 1 == 1 {
            value = b.multiply(value, x);
        }
    }
    value
}

/// `power` of floats: `exp(y log |x|)`, and the special cases of IEEE 754.
///
/// The error of the product in the exponent grows with its magnitude: in f32, up to about 90 units in the last place.
pub(crate) fn float(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let (zero, one, half) = (b.number(0.0, x), b.number(1.0, x), b.number(0.5, x));
    let infinity = b.number(f64::INFINITY, x);
    let size = b.abs(x);
    let log = b.log(size);
    let exponent = b.multiply(y, log);
    let value = b.exponential(exponent);

    let floor = b.floor(y);
    let is_whole = b.compare(Cmp::Eq, floor, y);
    let half_y = b.multiply(y, half);
    let half_floor = b.floor(half_y);
    let is_not_even = b.compare(Cmp::Ne, half_floor, half_y);
    let is_odd = b.and(is_whole, is_not_even);
    // The reciprocal of a negative zero is negative.
    let reciprocal = b.divide(one, x);
    let (is_below, is_below_reciprocal) = (b.compare(Cmp::Lt, x, zero), b.compare(Cmp::Lt, reciprocal, zero));
    let is_negative = b.or(is_below, is_below_reciprocal);
    let changes_sign = b.and(is_odd, is_negative);
    let negative = b.negate(value);
    let value = b.select(changes_sign, negative, value);

    let nan = b.number(f64::NAN, x);
    let is_finite = b.compare(Cmp::Lt, size, infinity);
    let is_fraction = b.not(is_whole);
    let is_root = b.and(is_fraction, is_finite);
    let is_not_real = b.and(is_root, is_below);
    let value = b.select(is_not_real, nan, value);

    let y_size = b.abs(y);
    let y_is_infinite = b.compare(Cmp::Eq, y_size, infinity);
    let is_unit = b.compare(Cmp::Eq, size, one);
    let stays = b.and(is_unit, y_is_infinite);
    let (is_one, has_no_factors) = (b.compare(Cmp::Eq, x, one), b.compare(Cmp::Eq, y, zero));
    let is_certain = b.or(is_one, has_no_factors);
    let is_certain = b.or(is_certain, stays);
    b.select(is_certain, one, value)
}

/// `power` of integers, by squaring. Powers with a negative exponent are 0, unless the base is 1 or -1.
pub(crate) fn integer(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let element = b.element(x);
    let is_signed = element.kind() == ElementKind::SignedInteger;
    let (zero, one, two) = (b.number(0.0, x), b.number(1.0, x), b.number(2.0, x));
    // A division rounds towards zero, so negative exponents have the parities of their magnitudes.
    let mut is_odd_exponent = None;
    let (mut value, mut square, mut rest) = (one, x, y);
    let bits = element.bits() - u32::from(is_signed);
    for bit in 0..bits {
        let half = b.divide(rest, two);
        let double = b.add(half, half);
        let is_odd = b.compare(Cmp::Ne, double, rest);
        is_odd_exponent.get_or_insert(is_odd);
        let product = b.multiply(value, square);
        value = b.select(is_odd, product, value);
        rest = half;
        if bit + 1 < bits {
            square = b.multiply(square, square);
        }
    }
    let Some(is_odd) = is_odd_exponent.filter(|_| is_signed) else { return value };
    let is_unit = b.compare(Cmp::Eq, x, one);
    let minus_one = b.number(-1.0, x);
    let is_minus_one = b.compare(Cmp::Eq, x, minus_one);
    let sign = b.select(is_odd, minus_one, one);
    let fraction = b.select(is_minus_one, sign, zero);
    let fraction = b.select(is_unit, one, fraction);
    let is_fraction = b.compare(Cmp::Lt, y, zero);
    b.select(is_fraction, fraction, value)
}

/// `power` of integers with a constant exponent that is not negative.
pub(crate) fn integer_constant(b: &mut Builder, x: ValueId, exponent: u32) -> ValueId {
    if exponent == 0 { b.number(1.0, x) } else { product(b, x, exponent) }
}

/// Returns `true` for the floats whose powers [`float`] computes accurately: those that f32 computes with more digits, and
/// f32 itself.
pub(crate) fn is_accurate(element: ElementType) -> bool {
    element.is_float() && element != ElementType::F64
}
