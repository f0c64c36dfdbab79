//! Operations that communicate with other processes.

use super::context::Context;
use super::reductions::reducer;
use super::result::{ResultRule, Results};
use super::shape::{Shape, map_size};
use crate::Constraint::{self, C};
use crate::Error;
use crate::ir::ops::{
    AllGather, AllReduce, AllToAll, CollectiveBroadcast, CollectivePermute, CollectiveReduce, ReduceScatter,
};
use crate::ir::{ChannelHandle, DYNAMIC, ElementType, Op, ReplicaGroups};

/// Returns the results of collective operations; `None` for other operations.
pub(super) fn results(cx: &Context<'_>) -> Option<Results> {
    Some(match &cx.op.kind {
        Op::AllGather(op) => all_gather(cx, op),
        Op::AllReduce(op) => all_reduce(cx, op),
        Op::AllToAll(op) => all_to_all(cx, op),
        Op::CollectiveBroadcast(op) => collective_broadcast(cx, op),
        Op::CollectivePermute(op) => collective_permute(cx, op),
        Op::CollectiveReduce(op) => collective_reduce(cx, op),
        Op::CrossReplicaSum(_) => cross_replica_sum(cx),
        Op::ReduceScatter(op) => reduce_scatter(cx, op),
        _ => return None,
    })
}

/// The rules of replica groups, with the numbers of the specification's constraints.
struct GroupRules {
    unique: Constraint,
    range: Constraint,
    /// `true` if shorter groups may be padded with -1.
    ragged: bool,
    /// `true` if each number up to the maximum must occur.
    dense: bool,
}

/// Returns the number of groups and of processes in each, or an error if the mesh lacks one of their axes.
///
/// Returns `None` for axes of a mesh that the module does not declare. MLIR accepts such programs, so this is an error
/// only for compilers that need the groups.
fn dims(cx: &Context<'_>, groups: &ReplicaGroups) -> Result<Option<[i64; 2]>, Error> {
    match groups {
        ReplicaGroups::MeshAxes(axes) if axes.mesh.mesh(cx.module).is_none() => Ok(None),
        _ => {
            let dims = groups.dims(cx.module);
            dims.map(Some).map_err(|error| error.in_op(cx.op.kind.name(), &cx.op.location))
        }
    }
}

/// Checks the ids in replica groups, or the axes that define them. The number of processes is not known at compile
/// time.
fn replica_groups(cx: &Context<'_>, groups: &ReplicaGroups, rules: &GroupRules) -> Result<(), Error> {
    let ReplicaGroups::Dense { ids, .. } = groups else { return dims(cx, groups).map(|_| ()) };
    let filled = |&id: &i64| rules.ragged && id == -1;
    let ids: Vec<i64> = ids.iter().copied().filter(|id| !filled(id)).collect();
    let least = ids.iter().copied().min().unwrap_or(0);
    cx.require(rules.range, least >= 0, || {
        format!("replica_groups: expected nonnegative process ids, found {least}")
    })?;
    cx.unique(rules.unique, "replica_groups", ids.iter().copied())?;
    let greatest = ids.iter().copied().max().unwrap_or(-1);
    cx.require(rules.range, !rules.dense || greatest < ids.len() as i64, || {
        format!(
            "replica_groups: expected each process id from 0 to {greatest} exactly once, found {} ids",
            ids.len()
        )
    })
}

/// Checks that global device ids are used with a channel and with groups.
fn global_ids(
    cx: &Context<'_>,
    constraint: Constraint,
    is_global: bool,
    channel: Option<ChannelHandle>,
    least: i64,
    groups: &ReplicaGroups,
) -> Result<(), Error> {
    if !is_global {
        return Ok(());
    }
    let channel = channel.map_or(0, |channel| channel.handle);
    cx.require(constraint, channel >= least, || {
        format!(
            "channel_handle: expected a channel id of at least {least} for global device ids, found {channel}"
        )
    })?;
    let empty = matches!(groups, ReplicaGroups::Dense { ids, .. } if ids.is_empty());
    cx.require(constraint, !empty, || {
        "replica_groups: expected at least one group of global device ids".to_owned()
    })
}

/// Checks pairs of processes. Each process may send at most once and receive at most once.
pub(super) fn source_target_pairs(cx: &Context<'_>, pairs: &[[i64; 2]]) -> Result<(), Error> {
    let least = pairs.iter().flatten().copied().min().unwrap_or(0);
    cx.require(C(4), least >= 0, || {
        format!("source_target_pairs: expected nonnegative process ids, found {least}")
    })?;
    cx.unique(C(2), "sources of source_target_pairs", pairs.iter().map(|pair| pair[0]))?;
    cx.unique(C(3), "targets of source_target_pairs", pairs.iter().map(|pair| pair[1]))
}

/// `collective_permute`.
fn collective_permute(cx: &Context<'_>, op: &CollectivePermute) -> Results {
    source_target_pairs(cx, &op.source_target_pairs)?;
    super::shapes::same_types(cx, C(5))
}

/// `cross-replica-sum`.
fn cross_replica_sum(cx: &Context<'_>) -> Results {
    super::shapes::same_types(cx, None)
}

/// `all_gather`: one dimension grows by the size of a group.
fn all_gather(cx: &Context<'_>, op: &AllGather) -> Results {
    let rules = GroupRules { unique: C(2), range: C(4), ragged: false, dense: true };
    replica_groups(cx, &op.replica_groups, &rules)?;
    // MLIR's verifier accepts channel 0, which frameworks write for no channel.
    global_ids(cx, C(5), op.use_global_device_ids, op.channel_handle, 0, &op.replica_groups)?;
    let result = |index| {
        let operand = cx.tensor(index)?;
        let dimension = cx.dimension(C(1), "all_gather_dim", op.all_gather_dim, operand.rank())?;
        let mut shape = Shape::of(operand);
        // The size of a group depends on the number of processes, unless the groups are listed.
        shape.set(dimension, (DYNAMIC, DYNAMIC));
        Ok(ResultRule::of(shape.like(operand), C(6)))
    };
    (0..cx.op.operands.len()).map(result).collect()
}

/// `all_reduce`: the region combines two elements.
fn all_reduce(cx: &Context<'_>, op: &AllReduce) -> Results {
    let rules = GroupRules { unique: C(1), range: C(3), ragged: true, dense: true };
    replica_groups(cx, &op.replica_groups, &rules)?;
    global_ids(cx, C(4), op.use_global_device_ids, op.channel_handle, 1, &op.replica_groups)?;
    let result = |index| {
        let operand = cx.tensor(index)?;
        let sums = reducer(cx, 0, &[operand], C(5))?;
        cx.require(C(5), sums[0].rank() == 0, || {
            format!("region 'computation': expected scalars, found {}", sums[0])
        })?;
        Ok(ResultRule::of(Shape::of(operand).like(sums[0]), C(6)).with_elements(C(7)))
    };
    (0..cx.op.operands.len()).map(result).collect()
}

/// Returns the number of operands that contain data. With a dynamic root, the last operand contains the root of each.
fn dynamic_root(
    cx: &Context<'_>,
    has_root: bool,
    without: Constraint,
    with: Constraint,
) -> Result<usize, Error> {
    let operands = cx.op.operands.len();
    if !has_root {
        cx.require(without, operands >= 1, || "expected at least one operand".to_owned())?;
        return Ok(operands);
    }
    cx.require(with, operands >= 2, || {
        format!("expected at least one operand and the operand with the roots, found {operands}")
    })?;
    let root = cx.tensor(operands - 1)?;
    let expected = [(operands - 1) as i64];
    cx.require(with, root.element_type() == ElementType::I32 && root.dims() == expected, || {
        format!(
            "operand {}: expected tensor<{}xi32>, a root for each other operand, found {root}",
            operands - 1,
            expected[0]
        )
    })?;
    Ok(operands - 1)
}

/// `collective_broadcast`: one result for each operand, except the operand with dynamic roots.
fn collective_broadcast(cx: &Context<'_>, op: &CollectiveBroadcast) -> Results {
    let rules = GroupRules { unique: C(1), range: C(2), ragged: false, dense: false };
    replica_groups(cx, &op.replica_groups, &rules)?;
    let count = dynamic_root(cx, op.has_dynamic_root, C(3), C(4))?;
    let constraint = if op.has_dynamic_root { C(4) } else { C(3) };
    let types = cx.operand_types().into_iter().take(count);
    Ok(types.map(|ty| ResultRule::of(ty, constraint)).collect())
}

/// `collective_reduce`: one result for each operand, except the operand with dynamic roots.
fn collective_reduce(cx: &Context<'_>, op: &CollectiveReduce) -> Results {
    let rules = GroupRules { unique: C(1), range: C(2), ragged: true, dense: true };
    replica_groups(cx, &op.replica_groups, &rules)?;
    global_ids(cx, C(2), op.use_global_device_ids, op.channel_handle, 1, &op.replica_groups)?;
    let result = |index| {
        let operand = cx.tensor(index)?;
        let sums = reducer(cx, 0, &[operand], C(4))?;
        cx.require(C(4), sums[0].rank() == 0, || {
            format!("region 'computation': expected scalars, found {}", sums[0])
        })?;
        Ok(ResultRule::of(Shape::of(operand).like(sums[0]), C(3)).with_elements(C(4)))
    };
    (0..dynamic_root(cx, op.has_dynamic_root, C(3), C(3))?).map(result).collect()
}

/// `all_to_all`: one dimension is split, another one grows.
fn all_to_all(cx: &Context<'_>, op: &AllToAll) -> Results {
    cx.positive(C(4), "split_count", &[op.split_count])?;
    let rules = GroupRules { unique: C(5), range: C(7), ragged: false, dense: true };
    replica_groups(cx, &op.replica_groups, &rules)?;
    if let Some([_, group_size]) = dims(cx, &op.replica_groups)? {
        cx.require(C(8), group_size == op.split_count, || {
            format!("replica_groups: expected groups of {} processes, found {group_size}", op.split_count)
        })?;
    }
    let result = |index| {
        let operand = cx.tensor(index)?;
        let split = cx.dimension(C(1), "split_dimension", op.split_dimension, operand.rank())?;
        let concat = cx.dimension(C(3), "concat_dimension", op.concat_dimension, operand.rank())?;
        let size = operand.dims()[split];
        cx.require(C(2), size == DYNAMIC || size % op.split_count == 0, || {
            format!("dimension {split} of {operand}: expected a multiple of {}, found {size}", op.split_count)
        })?;
        let mut shape = Shape::of(operand);
        if split != concat {
            let parts = map_size(shape.size(split), |size| Some(size / op.split_count));
            let whole = map_size(shape.size(concat), |size| size.checked_mul(op.split_count));
            let whole = whole.ok_or_else(|| cx.error(C(9), "the size of the result overflows"))?;
            shape.set(split, parts.unwrap_or((DYNAMIC, DYNAMIC)));
            shape.set(concat, whole);
        }
        Ok(ResultRule::of(shape.like(operand), C(9)))
    };
    (0..cx.op.operands.len()).map(result).collect()
}

/// `reduce_scatter`: one dimension is split, and the region combines two elements.
fn reduce_scatter(cx: &Context<'_>, op: &ReduceScatter) -> Results {
    let operand = cx.tensor(0)?;
    let rules = GroupRules { unique: C(3), range: C(5), ragged: false, dense: true };
    replica_groups(cx, &op.replica_groups, &rules)?;
    global_ids(cx, C(6), op.use_global_device_ids, op.channel_handle, 1, &op.replica_groups)?;
    let dimension = cx.dimension(C(2), "scatter_dimension", op.scatter_dimension, operand.rank())?;
    let sums = reducer(cx, 0, &[operand], C(7))?;
    cx.require(C(7), sums[0].rank() == 0, || {
        format!("region 'computation': expected scalars, found {}", sums[0])
    })?;
    let mut shape = Shape::of(operand);
    shape.set(dimension, (DYNAMIC, DYNAMIC));
    Ok(vec![ResultRule::of(shape.like(sums[0]), C(8)).with_elements(C(9))])
}
