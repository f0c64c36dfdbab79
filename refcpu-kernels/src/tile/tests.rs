use super::*;
use crate::{ComputeType as C, DType};

const TYPES: [C; 13] =
    [C::Pred, C::S8, C::S16, C::S32, C::S64, C::U8, C::U16, C::U32, C::U64, C::F32, C::F64, C::C64, C::C128];

/// An aligned array of elements with a mix of ordinary and special values.
struct Tile {
    words: Vec<u128>,
    size: usize,
}

impl Tile {
    fn new(ty: C, n: usize, salt: u64) -> Self {
        let mut t = Self { words: vec![0; (n * ty.size()).div_ceil(16).max(1)], size: ty.size() };
        for i in 0..n {
            let bits = value(ty, (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(salt));
            let at = t.at(i);
            // SAFETY: element `i` lies within the words.
            unsafe { std::ptr::copy_nonoverlapping(bits.to_le_bytes().as_ptr(), at, ty.size()) };
        }
        t
    }

    fn at(&mut self, i: usize) -> *mut u8 {
        self.words.as_mut_ptr().cast::<u8>().wrapping_add(i * self.size)
    }

    fn get(&mut self, i: usize) -> u128 {
        let mut b = [0u8; 16];
        // SAFETY: element `i` lies within the words.
        unsafe { std::ptr::copy_nonoverlapping(self.at(i), b.as_mut_ptr(), self.size) };
        u128::from_le_bytes(b)
    }
}

fn value(ty: C, seed: u64) -> u128 {
    let r = seed ^ seed >> 29;
    let float = |r: u64| match r % 23 {
        0 => 0.0,
        1 => -0.0,
        2 => f64::INFINITY,
        3 => f64::NEG_INFINITY,
        4 => f64::NAN,
        5 => 1e-42,
        6 => 1.0,
        7 => -1.0,
        8 => 1e30,
        9 => -2e7,
        _ => ((r >> 8) % 20_011) as f64 * 1e-3 - 10.0,
    };
    match ty {
        C::Pred => u128::from(r & 1),
        C::F32 => u128::from((float(r) as f32).to_bits()),
        C::F64 => u128::from(float(r).to_bits()),
        C::C64 => value(C::F32, r) | value(C::F32, r.rotate_left(17)) << 32,
        C::C128 => value(C::F64, r) | value(C::F64, r.rotate_left(17)) << 64,
        _ => {
            let bits = if r.is_multiple_of(3) { r >> 7 & 0xf } else { r >> 5 };
            u128::from(bits) & ((1u128 << (8 * ty.size())) - 1)
        }
    }
}

/// Returns `true` if the bits are equal, or if both are NaN (in either part).
fn same(ty: C, a: u128, b: u128) -> bool {
    match ty {
        C::F32 => a == b || (f32::from_bits(a as u32).is_nan() && f32::from_bits(b as u32).is_nan()),
        C::F64 => a == b || (f64::from_bits(a as u64).is_nan() && f64::from_bits(b as u64).is_nan()),
        C::C64 => same(C::F32, a & 0xffff_ffff, b & 0xffff_ffff) && same(C::F32, a >> 32, b >> 32),
        C::C128 => {
            same(C::F64, a & u128::from(u64::MAX), b & u128::from(u64::MAX)) && same(C::F64, a >> 64, b >> 64)
        }
        _ => a == b,
    }
}

/// Returns every operation on every type for which there is a loop.
fn all_opcodes() -> Vec<(Opcode, C, Vec<C>)> {
    let mut all = vec![];
    for t in TYPES {
        for op in TileOp::ALL {
            if let Some(r) = op.result(t) {
                all.push((Opcode::Tile(*op), r, vec![t; op.arity()]));
            }
        }
        for d in Direction::ALL {
            all.push((Opcode::Compare(d, Order::Partial), C::Pred, vec![t; 2]));
            all.push((Opcode::Compare(d, Order::Total), C::Pred, vec![t; 2]));
        }
        all.push((Opcode::Select, t, vec![C::Pred, t, t]));
        for opcode in [Opcode::Clamp, Opcode::MulAdd, Opcode::MulSub, Opcode::NegMulAdd] {
            all.push((opcode, t, vec![t; 3]));
        }
        for to in TYPES {
            all.push((Opcode::Convert, to, vec![t]));
        }
    }
    for &d in DType::ALL {
        let raw = d.raw_type();
        all.push((Opcode::Round(d), C::F32, vec![C::F32]));
        all.push((Opcode::ToBits(d), raw, vec![C::F32]));
        all.push((Opcode::FromBits(d), C::F32, vec![raw]));
        all.push((Opcode::Wrap(d), d.compute(), vec![d.compute()]));
    }
    all
}

#[test]
fn tiles_of_any_length_and_scalar_operands_give_what_single_elements_give() {
    let mut count = 0;
    for (opcode, ty, args) in all_opcodes() {
        for mask in 0..8u8 {
            let Some(k) = kernel_with_scalars(opcode, ty, &args, mask) else { continue };
            let Some(one) = kernel(opcode, ty, &args) else {
                panic!("{opcode:?} {args:?} has masked loops only")
            };
            count += 1;
            for n in [0usize, 1, 7, 16, 67, 200] {
                let mut src: Vec<Tile> =
                    args.iter().enumerate().map(|(i, t)| Tile::new(*t, n.max(1), 77 + i as u64)).collect();
                let mut dst = Tile::new(ty, n + 1, 5);
                let guard = dst.get(n);
                let mut at = [std::ptr::null_mut(); 3];
                at.iter_mut().zip(&mut src).for_each(|(p, t)| *p = t.at(0));
                // SAFETY: the tiles have `n` elements of the kernel's types and do not overlap.
                unsafe { k.call(dst.at(0), at, n) };
                for i in 0..n {
                    let operands: Vec<u128> = src
                        .iter_mut()
                        .enumerate()
                        .map(|(a, t)| t.get(if mask & (1 << a) != 0 { 0 } else { i }))
                        .collect();
                    let want = one.on_scalars(&operands);
                    let got = dst.get(i);
                    assert!(
                        same(ty, got, want),
                        "{opcode:?} {args:?} mask {mask} at {i} of {n}: {got:#x} for {want:#x} of {operands:x?}"
                    );
                }
                assert_eq!(dst.get(n), guard, "{opcode:?} {args:?} wrote behind {n}");
            }
        }
    }
    assert!(count > 1000, "{count}");
}

fn on<const N: usize>(op: TileOp, t: C, args: [u128; N]) -> u128 {
    kernel(Opcode::Tile(op), op.result(t).unwrap(), &[t; N]).unwrap().on_scalars(&args)
}

#[test]
fn integers_follow_the_specification_at_the_edges() {
    let s = |v: i32| u128::from(v as u32);
    assert_eq!(on(TileOp::Divide, C::S32, [s(7), s(0)]), s(-1));
    assert_eq!(on(TileOp::Divide, C::S32, [s(i32::MIN), s(-1)]), s(i32::MIN));
    assert_eq!(on(TileOp::Divide, C::U8, [7, 0]), 0xff);
    assert_eq!(on(TileOp::Remainder, C::S32, [s(7), s(0)]), s(7));
    assert_eq!(on(TileOp::Remainder, C::S32, [s(i32::MIN), s(-1)]), 0);
    assert_eq!(on(TileOp::Remainder, C::S32, [s(-7), s(3)]), s(-1));
    assert_eq!(on(TileOp::ShiftLeft, C::S32, [s(1), s(32)]), 0);
    assert_eq!(on(TileOp::ShiftRightLogical, C::S32, [s(-1), s(31)]), 1);
    assert_eq!(on(TileOp::ShiftRightArithmetic, C::S32, [s(-8), s(99)]), s(-1));
    assert_eq!(on(TileOp::Power, C::S32, [s(-3), s(3)]), s(-27));
    assert_eq!(on(TileOp::Power, C::S32, [s(-1), s(-3)]), s(-1));
    assert_eq!(on(TileOp::Power, C::S32, [s(2), s(-3)]), 0);
    assert_eq!(
        on(TileOp::MulHi, C::U64, [u128::from(u64::MAX), u128::from(u64::MAX)]),
        u128::from(u64::MAX - 1)
    );
    assert_eq!(on(TileOp::CountLeadingZeros, C::U16, [1]), 15);
    assert_eq!(on(TileOp::Abs, C::S8, [0x80]), 0x80);
}

#[test]
fn floats_follow_the_specification_at_the_edges() {
    let f = |v: f32| u128::from(v.to_bits());
    assert_eq!(on(TileOp::Maximum, C::F32, [f(-0.0), f(0.0)]), f(0.0));
    assert_eq!(on(TileOp::Minimum, C::F32, [f(0.0), f(-0.0)]), f(-0.0));
    for op in [TileOp::Maximum, TileOp::Minimum] {
        for args in [[f(f32::NAN), f(1.0)], [f(1.0), f(f32::NAN)]] {
            assert!(f32::from_bits(on(op, C::F32, args) as u32).is_nan());
        }
    }
    assert_eq!(on(TileOp::Sign, C::F32, [f(-0.0)]), f(-0.0));
    assert_eq!(on(TileOp::RoundNearestAfz, C::F32, [f(0.499_999_97)]), f(0.0));
    assert_eq!(on(TileOp::RoundNearestAfz, C::F32, [f(-2.5)]), f(-3.0));
    assert_eq!(on(TileOp::RoundNearestEven, C::F32, [f(2.5)]), f(2.0));
    assert_eq!(on(TileOp::NextAfter, C::F32, [f(0.0), f(-1.0)]), f(-f32::from_bits(1)));
    assert_eq!(on(TileOp::Remainder, C::F32, [f(-7.5), f(2.0)]), f(-1.5));
    assert_eq!(on(TileOp::Remainder, C::F32, [f(1e30), f(7.0)]), f(1e30 % 7.0));
    assert_eq!(on(TileOp::Power, C::F32, [f(-2.0), f(3.0)]), f(-8.0));
    let to = |t: C, v: f32| kernel(Opcode::Convert, t, &[C::F32]).unwrap().on_scalars(&[f(v)]);
    assert_eq!(to(C::S8, 1e9), 127);
    assert_eq!(to(C::S32, f32::NAN), 0);
    assert_eq!(to(C::S32, 2_147_483_648.0), 0x7fff_ffff);
    assert_eq!(to(C::S32, -1e20), 0x8000_0000);
    assert_eq!(to(C::U32, -1.0), 0);
    assert_eq!(to(C::U64, 1e30), u128::from(u64::MAX));
    assert_eq!(to(C::U8, 255.9), 255);
    assert_eq!(to(C::S64, -9.5), u128::from(-9i64 as u64));
    assert_eq!(to(C::Pred, f32::NAN), 1);
}

#[test]
fn conversions_to_integers_agree_with_rust() {
    for i in (0..=u32::MAX).step_by(50_021) {
        let v = f32::from_bits(i);
        let to = |t: C| kernel(Opcode::Convert, t, &[C::F32]).unwrap().on_scalars(&[u128::from(i)]);
        assert_eq!(to(C::S32), u128::from((v as i32) as u32), "{v:e}");
        assert_eq!(to(C::U32), u128::from(v as u32), "{v:e}");
        assert_eq!(to(C::S64), u128::from((v as i64) as u64), "{v:e}");
        assert_eq!(to(C::U64), u128::from(v as u64), "{v:e}");
        assert_eq!(to(C::S16), u128::from((v as i16) as u16), "{v:e}");
        assert_eq!(to(C::U8), u128::from(v as u8), "{v:e}");
    }
}

#[test]
fn complex_functions_have_their_values_and_cuts() {
    let c = |re: f32, im: f32| u128::from(re.to_bits()) | u128::from(im.to_bits()) << 32;
    let near = |op: TileOp, z: (f32, f32), want: (f64, f64)| {
        let got = on(op, C::C64, [c(z.0, z.1)]);
        let (re, im) = (f64::from(f32::from_bits(got as u32)), f64::from(f32::from_bits((got >> 32) as u32)));
        let close =
            |a: f64, b: f64| a == b || (a - b).abs() <= 1e-6 * (1.0 + b.abs()) || (a.is_nan() && b.is_nan());
        assert!(close(re, want.0) && close(im, want.1), "{op:?} {z:?} = {re} {im} not {want:?}");
    };
    // Values of C's complex functions.
    near(TileOp::Sqrt, (-4.0, 0.0), (0.0, 2.0));
    near(TileOp::Sqrt, (-4.0, -0.0), (0.0, -2.0));
    near(TileOp::Log, (-1.0, 0.0), (0.0, std::f64::consts::PI));
    near(TileOp::Log, (-1.0, -0.0), (0.0, -std::f64::consts::PI));
    near(TileOp::Exponential, (0.0, std::f32::consts::PI), (-1.0, 0.0));
    near(TileOp::Exponential, (f32::NEG_INFINITY, 1.0), (0.0, 0.0));
    near(TileOp::Tanh, (0.5, 0.25), (0.485_487_281_024_135_3, 0.198_055_449_951_349_58));
    near(TileOp::Tanh, (50.0, 1.0), (1.0, 0.0));
    near(TileOp::Sine, (1.0, 1.0), (1.298_457_581_415_977, 0.634_963_914_784_736));
    near(TileOp::Cosine, (1.0, 1.0), (0.833_730_025_131_149, -0.988_897_705_762_865));
    near(TileOp::Tan, (1.0, 1.0), (0.271_752_585_319_511_7, 1.083_923_327_338_694_6));
    near(TileOp::Asin, (2.0, 1.0), (1.063_440_063_577_752, 1.469_351_744_368_185_1));
    near(TileOp::Acos, (2.0, 1.0), (0.507_356_303_217_144_5, -1.469_351_744_368_185_1));
    near(TileOp::Acosh, (2.0, 1.0), (1.469_351_744_368_185_1, 0.507_356_303_217_144_5));
    near(TileOp::Asinh, (2.0, 1.0), (1.528_570_919_480_998_3, 0.427_078_586_392_476_1));
    near(TileOp::Atanh, (0.5, 1.0), (0.238_877_861_256_859_1, 0.847_575_660_671_829));
    near(TileOp::Atan, (0.5, 1.0), (0.907_887_494_960_880_4, 0.708_303_336_014_054));
    near(TileOp::Sinh, (1.0, 1.0), (0.634_963_914_784_736, 1.298_457_581_415_977));
    near(TileOp::Cosh, (1.0, 1.0), (0.833_730_025_131_149, 0.988_897_705_762_865));
    near(TileOp::Logistic, (0.0, 0.0), (0.5, 0.0));
    near(TileOp::Rsqrt, (4.0, 0.0), (0.5, 0.0));
    near(TileOp::LogPlusOne, (1e-20, 0.0), (1e-20, 0.0));
}

#[test]
fn precision_is_reduced_as_the_format_says() {
    let reduce = |x: f32, e: u128, m: u128| {
        let k = kernel(Opcode::ReducePrecision, C::F32, &[C::F32, C::U32]).unwrap();
        f32::from_bits(k.on_scalars(&[u128::from(x.to_bits()), e | m << 8]) as u32)
    };
    for i in (0..u32::MAX).step_by(70_003) {
        let x = f32::from_bits(i);
        if x.is_nan() {
            continue;
        }
        assert_eq!(reduce(x, 8, 7).to_bits(), ::half::bf16::from_f32(x).to_f32().to_bits(), "{x:e}");
        assert_eq!(reduce(x, 8, 23).to_bits(), i);
        let half = ::half::f16::from_f32(x);
        if half.is_normal() || half.is_infinite() {
            assert_eq!(reduce(x, 5, 10), half.to_f32(), "{x:e}");
        }
    }
    assert_eq!(reduce(1e-8, 5, 10), 0.0);
    assert!(reduce(f32::NAN, 5, 2).is_nan());
    assert_eq!(reduce(f32::NAN, 5, 0), f32::INFINITY);
    assert_eq!(reduce(-f32::NAN, 8, 0), f32::NEG_INFINITY);
}
