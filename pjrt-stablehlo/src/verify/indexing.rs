//! Operations that index with values.

use super::context::{Check, element_of, shapes_agree, sizes_agree};
use crate::Error;
use crate::ir::ops::{DynamicSlice, Scatter};
use crate::ir::{DYNAMIC, GatherDimensionNumbers, Ints, ScatterDimensionNumbers, TensorType};

/// Checks that operands from `first` on are an index for each dimension.
fn indices(check: &Check<'_>, first: usize, rank: usize) -> Result<(), Error> {
    check.length("operand 'start_indices'", check.op.operands.len() - first, rank)?;
    for index in first..check.op.operands.len() {
        let start = check.scalar(index)?;
        check.require(start.element_type().is_integer(), || {
            format!("operand {index}: expected an integer index, found {start}")
        })?;
    }
    Ok(())
}

/// `dynamic_slice`: a slice no larger than the operand.
pub(super) fn dynamic_slice(check: &Check<'_>, op: &DynamicSlice) -> Result<(), Error> {
    let operand = check.tensor(0)?;
    indices(check, 1, operand.rank())?;
    slice_sizes(check, &op.slice_sizes, operand)?;
    check.result_shape(0, &op.slice_sizes)?;
    check.same_elements("result 0", operand, check.result_tensor(0)?)
}

fn slice_sizes(check: &Check<'_>, sizes: &[i64], operand: &TensorType) -> Result<(), Error> {
    check.length("slice_sizes", sizes.len(), operand.rank())?;
    for (index, (&size, &whole)) in sizes.iter().zip(operand.dims()).enumerate() {
        check.require(size >= 0 && (whole == DYNAMIC || size <= whole), || {
            format!(
                "slice_sizes: expected a size of at most that of dimension {index} of {operand}, found {size}"
            )
        })?;
    }
    Ok(())
}

/// `dynamic_update_slice`: an update no larger than the operand.
pub(super) fn dynamic_update_slice(check: &Check<'_>) -> Result<(), Error> {
    let (operand, update) = (check.tensor(0)?, check.tensor(1)?);
    indices(check, 2, operand.rank())?;
    let fits = update.rank() == operand.rank()
        && update
            .dims()
            .iter()
            .zip(operand.dims())
            .all(|(&size, &whole)| size <= whole || size == DYNAMIC || whole == DYNAMIC);
    check.require(fits, || {
        format!("operand 'update': expected a shape that fits into {operand}, found {update}")
    })?;
    check.same_elements("operand 'update'", operand, update)?;
    check.result_is_operand(0)
}

/// How index vectors relate to the dimensions of what is indexed.
struct IndexMap<'a> {
    indices: &'a TensorType,
    index_vector_dim: i64,
    /// Dimensions of the indexed tensor that an index vector's components start in.
    starts: (&'a str, &'a Ints),
    /// Dimensions of the indexed tensor that slices lack.
    dropped: (&'a str, &'a Ints),
    /// Batching dimensions of the indexed tensor and of the indices.
    batching: (&'a str, &'a Ints),
    indices_batching: (&'a str, &'a Ints),
}

/// Checks the numbers and gives the sizes of the indices' dimensions but for the index vectors'.
fn index_map(check: &Check<'_>, map: &IndexMap<'_>, operand: &TensorType) -> Result<Vec<i64>, Error> {
    let indices = map.indices;
    check.require(indices.element_type().is_integer(), || {
        format!("indices: expected integers, found {indices}")
    })?;
    let rank = operand.rank();
    let vector_dim = check.dimension("index_vector_dim", map.index_vector_dim, indices.rank() + 1)?;
    let vector_size = indices.dims().get(vector_dim).copied().unwrap_or(1);
    check.require(sizes_agree(vector_size, map.starts.1.len() as i64), || {
        format!(
            "{}: expected {vector_size} dimensions, one for each component of an index vector, found {}",
            map.starts.0,
            map.starts.1.len()
        )
    })?;
    check.unique_dimensions(map.starts.0, map.starts.1, rank)?;
    let dropped: Vec<i64> = map.dropped.1.iter().chain(map.batching.1).copied().collect();
    check.unique_dimensions(&format!("{} and {}", map.dropped.0, map.batching.0), &dropped, rank)?;
    let started: Vec<i64> = map.starts.1.iter().chain(map.batching.1).copied().collect();
    check.unique_dimensions(&format!("{} and {}", map.starts.0, map.batching.0), &started, rank)?;
    check.unique_dimensions(map.indices_batching.0, map.indices_batching.1, indices.rank())?;
    check.length(map.indices_batching.0, map.indices_batching.1.len(), map.batching.1.len())?;
    for (&dimension, &batching) in map.indices_batching.1.iter().zip(map.batching.1) {
        check.require(dimension as usize != vector_dim, || {
            format!("{}: expected dimensions other than that of index vectors", map.indices_batching.0)
        })?;
        let (size, expected) = (indices.dims()[dimension as usize], operand.dims()[batching as usize]);
        check.require(sizes_agree(size, expected), || {
            format!(
                "{}: expected size {expected} as in the indexed tensor, found {size}",
                map.indices_batching.0
            )
        })?;
    }
    let kept = indices.dims().iter().enumerate().filter(|(index, _)| *index != vector_dim);
    Ok(kept.map(|(_, &size)| size).collect())
}

/// The shape of slices or windows in place: those of the batch, and at `offsets` those of a slice.
fn interleave(
    check: &Check<'_>,
    what: &str,
    batch: &[i64],
    offsets: &[i64],
    slice: &[i64],
) -> Result<Vec<i64>, Error> {
    let rank = batch.len() + offsets.len();
    check.unique_dimensions(what, offsets, rank)?;
    check
        .require(offsets.is_sorted(), || format!("{what}: expected rising dimensions, found {offsets:?}"))?;
    check.length(what, offsets.len(), slice.len())?;
    let mut batch = batch.iter();
    let mut slice = slice.iter();
    let sizes = (0..rank as i64).map(|place| {
        let next = if offsets.binary_search(&place).is_ok() { slice.next() } else { batch.next() };
        next.copied().unwrap_or(DYNAMIC)
    });
    Ok(sizes.collect())
}

fn is_rising(dimensions: &[i64]) -> bool {
    dimensions.windows(2).all(|pair| pair[0] < pair[1])
}

/// `gather` and, without slice sizes, `dynamic_gather`.
pub(super) fn gather(
    check: &Check<'_>,
    numbers: &GatherDimensionNumbers,
    slice: Option<&[i64]>,
) -> Result<(), Error> {
    let (operand, indices) = (check.tensor(0)?, check.tensor(1)?);
    let map = IndexMap {
        indices,
        index_vector_dim: numbers.index_vector_dim,
        starts: ("start_index_map", &numbers.start_index_map),
        dropped: ("collapsed_slice_dims", &numbers.collapsed_slice_dims),
        batching: ("operand_batching_dims", &numbers.operand_batching_dims),
        indices_batching: ("start_indices_batching_dims", &numbers.start_indices_batching_dims),
    };
    let batch = index_map(check, &map, operand)?;
    check.require(
        is_rising(&numbers.collapsed_slice_dims) && is_rising(&numbers.operand_batching_dims),
        || "collapsed_slice_dims and operand_batching_dims: expected rising dimensions".to_owned(),
    )?;
    let is_dropped = |dimension: usize| {
        let dimension = dimension as i64;
        numbers.collapsed_slice_dims.contains(&dimension)
            || numbers.operand_batching_dims.contains(&dimension)
    };
    let sizes = match slice {
        Some(sizes) => {
            slice_sizes(check, sizes, operand)?;
            let narrow = sizes.iter().enumerate().all(|(index, &size)| size <= 1 || !is_dropped(index));
            check.require(narrow, || {
                "slice_sizes: expected at most 1 in collapsed and batching dimensions".to_owned()
            })?;
            sizes.to_vec()
        }
        None => {
            let sizes = check.tensor(2)?;
            let fits =
                sizes.element_type().is_integer() && shapes_agree(sizes.dims(), &[operand.rank() as i64]);
            check.require(fits, || {
                format!("operand 'slice_sizes': expected {} integers, found {sizes}", operand.rank())
            })?;
            vec![DYNAMIC; operand.rank()]
        }
    };
    let kept: Vec<i64> =
        sizes.iter().enumerate().filter(|(index, _)| !is_dropped(*index)).map(|(_, &size)| size).collect();
    let expected = interleave(check, "offset_dims", &batch, &numbers.offset_dims, &kept)?;
    check.result_shape(0, &expected)?;
    check.same_elements("result 0", operand, check.result_tensor(0)?)
}

/// `scatter`.
pub(super) fn scatter(check: &Check<'_>, numbers: &ScatterDimensionNumbers) -> Result<(), Error> {
    let inputs = Scatter::inputs(check.op).len();
    check.require(inputs > 0, || "expected at least one input".to_owned())?;
    check.length("results", check.op.results.len(), inputs)?;
    let first = check.tensor(0)?;
    let indices = check.tensor(inputs)?;
    let map = IndexMap {
        indices,
        index_vector_dim: numbers.index_vector_dim,
        starts: ("scatter_dims_to_operand_dims", &numbers.scatter_dims_to_operand_dims),
        dropped: ("inserted_window_dims", &numbers.inserted_window_dims),
        batching: ("input_batching_dims", &numbers.input_batching_dims),
        indices_batching: ("scatter_indices_batching_dims", &numbers.scatter_indices_batching_dims),
    };
    let batch = index_map(check, &map, first)?;
    check.require(
        is_rising(&numbers.inserted_window_dims) && is_rising(&numbers.input_batching_dims),
        || "inserted_window_dims and input_batching_dims: expected rising dimensions".to_owned(),
    )?;
    let is_dropped = |dimension: i64| {
        numbers.inserted_window_dims.contains(&dimension) || numbers.input_batching_dims.contains(&dimension)
    };
    for index in 0..inputs {
        let (input, updates) = (check.tensor(index)?, check.tensor(inputs + 1 + index)?);
        check.require(shapes_agree(first.dims(), input.dims()), || {
            format!("operand {index}: expected the shape of {first}, found {input}")
        })?;
        let window: Vec<i64> = numbers
            .update_window_dims
            .iter()
            .map(|&dimension| {
                let place = check.dimension("update_window_dims", dimension, updates.rank())?;
                Ok(updates.dims()[place])
            })
            .collect::<Result<_, Error>>()?;
        let whole: Vec<i64> = (0..input.rank() as i64)
            .filter(|&place| !is_dropped(place))
            .map(|place| input.dims()[place as usize])
            .collect();
        check.length("update_window_dims", window.len(), whole.len())?;
        for (place, (&size, &whole)) in window.iter().zip(&whole).enumerate() {
            check.require(size == DYNAMIC || whole == DYNAMIC || size <= whole, || {
                format!("updates {index}: expected a window of at most {whole} in window dimension {place}, found {updates}")
            })?;
        }
        let expected = interleave(check, "update_window_dims", &batch, &numbers.update_window_dims, &window)?;
        check.require(shapes_agree(updates.dims(), &expected), || {
            format!(
                "updates {index}: expected shape {}, found {updates}",
                super::context::shape_text(&expected)
            )
        })?;
        check.same_elements(&format!("updates {index}"), input, updates)?;
        check.result_shape(index, input.dims())?;
    }
    let elements: Vec<_> =
        (0..inputs).map(|index| check.result_tensor(index).map(element_of)).collect::<Result<_, _>>()?;
    let arguments: Vec<_> = elements.iter().chain(&elements).cloned().collect();
    check.region_signature(0, &arguments, &elements)
}
