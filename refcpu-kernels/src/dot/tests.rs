use super::*;
use crate::DType;
use crate::testing::{Array, encode, noise};
use proptest::prelude::*;

/// Multiplies by the definition, in i64 (complex operands are `v - iv`, whose products are `-2iab`).
fn expected(
    lhs: (&[usize], &dyn Fn(usize) -> i64),
    rhs: (&[usize], &dyn Fn(usize) -> i64),
    dims: &DotDims,
) -> Vec<i64> {
    let out = dims.output_dims(lhs.0, rhs.0).unwrap();
    let flat = |dims: &[usize], at: &[usize]| dims.iter().zip(at).fold(0, |f, (n, i)| f * n + i);
    let index = |dims: &[usize], mut i: usize| {
        let mut at = vec![0; dims.len()];
        for d in (0..dims.len()).rev() {
            at[d] = i % dims[d];
            i /= dims[d];
        }
        at
    };
    let free = |rank: usize, a: &[usize], b: &[usize]| {
        (0..rank).filter(|d| !a.contains(d) && !b.contains(d)).collect::<Vec<_>>()
    };
    let lhs_free = free(lhs.0.len(), &dims.lhs_batch, &dims.lhs_contract);
    let rhs_free = free(rhs.0.len(), &dims.rhs_batch, &dims.rhs_contract);
    let contract: Vec<usize> = dims.lhs_contract.iter().map(|d| lhs.0[*d]).collect();
    (0..out.iter().product())
        .map(|o| {
            let at = index(&out, o);
            let (mut l, mut r) = (vec![0; lhs.0.len()], vec![0; rhs.0.len()]);
            let (batch, rest) = at.split_at(dims.lhs_batch.len());
            let (rows, cols) = rest.split_at(lhs_free.len());
            batch.iter().zip(&dims.lhs_batch).for_each(|(i, d)| l[*d] = *i);
            batch.iter().zip(&dims.rhs_batch).for_each(|(i, d)| r[*d] = *i);
            rows.iter().zip(&lhs_free).for_each(|(i, d)| l[*d] = *i);
            cols.iter().zip(&rhs_free).for_each(|(i, d)| r[*d] = *i);
            (0..contract.iter().product())
                .map(|k| {
                    let k = index(&contract, k);
                    k.iter().zip(&dims.lhs_contract).for_each(|(i, d)| l[*d] = *i);
                    k.iter().zip(&dims.rhs_contract).for_each(|(i, d)| r[*d] = *i);
                    lhs.1(flat(lhs.0, &l)) * rhs.1(flat(rhs.0, &r))
                })
                .sum()
        })
        .collect()
}

fn check(types: [DType; 3], lhs_dims: &[usize], rhs_dims: &[usize], dims: &DotDims, bound: i64) {
    let [lt, rt, ot] = types;
    let unsigned = |d: DType| !d.is_float() && !d.is_complex() && !d.compute().is_signed_integer();
    let offset = if types.iter().any(|d| unsigned(*d)) { 0 } else { bound };
    let a = |i| noise(1, i, 2 * bound as u64) - offset;
    let b = |i| noise(2, i, 2 * bound as u64) - offset;
    let lhs = Array::from_fn(lt, lhs_dims, a);
    let rhs = Array::from_fn(rt, rhs_dims, b);
    let out_dims = dims.output_dims(lhs_dims, rhs_dims).unwrap();
    let mut out = Array::unset(ot, &out_dims);
    dot_general(&Pool::inline(), lhs.src(), rhs.src(), out.dst(), dims);
    let want = expected((lhs_dims, &a), (rhs_dims, &b), dims);
    for (i, w) in want.iter().enumerate() {
        let got = &out.bytes()[i * ot.size()..][..ot.size()];
        let bytes = if lt.is_complex() && rt.is_complex() {
            let imaginary = encode(ot, 2 * w)[ot.size() / 2..ot.size()].to_vec();
            [vec![0; ot.size() / 2], imaginary].concat()
        } else {
            encode(ot, *w)[..ot.size()].to_vec()
        };
        let got: Vec<u8> = if ot.is_complex() { clear_negative_zeros(ot, got) } else { got.to_vec() };
        assert_eq!(
            got,
            clear_negative_zeros(ot, &bytes),
            "{types:?} {lhs_dims:?} {rhs_dims:?} {dims:?} element {i}: want {w}"
        );
    }
}

fn clear_negative_zeros(dtype: DType, bytes: &[u8]) -> Vec<u8> {
    let part = if dtype.is_complex() { dtype.size() / 2 } else { dtype.size() };
    let mut out = bytes.to_vec();
    if dtype.is_complex() {
        for p in out.chunks_exact_mut(part) {
            if p[..part - 1].iter().all(|b| *b == 0) && p[part - 1] == 0x80 {
                p[part - 1] = 0;
            }
        }
    }
    out
}

const SAME: [DType; 8] =
    [DType::F32, DType::F64, DType::S32, DType::S64, DType::C64, DType::C128, DType::BF16, DType::S8];

#[test]
fn every_type_and_the_usual_mixtures_multiply() {
    use DType::*;
    let mixtures = [
        [S8, S8, S32],
        [U8, S8, S32],
        [U8, U8, U32],
        [S4, S8, S32],
        [BF16, BF16, F32],
        [F16, F16, F16],
        [F16, F32, F32],
        [F32, BF16, F32],
        [F32, F32, F64],
        [F32, F64, F64],
        [F32, F32, BF16],
        [S32, S32, F32],
        [S32, S32, S64],
        [U16, U16, U16],
        [S16, S16, S64],
        [U64, U64, U64],
        [U32, U32, U32],
        [Pred, Pred, Pred],
        [Pred, Pred, S32],
        [F8E4M3FN, F8E5M2, F32],
        [F8E4M3FN, F8E4M3FN, F8E4M3FN],
        [F64, F64, F32],
        [F64, F64, BF16],
        [S4, S4, S4],
        [U2, U2, U2],
        [C128, C128, C64],
    ];
    for types in SAME.map(|d| [d; 3]).into_iter().chain(mixtures) {
        for (m, k, n) in [(3, 5, 7), (1, 40, 9), (9, 40, 1), (17, 3, 50)] {
            let bound = match types {
                [Pred, ..] => 1,
                [.., out] if out.is_float() && out.size() == 1 => 2,
                _ => 4,
            };
            check(types, &[m, k], &[k, n], &DotDims::matmul(), bound);
        }
    }
}

#[test]
fn blocks_of_every_remainder_fit_together() {
    for n in [1, 15, 16, 17, 31, 47, 48, 49, 64, 65, 97, 150] {
        for m in [1, 2, 3, 7, 8, 13, 49] {
            check([DType::F32; 3], &[m, 20], &[20, n], &DotDims::matmul(), 4);
            check([DType::F64; 3], &[m, 20], &[20, n], &DotDims::matmul(), 4);
        }
    }
}

#[test]
fn large_products_are_cut_in_every_direction() {
    let transposed =
        DotDims { lhs_batch: vec![], rhs_batch: vec![], lhs_contract: vec![0], rhs_contract: vec![1] };
    for (m, k, n) in [(100, 700, 130), (33, 1100, 600), (700, 65, 97), (5, 3000, 5)] {
        check([DType::F32; 3], &[m, k], &[k, n], &DotDims::matmul(), 4);
        check([DType::F32; 3], &[k, m], &[n, k], &transposed, 4);
        check([DType::BF16, DType::BF16, DType::F32], &[k, m], &[n, k], &transposed, 4);
    }
    check([DType::F32; 3], &[300, 900], &[900, 800], &DotDims::matmul(), 4);
}

#[test]
fn long_vectors_are_cut_into_segments() {
    let inner = DotDims { lhs_contract: vec![0], rhs_contract: vec![0], ..DotDims::default() };
    check([DType::F32; 3], &[100_000], &[100_000], &inner, 2);
    check(
        [DType::F32; 3],
        &[3, 70_000],
        &[70_000],
        &DotDims { lhs_contract: vec![1], rhs_contract: vec![0], ..DotDims::default() },
        2,
    );
    check([DType::F32; 3], &[70_000], &[70_000, 3], &inner, 2);
    check([DType::F32; 3], &[700], &[700, 1300], &inner, 2);
    check([DType::BF16, DType::F32, DType::F32], &[600, 300], &[300, 1], &DotDims::matmul(), 2);
}

#[test]
fn long_products_of_vectors_are_rounded_nearly_once() {
    let n = 100_003;
    for seed in 0..8 {
        // Numbers from 0 to 1 with all the bits of f64.
        let whole = |side: u64, i: usize| noise(2 * seed + side, i, 1 << 53) as u64;
        let vector = |side| {
            let values: Vec<f64> = (0..n).map(|i| whole(side, i) as f64 / (1u64 << 53) as f64).collect();
            Array::of(DType::F64, &[n], &values)
        };
        let (x, y) = (vector(0), vector(1));
        let mut out = Array::new(DType::F64, &[]);
        let dims = DotDims { lhs_contract: vec![0], rhs_contract: vec![0], ..DotDims::default() };
        dot_general(&Pool::inline(), x.src(), y.src(), out.dst(), &dims);
        let found = out.values::<f64>()[0];
        // In units of 2^-106.
        let exact: u128 = (0..n).map(|i| u128::from(whole(0, i)) * u128::from(whole(1, i))).sum();
        let unit = f64::from_bits(found.to_bits() + 1) - found;
        let error = (found * 2f64.powi(106)) as u128 as i128 - exact as i128;
        let ulps = (error as f64 / 2f64.powi(106) / unit).abs();
        assert!(ulps < 0.55, "{ulps} ulps");
    }
}

#[test]
fn infinite_parts_of_long_sums_are_infinite_or_nan() {
    let n = 5000;
    let mut values = vec![1.0f32; n];
    values[100] = f32::INFINITY;
    let ones = Array::of(DType::F32, &[n], &vec![1.0f32; n]);
    let dims = DotDims { lhs_contract: vec![0], rhs_contract: vec![0], ..DotDims::default() };
    let product = |values: &[f32]| {
        let x = Array::of(DType::F32, &[n], values);
        let mut out = Array::new(DType::F32, &[]);
        dot_general(&Pool::inline(), x.src(), ones.src(), out.dst(), &dims);
        out.values::<f32>()[0]
    };
    assert_eq!(product(&values), f32::INFINITY);
    values[4000] = f32::NEG_INFINITY;
    assert!(product(&values).is_nan());
}

#[test]
fn a_contraction_over_nothing_gives_zeros() {
    check([DType::F32; 3], &[3, 0], &[0, 5], &DotDims::matmul(), 4);
    check([DType::F32; 3], &[1, 0], &[0, 5], &DotDims::matmul(), 4);
    check([DType::BF16; 3], &[300, 0], &[0, 500], &DotDims::matmul(), 4);
    check([DType::F32; 3], &[0, 3], &[3, 5], &DotDims::matmul(), 4);
    let batched =
        DotDims { lhs_batch: vec![0], rhs_batch: vec![0], lhs_contract: vec![2], rhs_contract: vec![1] };
    check([DType::S32; 3], &[20, 3, 0], &[20, 0, 5], &batched, 4);
}

#[test]
fn many_small_products_run_as_one() {
    let batched =
        DotDims { lhs_batch: vec![0], rhs_batch: vec![0], lhs_contract: vec![2], rhs_contract: vec![1] };
    for dtype in SAME {
        check([dtype; 3], &[300, 4, 4], &[300, 4, 4], &batched, 3);
        check([dtype; 3], &[40, 1, 5], &[40, 5, 6], &batched, 3);
    }
    check([DType::F32; 3], &[3, 200, 130], &[3, 130, 70], &batched, 3);
    check([DType::F32; 3], &[17, 50, 300], &[17, 300, 70], &batched, 3);
}

fn permutation(n: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..n).collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_dimension_numbers_agree_with_the_definition(
        batch in prop::collection::vec(1usize..5, 0..3),
        rows in prop::collection::vec(0usize..7, 0..3),
        cols in prop::collection::vec(1usize..20, 0..3),
        contract in prop::collection::vec(1usize..7, 0..3),
        lhs_order in permutation(6),
        rhs_order in permutation(6),
        dtype in prop::sample::select(&SAME[..]),
    ) {
        // Dimension i of the natural order (batch, free, contract) goes to the place that the permutation
        // gives it.
        let place = |sizes: [&Vec<usize>; 3], order: &[usize]| {
            let all: Vec<usize> = sizes.into_iter().flatten().copied().collect();
            let mut places: Vec<usize> = (0..all.len()).collect();
            places.sort_by_key(|i| order[*i]);
            let mut dims = vec![0; all.len()];
            let mut at = vec![0; all.len()];
            for (p, i) in places.iter().enumerate() {
                dims[p] = all[*i];
                at[*i] = p;
            }
            let batch = at[..sizes[0].len()].to_vec();
            let contract = at[sizes[0].len() + sizes[1].len()..].to_vec();
            (dims, batch, contract)
        };
        let (lhs, lhs_batch, lhs_contract) = place([&batch, &rows, &contract], &lhs_order);
        let (rhs, rhs_batch, rhs_contract) = place([&batch, &cols, &contract], &rhs_order);
        check([dtype; 3], &lhs, &rhs, &DotDims { lhs_batch, rhs_batch, lhs_contract, rhs_contract }, 2);
    }
}

#[test]
fn bytes_are_multiplied_exactly_in_every_layout() {
    // Deep and wide enough for the dot-product instruction, with remainders in all sizes and more than one
    // block of depth.
    for (rows, cols, depth) in [(5, 37, 300), (50, 100, 61), (9, 49, 4099)] {
        let types = [DType::S8, DType::S8, DType::S32];
        let dims = |l, r| DotDims { lhs_contract: vec![l], rhs_contract: vec![r], ..DotDims::default() };
        check(types, &[rows, depth], &[depth, cols], &dims(1, 0), 127);
        check(types, &[depth, rows], &[depth, cols], &dims(0, 0), 127);
        check(types, &[rows, depth], &[cols, depth], &dims(1, 1), 127);
    }
    let batched =
        DotDims { lhs_batch: vec![0], rhs_batch: vec![0], lhs_contract: vec![2], rhs_contract: vec![1] };
    check([DType::S8, DType::S8, DType::S32], &[3, 20, 50], &[3, 50, 40], &batched, 127);
}
