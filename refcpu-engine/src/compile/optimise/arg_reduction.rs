//! Recognizes argmin and argmax: joint reductions of values and their indices.
//!
//! Hosts write the combining function in different ways. It is recognized by what it computes: it is evaluated for every order
//! of its two values, of which the first has the lower index.

use super::fuse::is_identity;
use crate::graph::{Graph, Node, Op, ValueId, ops};
use refcpu_kernels::ReduceOp;
use refcpu_kernels::reduce::ArgReduceOp;
use refcpu_kernels::region::{Direction, Order};
use refcpu_kernels::tile::TileOp;
use std::cmp::Ordering;

/// An argmin or argmax.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArgReduction {
    pub(super) op: ArgReduceOp,
    /// The values.
    pub(super) values: ValueId,
    /// `true` if the indices are the first result, and the values the second.
    pub(super) indices_first: bool,
}

/// Recognizes a reduction along `dims` with the combining function `body` as argmin or argmax.
pub(super) fn arg_reduction(g: &Graph, node: &Node, dims: &[usize], body: &Graph) -> Option<ArgReduction> {
    let ([dim], [a, b, _, _]) = (dims, &node.operands[..]) else { return None };
    let indices_first = !is_position(g, *b, *dim);
    let (values, indices) = if indices_first { (*b, *a) } else { (*a, *b) };
    let of_values = usize::from(indices_first);
    let (shape, index_type) = (g.shape(values), g.shape(indices).dtype);
    let is_searchable = shape.dims[*dim] > 0 && !shape.dtype.is_complex();
    if !is_searchable || !is_position(g, indices, *dim) || index_type.is_float() {
        return None;
    }
    let (init_value, init_index) = (node.operands[2 + of_values], node.operands[3 - of_values]);
    if !g.constant(init_index)?.is_zero() {
        return None;
    }
    let is_float = shape.dtype.is_float();
    let op = [ArgReduceOp::Maximum, ArgReduceOp::Minimum]
        .into_iter()
        .find(|op| Relation::possible(is_float).all(|relation| finds(body, of_values, *op, relation)))?;
    let worst = if op == ArgReduceOp::Maximum { ReduceOp::Maximum } else { ReduceOp::Minimum };
    if !is_identity(worst, g.constant(init_value)?.element()?, shape.dtype) {
        return None;
    }
    // The extreme of 0 and -0 is not always the first of them.
    let ties = evaluate(body, of_values, Relation::Ordered(Ordering::Equal));
    let is_exact = !is_float || ties[body.results()[of_values].index()] != Some(Known::Value(Side::Extreme));
    (is_exact || g.uses().count(node.result(of_values)) == 0).then_some(ArgReduction {
        op,
        values,
        indices_first,
    })
}

/// The relation of the first of two values to the second.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Ordered(Ordering),
    FirstIsNan,
    SecondIsNan,
    BothAreNan,
}

impl Relation {
    fn possible(is_float: bool) -> impl Iterator<Item = Self> {
        let ordered = [Ordering::Less, Ordering::Equal, Ordering::Greater].map(Self::Ordered);
        let with_nan = [Self::FirstIsNan, Self::SecondIsNan, Self::BothAreNan];
        ordered.into_iter().chain(with_nan.into_iter().filter(move |_| is_float))
    }

    /// Returns the relation between two sides.
    fn between(self, a: Side, b: Side) -> Option<Ordering> {
        let is_nan = |side: Side| match self {
            Self::FirstIsNan => side == Side::First,
            Self::SecondIsNan => side == Side::Second,
            Self::BothAreNan => true,
            Self::Ordered(_) => false,
        };
        match (self, a, b) {
            _ if is_nan(a) || is_nan(b) => None,
            (Self::Ordered(order), Side::First, Side::Second) => Some(order),
            (Self::Ordered(order), Side::Second, Side::First) => Some(order.reverse()),
            _ => Some(Ordering::Equal),
        }
    }

    /// Returns the value that a minimum or maximum of both returns.
    fn extreme(self, op: ArgReduceOp) -> Side {
        match (self, op) {
            (Self::FirstIsNan, _)
            | (Self::Ordered(Ordering::Less), ArgReduceOp::Minimum)
            | (Self::Ordered(Ordering::Greater), ArgReduceOp::Maximum) => Side::First,
            (Self::Ordered(Ordering::Equal) | Self::BothAreNan, _) => Side::Extreme,
            _ => Side::Second,
        }
    }
}

/// One of the two elements that are combined.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    First,
    Second,
    /// The minimum or maximum of two values that are equal or both NaN.
    Extreme,
}

/// A value in the combining function.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Truth(bool),
    Value(Side),
    Index(Side),
}

/// Returns whether the combining function returns the minimum or maximum, and the lower index of those that have it.
fn finds(body: &Graph, of_values: usize, op: ArgReduceOp, relation: Relation) -> bool {
    let known = evaluate(body, of_values, relation);
    let extreme = relation.extreme(op);
    let first = if extreme == Side::Extreme { Side::First } else { extreme };
    let (value, index) = (body.results()[of_values], body.results()[1 - of_values]);
    let is_extreme = |value: Known| match value {
        Known::Value(side) => side == extreme || extreme == Side::Extreme,
        _ => false,
    };
    known[value.index()].is_some_and(is_extreme) && known[index.index()] == Some(Known::Index(first))
}

/// Evaluates the values of a combining function of which the first index is lower. Values other than booleans and parameters are
/// not known.
fn evaluate(body: &Graph, of_values: usize, relation: Relation) -> Vec<Option<Known>> {
    let mut known = vec![None; body.num_values()];
    for (i, parameter) in body.parameters().iter().enumerate() {
        let side = if i < 2 { Side::First } else { Side::Second };
        known[parameter.index()] =
            Some(if i % 2 == of_values { Known::Value(side) } else { Known::Index(side) });
    }
    for node in body.nodes() {
        let operands: Vec<Option<Known>> = node.operands.iter().map(|v| known[v.index()]).collect();
        let is_float = node.operands.first().is_some_and(|v| body.shape(*v).dtype.is_float());
        for result in node.results() {
            let constant = || Some(Known::Truth(!body.constant(result)?.is_zero()));
            known[result.index()] = computed(&node.op, &operands, is_float, relation)
                .or_else(|| constant().filter(|_| body.shape(result).dtype == refcpu_kernels::DType::Pred));
        }
    }
    known
}

fn computed(op: &Op, operands: &[Option<Known>], is_float: bool, relation: Relation) -> Option<Known> {
    use Known::{Index, Truth, Value};
    let of_indices = Relation::Ordered(Ordering::Less);
    let extreme = |a: Side, b: Side, relation: Relation, op: ArgReduceOp| match (a, b) {
        (a, b) if a == b => a,
        (Side::Extreme, _) | (_, Side::Extreme) => Side::Extreme,
        _ => relation.extreme(op),
    };
    match (op, operands) {
        (Op::Compare(ops::Compare(direction, order)), [Some(a), Some(b)]) => {
            let ordering = match (a, b) {
                (Value(_), Value(_)) if is_float && *order == Order::Total => return None,
                (Value(a), Value(b)) => relation.between(*a, *b),
                (Index(a), Index(b)) => of_indices.between(*a, *b),
                (Truth(a), Truth(b)) => Some(a.cmp(b)),
                _ => return None,
            };
            Some(Truth(holds(*direction, ordering)))
        }
        (Op::Select, [Some(Truth(test)), yes, no]) => *(if *test { yes } else { no }),
        (Op::Tile(TileOp::Not), [Some(Truth(a))]) => Some(Truth(!a)),
        (Op::Tile(TileOp::And), [Some(Truth(a)), Some(Truth(b))]) => Some(Truth(a & b)),
        (Op::Tile(TileOp::Or), [Some(Truth(a)), Some(Truth(b))]) => Some(Truth(a | b)),
        (Op::Tile(TileOp::Xor), [Some(Truth(a)), Some(Truth(b))]) => Some(Truth(a ^ b)),
        (Op::Tile(op @ (TileOp::Minimum | TileOp::Maximum)), [Some(a), Some(b)]) => {
            let op = if *op == TileOp::Minimum { ArgReduceOp::Minimum } else { ArgReduceOp::Maximum };
            match (a, b) {
                (Value(a), Value(b)) => Some(Value(extreme(*a, *b, relation, op))),
                (Index(a), Index(b)) => Some(Index(extreme(*a, *b, of_indices, op))),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns whether a comparison holds; an ordering of `None` is that of NaN.
fn holds(direction: Direction, ordering: Option<Ordering>) -> bool {
    match direction {
        Direction::Eq => ordering.is_some_and(Ordering::is_eq),
        Direction::Ne => ordering.is_none_or(Ordering::is_ne),
        Direction::Ge => ordering.is_some_and(Ordering::is_ge),
        Direction::Gt => ordering.is_some_and(Ordering::is_gt),
        Direction::Le => ordering.is_some_and(Ordering::is_le),
        Direction::Lt => ordering.is_some_and(Ordering::is_lt),
    }
}

/// Returns whether each element is its coordinate along a dimension.
fn is_position(g: &Graph, v: ValueId, dim: usize) -> bool {
    let Some(node) = g.node_of(v) else { return false };
    match &node.op {
        Op::Iota(ops::Iota { dim: along }) => *along == dim,
        Op::Broadcast(ops::Broadcast { dims }) => {
            let Some(inner) = dims.iter().position(|d| *d == dim) else { return false };
            is_position(g, node.operands[0], inner)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::optimise::recognise::recognise;
    use crate::graph::{Body, Builder, Constant, Reducer, Shape};
    use refcpu_kernels::DType;

    /// The ways in which hosts write argmax.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Form {
        Jax,
        GoMlx,
        /// The last index of the greatest value.
        Last,
    }

    fn body(form: Form, dtype: DType) -> Graph {
        let mut b = Builder::new();
        let (value, index) = (Shape::scalar(dtype), Shape::scalar(DType::S32));
        let shapes = if form == Form::Jax { [value, index] } else { [index, value] };
        let p: Vec<ValueId> =
            [&shapes, &shapes].into_iter().flatten().map(|s| b.parameter(s.clone())).collect();
        let (v0, i0, v1, i1) =
            if form == Form::Jax { (p[0], p[1], p[2], p[3]) } else { (p[1], p[0], p[3], p[2]) };
        let nan = b.compare(Direction::Ne, v0, v0);
        let equal = b.compare(Direction::Eq, v0, v1);
        let greater = b.compare(Direction::Gt, v0, v1);
        let picked = b.tile(TileOp::Or, &[greater, nan]);
        let results = match form {
            Form::Jax => {
                let earlier = b.compare(Direction::Lt, i0, i1);
                let tie = b.tile(TileOp::And, &[equal, earlier]);
                let picked_index = b.tile(TileOp::Or, &[picked, tie]);
                vec![b.select(picked, v0, v1), b.select(picked_index, i0, i1)]
            }
            Form::GoMlx | Form::Last => {
                let op = if form == Form::Last { TileOp::Maximum } else { TileOp::Minimum };
                let of_equal = b.tile(op, &[i0, i1]);
                let right = b.select(equal, of_equal, i1);
                vec![b.select(picked, i0, right), b.tile(TileOp::Maximum, &[v0, v1])]
            }
        };
        b.finish(results)
    }

    /// Returns whether an argmax over 3 rows of 5 values is recognized.
    fn is_recognized(form: Form, dtype: DType, init: &[u8], uses_values: bool) -> bool {
        let mut b = Builder::new();
        let x = b.parameter(Shape::new(dtype, &[3, 5]));
        let i = b.iota(Shape::new(DType::S32, &[3, 5]), 1);
        let init = b.constant(Constant::splat(Shape::scalar(dtype), init.to_vec()));
        let zero = b.constant(Constant::zero(Shape::scalar(DType::S32)));
        let (values, indices) = (Shape::new(dtype, &[3]), Shape::new(DType::S32, &[3]));
        let reduce =
            Op::Reduce(ops::Reduce { dims: vec![1], reducer: Reducer::Body(Body::new(body(form, dtype))) });
        let results = if form == Form::Jax {
            b.node(reduce, vec![x, i, init, zero], vec![values, indices])
        } else {
            let results = b.node(reduce, vec![i, x, zero, init], vec![indices, values]);
            results.into_iter().rev().collect()
        };
        let g = recognise(&b.finish(if uses_values { results } else { vec![results[1]] }));
        assert_eq!(crate::graph::verify(&g), Ok(()));
        g.nodes().iter().any(|node| matches!(node.op, Op::ArgReduce(_)))
    }

    #[test]
    fn an_argmax_is_recognized_in_the_forms_of_hosts() {
        for form in [Form::Jax, Form::GoMlx] {
            for (dtype, init) in [
                (DType::F32, &f32::NEG_INFINITY.to_le_bytes()[..]),
                (DType::BF16, &[0x80, 0xff]),
                (DType::S8, &[0x80]),
                (DType::U8, &[0]),
                (DType::S16, &[0, 0x80]),
                (DType::U64, &[0; 8]),
                (DType::Pred, &[0]),
            ] {
                assert!(is_recognized(form, dtype, init, false), "{form:?} {dtype:?}");
            }
        }
    }

    #[test]
    fn reductions_with_other_results_are_no_argmax() {
        let (s8, f32) = ([0x80], f32::NEG_INFINITY.to_le_bytes());
        assert!(is_recognized(Form::GoMlx, DType::S8, &s8, true));
        // The maximum of 0 and -0 is 0, but the first of them may be -0.
        assert!(!is_recognized(Form::GoMlx, DType::F32, &f32, true));
        assert!(!is_recognized(Form::GoMlx, DType::S8, &[0x81], false));
        assert!(!is_recognized(Form::Last, DType::S8, &s8, false));
    }

    #[test]
    fn positions_are_iotas_along_the_dimension() {
        let mut b = Builder::new();
        let i = b.iota(Shape::new(DType::S32, &[4]), 0);
        let j = b.broadcast(i, &[1], &[3, 4]);
        let c = b.constant(Constant::zero(Shape::new(DType::S32, &[3, 4])));
        assert!(
            is_position(b.graph(), j, 1) && !is_position(b.graph(), j, 0) && !is_position(b.graph(), c, 1)
        );
    }
}
