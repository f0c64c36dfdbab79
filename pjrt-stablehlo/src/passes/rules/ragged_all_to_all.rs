//! The rule for the custom call `ragged_all_to_all`, which represents an operation of HLO that StableHLO lacks.

use crate::Error;
use crate::formulas::ragged_all_to_all::{Group, RaggedAllToAll, ragged_all_to_all};
use crate::ir::ops::CustomCall;
use crate::ir::{Attribute, BackendConfig, ChannelHandle, Op, Operation, ReplicaGroups, TensorType, ValueId};
use crate::passes::rewrite::{Rewriter, mismatch, unsupported};

/// The target of the call, by which [`CoreOps`](crate::passes::CoreOps) contains the operation.
pub(crate) const TARGET: &str = "ragged_all_to_all";

/// Returns whether a custom call represents the operation.
pub(crate) fn is_call(call: &CustomCall) -> bool {
    &*call.call_target_name == TARGET
}

/// Decomposes a call. The verifier does not check the types of custom calls.
pub(crate) fn custom_call<'m>(r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Vec<ValueId>, Error> {
    let [operand, output, input_offsets, send_sizes, output_offsets, recv_sizes] = r.operands(op)?;
    let group = group(r, op)?;
    let (rows, result) = (r.b.tensor(operand), r.b.tensor(output));
    let is_static = |ty: &TensorType| ty.static_dims().is_some() && ty.rank() > 0;
    let fit = is_static(&rows)
        && is_static(&result)
        && rows.element_type() == result.element_type()
        && rows.dims()[1..] == result.dims()[1..]
        && r.result(op)? == result;
    if !fit {
        return Err(mismatch(op));
    }
    let slices = r.b.dims(recv_sizes);
    for vector in [input_offsets, send_sizes, output_offsets, recv_sizes] {
        let ty = r.b.tensor(vector);
        let is_divisible = slices.first().is_some_and(|count| *count > 0 && count % group.size == 0);
        if ty.rank() != 1 || ty.dims() != slices || !is_divisible || !ty.element_type().is_integer() {
            return Err(unsupported(format!(
                "expected offsets and sizes that are vectors of integers of one length, which is a positive multiple of \
                 the group size {}, found {ty}",
                group.size
            )));
        }
    }
    if rows.dims()[0] == 0 {
        return Ok(vec![output]);
    }
    let operands = RaggedAllToAll { operand, output, input_offsets, output_offsets, recv_sizes };
    Ok(vec![ragged_all_to_all(&mut r.b, &operands, &group)])
}

/// Returns the devices that communicate, from the configuration of the call.
fn group(r: &Rewriter<'_>, op: &Operation) -> Result<Group, Error> {
    let Op::CustomCall(call) = &op.kind else { return Err(mismatch(op)) };
    let config = match &call.backend_config {
        BackendConfig::Dictionary(config) => Some(config),
        _ => op.attributes.get("mhlo.backend_config").and_then(Attribute::as_dictionary),
    };
    let groups = config.and_then(|config| config.get("replica_groups"));
    let groups = groups.and_then(ReplicaGroups::from_attribute).ok_or_else(|| {
        unsupported(
            "the attribute 'replica_groups' of 'backend_config' is missing, or is not a matrix of integers",
        )
    })?;
    let [count, size] = groups.dims(r.module)?;
    if count == 0 || size == 0 {
        return Err(unsupported("the attribute 'replica_groups' of 'backend_config' is empty"));
    }
    let channel = config.and_then(|config| config.get("channel_id")).and_then(Attribute::as_i64);
    let channel = channel.filter(|channel| *channel > 0);
    let channel = channel.map(|handle| ChannelHandle { handle, channel_type: 0 });
    Ok(Group { groups, size, channel })
}
