//! Rules for `gather` and `scatter`: loops over slices.

use super::movement::{concatenate, index_type};
use crate::Error;
use crate::build::Builder;
use crate::ir::indexing::slice_sizes;
use crate::ir::ops::{DynamicSlice, DynamicUpdateSlice, Gather, While};
use crate::ir::{
    ComparisonDirection as Cmp, ElementKind, ElementType, Op, OpId, Operation, TensorType, Type, ValueId,
};
use crate::passes::rewrite::{Rewriter, definite, mismatch};

/// The maximum number of slices of a `gather` with known indices that is decomposed without a loop.
const MAX_SLICES: i64 = 64;

/// The indices of a `gather` or `scatter`, as one row of starts for each slice.
struct Starts {
    /// A matrix of indices: a row for each slice, and a column for each dimension of `dimensions`.
    rows: ValueId,
    /// The number of slices.
    count: i64,
    /// The dimensions that the columns are starts of.
    dimensions: Vec<i64>,
    /// The sizes of the dimensions over which slices are numbered.
    batch: Vec<i64>,
}

/// Returns the rows of starts for indices whose vectors are in dimension `vector_dim`. Batching dimensions of the indices, which
/// are paired with dimensions of the operand, become columns.
fn starts(
    b: &mut Builder,
    indices: ValueId,
    vector_dim: i64,
    map: &[i64],
    batching: impl Iterator<Item = (i64, i64)>,
) -> Starts {
    let is_narrow = b.element(indices).bits() < 32;
    let indices = if is_narrow { b.convert(indices, ElementType::I32) } else { indices };
    let rank = b.tensor(indices).rank() as i64;
    let others: Vec<i64> = (0..rank).filter(|&dimension| dimension != vector_dim).collect();
    let dims = b.dims(indices);
    let batch: Vec<i64> = others.iter().map(|&dimension| dims[dimension as usize]).collect();
    let last = (vector_dim < rank).then_some(vector_dim);
    let permutation: Vec<i64> = others.iter().copied().chain(last).collect();
    let moved = b.transpose(indices, &permutation);
    let count = batch.iter().product();
    let mut columns = vec![b.reshape(moved, &[count, map.len() as i64])];
    let mut dimensions = map.to_vec();
    for (of_operand, of_indices) in batching {
        let Some(at) = others.iter().position(|&dimension| dimension == of_indices) else { continue };
        let element = b.element(indices);
        let numbers = b.iota(element, &batch, at as i64);
        columns.push(b.reshape(numbers, &[count, 1]));
        dimensions.push(of_operand);
    }
    Starts { rows: concatenate(b, &columns, 1), count, dimensions, batch }
}

/// Returns the start of a slice in each dimension of an operand, from a row of starts.
fn row_starts(b: &mut Builder, row: ValueId, dimensions: &[i64], rank: usize) -> Vec<ValueId> {
    let scalar = b.tensor(row).with_dims([]);
    let mut starts = vec![b.zeros(scalar); rank];
    for (column, &dimension) in dimensions.iter().enumerate() {
        let start = b.slice_in_dim(row, 1, column as i64, column as i64 + 1);
        starts[dimension as usize] = b.reshape(start, &[]);
    }
    starts
}

/// Returns row `index` of a tensor, with a first dimension of size 1.
fn row(b: &mut Builder, x: ValueId, index: ValueId) -> ValueId {
    let mut sizes = b.dims(x);
    sizes[0] = 1;
    let zero = b.number(0.0, index);
    let operands: Vec<ValueId> =
        [x, index].into_iter().chain(std::iter::repeat_n(zero, sizes.len() - 1)).collect();
    b.op(DynamicSlice { slice_sizes: sizes.into() }, &operands)
}

/// A loop whose first value is a counter, while its step is being built.
struct Loop {
    op: OpId,
    outer: crate::ir::BlockId,
    counter: ValueId,
    /// The other values.
    state: Vec<ValueId>,
}

impl Loop {
    /// Begins a loop of `count` steps.
    fn begin(b: &mut Builder, count: i64, initial: &[ValueId]) -> Loop {
        let counter = TensorType::new(index_type(&[count]), []);
        let mut state = vec![b.integer(0, counter.clone())];
        state.extend(initial);
        let types: Vec<Type> = state.iter().map(|&value| b.ty(value).clone()).collect();
        let op = b.add_op(While {}, &state, types.clone());
        b.region(op, types.clone(), |b, state| {
            let limit = b.integer(count, counter);
            vec![b.compare(Cmp::Lt, state[0], limit)]
        });
        let outer = b.begin_region(op, types);
        let mut state = b.arguments();
        let counter = state.remove(0);
        Loop { op, outer, counter, state }
    }

    /// Ends the step, and returns the results of the loop.
    fn end(self, b: &mut Builder, state: &[ValueId]) -> Vec<ValueId> {
        let one = b.number(1.0, self.counter);
        let next = b.add(self.counter, one);
        b.end_region(self.outer, &[&[next], state].concat());
        b.all_results(self.op).split_off(1)
    }
}

/// Decomposes `gather`: to slices if there are few and their indices are known, otherwise to a loop of `dynamic_slice`.
pub(super) fn gather(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::Gather(gather) = &op.kind else { return Err(mismatch(op)) };
    let ([operand, indices], result) = (r.operands(op)?, r.result(op)?);
    if result.num_elements() == Some(0) {
        return Ok(r.b.zeros(result));
    }
    let numbers = &gather.dimension_numbers;
    let batching = numbers.operand_batching_dims.iter().copied();
    let batching = batching.zip(numbers.start_indices_batching_dims.iter().copied());
    let starts = starts(&mut r.b, indices, numbers.index_vector_dim, &numbers.start_index_map, batching);
    let is_removed = |dimension: i64| {
        numbers.collapsed_slice_dims.contains(&dimension)
            || numbers.operand_batching_dims.contains(&dimension)
    };
    let sizes = &gather.slice_sizes;
    let kept = (0..sizes.len() as i64).filter(|&dimension| !is_removed(dimension));
    let window: Vec<i64> = kept.map(|dimension| sizes[dimension as usize]).collect();
    let slices = match r.known(starts.rows).filter(|_| starts.count <= MAX_SLICES) {
        Some(known) => known_slices(&mut r.b, gather, operand, &starts, &window, &known),
        None => loop_of_slices(&mut r.b, gather, operand, &starts, &window),
    };
    let b = &mut r.b;
    let slices = b.reshape(slices, &[&*starts.batch, &*window].concat());
    let offsets = &numbers.offset_dims;
    let (mut batch_at, mut offset_at) = (0, starts.batch.len() as i64);
    let mut take = |position: i64| {
        let next = if offsets.contains(&position) { &mut offset_at } else { &mut batch_at };
        *next += 1;
        *next - 1
    };
    let permutation: Vec<i64> = (0..result.rank() as i64).map(&mut take).collect();
    Ok(b.transpose(slices, &permutation))
}

/// Joins the slices with known starts.
fn known_slices(
    b: &mut Builder,
    gather: &Gather,
    operand: ValueId,
    starts: &Starts,
    window: &[i64],
    known: &[i64],
) -> ValueId {
    let dims = b.dims(operand);
    let single = [&[1], window].concat();
    let rows = known.chunks_exact(starts.dimensions.len().max(1));
    let rows: Vec<&[i64]> = match starts.dimensions.len() {
        0 => vec![&[][..]; starts.count as usize],
        _ => rows.collect(),
    };
    let slices = rows.into_iter().map(|row| {
        let mut first = vec![0; dims.len()];
        for (&dimension, &start) in starts.dimensions.iter().zip(row) {
            let at = dimension as usize;
            first[at] = start.clamp(0, dims[at] - gather.slice_sizes[at]);
        }
        let limit: Vec<i64> =
            first.iter().zip(&gather.slice_sizes).map(|(first, size)| first + size).collect();
        let slice = b.slice(operand, &first, &limit);
        b.reshape(slice, &single)
    });
    let slices: Vec<ValueId> = slices.collect();
    concatenate(b, &slices, 0)
}

/// Collects the slices in a loop.
fn loop_of_slices(
    b: &mut Builder,
    gather: &Gather,
    operand: ValueId,
    starts: &Starts,
    window: &[i64],
) -> ValueId {
    let single = [&[1], window].concat();
    let ty = b.tensor(operand).with_dims([&[starts.count], window].concat());
    let collected = b.zeros(ty);
    let step = Loop::begin(b, starts.count, &[operand, starts.rows, collected]);
    let [operand, rows, collected] = step.state[..] else { unreachable!("the loop has three values") };
    let row = row(b, rows, step.counter);
    let rank = b.tensor(operand).rank();
    let mut operands = vec![operand];
    operands.extend(row_starts(b, row, &starts.dimensions, rank));
    let slice = b.op(DynamicSlice { slice_sizes: gather.slice_sizes.clone() }, &operands);
    let slice = b.reshape(slice, &single);
    let zero = b.number(0.0, step.counter);
    let mut operands = vec![collected, slice, step.counter];
    operands.extend(std::iter::repeat_n(zero, window.len()));
    let next = b.op(DynamicUpdateSlice {}, &operands);
    step.end(b, &[operand, rows, next])[2]
}

/// Decomposes `scatter`: to a loop that updates a slice in each step. Slices that are not within bounds stay as they are.
pub(super) fn scatter<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let Op::Scatter(scatter) = &op.kind else { return Err(mismatch(op)) };
    let operands = r.tensors(op)?;
    for &operand in &operands {
        definite(&r.b.tensor(operand))?;
    }
    let count = op.results.len();
    let [inputs, [indices], updates] = [&operands[..count], &operands[count..=count], &operands[count + 1..]]
    else {
        return Err(mismatch(op));
    };
    let numbers = &scatter.scatter_dimension_numbers;
    let batching = numbers.input_batching_dims.iter().copied();
    let batching = batching.zip(numbers.scatter_indices_batching_dims.iter().copied());
    let map = &numbers.scatter_dims_to_operand_dims;
    let starts = starts(&mut r.b, *indices, numbers.index_vector_dim, map, batching);
    let dims = r.b.dims(inputs[0]);
    let update_dims = r.b.dims(updates[0]);
    let offsets = &numbers.update_window_dims;
    let sizes = slice_sizes(scatter, &update_dims);
    let too_large = sizes.iter().zip(&dims).any(|(size, dim)| size > dim);
    if starts.count == 0 || sizes.contains(&0) || too_large {
        return Ok(inputs.to_vec());
    }
    let rows: Vec<ValueId> = updates
        .iter()
        .map(|&update| {
            let batch = (0..update_dims.len() as i64).filter(|at| !offsets.contains(at));
            let permutation: Vec<i64> = batch.chain(offsets.iter().copied()).collect();
            let moved = r.b.transpose(update, &permutation);
            r.b.reshape(moved, &[&[starts.count], &*sizes].concat())
        })
        .collect();
    let initial = [&[starts.rows], &*rows, inputs].concat();
    let step = Loop::begin(&mut r.b, starts.count, &initial);
    let next = scattered(r, op, &step, &starts.dimensions, [&sizes, &dims])?;
    let kept = step.state[..=count].to_vec();
    Ok(step.end(&mut r.b, &[kept, next].concat()).split_off(count + 1))
}

/// Returns the inputs of a `scatter` after one step of its loop.
fn scattered<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    step: &Loop,
    dimensions: &[i64],
    [sizes, dims]: [&[i64]; 2],
) -> Result<Vec<ValueId>, Error> {
    let (rows, rest) = (step.state[0], &step.state[1..]);
    let (updates, inputs) = rest.split_at(rest.len() / 2);
    let b = &mut r.b;
    let row_of_starts = row(b, rows, step.counter);
    let starts = row_starts(b, row_of_starts, dimensions, sizes.len());
    let mut is_inside = b.number_of_type(1.0, TensorType::new(ElementType::I1, []));
    for &dimension in dimensions {
        let at = dimension as usize;
        let start = starts[at];
        let ty = b.tensor(start);
        let last = b.integer(dims[at] - sizes[at], ty.clone());
        let is_before = b.compare(Cmp::Le, start, last);
        is_inside = b.and(is_inside, is_before);
        if ty.element_type().kind() == ElementKind::SignedInteger {
            let is_after = b.compare_with(Cmp::Ge, start, 0.0);
            is_inside = b.and(is_inside, is_after);
        }
    }
    let mut current = Vec::new();
    for &input in inputs {
        let operands = [&[input], &*starts].concat();
        current.push(b.op(DynamicSlice { slice_sizes: sizes.into() }, &operands));
    }
    let mut given = Vec::new();
    for &update in updates {
        let update = row(b, update, step.counter);
        given.push(b.reshape(update, sizes));
    }
    let combined = r.apply_region(op, 0, &[&*current, &*given].concat())?;
    let b = &mut r.b;
    let is_inside = b.broadcast(is_inside, &[], sizes);
    let next = inputs.iter().zip(current.iter().zip(&combined)).map(|(&input, (&old, &new))| {
        let slice = b.select(is_inside, new, old);
        let operands = [&[input, slice], &*starts].concat();
        b.op(DynamicUpdateSlice {}, &operands)
    });
    Ok(next.collect())
}
