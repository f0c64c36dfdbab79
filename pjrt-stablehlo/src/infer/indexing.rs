//! Operations that use values as indices.

use super::context::{Context, integers};
use super::reductions;
use super::result::{ResultRule, Results};
use super::shape::{Shape, Size, sizes_agree};
use crate::Constraint::{self, C};
use crate::Error;
use crate::ir::ops::{DynamicSlice, Scatter};
use crate::ir::{DYNAMIC, GatherDimensionNumbers, Ints, Op, ScatterDimensionNumbers, TensorType};

/// Returns the results of operations that read or write at indices; `None` for other operations.
pub(super) fn results(cx: &Context<'_>) -> Option<Results> {
    Some(match &cx.op.kind {
        Op::DynamicGather(op) => gather(cx, &op.dimension_numbers, None),
        Op::DynamicSlice(op) => dynamic_slice(cx, op),
        Op::DynamicUpdateSlice(_) => dynamic_update_slice(cx),
        Op::Gather(op) => gather(cx, &op.dimension_numbers, Some(&op.slice_sizes)),
        Op::Scatter(op) => scatter(cx, &op.scatter_dimension_numbers),
        _ => return None,
    })
}

/// Checks the operands from `first` on, which are indices of one type, one for each dimension.
fn indices(
    cx: &Context<'_>,
    first: usize,
    rank: usize,
    count: Constraint,
    same: Constraint,
) -> Result<(), Error> {
    cx.length(count, "start_indices", cx.op.operands.len().saturating_sub(first), rank)?;
    (first + 1..cx.op.operands.len()).try_for_each(|index| {
        let (expected, found) = (cx.operand_type(first), cx.operand_type(index));
        cx.require(same, expected == found, || format!("operand {index}: expected {expected}, found {found}"))
    })
}

/// Checks that slices are not larger than the operand.
fn slice_sizes(
    cx: &Context<'_>,
    sizes: &[i64],
    operand: &TensorType,
    count: Constraint,
    range: Constraint,
) -> Result<(), Error> {
    cx.length(count, "slice_sizes", sizes.len(), operand.rank())?;
    for (index, &size) in sizes.iter().enumerate() {
        let (whole, bound) = Shape::size_of(operand, index);
        let most = if whole == DYNAMIC { bound } else { whole };
        cx.require(range, size >= 0 && (most == DYNAMIC || size <= most), || {
            format!("slice_sizes: expected at most the size of dimension {index} of {operand}, found {size}")
        })?;
    }
    Ok(())
}

/// `dynamic_slice`: the slice is not larger than the operand.
fn dynamic_slice(cx: &Context<'_>, op: &DynamicSlice) -> Results {
    let operand = cx.tensor(0)?;
    indices(cx, 1, operand.rank(), C(2), C(3))?;
    slice_sizes(cx, &op.slice_sizes, operand, C(2), C(4))?;
    Ok(vec![ResultRule::of(Shape::from(&*op.slice_sizes).like(operand), C(5)).with_elements(C(1))])
}

/// `dynamic_update_slice`: the update is not larger than the operand.
fn dynamic_update_slice(cx: &Context<'_>) -> Results {
    let (operand, update) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.same_elements(C(2), 1, operand)?;
    cx.require(C(3), update.rank() == operand.rank(), || {
        format!("operand 'update': expected rank {}, found {update}", operand.rank())
    })?;
    indices(cx, 2, operand.rank(), C(4), C(5))?;
    let mut sizes = update.dims().iter().zip(operand.dims());
    let fits = sizes.all(|(&size, &whole)| size <= whole || size == DYNAMIC || whole == DYNAMIC);
    cx.require(C(6), fits, || {
        format!("operand 'update': expected sizes of at most those of {operand}, found {update}")
    })?;
    Ok(vec![ResultRule::of(operand.clone(), C(1))])
}

/// The relation of index vectors to the dimensions of the indexed tensor, in `gather` and `scatter`.
struct IndexMap<'a> {
    indices: &'a TensorType,
    index_vector_dim: i64,
    /// The dimensions of the indexed tensor that the components of an index vector index.
    starts: (&'static str, &'a Ints),
    /// The dimensions of the indexed tensor that slices do not have.
    dropped: (&'static str, &'a Ints),
    /// The batching dimensions of the indexed tensor and of the indices.
    batching: (&'static str, &'a Ints),
    indices_batching: (&'static str, &'a Ints),
    constraints: &'static IndexConstraints,
}

/// The numbers of the specification's constraints for an [`IndexMap`]. `dynamic_gather` has none for batching
/// dimensions.
struct IndexConstraints {
    vector_dim: Constraint,
    vector_size: Constraint,
    dropped_unique: Option<Constraint>,
    dropped_sorted: Option<Constraint>,
    dropped_range: Constraint,
    batching_sorted: Option<Constraint>,
    batching_range: Option<Constraint>,
    indices_unique: Option<Constraint>,
    indices_range: Option<Constraint>,
    indices_not_vector: Option<Constraint>,
    batching_count: Option<Constraint>,
    batching_sizes: Option<Constraint>,
    starts_unique: Constraint,
    starts_range: Constraint,
}

static GATHER: IndexConstraints = IndexConstraints {
    vector_dim: C(2),
    vector_size: C(3),
    dropped_unique: Some(C(6)),
    dropped_sorted: Some(C(7)),
    dropped_range: C(8),
    batching_sorted: Some(C(10)),
    batching_range: Some(C(11)),
    indices_unique: Some(C(13)),
    indices_range: Some(C(14)),
    indices_not_vector: Some(C(15)),
    batching_count: Some(C(16)),
    batching_sizes: Some(C(17)),
    starts_unique: C(18),
    starts_range: C(19),
};

static DYNAMIC_GATHER: IndexConstraints = IndexConstraints {
    vector_dim: C(2),
    vector_size: C(3),
    dropped_unique: Some(C(6)),
    dropped_sorted: Some(C(6)),
    dropped_range: C(7),
    batching_sorted: None,
    batching_range: None,
    indices_unique: None,
    indices_range: None,
    indices_not_vector: None,
    batching_count: None,
    batching_sizes: None,
    starts_unique: C(9),
    starts_range: C(10),
};

static SCATTER: IndexConstraints = IndexConstraints {
    vector_dim: C(22),
    vector_size: C(19),
    dropped_unique: Some(C(9)),
    dropped_sorted: Some(C(10)),
    dropped_range: C(11),
    batching_sorted: Some(C(12)),
    batching_range: Some(C(13)),
    indices_unique: Some(C(14)),
    indices_range: Some(C(15)),
    indices_not_vector: Some(C(16)),
    batching_count: Some(C(17)),
    batching_sizes: Some(C(18)),
    starts_unique: C(20),
    starts_range: C(21),
};

impl IndexMap<'_> {
    fn is_dropped(&self, dimension: usize) -> bool {
        let dimension = dimension as i64;
        self.dropped.1.contains(&dimension) || self.batching.1.contains(&dimension)
    }

    /// Checks the dimension numbers, and returns the sizes of the indices' dimensions except that of index vectors.
    fn batch(&self, cx: &Context<'_>, operand: &TensorType) -> Result<Vec<Size>, Error> {
        let (indices, rank, rules) = (self.indices, operand.rank(), self.constraints);
        let vector_dim =
            cx.dimension(rules.vector_dim, "index_vector_dim", self.index_vector_dim, indices.rank() + 1)?;
        let vector_size = indices.dims().get(vector_dim).copied().unwrap_or(1);
        let (what, starts) = self.starts;
        cx.require(rules.vector_size, sizes_agree(vector_size, starts.len() as i64), || {
            format!(
                "{what}: expected {vector_size} dimensions, one for each component of an index vector, found {}",
                starts.len()
            )
        })?;
        let both = |a: (&str, &Ints)| format!("{} and {}", a.0, self.batching.0);
        let chained = |a: &Ints| a.iter().chain(self.batching.1).copied().collect::<Vec<_>>();
        cx.unique(rules.dropped_unique, &both(self.dropped), chained(self.dropped.1))?;
        cx.sorted(rules.dropped_sorted, self.dropped.0, self.dropped.1)?;
        cx.dimensions(rules.dropped_range, self.dropped.0, self.dropped.1, rank)?;
        cx.sorted(rules.batching_sorted, self.batching.0, self.batching.1)?;
        cx.dimensions(rules.batching_range, self.batching.0, self.batching.1, rank)?;
        let (what, of_indices) = self.indices_batching;
        cx.unique(rules.indices_unique, what, of_indices.iter().copied())?;
        cx.dimensions(rules.indices_range, what, of_indices, indices.rank())?;
        cx.require(rules.indices_not_vector, !of_indices.contains(&self.index_vector_dim), || {
            format!(
                "{what}: expected dimensions other than the one of index vectors, found {}",
                integers(of_indices)
            )
        })?;
        cx.length(rules.batching_count, what, of_indices.len(), self.batching.1.len())?;
        for (&dimension, &batching) in of_indices.iter().zip(self.batching.1) {
            let (size, expected) = (indices.dims()[dimension as usize], operand.dims()[batching as usize]);
            cx.require(rules.batching_sizes, sizes_agree(size, expected), || {
                format!("{what}: expected size {expected}, which the indexed tensor has, found {size}")
            })?;
        }
        cx.unique(rules.starts_unique, &both(self.starts), chained(starts))?;
        cx.dimensions(rules.starts_range, self.starts.0, starts, rank)?;
        let sizes = Shape::of(indices);
        let kept = sizes.sizes().enumerate().filter(|(index, _)| *index != vector_dim);
        Ok(kept.map(|(_, size)| size).collect())
    }
}

/// Interleaves the sizes of batch dimensions with those of slices, which are at the sorted positions `offsets`.
fn interleave(batch: &[Size], offsets: &[i64], slice: &[Size]) -> Shape {
    let mut batch = batch.iter();
    let mut slice = slice.iter();
    let rank = batch.len() + slice.len();
    let sizes = (0..rank as i64).map(|place| {
        let next = if offsets.binary_search(&place).is_ok() { slice.next() } else { batch.next() };
        next.copied().unwrap_or((DYNAMIC, DYNAMIC))
    });
    sizes.collect()
}

/// `gather`, and `dynamic_gather` if `slice` is `None`, because the slice sizes are an operand.
fn gather(cx: &Context<'_>, numbers: &GatherDimensionNumbers, slice: Option<&[i64]>) -> Results {
    let (operand, start_indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let is_dynamic = slice.is_none();
    let map = IndexMap {
        indices: start_indices,
        index_vector_dim: numbers.index_vector_dim,
        starts: ("start_index_map", &numbers.start_index_map),
        dropped: ("collapsed_slice_dims", &numbers.collapsed_slice_dims),
        batching: ("operand_batching_dims", &numbers.operand_batching_dims),
        indices_batching: ("start_indices_batching_dims", &numbers.start_indices_batching_dims),
        constraints: if is_dynamic { &DYNAMIC_GATHER } else { &GATHER },
    };
    // The two operations have different numbers for some constraints.
    let number = |gather: u8, dynamic: u8| C(if is_dynamic { dynamic } else { gather });
    let dimensions =
        numbers.offset_dims.len() + numbers.collapsed_slice_dims.len() + numbers.operand_batching_dims.len();
    cx.require(C(1), dimensions == operand.rank(), || {
        format!(
            "expected {} offset, collapsed and batching dimensions, one for each dimension of {operand}, found {dimensions}",
            operand.rank()
        )
    })?;
    let batch = map.batch(cx, operand)?;
    cx.unique(C(4), "offset_dims", numbers.offset_dims.iter().copied())?;
    cx.sorted(C(4), "offset_dims", &numbers.offset_dims)?;
    cx.dimensions(C(5), "offset_dims", &numbers.offset_dims, batch.len() + numbers.offset_dims.len())?;
    let constant = if is_dynamic { cx.constant(2) } else { None };
    if is_dynamic {
        cx.one_for_each(C(11), 2, operand.rank())?;
    }
    let sizes: Vec<i64> = match slice.or(constant.as_deref()) {
        Some(sizes) => {
            slice_sizes(cx, sizes, operand, number(20, 11), number(21, 12))?;
            for (what, dimensions, constraint) in [
                ("collapsed", &numbers.collapsed_slice_dims, number(9, 8)),
                ("batching", &numbers.operand_batching_dims, number(12, 8)),
            ] {
                let narrow = dimensions.iter().all(|&dimension| sizes[dimension as usize] <= 1);
                cx.require(constraint, narrow, || {
                    format!("slice_sizes: expected at most 1 in {what} dimensions, found {}", integers(sizes))
                })?;
            }
            sizes.to_vec()
        }
        None => vec![DYNAMIC; operand.rank()],
    };
    let kept = sizes.iter().enumerate().filter(|(index, _)| !map.is_dropped(*index));
    let kept: Vec<Size> = kept.map(|(_, &size)| (size, DYNAMIC)).collect();
    let shape = interleave(&batch, &numbers.offset_dims, &kept);
    Ok(vec![ResultRule::of(shape.like(operand), number(22, 13)).with_elements(number(23, 14))])
}

/// `scatter`.
fn scatter(cx: &Context<'_>, numbers: &ScatterDimensionNumbers) -> Results {
    let inputs = Scatter::inputs(cx.op).len();
    cx.require(C(5), inputs > 0, || "expected at least one input".to_owned())?;
    let (first, updates) = (cx.tensor(0)?, cx.tensor(inputs + 1)?);
    (1..inputs).try_for_each(|index| cx.same_shape(C(1), index, first.dims()))?;
    (1..inputs).try_for_each(|index| cx.same_shape(C(3), inputs + 1 + index, updates.dims()))?;
    let map = IndexMap {
        indices: cx.tensor(inputs)?,
        index_vector_dim: numbers.index_vector_dim,
        starts: ("scatter_dims_to_operand_dims", &numbers.scatter_dims_to_operand_dims),
        dropped: ("inserted_window_dims", &numbers.inserted_window_dims),
        batching: ("input_batching_dims", &numbers.input_batching_dims),
        indices_batching: ("scatter_indices_batching_dims", &numbers.scatter_indices_batching_dims),
        constraints: &SCATTER,
    };
    let window_dims = &numbers.update_window_dims;
    let dimensions =
        window_dims.len() + numbers.inserted_window_dims.len() + numbers.input_batching_dims.len();
    cx.require(C(2), dimensions == first.rank(), || {
        format!(
            "expected {} window, inserted and batching dimensions, one for each dimension of {first}, found {dimensions}",
            first.rank()
        )
    })?;
    let batch = map.batch(cx, first)?;
    cx.unique(C(7), "update_window_dims", window_dims.iter().copied())?;
    cx.sorted(C(7), "update_window_dims", window_dims)?;
    cx.dimensions(C(8), "update_window_dims", window_dims, updates.rank())?;
    cx.require(C(4), updates.rank() == batch.len() + window_dims.len(), || {
        format!("updates: expected rank {}, found {updates}", batch.len() + window_dims.len())
    })?;
    let whole = first.dims().iter().enumerate().filter(|(index, _)| !map.is_dropped(*index));
    for (&dimension, (_, &whole)) in window_dims.iter().zip(whole) {
        let size = updates.dims()[dimension as usize];
        cx.require(C(4), size == DYNAMIC || whole == DYNAMIC || size <= whole, || {
            format!("updates: expected at most {whole} in dimension {dimension}, found {updates}")
        })?;
    }
    let window: Vec<Size> =
        window_dims.iter().map(|&dimension| Shape::size_of(updates, dimension as usize)).collect();
    let expected = interleave(&batch, window_dims, &window);
    cx.same_shape(C(4), inputs + 1, expected.dims())?;
    for index in 0..inputs {
        cx.same_elements(C(6), inputs + 1 + index, cx.tensor(index)?)?;
    }
    let inputs: Vec<&TensorType> = (0..inputs).map(|index| cx.tensor(index)).collect::<Result<_, _>>()?;
    let accumulators = reductions::reducer(cx, 0, &inputs, C(23))?;
    let results = inputs.iter().zip(accumulators);
    let results =
        results.map(|(input, sum)| ResultRule::of(Shape::of(input).like(sum), C(24)).with_elements(C(25)));
    Ok(results.collect())
}
