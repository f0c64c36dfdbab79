//! Products, decompositions, transforms, normalizations and collectives.

use std::ops::Range;

use super::context::{Check, sizes_agree};
use crate::Error;
use crate::ir::ops::{
    AllGather, AllToAll, CollectiveBroadcast, DotGeneral, Fft, ReduceScatter, TriangularSolve,
};
use crate::ir::{DYNAMIC, FftType};

/// `dot_general`.
pub(super) fn dot_general(check: &Check<'_>, op: &DotGeneral) -> Result<(), Error> {
    let (lhs, rhs) = (check.tensor(0)?, check.tensor(1)?);
    let numbers = &op.dot_dimension_numbers;
    let (lhs_batch, rhs_batch) = (&numbers.lhs_batching_dimensions, &numbers.rhs_batching_dimensions);
    let (lhs_contracted, rhs_contracted) =
        (&numbers.lhs_contracting_dimensions, &numbers.rhs_contracting_dimensions);
    let lhs_used: Vec<i64> = lhs_batch.iter().chain(lhs_contracted).copied().collect();
    let rhs_used: Vec<i64> = rhs_batch.iter().chain(rhs_contracted).copied().collect();
    check.unique_dimensions("dimensions of lhs", &lhs_used, lhs.rank())?;
    check.unique_dimensions("dimensions of rhs", &rhs_used, rhs.rank())?;
    for (what, of_lhs, of_rhs) in
        [("batching", lhs_batch, rhs_batch), ("contracting", lhs_contracted, rhs_contracted)]
    {
        check.length(&format!("{what} dimensions of rhs"), of_rhs.len(), of_lhs.len())?;
        for (&left, &right) in of_lhs.iter().zip(of_rhs) {
            let (left_size, right_size) = (lhs.dims()[left as usize], rhs.dims()[right as usize]);
            check.require(sizes_agree(left_size, right_size), || {
                format!("{what} dimensions {left} of {lhs} and {right} of {rhs}: expected the same size")
            })?;
        }
    }
    let free = |dims: &[i64], used: &[i64]| -> Vec<i64> {
        let free = dims.iter().enumerate().filter(|(index, _)| !used.contains(&(*index as i64)));
        free.map(|(_, &size)| size).collect()
    };
    let mut expected: Vec<i64> = lhs_batch.iter().map(|&dimension| lhs.dims()[dimension as usize]).collect();
    expected.extend(free(lhs.dims(), &lhs_used));
    expected.extend(free(rhs.dims(), &rhs_used));
    check.result_shape(0, &expected)
}

/// `dot`: the last dimension of the left with the first but one of the right.
pub(super) fn dot(check: &Check<'_>) -> Result<(), Error> {
    let (lhs, rhs) = (check.tensor(0)?, check.tensor(1)?);
    let fits = (1..=2).contains(&lhs.rank())
        && (1..=2).contains(&rhs.rank())
        && sizes_agree(lhs.dims()[lhs.rank() - 1], rhs.dims()[0]);
    check.require(fits, || {
        format!("expected vectors or matrices that can be multiplied, found {lhs} and {rhs}")
    })?;
    let expected: Vec<i64> = lhs.dims()[..lhs.rank() - 1].iter().chain(&rhs.dims()[1..]).copied().collect();
    check.result_shape(0, &expected)
}

/// `cholesky`: square matrices.
pub(super) fn cholesky(check: &Check<'_>) -> Result<(), Error> {
    square(check, 0)?;
    check.result_is_operand(0)
}

fn square(check: &Check<'_>, index: usize) -> Result<(), Error> {
    let matrix = check.tensor(index)?;
    let is_square = matches!(matrix.dims(), [.., rows, columns] if sizes_agree(*rows, *columns));
    check.require(is_square, || {
        format!("{}: expected square matrices, found {matrix}", check.operand_name(index))
    })
}

/// `triangular_solve`: square matrices and right-hand sides of their size.
pub(super) fn triangular_solve(check: &Check<'_>, op: &TriangularSolve) -> Result<(), Error> {
    square(check, 0)?;
    let (a, b) = (check.tensor(0)?, check.tensor(1)?);
    let same_rank = a.rank() == b.rank();
    let side = if op.left_side { a.rank().saturating_sub(2) } else { a.rank().saturating_sub(1) };
    let batch = a.rank().saturating_sub(2);
    let fits = same_rank
        && sizes_agree(a.dims()[side], b.dims()[side])
        && super::context::shapes_agree(&a.dims()[..batch], &b.dims()[..batch]);
    check
        .require(fits, || format!("operand 'b': expected right-hand sides of the size of {a}, found {b}"))?;
    check.result_is_operand(1)
}

/// `fft`: lengths of the last dimensions.
pub(super) fn fft(check: &Check<'_>, op: &Fft) -> Result<(), Error> {
    let operand = check.tensor(0)?;
    let count = op.fft_length.len();
    check.require((1..=3).contains(&count) && count <= operand.rank(), || {
        format!("fft_length: expected 1 to 3 lengths for dimensions of {operand}, found {count}")
    })?;
    let first = operand.rank() - count;
    let last = operand.rank() - 1;
    let mut expected = operand.dims().to_vec();
    for (index, &length) in op.fft_length.iter().enumerate() {
        let dimension = first + index;
        let halved = length / 2 + 1;
        let (from, to) = match op.fft_type {
            FftType::Rfft if dimension == last => (length, if length == 0 { 0 } else { halved }),
            FftType::Irfft if dimension == last => (if length == 0 { 0 } else { halved }, length),
            _ => (length, length),
        };
        check.require(length >= 0 && sizes_agree(operand.dims()[dimension], from), || {
            format!("dimension {dimension} of {operand}: expected size {from} for length {length}")
        })?;
        expected[dimension] = to;
    }
    check.result_shape(0, &expected)
}

/// `batch_norm_*`: the operands in `vectors` have an element for each feature.
pub(super) fn batch_norm(check: &Check<'_>, feature_index: i64, vectors: Range<usize>) -> Result<(), Error> {
    let operand = check.tensor(0)?;
    let feature = check.dimension("feature_index", feature_index, operand.rank())?;
    let features = [operand.dims()[feature]];
    for index in vectors {
        let vector = check.tensor(index)?;
        check.require(super::context::shapes_agree(vector.dims(), &features), || {
            format!(
                "{}: expected {} elements, one for each feature, found {vector}",
                check.operand_name(index),
                features[0]
            )
        })?;
        check.same_elements(&check.operand_name(index), operand, vector)?;
    }
    if check.op.operands.len() == 5 && check.op.results.len() == 3 {
        let gradient = check.tensor(4)?;
        check.require(super::context::shapes_agree(gradient.dims(), operand.dims()), || {
            format!("operand 'grad_output': expected the shape of {operand}, found {gradient}")
        })?;
    }
    check.result_is_operand(0)?;
    (1..check.op.results.len()).try_for_each(|index| check.result_shape(index, &features))
}

/// Results of collectives: one for each operand.
fn one_result_each(check: &Check<'_>) -> Result<(), Error> {
    check.length("results", check.op.results.len(), check.op.operands.len())
}

/// `all_gather`: one dimension grows.
pub(super) fn all_gather(check: &Check<'_>, op: &AllGather) -> Result<(), Error> {
    one_result_each(check)?;
    for index in 0..check.op.operands.len() {
        let (operand, result) = (check.tensor(index)?, check.result_tensor(index)?);
        let dimension = check.dimension("all_gather_dim", op.all_gather_dim, operand.rank())?;
        let mut expected = operand.dims().to_vec();
        let size = std::mem::replace(&mut expected[dimension], DYNAMIC);
        check.result_shape(index, &expected)?;
        let gathered = result.dims()[dimension];
        let is_multiple = size == DYNAMIC
            || gathered == DYNAMIC
            || (size == 0 && gathered == 0)
            || (size > 0 && gathered % size == 0);
        check.require(is_multiple, || {
            format!("result {index}: expected a multiple of {size} in dimension {dimension}, found {result}")
        })?;
        check.same_elements(&format!("result {index}"), operand, result)?;
    }
    Ok(())
}

/// `all_reduce`, `collective_reduce`: shapes stay, the region combines two elements.
pub(super) fn all_reduce(check: &Check<'_>) -> Result<(), Error> {
    for index in 0..check.op.results.len().min(check.op.operands.len()) {
        check.result_shape(index, check.tensor(index)?.dims())?;
    }
    let (arguments, returned) = check.region(0)?;
    check.length("region 'computation', arguments", arguments.len(), 2)?;
    check.length("region 'computation', returned values", returned.len(), 1)
}

/// `collective_broadcast`: one result for each operand; a dynamic root is a further operand.
pub(super) fn collective_broadcast(check: &Check<'_>, op: &CollectiveBroadcast) -> Result<(), Error> {
    let operands = check.op.operands.len().saturating_sub(usize::from(op.has_dynamic_root));
    check.length("results", check.op.results.len(), operands)?;
    (0..operands).try_for_each(|index| check.result_shape(index, check.tensor(index)?.dims()))
}

/// `all_to_all`: one dimension is cut, one grows.
pub(super) fn all_to_all(check: &Check<'_>, op: &AllToAll) -> Result<(), Error> {
    one_result_each(check)?;
    check.require(op.split_count > 0, || {
        format!("split_count: expected a positive number, found {}", op.split_count)
    })?;
    for index in 0..check.op.operands.len() {
        let operand = check.tensor(index)?;
        let split = check.dimension("split_dimension", op.split_dimension, operand.rank())?;
        let concat = check.dimension("concat_dimension", op.concat_dimension, operand.rank())?;
        let size = operand.dims()[split];
        check.require(size == DYNAMIC || size % op.split_count == 0, || {
            format!("dimension {split} of {operand}: expected a multiple of {}", op.split_count)
        })?;
        let mut expected = operand.dims().to_vec();
        if size != DYNAMIC {
            expected[split] = size / op.split_count;
        }
        if expected[concat] != DYNAMIC {
            expected[concat] = expected[concat]
                .checked_mul(op.split_count)
                .ok_or_else(|| check.error("the result's size does not fit"))?;
        }
        check.result_shape(index, &expected)?;
    }
    Ok(())
}

/// `reduce_scatter`: one dimension is cut, the region combines two elements.
pub(super) fn reduce_scatter(check: &Check<'_>, op: &ReduceScatter) -> Result<(), Error> {
    let (operand, result) = (check.tensor(0)?, check.result_tensor(0)?);
    let dimension = check.dimension("scatter_dimension", op.scatter_dimension, operand.rank())?;
    let mut expected = operand.dims().to_vec();
    let size = std::mem::replace(&mut expected[dimension], DYNAMIC);
    check.result_shape(0, &expected)?;
    let part = result.dims()[dimension];
    let divides =
        size == DYNAMIC || part == DYNAMIC || (part == 0 && size == 0) || (part > 0 && size % part == 0);
    check.require(divides, || {
        format!("result 0: expected a divisor of {size} in dimension {dimension}, found {result}")
    })?;
    let (arguments, returned) = check.region(0)?;
    check.length("region 'computation', arguments", arguments.len(), 2)?;
    check.length("region 'computation', returned values", returned.len(), 1)
}
