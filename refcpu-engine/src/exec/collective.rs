//! Runs lanes in turn, and executes collectives.

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
        let mut waiting = Vec::new();
        for (i, lane) in lanes.iter_mut().enumerate() {
            if lane.advance(program, cx)? == Stop::Collective {
                waiting.push(i);
            }
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let mut places: Vec<usize> = waiting.iter().map(|i| lanes[*i].pc).collect();
        places.sort_unstable();
        places.dedup();
        let mut met = false;
        for at in places {
            let Some(Step::Collective(step)) = program.steps.get(at) else { continue };
            // A group continues as soon as all its members are here. Other groups may be elsewhere.
            let here: Vec<bool> =
                (0..lanes.len()).map(|i| lanes[i].pc == at && waiting.contains(&i)).collect();
            let complete = complete(step, lanes, &here)?;
            if complete.contains(&true) {
                let span = trace::step(program, at);
                meet(step, lanes, &complete, cx)?;
                drop(span);
                for (lane, _) in lanes.iter_mut().zip(&complete).filter(|(_, complete)| **complete) {
                    lane.pc += 1;
                }
                met = true;
            }
        }
        if !met {
            return Err(RunError::new(
                RunErrorKind::FailedPrecondition,
                "deadlock: the devices wait in different collectives, or a member of a group has ended",
            ));
        }
    }
}

/// Returns, for each lane, whether its whole group has reached the collective. A permutation requires all lanes.
fn complete(step: &CollectiveStep, lanes: &[Lane], here: &[bool]) -> Result<Vec<bool>> {
    if here.iter().all(|here| *here) || matches!(step.collective.kind, CollectiveKind::Permute { .. }) {
        return Ok(if here.contains(&false) { vec![false; here.len()] } else { here.to_vec() });
    }
    let mut complete = here.to_vec();
    for group in groups(&step.collective.groups, lanes)? {
        if !group.iter().all(|i| here[*i]) {
            group.iter().for_each(|i| complete[*i] = false);
        }
    }
    Ok(complete)
}

/// Executes a collective for the lanes whose groups are complete.
fn meet(step: &CollectiveStep, lanes: &mut [Lane], complete: &[bool], cx: &Cx<'_>) -> Result<()> {
    let operand = |(lane, complete): (&Lane, &bool)| complete.then(|| read(step, lane, cx)).transpose();
    let operands = lanes.iter().zip(complete).map(operand).collect::<Result<Vec<_>>>()?;
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
                // Each pair applies at every position along the other kind of process.
                for (from, to) in ids(*from).into_iter().zip(ids(*to)) {
                    results[to].clone_from(&operands[from]);
                }
            }
        }
        kind => {
            for group in groups(&step.collective.groups, lanes)? {
                let members: Vec<&Array> = group.iter().filter_map(|i| operands[*i].as_ref()).collect();
                if members.len() < group.len() {
                    continue;
                }
                for (position, i) in group.iter().enumerate() {
                    results[*i] = Some(combined(step, kind, &members, position, cx)?);
                }
            }
        }
    }
    for ((lane, result), _) in lanes.iter_mut().zip(results).zip(complete).filter(|(_, complete)| **complete)
    {
        let out = lane.frame.bytes_mut(&step.write);
        match result {
            Some(array) => out.copy_from_slice(array.bytes().expect("dense")),
            None => out.fill(0),
        }
    }
    Ok(())
}

/// Returns a copy of a lane's operand.
fn read(step: &CollectiveStep, lane: &Lane, cx: &Cx<'_>) -> Result<Array> {
    let (view, bytes) = (&step.read, lane.frame.bytes(&step.read));
    Ok(Array::from_bytes(&cx.runtime.allocator, view.dtype, &view.dims, bytes)?)
}

fn src(array: &Array) -> Src<'_> {
    array.src().expect("operands are dense")
}

/// Returns the result of the member at `position`.
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
        CollectiveKind::Permute { .. } => unreachable!("a permutation is executed pair by pair"),
    }
}

/// Reduces the operands of a group, in the order of its members.
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

/// Converts groups of processes to groups of lane indices, without those that have no lane here.
///
/// # Errors
/// [`RunErrorKind::Unimplemented`] if only some processes of a group have lanes here.
fn groups(groups: &Groups, lanes: &[Lane]) -> Result<Vec<Vec<usize>>> {
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
    let mut partial = None;
    let mut whole = |list: &[usize], lanes: Vec<Option<usize>>| {
        let present: Vec<usize> = lanes.iter().copied().flatten().collect();
        if !present.is_empty() && present.len() < lanes.len() {
            partial = Some(list.to_vec());
        }
        present
    };
    match groups {
        Groups::CrossReplica(lists) => {
            for partition in &partitions {
                for list in or_all(lists, &replicas) {
                    found.push(whole(&list, list.iter().map(|r| find(*r, *partition)).collect()));
                }
            }
        }
        Groups::CrossPartition(lists) => {
            for replica in &replicas {
                for list in or_all(lists, &partitions) {
                    found.push(whole(&list, list.iter().map(|p| find(*replica, *p)).collect()));
                }
            }
        }
        Groups::CrossReplicaAndPartition(lists) => {
            for list in or_all(lists, &replicas) {
                let each = |p: &usize| list.iter().map(|r| find(*r, *p)).collect::<Vec<_>>();
                found.push(whole(&list, partitions.iter().flat_map(each).collect()));
            }
        }
        Groups::Flattened(lists) => {
            let count = partitions.iter().max().map_or(1, |p| p + 1);
            if lists.is_empty() {
                found.push((0..lanes.len()).collect());
            }
            for list in lists {
                found.push(whole(list, list.iter().map(|id| find(id / count, id % count)).collect()));
            }
        }
    }
    if let Some(list) = partial {
        return Err(RunError::new(
            RunErrorKind::Unimplemented,
            format!(
                "not all devices of the collective's group {list:?} take part in this computation: a manual computation \
                 inside another, along other axes, is not supported in a program that calls the host"
            ),
        ));
    }
    found.retain(|g| !g.is_empty());
    Ok(found)
}
