//! Replaces quantized operations by operations on floats, and quantized types by their storage types.
//!
//! StableHLO specification, sections "Quantized types" and "Quantization": `real = (stored - zero_point) * scale`. An
//! operation dequantizes its operands, computes in the expressed type, and quantizes its result. Operations that only
//! move elements move the stored elements.

use super::rewrite::{Rewriter, definite, unsupported};
use crate::Error;
use crate::build::Builder;
use crate::ir::{
    ComparisonDirection, ElementType, Op, OpCode, Operation, QuantizedType, TensorType, Type, ValueId,
};

/// Operations that move elements without changing them, or whose regions define the computation.
const MOVES: &[OpCode] = &[
    OpCode::AllGather,
    OpCode::AllReduce,
    OpCode::AllToAll,
    OpCode::AsyncDone,
    OpCode::AsyncStart,
    OpCode::BitcastConvert,
    OpCode::Broadcast,
    OpCode::BroadcastInDim,
    OpCode::Case,
    OpCode::CollectiveBroadcast,
    OpCode::CollectivePermute,
    OpCode::CollectiveReduce,
    OpCode::Composite,
    OpCode::Concatenate,
    OpCode::Constant,
    OpCode::CustomCall,
    OpCode::DynamicBroadcastInDim,
    OpCode::DynamicGather,
    OpCode::DynamicPad,
    OpCode::DynamicReshape,
    OpCode::DynamicSlice,
    OpCode::DynamicUpdateSlice,
    OpCode::FuncCall,
    OpCode::Gather,
    OpCode::GetDimensionSize,
    OpCode::GetTupleElement,
    OpCode::If,
    OpCode::Infeed,
    OpCode::ManualComputation,
    OpCode::Map,
    OpCode::OptimizationBarrier,
    OpCode::Outfeed,
    OpCode::Pad,
    OpCode::RealDynamicSlice,
    OpCode::Recv,
    OpCode::Reduce,
    OpCode::ReduceScatter,
    OpCode::ReduceWindow,
    OpCode::Reshape,
    OpCode::Reshard,
    OpCode::Reverse,
    OpCode::Scatter,
    OpCode::Select,
    OpCode::SelectAndScatter,
    OpCode::Send,
    OpCode::SetDimensionSize,
    OpCode::ShardingConstraint,
    OpCode::ShardingGroup,
    OpCode::Slice,
    OpCode::Sort,
    OpCode::TorchIndexSelect,
    OpCode::Transpose,
    OpCode::Tuple,
    OpCode::While,
];

/// Operations of [`MOVES`] whose operands and results may have different quantization parameters, as long as each
/// operand has the parameters of its result or of a function's argument.
const CARRIERS: &[OpCode] = &[
    OpCode::AllGather,
    OpCode::AllReduce,
    OpCode::AllToAll,
    OpCode::AsyncDone,
    OpCode::AsyncStart,
    OpCode::BitcastConvert,
    OpCode::Case,
    OpCode::CollectiveBroadcast,
    OpCode::CollectiveReduce,
    OpCode::Composite,
    OpCode::CustomCall,
    OpCode::FuncCall,
    OpCode::GetTupleElement,
    OpCode::If,
    OpCode::Infeed,
    OpCode::ManualComputation,
    OpCode::Map,
    OpCode::OptimizationBarrier,
    OpCode::Outfeed,
    OpCode::Recv,
    OpCode::Reduce,
    OpCode::ReduceWindow,
    OpCode::Scatter,
    OpCode::Send,
    OpCode::Sort,
    OpCode::Tuple,
    OpCode::While,
];

/// Returns the quantization parameters of a type.
fn quantization(ty: &Type) -> Option<&QuantizedType> {
    ty.as_tensor()?.quantization().map(|quantization| &**quantization)
}

/// Returns `true` if an operation computes with quantized elements, rather than moving them.
pub(super) fn replaces(r: &Rewriter<'_>, op: &Operation) -> bool {
    let mut values = op.operands.iter().copied().chain(op.results);
    !MOVES.contains(&op.kind.code()) && values.any(|value| quantization(r.old_type(value)).is_some())
}

/// Returns an error if an operation moves elements between values with different quantization parameters.
pub(super) fn check_move(r: &Rewriter<'_>, op: &Operation) -> Result<(), Error> {
    if CARRIERS.contains(&op.kind.code()) {
        return Ok(());
    }
    let values = || op.operands.iter().copied().chain(op.results).map(|value| r.old_type(value));
    let Some(first) = values().find_map(quantization) else { return Ok(()) };
    for ty in values() {
        let is_same = match (quantization(ty), ty) {
            (Some(other), _) => {
                (other.storage_type, &other.scales, &other.zero_points)
                    == (first.storage_type, &first.scales, &first.zero_points)
            }
            (None, Type::Tensor(tensor)) => !tensor.element_type().is_float(),
            _ => true,
        };
        if !is_same {
            return Err(unsupported(format!(
                "expected equal quantization parameters of all operands and results, found {first} and {ty}"
            )));
        }
    }
    Ok(())
}

/// Replaces an operation on quantized elements, and returns its results.
pub(super) fn replacement(r: &mut Rewriter<'_>, op: &Operation) -> Result<Vec<ValueId>, Error> {
    if !op.regions.is_empty() {
        return Err(unsupported("operations with regions are not supported on quantized elements"));
    }
    let values = r.tensors(op)?;
    if let Op::UniformQuantize(_) = op.kind
        && quantization(r.old_type(op.operand(0)))
            == op.results.get(0).and_then(|result| quantization(r.old_type(result)))
    {
        // The value has the quantization parameters of the result already.
        return Ok(values);
    }
    let mut operands = Vec::with_capacity(values.len());
    for (&old, value) in op.operands.iter().zip(values) {
        operands.push(match quantization(r.old_type(old)) {
            Some(parameters) => dequantize(&mut r.b, value, parameters)?,
            None => value,
        });
    }
    let computed = match op.kind {
        Op::UniformDequantize(_) | Op::UniformQuantize(_) => operands,
        _ => {
            let types = (0..op.results.len()).map(|index| {
                let ty = r.nth_result(op, index)?;
                let element =
                    ty.quantization().map_or(ty.element_type(), |parameters| parameters.expressed_type);
                Ok(TensorType::new(element, ty.dims()).into())
            });
            let types = types.collect::<Result<Vec<Type>, Error>>()?;
            let id = r.b.add_op(op.kind.clone(), &operands, types);
            r.b.body.op(id).results.collect()
        }
    };
    let mut results = Vec::with_capacity(computed.len());
    for (index, value) in computed.into_iter().enumerate() {
        let ty = r.nth_result(op, index)?;
        results.push(match ty.quantization() {
            Some(parameters) => quantize(&mut r.b, value, parameters)?,
            None => value,
        });
    }
    Ok(results)
}

/// Returns a scale or zero point for each element: one for all, or one for each index of the axis.
fn parameter(
    b: &mut Builder,
    numbers: &[f64],
    parameters: &QuantizedType,
    ty: TensorType,
) -> Result<ValueId, Error> {
    definite(&ty)?;
    match (parameters.axis, numbers) {
        (None, [number]) => Ok(b.number_of_type(*number, ty)),
        (Some(axis), _) if ty.dims().get(axis as usize) == Some(&(numbers.len() as i64)) => {
            let vector = b.numbers(numbers, ty.element_type());
            Ok(b.broadcast(vector, &[i64::from(axis)], ty.dims()))
        }
        _ => Err(unsupported(format!(
            "expected a scale for each index of the axis of {parameters}, found {}",
            numbers.len()
        ))),
    }
}

/// Returns the real values of stored elements.
fn dequantize(b: &mut Builder, x: ValueId, parameters: &QuantizedType) -> Result<ValueId, Error> {
    // A type that is wide enough for the difference of any two stored elements.
    let wide = if parameters.storage_type.bits() < 32 { ElementType::I32 } else { ElementType::I64 };
    let mut centered = b.convert(x, wide);
    let wide = b.tensor(centered);
    if parameters.zero_points.iter().any(|&zero| zero != 0) {
        let zeros: Vec<f64> = parameters.zero_points.iter().map(|&zero| zero as f64).collect();
        let zeros = parameter(b, &zeros, parameters, wide)?;
        centered = b.subtract(centered, zeros);
    }
    let real = b.convert(centered, parameters.expressed_type);
    let ty = b.tensor(real);
    let scales = parameter(b, &parameters.scales, parameters, ty)?;
    Ok(b.multiply(real, scales))
}

/// Returns the stored elements that are nearest to real values.
fn quantize(b: &mut Builder, x: ValueId, parameters: &QuantizedType) -> Result<ValueId, Error> {
    let bias = (1i32 << (parameters.expressed_type.exponent_bits().max(1) - 1)) - 1;
    if parameters.storage_min.unsigned_abs().max(parameters.storage_max.unsigned_abs()) as f64
        > 2f64.powi(bias)
    {
        return Err(unsupported(format!(
            "the type {} cannot represent all values of {}",
            parameters.expressed_type, parameters
        )));
    }
    let real = b.convert(x, parameters.expressed_type);
    let ty = b.tensor(real);
    let scales = parameter(b, &parameters.scales, parameters, ty.clone())?;
    let scaled = b.divide(real, scales);
    let zeros: Vec<f64> = parameters.zero_points.iter().map(|&zero| zero as f64).collect();
    let zeros = parameter(b, &zeros, parameters, ty.clone())?;
    let moved = b.add(scaled, zeros);
    // The nearest float to the maximum may exceed it: 2^31 for 2^31 - 1.
    let greatest = parameters.storage_max as f64;
    let limit = greatest_float(parameters.expressed_type, parameters.storage_max);
    let (low, high) =
        (b.number_of_type(parameters.storage_min as f64, ty.clone()), b.number_of_type(limit, ty.clone()));
    let raised = b.maximum(moved, low);
    let clamped = b.minimum(raised, high);
    let rounded = b.round_nearest_even(clamped);
    let stored = b.convert(rounded, parameters.storage_type);
    if limit == greatest {
        return Ok(stored);
    }
    let is_beyond = b.compare(ComparisonDirection::Gt, moved, high);
    let top = b.integer(parameters.storage_max, TensorType::new(parameters.storage_type, ty.dims()));
    Ok(b.select(is_beyond, top, stored))
}

/// Returns the greatest value of a float type that does not exceed an integer.
fn greatest_float(element: ElementType, integer: i64) -> f64 {
    let precision = element.mantissa_bits() + 1;
    let bits = 64 - integer.unsigned_abs().leading_zeros();
    let dropped = bits.saturating_sub(precision);
    ((integer >> dropped) << dropped) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_storage_are_floats_that_are_not_beyond() {
        assert_eq!(greatest_float(ElementType::F32, 127), 127.0);
        assert_eq!(greatest_float(ElementType::F32, i64::from(i32::MAX)), 2147483520.0);
        assert_eq!(greatest_float(ElementType::BF16, 32767), 32640.0);
        assert_eq!(greatest_float(ElementType::F64, i64::from(i32::MAX)), 2147483647.0);
    }
}
