use super::*;
use crate::testing::{Array, encode, noise};
use proptest::prelude::*;

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

fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for n in dims {
        all = all
            .into_iter()
            .flat_map(|at: Vec<usize>| (0..*n).map(move |i| [&at[..], &[i]].concat()))
            .collect();
    }
    all
}

/// Compares with the definition in i64.
fn check(op: ReduceOp, dtype: DType, dims: &[usize], spec: &WindowSpec, init_value: i64) {
    let signed = dtype.is_float() || dtype.compute().is_signed_integer();
    let value = |i: usize| match (op, dtype) {
        (_, DType::Pred) => noise(3, i, 2),
        (ReduceOp::Multiply, _) => 1 + i64::from(i % 97 == 3),
        _ if signed && !dtype.is_complex() => noise(3, i, 4) - 2,
        _ => noise(3, i, 3),
    };
    let input = Array::from_fn(dtype, dims, value);
    let init = Array::from_fn(dtype, &[], |_| init_value);
    let out_dims = spec.output_dims(dims).unwrap();
    let mut out = Array::unset(dtype, &out_dims);
    reduce_window(&Pool::inline(), op, input.src(), init.src(), out.dst(), spec);
    let op_on = op.for_storage(dtype);
    for (o, at) in indices(&out_dims).iter().enumerate() {
        let mut want = init_value;
        spec.for_each_position(dims, at, |p| want = apply(op_on, want, p.map_or(init_value, value)));
        let got = &out.bytes()[o * dtype.size()..][..dtype.size()];
        assert_eq!(
            got,
            &encode(dtype, want)[..dtype.size()],
            "{op:?} {dtype:?} {dims:?} {spec:?} at {at:?}: want {want}"
        );
    }
}

/// Returns the value that an operation starts from, if it is an integer.
fn neutral(op: ReduceOp, dtype: DType) -> i64 {
    match op {
        ReduceOp::Multiply => 1,
        ReduceOp::Minimum if dtype != DType::Pred => 1,
        ReduceOp::And | ReduceOp::Minimum => 1,
        _ => 0,
    }
}

#[test]
fn every_type_pools() {
    let mut spec = WindowSpec::new(vec![1, 3, 2, 1]);
    spec.strides = vec![1, 2, 1, 1];
    spec.padding = vec![(0, 0), (1, 1), (0, 1), (0, 0)];
    for &dtype in DType::ALL {
        if dtype == DType::F8E8M0FNU {
            continue;
        }
        for op in [ReduceOp::Add, ReduceOp::Maximum, ReduceOp::Minimum, ReduceOp::Xor, ReduceOp::Multiply] {
            let exact = dtype.bits() >= 8 || matches!(op, ReduceOp::Maximum | ReduceOp::Minimum);
            if op.supports(dtype)
                && (exact || !dtype.is_float())
                && !(dtype.is_complex() && op == ReduceOp::Multiply)
            {
                check(op, dtype, &[2, 7, 5, 3], &spec, neutral(op, dtype));
            }
        }
    }
}

#[test]
fn cumulative_windows_of_all_directions() {
    for (dims, d) in [
        (&[5000][..], 0),
        (&[3, 40][..], 1),
        (&[30, 1500], 1),
        (&[70, 5], 0),
        (&[3, 30, 200], 1),
        (&[9, 8], 1),
        (&[1, 1], 0),
    ] {
        for reverse in [false, true] {
            let mut spec = WindowSpec::new(vec![1; dims.len()]);
            spec.size[d] = dims[d];
            spec.padding[d] = if reverse { (0, dims[d] as i64 - 1) } else { (dims[d] as i64 - 1, 0) };
            for op in [ReduceOp::Add, ReduceOp::Maximum, ReduceOp::Multiply] {
                check(op, DType::S32, dims, &spec, neutral(op, DType::S32));
                if dims.iter().product::<usize>() < 1000 || op == ReduceOp::Maximum {
                    check(op, DType::F32, dims, &spec, neutral(op, DType::F32));
                    check(
                        op,
                        DType::BF16,
                        dims,
                        &spec,
                        -7 * i64::from(op == ReduceOp::Maximum) + neutral(op, DType::F32),
                    );
                }
            }
            // With a start that is not neutral every place of padding counts.
            if dims.iter().product::<usize>() < 1000 {
                check(ReduceOp::Add, DType::S32, dims, &spec, 5);
            }
        }
    }
}

#[test]
fn running_sums_are_taken_in_blocks() {
    const N: usize = 200_003;
    let value = |i: usize| noise(3, i, 1000) as f32 * 0.001 + 1.0;
    for dims in [[N, 1], [N, 3]] {
        let mut x = Array::from_fn(DType::F32, &dims, |_| 0);
        for (i, v) in x.dst().as_mut_slice::<f32>().iter_mut().enumerate() {
            *v = value(i / dims[1]);
        }
        let init = Array::from_fn(DType::F32, &[], |_| 0);
        let mut spec = WindowSpec::new(vec![N, 1]);
        spec.padding = vec![(N as i64 - 1, 0), (0, 0)];
        let mut out = Array::unset(DType::F32, &dims);
        reduce_window(&Pool::inline(), ReduceOp::Add, x.src(), init.src(), out.dst(), &spec);
        let mut sum = 0.0;
        for (i, got) in out.src().as_slice::<f32>().iter().step_by(dims[1]).enumerate() {
            sum += f64::from(value(i));
            let error = (f64::from(*got) - sum).abs() / (sum * f64::from(f32::EPSILON));
            assert!(error < 8.0, "element {i} of {dims:?}: {got} for {sum}, {error} units");
        }
    }
}

#[test]
fn nan_wins_pooling_and_cumulative_maxima() {
    let mut x = Array::from_fn(DType::F32, &[4], |i| i as i64);
    x.dst().as_mut_slice::<f32>()[1] = f32::NAN;
    let mut init = Array::from_fn(DType::F32, &[], |_| 0);
    init.dst().as_mut_slice::<f32>()[0] = f32::NEG_INFINITY;
    let mut spec = WindowSpec::new(vec![4]);
    spec.padding = vec![(3, 0)];
    let mut out = Array::unset(DType::F32, &[4]);
    reduce_window(&Pool::inline(), ReduceOp::Maximum, x.src(), init.src(), out.dst(), &spec);
    let got: Vec<bool> = out.src().as_slice::<f32>().iter().map(|v| v.is_nan()).collect();
    assert_eq!(got, [false, true, true, true]);
}

fn check_select(select: SelectOp, scatter: ReduceOp, dtype: DType, dims: &[usize], spec: &WindowSpec) {
    let value = |i: usize| noise(8, i, 4);
    let windows = spec.output_dims(dims).unwrap();
    let operand = Array::from_fn(dtype, dims, value);
    let source = Array::from_fn(dtype, &windows, |i| 1 + noise(9, i, 2));
    let init = Array::from_fn(dtype, &[], |_| 1);
    let mut out = Array::unset(dtype, dims);
    select_and_scatter(
        &Pool::inline(),
        select,
        scatter,
        operand.src(),
        source.src(),
        init.src(),
        out.dst(),
        spec,
    );
    let mut want = vec![1; dims.iter().product()];
    for (w, at) in indices(&windows).iter().enumerate() {
        let mut selected: Option<usize> = None;
        spec.for_each_position(dims, at, |p| {
            let keep = match (selected, p) {
                (Some(s), Some(p)) => match select {
                    SelectOp::Ge => value(s) >= value(p),
                    SelectOp::Gt => value(s) > value(p),
                    SelectOp::Le => value(s) <= value(p),
                    SelectOp::Lt => value(s) < value(p),
                },
                (_, None) => true,
                (None, _) => false,
            };
            selected = if keep { selected } else { p };
        });
        if let Some(s) = selected {
            want[s] = apply(scatter, want[s], 1 + noise(9, w, 2));
        }
    }
    for (i, w) in want.iter().enumerate() {
        let got = &out.bytes()[i * dtype.size()..][..dtype.size()];
        assert_eq!(
            got,
            &encode(dtype, *w)[..dtype.size()],
            "{select:?} {scatter:?} {dtype:?} {dims:?} {spec:?} at {i}"
        );
    }
}

#[test]
fn select_and_scatter_follows_the_selected_element() {
    let mut overlapping = WindowSpec::new(vec![1, 3, 3, 1]);
    overlapping.strides = vec![1, 2, 2, 1];
    overlapping.padding = vec![(0, 0), (0, 1), (1, 1), (0, 0)];
    let mut apart = WindowSpec::new(vec![1, 1, 2, 2]);
    apart.strides = vec![1, 1, 2, 2];
    for select in [SelectOp::Ge, SelectOp::Gt, SelectOp::Le, SelectOp::Lt] {
        for dtype in [DType::F32, DType::S32, DType::BF16, DType::U64, DType::F64, DType::U8] {
            check_select(select, ReduceOp::Add, dtype, &[2, 8, 9, 5], &overlapping);
            check_select(select, ReduceOp::Add, dtype, &[2, 3, 8, 9], &apart);
            check_select(select, ReduceOp::Maximum, dtype, &[2, 3, 8, 9], &apart);
        }
        check_select(select, ReduceOp::Add, DType::F32, &[1, 4, 4, 300], &overlapping);
    }
    check_select(SelectOp::Ge, ReduceOp::Xor, DType::S8, &[2, 3, 8, 9], &apart);
}

#[test]
fn the_first_nan_of_a_window_is_left_for_the_next_element() {
    let mut operand = Array::from_fn(DType::F32, &[3], |i| i as i64);
    operand.dst().as_mut_slice::<f32>()[1] = f32::NAN;
    let source = Array::from_fn(DType::F32, &[1], |_| 5);
    let init = Array::from_fn(DType::F32, &[], |_| 0);
    let mut out = Array::unset(DType::F32, &[3]);
    let spec = WindowSpec::new(vec![3]);
    select_and_scatter(
        &Pool::inline(),
        SelectOp::Ge,
        ReduceOp::Add,
        operand.src(),
        source.src(),
        init.src(),
        out.dst(),
        &spec,
    );
    assert_eq!(out.src().as_slice::<f32>(), [0.0, 0.0, 5.0]);
}

fn any_window(dilated: bool) -> impl Strategy<Value = (Vec<usize>, WindowSpec)> {
    let dilation = if dilated { 1usize..4 } else { 1usize..2 };
    let axis = (1usize..9, 1usize..5, 1usize..4, dilation.clone(), dilation, -2i64..4, -2i64..4);
    prop::collection::vec(prop_oneof![Just((3, 1, 1, 1, 1, 0, 0)), axis], 0..4).prop_map(|axes| {
        let dims = axes.iter().map(|a| a.0).collect();
        let spec = WindowSpec {
            size: axes.iter().map(|a| a.1).collect(),
            strides: axes.iter().map(|a| a.2).collect(),
            base_dilations: axes.iter().map(|a| a.3).collect(),
            window_dilations: axes.iter().map(|a| a.4).collect(),
            padding: axes.iter().map(|a| (a.5, a.6)).collect(),
        };
        (dims, spec)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_window_agrees_with_the_definition(
        (dims, spec) in any_window(true),
        op in prop::sample::select(&[ReduceOp::Add, ReduceOp::Maximum, ReduceOp::And][..]),
        start in 0i64..2,
    ) {
        check(op, DType::S32, &dims, &spec, start);
        if op != ReduceOp::And {
            check(op, DType::F32, &dims, &spec, start);
        }
    }

    #[test]
    fn any_selection_agrees_with_the_definition(
        (dims, spec) in any_window(false),
        select in prop::sample::select(&[SelectOp::Ge, SelectOp::Gt, SelectOp::Le, SelectOp::Lt][..]),
    ) {
        check_select(select, ReduceOp::Add, DType::F32, &dims, &spec);
    }
}
