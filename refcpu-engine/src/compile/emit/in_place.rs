//! Finds the carried values of a loop that are updated in place.

use super::windows::few_scatters;
use crate::graph::{Definition, Graph, Op, ValueId, ops};

/// The maximum number of elements of an array that is copied into cells because the loop does not change it.
pub(super) const KEPT: usize = 256;

/// The maximum nesting depth of loops and branches.
pub(super) const MAX_DEPTH: usize = 32;

/// Returns whether two values of a graph are identical, or constants with the same elements.
pub(super) fn same_value(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    a == b || graph.constant(a).is_some_and(|c| graph.constant(b) == Some(c))
}

/// Returns an earlier carried value that equals carried value `j` in every iteration, as the counters of nested loops do: both
/// have the same initial value, and the same operation changes them.
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

/// Returns whether parameter `j` of a loop's body is an array that is changed in place, or that is too large to copy.
pub(super) fn changes_in_place(body: &Graph, j: usize) -> bool {
    let parameter = body.parameters()[j];
    let unchanged = body.results()[j] == parameter && body.shape(parameter).len() <= KEPT;
    in_place(body, j) && !unchanged
}

/// Returns whether result `j` of a loop's body is parameter `j`, with changes to windows only.
fn in_place(body: &Graph, j: usize) -> bool {
    origin(body, body.results()[j], 0) == Some(j)
}

/// Returns the parameter that a value is, possibly with changes to windows; `None` for other values.
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
            Op::Scatter(scatter) if node.results == 1 && few_scatters(graph, node, scatter).is_some() => {
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
