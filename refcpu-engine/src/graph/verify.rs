//! Checks graphs: the number and types of each node's operands and results, and the order of definitions and uses.

use super::check::Check;
use super::{Definition, Graph, Node, Shape};

/// The maximum nesting depth of bodies.
const MAX_DEPTH: usize = 256;

/// Checks a graph and its bodies.
///
/// # Errors
/// Returns a description of the first node that is invalid.
pub fn verify(graph: &Graph) -> Check {
    verify_nested(graph, 0)
}

fn verify_nested(graph: &Graph, depth: usize) -> Check {
    if depth > MAX_DEPTH {
        return Err(format!("bodies are nested more than {MAX_DEPTH} levels deep"));
    }
    let mut defined = vec![false; graph.num_values()];
    for p in graph.parameters() {
        defined[p.index()] = true;
    }
    for (n, node) in graph.nodes().iter().enumerate() {
        let wrong = |message: String| format!("node {n}: {message}");
        if let Some(v) = node.operands.iter().find(|v| !defined.get(v.index()).is_some_and(|d| *d)) {
            return Err(wrong(format!("{v:?} is used before its definition")));
        }
        verify_node(graph, node).map_err(wrong)?;
        for body in node.op.bodies() {
            verify_nested(body, depth + 1).map_err(wrong)?;
        }
        for (i, r) in node.results().enumerate() {
            let here = Definition::Result { node: n as u32, index: i as u32 };
            if graph.definition(r) != here {
                return Err(wrong(format!("{r:?} is not a result of the node")));
            }
            defined[r.index()] = true;
        }
    }
    match graph.results().iter().find(|v| !defined.get(v.index()).is_some_and(|d| *d)) {
        Some(v) => Err(format!("the result {v:?} is not defined")),
        None => Ok(()),
    }
}

/// Checks one node of a graph without its bodies.
///
/// # Errors
/// Returns a description of the problem.
pub(crate) fn verify_node(g: &Graph, node: &Node) -> Check {
    let x: Vec<&Shape> = node.operands.iter().map(|v| g.shape(*v)).collect();
    let y: Vec<&Shape> = node.results().map(|v| g.shape(v)).collect();
    node.op.operation().verify(&x, &y).map_err(|message| format!("{}: {message}", node.op.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Builder, Op, ops};
    use refcpu_kernels::DType;
    use refcpu_kernels::tile::TileOp;

    #[test]
    fn shapes_that_do_not_follow_are_found() {
        let mut b = Builder::new();
        let x = b.parameter(Shape::new(DType::F32, &[2, 3]));
        let y = b.tile(TileOp::Sine, &[x]);
        assert_eq!(verify(&b.finish(vec![y])), Ok(()));
        let wrong = [
            Op::Slice(ops::Slice { start: vec![0, 2], stride: vec![1, 1] }),
            Op::Transpose(ops::Transpose { permutation: vec![0, 0] }),
            Op::Concatenate(ops::Concatenate { dim: 2, parts: std::iter::once(0..2).collect() }),
            Op::Concatenate(ops::Concatenate { dim: 0, parts: std::iter::once(1..3).collect() }),
            Op::Broadcast(ops::Broadcast { dims: vec![0, 5] }),
            Op::Select,
        ];
        for op in wrong {
            let mut b = Builder::new();
            let x = b.parameter(Shape::new(DType::F32, &[2, 3]));
            let y = b.node(op.clone(), vec![x], vec![Shape::new(DType::F32, &[2, 2])]);
            assert!(verify(&b.finish(y)).is_err(), "{op:?}");
        }
    }
}
