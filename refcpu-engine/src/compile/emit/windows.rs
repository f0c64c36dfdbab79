//! Windows of arrays, as runs of consecutive elements.

use crate::graph::{GatherDims, Graph, Node, ScatterDims, Shape};
use refcpu_kernels::machine::{Place, Start};

/// The maximum number of contiguous runs of a window.
const MAX_RUNS: usize = 256;

/// Runs of consecutive elements: the start of each, and their common length.
pub(super) struct Runs {
    pub(super) starts: Vec<usize>,
    pub(super) len: usize,
}

fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d];
    }
    strides
}

/// Returns the runs of a slice of an array; `None` if there are too many.
pub(super) fn runs(dims: &[usize], sizes: &[usize], start: &[usize], stride: &[usize]) -> Option<Runs> {
    let steps = strides(dims);
    let mut len = 1;
    let mut split = dims.len();
    // A run covers the trailing dimensions that the slice takes completely, and the dimension before them.
    while split > 0 && stride[split - 1] == 1 {
        split -= 1;
        len *= sizes[split];
        if sizes[split] != dims[split] {
            break;
        }
    }
    // The first run begins at the start of the slice in all dimensions.
    let first: usize = start.iter().zip(&steps).map(|(s, step)| s * step).sum();
    let mut starts = vec![first];
    for d in 0..split {
        if starts.len().checked_mul(sizes[d])? > MAX_RUNS {
            return None;
        }
        let step = stride[d] * steps[d];
        starts = starts.iter().flat_map(|s| (0..sizes[d]).map(move |i| s + i * step)).collect();
    }
    Some(Runs { starts, len })
}

/// Returns the runs of a window at the origin.
pub(super) fn whole_window(dims: &[usize], sizes: &[usize]) -> Option<Runs> {
    runs(dims, sizes, &vec![0; dims.len()], &vec![1; dims.len()])
}

/// Returns the dimensions along which a window moves. If indices are checked, these include the dimensions along which it
/// cannot move.
pub(super) fn window_starts(
    array: &Shape,
    sizes: &[usize],
    index: &[(usize, Place)],
    checked: bool,
) -> Option<Vec<Start>> {
    let steps = strides(&array.dims);
    let mut starts = Vec::new();
    for (d, index) in index {
        let limit = array.dims[*d].checked_sub(sizes[*d])?;
        if limit > 0 || checked {
            starts.push(Start { index: *index, limit, step: steps[*d] });
        }
    }
    Some(starts)
}

/// Returns whether a gather has only one index vector.
pub(super) fn single_gather(dims: &GatherDims, array: &Shape, indices: &Shape) -> bool {
    dims.operand_batching_dims.is_empty()
        && indices.len() == dims.start_index_map.len()
        && !array.is_empty()
        && dims.offset_dims.is_sorted()
}

/// Returns whether a scatter has only one index vector, and an update that this compiler supports.
pub(super) fn is_single_scatter(graph: &Graph, node: &Node, dims: &ScatterDims) -> bool {
    let shape = |i: usize| graph.shape(node.operands[i]);
    node.operands.len() == 3
        && dims.input_batching_dims.is_empty()
        && shape(1).len() == dims.scatter_dims_to_operand_dims.len()
        && dims.update_window_dims.is_sorted()
        && (0..shape(0).rank()).all(|d| scatter_window(dims, shape(0), shape(2))[d] <= shape(0).dims[d])
}

/// Returns the size of a scatter's windows in each dimension of the array.
pub(super) fn scatter_window(dims: &ScatterDims, array: &Shape, updates: &Shape) -> Vec<usize> {
    let mut window = dims.update_window_dims.iter();
    (0..array.rank())
        .map(|d| {
            if dims.inserted_window_dims.contains(&d) || dims.input_batching_dims.contains(&d) {
                1
            } else {
                window.next().map_or(1, |w| updates.dims[*w])
            }
        })
        .collect()
}
