//! CHLO's special functions of real numbers, for `f32` and `f64`; smaller types are computed in `f32`.
//!
//! Functions without a simple formula are Chebyshev series over a few intervals, whose coefficients
//! [`special_tables`](super::special_tables) has, and recurrences and asymptotic series elsewhere.

use std::f64::consts::{LN_2, PI};

use super::elementwise::{at_least_f32, require_real};
use super::hyperbolic::real_function;
use super::rewriter::Rewriter;
use super::special_tables::{
    DIGAMMA, ERF_INV_CENTRAL, ERF_INV_TAIL, ERF_NEAR_ZERO, ERFC_SCALED, I1E_TAIL, LGAMMA,
};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::Gather;
use crate::ir::{
    ComparisonDirection as Cmp, ElementType, GatherDimensionNumbers, Op, Operation, TensorType, ValueId,
};

/// `B(2k) / (2k)` for `k` from 1, of the Bernoulli numbers `B`.
const BERNOULLI_OVER_INDEX: &[f64] = &[
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    1.0 / 132.0,
    -691.0 / 32760.0,
    1.0 / 12.0,
    -3617.0 / 8160.0,
];

/// The sum of a Chebyshev series at `t` from -1 to 1, as far as the precision of the type asks for.
fn chebyshev(b: &mut Builder, t: ValueId, coefficients: &[f64]) -> ValueId {
    let tolerance = if b.element(t) == ElementType::F64 { 0.0 } else { 1e-10 };
    let count = coefficients.iter().rposition(|c| c.abs() > tolerance).map_or(1, |last| last + 1);
    // Clenshaw's recurrence.
    let double = b.add(t, t);
    let (mut current, mut previous) = (None, None);
    for &coefficient in coefficients[1..count].iter().rev() {
        let mut next = b.number(coefficient, t);
        if let Some(current) = current {
            let product = b.multiply(double, current);
            next = b.add(product, next);
        }
        if let Some(previous) = previous {
            next = b.subtract(next, previous);
        }
        previous = current;
        current = Some(next);
    }
    let mut sum = b.number(coefficients[0], t);
    if let Some(current) = current {
        let product = b.multiply(t, current);
        sum = b.add(product, sum);
    }
    if let Some(previous) = previous {
        sum = b.subtract(sum, previous);
    }
    sum
}

/// `slope * x + offset`.
fn affine(b: &mut Builder, x: ValueId, slope: f64, offset: f64) -> ValueId {
    let (slope, offset) = (b.number(slope, x), b.number(offset, x));
    let product = b.multiply(x, slope);
    b.add(product, offset)
}

/// The sum of `c[k] x^k`.
fn polynomial(b: &mut Builder, x: ValueId, coefficients: &[f64]) -> ValueId {
    let mut sum = b.number(0.0, x);
    for (index, &coefficient) in coefficients.iter().rev().enumerate() {
        let coefficient = b.number(coefficient, x);
        sum = if index == 0 {
            coefficient
        } else {
            let product = b.multiply(sum, x);
            b.add(product, coefficient)
        };
    }
    sum
}

/// Where the series of `erf` ends.
const ERF_LIMIT: f64 = 0.5;

/// `erf(x)` for magnitudes below [`ERF_LIMIT`].
fn erf_near_zero(b: &mut Builder, x: ValueId) -> ValueId {
    let square = b.multiply(x, x);
    // From 0..1/4 to -1..1.
    let t = affine(b, square, 8.0, -1.0);
    let ratio = chebyshev(b, t, ERF_NEAR_ZERO);
    b.multiply(x, ratio)
}

/// `erfc(x)` from [`ERF_LIMIT`] on.
fn erfc_tail(b: &mut Builder, x: ValueId) -> ValueId {
    // exp(-x^2) with the rounding error of the square: x = head + rest, the square of the head is exact.
    // Dekker's splitting keeps the upper half of the digits, with operations that every device has.
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
    // Not a product of powers, which compilers make one power of.
    let main = b.exponential(square);
    let correction = b.exponential_minus_one(correction);
    let correction = b.multiply(main, correction);
    let power = b.add(main, correction);
    // (x - K) / (x + K) goes from (1/2 - K) / (1/2 + K) to 1.
    let least = (ERF_LIMIT - ERFC_CENTRE) / (ERF_LIMIT + ERFC_CENTRE);
    let centre = b.number(ERFC_CENTRE, x);
    let (below, above) = (b.subtract(x, centre), b.add(x, centre));
    let ratio = b.divide(below, above);
    let t = affine(b, ratio, 2.0 / (1.0 - least), -(1.0 + least) / (1.0 - least));
    let scaled = chebyshev(b, t, ERFC_SCALED);
    let scaled = b.divide(scaled, above);
    let tail = b.multiply(power, scaled);
    // Infinity has no ratio.
    let zero = b.number(0.0, x);
    let is_far = b.compare_with(Cmp::Gt, x, 30.0);
    b.select(is_far, zero, tail)
}

/// The constant in the argument of [`ERFC_SCALED`].
const ERFC_CENTRE: f64 = 4.0;

/// `chlo.erf`.
pub(super) fn erf(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    real_function(r, op, |b, x| {
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
    })
}

/// `chlo.erfc`.
pub(super) fn erfc(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    real_function(r, op, |b, x| {
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
    })
}

/// `chlo.erf_inv`: series in `w = -log(1 - x^2)` and its square root.
pub(super) fn erf_inv(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    const CENTRAL_LIMIT: f64 = 6.0;
    const TAIL_LIMIT: f64 = 6.25;
    real_function(r, op, |b, x| {
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
    })
}

/// `chlo.bessel_i1e`: the modified Bessel function of the first kind of order 1, times `exp(-|x|)`.
pub(super) fn bessel_i1e(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    const CENTRAL_LIMIT: f64 = 8.0;
    real_function(r, op, |b, x| {
        let magnitude = b.abs(x);
        let (one, quarter) = (b.number(1.0, x), b.number(0.25, x));
        // x / 2 sum((x^2 / 4)^k / (k! (k + 1)!)): all terms have one sign, so that no sum cancels.
        let tolerance = if b.element(x) == ElementType::F64 { f64::EPSILON / 64.0 } else { 1e-10 };
        let greatest = CENTRAL_LIMIT * CENTRAL_LIMIT / 4.0;
        let next = |(index, term): &(f64, f64)| Some((index + 1.0, term / ((index + 1.0) * (index + 2.0))));
        let series = std::iter::successors(Some((0.0, 0.5)), next);
        let terms = series.take_while(|(index, term)| term * greatest.powf(*index) > tolerance * I1_AT_LIMIT);
        let terms: Vec<f64> = terms.map(|(_, term)| term).collect();
        let square = b.multiply(x, x);
        let square = b.multiply(square, quarter);
        let sum = polynomial(b, square, &terms);
        let negative = b.negate(magnitude);
        let decay = b.exponential(negative);
        let sum = b.multiply(sum, decay);
        let central = b.multiply(sum, x);
        let two_limits = b.number(2.0 * CENTRAL_LIMIT, x);
        let ratio = b.divide(two_limits, magnitude);
        let t = b.subtract(ratio, one);
        let tail = chebyshev(b, t, I1E_TAIL);
        let root = b.sqrt(magnitude);
        let tail = b.divide(tail, root);
        let negative = b.negate(tail);
        let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
        let tail = b.select(is_negative, negative, tail);
        let is_central = b.compare_with(Cmp::Le, magnitude, CENTRAL_LIMIT);
        b.select(is_central, central, tail)
    })
}

/// The Bessel function of [`bessel_i1e`] at its `CENTRAL_LIMIT`, over that.
const I1_AT_LIMIT: f64 = 49.0;

/// Below this the gamma functions are reflected.
const REFLECTION_LIMIT: f64 = 0.5;

/// `chlo.lgamma`: the logarithm of the magnitude of the gamma function.
pub(super) fn lgamma(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    real_function(r, op, lgamma_of)
}

fn lgamma_of(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    let is_reflected = b.compare_with(Cmp::Lt, x, REFLECTION_LIMIT);
    let reflected = b.subtract(one, x);
    let y = b.select(is_reflected, reflected, x);
    let value = lgamma_positive(b, y);
    // lgamma(x) = log(pi / |sin(pi x)|) - lgamma(1 - x), and sin(pi x) has the magnitude of that of the distance to the
    // nearest integer.
    let magnitude = b.abs(x);
    let whole = b.floor(magnitude);
    let fraction = b.subtract(magnitude, whole);
    let rest = b.subtract(one, fraction);
    let distance = b.minimum(fraction, rest);
    let pi = b.number(PI, x);
    let angle = b.multiply(pi, distance);
    let sine = b.sine(angle);
    let log_sine = b.log(sine);
    let log_pi = b.number(PI.ln(), x);
    let reflection = b.subtract(log_pi, log_sine);
    let reflection = b.subtract(reflection, value);
    let result = b.select(is_reflected, reflection, value);
    // Great negative numbers are whole.
    let infinity = b.number(f64::INFINITY, x);
    let is_infinite = b.compare(Cmp::Eq, magnitude, infinity);
    let is_whole = b.compare_with(Cmp::Eq, distance, 0.0);
    let is_pole = b.and(is_whole, is_reflected);
    let is_infinite = b.or(is_infinite, is_pole);
    b.select(is_infinite, infinity, result)
}

/// `lgamma(x)` from [`REFLECTION_LIMIT`] on.
fn lgamma_positive(b: &mut Builder, x: ValueId) -> ValueId {
    const SERIES_LIMIT: f64 = 3.0;
    const STIRLING_LIMIT: f64 = 12.0;
    let (one, two) = (b.number(1.0, x), b.number(2.0, x));
    // Into 1..3 by gamma(x + 1) = x gamma(x).
    let is_below = b.compare(Cmp::Lt, x, one);
    let above = b.add(x, one);
    let mut y = b.select(is_below, above, x);
    let mut product = one;
    for _ in 0..(STIRLING_LIMIT - SERIES_LIMIT) as usize {
        let is_above = b.compare_with(Cmp::Ge, y, SERIES_LIMIT);
        let less = b.subtract(y, one);
        let factor = b.select(is_above, less, one);
        y = b.select(is_above, less, y);
        product = b.multiply(product, factor);
    }
    let divisor = b.select(is_below, x, one);
    let log_product = b.log(product);
    let log_divisor = b.log(divisor);
    // Not by way of x + 1, which is rounded.
    let x_less = b.subtract(x, one);
    let y_less = b.subtract(y, two);
    let t = b.select(is_below, x_less, y_less);
    let ratio = chebyshev(b, t, LGAMMA);
    let less = b.subtract(y, one);
    let less = b.select(is_below, x, less);
    let zeros = b.multiply(less, t);
    let value = b.multiply(ratio, zeros);
    let value = b.add(value, log_product);
    let value = b.subtract(value, log_divisor);
    // Stirling: (x - 1/2) log(x) - x + log(2 pi) / 2 + sum(B(2k) / (2k (2k - 1) x^(2k - 1)))
    let coefficients: Vec<f64> =
        BERNOULLI_OVER_INDEX.iter().enumerate().map(|(index, c)| c / (2 * index + 1) as f64).collect();
    let inverse = b.divide(one, x);
    let square = b.multiply(inverse, inverse);
    let correction = polynomial(b, square, &coefficients);
    let correction = b.multiply(correction, inverse);
    let half = b.number(0.5, x);
    let log = b.log(x);
    let log_less = b.subtract(log, one);
    let less = b.subtract(x, half);
    // (x - 1/2) (log(x) - 1) - 1/2 cancels less than the terms one by one.
    let main = b.multiply(less, log_less);
    let constant = b.number((LN_2 + PI.ln()) / 2.0 - 0.5, x);
    let rest = b.add(correction, constant);
    let stirling = b.add(main, rest);
    let is_series = b.compare_with(Cmp::Lt, x, STIRLING_LIMIT);
    b.select(is_series, value, stirling)
}

/// `chlo.digamma`: the derivative of the logarithm of the gamma function.
pub(super) fn digamma(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    real_function(r, op, digamma_of)
}

/// The zero of `digamma`: rounded, and the rest, in the precision of the type.
fn digamma_zero(element: ElementType) -> [f64; 2] {
    match element {
        ElementType::F64 => [1.4616321449683622, 9.549995429965697e-17],
        _ => [1.4616321325302124, 1.243814993891891e-8],
    }
}

fn digamma_of(b: &mut Builder, x: ValueId) -> ValueId {
    const ASYMPTOTIC_LIMIT: usize = 10;
    let one = b.number(1.0, x);
    let is_reflected = b.compare_with(Cmp::Lt, x, REFLECTION_LIMIT);
    let reflected = b.subtract(one, x);
    let y = b.select(is_reflected, reflected, x);
    // Into 1..2 by digamma(z + 1) = digamma(z) + 1 / z.
    let is_below = b.compare(Cmp::Lt, y, one);
    let above = b.add(y, one);
    let mut z = b.select(is_below, above, y);
    let zero = b.number(0.0, x);
    let inverse = b.divide(one, y);
    let inverse = b.negate(inverse);
    let mut sum = b.select(is_below, inverse, zero);
    for _ in 2..ASYMPTOTIC_LIMIT {
        let is_above = b.compare_with(Cmp::Ge, z, 2.0);
        let less = b.subtract(z, one);
        let inverse = b.divide(one, less);
        let term = b.select(is_above, inverse, zero);
        sum = b.add(sum, term);
        z = b.select(is_above, less, z);
    }
    let t = affine(b, z, 2.0, -3.0);
    let ratio = chebyshev(b, t, DIGAMMA);
    let [root, rest] = digamma_zero(b.element(x)).map(|part| b.number(part, x));
    let distance = b.subtract(z, root);
    let distance = b.subtract(distance, rest);
    let near = b.multiply(ratio, distance);
    let near = b.add(near, sum);
    // log(y) - 1 / (2 y) - sum(B(2k) / (2k y^(2k)))
    let inverse = b.divide(one, y);
    let square = b.multiply(inverse, inverse);
    let series = polynomial(b, square, BERNOULLI_OVER_INDEX);
    let series = b.multiply(series, square);
    let half = b.number(0.5, x);
    let half_inverse = b.multiply(inverse, half);
    let small = b.add(series, half_inverse);
    let log = b.log(y);
    let far = b.subtract(log, small);
    let is_near = b.compare_with(Cmp::Lt, y, ASYMPTOTIC_LIMIT as f64);
    let value = b.select(is_near, near, far);
    // digamma(x) = digamma(1 - x) - pi / tan(pi x), with the distance to the nearest integer for x.
    let distance = distance_to_whole(b, x);
    let pi = b.number(PI, x);
    // Near a half the cotangent is the tangent of the rest to it, where the cosine would be a rounding error.
    let magnitude = b.abs(distance);
    let rest = b.subtract(half, magnitude);
    let is_steep = b.compare_with(Cmp::Le, magnitude, 0.25);
    let turn = b.select(is_steep, magnitude, rest);
    let angle = b.multiply(pi, turn);
    let (sine, cosine) = (b.sine(angle), b.cosine(angle));
    let (above, below) = (b.select(is_steep, cosine, sine), b.select(is_steep, sine, cosine));
    let cotangent = b.divide(above, below);
    let negative = b.negate(cotangent);
    let is_left = b.compare_with(Cmp::Lt, distance, 0.0);
    let cotangent = b.select(is_left, negative, cotangent);
    let slope = b.multiply(pi, cotangent);
    let reflection = b.subtract(value, slope);
    let result = b.select(is_reflected, reflection, value);
    // At zero the two one-sided limits are infinite; at negative integers they differ.
    let nan = b.number(f64::NAN, x);
    let is_integer = b.compare_with(Cmp::Eq, distance, 0.0);
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    let is_pole = b.and(is_integer, is_negative);
    let result = b.select(is_pole, nan, result);
    let infinity = b.divide(one, x);
    let infinity = b.negate(infinity);
    let is_zero = b.compare_with(Cmp::Eq, x, 0.0);
    b.select(is_zero, infinity, result)
}

/// `chlo.zeta`: Hurwitz' zeta function of `x` from 1 and `q`, which is below zero for whole `x` only.
pub(super) fn zeta(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [x, q] = r.operands(op)?;
    zeta_of(r, op, x, q)
}

/// [`zeta`] of values.
pub(super) fn zeta_of(
    r: &mut Rewriter<'_>,
    op: &Operation,
    x: ValueId,
    q: ValueId,
) -> Result<ValueId, Error> {
    require_real(r, op, x)?;
    Ok(binary_in_f32(&mut r.b, x, q, zeta_value))
}

/// Computes in `f32` where the type is smaller.
fn binary_in_f32(
    b: &mut Builder,
    x: ValueId,
    y: ValueId,
    compute: impl FnOnce(&mut Builder, ValueId, ValueId) -> ValueId,
) -> ValueId {
    at_least_f32(b, x, |b, x| {
        let y = b.convert(y, b.element(x));
        compute(b, x, y)
    })
}

/// `x` without the nearest whole number, exactly.
fn distance_to_whole(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    // Of the magnitude: below zero the fraction of a small number would be rounded.
    let magnitude = b.abs(x);
    let whole = b.floor(magnitude);
    let fraction = b.subtract(magnitude, whole);
    let below = b.subtract(fraction, one);
    let is_more = b.compare_with(Cmp::Gt, fraction, 0.5);
    let distance = b.select(is_more, below, fraction);
    let negative = b.negate(distance);
    let is_negative = b.compare_with(Cmp::Lt, x, 0.0);
    b.select(is_negative, negative, distance)
}

/// Whether a number is whole and even.
fn is_even(b: &mut Builder, x: ValueId) -> ValueId {
    let half = b.number(0.5, x);
    let halves = b.multiply(x, half);
    let floored = b.floor(halves);
    b.compare(Cmp::Eq, halves, floored)
}

/// `sum((q + k)^-x)`. Below zero, with the distance `d` from `q` to the nearest whole number, the terms are those to the
/// left and to the right of it: `zeta(x, |d|)` and `zeta(x, 1 - |d|)`, one of them with the sign of an odd power, without
/// the terms that are further to the left than `q`, which `zeta(x, 1 - q)` is with that sign.
fn zeta_value(b: &mut Builder, x: ValueId, q: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    let is_negative = b.compare_with(Cmp::Lt, q, 0.0);
    let d = distance_to_whole(b, q);
    let distance = b.abs(d);
    let first = b.select(is_negative, distance, q);
    let (rest, beyond) = (b.subtract(one, distance), b.subtract(one, q));
    let [near, far, beyond] = [first, rest, beyond].map(|q| zeta_of_positive(b, x, q));
    let is_even = is_even(b, x);
    let even = b.add(near, far);
    let even = b.subtract(even, beyond);
    let is_above = b.compare_with(Cmp::Gt, d, 0.0);
    let (above, below) = (b.subtract(near, far), b.subtract(far, near));
    let odd = b.select(is_above, above, below);
    let odd = b.add(odd, beyond);
    let negative = b.select(is_even, even, odd);
    let value = b.select(is_negative, negative, near);
    let (infinity, nan) = (b.number(f64::INFINITY, x), b.number(f64::NAN, x));
    // At whole numbers below zero even powers have a limit, and odd ones have two.
    let pole = b.select(is_even, infinity, nan);
    let floored = b.floor(q);
    let is_whole = b.compare(Cmp::Eq, q, floored);
    let is_pole = b.and(is_negative, is_whole);
    let value = b.select(is_pole, pole, value);
    // Other powers of negative numbers are not real.
    let floored = b.floor(x);
    let is_fraction = b.compare(Cmp::Ne, x, floored);
    let is_complex = b.and(is_negative, is_fraction);
    let is_below = b.compare(Cmp::Lt, x, one);
    let is_outside = b.or(is_below, is_complex);
    let value = b.select(is_outside, nan, value);
    let is_one = b.compare(Cmp::Eq, x, one);
    let harmonic = b.add(q, infinity);
    let is_nan = b.compare(Cmp::Ne, q, q);
    let harmonic = b.select(is_nan, harmonic, infinity);
    b.select(is_one, harmonic, value)
}

/// Euler's and Maclaurin's summation of `sum((q + k)^-x)` for `q` from zero: the first terms one by one, the rest by an
/// asymptotic series.
fn zeta_of_positive(b: &mut Builder, x: ValueId, q: ValueId) -> ValueId {
    const TERMS: usize = 10;
    let (one, half) = (b.number(1.0, x), b.number(0.5, x));
    let exponent = b.negate(x);
    let mut terms = b.power(q, exponent);
    let mut a = q;
    for _ in 1..TERMS {
        a = b.add(a, one);
        let term = b.power(a, exponent);
        terms = b.add(terms, term);
    }
    a = b.add(a, one);
    // a^(1 - x) / (x - 1) + a^-x / 2
    let power = b.power(a, exponent);
    let x_less = b.subtract(x, one);
    let ratio = b.divide(a, x_less);
    let integral = b.multiply(power, ratio);
    let half_power = b.multiply(power, half);
    let mut rest = b.add(integral, half_power);
    // sum(B(2k) / (2k)! x (x + 1) ... (x + 2k - 2) a^(-x - 2k + 1))
    let mut factor = b.multiply(power, x);
    let mut falling = 1.0;
    let mut shift = 0.0;
    for (index, coefficient) in BERNOULLI_OVER_INDEX.iter().enumerate() {
        // (2k - 1)! of the k at hand.
        if index > 0 {
            falling *= (2 * index) as f64 * (2 * index + 1) as f64;
        }
        factor = b.divide(factor, a);
        let scale = b.number(coefficient / falling, x);
        let term = b.multiply(factor, scale);
        rest = b.add(rest, term);
        if index + 1 == BERNOULLI_OVER_INDEX.len() {
            break;
        }
        for _ in 0..2 {
            shift += 1.0;
            let shift = b.number(shift, x);
            let next = b.add(x, shift);
            factor = b.multiply(factor, next);
        }
        factor = b.divide(factor, a);
    }
    let sum = b.add(terms, rest);
    // Where the rest does not count it may not even be a number: far out, and of great powers.
    let epsilon = if b.element(x) == ElementType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let epsilon = b.number(epsilon / 16.0, x);
    let least = b.multiply(terms, epsilon);
    let is_enough = b.compare(Cmp::Le, power, least);
    b.select(is_enough, terms, sum)
}

/// `n!` of whole numbers: an element of a table that ends where the type does.
fn factorial(b: &mut Builder, n: ValueId) -> ValueId {
    let (element, dims) = (b.element(n), b.dims(n));
    let greatest = if element == ElementType::F64 { f64::MAX } else { f64::from(f32::MAX) };
    let numbers =
        std::iter::successors(Some((0.0, 1.0)), |(n, product)| Some((n + 1.0, product * (n + 1.0))));
    let mut table: Vec<f64> =
        numbers.map(|(_, product)| product).take_while(|&product| product <= greatest).collect();
    table.push(f64::INFINITY);
    let (zero, last) = (b.number(0.0, n), b.number((table.len() - 1) as f64, n));
    let index = b.maximum(n, zero);
    let index = b.minimum(index, last);
    let index = b.convert(index, ElementType::I32);
    let table = b.numbers(&table, element);
    let dimension_numbers = GatherDimensionNumbers {
        collapsed_slice_dims: [0].into(),
        start_index_map: [0].into(),
        index_vector_dim: dims.len() as i64,
        ..GatherDimensionNumbers::default()
    };
    let kind = Gather { dimension_numbers, slice_sizes: [1].into(), indices_are_sorted: false };
    b.op_of_type(Op::Gather(Box::new(kind)), &[table, index], TensorType::new(element, dims))
}

/// `chlo.polygamma`: the `n`-th derivative of `digamma`, for whole `n`.
pub(super) fn polygamma(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let [n, x] = r.operands(op)?;
    polygamma_of(r, op, n, x)
}

/// [`polygamma`] of values: `(-1)^(n + 1) n! zeta(n + 1, x)`.
pub(super) fn polygamma_of(
    r: &mut Rewriter<'_>,
    op: &Operation,
    n: ValueId,
    x: ValueId,
) -> Result<ValueId, Error> {
    require_real(r, op, x)?;
    let value = |b: &mut Builder, n: ValueId, x: ValueId| {
        let one = b.number(1.0, n);
        let more = b.add(n, one);
        let factorial = factorial(b, n);
        let zeta = zeta_value(b, more, x);
        let magnitude = b.multiply(factorial, zeta);
        let is_even = is_even(b, n);
        let negative = b.negate(magnitude);
        let value = b.select(is_even, negative, magnitude);
        let digamma = digamma_of(b, x);
        let is_zero = b.compare_with(Cmp::Eq, n, 0.0);
        let value = b.select(is_zero, digamma, value);
        let nan = b.number(f64::NAN, n);
        let whole = b.floor(n);
        let is_fractional = b.compare(Cmp::Ne, n, whole);
        let is_negative = b.compare_with(Cmp::Lt, n, 0.0);
        let is_outside = b.or(is_fractional, is_negative);
        b.select(is_outside, nan, value)
    };
    Ok(binary_in_f32(&mut r.b, n, x, value))
}
