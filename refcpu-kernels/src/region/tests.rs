use super::*;
use crate::tile::TileOp;
use crate::{Dst, Pool, Src};

fn bytes_of<T: Copy>(v: &[T]) -> &[u8] {
    // SAFETY: plain numbers without padding.
    unsafe { std::slice::from_raw_parts(v.as_ptr().cast(), size_of_val(v)) }
}

fn bytes_of_mut<T: Copy>(v: &mut [T]) -> &mut [u8] {
    // SAFETY: plain numbers without padding, for which all bytes are valid.
    unsafe { std::slice::from_raw_parts_mut(v.as_mut_ptr().cast(), size_of_val(v)) }
}

fn run_one<T: Copy>(region: &Region, inputs: &[(&[u8], DType, usize)], out: &mut [T]) {
    let lens: Vec<[usize; 1]> = inputs.iter().map(|i| [i.2]).collect();
    let inputs: Vec<Src<'_>> = inputs.iter().zip(&lens).map(|(i, l)| Src::new(i.0, i.1, l)).collect();
    let len = [out.len()];
    let dtype = region.outputs()[0].dtype;
    run(&Pool::inline(), region, &inputs, &mut [Dst::new(bytes_of_mut(out), dtype, &len)]);
}

#[test]
fn strided_inputs_are_read_where_their_access_says() {
    for (rows, cols) in [(3, 5), (70, 3), (5, 700), (1, 1), (1, 513), (33, 64), (0, 4), (4, 0)] {
        let x: Vec<f32> = (0..rows * cols).map(|i| i as f32).collect();
        let bias: Vec<f32> = (0..cols).map(|i| 0.5 * i as f32).collect();
        let scale: Vec<f32> = (0..rows).map(|i| 1.0 + i as f32).collect();
        let dims = [rows, cols];
        let mut b = Builder::new(&dims);
        // x is stored transposed, and its columns are read backwards.
        let t = b
            .input(
                DType::F32,
                Access { offset: cols.saturating_sub(1) * rows, strides: vec![1, -(rows as isize)] },
            )
            .unwrap();
        let bias_v = b.input(DType::F32, Access::broadcast(2, &[cols], &[1])).unwrap();
        let scale_v = b.input(DType::F32, Access::broadcast(2, &[rows, 1], &[0, 1])).unwrap();
        let i = b.iota(DType::F32, 1).unwrap();
        let j = b.iota(DType::F32, 0).unwrap();
        let m = b.op(TileOp::Multiply, &[t, scale_v]).unwrap();
        let s = b.op(TileOp::Add, &[m, bias_v]).unwrap();
        let s = b.op(TileOp::Subtract, &[s, i]).unwrap();
        let s = b.op(TileOp::Add, &[j, s]).unwrap();
        b.output(s).unwrap();
        let region = b.finish().unwrap();
        let mut out = vec![0f32; rows * cols];
        run_one(
            &region,
            &[
                (bytes_of(&x), DType::F32, x.len()),
                (bytes_of(&bias), DType::F32, cols),
                (bytes_of(&scale), DType::F32, rows),
            ],
            &mut out,
        );
        for r in 0..rows {
            for c in 0..cols {
                let want = x[(cols - 1 - c) * rows + r] * scale[r] + bias[c] - c as f32 + r as f32;
                assert_eq!(out[r * cols + c], want, "{rows}x{cols} at {r},{c}\n{region}");
            }
        }
    }
}

#[test]
fn an_input_may_be_an_output() {
    for n in [1usize, 511, 512, 513, 5000, 100_000] {
        let mut b = Builder::new(&[n]);
        let x = b.linear_input(DType::F32).unwrap();
        let y = b.linear_input(DType::F32).unwrap();
        let s = b.op(TileOp::Add, &[x, y]).unwrap();
        let d = b.op(TileOp::Subtract, &[x, y]).unwrap();
        b.output(s).unwrap();
        b.output(d).unwrap();
        b.output(x).unwrap();
        let region = b.finish().unwrap();
        let mut x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let mut y: Vec<f32> = (0..n).map(|i| (i * 7 % 11) as f32).collect();
        let (x0, y0) = (x.clone(), y.clone());
        let mut z = vec![0f32; n];
        let dims = [n];
        let (px, py) =
            (std::ptr::NonNull::from(&mut x[..]).cast(), std::ptr::NonNull::from(&mut y[..]).cast());
        assert!(region.may_alias(0, 0) && region.may_alias(1, 1));
        // SAFETY: the arrays outlive the views, and regions are documented to work in place.
        let (inputs, mut outputs) = unsafe {
            (
                [Src::from_raw(px, DType::F32, &dims), Src::from_raw(py, DType::F32, &dims)],
                [
                    Dst::from_raw(px, DType::F32, &dims),
                    Dst::from_raw(py, DType::F32, &dims),
                    Dst::new(bytes_of_mut(&mut z), DType::F32, &dims),
                ],
            )
        };
        run(&Pool::inline(), &region, &inputs, &mut outputs);
        for i in 0..n {
            assert_eq!((x[i], y[i], z[i]), (x0[i] + y0[i], x0[i] - y0[i], x0[i]));
        }
    }
}

#[test]
fn an_output_over_an_input_that_is_still_read_keeps_its_values() {
    let n = 1300usize;
    let mut b = Builder::new(&[n]);
    let x = b.linear_input(DType::F32).unwrap();
    let y = b.linear_input(DType::F32).unwrap();
    let sum = b.op(TileOp::Add, &[x, y]).unwrap();
    b.output(sum).unwrap();
    // This output is written after `sum`, and reads `x` until the end, through several registers.
    let mut chain = b.op(TileOp::Maximum, &[x, y]).unwrap();
    for _ in 0..3 {
        let product = b.op(TileOp::Minimum, &[chain, x]).unwrap();
        let other = b.op(TileOp::Maximum, &[product, y]).unwrap();
        chain = b.op(TileOp::Subtract, &[other, product]).unwrap();
    }
    b.output(chain).unwrap();
    let region = b.finish().unwrap();
    let x: Vec<f32> = (0..n).map(|i| (i % 37) as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| (i * 7 % 11) as f32).collect();
    let dims = [n];
    let mut apart = (vec![0f32; n], vec![0f32; n]);
    run(
        &Pool::inline(),
        &region,
        &[Src::new(bytes_of(&x), DType::F32, &dims), Src::new(bytes_of(&y), DType::F32, &dims)],
        &mut [
            Dst::new(bytes_of_mut(&mut apart.0), DType::F32, &dims),
            Dst::new(bytes_of_mut(&mut apart.1), DType::F32, &dims),
        ],
    );
    let (mut over, mut second) = (x.clone(), vec![0f32; n]);
    let at = std::ptr::NonNull::from(&mut over[..]).cast();
    // SAFETY: the array outlives the views, and regions are documented to work in place.
    let (src, dst) = unsafe { (Src::from_raw(at, DType::F32, &dims), Dst::from_raw(at, DType::F32, &dims)) };
    run(
        &Pool::inline(),
        &region,
        &[src, Src::new(bytes_of(&y), DType::F32, &dims)],
        &mut [dst, Dst::new(bytes_of_mut(&mut second), DType::F32, &dims)],
    );
    assert!(over == apart.0 && second == apart.1);
    assert!((0..n).all(|i| over[i] == x[i] + y[i]));
}

#[test]
fn narrow_floats_round_after_every_operation() {
    let n = 1000;
    let x: Vec<u16> = (0..n).map(|i| half::bf16::from_f32(i as f32 * 0.37).to_bits()).collect();
    let mut b = Builder::new(&[n]);
    let v = b.linear_input(DType::BF16).unwrap();
    let c = b.constant_f64(DType::BF16, 1.3).unwrap();
    let m = b.op(TileOp::Multiply, &[v, c]).unwrap();
    let a = b.op(TileOp::Add, &[m, v]).unwrap();
    b.output(a).unwrap();
    let region = b.finish().unwrap();
    let mut out = vec![0u16; n];
    run_one(&region, &[(bytes_of(&x), DType::BF16, n)], &mut out);
    for i in 0..n {
        let v = half::bf16::from_bits(x[i]);
        let want = half::bf16::from_f32(
            half::bf16::from_f32(v.to_f32() * half::bf16::from_f32(1.3).to_f32()).to_f32() + v.to_f32(),
        );
        assert_eq!(out[i], want.to_bits(), "{i}");
    }
}

#[test]
fn sub_byte_integers_wrap() {
    let all: Vec<i8> = (-8..8).collect();
    let (mut x, mut y) = (vec![], vec![]);
    for a in &all {
        for b in &all {
            x.push(*a);
            y.push(*b);
        }
    }
    let wrap = |v: i32| (v << 28 >> 28) as i8;
    type Reference = fn(i32, i32) -> i32;
    let cases: [(TileOp, Reference); 7] = [
        (TileOp::Add, |a, b| a + b),
        (TileOp::Multiply, |a, b| a * b),
        (TileOp::Divide, |a, b| if b == 0 { -1 } else { a / b }),
        (TileOp::ShiftRightLogical, |a, b| if (b & 0xff) >= 4 { 0 } else { (a & 15) >> b }),
        (TileOp::ShiftRightArithmetic, |a, b| a >> (b & 0xff).min(31)),
        (TileOp::ShiftLeft, |a, b| if (b & 0xff) >= 4 { 0 } else { a << b }),
        (TileOp::Xor, |a, b| a ^ b),
    ];
    for (op, reference) in cases {
        let mut b = Builder::new(&[256]);
        let args = [b.linear_input(DType::S4).unwrap(), b.linear_input(DType::S4).unwrap()];
        let r = b.op(op, &args).unwrap();
        b.output(r).unwrap();
        let region = b.finish().unwrap();
        let mut out = vec![0i8; 256];
        run_one(&region, &[(bytes_of(&x), DType::S4, 256), (bytes_of(&y), DType::S4, 256)], &mut out);
        for i in 0..256 {
            assert_eq!(out[i], wrap(reference(x[i].into(), y[i].into())), "{op:?} {} {}", x[i], y[i]);
        }
    }
}

#[test]
fn reductions_agree_with_a_loop_for_all_row_lengths() {
    for (rows, cols) in [
        (1usize, 1usize),
        (3, 7),
        (200, 3),
        (4, 1000),
        (1, 300_000),
        (2, 100_000),
        (3, 0),
        (0, 3),
        (100, 600),
    ] {
        let x: Vec<f32> = (0..rows * cols).map(|i| ((i * 37 % 101) as f32) - 50.0).collect();
        let mut b = Builder::new(&[rows, cols]);
        let v = b.linear_input(DType::F32).unwrap();
        let sq = b.op(TileOp::Multiply, &[v, v]).unwrap();
        b.reduce_output(sq, ReduceOp::Add, 1).unwrap();
        b.reduce_output(v, ReduceOp::Maximum, 1).unwrap();
        let region = b.finish().unwrap();
        let (mut sum, mut max) = (vec![0f32; rows], vec![0f32; rows]);
        let dims = [rows];
        let all = [rows, cols];
        run(
            &Pool::inline(),
            &region,
            &[Src::new(bytes_of(&x), DType::F32, &all)],
            &mut [
                Dst::new(bytes_of_mut(&mut sum), DType::F32, &dims),
                Dst::new(bytes_of_mut(&mut max), DType::F32, &dims),
            ],
        );
        for r in 0..rows {
            let row = &x[r * cols..(r + 1) * cols];
            let want: f64 = row.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
            assert!((f64::from(sum[r]) - want).abs() <= want * 1e-6, "{rows}x{cols}: {} for {want}", sum[r]);
            assert_eq!(max[r], row.iter().fold(f32::NEG_INFINITY, |m, v| m.max(*v)));
        }
    }
}

#[test]
fn constants_are_folded_and_equal_values_computed_once() {
    let mut b = Builder::new(&[8]);
    let x = b.linear_input(DType::S32).unwrap();
    let one = b.constant(DType::S32, 1).unwrap();
    let two = b.op(TileOp::Add, &[one, one]).unwrap();
    let p = b.op(TileOp::Multiply, &[x, two]).unwrap();
    let q = b.op(TileOp::Multiply, &[x, two]).unwrap();
    assert_eq!(p, q);
    let dead = b.op(TileOp::Not, &[x]).unwrap();
    assert_ne!(dead, x);
    b.output(q).unwrap();
    assert_eq!(b.finish().unwrap().ops(), 1);
}

#[test]
fn divisions_by_powers_of_two_that_round_down_are_one_operation() {
    // JAX expresses `x // c` and `x % c` for a positive constant in this way.
    let spelled = |b: &mut Builder, x: Val, by: i8, quotient: bool| {
        let mut constant = |v: i8| b.constant(DType::S8, u128::from(v.cast_unsigned())).unwrap();
        let (c, zero, one) = (constant(by), constant(0), constant(1));
        let no = b.constant(DType::Pred, 0).unwrap();
        let r = b.op(TileOp::Remainder, &[x, c]).unwrap();
        let not_whole = b.compare(Direction::Ne, Order::Partial, r, zero).unwrap();
        if quotient {
            let q = b.op(TileOp::Divide, &[x, c]).unwrap();
            let sign = b.op(TileOp::Sign, &[x]).unwrap();
            let differs = b.compare(Direction::Ne, Order::Partial, sign, one).unwrap();
            let p = b.op(TileOp::And, &[differs, not_whole]).unwrap();
            let less = b.op(TileOp::Subtract, &[q, one]).unwrap();
            b.select(p, less, q).unwrap()
        } else {
            let negative = b.compare(Direction::Lt, Order::Partial, r, zero).unwrap();
            let differs = b.compare(Direction::Ne, Order::Partial, negative, no).unwrap();
            let p = b.op(TileOp::And, &[differs, not_whole]).unwrap();
            let more = b.op(TileOp::Add, &[r, c]).unwrap();
            b.select(p, more, r).unwrap()
        }
    };
    let x: Vec<i8> = (-128..=127).collect();
    for (by, ops) in [(2i8, 1), (4, 1), (32, 1), (64, 1), (3, 2), (6, 2), (127, 2)] {
        for quotient in [true, false] {
            let mut b = Builder::new(&[x.len()]);
            let v = b.linear_input(DType::S8).unwrap();
            let result = spelled(&mut b, v, by, quotient);
            b.output(result).unwrap();
            let region = b.finish().unwrap();
            assert!(
                if ops == 1 { region.ops() == 1 } else { region.ops() > 1 },
                "{by}: {} operations",
                region.ops()
            );
            let mut out = vec![0i8; x.len()];
            run_one(&region, &[(bytes_of(&x), DType::S8, x.len())], &mut out);
            for (x, got) in x.iter().zip(&out) {
                let (x, by) = (i32::from(*x), i32::from(by));
                let want = if quotient { x.div_euclid(by) } else { x.rem_euclid(by) };
                assert_eq!(i32::from(*got), want, "{x} by {by}, quotient: {quotient}");
            }
        }
    }
}

#[test]
fn what_looks_like_a_division_that_rounds_down_is_left_alone() {
    // r < 0 ? r + 4 : r, where r is the remainder by 8.
    let mut b = Builder::new(&[256]);
    let x = b.linear_input(DType::S8).unwrap();
    let [eight, four, zero] = [8, 4, 0].map(|v| b.constant(DType::S8, v).unwrap());
    let r = b.op(TileOp::Remainder, &[x, eight]).unwrap();
    let p = b.compare(Direction::Lt, Order::Partial, r, zero).unwrap();
    let more = b.op(TileOp::Add, &[r, four]).unwrap();
    let result = b.select(p, more, r).unwrap();
    b.output(result).unwrap();
    let x: Vec<i8> = (-128..=127).collect();
    let mut out = vec![0i8; 256];
    run_one(&b.finish().unwrap(), &[(bytes_of(&x), DType::S8, 256)], &mut out);
    for (x, got) in x.iter().zip(&out) {
        let r = x % 8;
        assert_eq!(*got, if r < 0 { r + 4 } else { r }, "{x}");
    }
}

#[test]
fn reductions_of_single_elements_are_the_elements() {
    let mut b = Builder::new(&[6, 1]);
    let x = b.linear_input(DType::S32).unwrap();
    b.reduce_output(x, ReduceOp::Add, 1).unwrap();
    let mut out = [0i32; 6];
    run_one(&b.finish().unwrap(), &[(bytes_of(&[3i32, -1, 0, 7, 8, 9]), DType::S32, 6)], &mut out);
    assert_eq!(out, [3, -1, 0, 7, 8, 9]);
    let mut b = Builder::new(&[2, 1]);
    let x = b.linear_input(DType::F32).unwrap();
    b.reduce_output(x, ReduceOp::Add, 1).unwrap();
    let mut out = [1f32; 2];
    run_one(&b.finish().unwrap(), &[(bytes_of(&[-0f32, 2.0]), DType::F32, 2)], &mut out);
    assert_eq!(out.map(f32::to_bits), [0, 2f32.to_bits()], "a sum begins with zero");
}

#[test]
fn mistakes_are_errors() {
    let mut b = Builder::new(&[4]);
    let f = b.linear_input(DType::F32).unwrap();
    let i = b.linear_input(DType::S32).unwrap();
    assert!(b.op(TileOp::Add, &[f, i]).is_err());
    assert!(b.op(TileOp::And, &[f, f]).is_err());
    assert!(b.op(TileOp::Add, &[f]).is_err());
    assert!(b.bitcast(f, DType::S64).is_err());
    assert!(b.select(f, f, f).is_err());
    assert!(b.iota(DType::F32, 1).is_err());
    assert!(b.input(DType::F32, Access { offset: 0, strides: vec![-1] }).is_err());
    assert!(b.finish().is_err());
}

/// Returns the results of reduce_precision for all bit patterns of a narrow float type.
fn reduced(dtype: DType, exponent: u32, mantissa: u32) -> Vec<u16> {
    let patterns: Vec<u16> = (0..1u32 << dtype.bits()).map(|p| p as u16).collect();
    let mut b = Builder::new(&[patterns.len()]);
    let x = b.linear_input(dtype).unwrap();
    let y = b.reduce_precision(x, exponent, mantissa).unwrap();
    b.output(y).unwrap();
    let region = b.finish().unwrap();
    if dtype.size() == 2 {
        let mut out = vec![0u16; patterns.len()];
        run_one(&region, &[(bytes_of(&patterns), dtype, patterns.len())], &mut out);
        return out;
    }
    let bytes: Vec<u8> = patterns.iter().map(|p| *p as u8).collect();
    let mut out = vec![0u8; bytes.len()];
    run_one(&region, &[(&bytes, dtype, bytes.len())], &mut out);
    out.into_iter().map(u16::from).collect()
}

const NARROW: [(DType, u32, u32); 13] = [
    (DType::F16, 5, 10),
    (DType::BF16, 8, 7),
    (DType::F8E3M4, 3, 4),
    (DType::F8E4M3, 4, 3),
    (DType::F8E4M3FN, 4, 3),
    (DType::F8E4M3FNUZ, 4, 3),
    (DType::F8E4M3B11FNUZ, 4, 3),
    (DType::F8E5M2, 5, 2),
    (DType::F8E5M2FNUZ, 5, 2),
    (DType::F8E8M0FNU, 8, 0),
    (DType::F6E2M3FN, 2, 3),
    (DType::F6E3M2FN, 3, 2),
    (DType::F4E2M1FN, 2, 1),
];

#[test]
fn a_precision_of_as_many_bits_changes_nothing() {
    for (dtype, exponent, mantissa) in NARROW {
        for (e, m) in [(exponent, mantissa), (exponent + 1, mantissa), (exponent, mantissa + 1), (11, 52)] {
            for (pattern, found) in reduced(dtype, e, m).into_iter().enumerate() {
                assert_eq!(usize::from(found), pattern, "{dtype:?} e{e}m{m}");
            }
        }
    }
}

#[test]
fn a_mantissa_of_fewer_bits_is_rounded_in_the_types_own_bits() {
    for (dtype, exponent, mantissa) in NARROW {
        for m in 1..mantissa {
            let last = 1u32 << (mantissa - m);
            for (pattern, found) in reduced(dtype, exponent, m).into_iter().enumerate() {
                let value = |p: u32| crate::convert::narrow_to_f32(dtype, p as u16).unwrap();
                let pattern = pattern as u32;
                let sign = pattern & 1 << (exponent + mantissa);
                let code = pattern ^ sign;
                let rounded = (code + (last / 2 - 1) + u32::from(code & last != 0)) / last * last;
                let unrounded = !value(pattern).is_finite();
                // Values beyond the largest number depend on the type, and zero has no sign in some types.
                if !unrounded
                    && value(rounded).is_finite()
                    && rounded < 1 << (exponent + mantissa)
                    && rounded > 0
                {
                    assert_eq!(u32::from(found), sign | rounded, "{dtype:?} m{m} {pattern:#x}");
                }
            }
        }
    }
}

#[test]
fn fewer_exponent_bits_have_no_denormal_numbers() {
    // With 4 exponent bits, the smallest normal number is 2^-6; f16's exponents extend to -14.
    let found = reduced(DType::F16, 4, 10);
    assert_eq!(found[(9 << 10) - 1], 0);
    assert_eq!(found[9 << 10], 9 << 10);
    assert_eq!(found[(9 << 10) + 1], (9 << 10) + 1);
    // 2^8 is too large.
    assert_eq!(found[(23 << 10) - 1], (23 << 10) - 1);
    assert_eq!(found[23 << 10], 0x7c00);
}

#[test]
fn the_nan_with_the_bits_of_negative_zero_comes_first_in_total_order() {
    for dtype in [DType::F8E4M3FNUZ, DType::F8E4M3B11FNUZ, DType::F8E5M2FNUZ] {
        let x: Vec<u8> = (0..=255).collect();
        let mut b = Builder::new(&[256]);
        let v = b.linear_input(dtype).unwrap();
        let nan = b.constant(dtype, 0x80).unwrap();
        // Arithmetic may produce NaNs of the other sign, which the type does not have.
        let other = b.op(TileOp::Abs, &[nan]).unwrap();
        for nan in [nan, other] {
            let less = b.compare(Direction::Lt, Order::Total, nan, v).unwrap();
            b.output(less).unwrap();
        }
        let region = b.finish().unwrap();
        let (mut p, mut q) = ([7u8; 256], [7u8; 256]);
        let len = [256];
        run(
            &Pool::inline(),
            &region,
            &[Src::new(&x, dtype, &len)],
            &mut [Dst::new(&mut p, DType::Pred, &len), Dst::new(&mut q, DType::Pred, &len)],
        );
        for (pattern, p) in p.iter().enumerate() {
            assert_eq!(*p, u8::from(pattern != 0x80), "{dtype:?} {pattern:#x}");
        }
        assert_eq!(p, q);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let n = 1_000_000;
    let x: Vec<f32> = (0..n).map(|i| ((i * 7919) % 1013) as f32 * 0.01 - 5.0).collect();
    let mut b = Builder::new(&[n]);
    let v = b.linear_input(DType::F32).unwrap();
    let e = b.op(TileOp::Exponential, &[v]).unwrap();
    b.output(e).unwrap();
    b.reduce_output(e, ReduceOp::Add, 1).unwrap();
    let region = b.finish().unwrap();
    let mut results = vec![];
    for threads in [1, 2, 5] {
        let pool = Pool::new(threads);
        let (mut out, mut sum) = (vec![0f32; n], [0f32]);
        run(
            &pool,
            &region,
            &[Src::new(bytes_of(&x), DType::F32, &[n])],
            &mut [
                Dst::new(bytes_of_mut(&mut out), DType::F32, &[n]),
                Dst::new(bytes_of_mut(&mut sum), DType::F32, &[]),
            ],
        );
        results.push((out, sum));
    }
    assert!(results.windows(2).all(|w| w[0] == w[1]));
    let want: f64 = x.iter().map(|v| f64::from(*v).exp()).sum();
    assert!((f64::from(results[0].1[0]) / want - 1.0).abs() < 1e-6);
}

#[test]
fn bits_are_seen_as_other_types() {
    let x: Vec<u16> = (0..=u16::MAX).collect();
    let n = x.len();
    let mut b = Builder::new(&[n]);
    let v = b.linear_input(DType::BF16).unwrap();
    let bits = b.bitcast(v, DType::U16).unwrap();
    let one = b.constant(DType::U16, 1).unwrap();
    let bits = b.op(TileOp::Xor, &[bits, one]).unwrap();
    let back = b.bitcast(bits, DType::F16).unwrap();
    b.output(back).unwrap();
    let region = b.finish().unwrap();
    let mut out = vec![0u16; n];
    run_one(&region, &[(bytes_of(&x), DType::BF16, n)], &mut out);
    assert!(x.iter().zip(&out).all(|(a, b)| a ^ 1 == *b));
}

#[test]
fn a_value_that_is_also_seen_as_bits_stays_until_its_last_use() {
    let x = [1.5f32, -2.0, -0.0, 4.0];
    let n = x.len();
    let mut b = Builder::new(&[n]);
    let v = b.linear_input(DType::F32).unwrap();
    let double = b.op(TileOp::Add, &[v, v]).unwrap();
    let bits = b.bitcast(double, DType::S32).unwrap();
    let zero = b.constant(DType::S32, 0).unwrap();
    let is_negative = b.compare(Direction::Lt, Order::Partial, bits, zero).unwrap();
    let [minus_one, one] = [-1.0, 1.0].map(|v| b.constant_f64(DType::F32, v).unwrap());
    // This value is created when the bits have no users left, before the last use of the number.
    let sign = b.select(is_negative, minus_one, one).unwrap();
    let product = b.op(TileOp::Multiply, &[sign, double]).unwrap();
    b.output(product).unwrap();
    let region = b.finish().unwrap();
    let mut out = vec![0f32; n];
    run_one(&region, &[(bytes_of(&x), DType::F32, n)], &mut out);
    assert_eq!(out, [3.0, 4.0, 0.0, 8.0]);
}

proptest::proptest! {
    /// Every affine access over every small space reads the element that it specifies.
    #[test]
    fn affine_accesses_read_what_they_say(
        dims in proptest::collection::vec(0usize..7, 0..4),
        long in 1usize..200,
        at in 0usize..4,
        strides in proptest::collection::vec(-3isize..4, 4),
        wide in proptest::prelude::any::<bool>(),
    ) {
        let mut dims = dims;
        let at = at % (dims.len() + 1);
        dims.insert(at, long);
        let strides = &strides[..dims.len()];
        let low: isize = dims.iter().zip(strides).map(|(d, s)| (*s).min(0) * (*d as isize - 1).max(0)).sum();
        let high: isize = dims.iter().zip(strides).map(|(d, s)| (*s).max(0) * (*d as isize - 1).max(0)).sum();
        let offset = (-low) as usize;
        let data: Vec<u32> = (0..(high - low + 1) as u32).collect();
        let n: usize = dims.iter().product();
        let mut b = Builder::new(&dims);
        let access = Access { offset, strides: strides.to_vec() };
        let v = b.input(DType::U32, access).unwrap();
        // The second input prevents the merging of the dimensions.
        let w = b.linear_input(DType::U32).unwrap();
        let v = if wide { b.op(TileOp::Add, &[v, w]).unwrap() } else { v };
        b.output(v).unwrap();
        let region = b.finish().unwrap();
        let zeros = vec![0u32; n];
        let mut out = vec![0u32; n];
        run_one(&region, &[(bytes_of(&data), DType::U32, data.len()), (bytes_of(&zeros), DType::U32, n)], &mut out);
        for (i, o) in out.iter().enumerate() {
            let mut rest = i;
            let mut index = offset as isize;
            for (d, s) in dims.iter().zip(strides).rev() {
                index += (rest % d) as isize * s;
                rest /= d;
            }
            proptest::prop_assert_eq!(*o, data[index as usize]);
        }
    }
}

#[test]
fn short_runs_of_broadcast_and_narrow_values_are_reduced() {
    // Pairwise distances: (x[i] - x[j])^2 summed over the last dimension, in f32 and in bf16.
    let (n, k) = (37usize, 3usize);
    let x: Vec<f32> = (0..n * k).map(|i| ((i * 29) % 17) as f32).collect();
    let xb: Vec<u16> = x.iter().map(|v| half::bf16::from_f32(*v).to_bits()).collect();
    for dtype in [DType::F32, DType::BF16] {
        let mut b = Builder::new(&[n, n, k]);
        let p = b.input(dtype, Access::broadcast(3, &[n, 1, k], &[0, 1, 2])).unwrap();
        let q = b.input(dtype, Access::broadcast(3, &[1, n, k], &[0, 1, 2])).unwrap();
        let d = b.op(TileOp::Subtract, &[p, q]).unwrap();
        let d = b.op(TileOp::Multiply, &[d, d]).unwrap();
        b.reduce_output(d, ReduceOp::Add, 1).unwrap();
        let region = b.finish().unwrap();
        let bytes = if dtype == DType::F32 { bytes_of(&x) } else { bytes_of(&xb) };
        let src = || Src::new(bytes, dtype, &[111]);
        let mut wide = vec![0f32; n * n];
        let mut narrow = vec![0u16; n * n];
        let dims = [n, n];
        if dtype == DType::F32 {
            run(
                &Pool::inline(),
                &region,
                &[src(), src()],
                &mut [Dst::new(bytes_of_mut(&mut wide), dtype, &dims)],
            );
        } else {
            run(
                &Pool::inline(),
                &region,
                &[src(), src()],
                &mut [Dst::new(bytes_of_mut(&mut narrow), dtype, &dims)],
            );
            wide = narrow.iter().map(|b| half::bf16::from_bits(*b).to_f32()).collect();
        }
        for i in 0..n {
            for j in 0..n {
                let exact: f32 = (0..k).map(|c| (x[i * k + c] - x[j * k + c]).powi(2)).sum();
                let want = if dtype == DType::F32 { exact } else { half::bf16::from_f32(exact).to_f32() };
                assert_eq!(wide[i * n + j], want, "{dtype:?} {i} {j}");
            }
        }
    }
}
