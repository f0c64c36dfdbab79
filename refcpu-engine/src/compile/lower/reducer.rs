//! Recognizes the regions of reductions, scatters and selections that kernels implement.

use crate::graph::{Body, Definition, Graph, Op, Reducer, ValueId, ops};
use refcpu_kernels::ReduceOp;
use refcpu_kernels::region::Direction;
use refcpu_kernels::tile::TileOp;
use refcpu_kernels::window::SelectOp;

/// The function of a region of two parameters and one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    /// Combines the parameters by this operation.
    Op(ReduceOp),
    /// Returns the second parameter.
    Second,
}

/// Recognizes a region that combines its two parameters by one operation, or that returns the second.
pub(super) fn binary(graph: &Graph) -> Option<Binary> {
    let [a, b] = *graph.parameters() else { return None };
    let [result] = *graph.results() else { return None };
    if result == b {
        return Some(Binary::Second);
    }
    let node = graph.node_of(result)?;
    let Op::Tile(op) = node.op else { return None };
    if node.operands != [a, b] && node.operands != [b, a] {
        return None;
    }
    let op = match op {
        TileOp::Add => ReduceOp::Add,
        TileOp::Multiply => ReduceOp::Multiply,
        TileOp::Maximum => ReduceOp::Maximum,
        TileOp::Minimum => ReduceOp::Minimum,
        TileOp::And => ReduceOp::And,
        TileOp::Or => ReduceOp::Or,
        TileOp::Xor => ReduceOp::Xor,
        _ => return None,
    };
    op.supports(graph.shape(result).dtype).then_some(Binary::Op(op))
}

/// Converts a region to a reducer: to its operation if there is a kernel for it, otherwise to a body.
pub(super) fn reducer(graph: Graph) -> Reducer {
    match binary(&graph) {
        Some(Binary::Op(op)) => Reducer::Op(op),
        _ => Reducer::Body(Body::new(graph)),
    }
}

/// Recognizes the selection of `select_and_scatter`.
pub(super) fn select(graph: &Graph) -> Option<SelectOp> {
    let (direction, a, b) = comparison(graph)?;
    let position = |v: ValueId| match graph.definition(v) {
        Definition::Parameter(i) => Some(i),
        Definition::Result { .. } => None,
    };
    let direction = match (position(a)?, position(b)?) {
        (0, 1) => direction,
        (1, 0) => flipped(direction),
        _ => return None,
    };
    match direction {
        Direction::Ge => Some(SelectOp::Ge),
        Direction::Gt => Some(SelectOp::Gt),
        Direction::Le => Some(SelectOp::Le),
        Direction::Lt => Some(SelectOp::Lt),
        Direction::Eq | Direction::Ne => None,
    }
}

/// Returns the comparison that computes the only result of a graph.
fn comparison(graph: &Graph) -> Option<(Direction, ValueId, ValueId)> {
    let [result] = *graph.results() else { return None };
    let node = graph.node_of(result)?;
    let Op::Compare(ops::Compare(direction, _)) = node.op else { return None };
    Some((direction, node.operands[0], node.operands[1]))
}

/// Returns the direction with the operands exchanged.
pub(super) fn flipped(d: Direction) -> Direction {
    match d {
        Direction::Ge => Direction::Le,
        Direction::Gt => Direction::Lt,
        Direction::Le => Direction::Ge,
        Direction::Lt => Direction::Gt,
        same => same,
    }
}
