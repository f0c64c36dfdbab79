//! Elementary functions, written so that a loop over them is vectorized: straight-line code with selects,
//! without tables and calls. [`f32`](mod@self::f32) and [`f64`](mod@self::f64) contain the functions of one
//! real number, and `complex` those of complex numbers (scalar code).
//!
//! Polynomials are minimax fits (Remez exchange in 40-digit arithmetic); the stated errors are measured by
//! the tests.

pub(crate) mod complex;
pub(crate) mod f32;
pub(crate) mod f64;
pub(crate) mod single;
#[cfg(test)]
mod tests;

use crate::isa::Isa;

/// Computes `a * b + c`, with one rounding if the instruction set has such an instruction, otherwise with
/// two.
pub(crate) trait MulAdd: Copy {
    /// Returns `a * b + c`.
    fn mul_add_on<I: Isa>(self, b: Self, c: Self) -> Self;
}

impl MulAdd for core::primitive::f32 {
    #[inline(always)]
    fn mul_add_on<I: Isa>(self, b: Self, c: Self) -> Self {
        if I::FMA { self.mul_add(b, c) } else { self * b + c }
    }
}

impl MulAdd for core::primitive::f64 {
    #[inline(always)]
    fn mul_add_on<I: Isa>(self, b: Self, c: Self) -> Self {
        if I::FMA { self.mul_add(b, c) } else { self * b + c }
    }
}

/// Returns `a * b + c`, computed with an instruction set.
#[inline(always)]
pub(crate) fn fma<I: Isa, T: MulAdd>(a: T, b: T, c: T) -> T {
    a.mul_add_on::<I>(b, c)
}

/// Returns the polynomial with these coefficients, lowest first, by Horner's rule.
#[inline(always)]
pub(crate) fn horner<I: Isa, T: MulAdd, const N: usize>(x: T, coefficients: [T; N]) -> T {
    let mut r = coefficients[N - 1];
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        r = fma::<I, T>(r, x, coefficients[i]);
    }
    r
}
