//! Functions of one or two complex numbers, as pairs of f64, with the branch cuts of ISO C Annex G (those of
//! StableHLO).
//!
//! This is scalar code. Complex numbers of two f32 are also computed in f64, which is slower, but avoids
//! overflow and cancellation.

use super::f64::asinh;
use crate::number::Accumulator;
use std::f64::consts::{FRAC_PI_2, LN_2, PI};

/// A complex number.
pub(crate) type C = [f64; 2];

#[inline]
fn times_i([x, y]: C) -> C {
    [-y, x]
}

#[inline]
fn times_minus_i([x, y]: C) -> C {
    [y, -x]
}

/// Returns the product by the textbook formula.
#[inline]
pub(crate) fn mul(a: C, b: C) -> C {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// Returns the product of numbers that are large together: products of parts may overflow where their sum
/// does not, or has a sign.
pub(crate) fn mul_large(a: C, b: C) -> C {
    let plain = mul(a, b);
    if ![a, b].iter().flatten().all(|part| part.is_finite()) {
        return plain;
    }
    let down = 2f64.powi(-520);
    let [a, b] = [a, b].map(|z| [z[0] * down, z[1] * down]);
    // The scaling has two steps, because f64 does not represent the whole power of two.
    let scaled = mul(a, b).map(|v| v / down / down);
    // Small parts are lost in the scaled numbers, and only matter if the result does not overflow.
    [0, 1].map(|part| if plain[part].is_finite() { plain[part] } else { scaled[part] })
}

/// Returns the quotient; scaled against overflow, infinities and zeros as in Annex G.
pub(crate) fn div(a: C, b: C) -> C {
    // Powers of two near the magnitudes of the operands, or 1 for operands without one.
    let size = |z: C| {
        let m = z[0].abs().max(z[1].abs());
        if m.is_finite() && m > 0.0 {
            f64::from_bits((m.to_bits() & 0x7ff0_0000_0000_0000).max(1 << 52))
        } else {
            1.0
        }
    };
    let (top, scale) = (size(a), size(b));
    let [c, d] = [b[0] / scale, b[1] / scale];
    let [p, q] = [a[0] / top, a[1] / top];
    let norm = c * c + d * d;
    // The larger of the two scales is applied last if the quotient is large, and first if it is small.
    let scaled = |v: f64| if top > scale { v / scale * top } else { v * top / scale };
    let (x, y) = (scaled((p * c + q * d) / norm), scaled((q * c - p * d) / norm));
    if !(x.is_nan() && y.is_nan()) {
        return [x, y];
    }
    let unit = |v: f64| (if v.is_infinite() { 1.0f64 } else { 0.0 }).copysign(v);
    if norm == 0.0 && !(a[0].is_nan() && a[1].is_nan()) {
        let inf = f64::INFINITY.copysign(c);
        [inf * a[0], inf * a[1]]
    } else if (a[0].is_infinite() || a[1].is_infinite()) && b[0].is_finite() && b[1].is_finite() {
        let [p, q] = [unit(a[0]), unit(a[1])];
        [f64::INFINITY * (p * c + q * d), f64::INFINITY * (q * c - p * d)]
    } else if (b[0].is_infinite() || b[1].is_infinite()) && a[0].is_finite() && a[1].is_finite() {
        let [p, q] = [unit(b[0]), unit(b[1])];
        [0.0 * (a[0] * p + a[1] * q), 0.0 * (a[1] * p - a[0] * q)]
    } else {
        [x, y]
    }
}

/// Returns the modulus.
pub(crate) fn abs(z: C) -> f64 {
    z[0].hypot(z[1])
}

/// Returns z / |z|, or zero if z is zero.
pub(crate) fn sign(z: C) -> C {
    if z[0].is_nan() || z[1].is_nan() {
        return [f64::NAN, f64::NAN];
    }
    // The modulus of a number near the largest one is no f64.
    let z = if z[0].abs().max(z[1].abs()) > 1e300 { [z[0] * 1e-10, z[1] * 1e-10] } else { z };
    let m = abs(z);
    if m == 0.0 { [0.0, 0.0] } else { [z[0] / m, z[1] / m] }
}

/// Returns e^z. It is NaN for an infinite number with an angle that is not finite, as in XLA.
pub(crate) fn exp([x, y]: C) -> C {
    if y == 0.0 {
        return [x.exp(), y];
    }
    let (s, c) = y.sin_cos();
    if x.abs() < 700.0 {
        let e = x.exp();
        return [c * e, s * e];
    }
    // e^x is split into two factors, because it may overflow although its product with a small cosine does
    // not.
    let half = (0.5 * x).exp();
    [c * half * half, s * half * half]
}

/// Returns e^z - 1.
pub(crate) fn exp_m1([x, y]: C) -> C {
    if y == 0.0 {
        return [x.exp_m1(), y];
    }
    let s = (0.5 * y).sin();
    let real = x.exp_m1() * y.cos() - 2.0 * s * s;
    [real, exp([x, y])[1]]
}

/// Returns the logarithm of the modulus.
fn log_abs([x, y]: C) -> f64 {
    if x.is_infinite() || y.is_infinite() {
        return f64::INFINITY;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let (a, b) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    if (0.5..=2.0).contains(&a) && b < 2.0 {
        // (a - 1)(a + 1) + b^2 is the modulus squared less one. Both terms and their sum in two parts: near
        // the unit circle only the second ones are left.
        let sum = a + 1.0;
        let (p, q) = ((a - 1.0) * sum, b * b);
        let p_low = (a - 1.0).mul_add(sum, -p) + (a - 1.0) * (a - (sum - 1.0));
        let q_low = b.mul_add(b, -q);
        let high = p + q;
        let low = p.lost_by_plus(q, high) + (p_low + q_low);
        return 0.5 * (high + low).ln_1p();
    }
    if a > 1e150 || b < 1e-150 {
        let r = b / a;
        return if a == 0.0 { f64::NEG_INFINITY } else { a.ln() + 0.5 * (r * r).ln_1p() };
    }
    0.5 * (a * a + b * b).ln()
}

/// Returns the principal logarithm.
pub(crate) fn log(z: C) -> C {
    [log_abs(z), z[1].atan2(z[0])]
}

/// Returns log(1 + z).
pub(crate) fn log_1p([x, y]: C) -> C {
    let angle = y.atan2(1.0 + x);
    if x.abs() < 0.5 && y.abs() < 0.5 {
        [0.5 * (x * (2.0 + x) + y * y).ln_1p(), angle]
    } else {
        [log_abs([1.0 + x, y]), angle]
    }
}

/// Returns the principal square root.
pub(crate) fn sqrt([x, y]: C) -> C {
    if y.is_infinite() {
        return [f64::INFINITY, y];
    }
    if x.is_infinite() {
        let other = if y.is_nan() { y } else { 0.0f64.copysign(y) };
        return if x > 0.0 { [x, other] } else { [other.abs(), f64::INFINITY.copysign(y)] };
    }
    if x == 0.0 && y == 0.0 {
        return [0.0, y];
    }
    // Scaled by an even power of two against overflow and underflow.
    let m = x.abs().max(y.abs());
    let (up, down) = if m > 1e150 {
        (2f64.powi(-540), 2f64.powi(270))
    } else if m < 1e-150 {
        (2f64.powi(540), 2f64.powi(-270))
    } else {
        (1.0, 1.0)
    };
    let (x, ys) = (x * up, y * up);
    let root = (0.5 * (x.abs() + x.hypot(ys))).sqrt() * down;
    let other = y.abs() / root * 0.5;
    if x >= 0.0 { [root, other.copysign(y)] } else { [other, root.copysign(y)] }
}

/// Returns 1 / sqrt(z).
pub(crate) fn rsqrt(z: C) -> C {
    if z == [0.0, 0.0] {
        return [f64::INFINITY, f64::NAN];
    }
    if z[0].is_infinite() || z[1].is_infinite() {
        return [0.0, 0.0];
    }
    // The result is scaled by a power of two that keeps the modulus in range: sqrt(conj z) / |z|.
    let m = z[0].abs().max(z[1].abs());
    let (up, scale) = if m > 1e300 {
        (2f64.powi(-600), 2f64.powi(-300))
    } else if m < 1e-300 {
        (2f64.powi(600), 2f64.powi(300))
    } else {
        (1.0, 1.0)
    };
    let z = [z[0] * up, z[1] * up];
    let [x, y] = sqrt(z);
    let m = abs(z);
    [x / m * scale, -y / m * scale]
}

/// Returns the hyperbolic sine.
pub(crate) fn sinh([x, y]: C) -> C {
    if y == 0.0 {
        return [x.sinh(), y];
    }
    if x.is_infinite() && !y.is_finite() {
        return [x, f64::NAN];
    }
    let (s, c) = y.sin_cos();
    if x.abs() > 700.0 {
        let half = (0.5 * x.abs()).exp();
        return [0.5 * half * c * half * 1f64.copysign(x), 0.5 * half * s * half];
    }
    let real = if x == 0.0 && !c.is_finite() { x } else { x.sinh() * c };
    [real, x.cosh() * s]
}

/// Returns the hyperbolic cosine.
pub(crate) fn cosh([x, y]: C) -> C {
    if y == 0.0 {
        return [x.cosh(), if x.is_sign_negative() { -y } else { y }];
    }
    if !y.is_finite() && (x == 0.0 || x.is_infinite()) {
        return if x == 0.0 { [f64::NAN, 0.0] } else { [f64::INFINITY, f64::NAN] };
    }
    let (s, c) = y.sin_cos();
    if x.abs() > 700.0 {
        let half = (0.5 * x.abs()).exp();
        return [0.5 * half * c * half, (0.5 * half * s * half) * 1f64.copysign(x)];
    }
    [x.cosh() * c, x.sinh() * s]
}

/// Returns the hyperbolic tangent.
pub(crate) fn tanh([x, y]: C) -> C {
    if y == 0.0 {
        return [x.tanh(), y];
    }
    if x.is_finite() && !y.is_finite() {
        return [if x == 0.0 { x } else { f64::NAN }, f64::NAN];
    }
    if x.abs() > 20.0 {
        // cosh 2x is e^2|x| / 2 to all digits.
        let imaginary = if y.is_finite() { 4.0 * y.sin() * y.cos() * (-2.0 * x.abs()).exp() } else { 0.0 };
        return [1f64.copysign(x), imaginary];
    }
    // The tangent of y is used, which keeps its precision near the poles.
    let t = y.tan();
    let beta = 1.0 + t * t;
    let s = x.sinh();
    let rho = (1.0 + s * s).sqrt();
    if t.is_infinite() {
        return [rho / s, 1.0 / t];
    }
    let d = 1.0 + beta * s * s;
    [beta * rho * s / d, t / d]
}

/// Returns the sine.
pub(crate) fn sin(z: C) -> C {
    times_minus_i(sinh(times_i(z)))
}

/// Returns the cosine.
pub(crate) fn cos(z: C) -> C {
    cosh(times_i(z))
}

/// Returns the tangent.
pub(crate) fn tan(z: C) -> C {
    times_minus_i(tanh(times_i(z)))
}

/// Returns 1 / (1 + e^-z).
pub(crate) fn logistic(z: C) -> C {
    let [x, y] = z;
    if x == f64::INFINITY && !y.is_finite() {
        // e^-z is zero for every angle.
        return [1.0, 0.0];
    }
    let e = exp([-x, -y]);
    // 1 + e^-x cos y, which is zero at the poles, of terms that are zero there themselves.
    let half = (0.5 * y).cos();
    let real = if x.abs() < 1.0 { 2.0 * (-x).exp() * half * half - (-x).exp_m1() } else { 1.0 + e[0] };
    div([1.0, 0.0], [real, e[1]])
}

/// Returns the principal value of a^b. 0^0 is 1.
pub(crate) fn pow(a: C, b: C) -> C {
    if b == [0.0, 0.0] {
        return [1.0, 0.0];
    }
    if a == [0.0, 0.0] {
        return match b[0] {
            r if r > 0.0 => [0.0, 0.0],
            r if r < 0.0 && b[1] == 0.0 => [f64::INFINITY, f64::NAN],
            _ => [f64::NAN, f64::NAN],
        };
    }
    if b == [1.0, 0.0] {
        return a;
    }
    if b == [2.0, 0.0] {
        return mul(a, a);
    }
    let [x, y] = mul(b, log(a));
    if x.is_infinite() && !y.is_finite() {
        // The modulus does not depend on the angle.
        return if x < 0.0 { [0.0, 0.0f64.copysign(y)] } else { [x, f64::NAN] };
    }
    exp([x, y])
}

/// The magnitude from which 1 is negligible compared with the square of a number.
const LARGE: f64 = 1e15;

fn is_large(z: C) -> bool {
    z[0].abs() >= LARGE || z[1].abs() >= LARGE
}

/// Returns the principal cube root.
pub(crate) fn cbrt(z: C) -> C {
    if z == [0.0, 0.0] {
        return z;
    }
    // Half the modulus overflows nowhere.
    let root = (0.5 * z[0]).hypot(0.5 * z[1]).cbrt() * 2f64.cbrt();
    let (s, c) = (z[1].atan2(z[0]) / 3.0).sin_cos();
    [root * c, root * s]
}

/// Returns the arc sine.
pub(crate) fn asin(z: C) -> C {
    if is_large(z) {
        return [z[0].atan2(z[1].abs()), (log_abs(z) + LN_2).copysign(z[1])];
    }
    let p = sqrt([1.0 - z[0], -z[1]]);
    let q = sqrt([1.0 + z[0], z[1]]);
    [z[0].atan2(p[0] * q[0] - p[1] * q[1]), asinh(p[0] * q[1] - p[1] * q[0])]
}

/// Returns the arc cosine.
pub(crate) fn acos(z: C) -> C {
    if is_large(z) {
        return [z[1].abs().atan2(z[0]), (log_abs(z) + LN_2).copysign(-z[1])];
    }
    let p = sqrt([1.0 - z[0], -z[1]]);
    let q = sqrt([1.0 + z[0], z[1]]);
    [2.0 * p[0].atan2(q[0]), asinh(q[0] * p[1] - q[1] * p[0])]
}

/// Returns the arc tangent.
pub(crate) fn atan(z: C) -> C {
    times_minus_i(atanh(times_i(z)))
}

/// Returns the area hyperbolic sine.
pub(crate) fn asinh_complex(z: C) -> C {
    times_minus_i(asin(times_i(z)))
}

/// Returns the area hyperbolic cosine.
pub(crate) fn acosh(z: C) -> C {
    if is_large(z) {
        return [log_abs(z) + LN_2, z[1].atan2(z[0])];
    }
    let p = sqrt([z[0] - 1.0, z[1]]);
    let q = sqrt([z[0] + 1.0, z[1]]);
    [asinh(p[0] * q[0] + p[1] * q[1]), 2.0 * p[1].atan2(q[0])]
}

/// Returns the area hyperbolic tangent.
pub(crate) fn atanh([x, y]: C) -> C {
    if is_large([x, y]) {
        let m = x.abs().max(y.abs());
        let (s, t) = (x / m, y / m);
        let real = if m.is_infinite() { 0.0f64.copysign(x) } else { s / (s * s + t * t) / m };
        return [real, FRAC_PI_2.copysign(y)];
    }
    let a = x.abs();
    let below = (1.0 - a) * (1.0 - a) + y * y;
    let real = (0.25 * (4.0 * a / below).ln_1p()).copysign(x);
    [real, 0.5 * (2.0 * y).atan2((1.0 - a) * (1.0 + a) - y * y)]
}

/// Returns the angle of a complex point: -i log((x + i y) / sqrt(x^2 + y^2)).
pub(crate) fn atan2(y: C, x: C) -> C {
    let (height, width) = (largest(y), largest(x));
    if !(height.is_finite() && width.is_finite()) || height == 0.0 && width == 0.0 {
        let i_y = times_i(y);
        let root =
            sqrt([x[0] * x[0] - x[1] * x[1] + y[0] * y[0] - y[1] * y[1], 2.0 * (x[0] * x[1] + y[0] * y[1])]);
        return times_minus_i(log(div([x[0] + i_y[0], x[1] + i_y[1]], root)));
    }
    if height < 0.5 * width {
        let z = div(y, x);
        let [angle, depth] = atan(z);
        return [if is_opposite(x, y, z) { angle + half_turn(y, x) } else { angle }, depth];
    }
    if width < 0.5 * height {
        let w = div(x, y);
        let [angle, depth] = atan(w);
        let right_angle = if is_opposite(y, x, w) { -FRAC_PI_2 } else { FRAC_PI_2 };
        return [right_angle - angle, -depth];
    }
    atan2_of_similar(y, x)
}

/// Returns the larger magnitude of the two parts.
fn largest(z: C) -> f64 {
    z[0].abs().max(z[1].abs())
}

/// Returns `true` if the root of x^2 + y^2 is -x sqrt(1 + z^2) for the divisor x, the dividend y and their
/// quotient z = y / x.
///
/// x sqrt(1 + z^2) is the root or less the root; it is x + y z / (1 + sqrt(1 + z^2)), of which nothing
/// underflows.
fn is_opposite(divisor: C, dividend: C, quotient: C) -> bool {
    let [p, q] = mul(quotient, quotient);
    let root = sqrt([1.0 + p, q]);
    // A factor, as a quotient of parts of such different sizes would lose the smaller.
    let factor = div([1.0, 0.0], [1.0 + root[0], root[1]]);
    let [excess, height] = mul(mul(dividend, quotient), factor);
    let (real, imaginary) = (divisor[0] + excess, divisor[1] + height);
    if real.abs() > 1e-8 * imaginary.abs() {
        return real < 0.0;
    }
    // Too close to the branch cut of the root for the sign of the real part. The sign of the root's imaginary part is
    // that of the square's.
    imaginary.is_sign_negative() != is_square_below(divisor, dividend)
}

/// Returns `true` if the imaginary part of x^2 + y^2 is negative, or a negative zero.
fn is_square_below(x: C, y: C) -> bool {
    // Half the imaginary part, with the smaller and the larger factor of each product scaled.
    let half = |smaller: f64, larger: f64| {
        let [x, y] = [x, y].map(|[re, im]| if re.abs() < im.abs() { [re, im] } else { [im, re] });
        (y[0] * smaller).mul_add(y[1] * larger, x[0] * smaller * (x[1] * larger))
    };
    let mut sum = half(1.0, 1.0);
    if sum == 0.0 {
        sum = half(2f64.powi(500), 1.0);
    } else if !sum.is_finite() {
        sum = half(1.0, 2f64.powi(-600));
    }
    sum.is_sign_negative()
}

/// Returns the correction that brings an angle back to the range from -pi to pi. Its sign is that of the real
/// part of y times the conjugate of x, although this may be too small to be represented.
fn half_turn(y: C, x: C) -> f64 {
    let (height, width) = (largest(y), largest(x));
    let plain = y[0] * x[0] + y[1] * x[1];
    let scaled = y[0] / height * (x[0] / width) + y[1] / height * (x[1] / width);
    let product = if plain == 0.0 || plain.is_nan() { scaled } else { plain };
    if product > 0.0 { -PI } else { PI }
}

/// Returns [`atan2`] of operands of similar magnitudes, which therefore could be near a pole of the
/// logarithm: half the difference of the logarithms of x + i y and x - i y, scaled so that sums and squares
/// are in range.
fn atan2_of_similar(y: C, x: C) -> C {
    let turn = half_turn(y, x);
    let width = largest(x);
    let scale = if width > 1e100 {
        2f64.powi(-600)
    } else if width < 1e-100 {
        2f64.powi(600)
    } else {
        1.0
    };
    let [x, y] = [x, y].map(|z| [z[0] * scale, z[1] * scale]);
    let (p, q) = ([x[0] - y[1], x[1] + y[0]], [x[0] + y[1], x[1] - y[0]]);
    let (p_angle, q_angle) = (p[1].atan2(p[0]), q[1].atan2(q[0]));
    let angle = 0.5 * (p_angle - q_angle);
    // The sum of the angles is the angle of the square of the root, unless it exceeds pi. Close to pi, the
    // sign of the square's imaginary part determines the side.
    let sum = p_angle + q_angle;
    let is_opposite = sum.abs() > 2.0 && (sum > 0.0) == is_square_below(x, y);
    let angle = match is_opposite {
        false => angle,
        true if angle.abs() > 1.0 => angle - PI.copysign(angle),
        true => angle + turn,
    };
    [angle, 0.5 * (log_abs(q) - log_abs(p))]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the modulus of the difference, in epsilons of the modulus.
    fn error(found: C, wanted: C) -> f64 {
        abs([found[0] - wanted[0], found[1] - wanted[1]]) / abs(wanted) / f64::EPSILON
    }

    #[test]
    fn hyperbolic_sines_overflow_to_infinities_of_the_right_signs() {
        let inf = f64::INFINITY;
        assert_eq!(sinh([1000.0, 1.0]), [inf, inf]);
        assert_eq!(sinh([-1000.0, 1.0]), [-inf, inf]);
        assert_eq!(sinh([1000.0, 2.0]), [-inf, inf]);
        assert_eq!(sinh([-1000.0, -2.0]), [inf, -inf]);
        assert_eq!(sin([1.0, -1000.0]), [inf, -inf]);
    }

    #[test]
    fn the_modulus_of_a_hyperbolic_function_of_infinity_does_not_depend_on_the_angle() {
        let inf = f64::INFINITY;
        for y in [inf, -inf, f64::NAN] {
            for [x, angle] in [sinh([inf, y]), cosh([inf, y]), cosh([-inf, y])] {
                assert!(x == inf && angle.is_nan(), "{y}: {x} {angle}");
            }
            assert_eq!(sinh([-inf, y])[0], -inf);
            assert_eq!(cosh([0.0, y])[1], 0.0);
        }
    }

    #[test]
    fn the_modulus_of_a_nan_has_no_logarithm() {
        assert!(log([0.0, f64::NAN])[0].is_nan());
        assert_eq!(log([f64::NAN, f64::INFINITY])[0], f64::INFINITY);
    }

    #[test]
    fn quotients_and_signs_of_the_largest_numbers_do_not_overflow() {
        assert!(error(div([f64::MAX, 2e-308], [-6.25e306, 1.0]), [f64::MAX / -6.25e306, 0.0]) < 2.0);
        assert_eq!(div([-2.5, -f64::MAX], [2.0, -f64::MAX])[0], 1.0);
        assert_eq!(div([1e-300, 1e-300], [1e300, 1e300]), [0.0, 0.0]);
        let half = std::f64::consts::FRAC_1_SQRT_2;
        assert!(error(sign([f64::MAX, f64::MAX]), [half, half]) < 2.0);
    }

    #[test]
    fn products_overflow_only_where_their_sums_do() {
        let (max, inf) = (f64::MAX, f64::INFINITY);
        let [x, y] = mul_large([1.0001, 0.0058], [max, max]);
        assert!((x / max - 0.9943).abs() < 1e-15 && y == inf, "{x} {y}");
        assert_eq!(mul_large([1e200, 3e200], [2e200, 1e200]), [-inf, inf]);
        assert_eq!(mul_large([max, max], [max, max]), [0.0, inf]);
        assert_eq!(mul_large([inf, 0.0], [1.0, 0.0])[0], inf);
        assert_eq!(mul_large([-inf, 1e-308], [-inf, 1e-308]), [inf, -inf]);
        assert_eq!(mul_large([1e200, 1e-250], [1e200, 0.0]), [inf, 1e-250 * 1e200]);
    }

    #[test]
    fn complex_angles_keep_their_digits_at_any_size() {
        // For numbers on one ray, the angles are those of reals.
        for (y, x) in
            [([1e-100, 0.0], [1e100, 0.0]), ([3.0, 4.0], [-6.0, -8.0]), ([1e300, 0.0], [-1e300, 0.0])]
        {
            let [angle, depth] = atan2(y, x);
            let real = if x[0] < 0.0 && y[0] > 0.0 { y[0].atan2(x[0]) } else { (y[0] / x[0]).atan() };
            assert!(error([angle, depth], [real, 0.0]) < 2.0, "{y:?} {x:?}: {angle} {depth}");
        }
        // A real axis as long as the imaginary one is high: squares overflow, or their sum is on the cut.
        assert_eq!(atan2([-1e-107, -1.85e212], [-1.0, 10.0])[0].abs(), FRAC_PI_2);
        assert_eq!(atan2([-1.5e-280, -1.5e248], [-1.2e209, 6.4e-183])[0], FRAC_PI_2);
        assert_eq!(atan2([-1e-175, 3e157], [-3.6e235, 2.2e-212])[0], -PI);
        assert_eq!(atan2([-4.9e83, -1.1e-12], [-5.2e-273, -8.3e83])[0], -PI);
        assert_eq!(atan2([-7e-99, -4.5e9], [-5.6e293, -1.5e-170])[0], -PI);
        // Both imaginary, but for parts that say on which side of the cut the sum of their squares is.
        let [angle, depth] = atan2([-1.9e-15, -6.75e12], [-1.7e-37, -5.625e12]);
        assert!(error([angle, depth], [-2.265_534_602_991_6, 0.0]) < 8.0, "{angle} {depth}");
    }

    #[test]
    fn angles_are_on_the_side_of_the_root_s_branch_cut_that_the_formula_says() {
        let parts = [-7.0, -3.5, -2.0, -0.5, 0.25, 1.75, 2.0, 4.0];
        let numbers: Vec<C> = parts.iter().flat_map(|&re| parts.map(|im| [re, im])).collect();
        for &y in &numbers {
            for &x in &numbers {
                // All of these products and sums are exact.
                let square = [
                    x[0] * x[0] - x[1] * x[1] + (y[0] * y[0] - y[1] * y[1]),
                    2.0 * (x[0] * x[1] + y[0] * y[1]),
                ];
                let [angle, depth] = atan2(y, x);
                if square == [0.0, 0.0] {
                    assert!(depth.is_infinite(), "{y:?} {x:?}: {angle} {depth}");
                    continue;
                }
                let wanted = times_minus_i(log(div([x[0] - y[1], x[1] + y[0]], sqrt(square))));
                let is_close = |angle: f64| abs([angle - wanted[0], depth - wanted[1]]) < 1e-14;
                let is_half_turn = angle.abs() == PI && is_close(-angle);
                assert!(is_close(angle) || is_half_turn, "{y:?} {x:?}: {angle} {depth}, not {wanted:?}");
            }
        }
    }

    #[test]
    fn roots_of_any_size_are_exact_to_a_few_units() {
        for z in [[-8e250, 1e250], [3e-290, -2e-291], [1.1e308, 1.1e308], [-0.998, 1e-9]] {
            let root = cbrt(z);
            let square = mul(root, root);
            assert!(error(mul(square, root), z) < 8.0, "{z:?}: {root:?}");
            let inverse = rsqrt(z);
            assert!(error(mul(inverse, sqrt(z)), [1.0, 0.0]) < 8.0, "{z:?}: {inverse:?}");
        }
    }

    #[test]
    fn the_hyperbolic_tangent_at_no_angle_is_a_number_only_at_infinity() {
        for y in [f64::INFINITY, f64::NAN] {
            assert!(tanh([1e300, y]).iter().all(|part| part.is_nan()));
            assert_eq!(tanh([0.0, y])[0], 0.0);
            assert_eq!(tanh([f64::NEG_INFINITY, y]), [-1.0, 0.0]);
        }
    }

    #[test]
    fn the_logistic_function_of_infinity_is_one() {
        for y in [0.0, 2.0, f64::INFINITY, f64::NAN] {
            assert_eq!(logistic([f64::INFINITY, y])[0], 1.0);
        }
    }

    #[test]
    fn the_logistic_function_is_exact_near_its_poles() {
        // 1 / (1 - e^-w) = 1/w + 1/2 + ..., w = z - i pi.
        let w = [1e-9, -1.224_646_799_147_353_2e-16];
        let [x, y] = div([1.0, 0.0], w);
        assert!(error(logistic([1e-9, std::f64::consts::PI]), [x + 0.5, y]) < 4.0);
    }
}
