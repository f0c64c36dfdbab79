//! The operations that are linear: applied to partial sums, they compute partial sums of their results.

use pjrt_stablehlo::ir::{Body, ElementKind, Op, OpCode, Operation, ValueId};

/// Returns the operands that an operation can take as partial sums, all split in the same way; its results are then partial
/// sums too.
pub(super) fn linear_in(body: &Body, op: &Operation, reducer: Option<OpCode>) -> Vec<usize> {
    let all: Vec<usize> = (0..op.operands.len()).collect();
    match &op.kind {
        Op::Add(_) | Op::Subtract(_) | Op::Negate(_) => all,
        Op::Convert(_) if widens(body, op) => all,
        Op::Concatenate(_) | Op::Real(_) | Op::Imag(_) | Op::Complex(_) => all,
        Op::Reshape(_) | Op::Transpose(_) | Op::BroadcastInDim(_) | Op::Slice(_) | Op::Reverse(_) => all,
        Op::DynamicSlice(_) | Op::Gather(_) => vec![0],
        Op::DynamicUpdateSlice(_) => vec![0, 1],
        Op::Select(_) => vec![1, 2],
        Op::Reduce(_) if reducer == Some(OpCode::Add) && op.operands.len() == 2 => vec![0],
        _ => vec![],
    }
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
