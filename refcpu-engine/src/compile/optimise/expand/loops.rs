//! Builds loops over elements, and operations in their bodies.

use crate::graph::{Body, Builder, Constant, Graph, Op, Shape, ValueId, ops};
use refcpu_kernels::DType;
use refcpu_kernels::region::Direction;
use refcpu_kernels::tile::TileOp;

/// Adds a number of elements, or the index of an element, as a constant.
pub(super) fn integer(b: &mut Builder, value: usize) -> ValueId {
    b.constant(Constant::integer(DType::S64, value as i64))
}

/// Flattens an array in row-major order.
pub(super) fn flat(b: &mut Builder, array: ValueId) -> ValueId {
    let count = b.shape(array).len();
    b.reshape(array, &[count])
}

/// Flattens each array.
pub(super) fn all_flat(b: &mut Builder, arrays: &[ValueId]) -> Vec<ValueId> {
    arrays.iter().map(|array| flat(b, *array)).collect()
}

/// Reshapes flat arrays to these shapes.
pub(super) fn shaped(b: &mut Builder, arrays: &[ValueId], shapes: &[Shape]) -> Vec<ValueId> {
    arrays.iter().zip(shapes).map(|(array, shape)| b.reshape(*array, &shape.dims)).collect()
}

/// Reads the element at an index of a flat array.
pub(super) fn element(b: &mut Builder, array: ValueId, at: ValueId) -> ValueId {
    let one = b.shape(array).with_dims(&[1]);
    let one = b.add(Op::DynamicSlice, &[array, at], one);
    b.reshape(one, &[])
}

/// Reads the elements at an index of flat arrays.
pub(super) fn elements(b: &mut Builder, arrays: &[ValueId], at: ValueId) -> Vec<ValueId> {
    arrays.iter().map(|array| element(b, *array, at)).collect()
}

/// Replaces the elements at an index of flat arrays.
pub(super) fn with_elements(
    b: &mut Builder,
    arrays: &[ValueId],
    at: ValueId,
    elements: &[ValueId],
) -> Vec<ValueId> {
    let change = |(array, element): (&ValueId, &ValueId)| {
        let one = b.reshape(*element, &[1]);
        let shape = b.shape(*array).clone();
        b.add(Op::DynamicUpdateSlice, &[*array, one, at], shape)
    };
    arrays.iter().zip(elements).map(change).collect()
}

/// Applies a region to scalars.
pub(super) fn apply(b: &mut Builder, region: &Graph, arguments: &[ValueId]) -> Vec<ValueId> {
    let location = b.location().clone();
    let results = b.inline(region, arguments);
    b.set_location(&location);
    results
}

/// Builds a graph whose parameters have the types of these values.
fn graph_over(
    outer: &Builder,
    values: &[ValueId],
    make: impl FnOnce(&mut Builder, &[ValueId]) -> Vec<ValueId>,
) -> Graph {
    let mut b = Builder::new();
    b.set_location(outer.location());
    let parameters: Vec<ValueId> = values.iter().map(|v| b.parameter(outer.shape(*v).clone())).collect();
    let results = make(&mut b, &parameters);
    b.finish(results)
}

/// Adds a branch over two graphs with the same arguments. Only one of them runs.
pub(super) fn either(
    b: &mut Builder,
    condition: ValueId,
    arguments: &[ValueId],
    then: impl FnOnce(&mut Builder, &[ValueId]) -> Vec<ValueId>,
    otherwise: impl FnOnce(&mut Builder, &[ValueId]) -> Vec<ValueId>,
) -> Vec<ValueId> {
    let not = b.tile(TileOp::Not, &[condition]);
    let index = b.convert(not, DType::S32);
    let branches = [graph_over(b, arguments, then), graph_over(b, arguments, otherwise)];
    let shapes = branches[0].results().iter().map(|r| branches[0].shape(*r).clone()).collect();
    let operands = [&[index], arguments].concat();
    b.node(Op::Case(ops::Case { branches: branches.into_iter().map(Body::new).collect() }), operands, shapes)
}

/// Adds a loop: `next` computes new carried values while `goes_on` holds. Both receive the carried values and the fixed
/// ones.
pub(super) fn repeat(
    b: &mut Builder,
    carried: &[ValueId],
    fixed: &[ValueId],
    goes_on: impl FnOnce(&mut Builder, &[ValueId], &[ValueId]) -> ValueId,
    next: impl FnOnce(&mut Builder, &[ValueId], &[ValueId]) -> Vec<ValueId>,
) -> Vec<ValueId> {
    let count = carried.len();
    let operands = [carried, fixed].concat();
    let condition = graph_over(b, &operands, |b, all| vec![goes_on(b, &all[..count], &all[count..])]);
    let body = graph_over(b, &operands, |b, all| next(b, &all[..count], &all[count..]));
    let shapes = carried.iter().map(|v| b.shape(*v).clone()).collect();
    let op = Op::While(ops::While { carried: count, condition: Body::new(condition), body: Body::new(body) });
    b.node(op, operands, shapes)
}

/// Adds a loop over the indices below `count`. `next` receives the index, the carried values and the fixed ones.
pub(super) fn for_each(
    b: &mut Builder,
    count: usize,
    carried: &[ValueId],
    fixed: &[ValueId],
    next: impl FnOnce(&mut Builder, ValueId, &[ValueId], &[ValueId]) -> Vec<ValueId>,
) -> Vec<ValueId> {
    if count == 0 {
        return carried.to_vec();
    }
    let first = integer(b, 0);
    let goes_on = |b: &mut Builder, carried: &[ValueId], _: &[ValueId]| {
        let count = integer(b, count);
        b.compare(Direction::Lt, carried[0], count)
    };
    let results = repeat(b, &[&[first], carried].concat(), fixed, goes_on, |b, carried, fixed| {
        let results = next(b, carried[0], &carried[1..], fixed);
        let one = integer(b, 1);
        let position = b.tile(TileOp::Add, &[carried[0], one]);
        [&[position], &results[..]].concat()
    });
    results[1..].to_vec()
}
