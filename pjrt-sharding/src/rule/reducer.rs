//! The operations of reductions.

use pjrt_stablehlo::ir::{Body, Op, OpCode, Operation, Reducer, Reduction};

/// Returns the operation that combines two partial results of a reduction.
pub(crate) fn combiner(reduction: Reduction) -> OpCode {
    match reduction {
        Reduction::Sum => OpCode::Add,
        Reduction::Max => OpCode::Maximum,
        Reduction::Min => OpCode::Minimum,
    }
}

/// Returns the reduction that combines partial results with this operation; `None` if arrays cannot be unreduced in this way.
pub(crate) fn reduction_by(op: OpCode) -> Option<Reduction> {
    Reduction::ALL.iter().copied().find(|reduction| combiner(*reduction) == op)
}

/// Returns the operation that the only region of `op` applies to its two arguments; `None` if the region contains anything
/// else, or an operation that cannot combine partial results.
pub(crate) fn reducer(body: &Body, op: &Operation) -> Option<OpCode> {
    let [region] = op.regions[..] else { return None };
    Reducer::of(body, region).filter(|reducer| *reducer != Reducer::Xor).map(Reducer::code)
}

/// Returns whether a reduction may combine its initial value more than once without a change of its result.
pub(crate) fn begins_with_neutral(body: &Body, op: &Operation, reducer: OpCode) -> bool {
    let [_, init] = op.operands[..] else { return false };
    let constant = match body.defining_op(init).map(|id| &body.op(id).kind) {
        Some(Op::Constant(constant)) => Some(&constant.value),
        _ => None,
    };
    match (reducer, constant) {
        (OpCode::Maximum | OpCode::Minimum | OpCode::And | OpCode::Or, _) => true,
        (OpCode::Add, Some(value)) => value.splat().is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)),
        (OpCode::Multiply, Some(value)) => {
            value.to_f64s(1).is_some_and(|values| values == [1.0])
                || value.to_i64s(1).is_some_and(|values| values == [1])
        }
        _ => false,
    }
}
