//! The indices of elements in arrays, and of the slices that `gather` and `scatter` access: for interpreters, for compilers that
//! evaluate constants, and for devices that compute addresses on the host.

use super::ops::{Gather, Scatter};

/// Calls a function with each index of an array, in row-major order.
///
/// ```
/// use pjrt_stablehlo::ir::indexing::for_each_index;
///
/// let mut indices = Vec::new();
/// for_each_index(&[2, 2], |index| indices.push(index.to_vec()));
/// assert_eq!(indices, [[0, 0], [0, 1], [1, 0], [1, 1]]);
/// ```
pub fn for_each_index(dims: &[i64], mut call: impl FnMut(&[i64])) {
    if dims.iter().any(|dim| *dim <= 0) {
        return;
    }
    let mut index = vec![0; dims.len()];
    loop {
        call(&index);
        // Increments the last coordinate that is not at its end, and resets the following ones.
        let Some(next) = (0..dims.len()).rev().find(|d| index[*d] + 1 < dims[*d]) else { return };
        index[next] += 1;
        index[next + 1..].fill(0);
    }
}

/// Returns the position of an element in a dense, row-major array, or `None` if it is out of bounds. `coordinate` returns the
/// coordinate of the element along a dimension.
///
/// ```
/// use pjrt_stablehlo::ir::indexing::position;
///
/// assert_eq!(position(&[2, 3], |dimension| [1, 2][dimension]), Some(5));
/// assert_eq!(position(&[2, 3], |dimension| [1, 3][dimension]), None);
/// ```
pub fn position(dims: &[i64], coordinate: impl Fn(usize) -> i64) -> Option<usize> {
    let mut position: usize = 0;
    for (d, dim) in dims.iter().enumerate() {
        let coordinate = coordinate(d);
        if !(0..*dim).contains(&coordinate) {
            return None;
        }
        position = position.checked_mul(*dim as usize)?.checked_add(coordinate as usize)?;
    }
    Some(position)
}

/// The relation between an array, an array of indices, and an array of slices, which is the result of a
/// [`gather`](Gather) or the updates of a [`scatter`](Scatter). It is that of an operation that was verified.
///
/// ```
/// use pjrt_stablehlo::ir::Op;
/// use pjrt_stablehlo::ir::indexing::Windows;
///
/// let module = pjrt_stablehlo::parse(
///     r#"func.func @main(%x: tensor<5xf32>, %i: tensor<3x1xi32>) -> tensor<3xf32> {
///         %0 = "stablehlo.gather"(%x, %i) <{
///             dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
///             slice_sizes = array<i64: 1>
///         }> : (tensor<5xf32>, tensor<3x1xi32>) -> tensor<3xf32>
///         return %0 : tensor<3xf32>
///     }"#,
/// )?;
/// let body = &module.main().unwrap().body;
/// let gather = body.all_ops().find_map(|(_, op)| if let Op::Gather(gather) = &op.kind { Some(gather) } else { None });
/// let windows = Windows::of_gather(gather.unwrap());
/// let indices = [4, 0, 9];
/// let positions = [0, 1, 2].map(|at| windows.position(&[at], &[5], &[3, 1], |index| indices[index]));
/// // An index that is too large is clamped.
/// assert_eq!(positions, [Some(4), Some(0), Some(4)]);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Windows {
    /// The dimensions of the slices' array that are offsets into a slice. The others form the index of a slice.
    offset_dims: Box<[i64]>,
    /// The dimensions of the array that are not part of slices.
    removed_dims: Vec<i64>,
    /// Pairs of a dimension of the array and one of the indices, whose coordinates are equal.
    batching_dims: Vec<(i64, i64)>,
    /// For each component of a start, its dimension in the array.
    start_dims: Box<[i64]>,
    index_vector_dim: i64,
    /// The sizes of the slices in the dimensions of the array.
    sizes: Box<[i64]>,
    /// `true` if starts are clamped so that the slices lie within the array. Otherwise, the elements of slices that do not lie
    /// within the array have no position.
    is_clamped: bool,
}

/// Returns the sizes of the slices of a [`scatter`](Scatter) in the dimensions of its operand. `update_dims` are the dimensions
/// of its updates. The operation was verified.
pub(crate) fn slice_sizes(op: &Scatter, update_dims: &[i64]) -> Box<[i64]> {
    let numbers = &op.scatter_dimension_numbers;
    let removed = [&*numbers.inserted_window_dims, &numbers.input_batching_dims].concat();
    let mut window = numbers.update_window_dims.iter().map(|dimension| update_dims[*dimension as usize]);
    let rank = (removed.len() + window.len()) as i64;
    let size = |dimension| if removed.contains(&dimension) { 1 } else { window.next().unwrap_or(1) };
    (0..rank).map(size).collect()
}

impl Windows {
    /// Returns the relation of a `gather`, whose starts are clamped so that the slices lie within the array.
    #[must_use]
    pub fn of_gather(op: &Gather) -> Self {
        let numbers = &op.dimension_numbers;
        let batching = numbers.operand_batching_dims.iter().copied();
        Self {
            offset_dims: numbers.offset_dims.clone(),
            removed_dims: [&*numbers.collapsed_slice_dims, &numbers.operand_batching_dims].concat(),
            batching_dims: batching.zip(numbers.start_indices_batching_dims.iter().copied()).collect(),
            start_dims: numbers.start_index_map.clone(),
            index_vector_dim: numbers.index_vector_dim,
            sizes: op.slice_sizes.clone(),
            is_clamped: true,
        }
    }

    /// Returns the relation of a `scatter`. A slice of the updates has no effect if it does not lie within the array, as in XLA:
    /// JAX relies on this in gradients. `update_dims` are the dimensions of the updates.
    #[must_use]
    pub fn of_scatter(op: &Scatter, update_dims: &[i64]) -> Self {
        let numbers = &op.scatter_dimension_numbers;
        let batching = numbers.input_batching_dims.iter().copied();
        Self {
            offset_dims: numbers.update_window_dims.clone(),
            removed_dims: [&*numbers.inserted_window_dims, &numbers.input_batching_dims].concat(),
            batching_dims: batching.zip(numbers.scatter_indices_batching_dims.iter().copied()).collect(),
            start_dims: numbers.scatter_dims_to_operand_dims.clone(),
            index_vector_dim: numbers.index_vector_dim,
            sizes: slice_sizes(op, update_dims),
            is_clamped: false,
        }
    }

    /// Returns the position in the array, which has the dimensions `dims`, of the element with an index in the slices' array, or
    /// `None` if it belongs to a slice of a `scatter` that does not lie within the array. `start` returns the element at a position
    /// in the array of indices.
    pub fn position(
        &self,
        index: &[i64],
        dims: &[i64],
        indices_dims: &[i64],
        start: impl Fn(usize) -> i128,
    ) -> Option<usize> {
        let slice = (0..index.len()).filter(|d| !self.offset_dims.contains(&(*d as i64)));
        let slice: Vec<i64> = slice.map(|d| index[d]).collect();
        let at = |component: i64| {
            let mut coordinates = slice.clone();
            if (self.index_vector_dim as usize) < indices_dims.len() {
                coordinates.insert(self.index_vector_dim as usize, component);
            }
            position(indices_dims, |d| coordinates[d])
        };
        let mut coordinates = vec![0_i128; dims.len()];
        for (component, dimension) in self.start_dims.iter().enumerate() {
            let begin = start(at(component as i64)?);
            let dimension = *dimension as usize;
            let last = i128::from(dims[dimension] - self.sizes[dimension]);
            if !self.is_clamped && !(0..=last).contains(&begin) {
                return None;
            }
            coordinates[dimension] = begin.clamp(0, last);
        }
        for (dimension, of_indices) in &self.batching_dims {
            let before = *of_indices - i64::from(*of_indices > self.index_vector_dim);
            coordinates[*dimension as usize] = i128::from(slice[before as usize]);
        }
        let kept = (0..dims.len()).filter(|d| !self.removed_dims.contains(&(*d as i64)));
        for (dimension, offset) in kept.zip(&self.offset_dims) {
            coordinates[dimension] += i128::from(index[*offset as usize]);
        }
        position(dims, |d| i64::try_from(coordinates[d]).unwrap_or(-1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::ScatterDimensionNumbers;

    #[test]
    fn a_slice_of_a_scatter_that_is_partly_out_of_bounds_has_no_position() {
        let numbers = ScatterDimensionNumbers {
            update_window_dims: [0].into(),
            scatter_dims_to_operand_dims: [0].into(),
            ..Default::default()
        };
        let scatter =
            Scatter { scatter_dimension_numbers: numbers, indices_are_sorted: false, unique_indices: false };
        let windows = Windows::of_scatter(&scatter, &[3]);
        let positions = |start: i128| [0, 1, 2].map(|at| windows.position(&[at], &[5], &[1], |_| start));
        assert_eq!(positions(2), [Some(2), Some(3), Some(4)]);
        assert_eq!([positions(3), positions(-1)], [[None; 3]; 2]);
    }
}
