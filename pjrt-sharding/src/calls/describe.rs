//! Describes calls to their partitioners.

use crate::call_partitioner::WholeCall;
use crate::cut::Cut;
use crate::devices::Devices;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::partition::dims;
use crate::propagate::Shardings;
use crate::rule::{FactorKind, ShardingRule, shapes};
use crate::sharding::Sharding;
use pjrt_stablehlo::ir::{BackendConfig, Body, Op, Operation, TensorType, ValueId};
use std::collections::HashMap;

/// Describes a call to its partitioner.
pub(super) fn described<'a>(
    body: &Body,
    op: &'a Operation,
    found: &Shardings,
    devices: &Devices,
) -> Result<WholeCall<'a>> {
    let Op::CustomCall(call) = &op.kind else {
        return Err(Error::internal("the operation is not a custom call"));
    };
    let BackendConfig::Bytes(config) = &call.backend_config else {
        return Err(Error::unsupported(
            "the backend_config of a custom call that the host partitions must be a string, not a dictionary",
        ));
    };
    let ruled = by_rule(body, op, found);
    let array = |value: ValueId| -> Result<(TensorType, Option<Sharding>)> {
        let (Some(ty), Some(dims)) = (body.ty(value).as_tensor(), dims(body, value)) else {
            return Err(Error::unsupported(
                "the operands and results of a custom call that the host partitions must be tensors of static shape",
            ));
        };
        let can_be = |layout: &&Layout| {
            let cuts: Vec<_> = layout.dims.iter().flatten().collect();
            layout.local_dims(&dims).is_some() && devices.spread_evenly(&cuts)
        };
        // Partial sums are reduced before the call receives the array.
        let layout = ruled.get(&value).or_else(|| found.values.get(&value)).filter(can_be);
        let sharding = layout
            .and_then(|layout| Layout { dims: layout.dims.clone(), partial: None }.sharding(devices.count()));
        Ok((ty.clone(), sharding))
    };
    Ok(WholeCall {
        operands: op.operands.iter().map(|value| array(*value)).collect::<Result<_>>()?,
        results: op.results.iter().map(array).collect::<Result<_>>()?,
        backend_config: config,
        partitions: devices.count(),
    })
}

/// Returns the layouts that the call's rule derives from the operands for the results that have no layout, because their users
/// need them whole or because they are unused. Such results are gathered after the call, and the host need not know.
fn by_rule(body: &Body, op: &Operation, found: &Shardings) -> HashMap<ValueId, Layout> {
    let sizes = shapes(body, op.operands.iter().copied()).zip(shapes(body, op.results.iter()));
    let rule = sizes.and_then(|(operands, results)| ShardingRule::of_attribute(op, &operands, &results));
    let Some(rule) = rule else { return HashMap::new() };
    let may_be_cut = |factor: &usize| {
        let factor = &rule.factors[*factor];
        factor.kind != FactorKind::NeedReplication && !factor.blocks_propagation
    };
    let mut cuts: Vec<Option<&Cut>> = vec![None; rule.factors.len()];
    for (value, tensor) in op.operands.iter().zip(&rule.operands) {
        let dims = found.values.get(value).map_or(&[][..], |layout| &layout.dims);
        for (cut, factors) in dims.iter().zip(tensor) {
            if let (Some(cut), Some(factor)) = (cut, factors.first().filter(|factor| may_be_cut(factor))) {
                cuts[*factor].get_or_insert(cut);
            }
        }
    }
    let whole = op.results.iter().zip(&rule.results).filter(|(value, _)| !found.values.contains_key(value));
    whole
        .map(|(value, tensor)| {
            let cut = |factors: &Vec<usize>| factors.first().and_then(|factor| cuts[*factor].cloned());
            (value, Layout { dims: tensor.iter().map(cut).collect(), partial: None })
        })
        .collect()
}
