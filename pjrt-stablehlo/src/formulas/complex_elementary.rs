//! StableHLO's functions of complex numbers, computed from their real and imaginary parts.
//!
//! The error of each result is a few units in the last place of its modulus, as far as the real functions in the formula are
//! accurate. Scaling keeps intermediate results from overflow and underflow. Branch cuts, infinities and zeros follow C99,
//! Annex G.

use super::complex::{hypotenuse, is_infinite, parts, times_sign};
use super::hyperbolic::{exponent_limit, moderate_cosh, moderate_sinh, sinh, square_limit};
use crate::build::Builder;
use crate::ir::{ComparisonDirection as Cmp, ElementType, TensorType, ValueId};

/// A number as its real and imaginary part.
type Parts = (ValueId, ValueId);

/// Applies a function of parts to a number.
fn of_parts(b: &mut Builder, z: ValueId, function: fn(&mut Builder, Parts) -> Parts) -> ValueId {
    let z = parts(b, z);
    let (real, imag) = function(b, z);
    b.complex(real, imag)
}

/// Selects both parts of a number.
fn select(b: &mut Builder, predicate: ValueId, on_true: Parts, on_false: Parts) -> Parts {
    (b.select(predicate, on_true.0, on_false.0), b.select(predicate, on_true.1, on_false.1))
}

/// Returns a tensor that is `true` where `x` is NaN.
fn is_nan(b: &mut Builder, x: ValueId) -> ValueId {
    b.compare(Cmp::Ne, x, x)
}

/// Returns a tensor that is `true` where `x` is neither infinite nor NaN.
fn is_finite(b: &mut Builder, x: ValueId) -> ValueId {
    let size = b.abs(x);
    b.compare_with(Cmp::Lt, size, f64::INFINITY)
}

/// Returns the greater of the magnitudes of the parts.
fn longest(b: &mut Builder, (x, y): Parts) -> ValueId {
    let (x, y) = (b.abs(x), b.abs(y));
    b.maximum(x, y)
}

/// Returns the power of two in the exponent of a magnitude; 1 for zero, infinity and NaN.
fn power_of_two(b: &mut Builder, size: ValueId) -> ValueId {
    let (element, dims) = (b.element(size), b.dims(size));
    let (integer, exponent, least) = match element {
        ElementType::F64 => (ElementType::I64, 0x7ff0_0000_0000_0000, f64::MIN_POSITIVE),
        _ => (ElementType::I32, 0x7f80_0000, f64::from(f32::MIN_POSITIVE)),
    };
    let mask = b.integer(exponent, TensorType::new(integer, dims));
    let bits = b.bitcast_convert(size, integer);
    let bits = b.and(bits, mask);
    let power = b.bitcast_convert(bits, element);
    // The exponents of subnormal numbers are those of the least normal one.
    let (one, least) = (b.number(1.0, size), b.number(least, size));
    let power = b.maximum(power, least);
    let is_positive = b.compare_with(Cmp::Gt, size, 0.0);
    let is_below_infinity = b.compare_with(Cmp::Lt, size, f64::INFINITY);
    let is_usual = b.and(is_positive, is_below_infinity);
    b.select(is_usual, power, one)
}

/// Returns `(ac - bd, ad + bc)`.
fn product(b: &mut Builder, (x, y): Parts, (u, v): Parts) -> Parts {
    let (first, second) = (b.multiply(x, u), b.multiply(y, v));
    let real = b.subtract(first, second);
    let (first, second) = (b.multiply(x, v), b.multiply(y, u));
    (real, b.add(first, second))
}

/// `multiply`.
pub(crate) fn multiply(b: &mut Builder, z: ValueId, w: ValueId) -> ValueId {
    let (z, w) = (parts(b, z), parts(b, w));
    let (real, imag) = product(b, z, w);
    b.complex(real, imag)
}

/// Returns the numerator `z conj(w)` of a quotient.
fn numerator(b: &mut Builder, z: Parts, (u, v): Parts) -> Parts {
    let v = b.negate(v);
    product(b, z, (u, v))
}

/// Multiplies a number of moderate size with `top / scale`, both powers of two, without overflow of the factor.
fn scaled(b: &mut Builder, x: ValueId, top: ValueId, scale: ValueId) -> ValueId {
    let (quarter, four) = (b.number(0.25, x), b.number(4.0, x));
    let ratio = b.divide(top, scale);
    let small = b.multiply(x, ratio);
    let large = b.multiply(x, quarter);
    let large = b.divide(large, scale);
    let large = b.multiply(large, top);
    let large = b.multiply(large, four);
    let is_large = b.compare(Cmp::Gt, top, scale);
    b.select(is_large, large, small)
}

/// Returns `z / w`.
fn quotient(b: &mut Builder, z: Parts, w: Parts) -> Parts {
    let (z_size, w_size) = (longest(b, z), longest(b, w));
    let (top, scale) = (power_of_two(b, z_size), power_of_two(b, w_size));
    let (p, q) = (b.divide(z.0, top), b.divide(z.1, top));
    let (u, v) = (b.divide(w.0, scale), b.divide(w.1, scale));
    let (u_square, v_square) = (b.multiply(u, u), b.multiply(v, v));
    let norm = b.add(u_square, v_square);
    let (real, imag) = numerator(b, (p, q), (u, v));
    let (real, imag) = (b.divide(real, norm), b.divide(imag, norm));
    let result = (scaled(b, real, top, scale), scaled(b, imag, top, scale));
    let special = special_quotient(b, z, w, result);
    let (real_is_nan, imag_is_nan) = (is_nan(b, result.0), is_nan(b, result.1));
    let is_unknown = b.and(real_is_nan, imag_is_nan);
    select(b, is_unknown, special, result)
}

/// Returns 1 where `x` is infinite and 0 elsewhere, with the sign of `x`.
fn infinite_part(b: &mut Builder, x: ValueId) -> ValueId {
    let (zero, one) = (b.number(0.0, x), b.number(1.0, x));
    let size = b.abs(x);
    let is_infinite = b.compare_with(Cmp::Eq, size, f64::INFINITY);
    let unit = b.select(is_infinite, one, zero);
    times_sign(b, unit, x)
}

/// Returns the quotients of zeros and infinities of Annex G, and `other` elsewhere.
fn special_quotient(b: &mut Builder, z: Parts, w: Parts, other: Parts) -> Parts {
    let (infinity, zero) = (b.number(f64::INFINITY, z.0), b.number(0.0, z.0));
    let both = |b: &mut Builder, z: Parts, test: fn(&mut Builder, ValueId) -> ValueId| {
        let (x, y) = (test(b, z.0), test(b, z.1));
        b.and(x, y)
    };
    let (z_is_nan, z_is_finite) = (both(b, z, is_nan), both(b, z, is_finite));
    let w_is_finite = both(b, w, is_finite);
    let (z_size, w_size) = (longest_known(b, z), longest_known(b, w));
    let z_is_infinite = b.compare_with(Cmp::Eq, z_size, f64::INFINITY);
    let w_is_infinite = b.compare_with(Cmp::Eq, w_size, f64::INFINITY);
    // A divisor that is infinite makes zeros of finite numbers.
    let units = (infinite_part(b, w.0), infinite_part(b, w.1));
    let (real, imag) = numerator(b, z, units);
    let vanishing = (b.multiply(zero, real), b.multiply(zero, imag));
    let vanishes = b.and(w_is_infinite, z_is_finite);
    let result = select(b, vanishes, vanishing, other);
    // An infinite number remains infinite.
    let units = (infinite_part(b, z.0), infinite_part(b, z.1));
    let (real, imag) = numerator(b, units, w);
    let infinite = (b.multiply(infinity, real), b.multiply(infinity, imag));
    let remains = b.and(z_is_infinite, w_is_finite);
    let result = select(b, remains, infinite, result);
    // A number that is divided by zero becomes infinite.
    let signed = times_sign(b, infinity, w.0);
    let pole = (b.multiply(signed, z.0), b.multiply(signed, z.1));
    let w_is_zero = b.compare_with(Cmp::Eq, w_size, 0.0);
    let is_known = b.not(z_is_nan);
    let w_is_finite_zero = b.and(w_is_zero, w_is_finite);
    let is_pole = b.and(w_is_finite_zero, is_known);
    select(b, is_pole, pole, result)
}

/// Returns the greater of the magnitudes of the parts that are not NaN, or 0.
fn longest_known(b: &mut Builder, (x, y): Parts) -> ValueId {
    let zero = b.number(0.0, x);
    let [x, y] = [x, y].map(|part| {
        let (size, is_nan) = (b.abs(part), is_nan(b, part));
        b.select(is_nan, zero, size)
    });
    b.maximum(x, y)
}

/// `divide`.
pub(crate) fn divide(b: &mut Builder, z: ValueId, w: ValueId) -> ValueId {
    let (z, w) = (parts(b, z), parts(b, w));
    let (real, imag) = quotient(b, z, w);
    b.complex(real, imag)
}

/// `sign`: `z / |z|`, or zero.
pub(crate) fn sign(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let size = longest(b, (x, y));
    let scale = power_of_two(b, size);
    let (x, y) = (b.divide(x, scale), b.divide(y, scale));
    let (x_size, y_size) = (b.abs(x), b.abs(y));
    let modulus = hypotenuse(b, x_size, y_size);
    let unit = (b.divide(x, modulus), b.divide(y, modulus));
    let zero = b.number(0.0, x);
    let is_zero = b.compare_with(Cmp::Eq, size, 0.0);
    let (real, imag) = select(b, is_zero, (zero, zero), unit);
    b.complex(real, imag)
}

/// Returns `exp(x) circular`, where only the product may overflow.
fn exponential_times(b: &mut Builder, x: ValueId, circular: ValueId) -> ValueId {
    let half = b.number(0.5, x);
    let whole = b.exponential(x);
    let moderate = b.multiply(whole, circular);
    let half_x = b.multiply(x, half);
    let root = b.exponential(half_x);
    let great = b.multiply(root, circular);
    let great = b.multiply(great, root);
    let size = b.abs(x);
    let is_great = b.compare_with(Cmp::Ge, size, exponent_limit(b.element(x)) - 2.0);
    b.select(is_great, great, moderate)
}

/// Returns `exp(x + iy)`.
fn exponential_parts(b: &mut Builder, (x, y): Parts) -> Parts {
    let (cosine, sine) = (b.cosine(y), b.sine(y));
    let whole = (exponential_times(b, x, cosine), exponential_times(b, x, sine));
    let on_axis = b.exponential(x);
    let is_real = b.compare_with(Cmp::Eq, y, 0.0);
    select(b, is_real, (on_axis, y), whole)
}

/// `exponential`.
pub(crate) fn exponential(b: &mut Builder, z: ValueId) -> ValueId {
    of_parts(b, z, exponential_parts)
}

/// `exponential_minus_one`: the real part is `(exp(x) - 1) cos(y) - 2 sin(y / 2)^2`.
pub(crate) fn exponential_minus_one(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (_, imag) = exponential_parts(b, (x, y));
    let half = b.number(0.5, x);
    let half_y = b.multiply(y, half);
    let (cosine, sine) = (b.cosine(y), b.sine(half_y));
    let excess = b.exponential_minus_one(x);
    let real = b.multiply(excess, cosine);
    let square = b.multiply(sine, sine);
    let double = b.add(square, square);
    let real = b.subtract(real, double);
    let is_real = b.compare_with(Cmp::Eq, y, 0.0);
    let real = b.select(is_real, excess, real);
    b.complex(real, imag)
}

/// Returns a number of half the digits near `x`, and the rest.
fn split(b: &mut Builder, x: ValueId) -> Parts {
    let factor = if b.element(x) == ElementType::F64 { 134_217_729.0 } else { 4097.0 };
    let factor = b.number(factor, x);
    let wide = b.multiply(x, factor);
    let rest = b.subtract(wide, x);
    let high = b.subtract(wide, rest);
    (high, b.subtract(x, high))
}

/// Returns the product and its rounding error.
fn exact_product(b: &mut Builder, x: ValueId, y: ValueId) -> Parts {
    let (x_parts, y_parts) = (split(b, x), split(b, y));
    let product = b.multiply(x, y);
    let high = b.multiply(x_parts.0, y_parts.0);
    let (first, second) = (b.multiply(x_parts.0, y_parts.1), b.multiply(x_parts.1, y_parts.0));
    let low = b.multiply(x_parts.1, y_parts.1);
    let error = b.subtract(high, product);
    let error = b.add(error, first);
    let error = b.add(error, second);
    (product, b.add(error, low))
}

/// Returns the sum and its rounding error.
fn exact_sum(b: &mut Builder, x: ValueId, y: ValueId) -> Parts {
    let sum = b.add(x, y);
    let y_part = b.subtract(sum, x);
    let x_part = b.subtract(sum, y_part);
    let (x_error, y_error) = (b.subtract(x, x_part), b.subtract(y, y_part));
    (sum, b.add(x_error, y_error))
}

/// Returns the logarithm of the modulus: `log1p((a - 1)(a + 1) + c^2) / 2` for magnitudes `a >= c` of the parts near 1, and
/// `log(a) + log1p((c / a)^2) / 2` for others. Near the unit circle, the terms of the first sum cancel, so it has twice the
/// digits.
fn log_of_modulus(b: &mut Builder, (x, y): Parts) -> ValueId {
    let (x, y) = (b.abs(x), b.abs(y));
    let (a, c) = (b.maximum(x, y), b.minimum(x, y));
    let (one, half) = (b.number(1.0, x), b.number(0.5, x));
    let (less, more) = (b.subtract(a, one), b.add(a, one));
    let (product, product_error) = exact_product(b, less, more);
    let back = b.subtract(more, one);
    let more_error = b.subtract(a, back);
    let more_error = b.multiply(less, more_error);
    let (square, square_error) = exact_product(b, c, c);
    let (sum, sum_error) = exact_sum(b, product, square);
    let error = b.add(product_error, more_error);
    let error = b.add(error, square_error);
    let error = b.add(error, sum_error);
    let sum = b.add(sum, error);
    let near = b.log_plus_one(sum);
    let near = b.multiply(near, half);

    let ratio = b.divide(c, a);
    let ratio = b.multiply(ratio, ratio);
    let excess = b.log_plus_one(ratio);
    let excess = b.multiply(excess, half);
    let log = b.log(a);
    let far = b.add(log, excess);
    let is_zero = b.compare_with(Cmp::Eq, a, 0.0);
    let far = b.select(is_zero, log, far);

    let (is_above, is_below) = (b.compare_with(Cmp::Ge, a, 0.5), b.compare_with(Cmp::Le, a, 2.0));
    let is_near = b.and(is_above, is_below);
    let value = b.select(is_near, near, far);
    let infinity = b.number(f64::INFINITY, x);
    let is_infinite = is_infinite(b, x, y);
    b.select(is_infinite, infinity, value)
}

/// Returns the principal logarithm.
fn log_parts(b: &mut Builder, (x, y): Parts) -> Parts {
    (log_of_modulus(b, (x, y)), b.atan2(y, x))
}

/// `log`.
pub(crate) fn log(b: &mut Builder, z: ValueId) -> ValueId {
    of_parts(b, z, log_parts)
}

/// `log_plus_one`: the real part is `log1p(x (2 + x) + y^2) / 2` for small numbers.
pub(crate) fn log_plus_one(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (one, two, half) = (b.number(1.0, x), b.number(2.0, x), b.number(0.5, x));
    let more = b.add(x, one);
    let (far, imag) = log_parts(b, (more, y));
    let factor = b.add(x, two);
    let product = b.multiply(x, factor);
    let square = b.multiply(y, y);
    let sum = b.add(product, square);
    let near = b.log_plus_one(sum);
    let near = b.multiply(near, half);
    let size = longest(b, (x, y));
    let is_near = b.compare_with(Cmp::Lt, size, 0.5);
    let real = b.select(is_near, near, far);
    b.complex(real, imag)
}

/// Returns a power of four that brings a magnitude near 1 if it is very large or very small, and the root of its reciprocal.
fn root_scale(b: &mut Builder, size: ValueId) -> Parts {
    let exponent = if b.element(size) == ElementType::F64 { 270 } else { 33 };
    let power = |exponent: i32| 2f64.powi(exponent);
    let limit = square_limit(b.element(size));
    let one = b.number(1.0, size);
    let (is_great, is_small) =
        (b.compare_with(Cmp::Gt, size, limit), b.compare_with(Cmp::Lt, size, 1.0 / limit));
    let great = (b.number(power(-2 * exponent), size), b.number(power(exponent), size));
    let small = (b.number(power(2 * exponent), size), b.number(power(-exponent), size));
    let scale = select(b, is_small, small, (one, one));
    select(b, is_great, great, scale)
}

/// Returns the principal square root of a number that is neither zero nor infinite.
fn finite_root(b: &mut Builder, (x, y): Parts) -> Parts {
    let half = b.number(0.5, x);
    let (x_size, y_size) = (b.abs(x), b.abs(y));
    let size = b.maximum(x_size, y_size);
    let (scale, back) = root_scale(b, size);
    let (x_scaled, y_scaled) = (b.multiply(x_size, scale), b.multiply(y_size, scale));
    let modulus = hypotenuse(b, x_scaled, y_scaled);
    let sum = b.add(x_scaled, modulus);
    let square = b.multiply(sum, half);
    let root = b.sqrt(square);
    let root = b.multiply(root, back);
    let other = b.divide(y_size, root);
    let other = b.multiply(other, half);
    let is_right = b.compare_with(Cmp::Ge, x, 0.0);
    let (real, imag) = select(b, is_right, (root, other), (other, root));
    (real, times_sign(b, imag, y))
}

/// `sqrt`.
pub(crate) fn sqrt(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (zero, infinity) = (b.number(0.0, x), b.number(f64::INFINITY, x));
    let root = finite_root(b, (x, y));
    let size = longest(b, (x, y));
    let is_zero = b.compare_with(Cmp::Eq, size, 0.0);
    let root = select(b, is_zero, (zero, y), root);
    // Along the real axis, the other part is a zero, or NaN if that of the operand is.
    let nothing = times_sign(b, zero, y);
    let y_is_nan = is_nan(b, y);
    let nothing = b.select(y_is_nan, y, nothing);
    let nothing_size = b.abs(nothing);
    let is_right_end = b.compare_with(Cmp::Eq, x, f64::INFINITY);
    let is_left_end = b.compare_with(Cmp::Eq, x, f64::NEG_INFINITY);
    let above = times_sign(b, infinity, y);
    let root = select(b, is_right_end, (infinity, nothing), root);
    let root = select(b, is_left_end, (nothing_size, above), root);
    let y_size = b.abs(y);
    let is_end = b.compare_with(Cmp::Eq, y_size, f64::INFINITY);
    let (real, imag) = select(b, is_end, (infinity, y), root);
    b.complex(real, imag)
}

/// `rsqrt`: `sqrt(conj(z)) / |z|`.
pub(crate) fn rsqrt(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let size = longest(b, (x, y));
    let (scale, back) = root_scale(b, size);
    let (x_scaled, y_scaled) = (b.multiply(x, scale), b.multiply(y, scale));
    let (real, imag) = finite_root(b, (x_scaled, y_scaled));
    let (x_size, y_size) = (b.abs(x_scaled), b.abs(y_scaled));
    let modulus = hypotenuse(b, x_size, y_size);
    let (real, imag) = (b.divide(real, modulus), b.divide(imag, modulus));
    // The scale of the reciprocal root is the reciprocal of that of the root.
    let (real, imag) = (b.divide(real, back), b.divide(imag, back));
    let imag = b.negate(imag);
    let (zero, infinity, nan) = (b.number(0.0, x), b.number(f64::INFINITY, x), b.number(f64::NAN, x));
    let is_zero = b.compare_with(Cmp::Eq, size, 0.0);
    let value = select(b, is_zero, (infinity, nan), (real, imag));
    let (x_size, y_size) = (b.abs(x), b.abs(y));
    let is_infinite = is_infinite(b, x_size, y_size);
    let (real, imag) = select(b, is_infinite, (zero, zero), value);
    b.complex(real, imag)
}

/// `cbrt`: the principal one, `exp(log(z) / 3)`.
pub(crate) fn cbrt(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let three = b.number(3.0, x);
    let (real, imag) = log_parts(b, (x, y));
    let third = (b.divide(real, three), b.divide(imag, three));
    let root = exponential_parts(b, third);
    let size = longest(b, (x, y));
    let zero = b.number(0.0, x);
    let is_zero = b.compare_with(Cmp::Eq, size, 0.0);
    let (real, imag) = select(b, is_zero, (zero, zero), root);
    b.complex(real, imag)
}

/// Returns the hyperbolic sine and cosine.
fn hyperbolic_parts(b: &mut Builder, (x, y): Parts) -> (Parts, Parts) {
    let size = b.abs(x);
    let (half, sine, cosine) = (b.number(0.5, x), b.sine(y), b.cosine(y));
    let (moderate_sinh, moderate_cosh) = (moderate_sinh(b, size), moderate_cosh(b, size));
    let is_great = b.compare_with(Cmp::Ge, size, exponent_limit(b.element(x)) - 2.0);
    let mut product = |moderate: ValueId, circular: ValueId| {
        let moderate = b.multiply(moderate, circular);
        let half_circular = b.multiply(circular, half);
        let great = exponential_times(b, size, half_circular);
        b.select(is_great, great, moderate)
    };
    let (sinh_cos, cosh_sin) = (product(moderate_sinh, cosine), product(moderate_cosh, sine));
    let (cosh_cos, sinh_sin) = (product(moderate_cosh, cosine), product(moderate_sinh, sine));
    let (sinh_cos, sinh_sin) = (times_sign(b, sinh_cos, x), times_sign(b, sinh_sin, x));
    // A part that is zero remains zero, whatever the other part is.
    let (x_is_zero, y_is_zero) = (b.compare_with(Cmp::Eq, x, 0.0), b.compare_with(Cmp::Eq, y, 0.0));
    let (sinh_cos, cosh_sin) = (b.select(x_is_zero, x, sinh_cos), b.select(y_is_zero, y, cosh_sin));
    let (of_x, of_y) = (times_sign(b, x, y), times_sign(b, y, x));
    let sinh_sin = b.select(x_is_zero, of_x, sinh_sin);
    let sinh_sin = b.select(y_is_zero, of_y, sinh_sin);
    ((sinh_cos, cosh_sin), (cosh_cos, sinh_sin))
}

/// `sine`: `-i sinh(iz)`.
pub(crate) fn sine(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let below = b.negate(y);
    let ((real, imag), _) = hyperbolic_parts(b, (below, x));
    let real = b.negate(real);
    b.complex(imag, real)
}

/// `cosine`: `cosh(iz)`.
pub(crate) fn cosine(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let below = b.negate(y);
    let (_, (real, imag)) = hyperbolic_parts(b, (below, x));
    b.complex(real, imag)
}

/// Returns the hyperbolic tangent, from the tangent of the angle, which keeps its digits near the poles.
fn tanh_parts(b: &mut Builder, (x, y): Parts) -> Parts {
    let (zero, one) = (b.number(0.0, x), b.number(1.0, x));
    let (sine, cosine) = (b.sine(y), b.cosine(y));
    let tangent = b.divide(sine, cosine);
    let square = b.multiply(tangent, tangent);
    let beta = b.add(one, square);
    let sinh = sinh(b, x);
    let square = b.multiply(sinh, sinh);
    let more = b.add(one, square);
    let cosh = b.sqrt(more);
    let product = b.multiply(beta, square);
    let denominator = b.add(one, product);
    let numerator = b.multiply(beta, cosh);
    let numerator = b.multiply(numerator, sinh);
    let moderate = (b.divide(numerator, denominator), b.divide(tangent, denominator));
    // The limit for large numbers: the sign of x, and 4 sin(y) cos(y) exp(-2|x|).
    let size = b.abs(x);
    let double = b.add(size, size);
    let exponent = b.negate(double);
    let decay = b.exponential(exponent);
    let wave = b.multiply(sine, cosine);
    let four = b.number(4.0, x);
    let wave = b.multiply(wave, four);
    let wave = b.multiply(wave, decay);
    let y_is_finite = is_finite(b, y);
    let wave = b.select(y_is_finite, wave, zero);
    let limit = times_sign(b, one, x);
    let least = if b.element(x) == ElementType::F64 { 20.0 } else { 10.0 };
    let is_large = b.compare_with(Cmp::Gt, size, least);
    let result = select(b, is_large, (limit, wave), moderate);
    let on_axis = b.tanh(x);
    let is_real = b.compare_with(Cmp::Eq, y, 0.0);
    select(b, is_real, (on_axis, y), result)
}

/// `tanh`.
pub(crate) fn tanh(b: &mut Builder, z: ValueId) -> ValueId {
    of_parts(b, z, tanh_parts)
}

/// `tan`: `-i tanh(iz)`.
pub(crate) fn tan(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let below = b.negate(y);
    let (real, imag) = tanh_parts(b, (below, x));
    let real = b.negate(real);
    b.complex(imag, real)
}

/// `logistic`: `1 / (1 + exp(-z))`. The real part of the denominator is `2 exp(-x) cos(y / 2)^2 - (exp(-x) - 1)` for small `x`,
/// because it is zero at the poles.
pub(crate) fn logistic(b: &mut Builder, z: ValueId) -> ValueId {
    let (x, y) = parts(b, z);
    let (zero, one, half) = (b.number(0.0, x), b.number(1.0, x), b.number(0.5, x));
    let (minus_x, minus_y) = (b.negate(x), b.negate(y));
    let (real, imag) = exponential_parts(b, (minus_x, minus_y));
    let far = b.add(one, real);
    let half_y = b.multiply(y, half);
    let cosine = b.cosine(half_y);
    let square = b.multiply(cosine, cosine);
    let double = b.add(square, square);
    let (power, excess) = (b.exponential(minus_x), b.exponential_minus_one(minus_x));
    let near = b.multiply(double, power);
    let near = b.subtract(near, excess);
    let size = b.abs(x);
    let is_near = b.compare_with(Cmp::Lt, size, 1.0);
    let real = b.select(is_near, near, far);
    let value = quotient(b, (one, zero), (real, imag));
    // The power is zero for every angle.
    let is_end = b.compare_with(Cmp::Eq, x, f64::INFINITY);
    let (real, imag) = select(b, is_end, (one, zero), value);
    b.complex(real, imag)
}

/// `power`: `exp(w log(z))`, and the powers of zero.
pub(crate) fn power(b: &mut Builder, z: ValueId, w: ValueId) -> ValueId {
    let (z, w) = (parts(b, z), parts(b, w));
    let (zero, one) = (b.number(0.0, z.0), b.number(1.0, z.0));
    let (infinity, nan) = (b.number(f64::INFINITY, z.0), b.number(f64::NAN, z.0));
    let log = log_parts(b, z);
    let exponent = product(b, w, log);
    let value = exponential_parts(b, exponent);
    let square = product(b, z, z);
    let w_is_real = b.compare_with(Cmp::Eq, w.1, 0.0);
    let mut whole = |number: f64, of: Parts, value: Parts| {
        let is_number = b.compare_with(Cmp::Eq, w.0, number);
        let is_number = b.and(is_number, w_is_real);
        select(b, is_number, of, value)
    };
    let value = whole(2.0, square, value);
    let value = whole(1.0, z, value);
    let size = longest(b, z);
    let is_zero = b.compare_with(Cmp::Eq, size, 0.0);
    let (is_positive, is_negative) = (b.compare_with(Cmp::Gt, w.0, 0.0), b.compare_with(Cmp::Lt, w.0, 0.0));
    let is_pole = b.and(is_negative, w_is_real);
    let of_zero = select(b, is_pole, (infinity, nan), (nan, nan));
    let of_zero = select(b, is_positive, (zero, zero), of_zero);
    let value = select(b, is_zero, of_zero, value);
    let w_size = longest(b, w);
    let has_no_factors = b.compare_with(Cmp::Eq, w_size, 0.0);
    let (real, imag) = select(b, has_no_factors, (one, zero), value);
    b.complex(real, imag)
}

/// Compares the parts: the numbers are equal if both are, and are ordered by the real parts first.
pub(crate) fn compare(b: &mut Builder, direction: Cmp, z: ValueId, w: ValueId) -> ValueId {
    let ((x, y), (u, v)) = (parts(b, z), parts(b, w));
    let strict = match direction {
        Cmp::Le => Cmp::Lt,
        Cmp::Ge => Cmp::Gt,
        other => other,
    };
    let (real, imag) = (b.compare(strict, x, u), b.compare(direction, y, v));
    match direction {
        Cmp::Eq => b.and(real, imag),
        Cmp::Ne => b.or(real, imag),
        _ => {
            let are_equal = b.compare(Cmp::Eq, x, u);
            let by_imag = b.and(are_equal, imag);
            b.or(real, by_imag)
        }
    }
}

/// `maximum` (`direction` is `Gt`) or `minimum` (`Lt`) in the order of [`compare`].
pub(crate) fn extremum(b: &mut Builder, direction: Cmp, z: ValueId, w: ValueId) -> ValueId {
    let is_first = compare(b, direction, z, w);
    b.select(is_first, z, w)
}
