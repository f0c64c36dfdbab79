//! Lowers collectives.

use super::reducer::reducer;
use super::{CompileError, Result, Scope, to_usize};
use crate::graph::{Collective, CollectiveKind, Groups, Op as Core, Reducer, ValueId};
use pjrt_stablehlo::Error;
use pjrt_stablehlo::ir::{Op, OpId, Operation, ReplicaGroups};
use refcpu_kernels::ReduceOp;

impl<'m> Scope<'m> {
    /// Lowers an operation of this file; returns `None` for other operations.
    pub(super) fn collective_op(&mut self, id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        let channel = channel(op);
        let (kind, groups) = match &op.kind {
            Op::PartitionId(_) => {
                let shape = self.result_shape(op)?;
                return Ok(Some(vec![self.b.add(Core::PartitionId, &[], shape)]));
            }
            Op::ReplicaId(_) => {
                let shape = self.result_shape(op)?;
                return Ok(Some(vec![self.b.add(Core::ReplicaId, &[], shape)]));
            }
            Op::AllReduce(o) => {
                let reducer = self.collective_reducer(id, op)?;
                let groups = self.groups(&o.replica_groups, channel, Some(o.use_global_device_ids))?;
                (CollectiveKind::AllReduce(reducer), groups)
            }
            Op::CrossReplicaSum(o) => (
                CollectiveKind::AllReduce(Reducer::Op(ReduceOp::Add)),
                self.groups(&o.replica_groups, channel, Some(false))?,
            ),
            Op::AllGather(o) => {
                let groups = self.groups(&o.replica_groups, channel, Some(o.use_global_device_ids))?;
                (CollectiveKind::AllGather { dim: to_usize(o.all_gather_dim)? }, groups)
            }
            Op::AllToAll(o) => {
                let kind = CollectiveKind::AllToAll {
                    split: to_usize(o.split_dimension)?,
                    concat: to_usize(o.concat_dimension)?,
                    count: to_usize(o.split_count)?,
                };
                (kind, self.groups(&o.replica_groups, channel, None)?)
            }
            Op::ReduceScatter(o) => {
                let reducer = self.collective_reducer(id, op)?;
                let groups = self.groups(&o.replica_groups, channel, Some(o.use_global_device_ids))?;
                (CollectiveKind::ReduceScatter { reducer, dim: to_usize(o.scatter_dimension)? }, groups)
            }
            Op::CollectivePermute(o) => {
                let pairs = o.source_target_pairs.iter();
                let pairs = pairs.map(|[a, b]| Ok((to_usize(*a)?, to_usize(*b)?))).collect::<Result<_>>()?;
                let groups = self.groups(&ReplicaGroups::default(), channel, None)?;
                (CollectiveKind::Permute { pairs }, groups)
            }
            Op::CollectiveBroadcast(o) if !o.has_dynamic_root => {
                (CollectiveKind::Broadcast, self.groups(&o.replica_groups, channel, None)?)
            }
            _ => return Ok(None),
        };
        // A collective of several operands becomes one collective for each.
        let operands = self.flat(&op.operands)?;
        let shapes = self.result_shapes(op)?;
        let mut results = Vec::new();
        for (operand, shape) in self.promoted(operands, &shapes).into_iter().zip(shapes) {
            let collective = Box::new(Collective { kind: kind.clone(), groups: groups.clone(), channel });
            results.extend(self.b.node(Core::Collective(collective), vec![operand], vec![shape]));
        }
        Ok(Some(results))
    }

    fn collective_reducer(&mut self, id: OpId, op: &Operation) -> Result<Reducer> {
        let shapes = self.result_shapes(op)?;
        let element = shapes
            .first()
            .ok_or_else(|| CompileError::invalid("a reduction across devices must have a result"))?
            .with_dims(&[]);
        let body = self.scalar_body(self.region(id, 0)?, &[element.clone(), element])?;
        Ok(reducer(body))
    }

    /// Returns the groups of a collective, by StableHLO's table of the channel, which is zero if there is none, and
    /// `use_global_device_ids`, which is `None` for an operation without this attribute.
    fn groups(&self, groups: &ReplicaGroups, channel: i64, global: Option<bool>) -> Result<Groups> {
        let lists = self.lists(groups)?;
        Ok(match (channel > 0, global) {
            (false, Some(true)) => {
                return Err(CompileError::invalid(
                    "use_global_device_ids requires a channel_handle with a positive handle",
                ));
            }
            (false, _) => Groups::CrossReplica(lists),
            (true, Some(true)) => Groups::Flattened(lists),
            (true, Some(false)) => Groups::CrossReplicaAndPartition(lists),
            (true, None) => Groups::CrossPartition(lists),
        })
    }

    /// Converts groups to lists of processes, without empty ones.
    fn lists(&self, groups: &ReplicaGroups) -> Result<Vec<Vec<usize>>> {
        let invalid = |error: Error| CompileError::invalid(error.message);
        // The size of the mesh is checked first, because a few bytes can describe a mesh of any number of positions.
        if let ReplicaGroups::MeshAxes(_) = groups {
            let [count, size] = groups.dims(self.module).map_err(invalid)?;
            let processes = self.options.num_replicas.saturating_mul(self.options.num_partitions);
            if count.saturating_mul(size) > i64::try_from(processes).unwrap_or(i64::MAX) {
                return Err(CompileError::invalid(format!(
                    "the replica groups are {count} groups of {size} mesh positions; expected at most {processes} positions, one for each device \
                     of the program"
                )));
            }
        }
        let lists = groups.groups(self.module).map_err(invalid)?.into_iter();
        lists.filter(|list| !list.is_empty()).map(|list| list.into_iter().map(to_usize).collect()).collect()
    }
}

/// Returns the channel of a collective; zero if it has none.
fn channel(op: &Operation) -> i64 {
    let handle = match &op.kind {
        Op::AllReduce(o) => o.channel_handle,
        Op::AllGather(o) => o.channel_handle,
        Op::AllToAll(o) => o.channel_handle,
        Op::ReduceScatter(o) => o.channel_handle,
        Op::CollectivePermute(o) => o.channel_handle,
        Op::CollectiveBroadcast(o) => o.channel_handle,
        _ => None,
    };
    handle.map_or(0, |channel| channel.handle)
}
