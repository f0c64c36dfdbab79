//! Combines steps that work on rows independently of each other, so that they run on blocks of rows that stay in the cache.

use super::assign::lives;
use super::emitter::{Buffer, Emitter};
use super::row_op::{RowOp, row_op};
use crate::graph::ops::Reduce;
use crate::graph::{Op, Reducer};
use crate::plan::{Call, Home, Kernel, RowBlocks, Step};
use crate::storage::{Part, Rows, View};
use refcpu_kernels::region::{Region, RowAccess};
use std::collections::BTreeSet;

/// The size of the arrays of a block in bytes, which leaves half of a second-level cache to other data.
const BLOCK_BYTES: usize = 192 << 10;
/// The size of all arrays in bytes from which blocks save time.
const MIN_BYTES: usize = 512 << 10;
/// The number of blocks that balance the load of a few threads.
const BLOCKS: usize = 16;

/// Replaces sequences of steps by steps on blocks of rows.
pub(super) fn row_blocks(e: &mut Emitter) {
    let targets = targets(&e.steps);
    let lives = lives(&e.steps, e.buffers.len());
    let mut groups: Vec<Found> = vec![];
    let mut at = 0;
    while at < e.steps.len() {
        let end = targets.range(at + 1..).next().map_or(e.steps.len(), |t| *t);
        match best_group(&e.steps, at, end, &e.buffers, &lives) {
            Some(found) => {
                at = found.steps.end;
                groups.push(found);
            }
            None => at += 1,
        }
    }
    for found in &groups {
        let later: Vec<&Step> = found.later.iter().map(|at| &e.steps[*at]).collect();
        withdraw_donations(&found.group, &later, &e.buffers, &mut e.donors);
    }
    let removed = |at: usize| {
        let before = groups.iter().filter(|found| found.steps.start < at);
        before.map(|found| found.steps.len() - 1 - found.later.len()).sum::<usize>()
    };
    let new = |at: usize| at - removed(at);
    for step in &mut e.steps {
        match step {
            Step::Jump(to) | Step::JumpIfNot { to, .. } => *to = new(*to),
            Step::Branch { to, .. } => to.iter_mut().for_each(|to| *to = new(*to)),
            _ => {}
        }
    }
    e.loops.iter_mut().for_each(|(top, end)| (*top, *end) = (new(*top), new(*end)));
    for Found { steps, later, group } in groups.into_iter().rev() {
        let locations: Vec<_> = later.iter().map(|at| e.locations[*at].clone()).collect();
        e.locations.splice(steps.start + 1..steps.end, locations);
        let mut at = steps.start..;
        let replaced: Vec<Step> = e.steps.splice(steps, [Step::RowBlocks(Box::new(group))]).collect();
        let start = at.start + 1;
        let kept = replaced.into_iter().filter(|_| at.next().is_some_and(|at| later.contains(&at)));
        let kept: Vec<Step> = kept.collect();
        e.steps.splice(start..start, kept);
    }
}

/// A group that was found.
struct Found {
    /// The steps from the first to the last one of the group.
    steps: std::ops::Range<usize>,
    /// The steps among these that do not belong to the group, and run after it.
    later: Vec<usize>,
    group: RowBlocks,
}

/// Withdraws the donations of parameters to results of a group that other blocks of the group read, or steps that run after the
/// group instead of before its last step.
fn withdraw_donations(group: &RowBlocks, later: &[&Step], buffers: &[Buffer], donors: &mut [Option<u32>]) {
    let read_later = |donor| {
        let mut used = later.iter().flat_map(|step| ranges(step));
        used.any(|(range, _)| buffers[range.buffer as usize].home == Some(Home::Parameter(donor)))
    };
    let home = |p: &Part| buffers[p.view.slot as usize].home;
    for written in group.rows.parts.iter().filter(|p| p.is_written) {
        let Some(Home::Result(k)) = home(written) else { continue };
        let Some(donor) = donors[k as usize] else { continue };
        let conflicts =
            |p: &Part| home(p) == Some(Home::Parameter(donor)) && !(p.is_contained && p.row == written.row);
        if group.rows.parts.iter().any(conflicts) || read_later(donor) {
            donors[k as usize] = None;
        }
    }
}

/// Returns the steps at which jumps continue.
fn targets(steps: &[Step]) -> BTreeSet<usize> {
    let mut targets = BTreeSet::new();
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Jump(to) => drop(targets.insert(*to)),
            Step::JumpIfNot { to, .. } => drop(targets.insert(*to)),
            Step::Branch { to, .. } => targets.extend(to),
            _ => continue,
        }
        targets.insert(at + 1);
    }
    targets
}

/// The first and the last step that uses each buffer.
type Lives = [Option<(usize, usize)>];

/// The number of steps between those of a group that may run after it.
const MAX_LATER: usize = 4;

/// Returns the longest group that begins at a step. The group ends before step `end`.
fn best_group(steps: &[Step], at: usize, end: usize, buffers: &[Buffer], lives: &Lives) -> Option<Found> {
    let Step::Run(first) = &steps[at] else { return None };
    // Only steps that work on the rows of some reduction are combined.
    let reductions = steps[at..end].iter().take(6).filter_map(|s| match s {
        Step::Run(call) => reduced_rows(call),
        _ => None,
    });
    let mut best: Option<Found> = None;
    for rows in reductions {
        if rows < 2 || on_rows(first, rows).is_none() {
            continue;
        }
        let (group, range, later) = group_from(steps, at, end, rows);
        let members = |range: &std::ops::Range<usize>, later: &[usize]| range.len() - later.len();
        let is_longer = |best: &Found| members(&range, &later) > members(&best.steps, &best.later);
        let used_later: BTreeSet<u32> =
            later.iter().flat_map(|at| ranges(&steps[*at])).map(|(range, _)| range.buffer).collect();
        if best.as_ref().is_none_or(is_longer)
            && let Some(group) = group.finish(range.clone(), &used_later, buffers, lives)
        {
            best = Some(Found { steps: range, later, group });
        }
    }
    best
}

/// Returns the group of the steps from `at` that work on rows, their range, and the steps in it that run after the group,
/// because they work on other rows, and no later step of the group depends on them.
fn group_from(
    steps: &[Step],
    at: usize,
    end: usize,
    rows: usize,
) -> (Group<'_>, std::ops::Range<usize>, Vec<usize>) {
    let mut group = Group::new(rows);
    let (mut later, mut last): (Vec<usize>, usize) = (vec![], at);
    for (next, step) in steps.iter().enumerate().take(end).skip(at) {
        let Step::Run(call) = step else { break };
        if !later.iter().any(|at| depends(step, &steps[*at])) && group.add(call) {
            last = next + 1;
        } else if later.len() < MAX_LATER {
            later.push(next);
        } else {
            break;
        }
    }
    later.retain(|at| *at < last);
    (group, at..last, later)
}

/// Returns the arrays that a step reads, with `false`, and those that it writes, with `true`.
fn ranges(step: &Step) -> Vec<(Range, bool)> {
    let Step::Run(call) = step else { return vec![] };
    let reads = call.reads.iter().map(|view| (Range::of(view), false));
    reads.chain(call.writes.iter().map(|view| (Range::of(view), true))).collect()
}

/// Returns whether one of two steps writes an array that the other reads or writes.
fn depends(a: &Step, b: &Step) -> bool {
    let of_b = ranges(b);
    ranges(a).iter().any(|(x, writes)| of_b.iter().any(|(y, written)| (*writes || *written) && x.overlaps(y)))
}

/// Returns the number of rows that a call reduces.
fn reduced_rows(call: &Call) -> Option<usize> {
    match &call.kernel {
        Kernel::Op(Op::Reduce(reduce)) => reduce_on_rows(reduce, &call.reads[0]).map(|(kept, _)| kept),
        Kernel::Region(region) => {
            let reduced = region.outputs().iter().position(|o| o.reduce.is_some())?;
            Some(region.output_dims(reduced).iter().product())
        }
        _ => None,
    }
}

/// Returns the number of elements that a reduction keeps, and how many it reduces to one, if those follow each other in memory.
fn reduce_on_rows(reduce: &Reduce, x: &View) -> Option<(usize, usize)> {
    let kept = x.dims.len() - reduce.dims.len();
    let trails = (kept..x.dims.len()).all(|d| reduce.dims.contains(&d));
    let (outer, inner) = x.dims.split_at(kept);
    (trails && matches!(reduce.reducer, Reducer::Op(_)))
        .then(|| (outer.iter().product(), inner.iter().product()))
}

/// A call on rows: its operands, and its kernel for a number of rows.
struct OnRows<'a> {
    accesses: Vec<RowAccess>,
    kernel: RowKernel<'a>,
}

enum RowKernel<'a> {
    Region(&'a Region),
    /// A reduction of this many runs of this length in each row.
    Reduce(&'a Reducer, usize, usize),
    Op(RowOp),
}

/// Returns a call as one on rows.
fn on_rows(call: &Call, rows: usize) -> Option<OnRows<'_>> {
    match &call.kernel {
        Kernel::Region(region) => {
            let accesses = region.row_accesses(rows)?;
            Some(OnRows { accesses, kernel: RowKernel::Region(region) })
        }
        Kernel::Op(Op::Reduce(reduce)) if reduce_on_rows(reduce, &call.reads[0]).is_some() => {
            let (kept, length) = reduce_on_rows(reduce, &call.reads[0])?;
            let runs = kept.checked_div(rows).filter(|runs| runs * rows == kept)?;
            let kernel = RowKernel::Reduce(&reduce.reducer, runs, length);
            let x = RowAccess { stride: runs * length, end: runs * length };
            Some(OnRows { accesses: vec![x, RowAccess { stride: 0, end: 1 }], kernel })
        }
        Kernel::Op(op) => {
            let row = row_op(op, call, rows)?;
            let access = |dims: &Option<Box<[usize]>>| {
                let stride = dims.as_ref().map_or(0, |dims| dims.iter().product());
                RowAccess { stride, end: stride }
            };
            Some(OnRows { accesses: row.reads.iter().map(access).collect(), kernel: RowKernel::Op(row) })
        }
        _ => None,
    }
}

/// An array of a group: a range of a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    buffer: u32,
    offset: usize,
    bytes: usize,
}

impl Range {
    fn of(view: &View) -> Self {
        Self { buffer: view.slot, offset: view.offset, bytes: view.byte_len() }
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.buffer == other.buffer
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

/// A group under construction.
struct Group<'a> {
    rows: usize,
    parts: Vec<(Range, Part)>,
    calls: Vec<Member<'a>>,
}

/// A call of a group. Its operands and results are parts.
struct Member<'a> {
    call: &'a Call,
    kernel: RowKernel<'a>,
    reads: Vec<usize>,
    writes: Vec<usize>,
}

impl<'a> Group<'a> {
    fn new(rows: usize) -> Self {
        Self { rows, parts: vec![], calls: vec![] }
    }

    /// Adds a call, if it works on the rows of the group.
    fn add(&mut self, call: &'a Call) -> bool {
        let Some(on_rows) = on_rows(call, self.rows) else { return false };
        let before = self.parts.clone();
        match self.add_parts(&on_rows, call) {
            Some((reads, writes)) => {
                self.calls.push(Member { call, kernel: on_rows.kernel, reads, writes });
                true
            }
            None => {
                self.parts = before;
                false
            }
        }
    }

    /// Adds the operands and the results of a call.
    fn add_parts(&mut self, on_rows: &OnRows<'_>, call: &Call) -> Option<(Vec<usize>, Vec<usize>)> {
        let mut reads = vec![];
        for (view, access) in call.reads.iter().zip(&on_rows.accesses) {
            let row = access.stride * view.dtype.size();
            let is_contained = row > 0 && row * self.rows == view.byte_len() && access.end <= access.stride;
            reads.push(self.part(view, row, is_contained, false)?);
        }
        let mut writes = vec![];
        for view in &call.writes {
            let row = view.byte_len() / self.rows;
            if row * self.rows != view.byte_len() || row == 0 {
                return None;
            }
            writes.push(self.part(view, row, true, true)?);
        }
        Some((reads, writes))
    }

    /// Returns the part for an array that is read or written. There is none if another part overlaps it, and one of them is
    /// written.
    fn part(&mut self, view: &View, row: usize, is_contained: bool, is_written: bool) -> Option<usize> {
        let range = Range::of(view);
        let same = |(r, p): &(Range, Part)| *r == range && p.row == row && p.is_contained == is_contained;
        let known = self.parts.iter().position(same);
        let mut others = self.parts.iter().enumerate().filter(|(i, _)| Some(*i) != known);
        if others.any(|(_, (r, p))| r.overlaps(&range) && (is_written || p.is_written)) {
            return None;
        }
        let index = known.unwrap_or_else(|| {
            let (view, is_read) = (view.clone(), !is_written);
            self.parts.push((range, Part { view, row, is_contained, is_read, is_written }));
            self.parts.len() - 1
        });
        self.parts[index].1.is_written |= is_written;
        Some(index)
    }

    /// Returns the step that replaces these steps, if it is worthwhile. Steps after the group use the buffers `used_later`.
    fn finish(
        self,
        steps: std::ops::Range<usize>,
        used_later: &BTreeSet<u32>,
        buffers: &[Buffer],
        lives: &Lives,
    ) -> Option<RowBlocks> {
        let is_local = |p: &Part| {
            let buffer = p.view.slot as usize;
            let inside = lives[buffer].is_some_and(|(s, e)| steps.contains(&s) && steps.contains(&e));
            let inside = inside && !used_later.contains(&p.view.slot);
            p.is_written && !p.is_read && inside && buffers[buffer].home.is_none()
        };
        let per_row: usize = self.parts.iter().filter(|(_, p)| p.is_contained).map(|(_, p)| p.row).sum();
        let has_local = self.parts.iter().any(|(_, p)| is_local(p));
        let reduces = self.calls.iter().any(|member| reduced_rows(member.call).is_some());
        if !reduces
            || per_row == 0
            || per_row * self.rows < MIN_BYTES
            || per_row * 4 > BLOCK_BYTES * 3
            || !has_local
        {
            return None;
        }
        let block = (BLOCK_BYTES / per_row).clamp(1, self.rows.div_ceil(BLOCKS));
        let (local, outer): (Vec<usize>, Vec<usize>) =
            (0..self.parts.len()).partition(|i| is_local(&self.parts[*i].1));
        let order: Vec<usize> = outer.iter().chain(&local).copied().collect();
        let slot = |part: usize| order.iter().position(|i| *i == part).expect("every part has a slot") as u32;
        let calls = |count: usize| -> Option<Vec<Call>> {
            self.calls.iter().map(|member| member.on_block(self.rows, count, &slot)).collect()
        };
        let rest = self.rows % block;
        let (full, last) = (calls(block)?, if rest > 0 { calls(rest)? } else { vec![] });
        let ns = full.iter().map(estimated_ns).sum();
        let rows = Rows {
            count: self.rows,
            block,
            parts: outer.iter().map(|i| self.parts[*i].1.clone()).collect(),
            local: local.iter().map(|i| self.parts[*i].1.row).collect(),
        };
        Some(RowBlocks { rows, full, last, ns })
    }
}

/// Returns the dimensions of a number of rows.
fn with_count(count: usize, row: &[usize]) -> Vec<usize> {
    std::iter::once(count).chain(row.iter().copied()).collect()
}

fn estimated_ns(call: &Call) -> f64 {
    match &call.kernel {
        Kernel::Region(region) => region.estimated_ns(),
        _ => call.reads[0].byte_len() as f64 / 32.0,
    }
}

impl Member<'_> {
    /// Returns the call for `count` of `rows` rows. `slot` returns the slot of a part.
    fn on_block(&self, rows: usize, count: usize, slot: &dyn Fn(usize) -> u32) -> Option<Call> {
        let view = |part: usize, old: &View, dims: &[usize]| View::new(slot(part), 0, old.dtype, dims);
        let old = self.reads.iter().zip(&self.call.reads);
        let (kernel, reads) = match &self.kernel {
            RowKernel::Region(region) => {
                let block = region.row_block(rows, count)?;
                let reads = old.enumerate().map(|(k, (part, old))| view(*part, old, &[block.input_len(k)]));
                let reads = reads.collect();
                (Kernel::Region(Box::new(block)), reads)
            }
            RowKernel::Reduce(reducer, runs, length) => {
                let reduce = Reduce { dims: vec![1], reducer: (*reducer).clone() };
                let dims: [&[usize]; 2] = [&[count * runs, *length], &[]];
                let reads = old.zip(dims).map(|((part, old), dims)| view(*part, old, dims)).collect();
                (Kernel::Op(Op::Reduce(reduce)), reads)
            }
            RowKernel::Op(row) => {
                let dims = |row: &Option<Box<[usize]>>| {
                    row.as_ref().map(|row| with_count(count, row)).unwrap_or_default()
                };
                let reads =
                    old.zip(&row.reads).map(|((part, old), row)| view(*part, old, &dims(row))).collect();
                let old = self.writes.iter().zip(&self.call.writes).zip(&row.writes);
                let writes =
                    old.map(|((part, old), row)| view(*part, old, &with_count(count, row))).collect();
                return Some(Call { kernel: Kernel::Op(row.op.clone()), reads, writes });
            }
        };
        let of_rows = |old: &View| old.dims.iter().product::<usize>() / rows * count;
        let old = self.writes.iter().zip(&self.call.writes).enumerate();
        let writes = old.map(|(k, (part, old))| match &kernel {
            Kernel::Region(region) => view(*part, old, region.output_dims(k)),
            _ => view(*part, old, &[of_rows(old)]),
        });
        Some(Call { writes: writes.collect(), kernel, reads })
    }
}
