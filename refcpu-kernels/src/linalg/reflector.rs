//! Elementary reflectors `H = 1 - tau * v * v^H`, as defined by LAPACK.

use super::matrix::{Field, Real};

/// Makes the reflector that maps `x` to a multiple of the first unit vector: `H^H * x = beta * e`, with a
/// real `beta` (LAPACK's `larfg`). Replaces `x` by the vector `v`, whose first element is 1, and returns
/// `beta` and `tau`.
pub(super) fn make_reflector<T: Field>(x: &mut [T]) -> (T::Real, T) {
    let Some((first, tail)) = x.split_first_mut() else { return (T::Real::ZERO, T::ZERO) };
    let alpha = *first;
    let below = norm(tail);
    if below == T::Real::ZERO && alpha.im() == T::Real::ZERO {
        *first = T::ONE;
        return (alpha.re(), T::ZERO);
    }
    let size = below.hypot(alpha.abs());
    let small = T::Real::TINY / T::Real::EPSILON;
    if size < small {
        // Numbers this small have lost digits; their multiples by a power of two have not.
        let scale = T::Real::power_of_two(-small.exponent());
        x.iter_mut().for_each(|v| *v = v.scale(scale));
        let (beta, tau) = make_reflector(x);
        return (beta / scale, tau);
    }
    *first = T::ONE;
    let beta = -size.with_sign(alpha.re());
    let scale = T::ONE.over(alpha - T::from_real(beta));
    tail.iter_mut().for_each(|v| *v *= scale);
    (beta, (T::from_real(beta) - alpha).over(T::from_real(beta)))
}

/// Returns the Euclidean norm, without intermediate overflow.
pub(super) fn norm<T: Field>(x: &[T]) -> T::Real {
    let sum = x.iter().fold(T::Real::ZERO, |s, v| s + v.norm_sqr());
    if sum > T::Real::TINY / T::Real::EPSILON && sum.is_number() {
        return sum.root();
    }
    let most = x.iter().fold(T::Real::ZERO, |s, v| s.most(v.abs1()));
    if most == T::Real::ZERO || !most.is_number() {
        return sum.root();
    }
    let scaled = x.iter().fold(T::Real::ZERO, |s, v| s + T::complex(v.re() / most, v.im() / most).norm_sqr());
    scaled.root() * most
}

/// Returns the power of two that scales a matrix to the range where squares of its elements neither overflow
/// nor underflow, or `None` if the matrix is already in this range. Returns an error if the matrix is not
/// finite.
pub(super) fn range_scale<T: Field>(a: &[T]) -> Result<Option<T::Real>, NotFinite> {
    let mut most = T::Real::ZERO;
    for v in a {
        if !v.is_finite() {
            return Err(NotFinite);
        }
        most = most.most(v.abs1());
    }
    let small = T::Real::TINY.root() / T::Real::EPSILON;
    if most == T::Real::ZERO || (most >= small && most <= T::Real::ONE / small) {
        return Ok(None);
    }
    let limit = -T::Real::TINY.exponent();
    Ok(Some(T::Real::power_of_two((-most.exponent()).clamp(-limit, limit))))
}

/// A matrix has elements that are infinite or not a number.
#[derive(Debug)]
pub(super) struct NotFinite;
