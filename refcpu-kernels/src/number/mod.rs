//! The properties of element types that the reducing kernels (reduce, dot, convolution, windows) use: the
//! type in which elements are accumulated, the conversions to and from it, and the operations that
//! accumulate.

mod cast;

use crate::convert::{self, Narrow as _};
use crate::{DType, view::Element};
use half::{bf16, f16};

pub(crate) use cast::{Load, Store, Target, small_float_values};

/// An element type, with the type in which many elements are accumulated.
pub(crate) trait Number: Element {
    /// The type of accumulators: f32 for the 16-bit floats, and the type itself for all others.
    type Acc: Accumulator;

    /// Returns the exact value.
    fn widen(self) -> Self::Acc;

    /// Returns the nearest value, with ties to even.
    fn narrow(acc: Self::Acc) -> Self;
}

/// A type of accumulators: wrapping integers, floats, complex numbers.
pub(crate) trait Accumulator: Number<Acc = Self> + PartialEq + Load<Self> {
    /// Zero; for floats, positive zero.
    const ZERO: Self;
    /// The identity of addition, which does not even change the sign of a zero.
    const ADD_IDENTITY: Self;
    /// The identity of multiplication.
    const ONE: Self;
    /// A value that no value exceeds.
    const GREATEST: Self;
    /// A value that exceeds no value.
    const LEAST: Self;
    /// All bits set; zero for types without bitwise operations.
    const ALL_ONES: Self;

    /// Returns the sum, which wraps.
    fn plus(self, other: Self) -> Self;
    /// Returns the product, which wraps.
    fn times(self, other: Self) -> Self;
    /// Returns the rounding error of `sum`, the rounded value of `self + other`: zero if the sum is not
    /// finite, and for types that do not round.
    #[inline(always)]
    fn lost_by_plus(self, _other: Self, _sum: Self) -> Self {
        Self::ZERO
    }
    /// Returns `self + a * b`, with a single rounding for floats if there is an instruction for this.
    #[inline(always)]
    fn plus_product(self, a: Self, b: Self) -> Self {
        self.plus(a.times(b))
    }
    /// Returns the smaller value, or NaN if one of them is NaN. Complex numbers are ordered by real part,
    /// then imaginary part.
    fn least(self, other: Self) -> Self;
    /// Returns the greater value, or NaN if one of them is NaN. Complex numbers are ordered by real part,
    /// then imaginary part.
    fn greatest(self, other: Self) -> Self;
    /// Returns the bitwise and. Callers check that the type is an integer or a boolean.
    fn bit_and(self, other: Self) -> Self;
    /// Returns the bitwise or; see `bit_and`.
    fn bit_or(self, other: Self) -> Self;
    /// Returns the bitwise exclusive or; see `bit_and`.
    fn bit_xor(self, other: Self) -> Self;
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl Number for $t {
            type Acc = Self;
            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(acc: Self) -> Self { acc }
        }
        impl Accumulator for $t {
            const ZERO: Self = 0;
            const ADD_IDENTITY: Self = 0;
            const ONE: Self = 1;
            const GREATEST: Self = <$t>::MAX;
            const LEAST: Self = <$t>::MIN;
            const ALL_ONES: Self = !0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn least(self, other: Self) -> Self { if other < self { other } else { self } }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self { if other > self { other } else { self } }
            #[inline(always)]
            fn bit_and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn bit_or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn bit_xor(self, other: Self) -> Self { self ^ other }
        }
    )*};
}
integers!(u8, u16, u32, u64, i8, i16, i32, i64);

macro_rules! floats {
    ($($t:ident),*) => {$(
        impl Number for $t {
            type Acc = Self;
            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(acc: Self) -> Self { acc }
        }
        impl Accumulator for $t {
            const ZERO: Self = 0.0;
            const ADD_IDENTITY: Self = -0.0;
            const ONE: Self = 1.0;
            const GREATEST: Self = $t::INFINITY;
            const LEAST: Self = $t::NEG_INFINITY;
            const ALL_ONES: Self = 0.0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn lost_by_plus(self, other: Self, sum: Self) -> Self {
                let added = sum - self;
                let lost = (self - (sum - added)) + (other - added);
                if lost.is_nan() { 0.0 } else { lost }
            }
            #[inline(always)]
            fn plus_product(self, a: Self, b: Self) -> Self { a.mul_add(b, self) }
            // Selects by a comparison with the first operand, then by whether that is a NaN. If only `other`
            // is a NaN, both tests fail.
            #[inline(always)]
            fn least(self, other: Self) -> Self { if (self <= other) | (self != self) { self } else { other } }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self { if (self >= other) | (self != self) { self } else { other } }
            #[inline(always)]
            fn bit_and(self, _: Self) -> Self { self }
            #[inline(always)]
            fn bit_or(self, _: Self) -> Self { self }
            #[inline(always)]
            fn bit_xor(self, _: Self) -> Self { self }
        }
        impl Number for [$t; 2] {
            type Acc = Self;
            #[inline(always)]
            fn widen(self) -> Self { self }
            #[inline(always)]
            fn narrow(acc: Self) -> Self { acc }
        }
        impl Accumulator for [$t; 2] {
            const ZERO: Self = [0.0; 2];
            const ADD_IDENTITY: Self = [-0.0; 2];
            const ONE: Self = [1.0, 0.0];
            const GREATEST: Self = [$t::INFINITY; 2];
            const LEAST: Self = [$t::NEG_INFINITY; 2];
            const ALL_ONES: Self = [0.0; 2];
            #[inline(always)]
            fn plus(self, other: Self) -> Self { [self[0] + other[0], self[1] + other[1]] }
            #[inline(always)]
            fn lost_by_plus(self, other: Self, sum: Self) -> Self {
                [self[0].lost_by_plus(other[0], sum[0]), self[1].lost_by_plus(other[1], sum[1])]
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self {
                [self[0] * other[0] - self[1] * other[1], self[0] * other[1] + self[1] * other[0]]
            }
            #[inline(always)]
            fn least(self, other: Self) -> Self {
                let keep = self[0] < other[0] || self[0] == other[0] && self[1] <= other[1];
                if keep || self[0].is_nan() || self[1].is_nan() { self } else { other }
            }
            #[inline(always)]
            fn greatest(self, other: Self) -> Self {
                let keep = self[0] > other[0] || self[0] == other[0] && self[1] >= other[1];
                if keep || self[0].is_nan() || self[1].is_nan() { self } else { other }
            }
            #[inline(always)]
            fn bit_and(self, _: Self) -> Self { self }
            #[inline(always)]
            fn bit_or(self, _: Self) -> Self { self }
            #[inline(always)]
            fn bit_xor(self, _: Self) -> Self { self }
        }
    )*};
}
floats!(f32, f64);

impl Number for bf16 {
    type Acc = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(acc: f32) -> Self {
        bf16::from_bits(convert::BF16::encode(acc) as u16)
    }
}

impl Number for f16 {
    type Acc = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        convert::F16::decode(u32::from(self.to_bits()))
    }

    #[inline(always)]
    fn narrow(acc: f32) -> Self {
        f16::from_bits(convert::F16::encode(acc) as u16)
    }
}

/// An associative operation with an identity.
pub(crate) trait Monoid<A: Accumulator>: Copy + Send + Sync + 'static {
    /// The identity of the operation.
    const IDENTITY: A;
    /// Combines two values. The left one comes first in the array.
    fn combine(a: A, b: A) -> A;
}

macro_rules! monoids {
    ($($(#[doc = $doc:literal])* $name:ident $identity:ident $method:ident;)*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $name;
        impl<A: Accumulator> Monoid<A> for $name {
            const IDENTITY: A = A::$identity;
            #[inline(always)]
            fn combine(a: A, b: A) -> A { a.$method(b) }
        }
    )*};
}
monoids! {
    /// Addition.
    Sum ADD_IDENTITY plus;
    /// Multiplication.
    Product ONE times;
    /// The smallest value.
    Least GREATEST least;
    /// The greatest value.
    Greatest LEAST greatest;
    /// Bitwise and.
    BitAnd ALL_ONES bit_and;
    /// Bitwise or.
    BitOr ZERO bit_or;
    /// Bitwise exclusive or.
    BitXor ZERO bit_xor;
}

/// Wraps the elements of a type narrower than a byte to its range, after arithmetic in whole bytes.
pub(crate) fn wrap_sub_byte(dtype: DType, bytes: &mut [u8]) {
    let spare = 8usize.saturating_sub(dtype.bits());
    match dtype {
        DType::U2 | DType::U4 => bytes.iter_mut().for_each(|b| *b = (*b << spare) >> spare),
        DType::S2 | DType::S4 => bytes.iter_mut().for_each(|b| *b = (((*b as i8) << spare) >> spare) as u8),
        _ => {}
    }
}
