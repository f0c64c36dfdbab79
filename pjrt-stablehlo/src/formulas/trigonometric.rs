//! Sine, cosine and the angle of a point, for devices that lack them or whose own lose digits.
//!
//! An angle is reduced to an eighth of a turn first. The products of the reduction are exact, so that the error of each result is
//! a few units in its last place, also near the zeros of a function. For f32, this holds up to 10^5; above, the error near zeros
//! is up to 5e-7.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_6, PI};

use super::complex::times_sign;
use super::series::polynomial;
use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementType, ValueId};

/// The parts of pi / 2 with half the digits of f32.
const PARTS_F32: &[f64] =
    &[1.5703125, 0.0004837512969970703, 7.549533620476723e-8, 2.5632829192545614e-12, 6.123031769111886e-17];

/// The parts of pi / 2 with half the digits of f64.
const PARTS_F64: &[f64] = &[
    1.5707963109016418,
    1.5893254712295857e-8,
    6.123233932053594e-17,
    6.368317055225283e-25,
    1.0828566716053562e-32,
];

/// A reduced angle: the number of quarter turns, which is whole, and the rest, between -pi / 4 and pi / 4.
struct Reduced {
    quarters: ValueId,
    rest: ValueId,
}

/// Subtracts quarter turns from an angle that is not negative. From 2^23 quarter turns on, and 2^52 for f64, their number has no
/// digits for the rest, which is NaN.
fn reduced(b: &mut Builder, x: ValueId) -> Reduced {
    let (parts, bits, limit) = match b.element(x) {
        ElementType::F64 => (PARTS_F64, 26, 2f64.powi(52)),
        _ => (PARTS_F32, 12, 2f64.powi(23)),
    };
    let per_turn = b.number(FRAC_2_PI, x);
    let turns = b.multiply(x, per_turn);
    let quarters = b.round_nearest_even(turns);
    // Both halves of the number have half the digits, so their products with the parts are exact.
    let (scale, inverse) = (b.number(2f64.powi(bits), x), b.number(2f64.powi(-bits), x));
    let high = b.multiply(quarters, inverse);
    let high = b.floor(high);
    let high = b.multiply(high, scale);
    let low = b.subtract(quarters, high);
    let mut rest = x;
    for part in parts {
        let part = b.number(*part, x);
        for half in [high, low] {
            let product = b.multiply(half, part);
            rest = b.subtract(rest, product);
        }
    }
    let nan = b.number(f64::NAN, x);
    let is_known = b.compare_with(Cmp::Lt, quarters, limit);
    let rest = b.select(is_known, rest, nan);
    Reduced { quarters, rest }
}

/// Returns the coefficients of a power series, as many as a type needs.
fn coefficients(element: ElementType, wide: usize, narrow: usize, of: impl Fn(usize) -> f64) -> Vec<f64> {
    (0..if element == ElementType::F64 { wide } else { narrow }).map(of).collect()
}

fn factorial(n: usize) -> f64 {
    (1..=n).map(|factor| factor as f64).product()
}

fn alternating(n: usize) -> f64 {
    if n.is_multiple_of(2) { 1.0 } else { -1.0 }
}

/// Returns the sine after a number of quarter turns is added to an angle that is not negative.
fn sine_after(b: &mut Builder, x: ValueId, added: f64) -> ValueId {
    let element = b.element(x);
    let Reduced { quarters, rest } = reduced(b, x);
    let square = b.multiply(rest, rest);
    let sine = coefficients(element, 9, 6, |n| alternating(n) / factorial(2 * n + 1));
    let sine = polynomial(b, square, &sine);
    let sine = b.multiply(sine, rest);
    let cosine = coefficients(element, 10, 6, |n| alternating(n) / factorial(2 * n));
    let cosine = polynomial(b, square, &cosine);
    // The last bit of the number of quarter turns exchanges sine and cosine, and the one before it the sign.
    let (added, half) = (b.number(added, x), b.number(0.5, x));
    let quarters = b.add(quarters, added);
    let (turned, is_odd) = halved(b, quarters, half);
    let (_, is_opposite) = halved(b, turned, half);
    let value = b.select(is_odd, cosine, sine);
    let opposite = b.negate(value);
    b.select(is_opposite, opposite, value)
}

/// Returns half of a whole number, rounded down, and whether the number is odd.
fn halved(b: &mut Builder, x: ValueId, half: ValueId) -> (ValueId, ValueId) {
    let quotient = b.multiply(x, half);
    let whole = b.floor(quotient);
    let is_odd = b.compare(Cmp::Ne, whole, quotient);
    (whole, is_odd)
}

/// `sine`.
pub(crate) fn sine(b: &mut Builder, x: ValueId) -> ValueId {
    let size = b.abs(x);
    let sine = sine_after(b, size, 0.0);
    times_sign(b, sine, x)
}

/// `cosine`.
pub(crate) fn cosine(b: &mut Builder, x: ValueId) -> ValueId {
    let size = b.abs(x);
    sine_after(b, size, 1.0)
}

/// Returns the inverse tangent of a number from 0 to 1: `pi / 6 + atan((sqrt(3) x - 1) / (sqrt(3) + x))`, or its power series.
fn arc_tangent(b: &mut Builder, x: ValueId) -> ValueId {
    let root = 3f64.sqrt();
    // tan(pi / 12)
    let is_small = b.compare_with(Cmp::Lt, x, 2.0 - root);
    let (one, root, zero, third) =
        (b.number(1.0, x), b.number(root, x), b.number(0.0, x), b.number(FRAC_PI_6, x));
    let scaled = b.multiply(x, root);
    let (less, more) = (b.subtract(scaled, one), b.add(x, root));
    let quotient = b.divide(less, more);
    let rest = b.select(is_small, x, quotient);
    let offset = b.select(is_small, zero, third);
    let square = b.multiply(rest, rest);
    let series = coefficients(b.element(x), 14, 6, |n| alternating(n) / (2 * n + 1) as f64);
    let series = polynomial(b, square, &series);
    let angle = b.multiply(series, rest);
    b.add(offset, angle)
}

/// Returns `a - x`, where `a` has more digits than the type of `x`.
fn angle_minus(b: &mut Builder, angle: f64, rest: f64, x: ValueId) -> ValueId {
    let precise = match b.element(x) {
        ElementType::F64 => (angle, rest),
        _ => (f64::from(angle as f32), angle - f64::from(angle as f32)),
    };
    let (angle, rest) = (b.number(precise.0, x), b.number(precise.1, x));
    let less = b.subtract(x, rest);
    b.subtract(angle, less)
}

/// `atan2`: the angle of the point with the coordinates `x` and `y`.
pub(crate) fn atan2(b: &mut Builder, y: ValueId, x: ValueId) -> ValueId {
    /// The difference of pi / 2 and its nearest `f64`.
    const REST: f64 = 6.123233995736766e-17;
    let (one, zero) = (b.number(1.0, x), b.number(0.0, x));
    let (width, height) = (b.abs(x), b.abs(y));
    let (long, short) = (b.maximum(width, height), b.minimum(width, height));
    let ratio = b.divide(short, long);
    let is_zero = b.compare_with(Cmp::Eq, long, 0.0);
    let ratio = b.select(is_zero, zero, ratio);
    let is_diagonal = b.compare_with(Cmp::Eq, short, f64::INFINITY);
    let ratio = b.select(is_diagonal, one, ratio);
    let angle = arc_tangent(b, ratio);
    let is_steep = b.compare(Cmp::Gt, height, width);
    let steep = angle_minus(b, FRAC_PI_2, REST, angle);
    let angle = b.select(is_steep, steep, angle);
    let left = angle_minus(b, PI, 2.0 * REST, angle);
    // The sign bit of x counts, also that of zero.
    let side = times_sign(b, one, x);
    let is_left = b.compare_with(Cmp::Lt, side, 0.0);
    let angle = b.select(is_left, left, angle);
    times_sign(b, angle, y)
}
