//! The Hurwitz zeta function and the polygamma functions.

use super::distance_to_whole;
use super::gamma::digamma;
use super::series::BERNOULLI_OVER_INDEX;
use crate::build::Builder;
use crate::ir::ops::Gather;
use crate::ir::{ComparisonDirection as Cmp, ElementType, GatherDimensionNumbers, TensorType, ValueId};

/// Returns a tensor that is `true` where a number is an even integer.
fn is_even(b: &mut Builder, x: ValueId) -> ValueId {
    let half = b.number(0.5, x);
    let halves = b.multiply(x, half);
    let floored = b.floor(halves);
    b.compare(Cmp::Eq, halves, floored)
}

/// `chlo.zeta`: the Hurwitz zeta function `sum((q + k)^-x)` for `x` of at least 1. `q` may be negative if `x` is an
/// integer.
///
/// For negative `q`, let `d` be the difference of `q` and the nearest integer. The terms on either side of that integer
/// sum to `zeta(x, |d|)` and `zeta(x, 1 - |d|)`, one of them with the sign of an odd power. The terms to the left of
/// `q`, which the sum does not have, are subtracted: they sum to `zeta(x, 1 - q)` with that sign.
pub(crate) fn zeta(b: &mut Builder, x: ValueId, q: ValueId) -> ValueId {
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
    // At nonpositive integers, the one-sided limits are equal for even powers only.
    let pole = b.select(is_even, infinity, nan);
    let floored = b.floor(q);
    let is_whole = b.compare(Cmp::Eq, q, floored);
    let is_pole = b.and(is_negative, is_whole);
    let value = b.select(is_pole, pole, value);
    // Powers of negative numbers with other exponents are not real.
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

/// Computes `sum((q + k)^-x)` for nonnegative `q` by the Euler-Maclaurin formula: the first terms individually, the
/// rest by an asymptotic series.
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
        // The factor (2k - 1)! of this k.
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
    // The rest may be NaN where it is negligible: for large arguments and large powers.
    let epsilon = if b.element(x) == ElementType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let epsilon = b.number(epsilon / 16.0, x);
    let least = b.multiply(terms, epsilon);
    let is_enough = b.compare(Cmp::Le, power, least);
    b.select(is_enough, terms, sum)
}

/// `n!` for integers, from a table of the factorials that the type can represent.
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
    b.op_of_type(kind, &[table, index], TensorType::new(element, dims))
}

/// `chlo.polygamma`: the `n`-th derivative of `digamma` for integer `n`, `(-1)^(n + 1) n! zeta(n + 1, x)`.
pub(crate) fn polygamma(b: &mut Builder, n: ValueId, x: ValueId) -> ValueId {
    let one = b.number(1.0, n);
    let more = b.add(n, one);
    let factorial = factorial(b, n);
    let zeta = zeta(b, more, x);
    let magnitude = b.multiply(factorial, zeta);
    let is_even = is_even(b, n);
    let negative = b.negate(magnitude);
    let value = b.select(is_even, negative, magnitude);
    let digamma = digamma(b, x);
    let is_zero = b.compare_with(Cmp::Eq, n, 0.0);
    let value = b.select(is_zero, digamma, value);
    let nan = b.number(f64::NAN, n);
    let whole = b.floor(n);
    let is_fractional = b.compare(Cmp::Ne, n, whole);
    let is_negative = b.compare_with(Cmp::Lt, n, 0.0);
    let is_outside = b.or(is_fractional, is_negative);
    b.select(is_outside, nan, value)
}
