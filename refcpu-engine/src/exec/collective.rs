//! Runs lanes in turn, and executes collectives.

use super::groups::processes;
use super::lane::{Lane, Stop};
use super::process::Process;
use super::rendezvous::Peers;
use super::{Cx, Result, RunError, RunErrorKind};
use crate::graph::{CollectiveKind, Groups};
use crate::plan::{CollectiveStep, Program, REDUCTION_BLOCK, Step};
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

/// Runs a lane whose collectives are those of other runs, too.
pub(super) fn drive_with_peers(program: &Program, lane: &mut Lane, peers: &Peers, cx: &Cx<'_>) -> Result<()> {
    peers.begin();
    while lane.advance(program, cx)? == Stop::Collective {
        let Some(Step::Collective(step)) = program.steps.get(lane.pc) else { break };
        let span = trace::step(program, lane.pc);
        let operand = read(step, lane, cx)?;
        let result = match peers.exchange(step, &program.locations[lane.pc], operand)? {
            None => None,
            Some((operands, position)) => match &step.collective.kind {
                CollectiveKind::Permute { pairs } => {
                    let source = pairs.iter().find(|(_, to)| *to == position);
                    source.and_then(|(from, _)| operands.get(*from)).cloned()
                }
                kind => Some(combined(step, kind, &operands.iter().collect::<Vec<_>>(), position, cx)?),
            },
        };
        write(step, lane, result.as_ref());
        drop(span);
        lane.pc += 1;
    }
    Ok(())
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
                    if cross_partition {
                        l.process.partition == process
                    } else {
                        l.process.replica == process
                    }
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
    for ((lane, result), _) in lanes.iter_mut().zip(&results).zip(complete).filter(|(_, complete)| **complete)
    {
        write(step, lane, result.as_ref());
    }
    Ok(())
}

/// Returns a copy of a lane's operand.
pub(super) fn read(step: &CollectiveStep, lane: &Lane, cx: &Cx<'_>) -> Result<Array> {
    let (view, bytes) = (&step.read, lane.frame.bytes(&step.read));
    Ok(Array::from_bytes(&cx.runtime.allocator, view.dtype, &view.dims, bytes)?)
}

/// Writes a lane's result, which is zero without an array.
pub(super) fn write(step: &CollectiveStep, lane: &mut Lane, result: Option<&Array>) {
    let out = lane.frame.bytes_mut(&step.write);
    match result {
        Some(array) => out.copy_from_slice(array.bytes().expect("dense")),
        None => out.fill(0),
    }
}

fn src(array: &Array) -> Src<'_> {
    array.src().expect("operands are dense")
}

/// Returns the result of the member at `position`.
pub(super) fn combined(
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
        CollectiveKind::ReduceScatter { .. } => part(step, &reduced(step, members, cx)?, position, cx),
        CollectiveKind::AllGather { dim } => {
            let mut all = out()?;
            let srcs: Vec<Src<'_>> = members.iter().map(|a| src(a)).collect();
            copy::concatenate(pool, &srcs, all.dst().expect(dst), *dim);
            Ok(all)
        }
        CollectiveKind::AllToAll { .. } => {
            let parts = members.iter().map(|member| part(step, member, position, cx));
            joined(step, &parts.collect::<Result<Vec<_>>>()?.iter().collect::<Vec<_>>(), cx)
        }
        CollectiveKind::Broadcast => Ok(members[0].clone()),
        CollectiveKind::Permute { .. } => unreachable!("a permutation is executed pair by pair"),
    }
}

/// Returns the type of the part of an operand that one member of the group needs.
pub(super) fn part_dims(step: &CollectiveStep) -> Vec<usize> {
    let mut dims = step.read.dims.to_vec();
    match &step.collective.kind {
        CollectiveKind::AllToAll { split, count, .. } => dims[*split] /= count,
        CollectiveKind::ReduceScatter { dim, .. } => dims[*dim] = step.write.dims[*dim],
        _ => {}
    }
    dims
}

/// Returns the part of an operand, or of the reduction of the operands, that the member at `position` needs.
pub(super) fn part(step: &CollectiveStep, operand: &Array, position: usize, cx: &Cx<'_>) -> Result<Array> {
    let dims = part_dims(step);
    let mut start = vec![0; dims.len()];
    if let CollectiveKind::AllToAll { split: dim, .. } | CollectiveKind::ReduceScatter { dim, .. } =
        &step.collective.kind
    {
        start[*dim] = position * dims[*dim];
    }
    let mut part = Array::allocate(&cx.runtime.allocator, operand.dtype(), dims.into())?;
    let dst = part.dst().expect("a new array has one holder");
    copy::slice(&cx.runtime.pool, src(operand), dst, &start, &vec![1; start.len()]);
    Ok(part)
}

/// Returns the result of the member whose parts of all operands are given, in the order of the group.
pub(super) fn joined(step: &CollectiveStep, parts: &[&Array], cx: &Cx<'_>) -> Result<Array> {
    let CollectiveKind::AllToAll { concat, .. } = &step.collective.kind else {
        return reduced(step, parts, cx);
    };
    let mut all = Array::allocate(&cx.runtime.allocator, step.write.dtype, (*step.write.dims).into())?;
    let srcs: Vec<Src<'_>> = parts.iter().map(|part| src(part)).collect();
    copy::concatenate(&cx.runtime.pool, &srcs, all.dst().expect("a new array has one holder"), *concat);
    Ok(all)
}

/// Reduces the operands of a group, or the same part of each of them, in the order of the members.
pub(super) fn reduced(step: &CollectiveStep, members: &[&Array], cx: &Cx<'_>) -> Result<Array> {
    if members[0].byte_len() != step.read.byte_len() {
        return reduced_in_blocks(step, members, cx);
    }
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

/// Reduces arrays of any size.
fn reduced_in_blocks(step: &CollectiveStep, members: &[&Array], cx: &Cx<'_>) -> Result<Array> {
    let code = step.combine_block.as_deref().expect("a reduction has a region");
    let (dtype, allocator) = (members[0].dtype(), &cx.runtime.allocator);
    let block = || Array::allocate(allocator, dtype, [REDUCTION_BLOCK].into());
    let (mut sum, mut member, mut next) = (block()?, block()?, block()?);
    let mut result = Array::allocate(allocator, dtype, members[0].dims().into())?;
    // The elements after the end of the last block have any value, as do the results that are computed from them.
    let fill = |block: &mut Array, part: &[u8]| {
        block.bytes_mut().expect("one holder")[..part.len()].copy_from_slice(part);
    };
    let len = result.byte_len();
    let mut start = 0;
    while start < len {
        let range = start..len.min(start + REDUCTION_BLOCK * dtype.size());
        fill(&mut sum, &members[0].bytes().expect("dense")[range.clone()]);
        for other in &members[1..] {
            fill(&mut member, &other.bytes().expect("dense")[range.clone()]);
            let out = &mut [next.dst().expect("one holder")];
            region::run(&cx.runtime.pool, code, &[src(&sum), src(&member)], out);
            std::mem::swap(&mut sum, &mut next);
        }
        let part = &sum.bytes().expect("dense")[..range.len()];
        result.bytes_mut().expect("one holder")[range.clone()].copy_from_slice(part);
        start = range.end;
    }
    Ok(result)
}

/// Converts groups of processes to groups of lane indices, without those that have no lane here.
///
/// # Errors
/// [`RunErrorKind::Unimplemented`] if only some processes of a group have lanes here.
fn groups(groups: &Groups, lanes: &[Lane]) -> Result<Vec<Vec<usize>>> {
    let mut found = Vec::new();
    let all: Vec<Process> = lanes.iter().map(|lane| lane.process).collect();
    for (list, processes) in processes(groups, &all) {
        let lane = |process: &Process| lanes.iter().position(|lane| lane.process == *process);
        let members: Vec<usize> = processes.iter().filter_map(lane).collect();
        if members.is_empty() {
            continue;
        }
        if members.len() < processes.len() {
            return Err(RunError::new(
                RunErrorKind::Unimplemented,
                format!(
                    "not all devices of the collective's group {list:?} take part in this computation: a manual computation \
                     inside another, along other axes, is not supported in a program that calls the host"
                ),
            ));
        }
        found.push(members);
    }
    Ok(found)
}
