//! Gathers and scatters.

use super::reductions::{combination, combining};
use super::scalar;
use crate::generator::{Generator, Scope, Value, array, list};
use crate::types::{Element, Fill, Ty};
use pjrt_stablehlo::ir::ElementType;

/// The dimension numbers of a `gather` or `scatter`, with its indices and shapes.
struct Places {
    /// The indices, whose dimensions are the batch dimensions and that of the index vector.
    indices: Value,
    index_vector_dim: usize,
    /// The dimensions of the operand that the index vector indexes.
    start_index_map: Vec<i64>,
    slice_sizes: Vec<i64>,
    /// The dimensions of size one that the slices do not have.
    collapsed: Vec<i64>,
    operand_batching: Vec<i64>,
    indices_batching: Vec<i64>,
    /// The dimensions of the result that are those of the slices.
    offset_dims: Vec<i64>,
    /// The shape of the result or updates.
    result: Vec<i64>,
}

impl Places {
    fn new(g: &mut Generator, operand: &Ty, in_bounds: bool) -> Self {
        let rank = operand.rank();
        let mut batch: Vec<i64> = (0..g.random.below(3)).map(|_| g.random.between(1, 4)).collect();
        let mut operand_batching = Vec::new();
        let mut indices_batching = Vec::new();
        if rank >= 2 && g.random.percent(25) {
            let dimension = g.random.below(rank);
            let place = g.random.below(batch.len() + 1);
            batch.insert(place, operand.dims[dimension]);
            operand_batching.push(dimension as i64);
            indices_batching.push(place as i64);
        }
        let mut others: Vec<i64> =
            g.random.permutation(rank).into_iter().filter(|d| !operand_batching.contains(d)).collect();
        others.truncate(g.random.below(others.len() + 1));
        let start_index_map = others;
        let mut slice_sizes: Vec<i64> =
            operand.dims.iter().map(|&size| g.random.between(size.min(1), size)).collect();
        let mut collapsed = Vec::new();
        for (d, size) in slice_sizes.iter_mut().enumerate() {
            if operand_batching.contains(&(d as i64)) {
                *size = (*size).min(1);
            } else if *size > 0 && g.random.percent(40) {
                *size = 1;
                collapsed.push(d as i64);
            }
        }
        let scalars = start_index_map.len() == 1 && g.random.percent(50);
        let index_vector_dim = if scalars { batch.len() } else { g.random.below(batch.len() + 1) };
        let mut index_dims = batch.clone();
        if !scalars {
            index_dims.insert(index_vector_dim, start_index_map.len() as i64);
            indices_batching.iter_mut().for_each(|d| *d += i64::from(*d as usize >= index_vector_dim));
        }
        let types = [ElementType::I32, ElementType::I64, ElementType::Ui32, ElementType::I8];
        let ty = Ty::plain(g.random.pick(&types), &index_dims);
        let most = operand.dims.iter().copied().max().unwrap_or(0).min(60);
        let low = if in_bounds || ty.text().contains("ui") { 0 } else { -2 };
        let indices = g.operand(&ty, Fill::Range(low, if in_bounds { (most - 1).max(0) } else { most + 1 }));
        let kept: Vec<i64> = (0..rank)
            .filter(|&d| !collapsed.contains(&(d as i64)) && !operand_batching.contains(&(d as i64)))
            .map(|d| slice_sizes[d])
            .collect();
        let total = kept.len() + batch.len();
        let mut offset_dims = g.random.permutation(total);
        offset_dims.truncate(kept.len());
        offset_dims.sort_unstable();
        let (mut slices, mut batches) = (kept.iter(), batch.iter());
        let size = |d: i64| if offset_dims.contains(&d) { slices.next() } else { batches.next() };
        let result = (0..total as i64).filter_map(size).copied().collect();
        Self {
            indices,
            index_vector_dim,
            start_index_map,
            slice_sizes,
            collapsed,
            operand_batching,
            indices_batching,
            offset_dims,
            result,
        }
    }
}

/// `gather`, or `dynamic_gather` with constant slice sizes.
pub(super) fn gather(g: &mut Generator, element: Element, dynamic: bool) -> Vec<Value> {
    let operand = g.some(element, 1..=4, Fill::Any);
    let p = Places::new(g, &operand.ty.clone(), false);
    let result = operand.ty.with_dims(&p.result);
    let mut attributes = format!(
        "dimension_numbers = #stablehlo.gather<offset_dims = {}, collapsed_slice_dims = {}, operand_batching_dims = {}, \
         start_indices_batching_dims = {}, start_index_map = {}, index_vector_dim = {}>, indices_are_sorted = false",
        list(&p.offset_dims),
        list(&p.collapsed),
        list(&p.operand_batching),
        list(&p.indices_batching),
        list(&p.start_index_map),
        p.index_vector_dim
    );
    if dynamic {
        let sizes = g.integers(&p.slice_sizes);
        return g.push(
            "stablehlo.dynamic_gather",
            &[&operand, &p.indices, &sizes],
            &attributes,
            &[],
            &[result],
        );
    }
    attributes.push_str(&format!(", slice_sizes = {}", array(&p.slice_sizes)));
    g.push("stablehlo.gather", &[&operand, &p.indices], &attributes, &[], &[result])
}

/// `scatter` with a commutative operation, because updates of the same element have no order.
pub(super) fn scatter(g: &mut Generator, element: Element) -> Option<Vec<Value>> {
    let combination = combination(g, element);
    let fill = combination.map_or(Fill::Any, |(_, fill)| fill);
    let operand = g.some(element, 1..=3, fill);
    let in_bounds = g.random.percent(40);
    let p = Places::new(g, &operand.ty.clone(), in_bounds);
    let replaces = combination.is_none() || g.random.percent(20);
    let updates = operand.ty.with_dims(&p.result);
    let ty = scalar(element);
    let (updates, body) = if replaces {
        // All updates are equal, so the result does not depend on their order.
        let value = g.operand(&ty, Fill::Any);
        let attributes = "broadcast_dimensions = array<i64>";
        let updates = g.push("stablehlo.broadcast_in_dim", &[&value], attributes, &[], &[updates]).remove(0);
        (updates, g.region(Scope::Isolated, &[ty.clone(), ty], |_, arguments| vec![arguments[1].clone()]))
    } else {
        let (code, fill) = combination?;
        (g.operand(&updates, fill), combining(g, code, element))
    };
    let attributes = format!(
        "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {}, inserted_window_dims = {}, \
         input_batching_dims = {}, scatter_indices_batching_dims = {}, scatter_dims_to_operand_dims = {}, \
         index_vector_dim = {}>, indices_are_sorted = false, unique_indices = false",
        list(&p.offset_dims),
        list(&p.collapsed),
        list(&p.operand_batching),
        list(&p.indices_batching),
        list(&p.start_index_map),
        p.index_vector_dim
    );
    let result = operand.ty.clone();
    Some(g.push("stablehlo.scatter", &[&operand, &p.indices, &updates], &attributes, &[body], &[result]))
}

pub(super) fn torch_index_select(g: &mut Generator, element: Element) -> Vec<Value> {
    let mut operand = g.some(element, 1..=3, Fill::Any);
    let dim = g.random.below(operand.ty.rank());
    if operand.ty.dims[dim] == 0 {
        // No element can be selected.
        let mut dims = operand.ty.dims.clone();
        dims[dim] = 3;
        operand = g.operand(&operand.ty.with_dims(&dims), Fill::Any);
    }
    let batch_dims = g.random.below(dim + 1);
    let index = [operand.ty.dims[..batch_dims].to_vec(), vec![g.random.between(1, 4)]].concat();
    // The result of an index out of bounds is not specified.
    let most = (operand.ty.dims[dim] - 1).max(0);
    let index = g.operand(&Ty::plain(ElementType::I32, &index), Fill::Range(0, most));
    let dims = [&operand.ty.dims[..dim], &index.ty.dims[batch_dims..], &operand.ty.dims[dim + 1..]].concat();
    let attributes = format!("dim = {dim} : i64, batch_dims = {batch_dims} : i64");
    let result = operand.ty.with_dims(&dims);
    g.push("stablehlo.torch_index_select", &[&operand, &index], &attributes, &[], &[result])
}
