//! The sharding rules of the custom calls that refcpu has kernels for.

use super::lower::parameters;
use pjrt_sharding::{FactorKind, RuleBuilder, ShardingRule};
use pjrt_stablehlo::ir::{Attribute, Op, Operation};

/// Returns the rule of a custom call with operands and results of these dimensions. Linear algebra operates on each matrix of a
/// batch separately.
pub(super) fn call_rule(
    op: &Operation,
    operands: &[Vec<usize>],
    results: &[Vec<usize>],
) -> Option<ShardingRule> {
    let Op::CustomCall(call) = &op.kind else { return None };
    let mut rule = RuleBuilder::new(operands, results);
    let most = operands.iter().map(Vec::len).max()?;
    match &*call.call_target_name {
        "ApproxTopK" => {
            let dim =
                parameters(op, call).and_then(|d| d.get("reduction_dim")).and_then(Attribute::as_i64)?;
            let dim = if dim < 0 { dim + results.first()?.len() as i64 } else { dim };
            let kind =
                |d| if d as i64 == dim { FactorKind::NeedReplication } else { FactorKind::PassThrough };
            let rank = operands.first()?.len();
            if operands.len() < 2
                || results.len() != 2
                || operands[..2].iter().chain(results).any(|dims| dims.len() != rank)
            {
                return None;
            }
            for (d, size) in operands[0].iter().enumerate() {
                rule.factor_of_size(*size, kind(d), [(0, d), (1, d)], [(0, d), (1, d)]);
            }
        }
        // Propagation derives a rule from the number of batch dimensions that JAX states.
        _ if has_batch_dims(op) => return None,
        "refcpu.lu_pivots_to_permutation" => return rule.batch(most.checked_sub(1)?).then(|| rule.finish()),
        target if is_linear_algebra(target) => {
            return rule.batch(most.checked_sub(2)?).then(|| rule.finish());
        }
        _ => return None,
    }
    Some(rule.finish())
}

fn has_batch_dims(op: &Operation) -> bool {
    let said = op.attributes.get("mhlo.frontend_attributes").and_then(Attribute::as_dictionary);
    said.is_some_and(|said| said.get("num_batch_dims").is_some())
}

fn is_linear_algebra(target: &str) -> bool {
    target.starts_with("lapack_")
        || target.starts_with("refcpu.")
        || matches!(target, "Qr" | "ProductOfElementaryHouseholderReflectors")
}
