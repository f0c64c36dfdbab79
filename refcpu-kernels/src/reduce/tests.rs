use super::*;
use crate::DType;
use crate::testing::{Array, encode, noise};
use proptest::prelude::*;

const OPS: [ReduceOp; 7] = [
    ReduceOp::Add,
    ReduceOp::Multiply,
    ReduceOp::Minimum,
    ReduceOp::Maximum,
    ReduceOp::And,
    ReduceOp::Or,
    ReduceOp::Xor,
];

fn apply(op: ReduceOp, a: i64, b: i64) -> i64 {
    match op {
        ReduceOp::Add => a.wrapping_add(b),
        ReduceOp::Multiply => a.wrapping_mul(b),
        ReduceOp::Minimum => a.min(b),
        ReduceOp::Maximum => a.max(b),
        ReduceOp::And => a & b,
        ReduceOp::Or => a | b,
        ReduceOp::Xor => a ^ b,
    }
}

/// Compares with the definition in i64. Products are of ones, twos and zeros, few of them twos, so that
/// floats stay exact.
fn check(op: ReduceOp, from: DType, to: DType, dims: &[usize], along: &[usize]) {
    let signed = to.is_float() || to.compute().is_signed_integer();
    let value = |i: usize| match (op, from) {
        (_, DType::Pred) => noise(3, i, 2),
        (ReduceOp::Multiply, _) => 1 + i64::from(i % 997 == 3 && i < 20_000),
        _ if signed && !to.is_complex() => noise(3, i, 4) - 2,
        _ => noise(3, i, 3),
    };
    let init_value = if to == DType::Pred { 0 } else { 1 };
    let kept: Vec<usize> = (0..dims.len()).filter(|d| !along.contains(d)).collect();
    let out_dims: Vec<usize> = kept.iter().map(|d| dims[*d]).collect();
    let input = Array::from_fn(from, dims, value);
    let init = Array::from_fn(to, &[], |_| init_value);
    let mut out = Array::unset(to, &out_dims);
    reduce(&Pool::inline(), op, input.src(), init.src(), out.dst(), along);
    let mut want = vec![init_value; out_dims.iter().product()];
    let op_on = op.for_storage(to);
    for i in 0..dims.iter().product() {
        let (mut rest, mut at, mut stride) = (i, 0, 1);
        for d in (0..dims.len()).rev() {
            if kept.contains(&d) {
                at += rest % dims[d] * stride;
                stride *= dims[d];
            }
            rest /= dims[d];
        }
        want[at] = apply(op_on, want[at], value(i));
    }
    for (i, w) in want.iter().enumerate() {
        let got = &out.bytes()[i * to.size()..][..to.size()];
        assert_eq!(
            got,
            &encode(to, *w)[..to.size()],
            "{op:?} {from:?} {to:?} {dims:?} along {along:?}, element {i}: want {w}"
        );
    }
}

#[test]
fn every_operation_reduces_every_type() {
    for op in OPS {
        for &dtype in DType::ALL {
            // Complex results depend on both parts; products and unsigned small floats are tested elsewhere.
            let complex_product = dtype.is_complex() && op == ReduceOp::Multiply;
            if !op.supports(dtype) || complex_product || matches!(dtype, DType::F8E8M0FNU) {
                continue;
            }
            if dtype.is_float() && dtype.size() == 1 && op == ReduceOp::Add {
                check(op, dtype, dtype, &[2, 2], &[1]);
                continue;
            }
            for along in [&[0][..], &[1], &[0, 1], &[]] {
                check(op, dtype, dtype, &[5, 37], along);
            }
        }
    }
}

#[test]
fn complex_products_turn() {
    // (1 - i)^2 = -2i, and (1 - i) * -2i = -2 - 2i.
    let input = Array::from_fn(DType::C64, &[3], |_| 1);
    let init = Array::from_fn(DType::C64, &[], |_| 0);
    let mut one = init.clone();
    one.dst().as_mut_slice::<[f32; 2]>()[0] = [1.0, 0.0];
    let mut out = Array::unset(DType::C64, &[]);
    reduce(&Pool::inline(), ReduceOp::Multiply, input.src(), one.src(), out.dst(), &[0]);
    assert_eq!(out.src().as_slice::<[f32; 2]>(), [[-2.0, -2.0]]);
}

#[test]
fn narrow_inputs_are_widened_on_the_way() {
    use DType::*;
    for (from, to) in [
        (BF16, F32),
        (F16, F32),
        (F32, F64),
        (Pred, S32),
        (S8, S32),
        (U8, U32),
        (F8E5M2, F32),
        (S32, F32),
        (S16, S64),
        (BF16, F64),
    ] {
        for along in [&[0][..], &[1], &[0, 2], &[1, 2]] {
            check(ReduceOp::Add, from, to, &[6, 20, 30], along);
        }
    }
    check(ReduceOp::Maximum, S8, S32, &[6, 20], &[1]);
}

#[test]
fn sums_over_many_elements_are_cut_and_put_together() {
    for (dims, along) in [
        (&[1 << 21][..], &[0][..]),
        (&[300_000, 3], &[0]),
        (&[300_000, 3], &[1]),
        (&[100_001, 1], &[1]),
        (&[5, 70_000], &[1]),
        (&[5, 70_000], &[0]),
        (&[3, 5, 9000, 2], &[2]),
        (&[40, 3, 5000], &[0, 2]),
        (&[40, 3, 70_000], &[0, 2]),
        (&[40, 3, 2, 600], &[0, 2]),
        (&[700, 3, 900], &[0]),
        (&[20_000, 100], &[0]),
        (&[20_003, 7], &[0]),
    ] {
        check(ReduceOp::Add, DType::S32, DType::S32, dims, along);
        check(ReduceOp::Maximum, DType::F32, DType::F32, dims, along);
    }
}

#[test]
fn a_float_sum_of_sixteen_million_keeps_its_digits() {
    let n = 1 << 24;
    let mut ones = Array::unset(DType::F32, &[n]);
    ones.dst().as_mut_slice::<f32>().fill(0.1);
    let init = Array::from_fn(DType::F32, &[], |_| 0);
    let mut out = Array::unset(DType::F32, &[]);
    reduce(&Pool::inline(), ReduceOp::Add, ones.src(), init.src(), out.dst(), &[0]);
    let exact = f64::from(0.1f32) * n as f64;
    let got = f64::from(out.src().as_slice::<f32>()[0]);
    assert!((got - exact).abs() / exact < 1e-6, "{got} {exact}");
    let columns = ones.src().reshape(&[n / 4, 4]).dims().to_vec();
    let mut out = Array::unset(DType::F32, &[4]);
    let tall = Src::new(ones.bytes(), DType::F32, &columns);
    reduce(&Pool::inline(), ReduceOp::Add, tall, init.src(), out.dst(), &[0]);
    for got in out.src().as_slice::<f32>() {
        assert!((f64::from(*got) - exact / 4.0).abs() / exact < 1e-6, "{got} {exact}");
    }
}

#[test]
fn nan_wins_minima_and_maxima() {
    for n in [1, 5, 100, 1000] {
        for at in [0, n / 2, n - 1] {
            let mut x = Array::from_fn(DType::F32, &[n], |i| i as i64);
            x.dst().as_mut_slice::<f32>()[at] = f32::NAN;
            for op in [ReduceOp::Minimum, ReduceOp::Maximum] {
                let init = Array::from_fn(DType::F32, &[], |_| 7);
                let mut out = Array::unset(DType::F32, &[]);
                reduce(&Pool::inline(), op, x.src(), init.src(), out.dst(), &[0]);
                assert!(out.src().as_slice::<f32>()[0].is_nan(), "{op:?} {n} {at}");
            }
        }
    }
}

#[test]
fn a_reduction_over_nothing_gives_the_initial_value() {
    check(ReduceOp::Add, DType::F32, DType::F32, &[3, 0, 2], &[1]);
    check(ReduceOp::Maximum, DType::S8, DType::S8, &[3, 0, 2], &[1]);
    check(ReduceOp::Add, DType::F32, DType::F32, &[0, 3], &[1]);
    check(ReduceOp::Add, DType::F32, DType::F32, &[], &[]);
}

#[test]
#[should_panic(expected = "along [1, 1]")]
fn a_dimension_named_twice_is_refused() {
    check(ReduceOp::Add, DType::F32, DType::F32, &[3, 4], &[1, 1]);
}

fn check_arg(op: ArgReduceOp, dtype: DType, index: DType, dims: &[usize], dim: usize, nan: Option<usize>) {
    let mut input = Array::from_fn(dtype, dims, |i| noise(5, i, 5));
    if let (Some(nan), DType::F32) = (nan, dtype) {
        input.dst().as_mut_slice::<f32>().iter_mut().skip(nan).step_by(97).for_each(|x| *x = f32::NAN);
    }
    let mut out_dims = dims.to_vec();
    out_dims.remove(dim);
    let (mut values, mut indices) = (Array::unset(dtype, &out_dims), Array::unset(index, &out_dims));
    arg_reduce(&Pool::inline(), op, input.src(), values.dst(), indices.dst(), dim);
    let inner: usize = dims[dim + 1..].iter().product();
    let number = |i: usize| match dtype {
        DType::F32 => f64::from(input.src().as_slice::<f32>()[i]),
        _ => noise(5, i, 5) as f64,
    };
    for o in 0..out_dims.iter().product() {
        let element = |i: usize| (o / inner * dims[dim] + i) * inner + o % inner;
        let mut best = 0;
        for i in 1..dims[dim] {
            let (a, b) = (number(element(best)), number(element(i)));
            let better = match op {
                ArgReduceOp::Maximum => b > a,
                ArgReduceOp::Minimum => b < a,
            };
            if !a.is_nan() && (b.is_nan() || better) {
                best = i;
            }
        }
        let size = dtype.size();
        assert_eq!(
            indices.bytes()[o * index.size()..][..index.size()],
            encode(index, best as i64)[..index.size()],
            "{op:?} {dtype:?} {dims:?} {dim} {o}"
        );
        assert_eq!(values.bytes()[o * size..][..size], input.bytes()[element(best) * size..][..size]);
    }
}

#[test]
fn arg_reduce_finds_the_first_extreme_or_nan() {
    for op in [ArgReduceOp::Minimum, ArgReduceOp::Maximum] {
        for dims in [&[7][..], &[3, 200], &[200, 3], &[300, 16], &[5, 130, 4], &[2, 70, 300]] {
            for dim in 0..dims.len() {
                check_arg(op, DType::F32, DType::S32, dims, dim, None);
                check_arg(op, DType::F32, DType::S64, dims, dim, Some(40));
                check_arg(op, DType::S8, DType::U8, dims, dim, None);
                check_arg(op, DType::U8, DType::S32, dims, dim, None);
                check_arg(op, DType::U16, DType::S64, dims, dim, None);
                check_arg(op, DType::S16, DType::S32, dims, dim, None);
                check_arg(op, DType::U32, DType::S32, dims, dim, None);
                check_arg(op, DType::BF16, DType::U32, dims, dim, None);
                check_arg(op, DType::F8E4M3FN, DType::S32, dims, dim, None);
                check_arg(op, DType::F64, DType::S32, dims, dim, None);
            }
        }
    }
}

#[test]
fn arg_reduce_of_infinities_finds_the_first() {
    let mut input = Array::unset(DType::F32, &[2, 70]);
    input.dst().as_mut_slice::<f32>().fill(f32::NEG_INFINITY);
    let (mut v, mut i) = (Array::unset(DType::F32, &[2]), Array::unset(DType::S32, &[2]));
    arg_reduce(&Pool::inline(), ArgReduceOp::Maximum, input.src(), v.dst(), i.dst(), 1);
    assert_eq!(i.src().as_slice::<i32>(), [0, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_dimensions_agree_with_the_definition(
        dims in prop::collection::vec(prop_oneof![1usize..6, 1usize..40], 0..5),
        mask in 0usize..32,
        op in prop::sample::select(&OPS[..]),
        dtype in prop::sample::select(&[DType::F32, DType::S32, DType::U8, DType::BF16, DType::F64][..]),
    ) {
        let along: Vec<usize> = (0..dims.len()).filter(|d| mask >> d & 1 == 1).collect();
        let op = if op.supports(dtype) { op } else { ReduceOp::Maximum };
        check(op, dtype, dtype, &dims, &along);
    }
}
