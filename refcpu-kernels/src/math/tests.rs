//! Tests of the largest errors, in units in the last place, over dense sweeps through the compiled loops.

use crate::ComputeType::{F32, F64};
use crate::isa::{Baseline, Isa as _};
use crate::tile::{Opcode, TileOp, kernel};

fn run_f32(op: TileOp, x: &[f32]) -> Vec<f32> {
    let k = kernel(Opcode::Tile(op), F32, &[F32]).unwrap();
    let mut out = vec![0f32; x.len()];
    let src = x.as_ptr().cast_mut().cast();
    // SAFETY: both arrays have this many elements and do not overlap.
    unsafe { k.call(out.as_mut_ptr().cast(), [src, src, src], x.len()) };
    out
}

fn run_f64(op: TileOp, x: &[f64]) -> Vec<f64> {
    let k = kernel(Opcode::Tile(op), F64, &[F64]).unwrap();
    let mut out = vec![0f64; x.len()];
    let src = x.as_ptr().cast_mut().cast();
    // SAFETY: both arrays have this many elements and do not overlap.
    unsafe { k.call(out.as_mut_ptr().cast(), [src, src, src], x.len()) };
    out
}

/// Returns the distance of `got` from `want` in units in the last place of an f32 near `want`.
fn ulps_f32(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got.to_bits() == rounded.to_bits() || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    if got.is_nan() || want.is_nan() || got.is_infinite() || rounded.is_infinite() {
        return f64::INFINITY;
    }
    if got == 0.0 && rounded == 0.0 {
        return if got.is_sign_negative() == want.is_sign_negative() { 0.0 } else { f64::INFINITY };
    }
    let exponent = (rounded.abs().max(f32::MIN_POSITIVE).to_bits() >> 23) as i32 - 127 - 23;
    (f64::from(got) - want).abs() / 2f64.powi(exponent)
}

fn ulps_f64(got: f64, want: f64) -> f64 {
    if got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()) {
        return 0.0;
    }
    if got.is_nan() || want.is_nan() || got.is_infinite() || want.is_infinite() {
        return f64::INFINITY;
    }
    let key = |x: f64| {
        let b = x.to_bits() as i64;
        if b < 0 { i64::MIN - b } else { b }
    };
    if got == want {
        return f64::INFINITY; // zeros of different sign
    }
    key(got).abs_diff(key(want)) as f64
}

/// Returns f32 values at a constant stride of their bits, and special values.
fn sweep_f32() -> Vec<f32> {
    let mut x: Vec<f32> = (0..=u32::MAX).step_by(4099).map(f32::from_bits).collect();
    for i in -200_000..200_000 {
        x.push(i as f32 * 1e-4);
        x.push(i as f32 * 7.3e-6);
    }
    x.extend([
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::MIN,
    ]);
    x.extend([
        1e-45,
        -1e-45,
        88.722_83,
        88.722_84,
        -103.97,
        -104.0,
        -87.4,
        0.999_999_94,
        -0.999_999_94,
        1.000_000_1,
    ]);
    x
}

fn sweep_f64() -> Vec<f64> {
    let mut x: Vec<f64> = (0..=u64::MAX).step_by(100_000_000_003_333).map(f64::from_bits).collect();
    for i in -100_000..100_000 {
        x.push(f64::from(i) * 1.000_123e-3);
        x.push(f64::from(i) * 7.3e-6);
        x.push(f64::from(i) * 1e-12);
    }
    x.extend([
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MIN_POSITIVE,
        f64::MAX,
        f64::MIN,
    ]);
    x.extend([5e-324, -5e-324, 709.782_712_893_384, 709.79, -745.1, -745.2, -746.0]);
    x
}

type Reference = fn(f64) -> f64;

fn wide(op: TileOp) -> impl Fn(&[f32]) -> Vec<f64> {
    move |x| run_f64(op, &x.iter().map(|v| f64::from(*v)).collect::<Vec<_>>())
}

/// Returns the limit for this machine: without fused multiply-add, some rounding errors are not compensated.
fn here(limit: f64) -> f64 {
    if crate::isa::level() == crate::isa::Level::Baseline && !Baseline::FMA { limit + 1.2 } else { limit }
}

fn check_f32(op: TileOp, limit: f64, reference: impl Fn(&[f32]) -> Vec<f64>, report: &mut Vec<String>) {
    let x = sweep_f32();
    let got = run_f32(op, &x);
    let want = reference(&x);
    let (mut worst, mut at) = (0.0, 0);
    for i in 0..x.len() {
        let e = ulps_f32(got[i], want[i]);
        if e > worst {
            (worst, at) = (e, i);
        }
    }
    println!("f32 {op:?}: {worst:.3} ulp at {:e} ({:e} for {:e})", x[at], got[at], want[at]);
    if worst > here(limit) {
        report.push(format!("f32 {op:?}: {worst} ulp at {:e}: {:e} for {:e}", x[at], got[at], want[at]));
    }
}

fn check_f64(op: TileOp, limit: f64, reference: Reference, report: &mut Vec<String>) {
    let x = sweep_f64();
    let got = run_f64(op, &x);
    let (mut worst, mut at) = (0.0, 0);
    for i in 0..x.len() {
        let e = ulps_f64(got[i], reference(x[i]));
        if e > worst {
            (worst, at) = (e, i);
        }
    }
    println!("f64 {op:?}: {worst} ulp at {:e} ({:e} for {:e})", x[at], got[at], reference(x[at]));
    if worst > limit {
        report.push(format!(
            "f64 {op:?}: {worst} ulp at {:e}: {:e} for {:e}",
            x[at],
            got[at],
            reference(x[at])
        ));
    }
}

#[test]
fn functions_of_f32_are_within_their_error_bounds() {
    let mut report = vec![];
    let cases: [(TileOp, f64, Reference); 18] = [
        (TileOp::Exponential, 1.1, f64::exp),
        (TileOp::ExponentialMinusOne, 1.05, f64::exp_m1),
        (TileOp::Log, 1.0, f64::ln),
        (TileOp::LogPlusOne, 0.95, f64::ln_1p),
        (TileOp::Tanh, 0.9, f64::tanh),
        (TileOp::Logistic, 1.6, |x| 1.0 / (1.0 + (-x).exp())),
        (TileOp::Sine, 0.55, f64::sin),
        (TileOp::Cosine, 0.55, f64::cos),
        (TileOp::Tan, 1.0, f64::tan),
        (TileOp::Asin, 0.75, f64::asin),
        (TileOp::Acos, 0.75, f64::acos),
        (TileOp::Atan, 0.7, f64::atan),
        (TileOp::Sinh, 1.0, f64::sinh),
        (TileOp::Cosh, 1.0, f64::cosh),
        (TileOp::Asinh, 1.0, super::f64::asinh),
        (TileOp::Acosh, 1.0, super::f64::acosh),
        (TileOp::Cbrt, 1.0, f64::cbrt),
        (TileOp::Sqrt, 0.5, f64::sqrt),
    ];
    for (op, limit, f) in cases {
        check_f32(op, limit, |x| x.iter().map(|v| f(f64::from(*v))).collect(), &mut report);
    }
    check_f32(
        TileOp::Atanh,
        1.0,
        |x| x.iter().map(|v| super::f64::atanh(f64::from(*v))).collect(),
        &mut report,
    );
    // Denormal numbers are scaled first; the largest error is theirs.
    check_f32(TileOp::Rsqrt, 1.35, |x| x.iter().map(|v| 1.0 / f64::from(*v).sqrt()).collect(), &mut report);
    check_f32(TileOp::Erf, 1.5, wide(TileOp::Erf), &mut report);
    check_f32(TileOp::Erfc, 1.0, wide(TileOp::Erfc), &mut report);
    check_f32(TileOp::ErfInv, 4.0, wide(TileOp::ErfInv), &mut report);
    assert!(report.is_empty(), "{report:#?}");
}

#[test]
fn functions_of_f64_are_within_their_error_bounds() {
    let mut report = vec![];
    let cases: [(TileOp, f64, Reference); 9] = [
        (TileOp::Exponential, 1.0, f64::exp),
        (TileOp::ExponentialMinusOne, 2.0, f64::exp_m1),
        (TileOp::Log, 1.0, f64::ln),
        (TileOp::LogPlusOne, 2.0, f64::ln_1p),
        (TileOp::Tanh, 4.0, f64::tanh),
        (TileOp::Sine, 1.0, f64::sin),
        (TileOp::Cosine, 1.0, f64::cos),
        (TileOp::Tan, 3.0, f64::tan),
        (TileOp::Sqrt, 0.0, f64::sqrt),
    ];
    for (op, limit, f) in cases {
        check_f64(op, limit, f, &mut report);
    }
    assert!(report.is_empty(), "{report:#?}");
}

/// Values that are nearly half way between two numbers, correctly rounded: an error of a few hundredths of a
/// unit shows.
const NEARLY_HALF_WAY: &[(TileOp, f64, f64)] = &[
    (TileOp::Log, 0.7071067811865467, -0.34657359027997386),
    (TileOp::Log, 0.7063806261752379, -0.34760105620773446),
    (TileOp::Log, 0.6973636482814187, -0.360448270731444),
    (TileOp::Log, 1.4074096895650676, 0.3417509152538164),
    (TileOp::LogPlusOne, 0.40317020472288356, 0.3387341086039582),
    (TileOp::LogPlusOne, -0.3021419842626487, -0.3597396127606414),
    (TileOp::Sine, 2.2826268530053753, 0.7571674072850755),
    (TileOp::Sine, -5.443389250726776, 0.7445069797495242),
    (TileOp::Sine, 0.8525120669750483, 0.7529359547925235),
    (TileOp::Cosine, 43.235539932233365, 0.7338954238020284),
    (TileOp::Cosine, -8.651831363035088, -0.7158563254570636),
];

#[test]
fn logarithms_and_sines_of_f64_are_rounded_once() {
    for (op, x, want) in NEARLY_HALF_WAY {
        let got = run_f64(*op, &[*x])[0];
        assert!(ulps_f64(got, *want) <= here(0.0), "{op:?} {x} = {got} not {want}");
    }
}

#[test]
fn erfc_keeps_its_digits_where_it_is_smallest() {
    for (x, want) in
        [(24.999999999999986, 8.300172571202425e-274), (23.500000000000057, 3.4740594956406817e-242)]
    {
        let got = run_f64(TileOp::Erfc, &[x])[0];
        assert!(ulps_f64(got, want) <= 4.0, "{x}: {got:e} not {want:e}");
    }
}

#[test]
fn the_complex_logarithm_keeps_its_digits_near_the_unit_circle() {
    use std::f64::consts::FRAC_1_SQRT_2;
    // Parts of a number, and the logarithm of its modulus.
    for (x, y, want) in [
        (0.9950041652780258, 0.09983341664682815, 5.443865135752469e-17),
        (FRAC_1_SQRT_2, FRAC_1_SQRT_2.next_down(), -1.014653635756952e-17),
        (9.632679474766714e-05, 0.9999999953605743, -2.853604266163864e-17),
        (-0.8, 0.6, 2.2204460492503132e-17),
        (1.0, 1e-9, 5e-19),
        (0.9999999, 0.0001, -9.50000039723646e-08),
        (0.6493866421536486, 4.250415652751145e-07, -0.43172698904483037),
    ] {
        let got = super::complex::log([x, y])[0];
        assert!(ulps_f64(got, want) <= 2.0, "log({x} + {y}i) = {got:e} not {want:e}");
    }
}

#[test]
fn a_power_whose_logarithm_is_infinite_has_its_modulus() {
    use super::complex::{exp, pow};
    let inf = f64::INFINITY;
    assert_eq!(pow([-5.0, -inf], [-5.0, -inf]), [0.0, 0.0]);
    // The exponential itself is NaN there, as XLA has it.
    for (x, y) in [(-inf, inf), (inf, -inf)] {
        assert!(exp([x, y]).iter().all(|part| part.is_nan()), "{x} {y}");
    }
}

/// x, erf(x), erfc(x), to 17 digits.
const ERF_TABLE: &[(f64, f64, f64)] = &[
    (0.0, 0.0, 1.0),
    (1e-300, 1.1283791670955126e-300, 1.0),
    (-1e-300, -1.1283791670955126e-300, 1.0),
    (1e-10, 1.1283791670955126e-10, 0.999999999887162),
    (-1e-10, -1.1283791670955126e-10, 1.000000000112838),
    (0.1, 0.1124629160182849, 0.887537083981715),
    (-0.1, -0.1124629160182849, 1.1124629160182848),
    (0.25, 0.27632639016823696, 0.7236736098317631),
    (-0.25, -0.27632639016823696, 1.276326390168237),
    (0.4999, 0.5204119951613866, 0.4795880048386134),
    (-0.4999, -0.5204119951613866, 1.5204119951613866),
    (0.5, 0.5204998778130465, 0.4795001221869535),
    (-0.5, -0.5204998778130465, 1.5204998778130465),
    (0.6, 0.6038560908479259, 0.3961439091520741),
    (-0.6, -0.6038560908479259, 1.6038560908479258),
    (0.75, 0.7111556336535151, 0.28884436634648486),
    (-0.75, -0.7111556336535151, 1.7111556336535152),
    (0.8499, 0.7706132659796439, 0.22938673402035614),
    (-0.8499, -0.7706132659796439, 1.7706132659796439),
    (0.8501, 0.7707228399232761, 0.229277160076724),
    (-0.8501, -0.7707228399232761, 1.770722839923276),
    (0.9, 0.7969082124228322, 0.20309178757716786),
    (-0.9, -0.7969082124228322, 1.7969082124228322),
    (1.0, 0.8427007929497149, 0.15729920705028513),
    (-1.0, -0.8427007929497149, 1.8427007929497148),
    (1.25, 0.9229001282564583, 0.07709987174354177),
    (-1.25, -0.9229001282564583, 1.9229001282564582),
    (1.5, 0.9661051464753108, 0.033894853524689274),
    (-1.5, -0.9661051464753108, 1.9661051464753108),
    (2.0, 0.9953222650189527, 0.004677734981047266),
    (-2.0, -0.9953222650189527, 1.9953222650189528),
    (2.5, 0.999593047982555, 0.0004069520174449589),
    (-2.5, -0.999593047982555, 1.999593047982555),
    (3.0, 0.9999779095030014, 2.209049699858544e-05),
    (-3.0, -0.9999779095030014, 1.9999779095030015),
    (4.0, 0.9999999845827421, 1.541725790028002e-08),
    (-4.0, -0.9999999845827421, 1.999999984582742),
    (5.0, 0.9999999999984626, 1.537459794428035e-12),
    (-5.0, -0.9999999999984626, 1.9999999999984626),
    (5.9, 0.9999999999999999, 7.190409783550478e-17),
    (-5.9, -0.9999999999999999, 2.0),
    (6.5, 1.0, 3.8421483271206475e-20),
    (-6.5, -1.0, 2.0),
    (8.0, 1.0, 1.1224297172982926e-29),
    (-8.0, -1.0, 2.0),
    (10.0, 1.0, 2.088487583762545e-45),
    (-10.0, -1.0, 2.0),
    (12.5, 1.0, 6.231942781979911e-70),
    (-12.5, -1.0, 2.0),
    (15.0, 1.0, 7.212994172451207e-100),
    (-15.0, -1.0, 2.0),
    (20.0, 1.0, 5.395865611607901e-176),
    (-20.0, -1.0, 2.0),
    (25.0, 1.0, 8.300172571196523e-274),
    (-25.0, -1.0, 2.0),
    (26.0, 1.0, 5.663192408856143e-296),
    (-26.0, -1.0, 2.0),
];

/// x, erf_inv(x), to 17 digits.
const ERF_INV_TABLE: &[(f64, f64)] = &[
    (1e-300, 8.86226925452758e-301),
    (1e-12, 8.86226925452758e-13),
    (0.01, 0.008862501280950598),
    (0.1, 0.08885599049425769),
    (0.3, 0.2724627147267543),
    (0.5, 0.4769362762044699),
    (0.7, 0.7328690779592167),
    (0.9, 1.1630871536766743),
    (0.95, 1.3859038243496777),
    (0.99, 1.8213863677184494),
    (0.995, 1.984872612615532),
    (0.999, 2.3267537655135246),
    (0.9999, 2.75106390571208),
    (0.999999, 3.458910737275499),
    (0.999999999, 4.320005388105362),
    (0.999999999999, 5.042031898572696),
    (0.9999999999999999, 5.8635847487551676),
];

#[test]
fn error_functions_agree_with_a_table() {
    let x: Vec<f64> = ERF_TABLE.iter().map(|r| r.0).collect();
    let (erf, erfc) = (run_f64(TileOp::Erf, &x), run_f64(TileOp::Erfc, &x));
    let mut worst = [0f64; 3];
    for (i, row) in ERF_TABLE.iter().enumerate() {
        worst[0] = worst[0].max(ulps_f64(erf[i], row.1));
        worst[1] = worst[1].max(ulps_f64(erfc[i], row.2));
        assert!(ulps_f64(erf[i], row.1) <= 2.0, "erf {} = {:e} not {:e}", row.0, erf[i], row.1);
        assert!(ulps_f64(erfc[i], row.2) <= 4.0, "erfc {} = {:e} not {:e}", row.0, erfc[i], row.2);
    }
    let x: Vec<f64> = ERF_INV_TABLE.iter().map(|r| r.0).collect();
    let inv = run_f64(TileOp::ErfInv, &x);
    for (i, row) in ERF_INV_TABLE.iter().enumerate() {
        worst[2] = worst[2].max(ulps_f64(inv[i], row.1));
        assert!(ulps_f64(inv[i], row.1) <= 4.0, "erf_inv {} = {:e} not {:e}", row.0, inv[i], row.1);
    }
    println!("f64 erf, erfc, erf_inv: {worst:?} ulp");
}

#[test]
fn powers_and_angles_of_f32_are_within_a_unit() {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        0.5,
        -0.5,
        3.0,
        -3.0,
        1e30,
        -1e30,
        1e-40,
        -1e-40,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        16_777_217.0,
        0.1,
        -7.7,
        100.0,
        1.000_001,
        0.999_999,
    ];
    let (mut x, mut y) = (vec![], vec![]);
    for a in special {
        for b in special {
            x.push(a);
            y.push(b);
        }
    }
    for i in 0..200_000u32 {
        x.push(f32::from_bits(i.wrapping_mul(2_654_435_761)));
        y.push(f32::from_bits(i.wrapping_mul(40_503).wrapping_mul(2_246_822_519)));
        x.push(0.001 + (i % 997) as f32 * 0.37);
        y.push(((i / 997) as f32 - 100.0) * 0.19);
    }
    for (op, f) in [(TileOp::Power, f64::powf as fn(f64, f64) -> f64), (TileOp::Atan2, f64::atan2)] {
        let k = kernel(Opcode::Tile(op), F32, &[F32, F32]).unwrap();
        let mut out = vec![0f32; x.len()];
        let (px, py) = (x.as_ptr().cast_mut().cast(), y.as_ptr().cast_mut().cast());
        // SAFETY: the arrays have this many elements and do not overlap.
        unsafe { k.call(out.as_mut_ptr().cast(), [px, py, py], x.len()) };
        let mut worst = 0f64;
        for i in 0..x.len() {
            let want = f(f64::from(x[i]), f64::from(y[i]));
            let e = ulps_f32(out[i], want);
            assert!(e <= here(1.1), "{op:?} {:e} {:e} = {:e} not {want:e}", x[i], y[i], out[i]);
            worst = worst.max(e);
        }
        println!("f32 {op:?}: {worst:.3} ulp");
    }
}
