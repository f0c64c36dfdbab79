use super::*;
use crate::DType;
use crate::testing::{Array, encode, noise};
use proptest::prelude::*;

fn at(dims: &[usize], mut i: usize) -> Vec<usize> {
    let mut at = vec![0; dims.len()];
    for d in (0..dims.len()).rev() {
        at[d] = i % dims[d];
        i /= dims[d];
    }
    at
}

/// Compares with the definition in i64 (complex operands are `v - iv`, whose products are `-2iab`).
fn check(types: [DType; 3], lhs: &[usize], rhs: &[usize], spec: &ConvSpec) {
    let [lt, rt, ot] = types;
    let a = |i| noise(1, i, 4) - 2;
    let b = |i| noise(2, i, 4) - 2;
    let out_dims = spec.output_dims(lhs, rhs).unwrap();
    let (x, w) = (Array::from_fn(lt, lhs, a), Array::from_fn(rt, rhs, b));
    let mut out = Array::unset(ot, &out_dims);
    convolution(&Pool::inline(), x.src(), w.src(), out.dst(), spec);
    compare(types, lhs, rhs, spec, &out);
    // Small ones are done as a whole.
    if spec.lhs_dilation.iter().any(|d| *d > 1) && !x.src().is_empty() && !out.src().is_empty() {
        let mut out = Array::from_fn(ot, &out_dims, |_| 1);
        phases::convolve(&Pool::inline(), x.src(), w.src(), &mut out.dst(), spec);
        compare(types, lhs, rhs, spec, &out);
        undivided::convolve(&Pool::inline(), x.src(), w.src(), &mut out.dst(), spec);
        compare(types, lhs, rhs, spec, &out);
    }
}

fn compare(types: [DType; 3], lhs: &[usize], rhs: &[usize], spec: &ConvSpec, out: &Array) {
    let [_, _, ot] = types;
    let a = |i| noise(1, i, 4) - 2;
    let b = |i| noise(2, i, 4) - 2;
    let out_dims = spec.output_dims(lhs, rhs).unwrap();
    let axes = spec.window(rhs).axes(&spec.input_spatial.iter().map(|d| lhs[*d]).collect::<Vec<_>>());
    let n = axes.len();
    let inputs = rhs[spec.kernel_input_feature];
    let outputs = rhs[spec.kernel_output_feature];
    let flat = |dims: &[usize], at: &[usize]| dims.iter().zip(at).fold(0, |f, (n, i)| f * n + i);
    let taps: Vec<usize> = axes.iter().map(|x| x.size).collect();
    for o in 0..out_dims.iter().product() {
        let place = at(&out_dims, o);
        let feature = place[spec.output_feature];
        let (mut l, mut r) = (vec![0; n + 2], vec![0; n + 2]);
        l[spec.input_batch] =
            feature / (outputs / spec.batch_groups) * out_dims[spec.output_batch] + place[spec.output_batch];
        r[spec.kernel_output_feature] = feature;
        let mut want = 0;
        'taps: for tap in 0..taps.iter().product() {
            for (d, k) in at(&taps, tap).into_iter().enumerate() {
                r[spec.kernel_spatial[d]] = if spec.reversal[d] { taps[d] - 1 - k } else { k };
                match axes[d].position(place[spec.output_spatial[d]], k) {
                    Some(i) => l[spec.input_spatial[d]] = i,
                    None => continue 'taps,
                }
            }
            for i in 0..inputs {
                l[spec.input_feature] = feature / (outputs / spec.feature_groups) * inputs + i;
                r[spec.kernel_input_feature] = i;
                want += a(flat(lhs, &l)) * b(flat(rhs, &r));
            }
        }
        let size = ot.size();
        let mut bytes = encode(ot, want)[..size].to_vec();
        if ot.is_complex() {
            bytes = encode(ot, 2 * want)[..size].to_vec();
            bytes[..size / 2].fill(0);
        }
        let mut got = out.bytes()[o * size..][..size].to_vec();
        // A complex zero may have either sign.
        for zeros in [&mut got, &mut bytes] {
            let part = if ot.is_complex() { size / 2 } else { size };
            for p in zeros.chunks_exact_mut(part) {
                if (ot.is_complex() || ot.is_float())
                    && p[..part - 1].iter().all(|b| *b == 0)
                    && p[part - 1] == 0x80
                {
                    p[part - 1] = 0;
                }
            }
        }
        assert_eq!(got, bytes, "{types:?} {lhs:?} {rhs:?} {spec:?} at {place:?}: want {want}");
    }
}

/// Returns a convolution over `spatial` dimensions with batch first and features last.
fn features_last(spatial: usize) -> ConvSpec {
    let s: Vec<usize> = (1..=spatial).collect();
    ConvSpec {
        input_batch: 0,
        input_feature: spatial + 1,
        input_spatial: s.clone(),
        kernel_input_feature: spatial,
        kernel_output_feature: spatial + 1,
        kernel_spatial: (0..spatial).collect(),
        output_batch: 0,
        output_feature: spatial + 1,
        output_spatial: s,
        strides: vec![1; spatial],
        padding: vec![(0, 0); spatial],
        lhs_dilation: vec![1; spatial],
        rhs_dilation: vec![1; spatial],
        reversal: vec![false; spatial],
        feature_groups: 1,
        batch_groups: 1,
    }
}

fn features_first(spatial: usize) -> ConvSpec {
    let s: Vec<usize> = (2..spatial + 2).collect();
    ConvSpec {
        input_feature: 1,
        input_spatial: s.clone(),
        kernel_input_feature: 1,
        kernel_output_feature: 0,
        kernel_spatial: s.clone(),
        output_feature: 1,
        output_spatial: s,
        ..features_last(spatial)
    }
}

#[test]
fn every_type_convolves() {
    use DType::*;
    let spec = ConvSpec { padding: vec![(1, 1), (0, 2)], strides: vec![1, 2], ..features_last(2) };
    for types in [
        [F32, F32, F32],
        [F64, F64, F64],
        [BF16, BF16, BF16],
        [F16, F16, F32],
        [S8, S8, S32],
        [S32, S32, S32],
        [S64, S64, S64],
        [S8, S8, S8],
        [C64, C64, C64],
        [C128, C128, C128],
        [F8E4M3FN, F8E4M3FN, F32],
        [F32, BF16, F32],
    ] {
        check(types, &[2, 6, 7, 3], &[3, 2, 3, 5], &spec);
        check(types, &[2, 6, 7, 4], &[3, 2, 1, 4], &ConvSpec { feature_groups: 4, ..spec.clone() });
        check(types, &[2, 6, 7, 3], &[1, 1, 3, 5], &features_last(2));
    }
}

#[test]
fn gradients_as_jax_writes_them() {
    let f = [DType::F32; 3];
    let same = ConvSpec { padding: vec![(1, 1); 2], ..features_last(2) };
    let input = ConvSpec {
        kernel_input_feature: 3,
        kernel_output_feature: 2,
        reversal: vec![true; 2],
        ..same.clone()
    };
    check(f, &[2, 9, 8, 20], &[3, 3, 17, 20], &input);
    let strided = ConvSpec { lhs_dilation: vec![2; 2], padding: vec![(1, 2), (2, 1)], ..input.clone() };
    check(f, &[2, 9, 8, 20], &[3, 3, 17, 20], &strided);
    let kernel = ConvSpec {
        input_batch: 3,
        input_feature: 0,
        kernel_input_feature: 0,
        kernel_output_feature: 3,
        kernel_spatial: vec![1, 2],
        output_batch: 2,
        output_feature: 3,
        output_spatial: vec![0, 1],
        ..same.clone()
    };
    check(f, &[2, 9, 8, 20], &[2, 9, 8, 17], &kernel);
    let kernel_strided = ConvSpec { rhs_dilation: vec![2; 2], padding: vec![(1, 0); 2], ..kernel.clone() };
    check(f, &[2, 10, 8, 20], &[2, 5, 4, 17], &kernel_strided);
    let grouped = ConvSpec { batch_groups: 4, ..kernel };
    check(f, &[2, 9, 8, 8], &[2, 9, 8, 12], &grouped);
    let nchw_kernel = ConvSpec {
        input_batch: 1,
        input_feature: 0,
        kernel_input_feature: 0,
        kernel_output_feature: 1,
        output_batch: 1,
        output_feature: 0,
        padding: vec![(1, 1); 2],
        ..features_first(2)
    };
    check(f, &[2, 20, 9, 8], &[2, 17, 9, 8], &nchw_kernel);
    let nchw_input = ConvSpec {
        kernel_input_feature: 0,
        kernel_output_feature: 1,
        reversal: vec![true; 2],
        padding: vec![(1, 1); 2],
        ..features_first(2)
    };
    check(f, &[2, 20, 9, 8], &[20, 17, 3, 3], &nchw_input);
}

#[test]
fn shapes_that_are_cut_into_many_blocks() {
    let f = [DType::F32; 3];
    check(f, &[1, 20, 21, 40], &[3, 3, 40, 60], &ConvSpec { padding: vec![(1, 1); 2], ..features_last(2) });
    check(
        f,
        &[2, 30, 30, 3],
        &[7, 7, 3, 20],
        &ConvSpec { padding: vec![(3, 3); 2], strides: vec![2; 2], ..features_last(2) },
    );
    check(f, &[2, 40, 17, 19], &[50, 40, 3, 3], &ConvSpec { padding: vec![(1, 1); 2], ..features_first(2) });
    check(f, &[20, 5, 9, 9], &[6, 5, 2, 2], &ConvSpec { strides: vec![2; 2], ..features_first(2) });
    check(f, &[3, 200, 8], &[9, 8, 30], &ConvSpec { padding: vec![(4, 4)], ..features_last(1) });
    check(f, &[1, 6, 7, 8, 4], &[3, 2, 3, 4, 9], &features_last(3));
    check(f, &[3, 8], &[8, 9], &features_last(0));
    check(
        f,
        &[2, 12, 12, 130],
        &[3, 3, 1, 130],
        &ConvSpec { feature_groups: 130, padding: vec![(1, 1); 2], ..features_last(2) },
    );
    check(
        f,
        &[2, 12, 12, 6],
        &[3, 3, 1, 12],
        &ConvSpec { feature_groups: 6, padding: vec![(1, 1); 2], ..features_last(2) },
    );
    check(
        f,
        &[2, 6, 12, 12],
        &[12, 2, 3, 3],
        &ConvSpec { feature_groups: 3, padding: vec![(1, 1); 2], ..features_first(2) },
    );
    check(f, &[2, 10, 12, 5], &[1, 1, 5, 7], &ConvSpec { strides: vec![2, 3], ..features_last(2) });
    check(f, &[2, 5, 10, 12], &[7, 5, 1, 1], &ConvSpec { strides: vec![2, 3], ..features_first(2) });
    check(f, &[2, 10, 12, 0], &[1, 1, 0, 7], &features_last(2));
    check(f, &[2, 10, 12, 0], &[3, 3, 0, 7], &features_last(2));
}

#[test]
fn zeros_between_elements_meet_what_is_not_finite_in_the_kernel() {
    let spec = ConvSpec { lhs_dilation: vec![2], ..features_last(1) };
    let x = Array::from_fn(DType::F32, &[4, 40, 16], |_| 1);
    for (bad, finite) in [(f32::INFINITY, false), (f32::NAN, false), (1.0, true)] {
        let mut kernel = vec![1f32; 2 * 16 * 16];
        kernel[17] = bad;
        let bytes: Vec<u8> = kernel.iter().flat_map(|v| v.to_le_bytes()).collect();
        let w = Src::new(&bytes, DType::F32, &[2, 16, 16]);
        let mut out = Array::unset(DType::F32, &spec.output_dims(&[4, 40, 16], &[2, 16, 16]).unwrap());
        assert_eq!(phases::fit(x.src(), w, out.dst().dims(), &spec), finite);
        convolution(&Pool::inline(), x.src(), w, out.dst(), &spec);
        let nans =
            out.bytes().chunks_exact(4).filter(|v| f32::from_le_bytes([v[0], v[1], v[2], v[3]]).is_nan());
        assert_eq!(nans.count() == 0, finite, "{bad}");
    }
}

fn permutation(n: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..n).collect::<Vec<_>>()).prop_shuffle()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_dimension_numbers_agree_with_the_definition(
        orders in (permutation(4), permutation(4), permutation(4)),
        batch in 1usize..4,
        (inputs, outputs) in (1usize..6, 1usize..20),
        axes in prop::collection::vec((1usize..8, 1usize..5, 1usize..4, 1usize..4, 1usize..4, -2i64..4, -2i64..4, any::<bool>()), 2),
        groups in prop_oneof![Just((1, 1)), Just((2, 1)), Just((1, 2))],
        dtype in prop::sample::select(&[DType::F32, DType::S32, DType::BF16][..]),
    ) {
        let (fg, bg) = groups;
        // Place i of (batch or input feature, feature, spatial...) goes to dimension order[i].
        let place = |values: [usize; 4], order: &[usize]| {
            let mut dims = vec![0; 4];
            values.iter().zip(order).for_each(|(v, d)| dims[*d] = *v);
            dims
        };
        let lhs = place([batch * bg, inputs * fg, axes[0].0, axes[1].0], &orders.0);
        let rhs = place([inputs, outputs * fg * bg, axes[0].1, axes[1].1], &orders.1);
        let spec = ConvSpec {
            input_batch: orders.0[0],
            input_feature: orders.0[1],
            input_spatial: orders.0[2..].to_vec(),
            kernel_input_feature: orders.1[0],
            kernel_output_feature: orders.1[1],
            kernel_spatial: orders.1[2..].to_vec(),
            output_batch: orders.2[0],
            output_feature: orders.2[1],
            output_spatial: orders.2[2..].to_vec(),
            strides: axes.iter().map(|a| a.2).collect(),
            lhs_dilation: axes.iter().map(|a| a.3).collect(),
            rhs_dilation: axes.iter().map(|a| a.4).collect(),
            padding: axes.iter().map(|a| (a.5, a.6)).collect(),
            reversal: axes.iter().map(|a| a.7).collect(),
            feature_groups: fg,
            batch_groups: bg,
        };
        check([dtype; 3], &lhs, &rhs, &spec);
    }
}
