//! Checks that quantized values keep their parameters across the boundaries of regions and futures.
//!
//! The type rules of StableHLO allow scales and zero points to differ there, though not in calls of functions. Once
//! quantized types have become their storage types, such a difference would change the result of the program unnoticed.

use super::rewrite::unsupported;
use crate::Error;
use crate::ir::{Body, Module, Op, Operation, Type, ValueId};

/// Returns an error if an operation changes the parameters of a quantized value without requantizing it.
pub(super) fn check(module: &Module) -> Result<(), Error> {
    for function in module.functions() {
        let body = &function.body;
        for (_, op) in body.all_ops() {
            let carried = match &op.kind {
                Op::AsyncStart(_) | Op::AsyncDone(_) => future_boundaries(body, op),
                _ => region_boundaries(body, op),
            };
            carried.map_err(|error| error.in_op(op.kind.name(), &op.location))?;
        }
    }
    Ok(())
}

/// Compares the contents of a future with the results of the operations that create and await it.
fn future_boundaries(body: &Body, op: &Operation) -> Result<(), Error> {
    let types = |values: &[ValueId]| values.iter().map(|&value| body.ty(value).clone()).collect::<Vec<_>>();
    let results: Vec<ValueId> = op.results.collect();
    let (future, values) = match op.regions.first().and_then(|&region| body.region(region).blocks.first()) {
        Some(&block) => {
            let block = body.block(block);
            let pairs = types(&op.operands).into_iter().zip(types(&block.arguments));
            pairs.into_iter().try_for_each(|(given, taken)| same(&given, &taken))?;
            (results.first(), types(block.ops.last().map_or(&[], |&last| &*body.op(last).operands)))
        }
        None => (op.operands.first(), types(&results)),
    };
    let Some(Type::Future(parts)) = future.map(|&value| body.ty(value)) else { return Ok(()) };
    parts.iter().zip(&values).try_for_each(|(part, value)| same(part, value))
}

/// Compares the values that enter and leave an operation's regions with the corresponding results.
fn region_boundaries(body: &Body, op: &Operation) -> Result<(), Error> {
    let results: Vec<&Type> = op.results.map(|value| body.ty(value)).collect();
    if op.regions.is_empty() || results.is_empty() {
        return Ok(());
    }
    // In other operations, the operands, arguments and returned values repeat the list of results.
    let in_rounds = |index: usize| index % results.len();
    let argument_of = |index: usize| match op.kind {
        Op::Sort(_) => index / 2,
        _ => in_rounds(index),
    };
    let compare = |values: &[ValueId], part_of: &dyn Fn(usize) -> usize| {
        let mut parts = values.iter().enumerate().map(|(index, &value)| (body.ty(value), part_of(index)));
        parts.try_for_each(|(ty, part)| results.get(part).map_or(Ok(()), |result| same(ty, result)))
    };
    match op.kind {
        // These have operands that do not correspond to results: the index or predicate; the arguments of a function of
        // elements; the inputs, indices and updates.
        Op::Case(_) | Op::If(_) => {}
        Op::Scatter(_) => {
            compare(&op.operands[..results.len()], &in_rounds)?;
            compare(&op.operands[results.len() + 1..], &in_rounds)?;
        }
        Op::Map(_) => {
            let block = op.regions.first().and_then(|region| body.region(*region).blocks.first());
            let arguments = block.map_or(&[][..], |block| &body.block(*block).arguments);
            let pairs = op.operands.iter().zip(arguments);
            pairs.into_iter().try_for_each(|(&given, &taken)| same(body.ty(given), body.ty(taken)))?;
        }
        _ => compare(&op.operands, &in_rounds)?,
    }
    for region in &op.regions {
        let Some(&block) = body.region(*region).blocks.first() else { continue };
        let block = body.block(block);
        if !matches!(op.kind, Op::Map(_)) {
            compare(&block.arguments, &argument_of)?;
        }
        if let Some(&last) = block.ops.last() {
            compare(&body.op(last).operands, &in_rounds)?;
        }
    }
    Ok(())
}

/// Returns an error if both types are quantized, with different parameters. In regions of operations on per-axis
/// quantized tensors, types contain the parameters without the axis, so only the lists of parameters are compared.
fn same(a: &Type, b: &Type) -> Result<(), Error> {
    let quantization = |ty: &Type| match ty {
        Type::Tensor(tensor) => tensor.quantization().cloned(),
        _ => None,
    };
    let (Some(of_a), Some(of_b)) = (quantization(a), quantization(b)) else { return Ok(()) };
    if of_a.scales == of_b.scales && of_a.zero_points == of_b.zero_points {
        return Ok(());
    }
    Err(unsupported(format!(
        "a value of type {a} becomes one of type {b} without requantization, which cannot be expressed without \
         quantized types"
    )))
}
