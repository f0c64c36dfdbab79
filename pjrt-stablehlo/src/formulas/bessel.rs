//! Bessel functions.

use super::series::{chebyshev, polynomial};
use super::tables::I1E_TAIL;
use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementType, ValueId};

/// `chlo.bessel_i1e`: the modified Bessel function of the first kind of order 1, multiplied by `exp(-|x|)`.
pub(crate) fn bessel_i1e(b: &mut Builder, x: ValueId) -> ValueId {
    const CENTRAL_LIMIT: f64 = 8.0;
    let magnitude = b.abs(x);
    let (one, quarter) = (b.number(1.0, x), b.number(0.25, x));
    // x / 2 sum((x^2 / 4)^k / (k! (k + 1)!)): all terms have one sign, so the sum does not cancel.
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
}

/// The Bessel function at the `CENTRAL_LIMIT` of [`bessel_i1e`], divided by that limit and rounded down.
const I1_AT_LIMIT: f64 = 49.0;
