use super::*;
use crate::testing::Array;
use crate::view::Element;
use crate::{DType, Dst, Pool, Src};
use proptest::prelude::*;
use std::cmp::Ordering;

/// Returns the value that JAX's comparator compares in place of a float.
fn canonical(v: f32) -> f32 {
    if v.is_nan() {
        f32::NAN
    } else if v == 0.0 {
        0.0
    } else {
        v
    }
}

fn sorted<T: Element>(dtype: DType, values: &[T], key: &SortKey) -> Vec<T> {
    let input = Array::of(dtype, &[values.len()], values);
    let mut out = Array::new(dtype, &[values.len()]);
    sort(&Pool::inline(), &[*key], &[input.src()], &mut [out.dst()], 0);
    out.values()
}

fn floats(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f32>> {
    let special = prop::sample::select(vec![
        0.0,
        -0.0,
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1.0,
        -1.0,
    ]);
    prop::collection::vec(
        prop_oneof![any::<u32>().prop_map(f32::from_bits), special, (-3..3i8).prop_map(f32::from)],
        n,
    )
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Returns row lengths on both sides of every algorithm's threshold.
fn lengths() -> impl Strategy<Value = std::ops::Range<usize>> {
    prop::sample::select(vec![0..4usize, 4..40, 40..400, 400..5000])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn floats_sort_stably_in_either_order(values in lengths().prop_flat_map(floats), total in any::<bool>(), descending in any::<bool>()) {
        let order = if total { KeyOrder::Total } else { KeyOrder::Numeric };
        let key = SortKey { descending, ..SortKey::ascending(0, order) };
        let mut want = values.clone();
        want.sort_by(|a, b| {
            let ordering = if total { a.total_cmp(b) } else { canonical(*a).total_cmp(&canonical(*b)) };
            if descending { ordering.reverse() } else { ordering }
        });
        prop_assert_eq!(bits(&sorted(DType::F32, &values, &key)), bits(&want));
    }

    #[test]
    fn integers_of_every_width_sort(words in lengths().prop_flat_map(|n| prop::collection::vec(any::<u64>(), n)), descending in any::<bool>()) {
        macro_rules! check {
            ($($t:ty, $dtype:ident;)*) => {$({
                let values: Vec<$t> = words.iter().map(|w| *w as $t).collect();
                let mut want = values.clone();
                want.sort_by(|a, b| if descending { b.cmp(a) } else { a.cmp(b) });
                let key = SortKey { descending, ..SortKey::ascending(0, KeyOrder::Total) };
                prop_assert_eq!(sorted(DType::$dtype, &values, &key), want);
            })*};
        }
        check!(i8, S8; i16, S16; i32, S32; i64, S64; u8, U8; u16, U16; u32, U32; u64, U64;);
    }

    #[test]
    fn payloads_follow_their_keys_along_any_dimension(
        dims in prop::collection::vec(1..9usize, 1..4),
        long in 1..300usize,
        which in any::<prop::sample::Index>(),
        seed in any::<u32>(),
        wide in any::<bool>(),
    ) {
        let mut dims = dims;
        let dimension = which.index(dims.len());
        dims[dimension] = long;
        let n: usize = dims.iter().product();
        let keys: Vec<f32> = (0..n as u32).map(|i| (((i ^ seed).wrapping_mul(0x9e37_79b9) >> 28) as f32 - 8.0) * -0.0f32.max(1.0)).collect();
        let (payload, payload_type): (Vec<u64>, DType) = ((0..n as u64).collect(), if wide { DType::U64 } else { DType::U32 });
        let a = Array::of(DType::F32, &dims, &keys);
        let b = if wide { Array::of(payload_type, &dims, &payload) } else {
            Array::of(payload_type, &dims, &payload.iter().map(|p| *p as u32).collect::<Vec<_>>())
        };
        let (mut x, mut y) = (Array::new(DType::F32, &dims), Array::new(payload_type, &dims));
        sort(&Pool::inline(), &[SortKey::ascending(0, KeyOrder::Numeric)], &[a.src(), b.src()], &mut [x.dst(), y.dst()], dimension);
        let moved: Vec<u64> = if wide { y.values() } else { y.values::<u32>().into_iter().map(u64::from).collect() };
        let inner: usize = dims[dimension + 1..].iter().product();
        let result = x.values::<f32>();
        for first in (0..n).filter(|i| (i / inner).is_multiple_of(long)) {
            let row: Vec<usize> = (0..long).map(|k| first + k * inner).collect();
            let mut want = row.clone();
            want.sort_by(|i, j| keys[*i].total_cmp(&keys[*j]));
            let got: Vec<usize> = row.iter().map(|i| moved[*i] as usize).collect();
            prop_assert_eq!(&got, &want);
            prop_assert!(row.iter().zip(&want).all(|(i, w)| result[*i].to_bits() == keys[*w].to_bits()));
        }
    }

    #[test]
    fn several_keys_decide_one_after_the_other(values in prop::collection::vec((-3..3i8, 0..4u8, any::<bool>()), 0..700)) {
        let n = values.len();
        let a = Array::of(DType::S8, &[n], &values.iter().map(|v| v.0).collect::<Vec<_>>());
        let b = Array::of(DType::F64, &[n], &values.iter().map(|v| if v.2 { f64::from(v.1) } else { -f64::from(v.1) }).collect::<Vec<_>>());
        let c = Array::of(DType::U16, &[n], &(0..n as u16).collect::<Vec<_>>());
        let (mut x, mut y, mut z) = (Array::new(DType::S8, &[n]), Array::new(DType::F64, &[n]), Array::new(DType::U16, &[n]));
        let keys = [SortKey::ascending(0, KeyOrder::Total), SortKey { descending: true, ..SortKey::ascending(1, KeyOrder::Numeric) }];
        sort(&Pool::inline(), &keys, &[a.src(), b.src(), c.src()], &mut [x.dst(), y.dst(), z.dst()], 0);
        let (first, second) = (a.values::<i8>(), b.values::<f64>());
        let mut want: Vec<u16> = (0..n as u16).collect();
        want.sort_by(|i, j| {
            let (i, j) = (*i as usize, *j as usize);
            first[i].cmp(&first[j]).then(second[j].partial_cmp(&second[i]).unwrap_or(Ordering::Equal))
        });
        prop_assert_eq!(z.values::<u16>(), want);
    }

    #[test]
    fn sort_by_is_stable_and_survives_contradictions(values in prop::collection::vec(0..9u8, 0..300), chaos in any::<u64>()) {
        let n = values.len();
        let (a, b) = (Array::of(DType::U8, &[n], &values), Array::of(DType::U16, &[n], &(0..n as u16).collect::<Vec<_>>()));
        let (mut x, mut y) = (Array::new(DType::U8, &[n]), Array::new(DType::U16, &[n]));
        sort_by(&Pool::inline(), &[a.src(), b.src()], &mut [x.dst(), y.dst()], 0, &mut |i, j| values[i] < values[j]);
        let mut want: Vec<u16> = (0..n as u16).collect();
        want.sort_by_key(|i| values[*i as usize]);
        prop_assert_eq!(y.values::<u16>(), want);
        let mut state = chaos;
        sort_by(&Pool::inline(), &[b.src()], &mut [y.dst()], 0, &mut |_, _| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 63 == 1
        });
        let mut some_order = y.values::<u16>();
        some_order.sort_unstable();
        prop_assert_eq!(some_order, (0..n as u16).collect::<Vec<_>>());
    }

    #[test]
    fn top_k_is_the_start_of_a_total_order_sort(
        rows in 1..4usize,
        values in lengths().prop_flat_map(floats),
        k in any::<prop::sample::Index>(),
        largest in any::<bool>(),
        shape in 0..3u8,
    ) {
        let n = values.len() / rows;
        let mut values = values[..rows * n].to_vec();
        match shape {
            0 => values.sort_by(|a, b| a.total_cmp(b)),
            1 => values.sort_by(|a, b| b.total_cmp(a)),
            _ => {}
        }
        let k = k.index(n + 1).min(if shape == 2 { n } else { 20 });
        let input = Array::of(DType::F32, &[rows, n], &values);
        let (mut v, mut i) = (Array::new(DType::F32, &[rows, k]), Array::new(DType::S32, &[rows, k]));
        top_k(&Pool::inline(), input.src(), v.dst(), i.dst(), k, largest);
        let (v, i) = (v.values::<f32>(), i.values::<i32>());
        for row in 0..rows {
            let from = &values[row * n..(row + 1) * n];
            let mut want: Vec<usize> = (0..n).collect();
            want.sort_by(|a, b| if largest { from[*b].total_cmp(&from[*a]) } else { from[*a].total_cmp(&from[*b]) });
            for slot in 0..k {
                prop_assert_eq!(i[row * k + slot] as usize, want[slot]);
                prop_assert_eq!(v[row * k + slot].to_bits(), from[want[slot]].to_bits());
            }
        }
    }
}

#[test]
fn complex_numbers_sort_by_real_then_imaginary_part() {
    let values = [[1.0f32, 2.0], [0.0, 5.0], [1.0, -1.0], [f32::NAN, 0.0], [-0.0, 4.0]];
    let input = Array::of(DType::C64, &[5], &values);
    let mut out = Array::new(DType::C64, &[5]);
    let key = |part| SortKey { part, ..SortKey::ascending(0, KeyOrder::Numeric) };
    sort(
        &Pool::inline(),
        &[key(KeyPart::Real), key(KeyPart::Imaginary)],
        &[input.src()],
        &mut [out.dst()],
        0,
    );
    let got = out.values::<[f32; 2]>();
    assert_eq!(got[..4], [[-0.0, 4.0], [0.0, 5.0], [1.0, -1.0], [1.0, 2.0]]);
    assert!(got[4][0].is_nan());
}

#[test]
fn small_floats_sort_by_value() {
    // -1, 1, 0, NaN, largest; in each format's own encoding.
    for (dtype, patterns) in
        [(DType::F8E4M3FN, [0xb8u8, 0x38, 0x00, 0xff, 0x7e]), (DType::F8E5M2, [0xbc, 0x3c, 0x00, 0xfe, 0x7b])]
    {
        let want = [patterns[0], patterns[2], patterns[1], patterns[4], patterns[3]];
        assert_eq!(sorted(dtype, &patterns, &SortKey::ascending(0, KeyOrder::Numeric)), want, "{dtype:?}");
    }
    assert_eq!(
        sorted(DType::F4E2M1FN, &[0x7u8, 0xf, 0x2, 0xa], &SortKey::ascending(0, KeyOrder::Total)),
        [0xf, 0xa, 0x2, 0x7]
    );
}

#[test]
fn the_nan_with_the_bits_of_negative_zero_is_the_least() {
    // -1, 0, 1, the largest, NaN, the smallest, the least and the greatest negative number.
    let patterns = [0xc0u8, 0x00, 0x40, 0x7f, 0x80, 0x01, 0xff, 0x81];
    let want = [0x80, 0xff, 0xc0, 0x81, 0x00, 0x01, 0x40, 0x7f];
    for dtype in [DType::F8E4M3FNUZ, DType::F8E4M3B11FNUZ, DType::F8E5M2FNUZ] {
        for order in [KeyOrder::Total, KeyOrder::Numeric] {
            // Many times over, for other algorithms.
            for times in [1, 100] {
                let input: Vec<u8> = patterns.repeat(times);
                let want: Vec<u8> = want.iter().flat_map(|p| vec![*p; times]).collect();
                let key = SortKey::ascending(0, order);
                assert_eq!(sorted(dtype, &input, &key), want, "{dtype:?} {order:?}");
                let reversed: Vec<u8> = want.into_iter().rev().collect();
                let key = SortKey { descending: true, ..key };
                assert_eq!(sorted(dtype, &input, &key), reversed, "{dtype:?} {order:?}");
            }
        }
    }
}

#[test]
fn large_rows_with_a_narrow_payload_sort_stably() {
    let n = 100_000usize;
    let keys: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 20).collect();
    let a = Array::of(DType::U32, &[n], &keys);
    let b = Array::of(DType::S32, &[n], &(0..n as i32).collect::<Vec<_>>());
    let (mut x, mut y) = (Array::new(DType::U32, &[n]), Array::new(DType::S32, &[n]));
    let (operands, mut outs): ([Src<'_>; 2], [Dst<'_>; 2]) = ([a.src(), b.src()], [x.dst(), y.dst()]);
    sort(&Pool::inline(), &[SortKey::ascending(0, KeyOrder::Total)], &operands, &mut outs, 0);
    let mut want: Vec<i32> = (0..n as i32).collect();
    want.sort_by_key(|i| keys[*i as usize]);
    assert_eq!(y.values::<i32>(), want);
    assert!(x.values::<u32>().is_sorted());
}
