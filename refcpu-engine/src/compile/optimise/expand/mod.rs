//! Expands operations whose regions the kernels cannot apply to elements into loops over the elements.
//!
//! Kernels apply elementwise operations and branches. A region that contains anything else, such as loops or arrays, becomes
//! part of the body of a loop, which may contain any operation.

mod elements;
mod loops;
mod scatter;
mod sort;

pub(crate) use elements::reduce;

use super::recognise::recognise;
use super::region::is_applicable;
use crate::compile::api::{CompileError, Result};
use crate::graph::{Body, Builder, Graph, Node, Op, Reducer, Shape, ValueId, ops};
use refcpu_kernels::DType;

/// Replaces operations whose regions the kernels cannot apply with loops. Applies to bodies as well.
///
/// # Errors
/// Returns an error if the arrays that a loop requires are too large to address.
pub(crate) fn expand(graph: Graph) -> Result<Graph> {
    if !is_needed(&graph) {
        return Ok(graph);
    }
    graph.rewritten(|b, node, map| {
        let operands: Vec<ValueId> = node.operands.iter().map(|v| map[v.index()]).collect();
        let shapes: Vec<Shape> = node.results().map(|r| graph.shape(r).clone()).collect();
        if let Some(op) = node.op.with_programs(|body| expand(body.clone()))? {
            return Ok(Some(b.node(op, operands, shapes)));
        }
        let Some(body) = region(&node.op).filter(|body| !is_applicable(body)) else { return Ok(None) };
        let body = expand(recognise(body))?;
        expanded(b, node, &operands, &shapes, &body).map(Some).map_err(|mut error| {
            error.location = node.location.brief().to_string();
            error
        })
    })
}

/// Returns whether any node must be expanded.
fn is_needed(graph: &Graph) -> bool {
    graph.nodes().iter().any(|node| match region(&node.op) {
        Some(body) => !is_applicable(body),
        None => node.op.bodies().iter().any(|body| is_needed(body)),
    })
}

/// Returns the region with which an operation combines, orders or maps elements; `None` if it has no such region.
fn region(op: &Op) -> Option<&Body> {
    match op {
        Op::Reduce(ops::Reduce { reducer: Reducer::Body(body), .. })
        | Op::ReduceWindow(ops::ReduceWindow { reducer: Reducer::Body(body), .. })
        | Op::Scatter(ops::Scatter { combiner: Some(Reducer::Body(body)), .. })
        | Op::SortBy(ops::SortBy { comparator: body, .. })
        | Op::Map(body) => Some(body),
        _ => None,
    }
}

/// Expands an operation with a region, whose graph is `body`.
fn expanded(
    b: &mut Builder,
    node: &Node,
    operands: &[ValueId],
    shapes: &[Shape],
    body: &Graph,
) -> Result<Vec<ValueId>> {
    match &node.op {
        Op::Reduce(ops::Reduce { dims, .. }) => Ok(reduce(b, body, operands, shapes, dims)),
        Op::ReduceWindow(ops::ReduceWindow { window, .. }) => {
            elements::reduce_window(b, body, operands, shapes, window)
        }
        Op::Scatter(ops::Scatter { dims, .. }) => scatter::scatter(b, body, operands, shapes, dims),
        Op::SortBy(ops::SortBy { dim, .. }) => Ok(sort::sort(b, body, operands, *dim)),
        Op::Map(_) => Ok(elements::map(b, body, operands, shapes)),
        _ => Err(CompileError::internal("the operation has no region")),
    }
}

/// Returns the type of an array with the index of each element in an array of these dimensions.
fn positions_of(dims: &[usize]) -> Result<Shape> {
    Shape::checked(DType::S64, dims).ok_or_else(|| {
        CompileError::unimplemented(
            "the indices of an operation with a region require an array that is too large to address",
        )
    })
}

/// Returns the strides of the dimensions of an array.
fn pitches(dims: &[usize]) -> Vec<i64> {
    let mut pitches = vec![1i64; dims.len()];
    for d in (1..dims.len()).rev() {
        pitches[d - 1] = pitches[d].wrapping_mul(dims[d] as i64);
    }
    pitches
}
