//! Operations by regions that kernels cannot apply to elements, as loops over the elements.
//!
//! Kernels apply elementwise operations and branches. A region with anything else, such as loops or arrays, becomes part
//! of a loop's body, where everything may be that a program may have.

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

/// The graph with loops in the place of operations whose regions kernels cannot apply; also inside bodies.
///
/// # Errors
/// If arrays that a loop needs could not be addressed.
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

/// Whether a loop takes the place of any node.
fn is_needed(graph: &Graph) -> bool {
    graph.nodes().iter().any(|node| match region(&node.op) {
        Some(body) => !is_applicable(body),
        None => node.op.bodies().iter().any(|body| is_needed(body)),
    })
}

/// The region by which an operation combines, orders or maps elements, if it has one that can run in a loop.
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

/// The results of an operation with a region, whose graph is `body`, by a loop.
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
        _ => Err(CompileError::internal("an operation without a region")),
    }
}

/// The type of positions in an array of these dimensions, for each of its elements.
fn positions_of(dims: &[usize]) -> Result<Shape> {
    Shape::checked(DType::S64, dims).ok_or_else(|| {
        CompileError::unimplemented("a region that needs positions in more elements than memory has")
    })
}

/// How far the elements along each dimension of an array are from each other.
fn pitches(dims: &[usize]) -> Vec<i64> {
    let mut pitches = vec![1i64; dims.len()];
    for d in (1..dims.len()).rev() {
        pitches[d - 1] = pitches[d].wrapping_mul(dims[d] as i64);
    }
    pitches
}
