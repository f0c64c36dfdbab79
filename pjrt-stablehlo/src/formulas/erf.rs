//! The error function, its complement and its inverse.

use super::series::{affine, chebyshev};
use super::tables::{ERF_INV_CENTRAL, ERF_INV_TAIL, ERF_NEAR_ZERO, ERFC_SCALED};
use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementType, ValueId};

/// The limit of the series of `erf`.
const ERF_LIMIT: f64 = 0.5;

/// `erf(x)` for magnitudes below [`ERF_LIMIT`].
fn erf_near_zero(b: &mut Builder, x: ValueId) -> ValueId {
    let square = b.multiply(x, x);
    // From 0..1/4 to -1..1.
    let t = affine(b, square, 8.0, -1.0);
    let ratio = chebyshev(b, t, ERF_NEAR_ZERO);
    b.multiply(x, ratio)
}

/// `erfc(x)` for `x` of at least [`ERF_LIMIT`].
fn erfc_tail(b: &mut Builder, x: ValueId) -> ValueId {
    // exp(-x^2) is corrected for the rounding error of the square: x = head + rest, and the square of the head is
    // exact. Dekker's algorithm computes the upper half of the digits with operations that every device has.
    let splitter = if b.element(x) == ElementType::F64 { 134_217_729.0 } else { 8193.0 };
    let splitter = b.number(splitter, x);
    let large = b.multiply(x, splitter);
    let lower = b.subtract(large, x);
    let head = b.subtract(large, lower);
    let rest = b.subtract(x, head);
    let sum = b.add(x, head);
    let square = b.multiply(head, head);
    let square = b.negate(square);
    let correction = b.multiply(rest, sum);
    let correction = b.negate(correction);
    // Compilers would combine a product of exponentials into one exponential.
    let main = b.exponential(square);
    let correction = b.exponential_minus_one(correction);
    let correction = b.multiply(main, correction);
    let power = b.add(main, correction);
    // (x - K) / (x + K) ranges from (1/2 - K) / (1/2 + K) to 1.
    let least = (ERF_LIMIT - ERFC_CENTRE) / (ERF_LIMIT + ERFC_CENTRE);
    let centre = b.number(ERFC_CENTRE, x);
    let (below, above) = (b.subtract(x, centre), b.add(x, centre));
    let ratio = b.divide(below, above);
    let t = affine(b, ratio, 2.0 / (1.0 - least), -(1.0 + least) / (1.0 - least));
    let scaled = chebyshev(b, t, ERFC_SCALED);
    let scaled = b.divide(scaled, above);
    let tail = b.multiply(power, scaled);
    // The ratio is NaN for infinity.
    let zero = b.number(0.0, x);
    let is_far = b.compare_with(Cmp::Gt, x, 30.0);
    b.select(is_far, zero, tail)
}

/// The constant in the argument of [`ERFC_SCALED`].
const ERFC_CENTRE: f64 = 4.0;

/// `chlo.erf`.
pub(crate) fn erf(b: &mut Builder, x: ValueId) -> ValueId {
    let near = erf_near_zero(b, x);
    let magnitude = b.abs(x);
    let tail = erfc_tail(b, magnitude);
    let one = b.number(1.0, x);
    let far = b.subtract(one, tail);
    let negative = b.negate(far);
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    let far = b.select(is_negative, negative, far);
    let is_near = b.compare_with(Cmp::Lt, magnitude, ERF_LIMIT);
    b.select(is_near, near, far)
}

/// `chlo.erfc`.
pub(crate) fn erfc(b: &mut Builder, x: ValueId) -> ValueId {
    let (one, two) = (b.number(1.0, x), b.number(2.0, x));
    let near = erf_near_zero(b, x);
    let near = b.subtract(one, near);
    let magnitude = b.abs(x);
    let tail = erfc_tail(b, magnitude);
    let reflected = b.subtract(two, tail);
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    let far = b.select(is_negative, reflected, tail);
    let is_near = b.compare_with(Cmp::Lt, magnitude, ERF_LIMIT);
    b.select(is_near, near, far)
}

/// `chlo.erf_inv`: Chebyshev series in `w = -log(1 - x^2)` and in its square root.
pub(crate) fn erf_inv(b: &mut Builder, x: ValueId) -> ValueId {
    const CENTRAL_LIMIT: f64 = 6.0;
    const TAIL_LIMIT: f64 = 6.25;
    let one = b.number(1.0, x);
    let (below, above) = (b.subtract(one, x), b.add(one, x));
    let product = b.multiply(below, above);
    let log = b.log(product);
    let w = b.negate(log);
    let t = affine(b, w, 2.0 / CENTRAL_LIMIT, -1.0);
    let central = chebyshev(b, t, ERF_INV_CENTRAL);
    let start = CENTRAL_LIMIT.sqrt();
    let root = b.sqrt(w);
    let width = TAIL_LIMIT - start;
    let t = affine(b, root, 2.0 / width, -(TAIL_LIMIT + start) / width);
    let tail = chebyshev(b, t, ERF_INV_TAIL);
    let is_central = b.compare_with(Cmp::Lt, w, CENTRAL_LIMIT);
    let ratio = b.select(is_central, central, tail);
    let value = b.multiply(x, ratio);
    let infinity = b.number(f64::INFINITY, x);
    let infinity = b.multiply(x, infinity);
    let magnitude = b.abs(x);
    let is_edge = b.compare(Cmp::Eq, magnitude, one);
    b.select(is_edge, infinity, value)
}
