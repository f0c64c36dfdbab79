//! CHLO's functions of complex numbers, computed from their real and imaginary parts.
//!
//! Each part of a result is accurate to a few units in the last place, as far as the real functions in the formula are,
//! including near zeros and branch points. Intermediate results do not overflow or underflow unless the part does.
//! Infinities, NaN, signed zeros and the sides of branch cuts follow C99, Annex G.

use std::f64::consts::{FRAC_PI_2, LN_2};

use super::hyperbolic::{exponent_limit, moderate_cosh, moderate_sinh, square_limit};
use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementType, ValueId};

/// Returns the real and the imaginary part.
pub(crate) fn parts(b: &mut Builder, z: ValueId) -> (ValueId, ValueId) {
    (b.real(z), b.imag(z))
}

/// Negates `x` where the sign bit of `y` is set, including that of negative zero.
pub(super) fn times_sign(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let bits = if b.element(y) == ElementType::F64 { ElementType::I64 } else { ElementType::I32 };
    let bits = b.bitcast_convert(y, bits);
    let is_negative = b.compare_with(Cmp::Lt, bits, 0.0);
    let negative = b.negate(x);
    b.select(is_negative, negative, x)
}

/// Returns a tensor that is `true` where the modulus of a number with these magnitudes of parts is infinite, even if
/// the other part is NaN.
pub(super) fn is_infinite(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let (x, y) = (b.compare_with(Cmp::Eq, x, f64::INFINITY), b.compare_with(Cmp::Eq, y, f64::INFINITY));
    b.or(x, y)
}

/// `sqrt(x^2 + y^2)` for nonnegative numbers, without overflow of the squares.
pub(super) fn hypotenuse(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    let (long, short) = (b.maximum(x, y), b.minimum(x, y));
    // long + short r / (1 + sqrt(1 + r^2)) with r = short / long
    let ratio = b.divide(short, long);
    let square = b.multiply(ratio, ratio);
    let sum = b.add(one, square);
    let root = b.sqrt(sum);
    let denominator = b.add(one, root);
    let quotient = b.divide(ratio, denominator);
    let excess = b.multiply(short, quotient);
    let value = b.add(long, excess);
    // The ratio of two zeros is NaN.
    let is_flat = b.compare_with(Cmp::Eq, short, 0.0);
    b.select(is_flat, long, value)
}

/// `abs`: the modulus, which is infinite if a part is.
pub(crate) fn modulus(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (x, y) = (b.abs(x), b.abs(y));
    let modulus = hypotenuse(b, x, y);
    let infinity = b.number(f64::INFINITY, x);
    let is_infinite = is_infinite(b, x, y);
    b.select(is_infinite, infinity, modulus)
}

/// `log(2 sqrt(x^2 + y^2))` for large numbers.
fn log_of_double_modulus(b: &mut Builder, x: ValueId, y: ValueId) -> ValueId {
    let (long, short) = (b.maximum(x, y), b.minimum(x, y));
    let ratio = b.divide(short, long);
    let square = b.multiply(ratio, ratio);
    let (half, ln_2) = (b.number(0.5, x), b.number(LN_2, x));
    let (log, excess) = (b.log(long), b.log_plus_one(square));
    let excess = b.multiply(excess, half);
    let rest = b.add(excess, ln_2);
    b.add(log, rest)
}

/// Returns the common part of the inverse sine and cosine of `x + iy`, after Hull, Fairgrieve and Tang, "Implementing the
/// complex arcsine and arccosine functions using exception handling" (1997). Returns `c` and `h`; for nonnegative `y`,
/// the inverse sine is `atan2(x, c) + ih`, and the inverse cosine is `atan2(c, x) - ih`.
///
/// With the distances `r` and `s` of `|x| + i|y|` from -1 and 1, and `a = (r + s) / 2`, these are `sqrt(a^2 - x^2)` and
/// `log(a + sqrt(a^2 - 1))`. To avoid cancellation, `a - x` and `a - 1` are computed as sums of `r - (x + 1) = y^2 / (r
/// + x + 1)`, `s - |x - 1| = y^2 / (s + |x - 1|)` and `|x - 1|`.
fn arc(b: &mut Builder, x: ValueId, y: ValueId) -> (ValueId, ValueId) {
    let (x, y) = (b.abs(x), b.abs(y));
    let (one, half) = (b.number(1.0, x), b.number(0.5, x));
    let right = b.add(x, one);
    let left = b.subtract(x, one);
    let left = b.abs(left);
    let (r, s) = (hypotenuse(b, right, y), hypotenuse(b, left, y));
    let sum = b.add(r, s);
    let a = b.multiply(sum, half);
    let (r_sum, s_sum) = (b.add(r, right), b.add(s, left));
    // One of a - x and a - 1 is `outer`, the other is `y^2 inner`, where y^2 underflows earlier than the square root of
    // the product.
    let quotient = b.divide(y, r_sum);
    let r_excess = b.multiply(y, quotient);
    let sum = b.add(r_excess, s_sum);
    let outer = b.multiply(sum, half);
    let (r_inverse, s_inverse) = (b.divide(one, r_sum), b.divide(one, s_sum));
    let sum = b.add(r_inverse, s_inverse);
    let inner = b.multiply(sum, half);
    let (a_x, a_1) = (b.add(a, x), b.add(a, one));
    let is_below_1 = b.compare(Cmp::Lt, x, one);
    let is_above_1 = b.compare(Cmp::Gt, x, one);
    let cosine = root_of_product(b, a_x, outer, inner, y, is_above_1);
    let root = root_of_product(b, a_1, outer, inner, y, is_below_1);
    let product = b.multiply(y, inner);
    let square = b.multiply(y, product);
    let a_minus_1 = b.select(is_below_1, square, outer);
    let excess = b.add(a_minus_1, root);
    let height = b.log_plus_one(excess);

    let longest = b.maximum(x, y);
    let is_moderate = b.compare_with(Cmp::Lt, longest, square_limit(b.element(x)));
    let cosine = b.select(is_moderate, cosine, y);
    let great = log_of_double_modulus(b, x, y);
    let height = b.select(is_moderate, height, great);
    // If the real part is zero, the angle is known even if y is NaN.
    let is_imaginary = b.compare_with(Cmp::Eq, x, 0.0);
    let cosine = b.select(is_imaginary, one, cosine);
    let infinity = b.number(f64::INFINITY, x);
    let is_infinite = is_infinite(b, x, y);
    let height = b.select(is_infinite, infinity, height);
    (cosine, height)
}

/// `y sqrt(inner factor)` where `is_inner` is `true`, otherwise `sqrt(outer factor)`.
fn root_of_product(
    b: &mut Builder,
    factor: ValueId,
    outer: ValueId,
    inner: ValueId,
    y: ValueId,
    is_inner: ValueId,
) -> ValueId {
    let other = b.select(is_inner, inner, outer);
    let product = b.multiply(other, factor);
    let root = b.sqrt(product);
    let scaled = b.multiply(y, root);
    b.select(is_inner, scaled, root)
}

/// Returns the real and imaginary part of the inverse sine of `x + iy`.
fn asin_parts(b: &mut Builder, x: ValueId, y: ValueId) -> (ValueId, ValueId) {
    let (cosine, height) = arc(b, x, y);
    (b.atan2(x, cosine), times_sign(b, height, y))
}

/// `chlo.asin`.
pub(crate) fn asin(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (real, imag) = asin_parts(b, x, y);
    b.complex(real, imag)
}

/// `chlo.asinh`: `-i asin(iz)`. The inverse sine is odd in each part, so the parts are exchanged.
pub(crate) fn asinh(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (imag, real) = asin_parts(b, y, x);
    b.complex(real, imag)
}

/// `chlo.acos`.
pub(crate) fn acos(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (cosine, height) = arc(b, x, y);
    let angle = b.atan2(cosine, x);
    let depth = b.negate(height);
    let imag = times_sign(b, depth, y);
    b.complex(angle, imag)
}

/// `chlo.acosh`: `i acos(z)` or `-i acos(z)`, whichever has a nonnegative real part.
pub(crate) fn acosh(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (cosine, height) = arc(b, x, y);
    let angle = b.atan2(cosine, x);
    let imag = times_sign(b, angle, y);
    b.complex(height, imag)
}

/// Returns the real and imaginary part of the inverse hyperbolic tangent of `x + iy`: `log1p(4x / ((1 - x)^2 + y^2)) /
/// 4` and `atan2(2y, (1 - x)(1 + x) - y^2) / 2`.
fn atanh_parts(b: &mut Builder, signed_x: ValueId, signed_y: ValueId) -> (ValueId, ValueId) {
    /// Below this limit, the square of `y` is less than the rounding error of 4.
    const NEAR: f64 = 1e-9;
    let (x, y) = (b.abs(signed_x), b.abs(signed_y));
    let (one, half) = (b.number(1.0, x), b.number(0.5, x));
    let (four, quarter) = (b.number(4.0, x), b.number(0.25, x));
    let limit = square_limit(b.element(x));

    let less = b.subtract(one, x);
    let distance = b.abs(less);
    let (long, short) = (b.maximum(distance, y), b.minimum(distance, y));
    let ratio = b.divide(short, long);
    let square = b.multiply(ratio, ratio);
    let denominator = b.add(one, square);
    let quotient = b.divide(x, long);
    let quotient = b.multiply(quotient, four);
    let quotient = b.divide(quotient, long);
    let quotient = b.divide(quotient, denominator);
    let log = b.log_plus_one(quotient);
    let real = b.multiply(log, quarter);
    // The quotient overflows for x = 1, but log(2 / y) / 2 does not.
    let (ln_2, log) = (b.number(LN_2, x), b.log(y));
    let difference = b.subtract(ln_2, log);
    let pole = b.multiply(difference, half);
    let is_one = b.compare(Cmp::Eq, x, one);
    let is_low = b.compare_with(Cmp::Lt, y, NEAR);
    let is_near_pole = b.and(is_one, is_low);
    let real = b.select(is_near_pole, pole, real);
    let zero = b.number(0.0, x);
    let is_infinite = is_infinite(b, x, y);
    let real = b.select(is_infinite, zero, real);
    // This holds even if y is NaN.
    let is_imaginary = b.compare_with(Cmp::Eq, x, 0.0);
    let real = b.select(is_imaginary, x, real);
    let real = times_sign(b, real, signed_x);

    let more = b.add(one, x);
    let product = b.multiply(less, more);
    let square = b.multiply(y, y);
    let denominator = b.subtract(product, square);
    let double = b.add(signed_y, signed_y);
    let angle = b.atan2(double, denominator);
    let imag = b.multiply(angle, half);
    let right_angle = b.number(FRAC_PI_2, x);
    let right_angle = times_sign(b, right_angle, signed_y);
    // The maximum is NaN if either part is; the comparison with infinity covers an infinite y next to a NaN.
    let longest = b.maximum(x, y);
    let is_great = b.compare_with(Cmp::Gt, longest, limit);
    let is_high = b.compare_with(Cmp::Gt, y, limit);
    let is_great = b.or(is_great, is_high);
    let imag = b.select(is_great, right_angle, imag);
    (real, imag)
}

/// `chlo.atanh`.
pub(crate) fn atanh(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (real, imag) = atanh_parts(b, x, y);
    b.complex(real, imag)
}

/// `chlo.atan`: `-i atanh(iz)`. The inverse hyperbolic tangent is odd in each part, so the parts are exchanged.
pub(crate) fn atan(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (imag, real) = atanh_parts(b, y, x);
    b.complex(real, imag)
}

/// The parts of `cosh(x) cos(y) + i sinh(x) sin(y)` and of `sinh(x) cos(y) + i cosh(x) sin(y)`, with the hyperbolic
/// functions of `|x|`, before the corrections for zeros and signs.
struct Products {
    cosh_cos: ValueId,
    sinh_sin: ValueId,
    sinh_cos: ValueId,
    cosh_sin: ValueId,
}

fn products(b: &mut Builder, x: ValueId, y: ValueId) -> Products {
    let x = b.abs(x);
    let (one, half) = (b.number(1.0, x), b.number(0.5, x));
    let (cosine, sine) = (b.cosine(y), b.sine(y));
    // The sine and cosine of infinity are NaN; the real part is infinite, with unspecified sign.
    let is_nan = b.compare(Cmp::Ne, cosine, cosine);
    let is_infinite = b.compare_with(Cmp::Eq, x, f64::INFINITY);
    let is_unknown = b.and(is_nan, is_infinite);
    let cosine = b.select(is_unknown, one, cosine);
    let (sinh, cosh) = (moderate_sinh(b, x), moderate_cosh(b, x));
    // A large exponential is split into two factors, and the sine or cosine is multiplied in between, so that only the
    // result can overflow.
    let half_x = b.multiply(x, half);
    let factor = b.exponential(half_x);
    let half_factor = b.multiply(factor, half);
    let is_great = b.compare_with(Cmp::Ge, x, exponent_limit(b.element(x)));
    let mut product = |hyperbolic: ValueId, circular: ValueId| {
        let moderate = b.multiply(hyperbolic, circular);
        let great = b.multiply(half_factor, circular);
        let great = b.multiply(great, factor);
        b.select(is_great, great, moderate)
    };
    Products {
        cosh_cos: product(cosh, cosine),
        sinh_sin: product(sinh, sine),
        sinh_cos: product(sinh, cosine),
        cosh_sin: product(cosh, sine),
    }
}

/// `chlo.sinh`: `sinh(x) cos(y) + i cosh(x) sin(y)`.
pub(crate) fn sinh(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let products = products(b, x, y);
    let real = times_sign(b, products.sinh_cos, x);
    // A part that is zero remains zero, whatever the other part is.
    let is_zero = b.compare_with(Cmp::Eq, x, 0.0);
    let real = b.select(is_zero, x, real);
    let is_zero = b.compare_with(Cmp::Eq, y, 0.0);
    let imag = b.select(is_zero, y, products.cosh_sin);
    b.complex(real, imag)
}

/// `chlo.cosh`: `cosh(x) cos(y) + i sinh(x) sin(y)`.
pub(crate) fn cosh(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let products = products(b, x, y);
    let imag = times_sign(b, products.sinh_sin, x);
    // If either part of the operand is zero, the imaginary part is zero, whatever the other part is.
    let zero = times_sign(b, x, y);
    let is_zero = b.compare_with(Cmp::Eq, x, 0.0);
    let imag = b.select(is_zero, zero, imag);
    let zero = times_sign(b, y, x);
    let is_zero = b.compare_with(Cmp::Eq, y, 0.0);
    let imag = b.select(is_zero, zero, imag);
    b.complex(products.cosh_cos, imag)
}

/// `chlo.square`: `(x - y)(x + y) + 2ixy`.
pub(crate) fn square(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (difference, sum) = (b.subtract(x, y), b.add(x, y));
    let real = b.multiply(difference, sum);
    // If one factor is zero, the other may have overflowed.
    let (x_magnitude, y_magnitude) = (b.abs(x), b.abs(y));
    let difference = b.subtract(x_magnitude, y_magnitude);
    let are_equal = b.compare_with(Cmp::Eq, difference, 0.0);
    let real = b.select(are_equal, difference, real);
    let product = b.multiply(x, y);
    let imag = b.add(product, product);
    b.complex(real, imag)
}
