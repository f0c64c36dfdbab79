//! Conversions between types, and rounding to narrower formats.

use super::Kernel;
use super::Opcode;
use super::loops::{Binary, Unary, binary, unary};
use crate::convert::{Narrow, with_narrow};
use crate::isa::{self, Isa};
use crate::{ComputeType, DType};
use std::marker::PhantomData;

/// Value conversion by StableHLO's `convert`.
trait Cast<T>: Copy {
    fn cast(self) -> T;
}

/// A boolean, which is distinguished from `u8`.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Truth(u8);

macro_rules! casts {
    ($($from:ty => $($to:ty),*;)*) => {$($(
        impl Cast<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                self as $to
            }
        }
    )*)*};
}
casts! {
    u8 => u8, u16, u32, u64, f32, f64;
    u16 => u8, u16, u32, u64, f32, f64;
    u32 => u8, u16, u32, u64, f32, f64;
    u64 => u8, u16, u32, u64, f32, f64;
    i8 => u8, u16, u32, u64, f32, f64;
    i16 => u8, u16, u32, u64, f32, f64;
    i32 => u8, u16, u32, u64, f32, f64;
    i64 => u8, u16, u32, u64, f32, f64;
    f32 => f32, f64;
    f64 => f32, f64;
}

macro_rules! saturating {
    ($($float:ty => $($to:ty as $via:ty),*;)*) => {$($(
        impl Cast<$to> for $float {
            /// Truncates and saturates; NaN becomes 0. This is written explicitly, because `as` is not
            /// vectorized.
            #[inline(always)]
            fn cast(self) -> $to {
                // The smallest value is a power of two or zero, and so is the limit: both are exact.
                const LOW: $float = <$to>::MIN as $float;
                const LIMIT: $float = ((<$to>::MAX >> 1) as $float + 1.0) * 2.0;
                let x = if self.is_nan() { 0.0 } else { self };
                let x = if x < LOW { LOW } else { x };
                let big = x >= LIMIT;
                let x = if big { 0.0 } else { x };
                // SAFETY: LOW <= x < LIMIT, so the truncated value is one of the type.
                let v = unsafe { x.to_int_unchecked::<$via>() } as $to;
                if big { <$to>::MAX } else { v }
            }
        }
    )*)*};
}
saturating! {
    f32 => u8 as i32, u16 as i32, u32 as u32, u64 as u64, i8 as i32, i16 as i32, i32 as i32, i64 as i64;
    f64 => u8 as i32, u16 as i32, u32 as u32, u64 as u64, i8 as i32, i16 as i32, i32 as i32, i64 as i64;
}

macro_rules! truths {
    ($($t:ty),*) => {$(
        impl Cast<Truth> for $t {
            #[inline(always)]
            fn cast(self) -> Truth {
                Truth(u8::from(self != 0 as $t))
            }
        }
        impl Cast<$t> for Truth {
            #[inline(always)]
            fn cast(self) -> $t {
                u8::from(self.0 != 0) as $t
            }
        }
        impl Cast<[f32; 2]> for $t {
            #[inline(always)]
            fn cast(self) -> [f32; 2] {
                [self as f32, 0.0]
            }
        }
        impl Cast<[f64; 2]> for $t {
            #[inline(always)]
            fn cast(self) -> [f64; 2] {
                [self as f64, 0.0]
            }
        }
    )*};
}
truths!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

macro_rules! complexes {
    ($($t:ty),*) => {$(
        impl Cast<Truth> for [$t; 2] {
            #[inline(always)]
            fn cast(self) -> Truth {
                Truth(u8::from(self[0] != 0.0))
            }
        }
        impl Cast<[$t; 2]> for Truth {
            #[inline(always)]
            fn cast(self) -> [$t; 2] {
                [self.cast(), 0.0]
            }
        }
        impl Cast<[f32; 2]> for [$t; 2] {
            #[inline(always)]
            fn cast(self) -> [f32; 2] {
                [self[0] as f32, self[1] as f32]
            }
        }
        impl Cast<[f64; 2]> for [$t; 2] {
            #[inline(always)]
            fn cast(self) -> [f64; 2] {
                [self[0] as f64, self[1] as f64]
            }
        }
    )*};
}
complexes!(f32, f64);

struct Convert<A, R>(PhantomData<(A, R)>);
impl<A: Cast<R>, R: Copy> Unary for Convert<A, R> {
    type A = A;
    type R = R;
    #[inline(always)]
    fn apply<I: Isa>(a: A) -> R {
        a.cast()
    }
}

/// The real part, converted.
struct FromReal<A, R>(PhantomData<(A, R)>);
impl<A: Cast<R>, R: Copy> Unary for FromReal<A, R> {
    type A = [A; 2];
    type R = R;
    #[inline(always)]
    fn apply<I: Isa>(a: [A; 2]) -> R {
        a[0].cast()
    }
}

struct Copied<T>(PhantomData<T>);
impl<T: Copy> Unary for Copied<T> {
    type A = T;
    type R = T;
    #[inline(always)]
    fn apply<I: Isa>(a: T) -> T {
        a
    }
}

/// Returns the loop of a plain copy.
pub(super) fn copy(ty: ComputeType) -> Option<Kernel> {
    Some(match ty.size() {
        1 => unary::<Copied<u8>>(),
        2 => unary::<Copied<u16>>(),
        4 => unary::<Copied<u32>>(),
        8 => unary::<Copied<[u32; 2]>>(),
        _ => unary::<Copied<[u64; 2]>>(),
    })
}

/// Selects the loop of the conversion of an integer to type `$to`. Integers wrap, so the sign of the result's
/// type does not matter.
macro_rules! from_int {
    ($to:expr, $a:ty) => {
        match $to {
            ComputeType::Pred => unary::<Convert<$a, Truth>>(),
            ComputeType::U8 | ComputeType::S8 => unary::<Convert<$a, u8>>(),
            ComputeType::U16 | ComputeType::S16 => unary::<Convert<$a, u16>>(),
            ComputeType::U32 | ComputeType::S32 => unary::<Convert<$a, u32>>(),
            ComputeType::U64 | ComputeType::S64 => unary::<Convert<$a, u64>>(),
            ComputeType::F32 => unary::<Convert<$a, f32>>(),
            ComputeType::F64 => unary::<Convert<$a, f64>>(),
            ComputeType::C64 => unary::<Convert<$a, [f32; 2]>>(),
            ComputeType::C128 => unary::<Convert<$a, [f64; 2]>>(),
        }
    };
}

/// Selects the loop of the conversion of a float, or of a complex number with parts of type `$a`, to type
/// `$to`. Booleans and complex numbers depend on both parts.
macro_rules! from_float {
    ($to:expr, $a:ty, $loop:ident, $whole:ty) => {
        match $to {
            ComputeType::Pred => unary::<Convert<$whole, Truth>>(),
            ComputeType::U8 => unary::<$loop<$a, u8>>(),
            ComputeType::U16 => unary::<$loop<$a, u16>>(),
            ComputeType::U32 => unary::<$loop<$a, u32>>(),
            ComputeType::U64 => unary::<$loop<$a, u64>>(),
            ComputeType::S8 => unary::<$loop<$a, i8>>(),
            ComputeType::S16 => unary::<$loop<$a, i16>>(),
            ComputeType::S32 => unary::<$loop<$a, i32>>(),
            ComputeType::S64 => unary::<$loop<$a, i64>>(),
            ComputeType::F32 => unary::<$loop<$a, f32>>(),
            ComputeType::F64 => unary::<$loop<$a, f64>>(),
            ComputeType::C64 => unary::<Convert<$whole, [f32; 2]>>(),
            ComputeType::C128 => unary::<Convert<$whole, [f64; 2]>>(),
        }
    };
}

/// Returns the loop that converts values from one type to another.
pub(super) fn convert(from: ComputeType, to: ComputeType) -> Option<Kernel> {
    use ComputeType as C;
    if from == to {
        return copy(to);
    }
    Some(match from {
        C::Pred => match to {
            C::Pred | C::U8 | C::S8 => unary::<Convert<Truth, u8>>(),
            C::U16 | C::S16 => unary::<Convert<Truth, u16>>(),
            C::U32 | C::S32 => unary::<Convert<Truth, u32>>(),
            C::U64 | C::S64 => unary::<Convert<Truth, u64>>(),
            C::F32 => unary::<Convert<Truth, f32>>(),
            C::F64 => unary::<Convert<Truth, f64>>(),
            C::C64 => unary::<Convert<Truth, [f32; 2]>>(),
            C::C128 => unary::<Convert<Truth, [f64; 2]>>(),
        },
        C::U8 => from_int!(to, u8),
        C::U16 => from_int!(to, u16),
        C::U32 => from_int!(to, u32),
        C::U64 => from_int!(to, u64),
        C::S8 => from_int!(to, i8),
        C::S16 => from_int!(to, i16),
        C::S32 => from_int!(to, i32),
        C::S64 => from_int!(to, i64),
        C::F32 => from_float!(to, f32, Convert, f32),
        C::F64 => from_float!(to, f64, Convert, f64),
        C::C64 => from_float!(to, f32, FromReal, [f32; 2]),
        C::C128 => from_float!(to, f64, FromReal, [f64; 2]),
    })
}

/// Storage of a narrow float.
trait Bits: Copy {
    fn widen(self) -> u32;
    fn narrow(bits: u32) -> Self;
}
impl Bits for u8 {
    #[inline(always)]
    fn widen(self) -> u32 {
        u32::from(self)
    }
    #[inline(always)]
    fn narrow(bits: u32) -> u8 {
        bits as u8
    }
}
impl Bits for u16 {
    #[inline(always)]
    fn widen(self) -> u32 {
        u32::from(self)
    }
    #[inline(always)]
    fn narrow(bits: u32) -> u16 {
        bits as u16
    }
}

struct Encode<N, B>(PhantomData<(N, B)>);
impl<N: Narrow, B: Bits> Unary for Encode<N, B> {
    type A = f32;
    type R = B;
    #[inline(always)]
    fn apply<I: Isa>(a: f32) -> B {
        B::narrow(N::encode(a))
    }
}

struct Decode<N, B>(PhantomData<(N, B)>);
impl<N: Narrow, B: Bits> Unary for Decode<N, B> {
    type A = B;
    type R = f32;
    #[inline(always)]
    fn apply<I: Isa>(a: B) -> f32 {
        N::decode(a.widen())
    }
}

struct Round<N>(PhantomData<N>);
impl<N: Narrow> Unary for Round<N> {
    type A = f32;
    type R = f32;
    #[inline(always)]
    fn apply<I: Isa>(a: f32) -> f32 {
        N::decode(N::encode(a))
    }
}

/// Returns the loop that rounds, encodes or decodes narrow floats.
pub(super) fn narrow_float(
    opcode: Opcode,
    dtype: DType,
    from: ComputeType,
    to: ComputeType,
) -> Option<Kernel> {
    let raw = dtype.raw_type();
    macro_rules! round {
        ($n:ty, $b:ty) => {
            unary::<Round<$n>>()
        };
    }
    macro_rules! encode {
        ($n:ty, $b:ty) => {
            unary::<Encode<$n, $b>>()
        };
    }
    macro_rules! decode {
        ($n:ty, $b:ty) => {
            unary::<Decode<$n, $b>>()
        };
    }
    let f32 = ComputeType::F32;
    #[cfg(target_arch = "x86_64")]
    if dtype == DType::F16 && isa::level() >= isa::Level::Avx2 {
        match opcode {
            Opcode::Round(_) if from == f32 && to == f32 => return Some(Kernel(super::half::round)),
            Opcode::ToBits(_) if from == f32 && to == raw => return Some(Kernel(super::half::encode)),
            Opcode::FromBits(_) if from == raw && to == f32 => return Some(Kernel(super::half::decode)),
            _ => (),
        }
    }
    match opcode {
        Opcode::Round(_) if from == f32 && to == f32 => with_narrow!(dtype, round),
        Opcode::ToBits(_) if from == f32 && to == raw => with_narrow!(dtype, encode),
        Opcode::FromBits(_) if from == raw && to == f32 => with_narrow!(dtype, decode),
        _ => None,
    }
}

struct SignExtend<const BITS: u32>;
impl<const BITS: u32> Unary for SignExtend<BITS> {
    type A = i8;
    type R = i8;
    #[inline(always)]
    fn apply<I: Isa>(a: i8) -> i8 {
        a << (8 - BITS) >> (8 - BITS)
    }
}

struct Mask<const BITS: u32>;
impl<const BITS: u32> Unary for Mask<BITS> {
    type A = u8;
    type R = u8;
    #[inline(always)]
    fn apply<I: Isa>(a: u8) -> u8 {
        a & ((1 << BITS) - 1)
    }
}

/// Returns the loop that wraps to a sub-byte integer.
pub(super) fn wrap(dtype: DType, ty: ComputeType) -> Option<Kernel> {
    match (dtype, ty) {
        (DType::S2, ComputeType::S8) => Some(unary::<SignExtend<2>>()),
        (DType::S4, ComputeType::S8) => Some(unary::<SignExtend<4>>()),
        (DType::U2, ComputeType::U8) => Some(unary::<Mask<2>>()),
        (DType::U4, ComputeType::U8) => Some(unary::<Mask<4>>()),
        _ => None,
    }
}

struct Reduce<T>(PhantomData<T>);

macro_rules! reduce_precision {
    ($t:ty, $u:ty, $mantissa:literal, $bias:literal) => {
        impl Binary for Reduce<$t> {
            type A = $t;
            type B = u32;
            type R = $t;
            /// Rounds the mantissa to even. Results above the exponent range become infinity, and results
            /// below the smallest normal number become zero (XLA's rule: the reduced format has no subnormal
            /// numbers).
            #[inline(always)]
            fn apply<I: Isa>(x: $t, format: u32) -> $t {
                let (e, m, gradual) = (format & 0xff, format >> 8 & 0xff, <$u>::from(format >> 16));
                let mut bits = x.to_bits();
                let sign = bits & (1 << (<$u>::BITS - 1));
                // Adding a power of two rounds to whole units of its last place.
                let magic =
                    <$t>::from_bits(gradual.wrapping_add($mantissa).wrapping_sub(<$u>::from(m)) << $mantissa);
                let small = ((x.abs() + magic) - magic).to_bits() | sign;
                if m < $mantissa {
                    let shift = $mantissa - m;
                    let odd = bits >> shift & 1;
                    bits =
                        bits.wrapping_add(((1 as $u) << (shift - 1)) - 1 + odd) & !(((1 as $u) << shift) - 1);
                }
                let exponent_bits = <$u>::BITS - 1 - $mantissa;
                if e < exponent_bits {
                    let reduced_bias = ((1 as $u) << (e - 1)) - 1;
                    let largest = ($bias as $u + reduced_bias) << $mantissa;
                    let smallest = ($bias as $u - reduced_bias) << $mantissa;
                    let exponent = bits & ((((1 as $u) << exponent_bits) - 1) << $mantissa);
                    if exponent > largest {
                        bits = sign | (((1 as $u) << exponent_bits) - 1) << $mantissa;
                    } else if exponent <= smallest {
                        bits = sign;
                    }
                }
                if m < $mantissa && x.abs() < <$t>::from_bits(gradual << $mantissa) {
                    bits = small;
                }
                // A format without mantissa bits has no NaN in addition to infinity.
                let nan = if m == 0 { <$t>::INFINITY.copysign(x) } else { x };
                if x.is_nan() { nan } else { <$t>::from_bits(bits) }
            }
        }
    };
}
reduce_precision!(f32, u32, 23, 127);
reduce_precision!(f64, u64, 52, 1023);

/// Returns the loop of `reduce_precision`; the format is a scalar operand.
pub(super) fn reduce_precision(ty: ComputeType) -> Option<Kernel> {
    match ty {
        ComputeType::F32 => binary::<Reduce<f32>>(0),
        ComputeType::F64 => binary::<Reduce<f64>>(0),
        _ => None,
    }
}
