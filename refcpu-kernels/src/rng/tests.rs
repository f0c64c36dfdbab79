use super::*;
use crate::testing::Array;
use crate::{DType, Pool};

const KEY: u64 = 0x0123_4567_89ab_cdef;

fn generate(algorithm: RngAlgorithm, dtype: DType, dims: &[usize]) -> (Vec<u64>, Array) {
    let mut out = Array::new(dtype, dims);
    let state = rng_bit_generator(&Pool::inline(), algorithm, &[KEY, u64::MAX], out.dst());
    (state, out)
}

/// The numbers that jaxlib 0.10.2 returns for this key and the last counter, for arrays of 3 by 5 by 2.
const THREE_FRY: [u32; 30] = [
    0xb3d7494, 0xacf8c4dc, 0xaaa4d889, 0x6b35c4f4, 0x75a52907, 0xd3dd8613, 0x35d0e5f1, 0x8ed17fe4,
    0x7c2f19d8, 0x284dbe3, 0xde79bbbd, 0x1713fd18, 0xb09d029e, 0x7d84f441, 0x6ca3e732, 0xa43b6b39,
    0xc8124617, 0x2077496e, 0xb530f815, 0xedce8403, 0x95fbb24b, 0xa2c8a180, 0xea74752e, 0x2b05d54b,
    0xea2b23bf, 0x2c35630d, 0x39150ea8, 0x4ba778c2, 0x6c5a184d, 0x2243d3ef,
];
const PHILOX: [u32; 30] = [
    0x41eb59f3, 0x307385e0, 0x5b8b3389, 0xa262f67c, 0x7006d264, 0xd71fd4de, 0x3aff468e, 0x40b5f768,
    0x34da5d11, 0xa2a4e857, 0xfc81d5f9, 0x7885cd87, 0xdf0b0a26, 0x54a91f33, 0x4b4f3fac, 0x17062910,
    0xe1dc3b83, 0x7d5af24b, 0x82ef1b2, 0x7b6b4260, 0xfda6f40, 0x33c64058, 0x9d1d7d45, 0x4145a1f, 0xa397fa95,
    0x3072a136, 0xe8bad699, 0x9a2f207d, 0xe1d3eee1, 0xce33cf83,
];

#[test]
fn three_fry_is_that_of_xla() {
    let run = |dtype, dims: &[usize]| generate(RngAlgorithm::ThreeFry, dtype, dims);
    let (state, out) = run(DType::U32, &[3, 5, 2]);
    assert_eq!((state, out.values::<u32>()), (vec![KEY, 0xe], THREE_FRY.to_vec()));
    let (state, out) = run(DType::U32, &[3]);
    assert_eq!((state, out.values::<u32>()), (vec![KEY, 1], THREE_FRY[..3].to_vec()));
    let (state, out) = run(DType::U32, &[]);
    assert_eq!((state, out.values::<u32>()), (vec![KEY, 0], THREE_FRY[..1].to_vec()));
    // Pairs of rows of a 3 by 5 array split along the larger dimension.
    let (state, out) = run(DType::U32, &[3, 5]);
    let want = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16].map(|i| THREE_FRY[i]);
    assert_eq!((state, out.values::<u32>()), (vec![KEY, 8], want.to_vec()));
    let (state, out) = run(DType::U64, &[3]);
    let want = [0xacf8c4dc0b3d7494u64, 0x6b35c4f4aaa4d889, 0xd3dd861375a52907];
    assert_eq!((state, out.values::<u64>()), (vec![KEY, 2], want.to_vec()));
    let (state, out) = run(DType::U16, &[5]);
    assert_eq!(
        (state, out.values::<u16>()),
        (vec![KEY, 2], THREE_FRY[..5].iter().map(|v| *v as u16).collect())
    );
    let (state, out) = run(DType::U8, &[5]);
    assert_eq!((state, out.values::<u8>()), (vec![KEY, 2], vec![0x94, 0xdc, 0x89, 0xf4, 0x7]));
}

#[test]
fn philox_is_that_of_xla() {
    let run = |dtype, dims: &[usize]| generate(RngAlgorithm::Philox, dtype, dims);
    let (state, out) = run(DType::U32, &[3, 5, 2]);
    assert_eq!((state, out.values::<u32>()), (vec![KEY, 7], PHILOX.to_vec()));
    let (state, out) = run(DType::S32, &[]);
    assert_eq!((state, out.values::<u32>()), (vec![KEY, 0], PHILOX[..1].to_vec()));
    let (state, out) = run(DType::U64, &[3]);
    let want = [0x307385e041eb59f3u64, 0xa262f67c5b8b3389, 0xd71fd4de7006d264];
    assert_eq!((state, out.values::<u64>()), (vec![KEY, 1], want.to_vec()));
    let (_, out) = run(DType::U16, &[5]);
    assert_eq!(out.values::<u16>(), [0x59f3, 0x85e0, 0x3389, 0xf67c, 0xd264]);
    let (_, out) = run(DType::U8, &[5]);
    assert_eq!(out.values::<u8>(), [0xf3, 0xe0, 0x89, 0x7c, 0x64]);
}

#[test]
fn a_state_of_three_words_holds_the_whole_counter() {
    let mut long = Array::new(DType::U32, &[8]);
    let state = rng_bit_generator(&Pool::inline(), RngAlgorithm::Philox, &[KEY, u64::MAX, KEY], long.dst());
    assert_eq!(state, [KEY, 1, KEY + 1]);
    assert_eq!(long.values::<u32>(), PHILOX[..8]);
}

#[test]
fn parallel_chunks_continue_the_sequence() {
    for algorithm in [RngAlgorithm::ThreeFry, RngAlgorithm::Philox] {
        let (_, long) = generate(algorithm, DType::U64, &[100_001]);
        let (_, short) = generate(algorithm, DType::U64, &[77]);
        assert_eq!(long.values::<u64>()[..77], short.values::<u64>());
        let words = long.values::<u64>();
        let ones: u32 = words.iter().map(|w| w.count_ones()).sum();
        assert!((f64::from(ones) / words.len() as f64 - 32.0).abs() < 0.1);
    }
}

#[test]
fn the_array_forms_agree_with_one_another() {
    let n = 40_001;
    let pool = Pool::inline();
    let key = [7, 9];
    let high = Array::of(DType::U32, &[n], &vec![1u32; n]);
    let low = Array::of(DType::U32, &[n], &(0..n as u32).map(|i| i.wrapping_sub(5)).collect::<Vec<_>>());
    let (mut a, mut b) = (Array::new(DType::U32, &[n]), Array::new(DType::U32, &[n]));
    threefry2x32(&pool, key, high.src(), low.src(), a.dst(), b.dst());
    let (mut c, mut d) = (Array::new(DType::U32, &[n]), Array::new(DType::U32, &[n]));
    threefry2x32_iota(&pool, key, (2 << 32) - 5, c.dst(), d.dst());
    // The first five counters have another high word.
    let (a, b, c, d) = (a.values::<u32>(), b.values::<u32>(), c.values::<u32>(), d.values::<u32>());
    assert!(a[..5] == c[..5] && b[..5] == d[..5] && a[5] != c[5]);
    threefry2x32_check_carry(&c, &d);
    let mut bits = Array::new(DType::U32, &[n]);
    threefry_random_bits(&pool, key, 0, bits.dst());
    let (mut e, mut f) = (Array::new(DType::U32, &[n]), Array::new(DType::U32, &[n]));
    threefry2x32_iota(&pool, key, 0, e.dst(), f.dst());
    let mixed: Vec<u32> = e.values::<u32>().iter().zip(f.values::<u32>()).map(|(x, y)| x ^ y).collect();
    assert_eq!(bits.values::<u32>(), mixed);
}

/// Counters 5 and on of the test above are those of high word 2 and low words from 0 on.
fn threefry2x32_check_carry(c: &[u32], d: &[u32]) {
    let n = c.len() - 5;
    let (high, low) = (
        Array::of(DType::U32, &[n], &vec![2u32; n]),
        Array::of(DType::U32, &[n], &(0..n as u32).collect::<Vec<_>>()),
    );
    let (mut x, mut y) = (Array::new(DType::U32, &[n]), Array::new(DType::U32, &[n]));
    threefry2x32(&Pool::inline(), [7, 9], high.src(), low.src(), x.dst(), y.dst());
    assert!(x.values::<u32>() == c[5..] && y.values::<u32>() == d[5..]);
}

#[test]
fn uniform_numbers_stay_in_their_half_open_range() {
    let n = 50_000;
    let draw = |dtype, low: &Array, high: &Array| {
        let mut out = Array::new(dtype, &[n]);
        rng_uniform(&Pool::inline(), 42, low.src(), high.src(), out.dst());
        out
    };
    let out =
        draw(DType::F32, &Array::of(DType::F32, &[], &[-1.0f32]), &Array::of(DType::F32, &[], &[3.0f32]))
            .values::<f32>();
    assert!(out.iter().all(|v| (-1.0..3.0).contains(v)));
    assert!((out.iter().sum::<f32>() / n as f32 - 1.0).abs() < 0.02);
    let one = half::bf16::ONE;
    let out = draw(
        DType::BF16,
        &Array::of(DType::BF16, &[], &[half::bf16::ZERO]),
        &Array::of(DType::BF16, &[], &[one]),
    );
    assert!(out.values::<half::bf16>().iter().all(|v| *v < one));
    let out =
        draw(DType::S64, &Array::of(DType::S64, &[], &[i64::MIN]), &Array::of(DType::S64, &[], &[i64::MAX]))
            .values::<i64>();
    assert!(out.iter().any(|v| *v < 0) && out.iter().any(|v| *v > 0));
    let out = draw(DType::S8, &Array::of(DType::S8, &[], &[-2i8]), &Array::of(DType::S8, &[], &[2i8]))
        .values::<i8>();
    assert!((-2..2).all(|v| out.contains(&v)) && out.iter().all(|v| (-2..2).contains(v)));
}

#[test]
fn normal_numbers_have_the_asked_mean_and_deviation() {
    let n = 100_000;
    let mut out = Array::new(DType::F64, &[n]);
    let (mean, deviation) = (Array::of(DType::F64, &[], &[3.0f64]), Array::of(DType::F64, &[], &[0.5f64]));
    rng_normal(&Pool::inline(), 1, mean.src(), deviation.src(), out.dst());
    let values = out.values::<f64>();
    let average = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|v| (v - average).powi(2)).sum::<f64>() / n as f64;
    assert!((average - 3.0).abs() < 0.01 && (variance - 0.25).abs() < 0.01, "{average} {variance}");
}
