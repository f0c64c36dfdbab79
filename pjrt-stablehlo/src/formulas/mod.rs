//! Formulas that express functions and operations by others.
//!
//! Each formula adds operations with a [`Builder`] and returns their result. Passes use the formulas for operations
//! that a device lacks, and readers use them for operations that StableHLO lacks.

pub(crate) mod arithmetic;
pub(crate) mod bessel;
pub(crate) mod bits;
pub(crate) mod complex;
pub(crate) mod complex_elementary;
pub(crate) mod elementwise;
pub(crate) mod erf;
pub(crate) mod fourier;
pub(crate) mod gamma;
pub(crate) mod hyperbolic;
pub(crate) mod linear_algebra;
pub(crate) mod power;
pub(crate) mod ragged_all_to_all;
pub(crate) mod ragged_dot;
pub(crate) mod scan;
mod series;
mod tables;
pub(crate) mod top_k;
pub(crate) mod trigonometric;
pub(crate) mod zeta;

use crate::build::Builder;
use crate::ir::{ComparisonDirection, ElementType, ValueId};

/// A function of one number.
pub(crate) type Unary = fn(&mut Builder, ValueId) -> ValueId;

/// A function of two numbers.
pub(crate) type Binary = fn(&mut Builder, ValueId, ValueId) -> ValueId;

/// Applies a function of floats, in `f32` if the operand is narrower.
pub(crate) fn at_least_f32(b: &mut Builder, function: Unary, x: ValueId) -> ValueId {
    let element = b.element(x);
    let wide = widened(b, x);
    let result = function(b, wide);
    b.convert(result, element)
}

/// Applies a function of two floats of one type, in `f32` if the operands are narrower.
pub(crate) fn both_at_least_f32(b: &mut Builder, function: Binary, x: ValueId, y: ValueId) -> ValueId {
    let element = b.element(x);
    let (x, y) = (widened(b, x), widened(b, y));
    let result = function(b, x, y);
    b.convert(result, element)
}

/// Applies a function of numbers, in `f32` if their type has neither signs nor a zero.
pub(crate) fn with_sign(
    b: &mut Builder,
    operands: &[ValueId],
    function: impl FnOnce(&mut Builder, &[ValueId]) -> ValueId,
) -> ValueId {
    let unsigned = ElementType::F8E8M0FNU;
    if operands.iter().all(|&operand| b.element(operand) != unsigned) {
        return function(b, operands);
    }
    let wide: Vec<ValueId> = operands.iter().map(|&operand| widened(b, operand)).collect();
    let result = function(b, &wide);
    if b.element(result) == ElementType::F32 { b.convert(result, unsigned) } else { result }
}

fn widened(b: &mut Builder, x: ValueId) -> ValueId {
    if b.element(x) == ElementType::F64 { x } else { b.convert(x, ElementType::F32) }
}

/// Returns the exact difference of `x` and the nearest integer.
fn distance_to_whole(b: &mut Builder, x: ValueId) -> ValueId {
    let one = b.number(1.0, x);
    // The fractional part of a small negative number would be rounded, so that of the magnitude is used.
    let magnitude = b.abs(x);
    let whole = b.floor(magnitude);
    let fraction = b.subtract(magnitude, whole);
    let below = b.subtract(fraction, one);
    let is_more = b.compare_with(ComparisonDirection::Gt, fraction, 0.5);
    let distance = b.select(is_more, below, fraction);
    let negative = b.negate(distance);
    let is_negative = b.compare_with(ComparisonDirection::Lt, x, 0.0);
    b.select(is_negative, negative, distance)
}
