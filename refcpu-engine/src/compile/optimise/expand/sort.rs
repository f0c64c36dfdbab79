//! Expands sorts.

use super::loops::{all_flat, apply, either, element, elements, for_each, integer, repeat, with_elements};
use crate::graph::{Builder, Constant, Graph, Shape, ValueId};
use refcpu_kernels::DType;
use refcpu_kernels::region::Direction;
use refcpu_kernels::tile::TileOp;

/// Expands a sort along a dimension to a stable merge sort. Each pass merges adjacent sorted runs into runs of twice the length.
pub(super) fn sort(b: &mut Builder, comparator: &Graph, operands: &[ValueId], dim: usize) -> Vec<ValueId> {
    let shape = b.shape(operands[0]).clone();
    let length = shape.dims[dim];
    if shape.is_empty() || length == 1 {
        return operands.to_vec();
    }
    // Transposes the arrays so that the elements of each row are contiguous.
    let permutation: Vec<usize> = (0..shape.rank()).filter(|d| *d != dim).chain([dim]).collect();
    let dims: Vec<usize> = permutation.iter().map(|d| shape.dims[*d]).collect();
    let rows: Vec<ValueId> = operands.iter().map(|x| b.transpose(*x, &permutation)).collect();
    let rows = all_flat(b, &rows);
    let run = integer(b, 1);
    let goes_on = |b: &mut Builder, carried: &[ValueId], _: &[ValueId]| {
        let length = integer(b, length);
        b.compare(Direction::Lt, carried[0], length)
    };
    let sorted = repeat(b, &[&[run], &rows[..]].concat(), &[], goes_on, |b, carried, _| {
        let merged = merge(b, comparator, carried[0], &carried[1..], length);
        let twice = b.tile(TileOp::Add, &[carried[0], carried[0]]);
        [&[twice], &merged[..]].concat()
    });
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(i, d)| inverse[*d] = i);
    sorted[1..]
        .iter()
        .map(|row| {
            let row = b.reshape(*row, &dims);
            b.transpose(row, &inverse)
        })
        .collect()
}

/// Adds one pass over rows of `length` elements, in which runs of `run` elements are sorted.
fn merge(b: &mut Builder, comparator: &Graph, run: ValueId, rows: &[ValueId], length: usize) -> Vec<ValueId> {
    let shape = b.shape(rows[0]).clone();
    let first = integer(b, 0);
    let nothing = |row: &ValueId| {
        let shape = b.shape(*row).clone();
        b.constant(Constant::zero(shape))
    };
    let merged: Vec<ValueId> = rows.iter().map(nothing).collect();
    // The indices of the next elements of the two runs, and the merged elements.
    let carried = [&[first, first], &merged[..]].concat();
    let fixed = [&[run], rows].concat();
    let results = for_each(b, shape.len(), &carried, &fixed, |b, at, carried, fixed| {
        let (run, rows) = (fixed[0], &fixed[1..]);
        let length = integer(b, length);
        let in_row = b.tile(TileOp::Remainder, &[at, length]);
        let row = b.tile(TileOp::Subtract, &[at, in_row]);
        let both_runs = b.tile(TileOp::Add, &[run, run]);
        let in_runs = b.tile(TileOp::Remainder, &[in_row, both_runs]);
        let start = b.tile(TileOp::Subtract, &[at, in_runs]);
        let row_end = b.tile(TileOp::Add, &[row, length]);
        let [middle, end] = [run, both_runs].map(|size| {
            let end = b.tile(TileOp::Add, &[start, size]);
            b.tile(TileOp::Minimum, &[end, row_end])
        });
        let zero = integer(b, 0);
        let begins = b.compare(Direction::Eq, in_runs, zero);
        let left = b.select(begins, start, carried[0]);
        let right = b.select(begins, middle, carried[1]);
        let has_left = b.compare(Direction::Lt, left, middle);
        let has_right = b.compare(Direction::Lt, right, end);

        let both = b.tile(TileOp::And, &[has_left, has_right]);
        let pairs = elements(b, rows, right).into_iter().zip(elements(b, rows, left));
        let pairs: Vec<ValueId> = pairs.flat_map(|(right, left)| [right, left]).collect();
        let comes_first = |b: &mut Builder, pairs: &[ValueId]| apply(b, comparator, pairs);
        let does_not =
            |b: &mut Builder, _: &[ValueId]| vec![b.constant(Constant::zero(Shape::scalar(DType::Pred)))];
        let comes_first = either(b, both, &pairs, comes_first, does_not)[0];
        // Of equal elements, the left one comes first.
        let no_left = b.tile(TileOp::Not, &[has_left]);
        let takes_right = b.tile(TileOp::Or, &[comes_first, no_left]);

        let from = b.select(takes_right, right, left);
        let values: Vec<ValueId> = rows.iter().map(|row| element(b, *row, from)).collect();
        let merged = with_elements(b, &carried[2..], at, &values);
        let [right_step, left_step] = {
            let takes_left = b.tile(TileOp::Not, &[takes_right]);
            [takes_right, takes_left].map(|taken| b.convert(taken, DType::S64))
        };
        let left = b.tile(TileOp::Add, &[left, left_step]);
        let right = b.tile(TileOp::Add, &[right, right_step]);
        [&[left, right], &merged[..]].concat()
    });
    results[2..].to_vec()
}
