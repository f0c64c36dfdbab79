use super::*;
use crate::testing::{Array, indices};
use crate::view::Element;
use crate::{DType, Pool, ReduceOp};
use proptest::prelude::*;

const INDEX_TYPES: [DType; 8] =
    [DType::S8, DType::S16, DType::S32, DType::S64, DType::U8, DType::U16, DType::U32, DType::U64];

/// Returns an index array of any type; values that the type does not have are cut off.
fn index_array(dtype: DType, dims: &[usize], values: &[i64]) -> Array {
    fn cast<T: Element>(dtype: DType, dims: &[usize], values: &[i64], f: fn(i64) -> T) -> Array {
        Array::of(dtype, dims, &values.iter().map(|v| f(*v)).collect::<Vec<T>>())
    }
    match dtype {
        DType::S8 => cast(dtype, dims, values, |v| v as i8),
        DType::S16 => cast(dtype, dims, values, |v| v as i16),
        DType::S32 => cast(dtype, dims, values, |v| v as i32),
        DType::S64 => cast(dtype, dims, values, |v| v),
        DType::U8 => cast(dtype, dims, values, |v| v as u8),
        DType::U16 => cast(dtype, dims, values, |v| v as u16),
        DType::U32 => cast(dtype, dims, values, |v| v as u32),
        _ => cast(dtype, dims, values, |v| v as u64),
    }
}

/// Returns the value of an element of an index array.
fn index_value(array: &Array, flat: usize) -> i128 {
    let size = array.dtype.size();
    let mut word = [0u8; 16];
    word[..size].copy_from_slice(&array.src().bytes()[flat * size..(flat + 1) * size]);
    let bits = u128::from_le_bytes(word);
    if array.dtype.compute().is_signed_integer() {
        let shift = 128 - 8 * size as u32;
        ((bits << shift) as i128) >> shift
    } else {
        bits as i128
    }
}

/// Consistent dimension numbers and shapes. `collapsed` and so on name operand
/// dimensions.
#[derive(Debug, Clone)]
struct Case {
    dims: Vec<usize>,
    window: Vec<usize>,
    collapsed: Vec<usize>,
    batching: Vec<usize>,
    index_batching: Vec<usize>,
    map: Vec<usize>,
    vector_dim: usize,
    index_dims: Vec<usize>,
    offset_dims: Vec<usize>,
    full_dims: Vec<usize>,
    indices: Vec<i64>,
    dtype: DType,
    index_dtype: DType,
}

fn case() -> impl Strategy<Value = Case> {
    let operand =
        prop::collection::vec((1..7usize, 0..4u8, any::<prop::sample::Index>(), any::<bool>()), 1..5);
    let batch = prop::collection::vec(1..5usize, 0..3);
    let types = (
        prop::sample::select(vec![DType::U8, DType::U16, DType::F32, DType::F64, DType::C128]),
        prop::sample::select(INDEX_TYPES.to_vec()),
    );
    (operand, batch, types, any::<u64>(), any::<bool>()).prop_map(
        |(operand, batch, types, seed, implicit)| {
            let mut state = seed | 1;
            let mut random = |n: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % n.max(1)
            };
            let rank = operand.len();
            let mut dims: Vec<usize> = operand.iter().map(|o| o.0).collect();
            let (mut collapsed, mut batching, mut map) = (vec![], vec![], vec![]);
            let mut window = dims.clone();
            let mut batch_dims = batch;
            let mut batch_of = vec![];
            for d in 0..rank {
                match operand[d].1 {
                    0 => {
                        collapsed.push(d);
                        window[d] = 1;
                    }
                    1 if batch_of.len() < batch_dims.len() => {
                        batching.push(d);
                        dims[d] = batch_dims[batch_of.len()];
                        batch_of.push(batch_of.len());
                        window[d] = 1;
                    }
                    _ => window[d] = 1 + operand[d].2.index(dims[d]),
                }
                if operand[d].3 && !batching.contains(&d) {
                    map.push(d);
                }
            }
            if random(2) == 0 {
                map.reverse();
            }
            // Where the index vectors lie; an implicit dimension can only hold one component.
            let implicit = implicit && map.len() == 1;
            let vector_dim = if implicit { batch_dims.len() } else { random(batch_dims.len() + 1) };
            let mut index_dims = batch_dims.clone();
            if !implicit {
                index_dims.insert(vector_dim, map.len());
            }
            let index_batching: Vec<usize> =
                batch_of.iter().map(|b| if !implicit && *b >= vector_dim { b + 1 } else { *b }).collect();
            // The result's dimensions: batch and window ones, shuffled together in order.
            let kept: Vec<usize> =
                (0..rank).filter(|d| !collapsed.contains(d) && !batching.contains(d)).collect();
            let (mut full_dims, mut offset_dims) = (vec![], vec![]);
            let (mut b, mut k) = (0, 0);
            while b < batch_dims.len() || k < kept.len() {
                if k == kept.len() || (b < batch_dims.len() && random(2) == 0) {
                    full_dims.push(batch_dims[b]);
                    b += 1;
                } else {
                    offset_dims.push(full_dims.len());
                    full_dims.push(window[kept[k]]);
                    k += 1;
                }
            }
            let indices = (0..index_dims.iter().product())
                .map(|_| match random(12) {
                    0 => i64::MIN,
                    1 => i64::MAX,
                    2 => -1,
                    _ => random(8) as i64,
                })
                .collect();
            batch_dims.clear();
            Case {
                dims,
                window,
                collapsed,
                batching,
                index_batching,
                map,
                vector_dim,
                index_dims,
                offset_dims,
                full_dims,
                indices,
                dtype: types.0,
                index_dtype: types.1,
            }
        },
    )
}

impl Case {
    /// Returns the position in the operand of an element of the result or of the updates: the start's
    /// unclamped components, and the position relative to them.
    fn place(&self, indices: &Array, full: &[usize]) -> (Vec<i128>, Vec<usize>) {
        let batch: Vec<usize> =
            (0..full.len()).filter(|d| !self.offset_dims.contains(d)).map(|d| full[d]).collect();
        let mut start = vec![0i128; self.dims.len()];
        for (k, d) in self.map.iter().enumerate() {
            let mut at = batch.clone();
            if self.vector_dim < self.index_dims.len() {
                at.insert(self.vector_dim, k);
            }
            let flat = at.iter().zip(&self.index_dims).fold(0, |n, (i, d)| n * d + i);
            start[*d] = index_value(indices, flat);
        }
        for (d, b) in self.batching.iter().zip(&self.index_batching) {
            let number =
                (0..self.index_dims.len()).filter(|i| *i != self.vector_dim).position(|i| i == *b).unwrap();
            start[*d] = batch[number] as i128;
        }
        let mut offset = vec![0; self.dims.len()];
        let kept = (0..self.dims.len()).filter(|d| !self.collapsed.contains(d) && !self.batching.contains(d));
        for (d, o) in kept.zip(&self.offset_dims) {
            offset[d] = full[*o];
        }
        (start, offset)
    }

    fn gather_spec(&self) -> GatherSpec<'_> {
        GatherSpec {
            offset_dims: &self.offset_dims,
            collapsed_slice_dims: &self.collapsed,
            operand_batching_dims: &self.batching,
            start_indices_batching_dims: &self.index_batching,
            start_index_map: &self.map,
            index_vector_dim: self.vector_dim,
            slice_sizes: &self.window,
        }
    }

    fn scatter_spec(&self) -> ScatterSpec<'_> {
        ScatterSpec {
            update_window_dims: &self.offset_dims,
            inserted_window_dims: &self.collapsed,
            input_batching_dims: &self.batching,
            scatter_indices_batching_dims: &self.index_batching,
            scatter_dims_to_operand_dims: &self.map,
            index_vector_dim: self.vector_dim,
            indices_are_sorted: false,
            unique_indices: false,
        }
    }
}

/// Pairs of an operand place and an update place in the order of the updates, out-of-bounds windows left out.
fn scatter_pairs(case: &Case, indices_array: &Array) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut pairs = vec![];
    for full in indices(&case.full_dims) {
        let (start, offset) = case.place(indices_array, &full);
        let inside = (0..case.dims.len())
            .all(|d| start[d] >= 0 && start[d] + case.window[d] as i128 <= case.dims[d] as i128);
        if inside {
            pairs.push(((0..case.dims.len()).map(|d| start[d] as usize + offset[d]).collect(), full));
        }
    }
    pairs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn gather_copies_windows_at_clamped_starts(case in case()) {
        let operand = Array::new(case.dtype, &case.dims);
        let starts = index_array(case.index_dtype, &case.index_dims, &case.indices);
        let mut out = Array::new(case.dtype, &case.full_dims);
        gather(&Pool::inline(), operand.src(), starts.src(), out.dst(), &case.gather_spec());
        for full in indices(&case.full_dims) {
            let (start, offset) = case.place(&starts, &full);
            let at: Vec<usize> = (0..case.dims.len())
                .map(|d| start[d].clamp(0, (case.dims[d] - case.window[d]) as i128) as usize + offset[d])
                .collect();
            assert_eq!(out.element(&full), operand.element(&at), "{case:?}");
        }
    }

    #[test]
    fn scatter_adds_windows_and_leaves_out_those_out_of_bounds(mut case in case()) {
        case.dtype = DType::S32;
        let updates = Array::new(DType::S32, &case.full_dims);
        let starts = index_array(case.index_dtype, &case.index_dims, &case.indices);
        let operand = Array::new(DType::S32, &case.dims);
        let mut out = Array::new(DType::S32, &case.dims);
        out.words.fill(0);
        scatter(&Pool::inline(), Combiner::Reduce(ReduceOp::Add), operand.src(), starts.src(), updates.src(), out.dst(), &case.scatter_spec());
        let mut want = operand.values::<i32>();
        let from = updates.values::<i32>();
        let flat = |at: &[usize], dims: &[usize]| at.iter().zip(dims).fold(0, |n, (i, d)| n * d + i);
        for (to, full) in scatter_pairs(&case, &starts) {
            let to = flat(&to, &case.dims);
            want[to] = want[to].wrapping_add(from[flat(&full, &case.full_dims)]);
        }
        assert_eq!(out.values::<i32>(), want, "{case:?}");
    }

    #[test]
    fn scatter_with_names_the_same_pairs(case in case()) {
        let starts = index_array(case.index_dtype, &case.index_dims, &case.indices);
        let mut pairs = vec![];
        scatter_with(&case.dims, starts.src(), &case.full_dims, &case.scatter_spec(), &mut |o, u| pairs.push((o, u)));
        let flat = |at: &[usize], dims: &[usize]| at.iter().zip(dims).fold(0, |n, (i, d)| n * d + i);
        let mut want: Vec<(usize, usize)> = scatter_pairs(&case, &starts)
            .into_iter()
            .map(|(to, full)| (flat(&to, &case.dims), flat(&full, &case.full_dims)))
            .collect();
        pairs.sort_unstable();
        want.sort_unstable();
        assert_eq!(pairs, want, "{case:?}");
    }

    #[test]
    fn dynamic_slices_read_and_write_the_window(
        spec in prop::collection::vec((1..9usize, any::<prop::sample::Index>(), -3..12i64), 0..4),
    ) {
        let dims: Vec<usize> = spec.iter().map(|s| s.0).collect();
        let window: Vec<usize> = spec.iter().map(|s| s.1.index(s.0 + 1)).collect();
        let mut starts: Vec<i64> = spec.iter().map(|s| s.2).collect();
        clamp_starts(&mut starts, &dims, &window);
        let operand = Array::new(DType::F32, &dims);
        let mut out = Array::new(DType::F32, &window);
        dynamic_slice(&Pool::inline(), operand.src(), &starts, out.dst());
        let at = |index: &[usize]| -> Vec<usize> { index.iter().zip(&starts).map(|(i, s)| i + *s as usize).collect() };
        for index in indices(&window) {
            assert_eq!(out.element(&index), operand.element(&at(&index)));
        }
        let update = Array::of(DType::F32, &window, &vec![7u32; window.iter().product()]);
        let mut changed = Array::new(DType::F32, &dims);
        changed.words.fill(0);
        dynamic_update_slice(&Pool::inline(), operand.src(), update.src(), &starts, changed.dst());
        let inside: Vec<Vec<usize>> = indices(&window).map(|i| at(&i)).collect();
        for index in indices(&dims) {
            let want = if inside.contains(&index) { 7u32.to_le_bytes().to_vec() } else { operand.element(&index) };
            assert_eq!(changed.element(&index), want);
        }
    }
}

#[test]
fn updates_in_place_write_only_the_windows() {
    let mut array = Array::of(DType::S32, &[6], &[1, 2, 3, 4, 5, 6]);
    let dims = array.dims.clone();
    let pointer = std::ptr::NonNull::from(&mut array.words[..]).cast();
    // SAFETY: both views are of `array`, which stays borrowed, and go to one kernel call each that works in
    // place.
    let both =
        || unsafe { (Src::from_raw(pointer, DType::S32, &dims), Dst::from_raw(pointer, DType::S32, &dims)) };
    let update = Array::of(DType::S32, &[2], &[-1, -2]);
    let (operand, out) = both();
    dynamic_update_slice(&Pool::inline(), operand, update.src(), &[3], out);
    let at = Array::of(DType::S32, &[2], &[5, 0]);
    let spec = ScatterSpec {
        update_window_dims: &[],
        inserted_window_dims: &[0],
        input_batching_dims: &[],
        scatter_indices_batching_dims: &[],
        scatter_dims_to_operand_dims: &[0],
        index_vector_dim: 1,
        indices_are_sorted: false,
        unique_indices: true,
    };
    let (operand, out) = both();
    scatter(&Pool::inline(), Combiner::Reduce(ReduceOp::Add), operand, at.src(), update.src(), out, &spec);
    assert_eq!(array.values::<i32>(), [-1, 2, 3, -1, -2, 5]);
}

use crate::{Dst, Src};

/// Scatters two values to one place with a combiner.
fn combine<T: Element>(combiner: Combiner, dtype: DType, old: T, update: T) -> T {
    let operand = Array::of(dtype, &[1], &[old]);
    let (at, update) = (Array::of(DType::U64, &[1, 1], &[0u64]), Array::of(dtype, &[1], &[update]));
    let mut out = Array::new(dtype, &[1]);
    let spec = ScatterSpec {
        update_window_dims: &[],
        inserted_window_dims: &[0],
        input_batching_dims: &[],
        scatter_indices_batching_dims: &[],
        scatter_dims_to_operand_dims: &[0],
        index_vector_dim: 1,
        indices_are_sorted: true,
        unique_indices: true,
    };
    scatter(&Pool::inline(), combiner, operand.src(), at.src(), update.src(), out.dst(), &spec);
    out.values::<T>()[0]
}

#[test]
fn combiners_follow_the_rules_of_their_type() {
    use Combiner::{Reduce, Replace};
    use ReduceOp::{Add, Maximum, Minimum, Multiply, Xor};
    assert_eq!(combine(Reduce(Add), DType::S8, 127i8, 1), -128);
    assert_eq!(combine(Reduce(Multiply), DType::U16, 0x8000u16, 2), 0);
    assert_eq!(combine(Reduce(Xor), DType::U32, 6u32, 3), 5);
    assert_eq!(combine(Reduce(Add), DType::Pred, 1u8, 1), 1);
    assert_eq!(combine(Reduce(Multiply), DType::Pred, 1u8, 0), 0);
    assert!(combine(Reduce(Maximum), DType::F32, f32::NAN, 1.0).is_nan());
    assert!(combine(Reduce(Minimum), DType::F32, 1.0, f32::NAN).is_nan());
    assert_eq!(combine(Reduce(Multiply), DType::C64, [1.0f32, 2.0], [3.0, 4.0]), [-5.0, 10.0]);
    assert_eq!(
        combine(Reduce(Add), DType::BF16, half::bf16::from_f32(256.0), half::bf16::ONE).to_f32(),
        256.0
    );
    assert_eq!(combine(Replace, DType::C128, [1.0f64, 2.0], [3.0, 4.0]), [3.0, 4.0]);
}

#[test]
fn long_rows_of_one_window_and_of_windows_that_meet_are_combined_in_order() {
    let (rows, cols) = (9, 141);
    for starts in [vec![(1i64, 2i64)], vec![(1, 2), (3, 4), (4, 100), (0, 0)]] {
        let (height, width, count) = (5, 37, starts.len());
        let flat: Vec<i64> = starts.iter().flat_map(|(r, c)| [*r, *c]).collect();
        let indices = index_array(DType::S32, &[count, 2], &flat);
        let numbers = |n: usize, factor: usize| (0..n).map(|i| (i * factor % 23) as f32).collect::<Vec<_>>();
        let operand = Array::of(DType::F32, &[rows, cols], &numbers(rows * cols, 7));
        let updates = Array::of(DType::F32, &[count, height, width], &numbers(count * height * width, 5));
        let mut out = Array::of(DType::F32, &[rows, cols], &vec![0f32; rows * cols]);
        let spec = ScatterSpec {
            update_window_dims: &[1, 2],
            inserted_window_dims: &[],
            input_batching_dims: &[],
            scatter_indices_batching_dims: &[],
            scatter_dims_to_operand_dims: &[0, 1],
            index_vector_dim: 1,
            indices_are_sorted: false,
            unique_indices: false,
        };
        let pool = Pool::inline();
        scatter(
            &pool,
            Combiner::Reduce(ReduceOp::Add),
            operand.src(),
            indices.src(),
            updates.src(),
            out.dst(),
            &spec,
        );
        let mut expected = operand.values::<f32>().to_vec();
        let updates = updates.values::<f32>();
        for (w, (r, c)) in starts.iter().enumerate() {
            for (i, u) in updates[w * height * width..(w + 1) * height * width].iter().enumerate() {
                expected[(*r as usize + i / width) * cols + *c as usize + i % width] += u;
            }
        }
        assert_eq!(out.values::<f32>(), expected, "{starts:?}");
    }
}

/// Numbers that look random and are the same in every run.
fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    }
}

/// Rows of an array of two dimensions by number.
fn rows_by_number(implicit: bool, count: usize) -> (Vec<usize>, usize) {
    if implicit { (vec![count], 1) } else { (vec![1, count], 0) }
}

#[test]
fn runs_of_all_lengths_are_gathered_from_all_types_of_indices() {
    let (rows, count) = (97, 700);
    for length in (0..150).chain([200, 256, 1000, 1024, 1025, 2000]) {
        let mut random = numbers(length as u64);
        let index_type = INDEX_TYPES[length % INDEX_TYPES.len()];
        let starts: Vec<i64> = (0..count)
            .map(|i| match i % 50 {
                7 => -1 - random(100) as i64,
                8 => 97 + random(30) as i64,
                _ => random(rows) as i64,
            })
            .collect();
        let (index_dims, vector_dim) = rows_by_number(length % 3 == 0, count);
        let indices = index_array(index_type, &index_dims, &starts);
        let operand = Array::new(DType::U8, &[rows, length]);
        let mut out = Array::new(DType::U8, &[count, length]);
        let spec = GatherSpec {
            offset_dims: &[1],
            collapsed_slice_dims: &[0],
            operand_batching_dims: &[],
            start_indices_batching_dims: &[],
            start_index_map: &[0],
            index_vector_dim: vector_dim,
            slice_sizes: &[1, length],
        };
        let pool = if length % 2 == 0 { Pool::inline() } else { Pool::new(2) };
        gather(&pool, operand.src(), indices.src(), out.dst(), &spec);
        let (from, to) = (operand.src().bytes(), out.src().bytes());
        for i in 0..count {
            let row = index_value(&indices, i).clamp(0, rows as i128 - 1) as usize;
            let want = &from[row * length..(row + 1) * length];
            assert_eq!(&to[i * length..(i + 1) * length], want, "{length} bytes, window {i}");
        }
    }
}

#[test]
fn windows_of_several_runs_are_gathered_run_by_run() {
    // Columns of length `length` out of each of the rows, at one place for all rows.
    let (rows, cols, count) = (5, 60, 300);
    for length in [1usize, 2, 3, 5, 8, 12, 17, 31, 32, 33, 40] {
        let mut random = numbers(length as u64);
        let starts: Vec<i64> = (0..count).map(|_| random(70) as i64 - 5).collect();
        let indices = index_array(DType::S64, &[count], &starts);
        let operand = Array::new(DType::F32, &[rows, cols]);
        let mut out = Array::new(DType::F32, &[rows, count, length]);
        let spec = GatherSpec {
            offset_dims: &[0, 2],
            collapsed_slice_dims: &[],
            operand_batching_dims: &[],
            start_indices_batching_dims: &[],
            start_index_map: &[1],
            index_vector_dim: 1,
            slice_sizes: &[rows, length],
        };
        gather(&Pool::inline(), operand.src(), indices.src(), out.dst(), &spec);
        for full in self::indices(&[rows, count, length]) {
            let start = starts[full[1]].clamp(0, (cols - length) as i64) as usize;
            assert_eq!(out.element(&full), operand.element(&[full[0], start + full[2]]), "{length} {full:?}");
        }
    }
}

#[test]
fn rows_of_all_lengths_are_combined_in_order() {
    let (rows, count) = (61usize, 700usize);
    for length in (1..40).chain([64, 100, 130]) {
        let mut random = numbers(length as u64);
        let starts: Vec<i64> = (0..count)
            .map(|i| match i % 50 {
                7 if length % 2 == 0 => -1 - random(60) as i64,
                8 if length % 2 == 0 => 61 + random(60) as i64,
                _ => random(rows) as i64,
            })
            .collect();
        let (index_dims, vector_dim) = rows_by_number(length % 3 == 0, count);
        let index_type = INDEX_TYPES[length % INDEX_TYPES.len()];
        let indices = index_array(index_type, &index_dims, &starts);
        // Sums whose roundings tell their order.
        let values =
            |n: usize, seed: usize| (0..n).map(|i| 1.0 / (1 + i * seed % 97) as f32).collect::<Vec<_>>();
        let operand = Array::of(DType::F32, &[rows, length], &values(rows * length, 31));
        let updates = Array::of(DType::F32, &[count, length], &values(count * length, 53));
        let spec = ScatterSpec {
            update_window_dims: &[1],
            inserted_window_dims: &[0],
            input_batching_dims: &[],
            scatter_indices_batching_dims: &[],
            scatter_dims_to_operand_dims: &[0],
            index_vector_dim: vector_dim,
            indices_are_sorted: false,
            unique_indices: false,
        };
        let mut want = operand.values::<f32>().to_vec();
        let from = updates.values::<f32>();
        for i in 0..count {
            let row = index_value(&indices, i);
            if (0..rows as i128).contains(&row) {
                for k in 0..length {
                    want[row as usize * length + k] += from[i * length + k];
                }
            }
        }
        for threads in [1, 2] {
            let mut out = Array::of(DType::F32, &[rows, length], &vec![0f32; rows * length]);
            let pool = Pool::new(threads);
            scatter(
                &pool,
                Combiner::Reduce(ReduceOp::Add),
                operand.src(),
                indices.src(),
                updates.src(),
                out.dst(),
                &spec,
            );
            assert_eq!(out.values::<f32>(), want, "rows of {length}, {threads} threads");
        }
    }
}
