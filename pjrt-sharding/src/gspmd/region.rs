//! Finds the manual regions of a block.

use super::Border;
use super::level::{Level, stated, text};
use crate::error::{Error, Result};
use pjrt_stablehlo::ir::{Body, Function, Op, OpId, Operation, Trait, ValueId};
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
#[derive(Default)]
pub(super) struct ManualRegion {
    /// The custom calls that convert whole arrays to parts.
    pub(super) inputs: Vec<OpId>,
    /// The whole arrays that operations on parts use. Each partition has them whole.
    pub(super) wholes: Vec<ValueId>,
    /// The parts of earlier regions that operations on parts use.
    pub(super) taken: Vec<ValueId>,
    /// The operations on parts. The regions in this region consist of some of them.
    pub(super) ops: Vec<OpId>,
    /// The custom calls that convert parts to whole arrays.
    pub(super) outputs: Vec<OpId>,
    /// The parts that later regions use.
    pub(super) given: Vec<ValueId>,
}

impl ManualRegion {
    /// Returns whether the region has no results and no effects, as that of an unused argument.
    fn is_unused(&self, body: &Body) -> bool {
        self.outputs.is_empty()
            && self.given.is_empty()
            && self.ops.iter().all(|op| has_no_effects(body, *op))
    }
}

/// Returns the steps of operations of a block, which are at a level. The operations in `users` use results of theirs on this
/// level.
///
/// If a region uses its own results as whole arrays, the operations that depend on these results form a later region.
///
/// # Errors
/// Returns an error if a part is used outside its region, or if an operation with side effects would have to run several times.
pub(super) fn steps(function: &Function, ops: &[OpId], users: &[OpId], level: &Level) -> Result<Vec<Step>> {
    let body = &function.body;
    if ops.iter().all(|id| Border::of(body.op(*id)).is_none()) {
        return Ok(ops.iter().copied().map(Step::Op).collect());
    }
    let mut finder = Finder::new(function, ops, level);
    finder.find_parts()?;
    finder.check_users(users)?;
    finder.find_wholes();
    let circles = finder.order(&HashSet::new()).stuck;
    if !circles.is_empty() {
        finder.separate(&circles);
    }
    let (regions, copied) = finder.regions();
    let dropped = finder.only_in_regions(&copied);
    finder.check_repeated(&copied, &dropped)?;
    finder.in_order(regions, &dropped)
}

/// The operations of a block, by their index.
struct Finder<'b> {
    function: &'b Function,
    body: &'b Body,
    ops: &'b [OpId],
    level: &'b Level,
    /// For each operation, whether it is at the border between this level and a region.
    borders: Vec<Option<Border>>,
    /// For each operation, the values that it and its regions use from outside them.
    uses: Vec<Vec<ValueId>>,
    /// The index of the operation that defines a value.
    definition: HashMap<ValueId, usize>,
    /// For each operation, whether its operands or results are parts.
    on_parts: Vec<bool>,
    /// For each operation, another one that exchanges parts with it, or itself: a forest of disjoint sets.
    joined: Vec<usize>,
    /// For each operation, the index of the first one of its step.
    step: Vec<usize>,
    /// The whole arrays that operations on parts use.
    wholes: HashSet<ValueId>,
}

/// The steps in an order in which they can run.
struct Order {
    steps: Vec<usize>,
    /// The steps that depend on themselves, and those that depend on such steps.
    stuck: HashSet<usize>,
}

impl<'b> Finder<'b> {
    fn new(function: &'b Function, ops: &'b [OpId], level: &'b Level) -> Self {
        let body = &function.body;
        let results = |(i, id): (usize, &OpId)| body.op(*id).results.iter().map(move |result| (result, i));
        Self {
            function,
            body,
            ops,
            level,
            borders: vec![None; ops.len()],
            uses: ops.iter().map(|id| outer_uses(body, *id)).collect(),
            definition: ops.iter().enumerate().flat_map(results).collect(),
            on_parts: vec![false; ops.len()],
            joined: (0..ops.len()).collect(),
            step: (0..ops.len()).collect(),
            wholes: HashSet::new(),
        }
    }

    /// Finds the operations that depend on a part, and joins operations that exchange parts to regions.
    fn find_parts(&mut self) -> Result<()> {
        for i in 0..self.ops.len() {
            let from = self.joined_by(i)?;
            self.borders[i] = self.border(i, !from.is_empty())?;
            self.on_parts[i] = !from.is_empty() || Border::of(self.body.op(self.ops[i])).is_some();
            if !from.is_empty() && self.body.op(self.ops[i]).info().has(Trait::Terminator) {
                let why = "the operation returns a part of an array that does not pass SPMDShardToFullShape before the end of \
                           its block";
                return Err(self.unsupported(i, why));
            }
            for from in from {
                let (a, b) = (self.first_joined(i), self.first_joined(from));
                self.joined[a.max(b)] = a.min(b);
            }
        }
        self.step = (0..self.ops.len()).map(|i| self.first_joined(i)).collect();
        Ok(())
    }

    /// Returns the operations that define the parts that an operation uses. A token is a part only for operations that the
    /// program states to be in a region: it can leave the region without a custom call.
    fn joined_by(&self, i: usize) -> Result<Vec<usize>> {
        let op = self.body.op(self.ops[i]);
        let is_in_region = self.level.stated_by(text(op), op)?.is_some_and(|level| level != *self.level);
        let joins = |value: &&ValueId| is_in_region || !self.body.ty(**value).is_token();
        Ok(self.uses[i].iter().filter(joins).filter_map(|value| self.part_from(*value)).collect())
    }

    /// Returns the border between this level and a region that an operation is at. Other borders are in a region.
    fn border(&self, i: usize, uses_parts: bool) -> Result<Option<Border>> {
        let op = self.body.op(self.ops[i]);
        let border = Border::of(op);
        let is_outermost = match border {
            None => false,
            Some(Border::ToShard) => {
                let level = self.level.stated_by(stated(self.function, op.operand(0)), op)?;
                !uses_parts && level.is_none_or(|level| level == *self.level)
            }
            Some(Border::ToFull) => {
                let level = self.level.stated_by(text(op), op)?;
                level.map_or(self.level.is_whole(), |level| level == *self.level)
            }
        };
        Ok(border.filter(|_| is_outermost))
    }

    /// Checks that operations outside the block use no parts.
    fn check_users(&self, users: &[OpId]) -> Result<()> {
        for id in users {
            let op = self.body.op(*id);
            if op.operands.iter().any(|value| self.part_from(*value).is_some()) {
                let why = "the operand is a part of an array of a manual region in the region that this custom call leaves";
                return Err(Error::unsupported(why).in_op(op.kind.name(), &op.location));
            }
        }
        Ok(())
    }

    /// Finds the whole arrays that operations on parts use: values that depend on arrays of the program. Other values, such as
    /// constants and the number of the partition, are computed in the region.
    fn find_wholes(&mut self) {
        let mut constants = HashSet::new();
        let on_parts = (0..self.ops.len()).filter(|i| !self.uses_whole_arrays(*i));
        let values = on_parts.flat_map(|i| self.uses[i].iter().copied());
        let is_whole =
            |v: &ValueId| self.part_from(*v).is_none() && self.depends_on_arrays(*v, &mut constants);
        self.wholes = values.filter(is_whole).collect();
    }

    /// Returns the operation that defines a value, if the value is a part.
    fn part_from(&self, value: ValueId) -> Option<usize> {
        let gives_parts = |from: &usize| self.on_parts[*from] && self.borders[*from] != Some(Border::ToFull);
        self.definition.get(&value).copied().filter(gives_parts)
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

    /// Returns whether an operation is outside regions, or at the border into one.
    fn uses_whole_arrays(&self, i: usize) -> bool {
        !self.on_parts[i] || self.borders[i] == Some(Border::ToShard)
    }

    /// Returns the first operation of the disjoint set that an operation belongs to.
    fn first_joined(&self, mut i: usize) -> usize {
        while self.joined[i] != i {
            i = self.joined[i];
        }
        i
    }

    fn unsupported(&self, i: usize, why: &str) -> Error {
        let op = self.body.op(self.ops[i]);
        Error::unsupported(why).in_op(op.kind.name(), &op.location)
    }

    /// Divides regions that use their own results. The operations that depend on equally many results in sequence form one
    /// region, so that no region depends on itself.
    fn separate(&mut self, circles: &HashSet<usize>) {
        let mut depth = vec![0; self.ops.len()];
        let mut first: HashMap<(usize, usize), usize> = HashMap::new();
        for i in 0..self.ops.len() {
            let from = self.uses[i].iter().filter_map(|value| self.definition.get(value));
            let after =
                |from: &usize| depth[*from] + usize::from(self.borders[*from] == Some(Border::ToFull));
            depth[i] = from.map(after).max().unwrap_or(0);
            if circles.contains(&self.step[i]) {
                self.step[i] = *first.entry((self.step[i], depth[i])).or_insert(i);
            }
        }
    }

    /// Returns the regions, by the index of their first operation, and the number of copies of each operation that is copied
    /// into regions.
    fn regions(&self) -> (BTreeMap<usize, ManualRegion>, HashMap<OpId, usize>) {
        let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for i in (0..self.ops.len()).filter(|i| self.on_parts[*i]) {
            members.entry(self.step[i]).or_default().push(i);
        }
        let mut given: HashMap<usize, BTreeSet<ValueId>> = HashMap::new();
        for (value, from) in (0..self.ops.len()).flat_map(|i| self.taken_by(i)) {
            given.entry(self.step[from]).or_default().insert(value);
        }
        let mut copied: HashMap<OpId, usize> = HashMap::new();
        let mut regions = BTreeMap::new();
        for (first, members) in members {
            let of = |border| {
                let members = members.iter().filter(move |i| self.borders[**i] == border);
                members.map(|i| self.ops[*i]).collect::<Vec<_>>()
            };
            let wholes: BTreeSet<ValueId> = members.iter().flat_map(|i| self.wholes_of(*i)).collect();
            let taken: BTreeSet<ValueId> =
                members.iter().flat_map(|i| self.taken_by(*i)).map(|(value, _)| value).collect();
            let mut ops = self.constants(&members);
            ops.iter().for_each(|op| *copied.entry(*op).or_default() += 1);
            ops.extend(of(None));
            let region = ManualRegion {
                inputs: of(Some(Border::ToShard)),
                wholes: wholes.into_iter().collect(),
                taken: taken.into_iter().collect(),
                ops,
                outputs: of(Some(Border::ToFull)),
                given: given.remove(&first).into_iter().flatten().collect(),
            };
            if !region.is_unused(self.body) {
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

    /// Returns the parts of other regions that an operation uses, each with the operation that defines it.
    fn taken_by(&self, i: usize) -> impl Iterator<Item = (ValueId, usize)> + '_ {
        let parts = self.uses[i].iter().filter_map(|value| Some((*value, self.part_from(*value)?)));
        parts.filter(move |(_, from)| self.step[*from] != self.step[i])
    }

    /// Returns the operations outside a region on which its members depend and that depend on no array of the program, each
    /// after those that it depends on.
    fn constants(&self, members: &[usize]) -> Vec<OpId> {
        let (mut order, mut done) = (vec![], HashSet::new());
        let definitions = |values: &[ValueId]| -> Vec<(OpId, bool)> {
            let outside = values
                .iter()
                .filter(|value| self.part_from(**value).is_none() && !self.wholes.contains(value));
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

    /// Returns the operations outside the step of an operation whose results it uses.
    fn definitions_outside(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let is_outside = self.uses_whole_arrays(i);
        let uses = self.uses[i].iter().filter(move |value| is_outside || self.wholes.contains(value));
        let whole = uses.filter_map(|value| self.definition.get(value).copied());
        whole.chain(self.taken_by(i).map(|(_, from)| from))
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

    /// Returns the order of the steps, which is that of the block as far as possible, without the operations in `dropped`.
    fn order(&self, dropped: &HashSet<usize>) -> Order {
        let mut needs: BTreeMap<usize, HashSet<usize>> = BTreeMap::new();
        for i in (0..self.ops.len()).filter(|i| !dropped.contains(i)) {
            let needs = needs.entry(self.step[i]).or_default();
            needs.extend(self.definitions_outside(i).map(|from| self.step[from]));
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
        let mut steps = vec![];
        while let Some(Reverse(step)) = ready.pop() {
            missing.remove(&step);
            steps.push(step);
            for user in users.get(&step).into_iter().flatten() {
                let missing = missing.get_mut(user).expect("a step is taken after those that it needs");
                *missing -= 1;
                if *missing == 0 {
                    ready.push(Reverse(*user));
                }
            }
        }
        Order { steps, stuck: missing.into_keys().collect() }
    }

    /// Returns the steps in order.
    fn in_order(
        &self,
        mut regions: BTreeMap<usize, ManualRegion>,
        dropped: &HashSet<usize>,
    ) -> Result<Vec<Step>> {
        let order = self.order(dropped);
        if let Some(first) = order.stuck.iter().min() {
            let op = self.body.op(self.ops[*first]);
            let why = "the operation depends on itself through manual regions";
            return Err(Error::internal(why).in_op(op.kind.name(), &op.location));
        }
        let step = |step: usize| match regions.remove(&step) {
            Some(region) => Some(Step::Region(region)),
            None => (!self.on_parts[step]).then(|| Step::Op(self.ops[step])),
        };
        Ok(order.steps.into_iter().filter_map(step).collect())
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

/// Returns whether an operation and those in its regions have no effects other than their results.
fn has_no_effects(body: &Body, op: OpId) -> bool {
    let mut work = vec![op];
    while let Some(op) = work.pop() {
        let op = body.op(op);
        if !is_repeatable(op) {
            return false;
        }
        let blocks = op.regions.iter().flat_map(|region| &body.region(*region).blocks);
        work.extend(blocks.flat_map(|block| &body.block(*block).ops));
    }
    true
}

/// Returns whether an operation can run several times instead of once.
fn is_repeatable(op: &Operation) -> bool {
    let is_call_with_effects = matches!(&op.kind, Op::CustomCall(call) if call.has_side_effect);
    !op.info().has(Trait::SideEffect) && !is_call_with_effects && !matches!(op.kind, Op::Rng(_))
}
