//! Windows of arrays, as runs of consecutive elements.

use crate::graph::{GatherDims, Graph, Node, Op, Reducer, ScatterDims, Shape, ops};
use refcpu_kernels::machine::{Place, Start};
use refcpu_kernels::{DType, ReduceOp};

/// The maximum number of contiguous runs of a window.
const MAX_RUNS: usize = 256;
/// The maximum number of index vectors of a gather or scatter.
const MAX_VECTORS: usize = 32;

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

/// Returns the runs of an operation whose results are elements of its first operand; `None` if there are too many, or if it is no
/// such operation.
pub(super) fn moved_runs(op: &Op, from: &[usize], to: &[usize]) -> Option<Runs> {
    let steps: Vec<isize> = strides(from).into_iter().map(usize::cast_signed).collect();
    let mut first = 0;
    // The distances in the operand between elements that are neighbors in the result.
    let mut moves = vec![0; to.len()];
    match op {
        Op::Broadcast(b) => b.dims.iter().zip(&steps).for_each(|(d, step)| moves[*d] = *step),
        Op::Transpose(t) => t.permutation.iter().zip(&mut moves).for_each(|(d, m)| *m = steps[*d]),
        Op::Reverse(r) => {
            moves = steps;
            for d in &r.dims {
                first += (from[*d].cast_signed() - 1) * moves[*d];
                moves[*d] = -moves[*d];
            }
        }
        _ => return None,
    }
    let mut elements = vec![first];
    for (size, step) in to.iter().zip(&moves) {
        if elements.len() * size > MAX_RUNS * MAX_RUNS {
            return None;
        }
        elements = elements.iter().flat_map(|e| (0..size.cast_signed()).map(move |i| e + i * step)).collect();
    }
    let adjacent = |len: usize| {
        elements.chunks(len).all(|run| run.iter().zip(run[0]..).all(|(element, wanted)| *element == wanted))
    };
    let whole = (1..=elements.len()).rev().filter(|len| elements.len().is_multiple_of(*len));
    let len = whole.into_iter().find(|len| adjacent(*len))?;
    let starts: Vec<usize> =
        elements.iter().step_by(len).map(|e| usize::try_from(*e)).collect::<Result<_, _>>().ok()?;
    (starts.len() <= MAX_RUNS).then_some(Runs { starts, len })
}

/// Returns the runs of a padded operand in the result; `None` if there are too many, or if the padding crops.
pub(super) fn padded_runs(pad: &ops::Pad, from: &Shape, to: &Shape) -> Option<Runs> {
    let start =
        pad.low.iter().zip(&pad.high).map(|(low, high)| usize::try_from(*low).ok().filter(|_| *high >= 0));
    let stride = pad.interior.iter().map(|n| usize::try_from(*n).ok()?.checked_add(1));
    runs(&to.dims, &from.dims, &start.collect::<Option<Vec<_>>>()?, &stride.collect::<Option<Vec<_>>>()?)
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

/// Returns the number of index vectors with this number of components, if there are few, whose components are adjacent.
fn vectors(indices: &Shape, components: usize, index_vector_dim: usize) -> Option<usize> {
    if indices.len() == components {
        return Some(1);
    }
    let last = if components == 1 { indices.rank() } else { indices.rank().checked_sub(1)? };
    let adjacent = index_vector_dim == last || components == 1 && index_vector_dim + 1 == indices.rank();
    let n = indices.len().checked_div(components)?;
    (adjacent && n <= MAX_VECTORS).then_some(n)
}

/// Returns the number of index vectors of a gather, if they are few and their slices follow each other in the result.
pub(super) fn few_gathers(
    dims: &GatherDims,
    array: &Shape,
    indices: &Shape,
    result: &Shape,
) -> Option<usize> {
    let slice: usize = dims.slice_sizes.iter().product();
    let n = vectors(indices, dims.start_index_map.len(), dims.index_vector_dim)?;
    let first_offset = result.rank() - dims.offset_dims.len();
    let trailing = dims.offset_dims.iter().copied().eq(first_offset..result.rank());
    let fits = dims.operand_batching_dims.is_empty() && !array.is_empty() && dims.offset_dims.is_sorted();
    let is_possible = || (trailing || slice == 1) && whole_window(&array.dims, &dims.slice_sizes).is_some();
    (fits && (n == 1 || is_possible())).then_some(n)
}

/// Returns the number of index vectors of a scatter, if they are few, their updates follow each other, and this compiler supports
/// the updates.
pub(super) fn few_scatters(graph: &Graph, node: &Node, scatter: &ops::Scatter) -> Option<usize> {
    let dims = &scatter.dims;
    let shape = |i: usize| graph.shape(node.operands[i]);
    if node.operands.len() != 3 {
        return None;
    }
    let window = scatter_window(dims, shape(0), shape(2));
    let n = vectors(shape(1), dims.scatter_dims_to_operand_dims.len(), dims.index_vector_dim)?;
    let rank = shape(2).rank();
    let first_offset = rank - dims.update_window_dims.len();
    let trailing = dims.update_window_dims.iter().copied().eq(first_offset..rank);
    let fits = dims.input_batching_dims.is_empty()
        && dims.update_window_dims.is_sorted()
        && (0..shape(0).rank()).all(|d| window[d] <= shape(0).dims[d]);
    let combines = match &scatter.combiner {
        None => true,
        Some(Reducer::Op(op)) => same_arithmetic(*op, shape(0).dtype),
        Some(Reducer::Body(_)) => false,
    };
    let is_single = window.iter().product::<usize>() == 1;
    let is_possible =
        || (trailing || is_single) && combines && whole_window(&shape(0).dims, &window).is_some();
    (fits && (n == 1 || is_possible())).then_some(n)
}

/// Returns whether the kernel of a scatter combines elements bit for bit as a region does.
pub(super) fn same_arithmetic(op: ReduceOp, dtype: DType) -> bool {
    match op {
        ReduceOp::Add => true,
        ReduceOp::Multiply => !dtype.is_complex(),
        // The order of positive and negative zero is unspecified.
        ReduceOp::Minimum | ReduceOp::Maximum => !dtype.is_float(),
        ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => true,
    }
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
