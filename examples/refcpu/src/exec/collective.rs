//! Lanes taking turns, and what happens when they meet.

use super::lane::{Lane, Stop};
use super::{Cx, Result, RunError, RunErrorKind};
use crate::graph::{CollectiveKind, Groups};
use crate::plan::{CollectiveStep, Program, Step};
use crate::storage::Array;
use crate::trace;
use refcpu_kernels::{Src, copy, region};

/// Runs all lanes to the end.
pub(super) fn drive(program: &Program, lanes: &mut [Lane], cx: &Cx<'_>) -> Result<()> {
    loop {
        let mut waiting = 0;
        for lane in lanes.iter_mut() {
            waiting += usize::from(lane.advance(program, cx)? == Stop::Collective);
        }
        if waiting == 0 {
            return Ok(());
        }
        let at = lanes[0].pc;
        let Some(Step::Collective(step)) = program.steps.get(at).filter(|_| lanes.iter().all(|l| l.pc == at))
        else {
            return Err(RunError::new(
                RunErrorKind::FailedPrecondition,
                "devices wait for each other in different collectives, or one has ended",
            ));
        };
        let span = trace::step(program, at);
        meet(step, lanes, cx)?;
        drop(span);
        for lane in lanes.iter_mut() {
            lane.pc += 1;
        }
    }
}

/// Does one collective operation for all lanes.
fn meet(step: &CollectiveStep, lanes: &mut [Lane], cx: &Cx<'_>) -> Result<()> {
    let operands = lanes.iter().map(|lane| read(step, lane, cx)).collect::<Result<Vec<_>>>()?;
    let mut results: Vec<Option<Array>> = vec![None; lanes.len()];
    match &step.collective.kind {
        CollectiveKind::Permute { pairs } => {
            let ids = |process: usize| {
                let cross_partition = matches!(step.collective.groups, Groups::CrossPartition(_));
                let matches = move |l: &Lane| {
                    if cross_partition { l.partition == process } else { l.replica == process }
                };
                let found: Vec<usize> = (0..lanes.len()).filter(|i| matches(&lanes[*i])).collect();
                found
            };
            for (from, to) in pairs {
                // One pair of processes for each position along the other kind.
                for (from, to) in ids(*from).into_iter().zip(ids(*to)) {
                    results[to] = Some(operands[from].clone());
                }
            }
        }
        kind => {
            for group in groups(&step.collective.groups, lanes) {
                let members: Vec<&Array> = group.iter().map(|i| &operands[*i]).collect();
                for (position, i) in group.iter().enumerate() {
                    results[*i] = Some(combined(step, kind, &members, position, cx)?);
                }
            }
        }
    }
    for (lane, result) in lanes.iter_mut().zip(results) {
        let out = lane.frame.bytes_mut(&step.write);
        match result {
            Some(array) => out.copy_from_slice(array.bytes().expect("dense")),
            None => out.fill(0),
        }
    }
    Ok(())
}

/// A copy of a lane's operand.
fn read(step: &CollectiveStep, lane: &Lane, cx: &Cx<'_>) -> Result<Array> {
    let (view, bytes) = (&step.read, lane.frame.bytes(&step.read));
    Ok(Array::from_bytes(&cx.runtime.allocator, view.dtype, &view.dims, bytes)?)
}

fn src(array: &Array) -> Src<'_> {
    array.src().expect("operands are dense")
}

/// What the member at `position` gets.
fn combined(
    step: &CollectiveStep,
    kind: &CollectiveKind,
    members: &[&Array],
    position: usize,
    cx: &Cx<'_>,
) -> Result<Array> {
    let pool = &cx.runtime.pool;
    let allocator = &cx.runtime.allocator;
    let out = || Ok::<_, RunError>(Array::allocate(allocator, step.write.dtype, (*step.write.dims).into())?);
    let dst = "a new array has one holder";
    match kind {
        CollectiveKind::AllReduce(_) => reduced(step, members, cx),
        CollectiveKind::ReduceScatter { dim, .. } => {
            let all = reduced(step, members, cx)?;
            let mut start = vec![0; all.dims().len()];
            start[*dim] = position * step.write.dims[*dim];
            let mut part = out()?;
            copy::slice(pool, src(&all), part.dst().expect(dst), &start, &vec![1; start.len()]);
            Ok(part)
        }
        CollectiveKind::AllGather { dim } => {
            let mut all = out()?;
            let srcs: Vec<Src<'_>> = members.iter().map(|a| src(a)).collect();
            copy::concatenate(pool, &srcs, all.dst().expect(dst), *dim);
            Ok(all)
        }
        CollectiveKind::AllToAll { split, concat, count } => {
            let mut dims = members[0].dims().to_vec();
            dims[*split] /= count;
            let mut start = vec![0; dims.len()];
            start[*split] = position * dims[*split];
            let mut parts = Vec::with_capacity(members.len());
            for member in members {
                let mut part = Array::allocate(allocator, member.dtype(), dims.as_slice().into())?;
                copy::slice(pool, src(member), part.dst().expect(dst), &start, &vec![1; start.len()]);
                parts.push(part);
            }
            let mut all = out()?;
            let srcs: Vec<Src<'_>> = parts.iter().map(src).collect();
            copy::concatenate(pool, &srcs, all.dst().expect(dst), *concat);
            Ok(all)
        }
        CollectiveKind::Broadcast => Ok(members[0].clone()),
        CollectiveKind::Permute { .. } => unreachable!("done by pairs"),
    }
}

/// The reduction over a group, in the order of its members.
fn reduced(step: &CollectiveStep, members: &[&Array], cx: &Cx<'_>) -> Result<Array> {
    let code = step.combine.as_deref().expect("a reduction has a region");
    let mut sum = members[0].clone();
    for member in &members[1..] {
        let mut next = Array::allocate(&cx.runtime.allocator, member.dtype(), member.dims().into())?;
        region::run(
            &cx.runtime.pool,
            code,
            &[src(&sum), src(member)],
            &mut [next.dst().expect("one holder")],
        );
        sum = next;
    }
    Ok(sum)
}

/// The groups as positions of lanes. Processes that no lane stands for are left out.
fn groups(groups: &Groups, lanes: &[Lane]) -> Vec<Vec<usize>> {
    let find = |replica: usize, partition: usize| {
        lanes.iter().position(|l| l.replica == replica && l.partition == partition)
    };
    let mut replicas: Vec<usize> = lanes.iter().map(|l| l.replica).collect();
    replicas.sort_unstable();
    replicas.dedup();
    let mut partitions: Vec<usize> = lanes.iter().map(|l| l.partition).collect();
    partitions.sort_unstable();
    partitions.dedup();
    let or_all = |lists: &[Vec<usize>], all: &[usize]| {
        if lists.is_empty() { vec![all.to_vec()] } else { lists.to_vec() }
    };
    let mut found: Vec<Vec<usize>> = Vec::new();
    match groups {
        Groups::CrossReplica(lists) => {
            for partition in &partitions {
                for list in or_all(lists, &replicas) {
                    found.push(list.iter().filter_map(|r| find(*r, *partition)).collect());
                }
            }
        }
        Groups::CrossPartition(lists) => {
            for replica in &replicas {
                for list in or_all(lists, &partitions) {
                    found.push(list.iter().filter_map(|p| find(*replica, *p)).collect());
                }
            }
        }
        Groups::CrossReplicaAndPartition(lists) => {
            for list in or_all(lists, &replicas) {
                let each = |p: &usize| list.iter().filter_map(|r| find(*r, *p)).collect::<Vec<_>>();
                found.push(partitions.iter().flat_map(each).collect());
            }
        }
        Groups::Flattened(lists) => {
            let count = partitions.iter().max().map_or(1, |p| p + 1);
            if lists.is_empty() {
                found.push((0..lanes.len()).collect());
            }
            for list in lists {
                found.push(list.iter().filter_map(|id| find(id / count, id % count)).collect());
            }
        }
    }
    found.retain(|g| !g.is_empty());
    found
}
