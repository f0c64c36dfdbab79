//! The relation that an operation states between the shardings of its tensors, and one step of propagation along it.
//!
//! The order and the resolution of conflicts are those of Shardy's propagation: splits move along all operations that do not
//! move data before they move along others, and along a broadcast to its result last. If two splits of a factor conflict, the
//! major part that they have in common is used.

use crate::cut::{Cut, coarse, common, product, refines};
use crate::rule::{FactorKind, ShardingRule, common_divisor};
use crate::split::{Split, are_spread_evenly};

/// The index of a tensor. A value that is a tuple has several tensors.
pub(super) type TensorId = usize;

/// The number of stages of propagation. Each stage propagates along the relations of the stages before it, and others.
pub(super) const STAGES: usize = 5;

/// The kind of an operation, which determines the stages in which splits move along its relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An elementwise operation.
    Elementwise,
    /// Another operation that keeps its elements, such as a transposition or the carrying of a value through a loop.
    Movement,
    /// A slice or an update of a slice at a computed position.
    DynamicSlice,
    Broadcast,
    Other,
}

/// The direction in which splits move along a relation. The splits of the tensors that they move to are taken into account only
/// as conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToResults,
    ToOperands,
    Both,
}

/// The way in which conflicts between the factors of an operation are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// A factor is split only as all tensors can be.
    Common,
    /// Each tensor is split as far as possible, along the factors of the largest tensors first.
    Each,
}

/// The relation between the shardings of the tensors of one operation.
pub(super) struct Relation {
    pub(super) rule: ShardingRule,
    /// The tensors of the operands, then those of the results. Operands and results that are not arrays have none.
    pub(super) tensors: Vec<Option<TensorId>>,
    pub(super) kind: Kind,
    /// `true` if all operands of rank 1 and more have no other use.
    pub(super) is_only_use: bool,
}

/// The split of one factor in one tensor.
#[derive(Clone)]
struct Cell {
    cut: Option<Cut>,
    closed: bool,
    is_minor_most: bool,
}

/// The splits of one tensor by factor; `None` for factors that the tensor does not have.
type Row = Vec<Option<Cell>>;

impl Relation {
    /// Returns the direction in which splits move along a factor in a stage.
    fn direction(&self, stage: usize, factor: usize) -> Option<Direction> {
        let factor = &self.rule.factors[factor];
        if factor.blocks_propagation || factor.size == 0 {
            return None;
        }
        let early = stage >= 1 || self.is_only_use;
        match self.kind {
            Kind::Elementwise | Kind::Movement if early => Some(Direction::Both),
            Kind::DynamicSlice if early && stage < 2 => Some(Direction::ToResults),
            _ if stage < 2 => None,
            Kind::Broadcast if stage < STAGES - 1 => Some(Direction::ToOperands),
            _ if stage >= 3 || factor.kind == FactorKind::PassThrough => Some(Direction::Both),
            Kind::DynamicSlice if early => Some(Direction::ToResults),
            _ => None,
        }
    }

    /// Returns whether splits move in other directions in a stage than in the one before.
    pub(super) fn turns(&self, stage: usize) -> bool {
        let differs = |factor| self.direction(stage, factor) != self.direction(stage - 1, factor);
        stage > 0 && (0..self.rule.factors.len()).any(differs)
    }

    /// Propagates the splits of the tensors to each other. Returns the tensors whose splits changed.
    pub(super) fn spread(&self, splits: &mut [Split], stage: usize, strategy: Strategy) -> Vec<TensorId> {
        let is_split = |tensor: &Option<TensorId>| {
            tensor.is_some_and(|tensor| splits[tensor].dims.iter().any(Option::is_some))
        };
        if !self.tensors.iter().any(is_split) {
            return vec![];
        }
        let mut rows: Vec<Row> = self.rows(splits);
        match strategy {
            Strategy::Common => self.spread_common(&mut rows, stage),
            Strategy::Each => self.spread_each(&mut rows, stage),
        }
        let mut changed = vec![];
        for (tensor, (mapping, row)) in self.tensors.iter().zip(self.mappings().zip(&rows)) {
            let Some(tensor) = *tensor else { continue };
            for (dim, factors) in mapping.iter().enumerate() {
                let cut = self.cut_of_dim(factors, row);
                let now = &mut splits[tensor].dims[dim];
                let is_finer = |cut: &Cut| now.as_ref().is_none_or(|now| now != cut && refines(cut, now));
                if let Some(cut) = cut.filter(is_finer) {
                    *now = Some(cut);
                    changed.push(tensor);
                }
            }
        }
        changed
    }

    /// Returns the dimensions that have each factor as their major one.
    pub(super) fn members(&self) -> Vec<Vec<(TensorId, usize)>> {
        let mut members = vec![vec![]; self.rule.factors.len()];
        for (tensor, mapping) in self.tensors.iter().zip(self.mappings()) {
            let Some(tensor) = *tensor else { continue };
            for (dim, factors) in mapping.iter().enumerate() {
                if let Some(factor) = factors.first() {
                    members[*factor].push((tensor, dim));
                }
            }
        }
        members
    }

    fn mappings(&self) -> impl Iterator<Item = &Vec<Vec<usize>>> {
        self.rule.operands.iter().chain(&self.rule.results)
    }

    /// Projects the splits of dimensions to factors.
    fn rows(&self, splits: &[Split]) -> Vec<Row> {
        let row = |(tensor, mapping): (&Option<TensorId>, &Vec<Vec<usize>>)| {
            let mut row: Row = vec![None; self.rule.factors.len()];
            let Some(tensor) = *tensor else { return row };
            for (dim, factors) in mapping.iter().enumerate() {
                let mut rest = splits[tensor].dims[dim].clone();
                let mut closed = splits[tensor].closed[dim];
                for (at, factor) in factors.iter().enumerate() {
                    let (is_minor_most, size) = (at + 1 == factors.len(), self.rule.factors[*factor].size);
                    let (cut, left) = match rest.take() {
                        Some(cut) if !is_minor_most => divided(&cut, size),
                        other => (other, None),
                    };
                    row[*factor] = Some(Cell { cut: cut.clone(), closed, is_minor_most });
                    // A split that does not end between two factors excludes splits of the minor one.
                    let is_whole = cut.is_some_and(|cut| cut.parts == size);
                    closed |= left.is_some() && !is_whole;
                    rest = left.filter(|_| is_whole);
                }
            }
            row
        };
        self.tensors.iter().zip(self.mappings()).map(row).collect()
    }

    /// Returns the split of a dimension with these factors: that of the major factor, and those of further factors as long as
    /// every factor is split into single elements.
    fn cut_of_dim(&self, factors: &[usize], row: &Row) -> Option<Cut> {
        let mut all: Option<Cut> = None;
        for factor in factors {
            let Some(cut) = row[*factor].as_ref().and_then(|cell| cell.cut.as_ref()) else { break };
            all = Some(match all {
                Some(major) => product(&[&major, cut])?,
                None => cut.clone(),
            });
            if cut.parts < self.rule.factors[*factor].size {
                break;
            }
        }
        all
    }

    /// Returns the split of a factor that its tensors have in common.
    fn of_factor(&self, rows: &[Row], factor: usize, direction: Direction) -> Option<Cut> {
        let (operands, results) = rows.split_at(self.rule.operands.len());
        let (first, second) = match direction {
            Direction::ToOperands => (results, operands),
            _ => (operands, results),
        };
        let cuts = |rows: &[Row]| -> Vec<Cut> {
            rows.iter().filter_map(|row| row[factor].as_ref()?.cut.clone()).collect()
        };
        let mut found: Option<Cut> = None;
        let mut can_expand = true;
        for (from_first, cut) in cuts(first)
            .into_iter()
            .map(|cut| (true, cut))
            .chain(cuts(second).into_iter().map(|cut| (false, cut)))
        {
            let may_expand = can_expand && (from_first || direction == Direction::Both);
            found = match found {
                None => may_expand.then_some(cut),
                Some(now) if refines(&now, &cut) => Some(now),
                Some(now) if refines(&cut, &now) => Some(if may_expand { cut } else { now }),
                Some(now) => {
                    can_expand = false;
                    common(&now, &cut)
                }
            };
        }
        found
    }

    fn spread_common(&self, rows: &mut [Row], stage: usize) {
        for factor in 0..self.rule.factors.len() {
            let direction = self.direction(stage, factor);
            let mut cut = direction.and_then(|direction| self.of_factor(rows, factor, direction));
            for row in rows.iter() {
                cut = cut.and_then(|cut| self.without_conflicts_across(row, factor, cut));
                if row[factor].is_some() {
                    cut = cut.and_then(|cut| self.without_conflicts_within(row, factor, cut));
                }
            }
            let Some(cut) = cut else { continue };
            rows.iter_mut().for_each(|row| expand(row, factor, &cut));
        }
    }

    fn spread_each(&self, rows: &mut [Row], stage: usize) {
        let factors = 0..self.rule.factors.len();
        let cuts: Vec<Option<Cut>> =
            factors.map(|factor| self.of_factor(rows, factor, self.direction(stage, factor)?)).collect();
        let order = self.order(rows, &cuts);
        let operands = self.rule.operands.len();
        for index in (operands..rows.len()).chain(0..operands) {
            for factor in &order {
                let Some(cut) = cuts[*factor].clone().filter(|_| rows[index][*factor].is_some()) else {
                    continue;
                };
                let cut = self.without_conflicts_within(&rows[index], *factor, cut);
                let Some(cut) = cut.and_then(|cut| self.without_conflicts_across(&rows[index], *factor, cut))
                else {
                    continue;
                };
                let cut = if index < operands {
                    self.as_results(&rows[operands..], *factor, cut)
                } else {
                    Some(cut)
                };
                if let Some(cut) = cut {
                    expand(&mut rows[index], *factor, &cut);
                }
            }
        }
    }

    /// Returns the factors in the order in which they are split: those of larger tensors first, then those with more parts if
    /// the operation is elementwise.
    fn order(&self, rows: &[Row], cuts: &[Option<Cut>]) -> Vec<usize> {
        let size = |row: &Row| -> usize {
            let factors = row.iter().zip(&self.rule.factors).filter(|(cell, _)| cell.is_some());
            factors.map(|(_, factor)| factor.size.max(1)).fold(1, usize::saturating_mul)
        };
        let key = |factor: usize| {
            let has = |row: &Row| {
                let now = row[factor].as_ref().and_then(|cell| cell.cut.as_ref());
                cuts[factor].as_ref().zip(now).is_some_and(|(cut, now)| refines(now, cut))
            };
            let sources = rows.iter().enumerate().filter(|(_, row)| has(row));
            let largest = sources.map(|(index, row)| (size(row), std::cmp::Reverse(index))).max();
            let parts = match self.kind {
                Kind::Elementwise => cuts[factor].as_ref().map_or(1, |cut| cut.parts),
                _ => 0,
            };
            let (size, index) = largest.map_or((0, 0), |(size, index)| (size, index.0));
            (std::cmp::Reverse(size), std::cmp::Reverse(parts), index)
        };
        let mut order: Vec<usize> = (0..cuts.len()).collect();
        order.sort_by_cached_key(|factor| key(*factor));
        order
    }

    /// Returns the split that an operand of an elementwise operation takes: not a finer one than that of the result.
    fn as_results(&self, results: &[Row], factor: usize, cut: Cut) -> Option<Cut> {
        if self.kind != Kind::Elementwise {
            return Some(cut);
        }
        let mut cut = Some(cut);
        for cell in results.iter().filter_map(|row| row[factor].as_ref()) {
            cut = match (&cell.cut, cut) {
                (None, _) => None,
                (Some(result), Some(cut)) if refines(&cut, result) => Some(result.clone()),
                (_, cut) => cut,
            };
        }
        cut
    }

    /// Returns the major part of a split that does not conflict with the splits of a tensor's other factors.
    fn without_conflicts_across(&self, row: &Row, factor: usize, cut: Cut) -> Option<Cut> {
        let others = row.iter().enumerate().filter(|(other, _)| *other != factor);
        let others: Vec<&Cut> = others.filter_map(|(_, cell)| cell.as_ref()?.cut.as_ref()).collect();
        if others.is_empty() {
            return Some(cut);
        }
        let fits = |cut: &Cut| are_spread_evenly(&[&[cut][..], &others].concat());
        (2..=cut.parts).rev().filter_map(|parts| coarse(&cut, parts)).find(fits)
    }

    /// Returns the major part of a split that a tensor can take along a factor.
    fn without_conflicts_within(&self, row: &Row, factor: usize, cut: Cut) -> Option<Cut> {
        let cell = row[factor].as_ref()?;
        if cell.cut.as_ref().is_some_and(|now| refines(now, &cut)) {
            return Some(cut);
        }
        if !cell.closed {
            let size = self.rule.factors[factor].size;
            let parts = if cell.is_minor_most { cut.parts } else { common_divisor(size, cut.parts) };
            if parts > 1 {
                return coarse(&cut, parts);
            }
        }
        cell.cut.clone().filter(|now| refines(&cut, now))
    }
}

/// Divides a split of a dimension into that of its major factor and the rest.
fn divided(cut: &Cut, size: usize) -> (Option<Cut>, Option<Cut>) {
    let parts = common_divisor(cut.parts, size);
    let minor = cut.parts / parts;
    let rest = Cut { parts: minor, of_partition: cut.of_partition.iter().map(|part| part % minor).collect() };
    (coarse(cut, parts), (minor > 1).then_some(rest))
}

/// Splits a factor of a tensor more finely.
fn expand(row: &mut Row, factor: usize, cut: &Cut) {
    let Some(cell) = &mut row[factor] else { return };
    if cell.cut.as_ref().is_none_or(|now| refines(cut, now)) {
        cell.cut = Some(cut.clone());
    }
}
