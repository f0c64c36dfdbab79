//! The operations that commute with a reduction: applied to partial results, they compute partial results of their results.

use crate::rule::{combiner, shapes};
use pjrt_stablehlo::ir::{Body, ElementKind, Op, OpCode, Operation, Reduction, ValueId};

/// Returns the operands that an operation can take as partial results of a reduction, all split in the same way; its results are
/// then partial results too. `reducer` is the operation in the operation's own region.
pub(super) fn commuting_operands(
    body: &Body,
    op: &Operation,
    reduction: Reduction,
    reducer: Option<OpCode>,
) -> Vec<usize> {
    let all: Vec<usize> = (0..op.operands.len()).collect();
    let is_sum = reduction == Reduction::Sum;
    match &op.kind {
        Op::Concatenate(_) => all,
        Op::Reshape(_) | Op::Transpose(_) | Op::Slice(_) | Op::Reverse(_) => all,
        Op::BroadcastInDim(_) if !enlarges(body, op) => all,
        Op::DynamicSlice(_) | Op::Gather(_) => vec![0],
        Op::DynamicUpdateSlice(_) => vec![0, 1],
        Op::Select(_) => vec![1, 2],
        Op::Reduce(_) if reducer == Some(combiner(reduction)) && op.operands.len() == 2 => vec![0],
        Op::Convert(_) if widens(body, op) => all,
        Op::Subtract(_) | Op::Negate(_) | Op::Real(_) | Op::Imag(_) | Op::Complex(_) if is_sum => all,
        kind if kind.code() == combiner(reduction) => all,
        _ => vec![],
    }
}

/// Returns whether the result has more elements than the operand, so that less data is reduced before the operation than after it.
fn enlarges(body: &Body, op: &Operation) -> bool {
    let count =
        |value| shapes(body, [value].into_iter()).map(|dims| dims.iter().flatten().product::<usize>());
    count(op.operand(0)) != count(op.result())
}

/// Returns whether a conversion preserves the value of every element.
fn widens(body: &Body, op: &Operation) -> bool {
    let element = |value: ValueId| body.ty(value).as_tensor().map(|ty| ty.element_type());
    let (Some(from), Some(to)) = (element(op.operand(0)), element(op.result())) else { return false };
    from.kind() == ElementKind::Float
        && to.kind() == ElementKind::Float
        && from.exponent_bits() <= to.exponent_bits()
        && from.mantissa_bits() <= to.mantissa_bits()
}
