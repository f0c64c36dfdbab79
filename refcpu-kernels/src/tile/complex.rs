//! Loops over complex numbers.

use super::loops::{Binary, Unary, binary as binary_loop, plain_binary, plain_unary, unary as unary_loop};
use super::{Kernel, TileOp};
use crate::ComputeType;
use crate::isa::Isa;
use crate::math::complex;
use std::marker::PhantomData;

/// A part of a complex number.
trait Part: Copy {
    fn widen(z: [Self; 2]) -> [f64; 2];
    fn narrow(z: [f64; 2]) -> [Self; 2];
    fn of(x: f64) -> Self;
    fn product(a: [Self; 2], b: [Self; 2]) -> [Self; 2];
    /// Returns `true` if products of these parts may not be representable in the type.
    fn overflows(a: [Self; 2], b: [Self; 2]) -> bool;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn neg(self) -> Self;
}
macro_rules! parts {
    ($($t:ty),*) => {$(
        impl Part for $t {
            #[inline(always)]
            fn widen(z: [Self; 2]) -> [f64; 2] {
                [z[0] as f64, z[1] as f64]
            }
            #[inline(always)]
            fn narrow(z: [f64; 2]) -> [Self; 2] {
                [z[0] as $t, z[1] as $t]
            }
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn product(a: [Self; 2], b: [Self; 2]) -> [Self; 2] {
                [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
            }
            #[inline(always)]
            fn overflows(a: [Self; 2], b: [Self; 2]) -> bool {
                a[0].abs().max(a[1].abs()) * b[0].abs().max(b[1].abs()) > 0.25 * <$t>::MAX
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self + b
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self - b
            }
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
        }
    )*};
}
parts!(f32, f64);

macro_rules! maps {
    ($($name:ident $f:path;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: Part> Unary for $name<T> {
            type A = [T; 2];
            type R = [T; 2];
            fn apply<I: Isa>(z: [T; 2]) -> [T; 2] {
                T::narrow($f(T::widen(z)))
            }
        }
    )*};
}
maps! {
    Sign complex::sign;
    Exp complex::exp;
    ExpM1 complex::exp_m1;
    Log complex::log;
    Log1p complex::log_1p;
    Sqrt complex::sqrt;
    Rsqrt complex::rsqrt;
    Cbrt complex::cbrt;
    Logistic complex::logistic;
    Sin complex::sin;
    Cos complex::cos;
    Tan complex::tan;
    Tanh complex::tanh;
    Asin complex::asin;
    Acos complex::acos;
    Atan complex::atan;
    Sinh complex::sinh;
    Cosh complex::cosh;
    Asinh complex::asinh_complex;
    Acosh complex::acosh;
    Atanh complex::atanh;
}

macro_rules! binary_maps {
    ($($name:ident $f:path;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: Part> Binary for $name<T> {
            type A = [T; 2];
            type B = [T; 2];
            type R = [T; 2];
            fn apply<I: Isa>(a: [T; 2], b: [T; 2]) -> [T; 2] {
                T::narrow($f(T::widen(a), T::widen(b)))
            }
        }
    )*};
}
binary_maps! {
    Divide complex::div;
    Power complex::pow;
    Atan2 complex::atan2;
}

struct Abs<T>(PhantomData<T>);
impl<T: Part> Unary for Abs<T> {
    type A = [T; 2];
    type R = T;
    fn apply<I: Isa>(z: [T; 2]) -> T {
        T::of(complex::abs(T::widen(z)))
    }
}

struct Pick<T, const PART: usize>(PhantomData<T>);
impl<T: Part, const PART: usize> Unary for Pick<T, PART> {
    type A = [T; 2];
    type R = T;
    #[inline(always)]
    fn apply<I: Isa>(z: [T; 2]) -> T {
        z[PART]
    }
}

struct Conj<T>(PhantomData<T>);
impl<T: Part> Unary for Conj<T> {
    type A = [T; 2];
    type R = [T; 2];
    #[inline(always)]
    fn apply<I: Isa>(z: [T; 2]) -> [T; 2] {
        [z[0], z[1].neg()]
    }
}

struct Negate<T>(PhantomData<T>);
impl<T: Part> Unary for Negate<T> {
    type A = [T; 2];
    type R = [T; 2];
    #[inline(always)]
    fn apply<I: Isa>(z: [T; 2]) -> [T; 2] {
        [z[0].neg(), z[1].neg()]
    }
}

macro_rules! arithmetic {
    ($($name:ident |$a:ident, $b:ident| $e:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: Part> Binary for $name<T> {
            type A = [T; 2];
            type B = [T; 2];
            type R = [T; 2];
            #[inline(always)]
            fn apply<I: Isa>($a: [T; 2], $b: [T; 2]) -> [T; 2] {
                $e
            }
        }
    )*};
}
arithmetic! {
    Add |a, b| [a[0].add(b[0]), a[1].add(b[1])];
    Subtract |a, b| [a[0].sub(b[0]), a[1].sub(b[1])];
}

struct Multiply<T>(PhantomData<T>);
impl<T: Part> Binary for Multiply<T> {
    type A = [T; 2];
    type B = [T; 2];
    type R = [T; 2];
    const HAS_SLOW: bool = true;
    #[inline(always)]
    fn apply<I: Isa>(a: [T; 2], b: [T; 2]) -> [T; 2] {
        T::product(a, b)
    }
    #[inline(always)]
    fn is_slow(a: [T; 2], b: [T; 2]) -> bool {
        T::overflows(a, b)
    }
    fn slow(a: [T; 2], b: [T; 2]) -> [T; 2] {
        T::narrow(complex::mul_large(T::widen(a), T::widen(b)))
    }
}

struct Join<T>(PhantomData<T>);
impl<T: Part> Binary for Join<T> {
    type A = T;
    type B = T;
    type R = [T; 2];
    #[inline(always)]
    fn apply<I: Isa>(a: T, b: T) -> [T; 2] {
        [a, b]
    }
}

/// Returns the loop of an operation on one complex operand.
pub(super) fn unary(op: TileOp, ty: ComputeType) -> Option<Kernel> {
    fn of<T: Part>(op: TileOp) -> Option<Kernel> {
        match op {
            TileOp::Abs => plain_unary::<Abs<T>>(),
            TileOp::Real => Some(unary_loop::<Pick<T, 0>>()),
            TileOp::Imag => Some(unary_loop::<Pick<T, 1>>()),
            TileOp::Conj => Some(unary_loop::<Conj<T>>()),
            TileOp::Negate => Some(unary_loop::<Negate<T>>()),
            TileOp::Sign => plain_unary::<Sign<T>>(),
            TileOp::Exponential => plain_unary::<Exp<T>>(),
            TileOp::ExponentialMinusOne => plain_unary::<ExpM1<T>>(),
            TileOp::Log => plain_unary::<Log<T>>(),
            TileOp::LogPlusOne => plain_unary::<Log1p<T>>(),
            TileOp::Sqrt => plain_unary::<Sqrt<T>>(),
            TileOp::Rsqrt => plain_unary::<Rsqrt<T>>(),
            TileOp::Cbrt => plain_unary::<Cbrt<T>>(),
            TileOp::Logistic => plain_unary::<Logistic<T>>(),
            TileOp::Sine => plain_unary::<Sin<T>>(),
            TileOp::Cosine => plain_unary::<Cos<T>>(),
            TileOp::Tan => plain_unary::<Tan<T>>(),
            TileOp::Tanh => plain_unary::<Tanh<T>>(),
            TileOp::Asin => plain_unary::<Asin<T>>(),
            TileOp::Acos => plain_unary::<Acos<T>>(),
            TileOp::Atan => plain_unary::<Atan<T>>(),
            TileOp::Sinh => plain_unary::<Sinh<T>>(),
            TileOp::Cosh => plain_unary::<Cosh<T>>(),
            TileOp::Asinh => plain_unary::<Asinh<T>>(),
            TileOp::Acosh => plain_unary::<Acosh<T>>(),
            TileOp::Atanh => plain_unary::<Atanh<T>>(),
            _ => None,
        }
    }
    match ty {
        ComputeType::C64 => of::<f32>(op),
        ComputeType::C128 => of::<f64>(op),
        _ => None,
    }
}

/// Returns the loop of an operation on two complex operands, or that makes a complex number of two reals.
pub(super) fn binary(op: TileOp, ty: ComputeType, mask: u8) -> Option<Kernel> {
    fn of<T: Part>(op: TileOp, mask: u8) -> Option<Kernel> {
        match op {
            TileOp::Add => binary_loop::<Add<T>>(mask),
            TileOp::Subtract => binary_loop::<Subtract<T>>(mask),
            TileOp::Multiply => binary_loop::<Multiply<T>>(mask),
            TileOp::Divide => plain_binary::<Divide<T>>(mask),
            TileOp::Power => plain_binary::<Power<T>>(mask),
            TileOp::Atan2 => plain_binary::<Atan2<T>>(mask),
            _ => None,
        }
    }
    match (op, ty) {
        (TileOp::Complex, ComputeType::F32) => binary_loop::<Join<f32>>(mask),
        (TileOp::Complex, ComputeType::F64) => binary_loop::<Join<f64>>(mask),
        (_, ComputeType::C64) => of::<f32>(op, mask),
        (_, ComputeType::C128) => of::<f64>(op, mask),
        _ => None,
    }
}
