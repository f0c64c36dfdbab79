//! Loops over the elementary functions of reals.

use super::loops::{Binary, Unary, binary as binary_loop, plain_binary, plain_unary, unary as unary_loop};
use super::{Kernel, TileOp};
use crate::ComputeType;
use crate::isa::Isa;
use crate::math::f32::slow_trig;
use crate::math::{f32 as single, f64 as double};

macro_rules! plain_functions {
    ($($name:ident $t:ident $f:path;)*) => {$(
        struct $name;
        impl Unary for $name {
            type A = $t;
            type R = $t;
            #[inline(always)]
            fn apply<I: Isa>(x: $t) -> $t {
                $f(x)
            }
        }
    )*};
}

macro_rules! functions {
    ($($single:ident $double:ident $f:ident;)*) => {$(
        struct $single;
        impl Unary for $single {
            type A = f32;
            type R = f32;
            #[inline(always)]
            fn apply<I: Isa>(x: f32) -> f32 {
                single::$f::<I>(x)
            }
        }
        struct $double;
        impl Unary for $double {
            type A = f64;
            type R = f64;
            #[inline(always)]
            fn apply<I: Isa>(x: f64) -> f64 {
                double::$f::<I>(x)
            }
        }
    )*};
}
functions! {
    Exp32 Exp64 exp;
    ExpM132 ExpM164 exp_m1;
    Log32 Log64 log;
    Log1p32 Log1p64 log_1p;
    Logistic32 Logistic64 logistic;
    Tanh32 Tanh64 tanh;
    Erf32 Erf64 erf;
    Erfc32 Erfc64 erfc;
    ErfInv32 ErfInv64 erf_inv;
}

macro_rules! trigonometric {
    ($($single_name:ident $double_name:ident $f:ident;)*) => {$(
        struct $single_name;
        impl Unary for $single_name {
            type A = f32;
            type R = f32;
            const HAS_SLOW: bool = true;
            #[inline(always)]
            fn apply<I: Isa>(x: f32) -> f32 {
                single::$f::<I>(x)
            }
            #[inline(always)]
            fn is_slow(x: f32) -> bool {
                x.abs() > single::TRIG_LIMIT
            }
            fn slow(x: f32) -> f32 {
                slow_trig(x, f64::$f)
            }
        }
        struct $double_name;
        impl Unary for $double_name {
            type A = f64;
            type R = f64;
            const HAS_SLOW: bool = true;
            #[inline(always)]
            fn apply<I: Isa>(x: f64) -> f64 {
                double::$f::<I>(x)
            }
            #[inline(always)]
            fn is_slow(x: f64) -> bool {
                x.abs() > double::TRIG_LIMIT
            }
            fn slow(x: f64) -> f64 {
                x.$f()
            }
        }
    )*};
}
trigonometric! {
    Sin32 Sin64 sin;
    Cos32 Cos64 cos;
    Tan32 Tan64 tan;
}

macro_rules! single_only {
    ($($name:ident $f:ident;)*) => {$(
        struct $name;
        impl Unary for $name {
            type A = f32;
            type R = f32;
            #[inline(always)]
            fn apply<I: Isa>(x: f32) -> f32 {
                single::$f::<I>(x)
            }
        }
    )*};
}
single_only! {
    Rsqrt32 rsqrt;
    Asin32 asin;
    Acos32 acos;
    Atan32 atan;
    Sinh32 sinh;
    Cosh32 cosh;
    Asinh32 asinh;
    Acosh32 acosh;
    Atanh32 atanh;
}

struct Rsqrt64;
impl Unary for Rsqrt64 {
    type A = f64;
    type R = f64;
    #[inline(always)]
    fn apply<I: Isa>(x: f64) -> f64 {
        double::rsqrt::<I>(x)
    }
}

plain_functions! {
    Cbrt32 f32 single::cbrt;
}

// One element at a time, by the standard library.
plain_functions! {
    Cbrt64 f64 f64::cbrt;
    Asin64 f64 f64::asin;
    Acos64 f64 f64::acos;
    Atan64 f64 f64::atan;
    Sinh64 f64 f64::sinh;
    Cosh64 f64 f64::cosh;
    Asinh64 f64 double::asinh;
    Acosh64 f64 double::acosh;
    Atanh64 f64 double::atanh;
}

struct Pow32;
impl Binary for Pow32 {
    type A = f32;
    type B = f32;
    type R = f32;
    #[inline(always)]
    fn apply<I: Isa>(x: f32, y: f32) -> f32 {
        single::pow::<I>(x, y)
    }
}

struct Rem32;
impl Binary for Rem32 {
    type A = f32;
    type B = f32;
    type R = f32;
    const HAS_SLOW: bool = true;
    #[inline(always)]
    fn apply<I: Isa>(a: f32, b: f32) -> f32 {
        single::rem(a, b)
    }
    #[inline(always)]
    fn is_slow(a: f32, b: f32) -> bool {
        a.abs() > b.abs() * single::REMAINDER_LIMIT
    }
    fn slow(a: f32, b: f32) -> f32 {
        a % b
    }
}

struct Pow64;
impl Binary for Pow64 {
    type A = f64;
    type B = f64;
    type R = f64;
    fn apply<I: Isa>(x: f64, y: f64) -> f64 {
        x.powf(y)
    }
}

struct Atan232;
impl Binary for Atan232 {
    type A = f32;
    type B = f32;
    type R = f32;
    #[inline(always)]
    fn apply<I: Isa>(y: f32, x: f32) -> f32 {
        single::atan2::<I>(y, x)
    }
}

struct Atan264;
impl Binary for Atan264 {
    type A = f64;
    type B = f64;
    type R = f64;
    fn apply<I: Isa>(y: f64, x: f64) -> f64 {
        y.atan2(x)
    }
}

/// Returns the loop of a function of one real.
pub(super) fn unary(op: TileOp, ty: ComputeType) -> Option<Kernel> {
    let single = match op {
        TileOp::Exponential => unary_loop::<Exp32>,
        TileOp::ExponentialMinusOne => unary_loop::<ExpM132>,
        TileOp::Log => unary_loop::<Log32>,
        TileOp::LogPlusOne => unary_loop::<Log1p32>,
        TileOp::Logistic => unary_loop::<Logistic32>,
        TileOp::Tanh => unary_loop::<Tanh32>,
        TileOp::Erf => unary_loop::<Erf32>,
        TileOp::Erfc => unary_loop::<Erfc32>,
        TileOp::ErfInv => unary_loop::<ErfInv32>,
        TileOp::Sine => unary_loop::<Sin32>,
        TileOp::Cosine => unary_loop::<Cos32>,
        TileOp::Tan => unary_loop::<Tan32>,
        TileOp::Rsqrt => unary_loop::<Rsqrt32>,
        TileOp::Cbrt => unary_loop::<Cbrt32>,
        TileOp::Asin => unary_loop::<Asin32>,
        TileOp::Acos => unary_loop::<Acos32>,
        TileOp::Atan => unary_loop::<Atan32>,
        TileOp::Sinh => unary_loop::<Sinh32>,
        TileOp::Cosh => unary_loop::<Cosh32>,
        TileOp::Asinh => unary_loop::<Asinh32>,
        TileOp::Acosh => unary_loop::<Acosh32>,
        TileOp::Atanh => unary_loop::<Atanh32>,
        _ => return None,
    };
    match ty {
        ComputeType::F32 => Some(single()),
        ComputeType::F64 => match op {
            TileOp::Exponential => Some(unary_loop::<Exp64>()),
            TileOp::ExponentialMinusOne => Some(unary_loop::<ExpM164>()),
            TileOp::Log => Some(unary_loop::<Log64>()),
            TileOp::LogPlusOne => Some(unary_loop::<Log1p64>()),
            TileOp::Logistic => Some(unary_loop::<Logistic64>()),
            TileOp::Tanh => Some(unary_loop::<Tanh64>()),
            TileOp::Erf => Some(unary_loop::<Erf64>()),
            TileOp::Erfc => Some(unary_loop::<Erfc64>()),
            TileOp::ErfInv => Some(unary_loop::<ErfInv64>()),
            TileOp::Sine => Some(unary_loop::<Sin64>()),
            TileOp::Cosine => Some(unary_loop::<Cos64>()),
            TileOp::Tan => Some(unary_loop::<Tan64>()),
            TileOp::Rsqrt => Some(unary_loop::<Rsqrt64>()),
            TileOp::Cbrt => plain_unary::<Cbrt64>(),
            TileOp::Asin => plain_unary::<Asin64>(),
            TileOp::Acos => plain_unary::<Acos64>(),
            TileOp::Atan => plain_unary::<Atan64>(),
            TileOp::Sinh => plain_unary::<Sinh64>(),
            TileOp::Cosh => plain_unary::<Cosh64>(),
            TileOp::Asinh => plain_unary::<Asinh64>(),
            TileOp::Acosh => plain_unary::<Acosh64>(),
            TileOp::Atanh => plain_unary::<Atanh64>(),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the loop of a function of two reals.
pub(super) fn binary(op: TileOp, ty: ComputeType, mask: u8) -> Option<Kernel> {
    match (op, ty) {
        (TileOp::Remainder, ComputeType::F32) => binary_loop::<Rem32>(mask),
        (TileOp::Power, ComputeType::F32) => binary_loop::<Pow32>(mask),
        (TileOp::Power, ComputeType::F64) => plain_binary::<Pow64>(mask),
        (TileOp::Atan2, ComputeType::F32) => binary_loop::<Atan232>(mask),
        (TileOp::Atan2, ComputeType::F64) => plain_binary::<Atan264>(mask),
        _ => None,
    }
}
