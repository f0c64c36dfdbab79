//! Finds the carried values of a loop that are updated in place.

use super::windows::is_single_scatter;
use crate::graph::{Definition, Graph, Op, ValueId, ops};

/// Elements of the largest array that is copied into cells because nothing changes it.
pub(super) const KEPT: usize = 256;

/// Loops and branches may be nested this deep.
pub(super) const MAX_DEPTH: usize = 32;

/// True if two values of a graph are one, or constants of the same elements.
pub(super) fn same_value(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    a == b || graph.constant(a).is_some_and(|c| graph.constant(b) == Some(c))
}

/// An earlier carried value that `j` equals in every step, as the counters of nested loops do: it begins with the same
/// and is changed by the same operation.
pub(super) fn twin(body: &Graph, j: usize, same_start: impl Fn(usize) -> bool) -> Option<usize> {
    let (parameters, results) = (body.parameters(), body.results());
    let change = body.node_of(results[j]).filter(|n| matches!(n.op, Op::Tile(_)))?;
    (0..j).find(|i| {
        let twins = [parameters[*i], parameters[j]];
        let same = |a: ValueId, b: ValueId| [a, b] == twins || same_value(body, a, b);
        body.shape(twins[0]) == body.shape(twins[1])
            && body.node_of(results[*i]).is_some_and(|n| {
                n.op == change.op && n.operands.iter().zip(&change.operands).all(|(a, b)| same(*a, *b))
            })
            && same_start(*i)
    })
}

/// True if parameter `j` of a loop's body is an array that stays where it is while windows of it are changed, or that is
/// too large to be copied.
pub(super) fn changes_in_place(body: &Graph, j: usize) -> bool {
    let parameter = body.parameters()[j];
    let unchanged = body.results()[j] == parameter && body.shape(parameter).len() <= KEPT;
    in_place(body, j) && !unchanged
}

/// True if parameter `j` of a loop's body comes back as result `j` with nothing but windows of it changed.
fn in_place(body: &Graph, j: usize) -> bool {
    origin(body, body.results()[j], 0) == Some(j)
}

/// The parameter that a value is, perhaps with windows of it changed.
pub(super) fn origin(graph: &Graph, value: ValueId, depth: usize) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    let mut value = value;
    loop {
        let index = match graph.definition(value) {
            Definition::Parameter(p) => return Some(p as usize),
            Definition::Result { index, .. } => index as usize,
        };
        let node = graph.node_of(value)?;
        value = match &node.op {
            Op::DynamicUpdateSlice => node.operands[0],
            Op::Scatter(ops::Scatter { dims, .. })
                if node.results == 1 && is_single_scatter(graph, node, dims) =>
            {
                node.operands[0]
            }
            Op::Barrier => node.operands[index],
            Op::While(ops::While { body, .. }) => {
                if origin(body, body.results()[index], depth + 1) != Some(index) {
                    return None;
                }
                node.operands[index]
            }
            Op::Case(ops::Case { branches }) => {
                let mut all = branches.iter().map(|b| origin(b, b.results()[index], depth + 1));
                let first = all.next()??;
                if !all.all(|o| o == Some(first)) {
                    return None;
                }
                node.operands[1 + first]
            }
            _ => return None,
        };
    }
}
