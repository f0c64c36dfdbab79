//! Elementwise operations.

use super::context::Context;
use super::result::{ResultRule, Results};
use super::shape::{Shape, elements_compatible};
use crate::Constraint::{self, C};
use crate::Error;
use crate::ir::ops::ReducePrecision;
use crate::ir::{
    Attribute, ComparisonType, ElementKind, ElementType, Op, ResultAccuracy, ResultAccuracyMode, TensorType,
    Type,
};

/// Returns the results of elementwise operations; `None` for other operations.
pub(super) fn results(cx: &Context<'_>) -> Option<Results> {
    Some(match &cx.op.kind {
        Op::Abs(_) | Op::Imag(_) | Op::Real(_) => part(cx),
        Op::Add(_) => add(cx),
        Op::Clamp(_) => clamp(cx),
        Op::Compare(op) => compare(cx, op.compare_type),
        Op::Complex(_) => complex(cx),
        Op::Convert(_) | Op::UniformQuantize(_) => convert(cx),
        Op::IsFinite(_) => is_finite(cx),
        Op::Map(op) => map(cx, &op.dimensions),
        Op::ReducePrecision(op) => reduce_precision(cx, op),
        Op::Select(_) => select(cx),
        Op::UniformDequantize(_) => uniform_dequantize(cx),
        _ => return None,
    })
}

/// Returns the common shape of all operands.
fn common_shape(cx: &Context<'_>, constraint: Constraint) -> Result<Shape, Error> {
    let mut shape = Shape::of(cx.tensor(0)?);
    (1..cx.op.operands.len()).try_for_each(|index| cx.merge_shape(constraint, index, &mut shape))?;
    Ok(shape)
}

/// Infers the result of operations whose operands and result have one type.
pub(super) fn same_type(cx: &Context<'_>) -> Results {
    let first = cx.tensor(0)?;
    // Nearly all operations have operands of one type without bounds, which is then the type of the result.
    let first_type = cx.operand_type(0);
    let same = (1..cx.op.operands.len()).all(|index| cx.operand_type(index) == first_type);
    if same && first.bounds().is_empty() && first.encoding().is_none() {
        accuracy(cx)?;
        return Ok(vec![ResultRule::of(first.clone(), C(1))]);
    }
    let shape = common_shape(cx, C(1))?;
    (1..cx.op.operands.len()).try_for_each(|index| cx.same_elements(C(1), index, first))?;
    accuracy(cx)?;
    Ok(vec![ResultRule::of(shape.like(first), C(1))])
}

/// `add`: the operands may mix per-tensor and per-axis quantization.
fn add(cx: &Context<'_>) -> Results {
    let (lhs, rhs) = (cx.tensor(0)?, cx.tensor(1)?);
    if lhs.quantization().is_none() && rhs.quantization().is_none() {
        return same_type(cx);
    }
    let shape = common_shape(cx, C(1))?;
    let (Some(of_lhs), Some(of_rhs)) = (lhs.quantization(), rhs.quantization()) else {
        return Err(cx.error(C(2), format!("expected quantized operands, found {lhs} and {rhs}")));
    };
    cx.require(C(3), of_lhs.storage_type == of_rhs.storage_type, || {
        format!("expected equal storage types, found {lhs} and {rhs}")
    })?;
    cx.require(C(4), of_lhs.expressed_type == of_rhs.expressed_type, || {
        format!("expected equal expressed types, found {lhs} and {rhs}")
    })?;
    let like = if of_lhs.axis.is_some() { lhs } else { rhs };
    Ok(vec![ResultRule::of(shape.like(like), C(1)).with_elements(C(3))])
}

/// Checks the requested accuracy of a function.
fn accuracy(cx: &Context<'_>) -> Result<(), Error> {
    let accuracy: &ResultAccuracy = match &cx.op.kind {
        Op::Cbrt(op) => &op.result_accuracy,
        Op::Cosine(op) => &op.result_accuracy,
        Op::Exponential(op) => &op.result_accuracy,
        Op::ExponentialMinusOne(op) => &op.result_accuracy,
        Op::Log(op) => &op.result_accuracy,
        Op::LogPlusOne(op) => &op.result_accuracy,
        Op::Logistic(op) => &op.result_accuracy,
        Op::Rsqrt(op) => &op.result_accuracy,
        Op::Sine(op) => &op.result_accuracy,
        Op::Sqrt(op) => &op.result_accuracy,
        Op::Tan(op) => &op.result_accuracy,
        Op::Tanh(op) => &op.result_accuracy,
        _ => return Ok(()),
    };
    let shown = || Attribute::ResultAccuracy((*accuracy).into());
    let is_tolerance = |number: f64| (0.0..f64::INFINITY).contains(&number);
    let are_tolerances = is_tolerance(accuracy.atol) && is_tolerance(accuracy.rtol) && accuracy.ulps >= 0;
    cx.require(None, are_tolerances, || {
        format!("result_accuracy: expected finite, nonnegative tolerances, found {}", shown())
    })?;
    let zero = accuracy.atol == 0.0 && accuracy.rtol == 0.0 && accuracy.ulps == 0;
    cx.require(None, zero || accuracy.mode == ResultAccuracyMode::Tolerance, || {
        format!("result_accuracy: expected tolerances only in mode TOLERANCE, found {}", shown())
    })
}

/// `abs`, `real`, `imag`: the result for complex elements has the type of their parts.
fn part(cx: &Context<'_>) -> Results {
    let operand = cx.tensor(0)?;
    let shape = Shape::of(operand);
    let result = match operand.element_type().complex_part() {
        Some(part) => shape.tensor(part, None),
        None => shape.like(operand),
    };
    Ok(vec![ResultRule::of(result, C(1)).with_elements(C(2))])
}

/// `compare`: the operands have one type, and the result consists of booleans.
fn compare(cx: &Context<'_>, compare_type: ComparisonType) -> Results {
    let lhs = cx.tensor(0)?;
    cx.same_elements(C(1), 1, lhs)?;
    let shape = common_shape(cx, C(2))?;
    let kind = lhs.element_type().kind();
    let fits = match compare_type {
        ComparisonType::TotalOrder => matches!(kind, ElementKind::Float | ElementKind::Quantized),
        ComparisonType::Float => {
            matches!(kind, ElementKind::Float | ElementKind::Complex | ElementKind::Quantized)
        }
        // Existing programs compare floats as signed and signed integers as unsigned; the element type determines the
        // comparison.
        _ => true,
    };
    cx.require(C(3), fits, || {
        format!("compare_type: expected a comparison type for the elements of {lhs}, found {compare_type}")
    })?;
    Ok(vec![ResultRule::of(shape.tensor(ElementType::I1, None), C(2)).with_elements(Constraint::O(1))])
}

/// `complex`: the operands are floats, and the result is complex.
fn complex(cx: &Context<'_>) -> Results {
    let lhs = cx.tensor(0)?;
    let shape = common_shape(cx, C(1))?;
    cx.same_elements(C(1), 1, lhs)?;
    let elements = match lhs.element_type() {
        ElementType::F32 => ElementType::ComplexF32,
        ElementType::F64 => ElementType::ComplexF64,
        _ => {
            return Err(
                cx.error(Constraint::I(1), format!("operand 'lhs': expected f32 or f64, found {lhs}"))
            );
        }
    };
    Ok(vec![ResultRule::of(shape.tensor(elements, None), C(2)).with_elements(C(3))])
}

/// `convert`, `uniform_quantize`: the program chooses the element type of the result.
fn convert(cx: &Context<'_>) -> Results {
    Ok(vec![ResultRule::shape_of(Shape::of(cx.tensor(0)?), C(1))])
}

/// `uniform_dequantize`: the result has the expressed type of the operand.
fn uniform_dequantize(cx: &Context<'_>) -> Results {
    let operand = cx.tensor(0)?;
    let Some(quantization) = operand.quantization() else {
        return Err(cx.error(Constraint::I(1), format!("expected quantized elements, found {operand}")));
    };
    let result = Shape::of(operand).tensor(quantization.expressed_type, None);
    Ok(vec![ResultRule::of(result, C(1)).with_elements(C(2))])
}

/// `is_finite`: the operand consists of floats, the result of booleans.
fn is_finite(cx: &Context<'_>) -> Results {
    let result = Shape::of(cx.tensor(0)?).tensor(ElementType::I1, None);
    Ok(vec![ResultRule::of(result, C(1)).with_elements(Constraint::O(1))])
}

/// `reduce_precision`.
fn reduce_precision(cx: &Context<'_>, op: &ReducePrecision) -> Results {
    cx.require(C(2), op.exponent_bits >= 1, || {
        format!("exponent_bits: expected at least 1, found {}", op.exponent_bits)
    })?;
    cx.require(C(3), op.mantissa_bits >= 0, || {
        format!("mantissa_bits: expected a nonnegative number, found {}", op.mantissa_bits)
    })?;
    same_type(cx)
}

/// `select`: the predicate is a scalar, or has an element for each of the operands'.
fn select(cx: &Context<'_>) -> Results {
    let (pred, on_true) = (cx.tensor(0)?, cx.tensor(1)?);
    if pred.rank() != 0 {
        cx.same_shape(C(1), 0, on_true.dims())?;
    }
    let mut shape = Shape::of(on_true);
    cx.same_elements(C(2), 2, on_true)?;
    cx.merge_shape(C(2), 2, &mut shape)?;
    Ok(vec![ResultRule::of(shape.like(on_true), C(2))])
}

/// `clamp`: the bounds are scalars, or have an element for each of the operand's.
fn clamp(cx: &Context<'_>) -> Results {
    let operand = cx.tensor(1)?;
    for (index, constraint) in [(0, C(1)), (2, C(2))] {
        if cx.tensor(index)?.rank() != 0 {
            cx.same_shape(constraint, index, operand.dims())?;
        }
        cx.same_elements(C(3), index, operand)?;
    }
    Ok(vec![ResultRule::of(operand.clone(), C(4))])
}

/// `map`: the region computes an element of the result from an element of each input.
fn map(cx: &Context<'_>, dimensions: &[i64]) -> Results {
    cx.require(C(2), !cx.op.operands.is_empty(), || "expected at least one input".to_owned())?;
    let shape = common_shape(cx, C(1))?;
    let rank = shape.dims().len();
    cx.require(C(3), dimensions.iter().copied().eq(0..rank as i64), || {
        format!("dimensions: expected all dimensions below {rank} in ascending order, found {dimensions:?}")
    })?;
    let (arguments, returned) = cx.region(0)?;
    cx.length(C(4), "region 'computation', arguments", arguments.len(), cx.op.operands.len())?;
    for (index, found) in arguments.into_iter().enumerate() {
        let expected = super::shape::scalar_of(cx.tensor(index)?);
        let fits = matches!((&expected, found), (Type::Tensor(a), Type::Tensor(b)) if b.rank() == 0 && elements_compatible(a, b));
        cx.require(C(4), fits, || {
            format!("region 'computation', argument {index}: expected {expected}, found {found}")
        })?;
    }
    match returned[..] {
        [Type::Tensor(element)] if element.rank() == 0 => {
            Ok(vec![ResultRule::of(shape.like(element), C(1)).with_elements(C(4))])
        }
        _ => Err(cx.error(C(4), "region 'computation': expected a single scalar as returned value")),
    }
}

/// `uniform_quantize`: the expressed type does not change.
pub(crate) fn uniform_quantize(cx: &Context<'_>, result: &TensorType) -> Result<(), Error> {
    let operand = cx.tensor(0)?;
    let expressed =
        operand.quantization().map_or(operand.element_type(), |quantization| quantization.expressed_type);
    let found = result.quantization().map(|quantization| quantization.expressed_type);
    cx.require(C(2), found == Some(expressed), || {
        format!("result 0: expected elements with expressed type {expressed}, found {result}")
    })
}
