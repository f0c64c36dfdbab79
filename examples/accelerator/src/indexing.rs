//! The coordinates of slices that begin at computed indices, for `gather` and `scatter`.

use pjrt_stablehlo::ir::ops::{Gather, Scatter};

use crate::movement::position;

/// The relation between an array, an array of indices, and an array of slices: the result of `gather`, or the updates of
/// `scatter`.
pub(crate) struct Windows {
    /// The dimensions of the slices' array that are offsets into a slice. The others form the index of a slice.
    offset_dims: Box<[i64]>,
    /// The dimensions of the array that are not part of slices.
    removed_dims: Vec<i64>,
    /// Pairs of a dimension of the array and one of the indices, whose coordinates are equal.
    batching_dims: Vec<(i64, i64)>,
    /// For each component of a start, its dimension in the array.
    start_dims: Box<[i64]>,
    index_vector_dim: i64,
    /// The sizes of the slices, if their starts are clamped so that they lie within the array.
    sizes: Option<Box<[i64]>>,
}

impl Windows {
    pub(crate) fn of_gather(op: &Gather) -> Self {
        let numbers = &op.dimension_numbers;
        let batching = numbers.operand_batching_dims.iter().copied();
        Self {
            offset_dims: numbers.offset_dims.clone(),
            removed_dims: [&*numbers.collapsed_slice_dims, &numbers.operand_batching_dims].concat(),
            batching_dims: batching.zip(numbers.start_indices_batching_dims.iter().copied()).collect(),
            start_dims: numbers.start_index_map.clone(),
            index_vector_dim: numbers.index_vector_dim,
            sizes: Some(op.slice_sizes.clone()),
        }
    }

    pub(crate) fn of_scatter(op: &Scatter) -> Self {
        let numbers = &op.scatter_dimension_numbers;
        let batching = numbers.input_batching_dims.iter().copied();
        Self {
            offset_dims: numbers.update_window_dims.clone(),
            removed_dims: [&*numbers.inserted_window_dims, &numbers.input_batching_dims].concat(),
            batching_dims: batching.zip(numbers.scatter_indices_batching_dims.iter().copied()).collect(),
            start_dims: numbers.scatter_dims_to_operand_dims.clone(),
            index_vector_dim: numbers.index_vector_dim,
            sizes: None,
        }
    }

    /// Returns the position in the array of the element with an index in the slices' array, or `None` if it is out of bounds.
    /// `start` returns an element of the indices.
    pub(crate) fn position(
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
            coordinates[dimension] = match &self.sizes {
                Some(sizes) => begin.clamp(0, i128::from(dims[dimension] - sizes[dimension])),
                None => begin,
            };
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
