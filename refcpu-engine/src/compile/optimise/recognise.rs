//! Replaces regions with the operations that they spell out, and merges transposes into products.

use super::arg_reduction::arg_reduction;
use crate::graph::{Graph, Node, Op, Reducer, Uses, ValueId, ops};
use refcpu_kernels::dot::DotDims;
use refcpu_kernels::region::{Direction, Order};
use refcpu_kernels::sort::{KeyOrder, KeyPart, SortKey};
use refcpu_kernels::tile::TileOp;
use std::convert::Infallible;

/// Replaces sorts by known orders, the reductions of argmin and argmax, and products of transposed arrays with operations that
/// have kernels. Applies to bodies as well.
pub(crate) fn recognise(graph: &Graph) -> Graph {
    let uses = graph.uses();
    let Ok(recognised) = graph.rewritten::<Infallible>(|b, node, map| {
        let mut shapes: Vec<_> = node.results().map(|r| graph.shape(r).clone()).collect();
        if let Op::Reduce(ops::Reduce { dims, reducer: Reducer::Body(body) }) = &node.op
            && let Some(found) = arg_reduction(graph, node, dims, body)
        {
            let op = Op::ArgReduce(ops::ArgReduce { dim: dims[0], op: found.op });
            let values = vec![map[found.values.index()]];
            if !found.indices_first {
                return Ok(Some(b.node(op, values, shapes)));
            }
            shapes.reverse();
            return Ok(Some(b.node(op, values, shapes).into_iter().rev().collect()));
        }
        let Some((op, operands)) = found(graph, &uses, node) else { return Ok(None) };
        let operands = operands.iter().map(|v| map[v.index()]).collect();
        Ok(Some(b.node(op, operands, shapes)))
    });
    recognised
}

/// Returns the operation that replaces a node, with its operands.
fn found(graph: &Graph, uses: &Uses, node: &Node) -> Option<(Op, Vec<ValueId>)> {
    let same = |op| Some((op, node.operands.clone()));
    let Ok(within) = node.op.with_programs::<Infallible>(|body| Ok(recognise(body)));
    if let Some(op) = within {
        return same(op);
    }
    match &node.op {
        Op::SortBy(ops::SortBy { dim, comparator }) => {
            same(Op::Sort(ops::Sort { dim: *dim, keys: sort_keys(comparator)? }))
        }
        Op::Dot(dims) => product_of_originals(graph, node, dims),
        Op::Concatenate(concatenate) => concatenated_originals(graph, uses, node, concatenate),
        _ => None,
    }
}

/// Replaces a concatenation of slices with one of parts of the original arrays.
fn concatenated_originals(
    graph: &Graph,
    uses: &Uses,
    node: &Node,
    concatenate: &ops::Concatenate,
) -> Option<(Op, Vec<ValueId>)> {
    let ops::Concatenate { dim, mut parts } = concatenate.clone();
    let mut operands = node.operands.clone();
    let mut found = false;
    for (operand, part) in operands.iter_mut().zip(&mut parts) {
        let Some((original, first)) = sliced(graph, uses, *operand, dim) else { continue };
        *operand = original;
        *part = part.start + first..part.end + first;
        found = true;
    }
    found.then_some((Op::Concatenate(ops::Concatenate { dim, parts }), operands))
}

/// Returns the array of a slice along one dimension, and the first index of the slice. Returns `None` if the slice is a part of
/// memory, which needs no copy, or if the slice determines which elements of the array are computed.
fn sliced(graph: &Graph, uses: &Uses, slice: ValueId, dim: usize) -> Option<(ValueId, usize)> {
    let node = graph.node_of(slice)?;
    let Op::Slice(ops::Slice { start, stride }) = &node.op else { return None };
    let (array, shape) = (node.operands[0], graph.shape(slice));
    let from = graph.shape(array);
    let is_along = |d: usize| stride[d] == 1 && (d == dim || from.dims[d] == shape.dims[d]);
    let has_rows = from.dims[..dim].iter().any(|size| *size > 1);
    let is_stored = graph.node_of(array).is_none_or(|node| {
        let operands: Vec<_> = node.operands.iter().map(|v| graph.shape(*v)).collect();
        !node.op.is_elementwise(&operands, from)
    }) || uses.of(array).len() > 1;
    (has_rows && is_stored && (0..from.rank()).all(is_along)).then_some((array, start[dim]))
}

/// Replaces a product of transposed arrays with one of the original arrays, which kernels read in any order.
fn product_of_originals(graph: &Graph, node: &Node, dims: &DotDims) -> Option<(Op, Vec<ValueId>)> {
    let mut dims = dims.clone();
    let mut operands = node.operands.clone();
    let left = original(graph, &mut operands[0], &mut dims.lhs_batch, &mut dims.lhs_contract);
    let right = original(graph, &mut operands[1], &mut dims.rhs_batch, &mut dims.rhs_contract);
    (left || right).then_some((Op::Dot(dims), operands))
}

/// Replaces an operand of a product with the operand of its transpose, if that keeps the order of the result's dimensions.
/// Returns whether it did.
fn original(graph: &Graph, operand: &mut ValueId, batch: &mut [usize], contract: &mut [usize]) -> bool {
    let Some(node) = graph.node_of(*operand) else { return false };
    let Op::Transpose(ops::Transpose { permutation }) = &node.op else { return false };
    let free = (0..permutation.len()).filter(|d| !batch.contains(d) && !contract.contains(d));
    if !free.map(|d| permutation[d]).is_sorted() {
        return false;
    }
    batch.iter_mut().chain(contract).for_each(|d| *d = permutation[*d]);
    *operand = node.operands[0];
    true
}

/// Returns the keys of the order that a comparator computes, most significant first.
fn sort_keys(comparator: &Graph) -> Option<Vec<SortKey>> {
    let [result] = *comparator.results() else { return None };
    let mut keys = Vec::new();
    let mut rest = result;
    loop {
        let node = comparator.node_of(rest)?;
        match node.op {
            Op::Compare(_) => {
                keys.push(sort_key(comparator, node)?);
                return Some(keys);
            }
            // The form is `a < b`, or `a = b` and the next key.
            Op::Tile(TileOp::Or) => {
                let [x, y] = *node.operands else { return None };
                let (key, next) =
                    lexicographic(comparator, x, y).or_else(|| lexicographic(comparator, y, x))?;
                keys.push(key);
                rest = next;
            }
            _ => return None,
        }
    }
}

/// Matches `less or (equal and next)` where `less` and `equal` compare the same key. Returns the key and `next`.
fn lexicographic(g: &Graph, less: ValueId, tie: ValueId) -> Option<(SortKey, ValueId)> {
    let less = g.node_of(less).filter(|n| matches!(n.op, Op::Compare(_)))?;
    let tie = g.node_of(tie).filter(|n| n.op == Op::Tile(TileOp::And))?;
    let key = sort_key(g, less)?;
    let [x, y] = *tie.operands else { return None };
    let equal = |v: ValueId| {
        g.node_of(v).is_some_and(|n| {
            matches!(n.op, Op::Compare(ops::Compare(Direction::Eq, _)))
                && (n.operands == less.operands || n.operands.iter().rev().eq(&less.operands))
        })
    };
    if equal(x) {
        Some((key, y))
    } else if equal(y) {
        Some((key, x))
    } else {
        None
    }
}

/// Returns the key of a comparison of the two elements of one operand.
fn sort_key(g: &Graph, node: &Node) -> Option<SortKey> {
    let Op::Compare(ops::Compare(direction, order)) = node.op else { return None };
    let (a, b) = (key_value(g, node.operands[0])?, key_value(g, node.operands[1])?);
    // Parameters 2i and 2i + 1 are the two elements of operand i.
    let swapped = match (a.parameter % 2, b.parameter % 2) {
        (0, 1) if a.parameter + 1 == b.parameter => false,
        (1, 0) if b.parameter + 1 == a.parameter => true,
        _ => return None,
    };
    if (a.part, a.canonical) != (b.part, b.canonical) {
        return None;
    }
    let descending = match (direction, swapped) {
        (Direction::Lt, false) | (Direction::Gt, true) => false,
        (Direction::Gt, false) | (Direction::Lt, true) => true,
        _ => return None,
    };
    let total = order == Order::Total && !a.canonical;
    let order = if total { KeyOrder::Total } else { KeyOrder::Numeric };
    Some(SortKey { operand: a.parameter / 2, part: a.part, order, descending })
}

struct KeyValue {
    parameter: usize,
    part: KeyPart,
    /// `true` if -0 is replaced by 0, and every NaN by the same NaN, before the comparison.
    canonical: bool,
}

/// Matches a parameter or a part of one, possibly made canonical as JAX does: `select(x != x, NaN, select(x == 0, 0, x))`, with
/// the selects in either order.
fn key_value(g: &Graph, v: ValueId) -> Option<KeyValue> {
    if let Some(parameter) = g.parameters().iter().position(|p| *p == v) {
        return Some(KeyValue { parameter, part: KeyPart::Whole, canonical: false });
    }
    let node = g.node_of(v)?;
    match node.op {
        Op::Tile(TileOp::Real | TileOp::Imag) => {
            let inner =
                key_value(g, node.operands[0]).filter(|k| k.part == KeyPart::Whole && !k.canonical)?;
            let part = if node.op == Op::Tile(TileOp::Real) { KeyPart::Real } else { KeyPart::Imaginary };
            Some(KeyValue { part, ..inner })
        }
        Op::Select => {
            let (first, x) = canonical_step(g, node)?;
            let (second, x) = canonical_step(g, g.node_of(x)?)?;
            let inner = key_value(g, x).filter(|k| !k.canonical && first != second)?;
            Some(KeyValue { canonical: true, ..inner })
        }
        _ => None,
    }
}

/// Matches one select of a canonicalization. Returns true for that of NaNs, false for that of zeros, and the value that it
/// applies to.
fn canonical_step(g: &Graph, node: &Node) -> Option<(bool, ValueId)> {
    if node.op != Op::Select {
        return None;
    }
    let [test, replacement, x] = *node.operands else { return None };
    let test = g.node_of(test)?;
    let constant = g.constant(replacement)?;
    let [a, b] = *test.operands else { return None };
    // The test may use the value before or after the other select.
    let looks_at =
        |v: ValueId| v == x || g.node_of(x).is_some_and(|n| n.op == Op::Select && n.operands[2] == v);
    match test.op {
        Op::Compare(ops::Compare(Direction::Ne, _)) if a == b && looks_at(a) && !constant.is_zero() => {
            Some((true, x))
        }
        Op::Compare(ops::Compare(Direction::Eq, _)) if constant.is_zero() => {
            let with_zero =
                (looks_at(a) && g.constant(b)?.is_zero()) || (looks_at(b) && g.constant(a)?.is_zero());
            with_zero.then_some((false, x))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Builder, Shape};
    use refcpu_kernels::DType;

    fn scalars(b: &mut Builder, dtypes: &[DType]) -> Vec<ValueId> {
        dtypes.iter().map(|d| b.parameter(Shape::scalar(*d))).collect()
    }

    #[test]
    fn a_comparison_of_floats_made_canonical_is_numeric() {
        let mut b = Builder::new();
        let p = scalars(&mut b, &[DType::F32; 2]);
        let canonical = |b: &mut Builder, x: ValueId| {
            let zero = b.number(Shape::scalar(DType::F32), 0.0);
            let is_zero = b.compare(Direction::Eq, x, zero);
            let x = b.select(is_zero, zero, x);
            let nan = b.number(Shape::scalar(DType::F32), f64::NAN);
            let is_nan = b.compare(Direction::Ne, x, x);
            b.select(is_nan, nan, x)
        };
        let (x, y) = (canonical(&mut b, p[0]), canonical(&mut b, p[1]));
        let less = b.add(
            Op::Compare(ops::Compare(Direction::Lt, Order::Total)),
            &[x, y],
            Shape::scalar(DType::Pred),
        );
        let g = b.finish(vec![less]);
        assert_eq!(sort_keys(&g), Some(vec![SortKey::ascending(0, KeyOrder::Numeric)]));
    }

    #[test]
    fn two_keys_are_compared_one_after_the_other() {
        let mut b = Builder::new();
        let p = scalars(&mut b, &[DType::S32, DType::S32, DType::U8, DType::U8]);
        let first = b.compare(Direction::Gt, p[0], p[1]);
        let equal = b.compare(Direction::Eq, p[0], p[1]);
        let second = b.compare(Direction::Lt, p[2], p[3]);
        let tie = b.tile(TileOp::And, &[equal, second]);
        let less = b.tile(TileOp::Or, &[first, tie]);
        let keys = sort_keys(&b.finish(vec![less])).unwrap();
        assert_eq!(
            keys.iter().map(|k| (k.operand, k.descending)).collect::<Vec<_>>(),
            [(0, true), (1, false)]
        );
    }

    #[test]
    fn a_comparison_across_operands_is_no_key() {
        let mut b = Builder::new();
        let p = scalars(&mut b, &[DType::S32; 4]);
        let less = b.compare(Direction::Lt, p[0], p[3]);
        assert_eq!(sort_keys(&b.finish(vec![less])), None);
    }

    #[test]
    fn a_product_of_a_transpose_is_one_of_the_original_unless_that_reorders_the_result() {
        for (permutation, folds) in
            [([1, 0, 2], true), ([1, 2, 0], true), ([0, 2, 1], false), ([2, 1, 0], false)]
        {
            let mut b = Builder::new();
            let x = b.parameter(Shape::new(DType::F32, &[2, 3, 4]));
            let y = b.parameter(Shape::new(DType::F32, &[5, 2]));
            let t = b.transpose(x, &permutation);
            let size_2 = permutation.iter().position(|p| *p == 0).unwrap();
            let dims = DotDims {
                lhs_batch: vec![],
                rhs_batch: vec![],
                lhs_contract: vec![size_2],
                rhs_contract: vec![1],
            };
            let shapes = [b.shape(t).dims.to_vec(), vec![5, 2]];
            let out = dims.output_dims(&shapes[0], &shapes[1]).unwrap();
            let dot = b.add(Op::Dot(dims), &[t, y], Shape::new(DType::F32, &out));
            let g = recognise(&b.finish(vec![dot]));
            assert_eq!(crate::graph::verify(&g), Ok(()));
            assert_eq!(g.nodes().len(), if folds { 1 } else { 2 }, "{permutation:?}");
        }
    }
}
