//! Liveness of operations.

use crate::ir::{Body, Op, OpId, Operation, Trait};

/// Returns, for each operation by index, `true` if it has an effect or its results are used.
pub(super) fn live_ops(body: &Body) -> Vec<bool> {
    let mut live = vec![false; body.num_ops()];
    let mut work: Vec<OpId> = Vec::new();
    for (id, op) in body.all_ops() {
        if is_root(op) {
            live[id.index()] = true;
            work.push(id);
        }
    }
    while let Some(id) = work.pop() {
        for &operand in &body.op(id).operands {
            if let Some(definition) = body.defining_op(operand)
                && !std::mem::replace(&mut live[definition.index()], true)
            {
                work.push(definition);
            }
        }
    }
    live
}

/// Returns `true` if an operation is live regardless of its results. This includes operations with regions, whose
/// contents may have effects, unless the regions only combine elements.
fn is_root(op: &Operation) -> bool {
    let info = op.info();
    let has_effect = [Trait::Terminator, Trait::SideEffect, Trait::Collective].iter().any(|&t| info.has(t));
    let is_unknown = match &op.kind {
        Op::Other(other) => !other.name.starts_with("chlo."),
        Op::FuncCall(_) | Op::Composite(_) => true,
        _ => false,
    };
    has_effect || is_unknown || !op.regions.is_empty()
}
