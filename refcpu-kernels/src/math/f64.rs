//! Functions of one f64. All other functions use the standard library, element by element.

use super::{fma, horner};
use crate::isa::Isa;
use std::f64::consts::{FRAC_2_PI, LN_2, LOG2_E, PI};

/// 2^52 * 1.5: adding and subtracting it rounds to an integer, which the low mantissa bits then hold.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// ln 2 in two parts, the first of 32 bits.
const LN_2_HI: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_2_LO: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// Coefficients of (e^r - 1 - r) / r^2.
const EXP: [f64; 11] = [
    0.5,
    0.166_666_666_666_666_77,
    0.041_666_666_666_666_7,
    0.008_333_333_333_321_577,
    0.001_388_888_888_886_674_3,
    1.984_126_988_626_887_5e-4,
    2.480_158_736_074_552e-5,
    2.755_724_405_914_386e-6,
    2.755_724_259_739_593e-7,
    2.510_909_139_942_954e-8,
    2.092_449_323_658_574e-9,
];

/// Splits `x` into `n` and `r` with x = n ln 2 + r, |r| <= ln 2 / 2; `n` also as an integer. |x| must be
/// below 2^20.
#[inline(always)]
pub(super) fn split_ln2<I: Isa>(x: f64) -> (i64, f64) {
    let t = fma::<I, _>(x, LOG2_E, ROUND);
    let n = t - ROUND;
    let r = fma::<I, _>(n, -LN_2_LO, fma::<I, _>(n, -LN_2_HI, x));
    (t.to_bits().wrapping_sub(ROUND.to_bits()) as i64, r)
}

/// Returns 2^n for -1022 <= n <= 1023.
#[inline(always)]
pub(super) fn exp2i(n: i64) -> f64 {
    f64::from_bits((n.wrapping_add(1023) as u64) << 52)
}

/// Limits a value to a range; NaN remains NaN.
#[inline(always)]
pub(super) fn limited(x: f64, low: f64, high: f64) -> f64 {
    let x = if x > high { high } else { x };
    if x < low { low } else { x }
}

/// Returns e^x.
#[inline(always)]
pub(crate) fn exp<I: Isa>(x: f64) -> f64 {
    let (n, r) = split_ln2::<I>(limited(x, -746.0, 710.0));
    let p = fma::<I, _>(r * r, horner::<I, _, 11>(r, EXP), r) + 1.0;
    // The scaling has two steps, so that subnormal results are rounded once. (n + 2048) / 2 - 1024 is a shift
    // without sign.
    let half = ((n.wrapping_add(2048) as u64 >> 1) as i64).wrapping_sub(1024);
    p * exp2i(half) * exp2i(n.wrapping_sub(half))
}

/// Returns e^x - 1.
#[inline(always)]
pub(crate) fn exp_m1<I: Isa>(x: f64) -> f64 {
    let (n, r) = split_ln2::<I>(limited(x, -100.0, 710.0));
    let p = fma::<I, _>(r * r, horner::<I, _, 11>(r, EXP), r);
    let scale = exp2i(n.wrapping_sub(1));
    let value = 2.0 * fma::<I, _>(p, scale, scale - 0.5);
    if n == 0 { if x == 0.0 { x } else { p } } else { value }
}

/// Returns the exponent and mantissa of a positive number: x = 2^e (1 + f) with 1 + f in [sqrt 1/2, sqrt 2).
#[inline(always)]
pub(super) fn split_float(x: f64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let small = x < f64::MIN_POSITIVE;
    let bits = if small { x * 4_503_599_627_370_496.0 } else { x }.to_bits();
    let bias = if small { 1023 + 52 } else { 1023 };
    let shifted = bits.wrapping_add(0x3ff0_0000_0000_0000 - SQRT_HALF);
    // The exponent by way of the mantissa of a float: integer to float conversion is not in every instruction
    // set.
    let e =
        f64::from_bits(0x4330_0000_0000_0000 | shifted >> 52) - (4_503_599_627_370_496.0 + f64::from(bias));
    let m = f64::from_bits((shifted & 0xf_ffff_ffff_ffff).wrapping_add(SQRT_HALF));
    (e, m - 1.0)
}

/// Returns log(2^e (1 + f)) for f in the range of [`split_float`], where `lost` must be added to f.
#[inline(always)]
fn log_of_split<I: Isa>(e: f64, f: f64, lost: f64) -> f64 {
    let bottom = 2.0 + f;
    let inverse = 1.0 / bottom;
    let s = f * inverse;
    // The rounding errors of the sum and of the quotient.
    let bottom_lost = f - (bottom - 2.0);
    let s_lost = if I::FMA { (fma::<I, _>(-s, bottom, f) - s * bottom_lost) * inverse } else { 0.0 };
    let z = s * s;
    let r = z * horner::<I, _, 8>(
        z,
        [
            0.666_666_666_666_666_6,
            0.400_000_000_000_062_73,
            0.285_714_285_690_772_3,
            0.222_222_226_481_730_03,
            0.181_817_755_488_206_97,
            0.153_870_961_463_740_36,
            0.132_499_905_578_710_16,
            0.132_525_392_792_941_76,
        ],
    );
    // f - f^2/2 + s (f^2/2 + r) and its sum with e ln 2, each in two parts.
    let half_square = 0.5 * f * f;
    let half_square_lost = 0.5 * lost_by_square::<I>(f, 2.0 * half_square);
    let near = f - half_square;
    let near_low = ((f - near) - half_square) - half_square_lost;
    let factor = half_square + r;
    let factor_low = (half_square - factor) + r;
    let product = s * factor;
    let product_low = if I::FMA { fma::<I, _>(s, factor, -product) } else { 0.0 };
    let product_low = fma::<I, _>(s_lost, fma::<I, _>(r, 2.0, factor), product_low);
    let product_low = fma::<I, _>(s, factor_low + half_square_lost, product_low);
    let whole = e * LN_2_HI;
    let sum = whole + near;
    let sum_low = (whole - sum) + near;
    let high = sum + product;
    let high_low = (sum - high) + product;
    high + (fma::<I, _>(e, LN_2_LO, high_low + sum_low) + (near_low + (product_low + lost)))
}

/// Returns the natural logarithm.
#[inline(always)]
pub(crate) fn log<I: Isa>(x: f64) -> f64 {
    let (e, f) = split_float(x);
    let value = log_of_split::<I>(e, f, 0.0);
    let value = if x == f64::INFINITY { x } else { value };
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    if x >= 0.0 { value } else { f64::NAN }
}

/// Returns log(1 + x).
#[inline(always)]
pub(crate) fn log_1p<I: Isa>(x: f64) -> f64 {
    let u = 1.0 + x;
    let lost = if x.abs() > 1.0 { 1.0 - (u - x) } else { x - (u - 1.0) };
    let (e, f) = split_float(u);
    // d log u = du / u.
    let lost = if x < 1e300 { lost / u } else { 0.0 };
    let value = log_of_split::<I>(e, f, lost);
    // If 1 + x is 1 to half the digits, the series is exact and rounds once.
    let value = if x.abs() < 1e-9 { fma::<I, _>(x * -0.5, x, x) } else { value };
    let value = if x == f64::INFINITY { x } else { value };
    let value = if x == -1.0 { f64::NEG_INFINITY } else { value };
    let value = if x >= -1.0 { value } else { f64::NAN };
    if x == 0.0 { x } else { value }
}

/// Returns 1 / sqrt(x).
#[inline(always)]
pub(crate) fn rsqrt<I: Isa>(x: f64) -> f64 {
    let root = x.sqrt();
    let y = 1.0 / root;
    if !I::FMA {
        return y;
    }
    // The rounding errors of the root and of the division. They are not numbers at zero and infinity.
    let root_lost = fma::<I, _>(-root, root, x) * y * (0.5 * y);
    let rest = fma::<I, _>(-root, y, 1.0) - root_lost;
    let value = fma::<I, _>(y, rest, y);
    if x > 0.0 && x < f64::INFINITY { value } else { y }
}

/// Returns 1 / (1 + e^-x).
#[inline(always)]
pub(crate) fn logistic<I: Isa>(x: f64) -> f64 {
    // With z = e^-|x|: z / (1 + z) left of zero, 1 / (1 + z) right of it, each with one division.
    let z = exp::<I>(-x.abs());
    let sum = 1.0 + z;
    let top = if x < 0.0 { z } else { 1.0 };
    let inverse = 1.0 / sum;
    let value = top * inverse;
    // The rounding errors of the sum and of the division.
    let lost = (1.0 - sum) + z;
    let rest = fma::<I, _>(-value, lost, fma::<I, _>(-value, sum, top));
    let value = if I::FMA { fma::<I, _>(rest, inverse, value) } else { top / sum };
    if x.is_nan() { x } else { value }
}

/// Returns the hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let e = exp_m1::<I>(2.0 * if a > 20.0 { 20.0 } else { a });
    let v = (e / (e + 2.0)).copysign(x);
    if x.is_nan() { x } else { v }
}

/// Above this, [`sin`], [`cos`] and [`tan`] need the standard library's.
pub(crate) const TRIG_LIMIT: f64 = 1e6;

/// Splits `x` into a multiple of pi/2 (its last bits) and a rest in [-pi/4, pi/4], in two parts.
#[inline(always)]
fn split_pi_2(x: f64) -> (u64, f64, f64) {
    // pi/2 in three parts, two of 33 bits, whose products with an integer below 2^20 are exact.
    const P1: f64 = f64::from_bits(0x3ff9_21fb_5440_0000);
    const P2: f64 = f64::from_bits(0x3dd0_b461_1a60_0000);
    const P3: f64 = f64::from_bits(0x3ba3_198a_2e03_7073);
    let t = x * FRAC_2_PI + ROUND;
    let n = t - ROUND;
    let a = x - n * P1;
    let b = n * P2;
    let r = a - b;
    // The rounding error of the subtraction.
    let bb = a - r;
    let e = (a - (r + bb)) + (bb - b);
    let low = e - n * P3;
    let y = r + low;
    (t.to_bits() & 3, y, (r - y) + low)
}

/// (sin(r) / r - 1) / r^2 in powers of r^2; the first coefficient's second part is -9.25e-18.
const SIN: [f64; 7] = [
    -0.166_666_666_666_666_66,
    0.008_333_333_333_333_333,
    -1.984_126_984_126_896_3e-4,
    2.755_731_922_232_443e-6,
    -2.505_210_723_603_745e-8,
    1.605_868_432_917_585_5e-10,
    -7.595_306_678_125_121e-13,
];
const SIN_0_LO: f64 = -9.251_858_538_542_97e-18;
/// (cos(r) - 1 + r^2 / 2) / r^4 in powers of r^2; the first coefficient's second part is 2.3e-18.
const COS: [f64; 7] = [
    0.041_666_666_666_666_664,
    -0.001_388_888_888_888_889,
    2.480_158_730_158_681_4e-5,
    -2.755_731_922_306_237e-7,
    2.087_675_634_899_154_3e-9,
    -1.147_054_578_186_168_2e-11,
    4.750_658_120_566_325e-14,
];
const COS_0_LO: f64 = 2.312_964_634_635_743e-18;

/// Returns the rounding error of `square`, which is `r * r` rounded.
#[inline(always)]
fn lost_by_square<I: Isa>(r: f64, square: f64) -> f64 {
    if I::FMA { fma::<I, _>(r, r, -square) } else { 0.0 }
}

/// Returns the sine of r + low in two parts, for r in [-pi/4, pi/4].
#[inline(always)]
fn sin_parts<I: Isa>(r: f64, low: f64) -> (f64, f64) {
    let u = r * r;
    // The cube in two parts.
    let v = u * r;
    let v_low = if I::FMA { fma::<I, _>(u, r, -v) + r * lost_by_square::<I>(r, u) } else { 0.0 };
    let [_, higher @ ..] = SIN;
    let p = fma::<I, _>(u, horner::<I, _, 6>(u, higher), SIN_0_LO);
    let rest = fma::<I, _>(v_low, SIN[0], low * fma::<I, _>(u, -0.5, 1.0));
    let near = fma::<I, _>(v, SIN[0], r);
    let near_low = fma::<I, _>(v, SIN[0], r - near);
    let s = near_low + fma::<I, _>(v, p, rest);
    let high = near + s;
    (high, (near - high) + s)
}

/// Returns the cosine of r + low in two parts, for r in [-pi/4, pi/4].
#[inline(always)]
fn cos_parts<I: Isa>(r: f64, low: f64) -> (f64, f64) {
    let u = r * r;
    let u_lost = lost_by_square::<I>(r, u);
    let h = 0.5 * u;
    let w = 1.0 - h;
    // The fourth power in two parts.
    let v = u * u;
    let v_low = fma::<I, _>(u + u, u_lost, lost_by_square::<I>(u, v));
    let [_, higher @ ..] = COS;
    let p = fma::<I, _>(u, horner::<I, _, 6>(u, higher), COS_0_LO);
    let slope = r * fma::<I, _>(u, -1.0 / 6.0, 1.0);
    let lost = fma::<I, _>(u_lost, -0.5, fma::<I, _>(-slope, low, (1.0 - w) - h));
    let rest = fma::<I, _>(v_low, COS[0], lost);
    let near = fma::<I, _>(v, COS[0], w);
    let near_low = fma::<I, _>(v, COS[0], w - near);
    let s = near_low + fma::<I, _>(v, p, rest);
    let high = near + s;
    (high, (near - high) + s)
}

/// Returns the sine of a number in [-pi/4, pi/4].
#[inline(always)]
pub(crate) fn sin_poly<I: Isa>(r: f64) -> f64 {
    let [_, higher @ ..] = SIN;
    let u = r * r;
    fma::<I, _>(u * r, fma::<I, _>(u, horner::<I, _, 6>(u, higher), SIN[0]), r)
}

/// Returns the cosine of a number in [-pi/4, pi/4].
#[inline(always)]
pub(crate) fn cos_poly<I: Isa>(r: f64) -> f64 {
    let u = r * r;
    fma::<I, _>(u * u, horner::<I, _, 7>(u, COS), fma::<I, _>(u, -0.5, 1.0))
}

/// Returns the sine, for |x| up to [`TRIG_LIMIT`].
#[inline(always)]
pub(crate) fn sin<I: Isa>(x: f64) -> f64 {
    let (n, r, low) = split_pi_2(x);
    let v = if n & 1 == 0 { sin_parts::<I>(r, low).0 } else { cos_parts::<I>(r, low).0 };
    let v = f64::from_bits(v.to_bits() ^ (n & 2) << 62);
    if x == 0.0 { x } else { v }
}

/// Returns the cosine, for |x| up to [`TRIG_LIMIT`].
#[inline(always)]
pub(crate) fn cos<I: Isa>(x: f64) -> f64 {
    let (n, r, low) = split_pi_2(x);
    let v = if n & 1 == 0 { cos_parts::<I>(r, low).0 } else { sin_parts::<I>(r, low).0 };
    f64::from_bits(v.to_bits() ^ (n.wrapping_add(1) & 2) << 62)
}

/// (erf(x) / x) - 1 of a number below 0.85, by its square.
const ERF: [f64; 11] = [
    0.128_379_167_095_512_56,
    -0.376_126_389_031_833_55,
    0.112_837_916_709_330_1,
    -0.026_866_170_640_329_19,
    0.005_223_977_571_930_533,
    -8.548_323_540_777_122e-4,
    1.205_519_140_854_172_6e-4,
    -1.492_194_249_512_454_5e-5,
    1.639_936_826_147_431e-6,
    -1.569_871_018_273_799e-7,
    1.068_010_502_497_288e-8,
];
const ERF_SMALL: f64 = 0.85;

/// (1 + 2x) e^(x^2) erfc(x) of a number from 0.5 to 28, by (x - 2) / (x + 2).
const ERFCX: [f64; 23] = [
    1.2769783815525286,
    -0.09276382658574578,
    -0.1660303976152796,
    0.16405128003340194,
    -0.05422000099284751,
    -0.008034015080133149,
    0.00872265390150594,
    0.0012713389030257617,
    -0.001456814358819861,
    -0.0004543398542709275,
    0.00020637090419078745,
    0.0001510299358809538,
    -1.5290918066379425e-06,
    -3.636829555015204e-05,
    -1.3437553654808847e-05,
    3.503677540465619e-06,
    5.162282534215119e-06,
    1.980804259888293e-06,
    -7.845766409082796e-07,
    -1.4512370475296654e-06,
    6.921387328477979e-08,
    4.910000862222013e-07,
    -1.2986446873415306e-07,
];

/// Returns erfc of a number of at least 0.5.
#[inline(always)]
fn erfc_positive<I: Isa>(a: f64) -> f64 {
    let a = if a > 28.0 { 28.0 } else { a };
    let p = horner::<I, _, 23>((a - 2.0) / (a + 2.0), ERFCX) / fma::<I, _>(a, 2.0, 1.0);
    // x^2 = z^2 + d, z^2 exact.
    let z = f64::from_bits(a.to_bits() & !0x7ff_ffff);
    let d = (z - a) * (z + a);
    let correction = d * fma::<I, _>(d, fma::<I, _>(d, 1.0 / 6.0, 0.5), 1.0);
    let p = fma::<I, _>(p, correction, p);
    exp::<I>(-z * z) * p
}

/// Returns the error function.
#[inline(always)]
pub(crate) fn erf<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let small = fma::<I, _>(x, horner::<I, _, 11>(x * x, ERF), x);
    let large = (1.0 - erfc_positive::<I>(if a < 0.5 { 0.5 } else { a })).copysign(x);
    let v = if a < ERF_SMALL { small } else { large };
    if x.is_nan() { x } else { v }
}

/// Returns the complementary error function.
#[inline(always)]
pub(crate) fn erfc<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let near = 1.0 - fma::<I, _>(x, horner::<I, _, 11>(x * x, ERF), x);
    let far = erfc_positive::<I>(if a < 0.5 { 0.5 } else { a });
    let far = if x < 0.0 { 2.0 - far } else { far };
    let v = if a < 0.5 { near } else { far };
    if x.is_nan() { x } else { v }
}

/// Returns the inverse of the error function.
#[inline(always)]
pub(crate) fn erf_inv<I: Isa>(x: f64) -> f64 {
    let a = x.abs();
    let w = -log_1p::<I>(-a * a);
    // A guess: a fit for the middle, the asymptotic series for the tails.
    let s = w - 2.5;
    let middle =
        a * horner::<I, _, 6>(s, [1.501_409, 0.246_641, -0.004_176_6, -0.001_254_2, 2.178e-4, -4.3e-6]);
    let root = (if w < 1.0 { 1.0 } else { w }).sqrt();
    let far = (w + LN_2 - log::<I>(root * PI.sqrt())).sqrt();
    let mut y = if w < 6.0 { middle } else { far };
    for _ in 0..2 {
        // Halley's step; the error is measured by erfc where erf has no digits left.
        let error = if a < 0.5 { erf::<I>(y) - a } else { (1.0 - a) - erfc::<I>(y) };
        let t = error * (0.5 * PI.sqrt()) * exp::<I>(y * y);
        y -= t / fma::<I, _>(y, t, 1.0);
    }
    let v = if a < 1e-200 { x * (0.5 * PI.sqrt()) } else { y.copysign(x) };
    let v = if a == 1.0 { f64::INFINITY.copysign(x) } else { v };
    if a <= 1.0 { v } else { f64::NAN }
}

/// Returns the tangent, for |x| up to [`TRIG_LIMIT`].
#[inline(always)]
pub(crate) fn tan<I: Isa>(x: f64) -> f64 {
    let (n, r, low) = split_pi_2(x);
    let (s, c) = (sin_parts::<I>(r, low), cos_parts::<I>(r, low));
    let (top, bottom) = if n & 1 == 0 { (s, c) } else { ((-c.0, -c.1), s) };
    let inverse = 1.0 / bottom.0;
    let q = top.0 * inverse;
    // The rest of the dividend, and the parts that follow it.
    let rest = fma::<I, _>(-q, bottom.0, top.0) + fma::<I, _>(-q, bottom.1, top.1);
    let v = if I::FMA { fma::<I, _>(rest, inverse, q) } else { top.0 / bottom.0 };
    if x == 0.0 { x } else { v }
}

/// Returns the area hyperbolic sine.
pub(crate) fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let v = if a > 1e9 { a.ln() + LN_2 } else { (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p() };
    v.copysign(x)
}

/// Returns the area hyperbolic cosine.
pub(crate) fn acosh(x: f64) -> f64 {
    if x < 1.0 {
        f64::NAN
    } else if x > 1e9 {
        x.ln() + LN_2
    } else {
        let t = x - 1.0;
        (t + (t * (t + 2.0)).sqrt()).ln_1p()
    }
}

/// Returns the area hyperbolic tangent.
pub(crate) fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}
