//! Functions of one f32 that are both compiled loops and machine code: each is written once over [`Single`], which is a number
//! in a loop, or a register in a function of the code generator. Both therefore have the same results.

use super::MulAdd;
use crate::isa::Isa;
use std::f32::consts::LOG2_E;
use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An f32, or the code that computes one.
pub(crate) trait Single:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The type of bits.
    type Bits: Bits;
    /// The type of comparisons.
    type Truth: Copy;
    /// `true` if [`Self::fma`] rounds once.
    const FMA: bool;

    /// Returns a constant.
    fn of(self, value: f32) -> Self;
    /// Returns `self * b + c`, rounded once if [`Self::FMA`] is true.
    fn fma(self, b: Self, c: Self) -> Self;
    /// Returns the absolute value.
    fn abs(self) -> Self;
    /// Returns the square root.
    fn sqrt(self) -> Self;
    /// Returns the magnitude with the sign of another number.
    fn copysign(self, sign: Self) -> Self;
    /// Returns whether the number is less than another one.
    fn lt(self, b: Self) -> Self::Truth;
    /// Returns whether the number is at most another one.
    fn le(self, b: Self) -> Self::Truth;
    /// Returns whether the numbers are equal.
    fn eq(self, b: Self) -> Self::Truth;
    /// Returns `self` if a comparison is true, and `b` otherwise.
    fn when(self, truth: Self::Truth, b: Self) -> Self;
    /// Returns the bits.
    fn bits(self) -> Self::Bits;
    /// Returns the number with these bits.
    fn from_bits(bits: Self::Bits) -> Self;
    /// Returns the number that signed bits are.
    fn from_integer(bits: Self::Bits) -> Self;
}

/// Thirty-two bits, or the code that computes them.
pub(crate) trait Bits: Copy {
    /// Returns the sum with a constant; it wraps.
    fn plus(self, b: u32) -> Self;
    /// Returns the difference; it wraps.
    fn minus(self, b: Self) -> Self;
    /// Returns the bits that a constant has too.
    fn and(self, b: u32) -> Self;
    /// Returns the bits, moved to the left.
    fn left(self, distance: u32) -> Self;
    /// Returns the bits, moved to the right. Zeros follow.
    fn right(self, distance: u32) -> Self;
    /// Returns the bits, moved to the right. Copies of the sign follow.
    fn right_signed(self, distance: u32) -> Self;
}

/// A number in a loop that is compiled for an instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Lane<I>(pub(crate) f32, PhantomData<I>);

impl<I> Lane<I> {
    #[inline(always)]
    pub(crate) fn new(x: f32) -> Self {
        Self(x, PhantomData)
    }
}

macro_rules! operators {
    ($($trait:ident $f:ident $op:tt;)*) => {$(
        impl<I> $trait for Lane<I> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, b: Self) -> Self {
                Self::new(self.0 $op b.0)
            }
        }
    )*};
}
operators! {
    Add add +;
    Sub sub -;
    Mul mul *;
    Div div /;
}

impl<I> Neg for Lane<I> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(-self.0)
    }
}

impl<I: Isa> Single for Lane<I> {
    type Bits = u32;
    type Truth = bool;
    const FMA: bool = I::FMA;

    #[inline(always)]
    fn of(self, value: f32) -> Self {
        Self::new(value)
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self::new(self.0.mul_add_on::<I>(b.0, c.0))
    }
    #[inline(always)]
    fn abs(self) -> Self {
        Self::new(self.0.abs())
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Self::new(self.0.sqrt())
    }
    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        Self::new(self.0.copysign(sign.0))
    }
    #[inline(always)]
    fn lt(self, b: Self) -> bool {
        self.0 < b.0
    }
    #[inline(always)]
    fn le(self, b: Self) -> bool {
        self.0 <= b.0
    }
    #[inline(always)]
    fn eq(self, b: Self) -> bool {
        self.0 == b.0
    }
    #[inline(always)]
    fn when(self, truth: bool, b: Self) -> Self {
        if truth { self } else { b }
    }
    #[inline(always)]
    fn bits(self) -> u32 {
        self.0.to_bits()
    }
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        Self::new(f32::from_bits(bits))
    }
    #[inline(always)]
    fn from_integer(bits: u32) -> Self {
        Self::new(bits as i32 as f32)
    }
}

impl Bits for u32 {
    #[inline(always)]
    fn plus(self, b: u32) -> Self {
        self.wrapping_add(b)
    }
    #[inline(always)]
    fn minus(self, b: Self) -> Self {
        self.wrapping_sub(b)
    }
    #[inline(always)]
    fn and(self, b: u32) -> Self {
        self & b
    }
    #[inline(always)]
    fn left(self, distance: u32) -> Self {
        self << distance
    }
    #[inline(always)]
    fn right(self, distance: u32) -> Self {
        self >> distance
    }
    #[inline(always)]
    fn right_signed(self, distance: u32) -> Self {
        (self as i32 >> distance) as u32
    }
}

/// 2^23 * 1.5: adding and subtracting it rounds to an integer, which the low mantissa bits then hold.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts, the first with trailing zeros.
const LN_2_HI: f32 = 0.693_359_4;
const LN_2_LO: f32 = -2.121_944_4e-4;

/// Returns the polynomial with these coefficients, lowest first, by Horner's rule.
#[inline(always)]
fn horner<S: Single, const N: usize>(x: S, coefficients: [f32; N]) -> S {
    let mut r = x.of(coefficients[N - 1]);
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        r = r.fma(x, x.of(coefficients[i]));
    }
    r
}

/// Splits twice `x` as [`split_ln2`] does, without waiting for the product.
#[inline(always)]
fn split_ln2_of_double<S: Single>(x: S) -> (S::Bits, S) {
    let t = x.fma(x.of(2.0 * LOG2_E), x.of(ROUND));
    let n = t - x.of(ROUND);
    let r = n.fma(x.of(-LN_2_LO), n.fma(x.of(-LN_2_HI), x.of(2.0) * x));
    (t.bits().plus(ROUND.to_bits().wrapping_neg()), r)
}

/// Splits `x` into `n` and `r` with x = n ln 2 + r, |r| <= ln 2 / 2; `n` also as an integer. |x| must be below 2^21.
#[inline(always)]
fn split_ln2<S: Single>(x: S) -> (S, S::Bits, S) {
    let t = x.fma(x.of(LOG2_E), x.of(ROUND));
    let n = t - x.of(ROUND);
    let r = n.fma(x.of(-LN_2_LO), n.fma(x.of(-LN_2_HI), x));
    (n, t.bits().plus(ROUND.to_bits().wrapping_neg()), r)
}

/// Returns 2^n for -126 <= n <= 127.
#[inline(always)]
fn exp2i<S: Single>(n: S::Bits) -> S {
    S::from_bits(n.plus(127).left(23))
}

/// Limits a value to a range; NaN remains NaN.
#[inline(always)]
fn limited<S: Single>(x: S, low: f32, high: f32) -> S {
    let (low, high) = (x.of(low), x.of(high));
    let x = high.when(high.lt(x), x);
    low.when(x.lt(low), x)
}

/// Returns `x` if it is NaN, and `value` otherwise.
#[inline(always)]
fn unless_nan<S: Single>(x: S, value: S) -> S {
    value.when(x.eq(x), x)
}

/// Returns e^x.
#[inline(always)]
pub(crate) fn exp<S: Single>(x: S) -> S {
    let (_, n, r) = split_ln2(limited(x, -104.5, 89.0));
    let q = horner(r, [0.5, 0.166_665_2, 0.041_666_204, 0.008_368_918, 0.001_395_058_7]);
    let p = (r * r).fma(q, r) + x.of(1.0);
    // The scaling has two steps, so that subnormal results are rounded once.
    let half = n.right_signed(1);
    p * exp2i(half) * exp2i(n.minus(half))
}

/// Returns e^x - 1.
#[inline(always)]
pub(crate) fn exp_m1<S: Single>(x: S) -> S {
    let x_limited = limited(x, -40.0, 89.0);
    let (n, index, r) = split_ln2(x_limited);
    // The rounding error of r.
    let high = n.fma(x.of(-LN_2_HI), x_limited);
    let lost = n.fma(x.of(-LN_2_LO), high - r);
    let q = horner(r, [0.5, 0.166_666_67, 0.041_666_354, 0.008_333_272, 0.001_394_104_1, 1.991_444_2e-4]);
    // The scale is halved, and doubled at the end, because f32 does not represent 2^128.
    let scale: S = exp2i(index.plus(1u32.wrapping_neg()));
    // 2^n (1 + r) - 1 in two parts.
    let (whole, part) = (scale - x.of(0.5), r * scale);
    let sum = whole + part;
    let rest = (whole - sum) + part;
    let value = x.of(2.0) * (sum + (r * r).fma(q, lost).fma(scale, rest));
    // If the series rounds to its first term, halving the scale would round a subnormal number.
    x.when(x.abs().lt(x.of(1e-8)), value)
}

/// Returns the exponent and mantissa of a positive number: x = 2^e (1 + f) with 1 + f in [sqrt 1/2, sqrt 2).
#[inline(always)]
fn split_float<S: Single>(x: S) -> (S, S) {
    let small = x.lt(x.of(f32::MIN_POSITIVE));
    let bits = (x * x.of(8_388_608.0)).when(small, x).bits();
    let bias = x.of(127.0 + 23.0).when(small, x.of(127.0));
    // Aligns the cut at sqrt 1/2 with an exponent boundary.
    let shifted = bits.plus(0x3f80_0000 - 0x3f35_04f3);
    let e = S::from_integer(shifted.right(23)) - bias;
    let m = S::from_bits(shifted.and(0x7f_ffff).plus(0x3f35_04f3));
    (e, m - x.of(1.0))
}

/// Returns log(2^e (1 + f)) for f in the range of [`split_float`], where `lost` must be added to the result.
#[inline(always)]
fn log_of_split<S: Single>(e: S, f: S, lost: S) -> S {
    let p = horner(
        f,
        [
            0.333_333_1,
            -0.249_999_86,
            0.200_022_32,
            -0.166_692_7,
            0.142_185_32,
            -0.123_839_29,
            0.118_736_51,
            -0.117_926_78,
            0.069_170_89,
        ],
    );
    let f2 = f * f;
    let tail = f2.fma(f.of(-0.5), (f2 * f).fma(p, e.fma(f.of(LN_2_LO), lost)));
    e.fma(f.of(LN_2_HI), f + tail)
}

/// Returns the natural logarithm.
#[inline(always)]
pub(crate) fn log<S: Single>(x: S) -> S {
    let (e, f) = split_float(x);
    let value = log_of_split(e, f, x.of(0.0));
    let value = x.when(x.eq(x.of(f32::INFINITY)), value);
    let value = x.of(f32::NEG_INFINITY).when(x.eq(x.of(0.0)), value);
    value.when(x.of(0.0).le(x), x.of(f32::NAN))
}

/// Returns log(1 + x).
#[inline(always)]
pub(crate) fn log_1p<S: Single>(x: S) -> S {
    let one = x.of(1.0);
    let u = one + x;
    // The rounding error of u.
    let lost = (one - (u - x)).when(one.lt(x.abs()), x - (u - one));
    let (e, f) = split_float(u);
    // 2^-e is a normal number except for huge x, where nothing relevant is lost.
    let scale = S::from_bits((x.of(127.0) - e + x.of(ROUND)).bits().left(23));
    let scale = scale.when(e.lt(x.of(120.0)), x.of(0.0));
    // d log(1 + f) = df / (1 + f), of which a quadratic is enough.
    let slope = f.fma(f.fma(x.of(0.8), x.of(-1.0)), one);
    let value = log_of_split(e, f, lost * scale * slope);
    let value = x.when(x.eq(x.of(f32::INFINITY)), value);
    let value = x.of(f32::NEG_INFINITY).when(x.eq(x.of(-1.0)), value);
    let value = value.when(x.of(-1.0).le(x), x.of(f32::NAN));
    x.when(x.eq(x.of(0.0)), value)
}

/// Returns 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn logistic<S: Single>(x: S) -> S {
    let one = x.of(1.0);
    // With z = e^-|x|: z / (1 + z) left of zero, 1 / (1 + z) right of it, each with one division.
    let z = exp(-x.abs());
    let sum = one + z;
    let top = z.when(x.lt(x.of(0.0)), one);
    let value = if S::FMA {
        let inverse = one / sum;
        let value = top * inverse;
        // The rounding errors of the sum and of the division.
        let lost = (one - sum) + z;
        let rest = (-value).fma(lost, (-value).fma(sum, top));
        rest.fma(inverse, value)
    } else {
        top / sum
    };
    unless_nan(x, value)
}

/// Returns the hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh<S: Single>(x: S) -> S {
    let one = x.of(1.0);
    let a = x.abs();
    let u = x * x;
    let p = horner(
        u,
        [-0.333_333_3, 0.133_331_58, -0.053_940_587, 0.021_666_45, -0.008_092_165, 0.002_064_803_6],
    );
    let small = (u * x).fma(p, x);
    // 1 - 2 / (e^2a + 1), which is 1 for a >= 9.02. The sum e^2a + 1 consists of 2^n + 1 and the rest.
    let limit = x.of(9.1).when(x.of(9.1).lt(a), a);
    let (n, r) = split_ln2_of_double(limit);
    let q = horner(r, [0.5, 0.166_665_2, 0.041_666_204, 0.008_368_918, 0.001_395_058_7]);
    let scale: S = exp2i(n);
    let sum = (r * r).fma(q, r).fma(scale, scale + one);
    let part = x.of(2.0) / sum;
    let high = one - part;
    // The rounding errors of the division and of the subtraction.
    let inverse = x.of(0.5) * part;
    let lost = if S::FMA { (-inverse).fma(sum, one) * part } else { x.of(0.0) };
    let large = (high + (((one - high) - part) - lost)).copysign(x);
    let value = small.copysign(x).when(a.lt(x.of(0.7)), large);
    unless_nan(x, value)
}

/// Returns 1 / sqrt(x).
#[inline(always)]
pub(crate) fn rsqrt<S: Single>(x: S) -> S {
    let one = x.of(1.0);
    let root = x.sqrt();
    let y = one / root;
    if !S::FMA {
        return y;
    }
    // The rounding errors of the root and of the division. They are not numbers at zero and infinity.
    let root_lost = (-root).fma(root, x) * y * (x.of(0.5) * y);
    let rest = (-root).fma(y, one) - root_lost;
    let value = y.fma(rest, y);
    let value = value.when(x.lt(x.of(f32::INFINITY)), y);
    value.when(x.of(0.0).lt(x), y)
}

/// Returns the error function.
#[inline(always)]
pub(crate) fn erf<S: Single>(x: S) -> S {
    let a = x.abs();
    let u = x * x;
    let p = horner(
        u,
        [
            0.128_379_17,
            -0.376_126_34,
            0.112_836_94,
            -0.026_859_27,
            0.005_200_635,
            -8.137_440_4e-4,
            8.345_225e-5,
        ],
    );
    let small = x.fma(p, x);
    let limit = x.of(3.95);
    let t = limit.when(limit.lt(a), a);
    let e = horner(
        t,
        [
            -1.746_900_6e-4,
            1.129_515,
            0.633_346_86,
            0.108_280_16,
            -0.025_119_475,
            0.004_171_082,
            -0.000_434_466_6,
            2.109_540_6e-5,
        ],
    );
    let large = x.of(1.0) - exp(-e);
    let large = x.of(1.0).when(limit.lt(a), large).copysign(x);
    let value = small.when(a.lt(x.of(0.93)), large);
    unless_nan(x, value)
}

/// Returns the inverse of the error function.
#[inline(always)]
pub(crate) fn erf_inv<S: Single>(x: S) -> S {
    let one = x.of(1.0);
    // A function of w = -log(1 - x^2) times x, in two pieces.
    let a = x.abs();
    let w = -log((one - a) * (one + a));
    let s = w - x.of(2.5);
    let central = horner(
        s,
        [
            1.501_409_4,
            0.246_640_73,
            -0.004_177_707_7,
            -0.001_253_707_6,
            2.186_019_8e-4,
            -4.396_737_5e-6,
            -3.528_786_7e-6,
            3.437_216_5e-7,
            2.852_814_6e-8,
        ],
    );
    let t = w.sqrt() - x.of(3.0);
    let tail = horner(
        t,
        [
            2.832_977,
            1.001_674_6,
            0.009_432_033,
            -0.007_632_6,
            0.005_783_996,
            -0.003_633_868_4,
            0.001_253_411,
            6.091_815_6e-5,
            -1.319_323_4e-4,
        ],
    );
    let v = x * central.when(w.lt(x.of(5.0)), tail);
    x.of(f32::INFINITY).copysign(x).when(a.eq(one), v)
}
