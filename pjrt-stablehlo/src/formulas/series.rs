//! Sums of series.

use crate::build::Builder;
use crate::ir::{ElementType, ValueId};

/// `B(2k) / (2k)` for `k` from 1, with the Bernoulli numbers `B`.
pub(super) const BERNOULLI_OVER_INDEX: &[f64] = &[
    1.0 / 12.0,
    -1.0 / 120.0,
    1.0 / 252.0,
    -1.0 / 240.0,
    1.0 / 132.0,
    -691.0 / 32760.0,
    1.0 / 12.0,
    -3617.0 / 8160.0,
];

/// Evaluates a Chebyshev series at `t` from -1 to 1, with as many terms as the precision of the type requires.
pub(super) fn chebyshev(b: &mut Builder, t: ValueId, coefficients: &[f64]) -> ValueId {
    let tolerance = if b.element(t) == ElementType::F64 { 0.0 } else { 1e-10 };
    let count = coefficients.iter().rposition(|c| c.abs() > tolerance).map_or(1, |last| last + 1);
    // Clenshaw's algorithm.
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
pub(super) fn affine(b: &mut Builder, x: ValueId, slope: f64, offset: f64) -> ValueId {
    let (slope, offset) = (b.number(slope, x), b.number(offset, x));
    let product = b.multiply(x, slope);
    b.add(product, offset)
}

/// Evaluates the polynomial with coefficients `c`: the sum of `c[k] x^k`.
pub(super) fn polynomial(b: &mut Builder, x: ValueId, coefficients: &[f64]) -> ValueId {
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
