//! Arithmetic on numbers: the four operations, remainder, bits and shifts, rounding to integral values.

use super::Opcode;
use super::loops::{
    Binary, Ternary, Unary, binary as binary_loop, plain_binary, ternary_masked, unary as unary_loop,
};
use super::{Kernel, TileOp};
use crate::ComputeType;
use crate::isa::Isa;
use std::marker::PhantomData;

/// Real numbers of a register type, with StableHLO's arithmetic.
pub(crate) trait Num: Copy + PartialOrd {
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    /// Returns the quotient. For integers, it is -1 (all ones) if the divisor is zero, and the quotient of
    /// MIN by -1 is MIN.
    fn div(self, b: Self) -> Self;
    /// Returns the remainder. For integers, it is the dividend if the divisor is zero.
    fn rem(self, b: Self) -> Self;
    /// Returns the larger value, or NaN if one is NaN. +0 is larger than -0.
    fn maximum(self, b: Self) -> Self;
    /// Returns the smaller value, or NaN if one is NaN. -0 is smaller than +0.
    fn minimum(self, b: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
}

/// Integers of a register type.
pub(crate) trait Int: Num {
    fn and(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    fn xor(self, b: Self) -> Self;
    fn not(self) -> Self;
    fn shl(self, b: Self) -> Self;
    fn shr_logical(self, b: Self) -> Self;
    fn shr_arithmetic(self, b: Self) -> Self;
    fn popcnt(self) -> Self;
    fn clz(self) -> Self;
    fn mul_hi(self, b: Self) -> Self;
    fn power(self, b: Self) -> Self;
}

/// The truncated quotient by a divisor other than zero and minus one.
///
/// There is no vector instruction that divides integers. If two integers have at most half the bits of a
/// float's mantissa, their rounded quotient is less than the next integer whenever the exact quotient is, so
/// the float division can be used.
macro_rules! quotient {
    ($a:expr, $b:expr, $t:ty, exact) => {
        $a.wrapping_div($b)
    };
    ($a:expr, $b:expr, $t:ty, $float:ty) => {
        (($a as $float) / ($b as $float)) as $t
    };
}

macro_rules! int_num {
    ($t:ty, $u:ty, $s:ty, $wide:ty, $signed:literal, $float:ident) => {
        impl Num for $t {
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                if b == 0 {
                    !0
                } else if $signed && b == !0 {
                    self.wrapping_neg()
                } else {
                    quotient!(self, b, $t, $float)
                }
            }
            #[inline(always)]
            fn rem(self, b: Self) -> Self {
                if b == 0 {
                    self
                } else if $signed && b == !0 {
                    0
                } else {
                    self.wrapping_sub(quotient!(self, b, $t, $float).wrapping_mul(b))
                }
            }
            #[inline(always)]
            fn maximum(self, b: Self) -> Self {
                Ord::max(self, b)
            }
            #[inline(always)]
            fn minimum(self, b: Self) -> Self {
                Ord::min(self, b)
            }
            #[inline(always)]
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                if $signed && (self as $s) < 0 { self.wrapping_neg() } else { self }
            }
            #[inline(always)]
            fn sign(self) -> Self {
                if self == 0 {
                    0
                } else if $signed && (self as $s) < 0 {
                    (-1 as $s) as $t
                } else {
                    1
                }
            }
        }
        impl Int for $t {
            #[inline(always)]
            fn and(self, b: Self) -> Self {
                self & b
            }
            #[inline(always)]
            fn or(self, b: Self) -> Self {
                self | b
            }
            #[inline(always)]
            fn xor(self, b: Self) -> Self {
                self ^ b
            }
            #[inline(always)]
            fn not(self) -> Self {
                !self
            }
            #[inline(always)]
            fn shl(self, b: Self) -> Self {
                let amount = b as $u;
                if amount < <$u>::BITS as $u {
                    ((self as $u) << (amount & (<$u>::BITS - 1) as $u)) as $t
                } else {
                    0
                }
            }
            #[inline(always)]
            fn shr_logical(self, b: Self) -> Self {
                let amount = b as $u;
                if amount < <$u>::BITS as $u {
                    ((self as $u) >> (amount & (<$u>::BITS - 1) as $u)) as $t
                } else {
                    0
                }
            }
            #[inline(always)]
            fn shr_arithmetic(self, b: Self) -> Self {
                let amount = (b as $u).min((<$u>::BITS - 1) as $u);
                ((self as $s) >> amount) as $t
            }
            #[inline(always)]
            fn popcnt(self) -> Self {
                self.count_ones() as $t
            }
            #[inline(always)]
            fn clz(self) -> Self {
                self.leading_zeros() as $t
            }
            #[inline(always)]
            fn mul_hi(self, b: Self) -> Self {
                ((self as $wide).wrapping_mul(b as $wide) >> <$t>::BITS) as $t
            }
            #[inline(always)]
            fn power(self, b: Self) -> Self {
                if $signed && (b as $s) < 0 {
                    // The reciprocal, truncated: not zero only for 1 and -1.
                    return if self == 1 {
                        1
                    } else if self == !0 {
                        if b & 1 == 0 { 1 } else { self }
                    } else {
                        0
                    };
                }
                let (mut result, mut base, mut left) = (1 as $t, self, b as $u);
                while left != 0 {
                    if left & 1 != 0 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                result
            }
        }
    };
}
int_num!(u8, u8, i8, u16, false, f32);
int_num!(u16, u16, i16, u32, false, f32);
int_num!(u32, u32, i32, u64, false, f64);
int_num!(u64, u64, i64, u128, false, exact);
int_num!(i8, u8, i8, i16, true, f32);
int_num!(i16, u16, i16, i32, true, f32);
int_num!(i32, u32, i32, i64, true, f64);
int_num!(i64, u64, i64, i128, true, exact);

/// Floats of a register type.
pub(crate) trait Float: Num {
    fn is_nan(self) -> bool;
    fn is_finite(self) -> bool;
    fn ceil(self) -> Self;
    fn floor(self) -> Self;
    fn round_afz(self) -> Self;
    fn round_even(self) -> Self;
    fn sqrt(self) -> Self;
    fn next_after(self, towards: Self) -> Self;
}

macro_rules! float_num {
    ($t:ident, $u:ty, $s:ty) => {
        impl Num for $t {
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self + b
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self - b
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self * b
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                self / b
            }
            #[inline(always)]
            fn rem(self, b: Self) -> Self {
                self % b
            }
            #[inline(always)]
            fn maximum(self, b: Self) -> Self {
                let r = if self > b { self } else { b };
                let r = if self == b { $t::from_bits(self.to_bits() & b.to_bits()) } else { r };
                if self.is_nan() { self } else { r }
            }
            #[inline(always)]
            fn minimum(self, b: Self) -> Self {
                let r = if self < b { self } else { b };
                let r = if self == b { $t::from_bits(self.to_bits() | b.to_bits()) } else { r };
                if self.is_nan() { self } else { r }
            }
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
            #[inline(always)]
            fn abs(self) -> Self {
                $t::abs(self)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                // Zeros and NaN are their own sign.
                let one = (1.0 as $t).copysign(self);
                if self == 0.0 || self.is_nan() { self } else { one }
            }
        }
        impl Float for $t {
            #[inline(always)]
            fn is_nan(self) -> bool {
                $t::is_nan(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $t::is_finite(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                $t::ceil(self)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                $t::floor(self)
            }
            #[inline(always)]
            fn round_afz(self) -> Self {
                // Exact: below the magnitude where all values are integral, x - trunc(x) is.
                let t = $t::trunc(self);
                let up = if (self - t).abs() >= 0.5 {
                    (1.0 as $t).copysign(self)
                } else {
                    (0.0 as $t).copysign(self)
                };
                let r = t + up;
                if self.is_finite() { r.copysign(self) } else { self }
            }
            #[inline(always)]
            fn round_even(self) -> Self {
                $t::round_ties_even(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $t::sqrt(self)
            }
            #[inline(always)]
            fn next_after(self, towards: Self) -> Self {
                if self.is_nan() || towards.is_nan() {
                    return $t::NAN;
                }
                if self == towards {
                    return towards;
                }
                if self == 0.0 {
                    return $t::from_bits(1).copysign(towards);
                }
                let away = (self < towards) == (self > 0.0);
                $t::from_bits(if away { self.to_bits() + 1 } else { self.to_bits() - 1 })
            }
        }
    };
}
float_num!(f32, u32, i32);
float_num!(f64, u64, i64);

macro_rules! unary_ops {
    ($($name:ident $bound:ident $r:ty, |$x:ident| $e:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: $bound> Unary for $name<T> {
            type A = T;
            type R = $r;
            #[inline(always)]
            fn apply<I: Isa>($x: T) -> $r {
                $e
            }
        }
    )*};
}
unary_ops! {
    Abs Num T, |x| x.abs();
    Negate Num T, |x| x.neg();
    Sign Num T, |x| x.sign();
    Not Int T, |x| x.not();
    Popcnt Int T, |x| x.popcnt();
    Clz Int T, |x| x.clz();
    Ceil Float T, |x| x.ceil();
    Floor Float T, |x| x.floor();
    RoundAfz Float T, |x| x.round_afz();
    RoundEven Float T, |x| x.round_even();
    Sqrt Float T, |x| x.sqrt();
    IsFinite Float u8, |x| u8::from(x.is_finite());
    IsNan Float u8, |x| u8::from(x.is_nan());
}

macro_rules! binary_ops {
    ($($name:ident $bound:ident, |$x:ident, $y:ident| $e:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: $bound> Binary for $name<T> {
            type A = T;
            type B = T;
            type R = T;
            #[inline(always)]
            fn apply<I: Isa>($x: T, $y: T) -> T {
                $e
            }
        }
    )*};
}
binary_ops! {
    Add Num, |x, y| x.add(y);
    Subtract Num, |x, y| x.sub(y);
    Multiply Num, |x, y| x.mul(y);
    Divide Num, |x, y| x.div(y);
    Remainder Num, |x, y| x.rem(y);
    Maximum Num, |x, y| x.maximum(y);
    Minimum Num, |x, y| x.minimum(y);
    And Int, |x, y| x.and(y);
    Or Int, |x, y| x.or(y);
    Xor Int, |x, y| x.xor(y);
    ShiftLeft Int, |x, y| x.shl(y);
    ShiftRightLogical Int, |x, y| x.shr_logical(y);
    ShiftRightArithmetic Int, |x, y| x.shr_arithmetic(y);
    MulHi Int, |x, y| x.mul_hi(y);
    IntPower Int, |x, y| x.power(y);
    NextAfter Float, |x, y| x.next_after(y);
}

macro_rules! ternary_ops {
    ($($name:ident, |$x:ident, $y:ident, $z:ident| $e:expr;)*) => {$(
        struct $name<T>(PhantomData<T>);
        impl<T: Num> Ternary for $name<T> {
            type A = T;
            type B = T;
            type C = T;
            type R = T;
            #[inline(always)]
            fn apply<I: Isa>($x: T, $y: T, $z: T) -> T {
                $e
            }
        }
    )*};
}
// Two roundings each: the compiler may not contract them, so they equal the separate operations.
ternary_ops! {
    MulAdd, |a, b, c| a.mul(b).add(c);
    MulSub, |a, b, c| a.mul(b).sub(c);
    NegMulAdd, |a, b, c| c.sub(a.mul(b));
}

/// Selects by type among all register types of real numbers, with signed and unsigned integers distinguished.
macro_rules! by_type {
    ($ty:expr, $with:ident, $op:ident $(, $arg:expr)?; floats) => {
        match $ty {
            ComputeType::F32 => Some($with::<$op<f32>>($($arg)?)),
            ComputeType::F64 => Some($with::<$op<f64>>($($arg)?)),
            _ => None,
        }
    };
    ($ty:expr, $with:ident, $op:ident $(, $arg:expr)?; ints) => {
        match $ty {
            ComputeType::U8 | ComputeType::Pred => Some($with::<$op<u8>>($($arg)?)),
            ComputeType::U16 => Some($with::<$op<u16>>($($arg)?)),
            ComputeType::U32 => Some($with::<$op<u32>>($($arg)?)),
            ComputeType::U64 => Some($with::<$op<u64>>($($arg)?)),
            ComputeType::S8 => Some($with::<$op<i8>>($($arg)?)),
            ComputeType::S16 => Some($with::<$op<i16>>($($arg)?)),
            ComputeType::S32 => Some($with::<$op<i32>>($($arg)?)),
            ComputeType::S64 => Some($with::<$op<i64>>($($arg)?)),
            _ => None,
        }
    };
    // The sign makes no difference to the result's bits.
    ($ty:expr, $with:ident, $op:ident $(, $arg:expr)?; bits) => {
        match $ty {
            ComputeType::U8 | ComputeType::Pred | ComputeType::S8 => Some($with::<$op<u8>>($($arg)?)),
            ComputeType::U16 | ComputeType::S16 => Some($with::<$op<u16>>($($arg)?)),
            ComputeType::U32 | ComputeType::S32 => Some($with::<$op<u32>>($($arg)?)),
            ComputeType::U64 | ComputeType::S64 => Some($with::<$op<u64>>($($arg)?)),
            _ => None,
        }
    };
}

/// Returns the loop of an operation with one operand of type `ty`.
pub(super) fn unary(op: TileOp, ty: ComputeType) -> Option<Kernel> {
    match op {
        TileOp::Abs => by_type!(ty, unary_loop, Abs; floats).or(by_type!(ty, unary_loop, Abs; ints)),
        TileOp::Negate => by_type!(ty, unary_loop, Negate; floats).or(by_type!(ty, unary_loop, Negate; bits)),
        TileOp::Sign => by_type!(ty, unary_loop, Sign; floats).or(by_type!(ty, unary_loop, Sign; ints)),
        TileOp::Not => by_type!(ty, unary_loop, Not; bits),
        TileOp::Popcnt => by_type!(ty, unary_loop, Popcnt; bits),
        TileOp::CountLeadingZeros => by_type!(ty, unary_loop, Clz; bits),
        TileOp::Ceil => by_type!(ty, unary_loop, Ceil; floats),
        TileOp::Floor => by_type!(ty, unary_loop, Floor; floats),
        TileOp::RoundNearestAfz => by_type!(ty, unary_loop, RoundAfz; floats),
        TileOp::RoundNearestEven => by_type!(ty, unary_loop, RoundEven; floats),
        TileOp::Sqrt => by_type!(ty, unary_loop, Sqrt; floats),
        TileOp::IsFinite => by_type!(ty, unary_loop, IsFinite; floats),
        TileOp::IsNan => by_type!(ty, unary_loop, IsNan; floats),
        _ => None,
    }
}

/// Returns the loop of an operation with two operands of type `ty`, of which those in `mask` are scalars.
pub(super) fn binary(op: TileOp, ty: ComputeType, mask: u8) -> Option<Kernel> {
    match op {
        TileOp::Add => {
            by_type!(ty, binary_loop, Add, mask; floats).or(by_type!(ty, binary_loop, Add, mask; bits))
        }
        TileOp::Subtract => by_type!(ty, binary_loop, Subtract, mask; floats)
            .or(by_type!(ty, binary_loop, Subtract, mask; bits)),
        TileOp::Multiply => by_type!(ty, binary_loop, Multiply, mask; floats)
            .or(by_type!(ty, binary_loop, Multiply, mask; bits)),
        TileOp::Divide => {
            by_type!(ty, binary_loop, Divide, mask; floats).or(by_type!(ty, plain_binary, Divide, mask; ints))
        }
        TileOp::Remainder if ty == ComputeType::F32 => None,
        TileOp::Remainder => by_type!(ty, plain_binary, Remainder, mask; floats)
            .or(by_type!(ty, plain_binary, Remainder, mask; ints)),
        TileOp::Maximum => by_type!(ty, binary_loop, Maximum, mask; floats)
            .or(by_type!(ty, binary_loop, Maximum, mask; ints)),
        TileOp::Minimum => by_type!(ty, binary_loop, Minimum, mask; floats)
            .or(by_type!(ty, binary_loop, Minimum, mask; ints)),
        TileOp::And => by_type!(ty, binary_loop, And, mask; bits),
        TileOp::Or => by_type!(ty, binary_loop, Or, mask; bits),
        TileOp::Xor => by_type!(ty, binary_loop, Xor, mask; bits),
        TileOp::ShiftLeft => by_type!(ty, binary_loop, ShiftLeft, mask; bits),
        TileOp::ShiftRightLogical => by_type!(ty, binary_loop, ShiftRightLogical, mask; bits),
        TileOp::ShiftRightArithmetic => by_type!(ty, binary_loop, ShiftRightArithmetic, mask; bits),
        TileOp::MulHi => by_type!(ty, plain_binary, MulHi, mask; ints),
        TileOp::Power => by_type!(ty, plain_binary, IntPower, mask; ints),
        TileOp::NextAfter => by_type!(ty, plain_binary, NextAfter, mask; floats),
        _ => None,
    }
    .flatten()
}

/// Returns the loop of a multiplication followed by an addition, where the operands in `mask` are scalars.
pub(super) fn multiply_add(opcode: Opcode, ty: ComputeType, mask: u8) -> Option<Kernel> {
    fn of<O: Ternary>(mask: u8) -> Option<Kernel> {
        match mask {
            0 => Some(ternary_masked::<O, 0>()),
            2 => Some(ternary_masked::<O, 2>()),
            4 => Some(ternary_masked::<O, 4>()),
            6 => Some(ternary_masked::<O, 6>()),
            _ => None,
        }
    }
    match (opcode, ty) {
        (Opcode::MulAdd, ComputeType::F32) => of::<MulAdd<f32>>(mask),
        (Opcode::MulAdd, ComputeType::F64) => of::<MulAdd<f64>>(mask),
        (Opcode::MulSub, ComputeType::F32) => of::<MulSub<f32>>(mask),
        (Opcode::MulSub, ComputeType::F64) => of::<MulSub<f64>>(mask),
        (Opcode::NegMulAdd, ComputeType::F32) => of::<NegMulAdd<f32>>(mask),
        (Opcode::NegMulAdd, ComputeType::F64) => of::<NegMulAdd<f64>>(mask),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Num;

    macro_rules! check {
        ($t:ty, $values:expr) => {
            let values: Vec<$t> = $values;
            for &a in &values {
                for &b in &values {
                    let quotient = if b == 0 { !0 } else { a.wrapping_div(b) };
                    let remainder = if b == 0 { a } else { a.wrapping_rem(b) };
                    assert_eq!((Num::div(a, b), Num::rem(a, b)), (quotient, remainder), "{a} by {b}");
                }
            }
        };
    }

    /// Returns numbers around every power of two and its multiples, and scattered others.
    fn numbers() -> Vec<u64> {
        let near = (0..64).flat_map(|bit| (-2..=2).map(move |d: i64| (1u64 << bit).wrapping_add_signed(d)));
        let odd = (0..200u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        near.chain(odd).collect()
    }

    #[test]
    fn integer_division_by_floats_is_exact() {
        check!(u8, (0..=u8::MAX).collect());
        check!(i8, (i8::MIN..=i8::MAX).collect());
        check!(u16, numbers().into_iter().map(|n| n as u16).collect());
        check!(i16, numbers().into_iter().map(|n| n as i16).collect());
        check!(u32, numbers().into_iter().flat_map(|n| [n as u32, (n >> 32) as u32]).collect());
        check!(i32, numbers().into_iter().flat_map(|n| [n as i32, (n >> 32) as i32]).collect());
        check!(i64, numbers().into_iter().map(|n| n as i64).collect());
    }
}
