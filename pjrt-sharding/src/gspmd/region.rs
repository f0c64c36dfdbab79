//! Finds the manual regions of a block.

use super::Border;
use crate::error::{Error, Result};
use pjrt_stablehlo::ir::{BlockId, Body, Op, OpId, Operation, Trait, ValueId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};

/// A step of a block in which each manual region is one step.
pub(super) enum Step {
    /// An operation on whole arrays.
    Op(OpId),
    /// A manual region.
    Region(ManualRegion),
}

/// The operations of a manual region, in an order in which they can run.
pub(super) struct ManualRegion {
    /// The custom calls that convert whole arrays to parts.
    pub(super) inputs: Vec<OpId>,
    /// The operations on parts.
    pub(super) ops: Vec<OpId>,
    /// The custom calls that convert parts to whole arrays.
    pub(super) outputs: Vec<OpId>,
}

/// Returns the steps of a block.
///
/// # Errors
/// Returns an error if an operation uses both parts and whole arrays, or if regions depend on each other in a circle.
pub(super) fn steps(body: &Body, block: BlockId) -> Result<Vec<Step>> {
    let ops = &body.block(block).ops;
    if ops.iter().all(|id| Border::of(body.op(*id)).is_none()) {
        return Ok(ops.iter().copied().map(Step::Op).collect());
    }
    let mut finder = Finder::new(body, ops);
    finder.find_parts()?;
    let (regions, copied) = finder.regions()?;
    let dropped = finder.only_in_regions(&copied);
    finder.check_repeated(&copied, &dropped)?;
    finder.in_order(regions, &dropped)
}

/// The operations of a block, by their index.
struct Finder<'b> {
    body: &'b Body,
    ops: &'b [OpId],
    borders: Vec<Option<Border>>,
    /// For each operation, the values that it and its regions use from outside them.
    uses: Vec<Vec<ValueId>>,
    /// The index of the operation that defines a value.
    definition: HashMap<ValueId, usize>,
    /// For each operation, whether its operands or results are parts.
    on_parts: Vec<bool>,
    /// For each operation, another one of the same region, or itself: a forest of disjoint sets.
    region: Vec<usize>,
}

impl<'b> Finder<'b> {
    fn new(body: &'b Body, ops: &'b [OpId]) -> Self {
        let results = |(i, id): (usize, &OpId)| body.op(*id).results.iter().map(move |result| (result, i));
        Self {
            body,
            ops,
            borders: ops.iter().map(|id| Border::of(body.op(*id))).collect(),
            uses: ops.iter().map(|id| outer_uses(body, *id)).collect(),
            definition: ops.iter().enumerate().flat_map(results).collect(),
            on_parts: vec![false; ops.len()],
            region: (0..ops.len()).collect(),
        }
    }

    /// Finds the operations that depend on a part, and joins operations that exchange parts to regions.
    fn find_parts(&mut self) -> Result<()> {
        for i in 0..self.ops.len() {
            for value in self.uses[i].clone() {
                let Some(from) = self.definition.get(&value).copied().filter(|from| self.gives_parts(*from))
                else {
                    continue;
                };
                if self.borders[i] == Some(Border::ToShard) {
                    let why = "the operand is already a part of an array: manual regions in manual regions are not \
                               supported";
                    return Err(self.unsupported(i, why));
                }
                if self.body.op(self.ops[i]).info().has(Trait::Terminator) {
                    let why = "the operation returns a part of an array that does not pass SPMDShardToFullShape before the end of \
                               its block";
                    return Err(self.unsupported(i, why));
                }
                self.on_parts[i] = true;
                let (a, b) = (self.region_of(i), self.region_of(from));
                self.region[a.max(b)] = a.min(b);
            }
            self.on_parts[i] |= self.borders[i].is_some();
        }
        Ok(())
    }

    /// Returns whether the results of an operation are parts.
    fn gives_parts(&self, i: usize) -> bool {
        self.on_parts[i] && self.borders[i] != Some(Border::ToFull)
    }

    /// Returns whether an operation uses values outside regions. Operations in regions use copies of constants.
    fn uses_whole_arrays(&self, i: usize) -> bool {
        !self.on_parts[i] || self.borders[i] == Some(Border::ToShard)
    }

    /// Returns the first operation of the region that an operation belongs to.
    fn region_of(&self, mut i: usize) -> usize {
        while self.region[i] != i {
            i = self.region[i];
        }
        i
    }

    fn unsupported(&self, i: usize, why: &str) -> Error {
        let op = self.body.op(self.ops[i]);
        Error::unsupported(why).in_op(op.kind.name(), &op.location)
    }

    /// Returns the regions, by the index of their first operation, and the number of copies of each operation that is copied
    /// into regions.
    fn regions(&self) -> Result<(BTreeMap<usize, ManualRegion>, HashMap<OpId, usize>)> {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for i in (0..self.ops.len()).filter(|i| self.on_parts[*i]) {
            members.entry(self.region_of(i)).or_default().push(i);
        }
        let mut copied: HashMap<OpId, usize> = HashMap::new();
        let mut regions = BTreeMap::new();
        for (first, members) in members {
            let of = |border| {
                let members = members.iter().filter(move |i| self.borders[**i] == border);
                members.map(|i| self.ops[*i]).collect::<Vec<_>>()
            };
            let mut ops = self.constants(&members)?;
            ops.iter().for_each(|op| *copied.entry(*op).or_default() += 1);
            ops.extend(of(None));
            let region =
                ManualRegion { inputs: of(Some(Border::ToShard)), ops, outputs: of(Some(Border::ToFull)) };
            // A region in which nothing happens is that of an unused argument.
            if !region.ops.is_empty() || !region.outputs.is_empty() {
                regions.insert(first, region);
            }
        }
        Ok((regions, copied))
    }

    /// Returns the operations outside a region on which its members depend, each after those that it depends on. They depend
    /// on no array of the program.
    fn constants(&self, members: &[usize]) -> Result<Vec<OpId>> {
        let (mut order, mut done) = (vec![], HashSet::new());
        for i in members.iter().filter(|i| self.borders[**i] != Some(Border::ToShard)) {
            let mut work: Vec<(OpId, bool)> = vec![];
            self.need(*i, &self.uses[*i], &mut work)?;
            while let Some((op, has_operands)) = work.pop() {
                if has_operands {
                    order.push(op);
                } else if done.insert(op) {
                    work.push((op, true));
                    self.need(*i, &outer_uses(self.body, op), &mut work)?;
                }
            }
        }
        Ok(order)
    }

    /// Adds the definitions of values that operation `i` depends on and that are not parts.
    fn need(&self, i: usize, values: &[ValueId], work: &mut Vec<(OpId, bool)>) -> Result<()> {
        for value in values {
            if self.definition.get(value).is_some_and(|from| self.gives_parts(*from)) {
                continue;
            }
            let op = self.body.defining_op(*value).filter(|op| Border::of(self.body.op(*op)).is_none());
            let Some(op) = op else {
                let ty = self.body.ty(*value);
                let why = format!(
                    "the operation is in a manual region, but depends on a whole array of type {ty} that does not pass \
                     SPMDFullToShardShape"
                );
                return Err(self.unsupported(i, &why));
            };
            work.push((op, false));
        }
        Ok(())
    }

    /// Returns the operations whose results are used only in regions, which contain copies of them.
    fn only_in_regions(&self, copied: &HashMap<OpId, usize>) -> HashSet<usize> {
        let mut used: HashSet<usize> = HashSet::new();
        let mut dropped = HashSet::new();
        for i in (0..self.ops.len()).rev() {
            if copied.contains_key(&self.ops[i]) && !used.contains(&i) {
                dropped.insert(i);
            } else if self.uses_whole_arrays(i) {
                used.extend(self.uses[i].iter().filter_map(|value| self.definition.get(value)));
            }
        }
        dropped
    }

    /// Checks that no operation with side effects runs several times because of its copies.
    fn check_repeated(&self, copied: &HashMap<OpId, usize>, dropped: &HashSet<usize>) -> Result<()> {
        for (i, id) in self.ops.iter().enumerate() {
            let copies = copied.get(id).copied().unwrap_or(0);
            if copies + usize::from(!dropped.contains(&i)) > 1 && !is_repeatable(self.body.op(*id)) {
                let why = "the operation has side effects, and is used by several manual regions, or by one and the program outside";
                return Err(self.unsupported(i, why));
            }
        }
        Ok(())
    }

    /// Returns the steps in an order in which they can run, which is that of the block as far as possible.
    fn in_order(
        &self,
        regions: BTreeMap<usize, ManualRegion>,
        dropped: &HashSet<usize>,
    ) -> Result<Vec<Step>> {
        let step_of = |i: usize| if self.on_parts[i] { self.region_of(i) } else { i };
        let mut needs: BTreeMap<usize, HashSet<usize>> = BTreeMap::new();
        for i in (0..self.ops.len()).filter(|i| !dropped.contains(i)) {
            let step = step_of(i);
            let needs = needs.entry(step).or_default();
            if self.uses_whole_arrays(i) {
                let steps = self.uses[i].iter().filter_map(|value| self.definition.get(value));
                needs.extend(steps.map(|from| step_of(*from)));
            }
        }
        let mut users: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut missing: HashMap<usize, usize> = HashMap::new();
        let mut ready = BinaryHeap::new();
        for (step, needs) in &needs {
            needs.iter().for_each(|need| users.entry(*need).or_default().push(*step));
            missing.insert(*step, needs.len());
            if needs.is_empty() {
                ready.push(Reverse(*step));
            }
        }
        let (mut regions, mut order) = (regions, vec![]);
        while let Some(Reverse(step)) = ready.pop() {
            missing.remove(&step);
            match regions.remove(&step) {
                Some(region) => order.push(Step::Region(region)),
                None if self.on_parts[step] => {}
                None => order.push(Step::Op(self.ops[step])),
            }
            for user in users.get(&step).into_iter().flatten() {
                let missing = missing.get_mut(user).expect("a step is taken after those that it needs");
                *missing -= 1;
                if *missing == 0 {
                    ready.push(Reverse(*user));
                }
            }
        }
        match regions.pop_first() {
            Some((first, _)) => {
                let why =
                    "an argument of the operation's manual region depends on a result of the same region";
                Err(self.unsupported(first, why))
            }
            None => Ok(order),
        }
    }
}

/// Returns the values that an operation and its regions use and do not define.
fn outer_uses(body: &Body, op: OpId) -> Vec<ValueId> {
    let mut uses = body.op(op).operands.to_vec();
    let (mut inner, mut defined) = (vec![], HashSet::new());
    let mut work = body.op(op).regions.clone();
    while let Some(region) = work.pop() {
        for block in &body.region(region).blocks {
            defined.extend(body.block(*block).arguments.iter().copied());
            for (_, op) in body.block_ops(*block) {
                defined.extend(op.results.iter());
                inner.extend(op.operands.iter().copied());
                work.extend(&op.regions);
            }
        }
    }
    uses.extend(inner.into_iter().filter(|value| !defined.contains(value)));
    uses
}

/// Returns whether an operation can run several times instead of once.
fn is_repeatable(op: &Operation) -> bool {
    let is_call_with_effects = matches!(&op.kind, Op::CustomCall(call) if call.has_side_effect);
    !op.info().has(Trait::SideEffect) && !is_call_with_effects && !matches!(op.kind, Op::Rng(_))
}
