//! Functions of one or two complex numbers, as pairs of f64, with the branch cuts of ISO C Annex G (those of StableHLO).
//!
//! Scalar code: numbers of two f32 come through here too, which costs time but spares them overflow and cancellation.

use super::f64::asinh;
use std::f64::consts::{FRAC_PI_2, LN_2};

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

/// The product by the textbook formula.
#[inline]
pub(crate) fn mul(a: C, b: C) -> C {
    [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
}

/// The quotient; scaled against overflow, infinities and zeros as in Annex G.
pub(crate) fn div(a: C, b: C) -> C {
    let scale = {
        let m = b[0].abs().max(b[1].abs());
        // A power of two near the divisor's size.
        if m.is_finite() && m > 0.0 {
            f64::from_bits((m.to_bits() & 0x7ff0_0000_0000_0000).max(1 << 52))
        } else {
            1.0
        }
    };
    let [c, d] = [b[0] / scale, b[1] / scale];
    let norm = c * c + d * d;
    let (x, y) = ((a[0] * c + a[1] * d) / norm / scale, (a[1] * c - a[0] * d) / norm / scale);
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

/// The modulus.
pub(crate) fn abs(z: C) -> f64 {
    z[0].hypot(z[1])
}

/// z / |z|, zero of zero.
pub(crate) fn sign(z: C) -> C {
    if z[0].is_nan() || z[1].is_nan() {
        return [f64::NAN, f64::NAN];
    }
    let m = abs(z);
    if m == 0.0 { [0.0, 0.0] } else { [z[0] / m, z[1] / m] }
}

/// e^z.
pub(crate) fn exp([x, y]: C) -> C {
    if y == 0.0 {
        return [x.exp(), y];
    }
    // In two factors, so that e^x may overflow where its product with a small cosine does not.
    let half = (0.5 * x).exp();
    let (s, c) = y.sin_cos();
    [c * half * half, s * half * half]
}

/// e^z - 1.
pub(crate) fn exp_m1([x, y]: C) -> C {
    if y == 0.0 {
        return [x.exp_m1(), y];
    }
    let s = (0.5 * y).sin();
    let real = x.exp_m1() * y.cos() - 2.0 * s * s;
    [real, exp([x, y])[1]]
}

/// The logarithm of the modulus.
fn log_abs([x, y]: C) -> f64 {
    let (a, b) = (x.abs().max(y.abs()), x.abs().min(y.abs()));
    if a.is_infinite() || b.is_infinite() {
        return f64::INFINITY;
    }
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if (0.5..=2.0).contains(&a) && b < 2.0 {
        // (a - 1)(a + 1) + b^2 is the modulus squared less one, which does not cancel badly.
        let d = (a - 1.0) * (a + 1.0);
        return 0.5 * b.mul_add(b, d).ln_1p();
    }
    if a > 1e150 || b < 1e-150 {
        let r = b / a;
        return if a == 0.0 { f64::NEG_INFINITY } else { a.ln() + 0.5 * (r * r).ln_1p() };
    }
    0.5 * (a * a + b * b).ln()
}

/// The principal logarithm.
pub(crate) fn log(z: C) -> C {
    [log_abs(z), z[1].atan2(z[0])]
}

/// log(1 + z).
pub(crate) fn log_1p([x, y]: C) -> C {
    let angle = y.atan2(1.0 + x);
    if x.abs() < 0.5 && y.abs() < 0.5 {
        [0.5 * (x * (2.0 + x) + y * y).ln_1p(), angle]
    } else {
        [log_abs([1.0 + x, y]), angle]
    }
}

/// The principal square root.
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

/// 1 / sqrt(z).
pub(crate) fn rsqrt(z: C) -> C {
    if z == [0.0, 0.0] {
        return [f64::INFINITY, f64::NAN];
    }
    if z[0].is_infinite() || z[1].is_infinite() {
        return [0.0, 0.0];
    }
    div([1.0, 0.0], sqrt(z))
}

/// The hyperbolic sine.
pub(crate) fn sinh([x, y]: C) -> C {
    if y == 0.0 {
        return [x.sinh(), y];
    }
    let (s, c) = y.sin_cos();
    if x.abs() > 700.0 {
        let half = (0.5 * x.abs()).exp();
        return [(0.5 * half * c * half).copysign(x) * 1f64.copysign(c) * c.signum(), 0.5 * half * s * half];
    }
    let real = if x == 0.0 && !c.is_finite() { x } else { x.sinh() * c };
    [real, x.cosh() * s]
}

/// The hyperbolic cosine.
pub(crate) fn cosh([x, y]: C) -> C {
    if y == 0.0 {
        return [x.cosh(), if x.is_sign_negative() { -y } else { y }];
    }
    let (s, c) = y.sin_cos();
    if x.abs() > 700.0 {
        let half = (0.5 * x.abs()).exp();
        return [0.5 * half * c * half, (0.5 * half * s * half) * 1f64.copysign(x)];
    }
    [x.cosh() * c, x.sinh() * s]
}

/// The hyperbolic tangent.
pub(crate) fn tanh([x, y]: C) -> C {
    if y == 0.0 {
        return [x.tanh(), y];
    }
    if x.abs() > 20.0 {
        // cosh 2x is e^2|x| / 2 to all digits.
        let imaginary = if y.is_finite() { 4.0 * y.sin() * y.cos() * (-2.0 * x.abs()).exp() } else { 0.0 };
        return [1f64.copysign(x), imaginary];
    }
    // By the tangent of y, which keeps its digits near the poles.
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

/// The sine.
pub(crate) fn sin(z: C) -> C {
    times_minus_i(sinh(times_i(z)))
}

/// The cosine.
pub(crate) fn cos(z: C) -> C {
    cosh(times_i(z))
}

/// The tangent.
pub(crate) fn tan(z: C) -> C {
    times_minus_i(tanh(times_i(z)))
}

/// 1 / (1 + e^-z).
pub(crate) fn logistic(z: C) -> C {
    let e = exp([-z[0], -z[1]]);
    div([1.0, 0.0], [1.0 + e[0], e[1]])
}

/// a^b, the principal value; 0^0 is 1.
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
    exp(mul(b, log(a)))
}

/// From here on, 1 is nothing beside a number's square.
const LARGE: f64 = 1e15;

fn is_large(z: C) -> bool {
    z[0].abs() >= LARGE || z[1].abs() >= LARGE
}

/// The principal cube root.
pub(crate) fn cbrt(z: C) -> C {
    if z == [0.0, 0.0] { z } else { exp(log(z).map(|v| v / 3.0)) }
}

/// The arc sine.
pub(crate) fn asin(z: C) -> C {
    if is_large(z) {
        return [z[0].atan2(z[1].abs()), (log_abs(z) + LN_2).copysign(z[1])];
    }
    let p = sqrt([1.0 - z[0], -z[1]]);
    let q = sqrt([1.0 + z[0], z[1]]);
    [z[0].atan2(p[0] * q[0] - p[1] * q[1]), asinh(p[0] * q[1] - p[1] * q[0])]
}

/// The arc cosine.
pub(crate) fn acos(z: C) -> C {
    if is_large(z) {
        return [z[1].abs().atan2(z[0]), (log_abs(z) + LN_2).copysign(-z[1])];
    }
    let p = sqrt([1.0 - z[0], -z[1]]);
    let q = sqrt([1.0 + z[0], z[1]]);
    [2.0 * p[0].atan2(q[0]), asinh(q[0] * p[1] - q[1] * p[0])]
}

/// The arc tangent.
pub(crate) fn atan(z: C) -> C {
    times_minus_i(atanh(times_i(z)))
}

/// The area hyperbolic sine.
pub(crate) fn asinh_complex(z: C) -> C {
    times_minus_i(asin(times_i(z)))
}

/// The area hyperbolic cosine.
pub(crate) fn acosh(z: C) -> C {
    if is_large(z) {
        return [log_abs(z) + LN_2, z[1].atan2(z[0])];
    }
    let p = sqrt([z[0] - 1.0, z[1]]);
    let q = sqrt([z[0] + 1.0, z[1]]);
    [asinh(p[0] * q[0] + p[1] * q[1]), 2.0 * p[1].atan2(q[0])]
}

/// The area hyperbolic tangent.
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

/// The angle of a complex point: -i log((x + i y) / sqrt(x^2 + y^2)).
pub(crate) fn atan2(y: C, x: C) -> C {
    let i_y = times_i(y);
    let root =
        sqrt([x[0] * x[0] - x[1] * x[1] + y[0] * y[0] - y[1] * y[1], 2.0 * (x[0] * x[1] + y[0] * y[1])]);
    times_minus_i(log(div([x[0] + i_y[0], x[1] + i_y[1]], root)))
}
