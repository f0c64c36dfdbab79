//! Operations that work element by element.

use super::context::{Check, elements_agree, shape_text, shapes_agree};
use crate::Error;
use crate::ir::{ElementType, TensorType, Trait};

/// What the traits of the op table say.
pub(super) fn traits(check: &Check<'_>) -> Result<(), Error> {
    let info = check.op.info();
    if info.has(Trait::SameType) {
        let first = check.tensor(0)?;
        for index in 1..check.op.operands.len() {
            let other = check.tensor(index)?;
            same_shape(check, || check.operand_name(index), first, other)?;
            check.same_elements(&check.operand_name(index), first, other)?;
        }
        let result = check.result_tensor(0)?;
        same_shape(check, || "result 0".to_owned(), first, result)?;
        check.same_elements("result 0", first, result)?;
    }
    Ok(())
}

fn same_shape(
    check: &Check<'_>,
    what: impl FnOnce() -> String,
    expected: &TensorType,
    found: &TensorType,
) -> Result<(), Error> {
    check.require(shapes_agree(expected.dims(), found.dims()), || {
        format!("{}: expected shape {}, found {found}", what(), shape_text(expected.dims()))
    })
}

/// All operands and results have one shape.
pub(super) fn same_shapes(check: &Check<'_>) -> Result<(), Error> {
    let first = check.tensor(0)?;
    for index in 1..check.op.operands.len() {
        same_shape(check, || check.operand_name(index), first, check.tensor(index)?)?;
    }
    same_shape(check, || "result 0".to_owned(), first, check.result_tensor(0)?)
}

fn result_elements(check: &Check<'_>, expected: ElementType) -> Result<(), Error> {
    let result = check.result_tensor(0)?;
    check.require(result.element_type() == expected, || {
        format!("result 0: expected elements of {expected}, found {result}")
    })
}

/// `abs`: complex numbers give their parts' type.
pub(super) fn abs(check: &Check<'_>) -> Result<(), Error> {
    same_shapes(check)?;
    let operand = check.tensor(0)?;
    match operand.element_type().complex_part() {
        Some(part) => result_elements(check, part),
        None => check.same_elements("result 0", operand, check.result_tensor(0)?),
    }
}

/// `real`, `imag`: complex numbers give their parts' type.
pub(super) fn part(check: &Check<'_>) -> Result<(), Error> {
    abs(check)
}

/// `compare`: two tensors of one type give booleans.
pub(super) fn compare(check: &Check<'_>) -> Result<(), Error> {
    same_shapes(check)?;
    check.same_elements("operand 'rhs'", check.tensor(0)?, check.tensor(1)?)?;
    result_elements(check, ElementType::I1)
}

/// `complex`: two tensors of floats give complex numbers.
pub(super) fn complex(check: &Check<'_>) -> Result<(), Error> {
    same_shapes(check)?;
    let operand = check.tensor(0)?;
    check.same_elements("operand 'rhs'", operand, check.tensor(1)?)?;
    let expected = match operand.element_type() {
        ElementType::F32 => ElementType::ComplexF32,
        ElementType::F64 => ElementType::ComplexF64,
        _ => {
            return Err(
                check.error(format!("operand 'lhs': expected elements of f32 or f64, found {operand}"))
            );
        }
    };
    result_elements(check, expected)
}

/// `is_finite`: floats give booleans.
pub(super) fn is_finite(check: &Check<'_>) -> Result<(), Error> {
    same_shapes(check)?;
    result_elements(check, ElementType::I1)
}

/// `select`: a predicate for each element or for all.
pub(super) fn select(check: &Check<'_>) -> Result<(), Error> {
    let (predicate, on_true, on_false) = (check.tensor(0)?, check.tensor(1)?, check.tensor(2)?);
    check.require(predicate.element_type() == ElementType::I1, || {
        format!("operand 'pred': expected elements of i1, found {predicate}")
    })?;
    if predicate.rank() != 0 {
        same_shape(check, || "operand 'pred'".to_owned(), on_true, predicate)?;
    }
    same_shape(check, || "operand 'on_false'".to_owned(), on_true, on_false)?;
    check.same_elements("operand 'on_false'", on_true, on_false)?;
    result_like(check, on_true)
}

/// `clamp`: bounds for each element or for all.
pub(super) fn clamp(check: &Check<'_>) -> Result<(), Error> {
    let operand = check.tensor(1)?;
    for index in [0, 2] {
        let bound = check.tensor(index)?;
        if bound.rank() != 0 {
            same_shape(check, || check.operand_name(index), operand, bound)?;
        }
        check.same_elements(&check.operand_name(index), operand, bound)?;
    }
    result_like(check, operand)
}

fn result_like(check: &Check<'_>, expected: &TensorType) -> Result<(), Error> {
    let result = check.result_tensor(0)?;
    same_shape(check, || "result 0".to_owned(), expected, result)?;
    check.same_elements("result 0", expected, result)
}

/// `bitcast_convert`: where widths differ, the last dimension of the narrower makes up for it.
pub(super) fn bitcast_convert(check: &Check<'_>) -> Result<(), Error> {
    let (operand, result) = (check.tensor(0)?, check.result_tensor(0)?);
    let (from, to) = (operand.storage_type().bits(), result.storage_type().bits());
    if operand.quantization().is_some() != result.quantization().is_some() && elements_agree(operand, result)
    {
        return same_shapes(check);
    }
    if from == to {
        return same_shapes(check);
    }
    let (narrow, wide, ratio) =
        if from < to { (operand, result, to / from) } else { (result, operand, from / to) };
    let fits = to % from == 0 || from % to == 0;
    let expected: Vec<i64> = wide.dims().iter().copied().chain([i64::from(ratio)]).collect();
    check.require(fits && shapes_agree(narrow.dims(), &expected), || {
        format!(
            "expected {ratio} of the narrower elements for each of the wider, found {operand} and {result}"
        )
    })
}
