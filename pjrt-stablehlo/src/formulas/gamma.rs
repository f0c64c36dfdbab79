//! The logarithm of the gamma function, and its derivative.

use std::f64::consts::{LN_2, PI};

use super::distance_to_whole;
use super::series::{BERNOULLI_OVER_INDEX, affine, chebyshev, polynomial};
use super::tables::{DIGAMMA, LGAMMA};
use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementType, ValueId};

/// The reflection formula is used for arguments less than this.
const REFLECTION_LIMIT: f64 = 0.5;

/// `chlo.lgamma`: the logarithm of the absolute value of the gamma function.
pub(crate) fn lgamma(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    let is_reflected = b.compare_with(Cmp::Lt, x, REFLECTION_LIMIT);
    let reflected = b.subtract(one, x);
    let y = b.select(is_reflected, reflected, x);
    let value = lgamma_positive(b, y);
    // lgamma(x) = log(pi / |sin(pi x)|) - lgamma(1 - x). The absolute value of sin(pi x) is that of the sine of pi
    // times the distance to the nearest integer.
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
    // Large negative numbers are integers.
    let infinity = b.number(f64::INFINITY, x);
    let is_infinite = b.compare(Cmp::Eq, magnitude, infinity);
    let is_whole = b.compare_with(Cmp::Eq, distance, 0.0);
    let is_pole = b.and(is_whole, is_reflected);
    let is_infinite = b.or(is_infinite, is_pole);
    b.select(is_infinite, infinity, result)
}

/// `lgamma(x)` for `x` of at least [`REFLECTION_LIMIT`].
fn lgamma_positive(b: &mut Builder, x: ValueId) -> ValueId {
    const SERIES_LIMIT: f64 = 3.0;
    const STIRLING_LIMIT: f64 = 12.0;
    let (one, two) = (b.number(1.0, x), b.number(2.0, x));
    // Moves the argument into 1..3 by gamma(x + 1) = x gamma(x).
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
    // Computed without x + 1, which would be rounded.
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
    // (x - 1/2) (log(x) - 1) - 1/2 cancels less than the sum of the individual terms.
    let main = b.multiply(less, log_less);
    let constant = b.number((LN_2 + PI.ln()) / 2.0 - 0.5, x);
    let rest = b.add(correction, constant);
    let stirling = b.add(main, rest);
    let is_series = b.compare_with(Cmp::Lt, x, STIRLING_LIMIT);
    b.select(is_series, value, stirling)
}

/// Returns the positive zero of `digamma` as a sum of two numbers of the type.
fn digamma_zero(element: ElementType) -> [f64; 2] {
    match element {
        ElementType::F64 => [1.4616321449683622, 9.549995429965697e-17],
        _ => [1.4616321325302124, 1.243814993891891e-8],
    }
}

/// `chlo.digamma`: the derivative of the logarithm of the gamma function.
pub(crate) fn digamma(b: &mut Builder, x: ValueId) -> ValueId {
    const ASYMPTOTIC_LIMIT: usize = 10;
    let one = b.number(1.0, x);
    let is_reflected = b.compare_with(Cmp::Lt, x, REFLECTION_LIMIT);
    let reflected = b.subtract(one, x);
    let y = b.select(is_reflected, reflected, x);
    // Moves the argument into 1..2 by digamma(z + 1) = digamma(z) + 1 / z.
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
    // digamma(x) = digamma(1 - x) - pi / tan(pi x), where the tangent uses the distance to the nearest integer.
    let distance = distance_to_whole(b, x);
    let pi = b.number(PI, x);
    let cotangent = cotangent_of_turn(b, distance);
    let slope = b.multiply(pi, cotangent);
    let reflection = b.subtract(value, slope);
    let result = b.select(is_reflected, reflection, value);
    // At zero, the one-sided limits are infinite with the sign of the zero. At negative integers, they differ.
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

/// `1 / tan(pi x)` for a number from -1/2 to 1/2.
fn cotangent_of_turn(b: &mut Builder, x: ValueId) -> ValueId {
    let (half, pi) = (b.number(0.5, x), b.number(PI, x));
    // Near a half, the cotangent is computed as the tangent of the difference, because the cosine would be a rounding
    // error.
    let magnitude = b.abs(x);
    let rest = b.subtract(half, magnitude);
    let is_steep = b.compare_with(Cmp::Le, magnitude, 0.25);
    let turn = b.select(is_steep, magnitude, rest);
    let angle = b.multiply(pi, turn);
    let (sine, cosine) = (b.sine(angle), b.cosine(angle));
    let (above, below) = (b.select(is_steep, cosine, sine), b.select(is_steep, sine, cosine));
    let cotangent = b.divide(above, below);
    let negative = b.negate(cotangent);
    let is_left = b.compare_with(Cmp::Lt, x, 0.0);
    b.select(is_left, negative, cotangent)
}
