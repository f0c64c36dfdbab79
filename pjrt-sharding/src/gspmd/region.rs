//! Finds the manual regions of a block.

use super::Border;
use crate::error::{Error, Result};
use pjrt_stablehlo::ir::{BlockId, Body, Op, OpId, Operation, Trait, ValueId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};

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
    /// The whole arrays that operations on parts use. Each partition has them whole.
    pub(super) wholes: Vec<ValueId>,
    /// The operations on parts.
    pub(super) ops: Vec<OpId>,
    /// The custom calls that convert parts to whole arrays.
    pub(super) outputs: Vec<OpId>,
}

/// Returns the steps of a block.
///
/// # Errors
/// Returns an error if a region contains another one, or if regions depend on each other in a circle.
pub(super) fn steps(body: &Body, block: BlockId) -> Result<Vec<Step>> {
    let ops = &body.block(block).ops;
    if ops.iter().all(|id| Border::of(body.op(*id)).is_none()) {
        return Ok(ops.iter().copied().map(Step::Op).collect());
    }
    let mut finder = Finder::new(body, ops);
    finder.find_parts()?;
    finder.find_wholes();
    let (regions, copied) = finder.regions();
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
    /// The whole arrays that operations on parts use.
    wholes: HashSet<ValueId>,
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
            wholes: HashSet::new(),
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

    /// Finds the whole arrays that operations on parts use: values that depend on arrays of the program. Other values, such as
    /// constants and the number of the partition, are computed in the region.
    fn find_wholes(&mut self) {
        let mut constants = HashSet::new();
        let on_parts = (0..self.ops.len()).filter(|i| !self.uses_whole_arrays(*i));
        let values = on_parts.flat_map(|i| self.uses[i].iter().copied());
        self.wholes =
            values.filter(|v| !self.is_part(*v) && self.depends_on_arrays(*v, &mut constants)).collect();
    }

    fn is_part(&self, value: ValueId) -> bool {
        self.definition.get(&value).is_some_and(|from| self.gives_parts(*from))
    }

    /// Returns whether a value depends on an argument of a block or on a result of a region. Adds the operations on which it
    /// depends to `constants` otherwise.
    fn depends_on_arrays(&self, value: ValueId, constants: &mut HashSet<OpId>) -> bool {
        let (mut work, mut seen) = (vec![value], HashSet::new());
        while let Some(value) = work.pop() {
            let op = self.body.defining_op(value).filter(|op| Border::of(self.body.op(*op)).is_none());
            let Some(op) = op else { return true };
            if !constants.contains(&op) && seen.insert(op) {
                work.extend(outer_uses(self.body, op));
            }
        }
        constants.extend(seen);
        false
    }

    /// Returns whether the results of an operation are parts.
    fn gives_parts(&self, i: usize) -> bool {
        self.on_parts[i] && self.borders[i] != Some(Border::ToFull)
    }

    /// Returns whether an operation is outside regions, or at the border into one.
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
    fn regions(&self) -> (BTreeMap<usize, ManualRegion>, HashMap<OpId, usize>) {
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
            let wholes: BTreeSet<ValueId> = members.iter().flat_map(|i| self.wholes_of(*i)).collect();
            let mut ops = self.constants(&members);
            ops.iter().for_each(|op| *copied.entry(*op).or_default() += 1);
            ops.extend(of(None));
            let region = ManualRegion {
                inputs: of(Some(Border::ToShard)),
                wholes: wholes.into_iter().collect(),
                ops,
                outputs: of(Some(Border::ToFull)),
            };
            // A region in which nothing happens is that of an unused argument.
            if !region.ops.is_empty() || !region.outputs.is_empty() {
                regions.insert(first, region);
            }
        }
        (regions, copied)
    }

    /// Returns the whole arrays that an operation on parts uses.
    fn wholes_of(&self, i: usize) -> impl Iterator<Item = ValueId> + '_ {
        let uses = if self.uses_whole_arrays(i) { &[] } else { &self.uses[i][..] };
        uses.iter().copied().filter(|value| self.wholes.contains(value))
    }

    /// Returns the operations outside a region on which its members depend and that depend on no array of the program, each
    /// after those that it depends on.
    fn constants(&self, members: &[usize]) -> Vec<OpId> {
        let (mut order, mut done) = (vec![], HashSet::new());
        let definitions = |values: &[ValueId]| -> Vec<(OpId, bool)> {
            let outside =
                values.iter().filter(|value| !self.is_part(**value) && !self.wholes.contains(value));
            outside.filter_map(|value| Some((self.body.defining_op(*value)?, false))).collect()
        };
        for i in members.iter().filter(|i| self.borders[**i] != Some(Border::ToShard)) {
            let mut work = definitions(&self.uses[*i]);
            while let Some((op, has_operands)) = work.pop() {
                if has_operands {
                    order.push(op);
                } else if done.insert(op) {
                    work.push((op, true));
                    work.extend(definitions(&outer_uses(self.body, op)));
                }
            }
        }
        order
    }

    /// Returns the operations whose results are used only in regions, which contain copies of them.
    fn only_in_regions(&self, copied: &HashMap<OpId, usize>) -> HashSet<usize> {
        let mut used: HashSet<usize> = HashSet::new();
        let mut dropped = HashSet::new();
        for i in (0..self.ops.len()).rev() {
            if copied.contains_key(&self.ops[i]) && !used.contains(&i) {
                dropped.insert(i);
            } else {
                used.extend(self.definitions_outside(i));
            }
        }
        dropped
    }

    /// Returns the operations whose results an operation uses whole.
    fn definitions_outside(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let is_outside = self.uses_whole_arrays(i);
        let uses = self.uses[i].iter().filter(move |value| is_outside || self.wholes.contains(value));
        uses.filter_map(|value| self.definition.get(value).copied())
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
            needs.entry(step).or_default().extend(self.definitions_outside(i).map(step_of));
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
