use super::*;
use crate::DType;
use crate::testing::{Array, indices};
use proptest::prelude::*;

/// Types of every element size.
const SIZES: [DType; 5] = [DType::U8, DType::U16, DType::F32, DType::F64, DType::C128];

/// Checks each element of `out` against `expected`, which returns a place in `input`, or `None` for the other
/// value.
fn compare(input: &Array, other: &Array, out: &Array, expected: impl Fn(&[usize]) -> Option<Vec<usize>>) {
    for index in indices(&out.dims) {
        let want = expected(&index).map_or_else(|| other.element(&[]), |at| input.element(&at));
        assert_eq!(out.element(&index), want, "{:?}{:?} at {index:?}", out.dtype, out.dims);
    }
}

fn dtype() -> impl Strategy<Value = DType> {
    proptest::sample::select(SIZES.to_vec())
}

fn dims() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        prop::collection::vec(0..6usize, 0..6),
        prop::collection::vec(prop_oneof![Just(1usize), Just(3), 30..70usize], 1..4),
    ]
}

fn check_transpose(dtype: DType, dims: &[usize], permutation: &[usize]) {
    let input = Array::new(dtype, dims);
    let out_dims: Vec<usize> = permutation.iter().map(|p| dims[*p]).collect();
    let mut out = Array::new(dtype, &out_dims);
    transpose(&Pool::inline(), input.src(), out.dst(), permutation);
    compare(&input, &input, &out, |index| {
        let mut at = vec![0; index.len()];
        for (i, p) in index.iter().zip(permutation) {
            at[*p] = *i;
        }
        Some(at)
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn transpose_permutes_indices(
        dtype in dtype(),
        (dims, permutation) in dims().prop_flat_map(|d| {
            let order: Vec<usize> = (0..d.len()).collect();
            (Just(d), Just(order).prop_shuffle())
        }),
    ) {
        check_transpose(dtype, &dims, &permutation);
    }

    #[test]
    fn slice_takes_every_stride_th_element(
        dtype in dtype(),
        spec in prop::collection::vec((0..40usize, 0..5usize, 1..4usize), 0..4),
    ) {
        let out_dims: Vec<usize> = spec.iter().map(|(n, ..)| *n).collect();
        let start: Vec<usize> = spec.iter().map(|(_, s, _)| *s).collect();
        let stride: Vec<usize> = spec.iter().map(|(.., s)| *s).collect();
        let dims: Vec<usize> = spec.iter().map(|(n, s, t)| s + n * t + 1).collect();
        let input = Array::new(dtype, &dims);
        let mut out = Array::new(dtype, &out_dims);
        slice(&Pool::inline(), input.src(), out.dst(), &start, &stride);
        compare(&input, &input, &out, |index| Some((0..index.len()).map(|d| start[d] + index[d] * stride[d]).collect()));
    }

    #[test]
    fn reverse_mirrors_the_named_dimensions(dtype in dtype(), dims in dims(), mask in any::<u8>()) {
        let reversed: Vec<usize> = (0..dims.len()).filter(|d| mask >> d & 1 == 1).collect();
        let input = Array::new(dtype, &dims);
        let mut out = Array::new(dtype, &dims);
        reverse(&Pool::inline(), input.src(), out.dst(), &reversed);
        compare(&input, &input, &out, |index| {
            Some((0..dims.len()).map(|d| if reversed.contains(&d) { dims[d] - 1 - index[d] } else { index[d] }).collect())
        });
    }

    #[test]
    fn broadcast_repeats_along_new_and_unit_dimensions(
        dtype in dtype(),
        out_dims in dims(),
        mask in any::<u8>(),
        units in any::<u8>(),
        turn in any::<bool>(),
    ) {
        let mut map: Vec<usize> = (0..out_dims.len()).filter(|d| mask >> d & 1 == 1).collect();
        if turn {
            map.reverse();
        }
        let dims: Vec<usize> = map.iter().map(|d| if units >> d & 1 == 1 { 1 } else { out_dims[*d] }).collect();
        let input = Array::new(dtype, &dims);
        let mut out = Array::new(dtype, &out_dims);
        broadcast_in_dim(&Pool::inline(), input.src(), out.dst(), &map);
        compare(&input, &input, &out, |index| {
            Some(map.iter().zip(&dims).map(|(d, n)| if *n == 1 { 0 } else { index[*d] }).collect())
        });
    }

    #[test]
    fn pad_places_elements_and_cuts_negative_edges(
        dtype in dtype(),
        spec in prop::collection::vec((0..6usize, -7..5i64, -7..5i64, 0..3i64), 0..4),
    ) {
        let dims: Vec<usize> = spec.iter().map(|(n, ..)| *n).collect();
        let (low, high, interior): (Vec<i64>, Vec<i64>, Vec<i64>) =
            (spec.iter().map(|s| s.1).collect(), spec.iter().map(|s| s.2).collect(), spec.iter().map(|s| s.3).collect());
        let out_dims: Vec<usize> = spec
            .iter()
            .map(|(n, l, h, i)| (l + *n as i64 + (*n as i64 - 1).max(0) * i + h).max(0) as usize)
            .collect();
        let input = Array::new(dtype, &dims);
        let mut value = Array::new(dtype, &[]);
        value.words[0] = u128::MAX / 3;
        let mut out = Array::new(dtype, &out_dims);
        pad(&Pool::inline(), input.src(), value.src(), out.dst(), &low, &high, &interior);
        compare(&input, &value, &out, |index| {
            (0..dims.len())
                .map(|d| {
                    let at = index[d] as i64 - low[d];
                    let step = interior[d] + 1;
                    (at >= 0 && at % step == 0 && at / step < dims[d] as i64).then_some((at / step) as usize)
                })
                .collect()
        });
    }

    #[test]
    fn concatenate_lays_inputs_end_to_end(
        dtype in dtype(),
        dims in prop::collection::vec(0..6usize, 1..4),
        sizes in prop::collection::vec((0..40usize, 0..3usize, 0..3usize), 1..4),
        dim in any::<prop::sample::Index>(),
    ) {
        let dim = dim.index(dims.len());
        let with = |n: usize| { let mut d = dims.clone(); d[dim] = n; d };
        let inputs: Vec<Array> = sizes
            .iter()
            .enumerate()
            .map(|(k, (n, before, after))| {
                let mut a = Array::new(dtype, &with(before + n + after));
                a.words.iter_mut().for_each(|w| *w ^= k as u128);
                a
            })
            .collect();
        let mut out = Array::new(dtype, &with(sizes.iter().map(|(n, ..)| n).sum()));
        let parts: Vec<_> = sizes.iter().map(|(n, before, _)| *before..before + n).collect();
        let sources: Vec<Src<'_>> = inputs.iter().map(Array::src).collect();
        concatenate_parts(&Pool::inline(), &sources, &parts, out.dst(), dim);
        for index in indices(&out.dims) {
            let (mut at, mut k) = (index.clone(), 0);
            while at[dim] >= parts[k].len() {
                at[dim] -= parts[k].len();
                k += 1;
            }
            at[dim] += parts[k].start;
            assert_eq!(out.element(&index), inputs[k].element(&at));
        }
    }
}

#[test]
fn large_copies_are_split_without_gaps() {
    for dtype in SIZES {
        check_transpose(dtype, &[700, 1001], &[1, 0]);
        check_transpose(dtype, &[3, 400, 7, 60], &[2, 0, 3, 1]);
        check_transpose(dtype, &[5, 70_001, 2], &[1, 0, 2]);
    }
    let input = Array::new(DType::F32, &[1 << 20]);
    let mut out = Array::new(DType::F32, &[1024, 1024]);
    out.words.fill(0);
    copy(&Pool::inline(), input.src(), out.dst());
    assert!(out.words == input.words);
}

#[test]
fn fill_repeats_one_element_of_any_size() {
    for dtype in SIZES {
        let value = Array { words: vec![0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10], dtype, dims: vec![] };
        let mut out = Array::new(dtype, &[300_000]);
        fill(&Pool::inline(), value.src(), out.dst());
        compare(&value, &value, &out, |_| None);
    }
}
