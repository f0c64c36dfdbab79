//! Operations that make, move and cut tensors.

use super::context::{Check, elements_agree, shape_text, shapes_agree, sizes_agree};
use crate::Error;
use crate::ir::ops::{Pad, Slice};
use crate::ir::{DYNAMIC, ElementType, Literal};

/// `constant`: the result has the constant's type.
pub(super) fn constant(check: &Check<'_>, value: &Literal) -> Result<(), Error> {
    let result = check.result_tensor(0)?;
    let ty = value.ty();
    let fits = ty.dims() == result.dims() && ty.storage_type() == result.storage_type();
    check.require(fits, || format!("result 0: expected {ty}, the type of the constant, found {result}"))
}

/// `iota`, `dynamic_iota`: the dimension is one of the result's.
pub(super) fn iota(check: &Check<'_>, dimension: i64) -> Result<(), Error> {
    let result = check.result_tensor(0)?;
    check.dimension("iota_dimension", dimension, result.rank()).map(|_| ())
}

/// `broadcast`: new dimensions in front of the operand's.
pub(super) fn broadcast(check: &Check<'_>, sizes: &[i64]) -> Result<(), Error> {
    let operand = check.tensor(0)?;
    let expected: Vec<i64> = sizes.iter().chain(operand.dims()).copied().collect();
    check.result_shape(0, &expected)?;
    check.same_elements("result 0", operand, check.result_tensor(0)?)
}

/// `broadcast_in_dim`: dimensions of the operand are kept, or repeated where they have size 1.
pub(super) fn broadcast_in_dim(check: &Check<'_>, dimensions: &[i64]) -> Result<(), Error> {
    let (operand, result) = (check.tensor(0)?, check.result_tensor(0)?);
    check.length("broadcast_dimensions", dimensions.len(), operand.rank())?;
    check.unique_dimensions("broadcast_dimensions", dimensions, result.rank())?;
    for (index, (&size, &dimension)) in operand.dims().iter().zip(dimensions).enumerate() {
        let target = result.dims()[dimension as usize];
        check.require(size == 1 || sizes_agree(size, target), || {
            format!("dimension {index} of operand {operand}: expected size 1 or that of dimension {dimension} of {result}")
        })?;
    }
    check.same_elements("result 0", operand, result)
}

/// `dynamic_broadcast_in_dim`: the same with the result's shape as an operand.
pub(super) fn dynamic_broadcast_in_dim(check: &Check<'_>, dimensions: &[i64]) -> Result<(), Error> {
    shape_operand(check, 1)?;
    broadcast_in_dim(check, dimensions)
}

/// An operand that is the result's shape: one integer for each dimension.
pub(super) fn shape_operand(check: &Check<'_>, index: usize) -> Result<(), Error> {
    let result = check.result_tensor(0)?;
    one_for_each(check, index, result.rank())
}

/// An operand of one integer for each of `count`.
fn one_for_each(check: &Check<'_>, index: usize, count: usize) -> Result<(), Error> {
    let operand = check.tensor(index)?;
    let is_integer = operand.element_type().is_integer();
    check.require(is_integer && shapes_agree(operand.dims(), &[count as i64]), || {
        format!("{}: expected {count} integers, found {operand}", check.operand_name(index))
    })
}

/// `reshape`: as many elements as before.
pub(super) fn reshape(check: &Check<'_>) -> Result<(), Error> {
    let (operand, result) = (check.tensor(0)?, check.result_tensor(0)?);
    if let (Some(before), Some(after)) = (operand.num_elements(), result.num_elements()) {
        check.require(before == after, || {
            format!("expected {before} elements as in {operand}, found {after} in {result}")
        })?;
    }
    check.same_elements("result 0", operand, result)
}

/// `transpose`: each dimension once.
pub(super) fn transpose(check: &Check<'_>, permutation: &[i64]) -> Result<(), Error> {
    let operand = check.tensor(0)?;
    check.length("permutation", permutation.len(), operand.rank())?;
    check.unique_dimensions("permutation", permutation, operand.rank())?;
    let expected: Vec<i64> =
        permutation.iter().map(|&dimension| operand.dims()[dimension as usize]).collect();
    check.result_shape(0, &expected)?;
    check.same_elements("result 0", operand, check.result_tensor(0)?)
}

/// `reverse`: dimensions of the operand.
pub(super) fn reverse(check: &Check<'_>, dimensions: &[i64]) -> Result<(), Error> {
    check.unique_dimensions("dimensions", dimensions, check.tensor(0)?.rank())?;
    check.result_is_operand(0)
}

/// `slice`: bounds inside of the operand.
pub(super) fn slice(check: &Check<'_>, op: &Slice) -> Result<(), Error> {
    let operand = check.tensor(0)?;
    for (what, list) in
        [("start_indices", &op.start_indices), ("limit_indices", &op.limit_indices), ("strides", &op.strides)]
    {
        check.length(what, list.len(), operand.rank())?;
    }
    let mut expected = Vec::with_capacity(operand.rank());
    for (index, &size) in operand.dims().iter().enumerate() {
        let (start, limit, stride) = (op.start_indices[index], op.limit_indices[index], op.strides[index]);
        let fits = 0 <= start && start <= limit && (size == DYNAMIC || limit <= size) && stride > 0;
        check.require(fits, || {
            format!(
                "dimension {index} of {operand}: expected 0 <= start <= limit <= size and a positive stride, \
                     found start {start}, limit {limit}, stride {stride}"
            )
        })?;
        // Ordered bounds are not negative, so this cannot overflow.
        expected.push((limit - start) / stride + i64::from((limit - start) % stride != 0));
    }
    check.result_shape(0, &expected)?;
    check.same_elements("result 0", operand, check.result_tensor(0)?)
}

/// `real_dynamic_slice`: a start, limit and stride for each dimension.
pub(super) fn real_dynamic_slice(check: &Check<'_>) -> Result<(), Error> {
    let rank = check.tensor(0)?.rank();
    (1..4).try_for_each(|index| one_for_each(check, index, rank))?;
    check.require(check.result_tensor(0)?.rank() == rank, || {
        format!("result 0: expected {rank} dimensions")
    })?;
    check.same_elements("result 0", check.tensor(0)?, check.result_tensor(0)?)
}

/// `pad`: amounts for each dimension, which may be negative at the edges.
pub(super) fn pad(check: &Check<'_>, op: &Pad) -> Result<(), Error> {
    let (operand, value) = (check.tensor(0)?, check.scalar(1)?);
    check.same_elements("operand 'padding_value'", operand, value)?;
    for (what, list) in [
        ("edge_padding_low", &op.edge_padding_low),
        ("edge_padding_high", &op.edge_padding_high),
        ("interior_padding", &op.interior_padding),
    ] {
        check.length(what, list.len(), operand.rank())?;
    }
    let mut expected = Vec::with_capacity(operand.rank());
    for (index, &size) in operand.dims().iter().enumerate() {
        let (low, high, interior) =
            (op.edge_padding_low[index], op.edge_padding_high[index], op.interior_padding[index]);
        check.require(interior >= 0, || {
            format!("interior_padding: expected no negative amount, found {interior}")
        })?;
        if size == DYNAMIC {
            expected.push(DYNAMIC);
            continue;
        }
        let padded = i128::from(size)
            + i128::from((size - 1).max(0)) * i128::from(interior)
            + i128::from(low)
            + i128::from(high);
        let padded = i64::try_from(padded).ok().filter(|&padded| padded >= 0);
        expected.push(padded.ok_or_else(|| {
            check.error(format!(
                "dimension {index} of {operand}: padding {low}, {high}, {interior} leaves no valid size"
            ))
        })?);
    }
    check.result_shape(0, &expected)?;
    check.same_elements("result 0", operand, check.result_tensor(0)?)
}

/// `dynamic_pad`: amounts as operands.
pub(super) fn dynamic_pad(check: &Check<'_>) -> Result<(), Error> {
    let operand = check.tensor(0)?;
    check.same_elements("operand 'padding_value'", operand, check.scalar(1)?)?;
    (2..5).try_for_each(|index| one_for_each(check, index, operand.rank()))?;
    let result = check.result_tensor(0)?;
    check.require(result.rank() == operand.rank(), || {
        format!("result 0: expected {} dimensions, found {result}", operand.rank())
    })?;
    check.same_elements("result 0", operand, result)
}

/// `concatenate`: equal sizes but for one dimension.
pub(super) fn concatenate(check: &Check<'_>, dimension: i64) -> Result<(), Error> {
    check.require(!check.op.operands.is_empty(), || "expected at least one operand".to_owned())?;
    let first = check.tensor(0)?;
    let dimension = check.dimension("dimension", dimension, first.rank())?;
    let mut expected = first.dims().to_vec();
    for index in 1..check.op.operands.len() {
        let operand = check.tensor(index)?;
        let same_rank = operand.rank() == expected.len();
        let agree =
            |place: usize| place == dimension || sizes_agree(operand.dims()[place], first.dims()[place]);
        check.require(same_rank && (0..expected.len()).all(agree), || {
            format!(
                "operand {index}: expected shape {} but for dimension {dimension}, found {operand}",
                shape_text(first.dims())
            )
        })?;
        check.same_elements(&format!("operand {index}"), first, operand)?;
        expected[dimension] = match (expected[dimension], operand.dims()[dimension]) {
            (DYNAMIC, _) | (_, DYNAMIC) => DYNAMIC,
            (sum, size) => {
                sum.checked_add(size).ok_or_else(|| check.error("the result's size does not fit"))?
            }
        };
        // A size that is known in one operand is known for all.
        for place in
            (0..expected.len()).filter(|&place| place != dimension && operand.dims()[place] != DYNAMIC)
        {
            expected[place] = operand.dims()[place];
        }
    }
    check.result_shape(0, &expected)?;
    check.same_elements("result 0", first, check.result_tensor(0)?)
}

/// `get_dimension_size`: a dimension of the operand; an `i32`.
pub(super) fn get_dimension_size(check: &Check<'_>, dimension: i64) -> Result<(), Error> {
    check.dimension("dimension", dimension, check.tensor(0)?.rank())?;
    let result = check.result_tensor(0)?;
    check.require(result.rank() == 0 && result.element_type() == ElementType::I32, || {
        format!("result 0: expected tensor<i32>, found {result}")
    })
}

/// `set_dimension_size`: a dimension of the operand, whose size becomes dynamic.
pub(super) fn set_dimension_size(check: &Check<'_>, dimension: i64) -> Result<(), Error> {
    let operand = check.tensor(0)?;
    let dimension = check.dimension("dimension", dimension, operand.rank())?;
    let size = check.scalar(1)?;
    check.require(size.element_type() == ElementType::I32, || {
        format!("operand 'size': expected tensor<i32>, found {size}")
    })?;
    let mut expected = operand.dims().to_vec();
    expected[dimension] = DYNAMIC;
    check.result_shape(0, &expected)?;
    check.same_elements("result 0", operand, check.result_tensor(0)?)
}

/// `replica_id`, `partition_id`: a `ui32`.
pub(super) fn process_id(check: &Check<'_>) -> Result<(), Error> {
    let result = check.result_tensor(0)?;
    check.require(result.rank() == 0 && result.element_type() == ElementType::Ui32, || {
        format!("result 0: expected tensor<ui32>, found {result}")
    })
}

/// `rng`: scalars as parameters, the result's shape as an operand.
pub(super) fn rng(check: &Check<'_>) -> Result<(), Error> {
    let (a, b, result) = (check.scalar(0)?, check.scalar(1)?, check.result_tensor(0)?);
    check.require(elements_agree(a, b) && elements_agree(a, result), || {
        format!("expected parameters of the result's elements, found {a} and {b} for {result}")
    })?;
    shape_operand(check, 2)
}
