//! Functions of one or two f32.

use super::f64 as wide;
use super::single::Lane;
use super::{fma, horner};
use crate::isa::Isa;
use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// The functions of [`single`](super::single) on single numbers.
macro_rules! single {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {$(
        $(#[doc = $doc])*
        #[inline(always)]
        pub(crate) fn $name<I: Isa>(x: f32) -> f32 {
            super::single::$name(Lane::<I>::new(x)).0
        }
    )*};
}
single! {
    /// Returns e^x.
    exp;
    /// Returns e^x - 1.
    exp_m1;
    /// Returns the natural logarithm.
    log;
    /// Returns log(1 + x).
    log_1p;
    /// Returns 1 / (1 + e^-x).
    logistic;
    /// Returns the hyperbolic tangent.
    tanh;
    /// Returns 1 / sqrt(x).
    rsqrt;
    /// Returns the error function.
    erf;
    /// Returns the inverse of the error function.
    erf_inv;
}

/// The largest magnitude for which [`sin`], [`cos`] and [`tan`] are accurate; [`slow_trig`] handles larger
/// ones.
pub(crate) const TRIG_LIMIT: f32 = 1e5;

/// Splits `x` into a multiple of pi/2 (its last bits as an integer) and a rest in [-pi/4, pi/4].
#[inline(always)]
fn split_pi_2<I: Isa>(x: f32) -> (u32, f64) {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    /// pi/2 in two parts; the product of the first with an integer below 2^20 is exact.
    const HI: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
    const LO: f64 = 6.077_100_506_506_192e-11;
    let x = f64::from(x);
    let t = fma::<I, _>(x, std::f64::consts::FRAC_2_PI, MAGIC);
    let n = t - MAGIC;
    ((t.to_bits() & 3) as u32, fma::<I, _>(n, -LO, fma::<I, _>(n, -HI, x)))
}

/// Returns the sine of a number in [-pi/4, pi/4], with an error of 2^-34, enough to round to f32.
#[inline(always)]
fn sin_narrow<I: Isa>(r: f64) -> f64 {
    let u = r * r;
    let p = horner::<I, _, 4>(
        u,
        [
            -0.166_666_666_638_541_68,
            0.008_333_331_874_273_714,
            -1.984_008_649_959_36e-4,
            2.724_989_523_061e-6,
        ],
    );
    fma::<I, _>(u * r, p, r)
}

/// Returns the cosine of a number in [-pi/4, pi/4], with an error of 2^-30.
#[inline(always)]
fn cos_narrow<I: Isa>(r: f64) -> f64 {
    let u = r * r;
    let p = horner::<I, _, 3>(u, [0.041_666_664_658_901_4, -0.001_388_830_291_911_363, 2.454_791_685_369e-5]);
    fma::<I, _>(u * u, p, fma::<I, _>(u, -0.5, 1.0))
}

/// Returns the sine, for |x| up to [`TRIG_LIMIT`].
#[inline(always)]
pub(crate) fn sin<I: Isa>(x: f32) -> f32 {
    // This is computed in f64, because near multiples of pi/2, f32 would need two parts for every step.
    let (n, r) = split_pi_2::<I>(x);
    let v = (if n & 1 == 0 { sin_narrow::<I>(r) } else { cos_narrow::<I>(r) }) as f32;
    let v = f32::from_bits(v.to_bits() ^ (n & 2) << 30);
    if x == 0.0 { x } else { v }
}

/// Returns the cosine, for |x| up to [`TRIG_LIMIT`].
#[inline(always)]
pub(crate) fn cos<I: Isa>(x: f32) -> f32 {
    let (n, r) = split_pi_2::<I>(x);
    let v = (if n & 1 == 0 { cos_narrow::<I>(r) } else { sin_narrow::<I>(r) }) as f32;
    f32::from_bits(v.to_bits() ^ (n.wrapping_add(1) & 2) << 30)
}

/// Returns the tangent, for |x| up to [`TRIG_LIMIT`].
#[inline(always)]
pub(crate) fn tan<I: Isa>(x: f32) -> f32 {
    let (n, r) = split_pi_2::<I>(x);
    let (s, c) = (wide::sin_poly::<I>(r), wide::cos_poly::<I>(r));
    let v = if n & 1 == 0 { s / c } else { -c / s };
    if x == 0.0 { x } else { v as f32 }
}

/// Returns a trigonometric function of any number, computed in f64.
pub(crate) fn slow_trig(x: f32, f: fn(f64) -> f64) -> f32 {
    f(f64::from(x)) as f32
}

/// The difference between pi/2 and its f32 value.
const PI_2_LO: f32 = -4.371_139e-8;

/// Returns 1 / x with an error of at most 2 %, for x from 0 to 1e37. The result is unspecified for subnormal
/// x.
#[inline(always)]
fn reciprocal_guess<I: Isa>(x: f32) -> f32 {
    // The initial value is derived from the exponent, followed by one step of Newton's method.
    let guess = f32::from_bits(0x7ef3_11c7_u32.wrapping_sub(x.to_bits()));
    guess * fma::<I, _>(-x, guess, 2.0)
}

/// The largest coefficient of [`atan_terms`].
const ATAN_FIRST: f32 = -0.333_333_02;

/// Returns the cube of a number in [0, 1], and the arc tangent of the number less the number less
/// [`ATAN_FIRST`] times the cube.
#[inline(always)]
fn atan_terms<I: Isa>(x: f32) -> (f32, f32) {
    let u = x * x;
    let p = horner::<I, _, 8>(
        u,
        [
            0.199_986_39,
            -0.142_652_45,
            0.109_575_7,
            -0.084_194_34,
            0.058_234_037,
            -0.031_455_126,
            0.011_064_106,
            -0.001_827_133_7,
        ],
    );
    let cube = u * x;
    let lost = if I::FMA { fma::<I, _>(u, x, -cube) + x * fma::<I, _>(x, x, -u) } else { 0.0 };
    (cube, fma::<I, _>(cube, u * p, lost * ATAN_FIRST))
}

/// Returns the arc tangent.
#[inline(always)]
pub(crate) fn atan<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    // The tangent of the angle less 0, pi/4 or pi/2, which is at most 1/2.
    let (middle, big) = (a >= 0.5, a > 2.0);
    // From this value on, the result is pi/2; the quotient of an infinity has no remainder.
    let far = if a > 1e20 { 1e20 } else { a };
    let sum = far + 1.0;
    let (top, bottom) = if middle { (far - 1.0, sum) } else { (far, 1.0) };
    let (top, bottom) = if big { (-1.0, far) } else { (top, bottom) };
    let (base, base_low) = if middle { (FRAC_PI_4, 0.5 * PI_2_LO) } else { (0.0, 0.0) };
    let (base, base_low) = if big { (FRAC_PI_2, PI_2_LO) } else { (base, base_low) };
    let inverse = 1.0 / bottom;
    let q = top * inverse;
    let u = q * q;
    let p = horner::<I, _, 6>(
        u,
        [-0.333_333_28, 0.199_995_49, -0.142_728_64, 0.109_455_95, -0.079_963_736, 0.038_844_11],
    );
    // The rounding errors of the sum and of the division, multiplied by the derivative of the arc tangent.
    let sum_lost = if middle && !big { far - (sum - 1.0) } else { 0.0 };
    let lost = (fma::<I, _>(-q, bottom, top) - q * sum_lost) * inverse;
    let lost = if I::FMA { lost * (1.0 - u) } else { 0.0 };
    let rest = fma::<I, _>(q * u, p, lost);
    let high = base + q;
    let v = high + (((base - high) + q) + (base_low + rest));
    if x.is_nan() { x } else { v.copysign(x) }
}

/// Returns the angle of the point (x, y), in [-pi, pi].
#[inline(always)]
pub(crate) fn atan2<I: Isa>(y: f32, x: f32) -> f32 {
    let (ay, ax) = (y.abs(), x.abs());
    let swap = ay > ax;
    let (low, high) = if swap { (ax, ay) } else { (ay, ax) };
    let q = low / high;
    let q = if high == 0.0 { 0.0 } else { q };
    let q = if low == f32::INFINITY { 1.0 } else { q };
    // The rounding error of the division, multiplied by the derivative of the arc tangent. There is no
    // estimate for the largest numbers.
    let lost = fma::<I, _>(-q, high, low) * reciprocal_guess::<I>(high);
    let lost = if I::FMA && high < 1e37 { lost } else { 0.0 };
    let slope = fma::<I, _>(q * q, -0.5, 0.97);
    let (cube, rest) = atan_terms::<I>(q);
    // This is computed in f64, so that the subtraction from pi/2 or pi loses no precision.
    let p = f64::from(q) + f64::from(fma::<I, _>(cube, ATAN_FIRST, fma::<I, _>(lost, slope, rest)));
    let p = if swap { std::f64::consts::FRAC_PI_2 - p } else { p };
    let p = if x.is_sign_negative() { std::f64::consts::PI - p } else { p };
    if x.is_nan() || y.is_nan() { f32::NAN } else { (p as f32).copysign(y) }
}

/// Returns (asin(z) - z) / z of a number in [0, 1/2] from its square.
#[inline(always)]
fn asin_excess<I: Isa>(square: f32) -> f32 {
    square
        * horner::<I, _, 5>(square, [0.166_667_55, 0.074_951_96, 0.045_483_29, 0.024_114_666, 0.042_278_31])
}

/// Estimates the rounding error of [`f32::sqrt`] to a few digits, where `root` is the root of `square`.
#[inline(always)]
fn lost_by_sqrt<I: Isa>(square: f32, root: f32) -> f32 {
    if !I::FMA {
        return 0.0;
    }
    0.5 * reciprocal_guess::<I>(root) * fma::<I, _>(-root, root, square)
}

/// Returns the arc sine.
#[inline(always)]
pub(crate) fn asin<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let big = a > 0.5;
    // asin a = pi/2 - 2 asin sqrt((1 - a) / 2); the square is exact.
    let square = if big { (1.0 - a) * 0.5 } else { a * a };
    let root = if big { square.sqrt() } else { a };
    let excess = root * asin_excess::<I>(square);
    let rest = lost_by_sqrt::<I>(square, root) + excess;
    let high = fma::<I, _>(root, -2.0, FRAC_PI_2);
    let low = fma::<I, _>(root, -2.0, FRAC_PI_2 - high) + PI_2_LO;
    let v = if big { high + fma::<I, _>(rest, -2.0, low) } else { a + excess };
    v.copysign(x)
}

/// Returns the arc cosine.
#[inline(always)]
pub(crate) fn acos<I: Isa>(x: f32) -> f32 {
    let a = x.abs();
    let big = a > 0.5;
    let square = if big { (1.0 - a) * 0.5 } else { a * a };
    let root = if big { square.sqrt() } else { x };
    let excess = root * asin_excess::<I>(square);
    let rest = excess + if big { lost_by_sqrt::<I>(square, root) } else { 0.0 };
    // 2 s, pi - 2 s or pi/2 - s, where s = root + rest.
    let factor = if big { 2.0 } else { 1.0 };
    let whole = if big { PI } else { FRAC_PI_2 };
    let whole_low = if big { 2.0 * PI_2_LO } else { PI_2_LO };
    let high = fma::<I, _>(root, -factor, whole);
    let low = fma::<I, _>(root, -factor, whole - high) + whole_low;
    let complement = high + fma::<I, _>(rest, -factor, low);
    if big && x > 0.0 { 2.0 * root + 2.0 * rest } else { complement }
}

/// Returns e^x in f64 with an error of 1e-11, enough to round to f32, for results in its range.
#[inline(always)]
fn exp_narrow<I: Isa>(x: f64) -> f64 {
    let (n, r) = wide::split_ln2::<I>(wide::limited(x, -125.0, 125.0));
    let q = horner::<I, _, 7>(
        r,
        [
            0.499_999_999_995_227_15,
            0.166_666_667_869_154_27,
            0.041_666_667_052_186_85,
            0.008_333_281_186_647_555,
            0.001_388_879_672_156_067_1,
            0.000_199_092_993_155_754_38,
            2.488_748_522_871_686_4e-5,
        ],
    );
    (fma::<I, _>(r * r, q, r) + 1.0) * wide::exp2i(n)
}

/// Returns log(2^e (1 + f)) in f64 with an error of 1e-12, enough to round to f32.
#[inline(always)]
fn log_narrow_of_split<I: Isa>(e: f64, f: f64) -> f64 {
    let p = horner::<I, _, 14>(
        f,
        [
            -0.499_999_999_991_478_2,
            0.333_333_333_114_981_3,
            -0.250_000_002_948_968_4,
            0.200_000_041_842_917_48,
            -0.166_666_421_931_952_52,
            0.142_854_362_902,
            -0.125_007_382_072_332_97,
            0.111_198_099_683_326_03,
            -0.099_932_840_868_128_8,
            0.089_530_752_364_221_45,
            -0.082_653_541_157_841_64,
            0.087_175_063_529_222_14,
            -0.086_492_127_149_742_78,
            0.045_003_907_799_949_755,
        ],
    );
    fma::<I, _>(e, std::f64::consts::LN_2, fma::<I, _>(f * f, p, f))
}

/// Returns the logarithm of a number that is zero, infinite or positive and in the range of f32.
#[inline(always)]
fn log_narrow<I: Isa>(x: f64) -> f64 {
    let (e, f) = wide::split_float(x);
    let v = log_narrow_of_split::<I>(e, f);
    let v = if x == f64::INFINITY { x } else { v };
    if x == 0.0 { f64::NEG_INFINITY } else { v }
}

/// Returns log(1 + x) for x of at least zero.
#[inline(always)]
fn log_1p_narrow<I: Isa>(x: f64) -> f64 {
    let (e, f) = wide::split_float(1.0 + x);
    // Below sqrt 2 the argument itself is known to all digits.
    let v = log_narrow_of_split::<I>(e, if e == 0.0 { x } else { f });
    if x == f64::INFINITY { x } else { v }
}

/// Returns the hyperbolic sine.
#[inline(always)]
pub(crate) fn sinh<I: Isa>(x: f32) -> f32 {
    // With e = e^|x| - 1: sinh |x| = (e + e / (e + 1)) / 2, which does not cancel. e is halved first to avoid
    // overflow.
    let a = f64::from(x.abs());
    let e = wide::exp_m1::<I>(a);
    let v = 0.5 * (e + e / (e + 1.0));
    let v = if a > 90.0 { f64::INFINITY } else { v };
    if x.is_nan() { x } else { (v as f32).copysign(x) }
}

/// Returns the hyperbolic cosine.
#[inline(always)]
pub(crate) fn cosh<I: Isa>(x: f32) -> f32 {
    let e = wide::exp::<I>(f64::from(x.abs()));
    (0.5 * (e + 1.0 / e)) as f32
}

/// Returns the area hyperbolic sine.
#[inline(always)]
pub(crate) fn asinh<I: Isa>(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let v = log_1p_narrow::<I>(a + a * a / (1.0 + (a * a + 1.0).sqrt()));
    // The argument is NaN for an infinity.
    let v = if a.is_finite() { v } else { a };
    (v as f32).copysign(x)
}

/// Returns the area hyperbolic cosine.
#[inline(always)]
pub(crate) fn acosh<I: Isa>(x: f32) -> f32 {
    let t = f64::from(x) - 1.0;
    let v = log_1p_narrow::<I>(t + (t * (t + 2.0)).sqrt());
    if x >= 1.0 { v as f32 } else { f32::NAN }
}

/// Returns the area hyperbolic tangent.
#[inline(always)]
pub(crate) fn atanh<I: Isa>(x: f32) -> f32 {
    let a = f64::from(x.abs());
    let v = 0.5 * log_1p_narrow::<I>(2.0 * a / (1.0 - a));
    let v = if a <= 1.0 { v } else { f64::NAN };
    (v as f32).copysign(x)
}

/// Returns the cube root.
#[inline(always)]
pub(crate) fn cbrt(x: f32) -> f32 {
    let a = x.abs();
    // The number is scaled by a power of eight, away from subnormal numbers and infinity.
    let small = a < 1e-30;
    let large = a > 1e30;
    let a = a * if small {
        16_777_216.0
    } else if large {
        1.0 / 16_777_216.0
    } else {
        1.0
    };
    // The estimate from a third of the exponent has an error of 5 %; Halley's iteration triples the correct
    // digits, once in f32 and once in f64.
    let third = ((u64::from(a.to_bits()) * 0x5555_5556) >> 32) as u32;
    let y = f32::from_bits(third.wrapping_add(0x2a51_19f2));
    let y3 = y * y * y;
    let y = f64::from(y * ((y3 + 2.0 * a) / (2.0 * y3 + a)));
    let a = f64::from(a);
    let y3 = y * y * y;
    let y = y * ((y3 + 2.0 * a) / (2.0 * y3 + a));
    let y = y * if small {
        1.0 / 256.0
    } else if large {
        256.0
    } else {
        1.0
    };
    let plain = x == 0.0 || !x.is_finite();
    if plain { x } else { (y as f32).copysign(x) }
}

/// Returns x^y.
#[inline(always)]
pub(crate) fn pow<I: Isa>(x: f32, y: f32) -> f32 {
    // log and exp in f64 are precise enough even if the exponent magnifies the logarithm's
    // error.
    let a = f64::from(x.abs());
    let yd = f64::from(y);
    let v = exp_narrow::<I>(yd * log_narrow::<I>(a)) as f32;
    let integral = y.floor() == y;
    let half = 0.5 * y;
    let odd = integral && half.floor() != half && y.abs() < 16_777_216.0;
    let negative = x.is_sign_negative();
    let v = if negative && odd { -v } else { v };
    let v = if x < 0.0 && !integral && x != f32::NEG_INFINITY { f32::NAN } else { v };
    let v = if x.abs() == 1.0 && y.is_infinite() { 1.0 } else { v };
    let v = if x.is_nan() || y.is_nan() { f32::NAN } else { v };
    if y == 0.0 || x == 1.0 { 1.0 } else { v }
}

/// Returns the remainder of the truncated quotient, where the quotient is below [`REMAINDER_LIMIT`].
#[inline(always)]
pub(crate) fn rem(a: f32, b: f32) -> f32 {
    // In f64, the integral part of the quotient is correct, and its product with `b` is exact.
    let (x, y) = (f64::from(a), f64::from(b));
    let r = (x - (x / y).trunc() * y) as f32;
    let r = if b.is_infinite() && a.is_finite() { a } else { r };
    if r == 0.0 { r.copysign(a) } else { r }
}

/// See [`rem`].
pub(crate) const REMAINDER_LIMIT: f32 = 1e8;

/// Returns the complementary error function.
#[inline(always)]
pub(crate) fn erfc<I: Isa>(x: f32) -> f32 {
    // This is computed in f64, because e^(-x^2) would lose precision if x^2 is large.
    let a = f64::from(x.abs());
    let a = if a > 11.0 { 11.0 } else { a };
    let t = (a - 2.0) / (a + 2.0);
    let p = horner::<I, _, 13>(
        t,
        [
            0.255_395_676_324_278_7,
            -0.427_185_847_663_915_9,
            0.241_658_192_637_159_65,
            -0.078_978_567_903_184_58,
            0.003_732_924_740_793_441,
            0.006_997_276_038_030_909,
            -8.474_191_684_975_03e-4,
            -9.808_762_517_781_69e-4,
            4.486_213_208_559_46e-5,
            1.712_376_010_686_78e-4,
            2.389_215_851_285_18e-5,
            -2.351_620_267_92e-5,
            -8.423_282_185_695_7e-6,
        ],
    );
    let positive = exp_narrow::<I>(-a * a) * p;
    let v = if x < 0.0 { 2.0 - positive } else { positive };
    if x.is_nan() { x } else { v as f32 }
}
