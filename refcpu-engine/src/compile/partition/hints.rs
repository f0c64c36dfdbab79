//! How values are to lie so that what is computed from them needs nothing of others.
//!
//! What [`propagate`](crate::compile::propagate) has found is of a program that was simplified on the way; here it is spread from
//! results to what they are computed from, and into loops and branches.

use super::layout::{Devices, Layout};
use super::rule::{reducer, rule};
use crate::compile::propagate::Cut;
use crate::compile::sharding_rule::ShardingRule;
use crate::plan::Sharding;
use pjrt_stablehlo::ir::{Body, Function, Op, OpId, Operation, Type, ValueId};
use std::collections::HashMap;

/// The layouts that are known.
pub(super) type Hints = HashMap<ValueId, Layout>;

/// Passes over a program. Each goes once through all nested loops.
const PASSES: usize = 4;

/// The layouts of a function's values: those that are split, and those that these are computed from.
pub(super) fn hints(
    function: &Function,
    devices: &Devices,
    splits: &HashMap<ValueId, Option<Sharding>>,
) -> Hints {
    let body = &function.body;
    let mut known = Known { body, devices, hints: Hints::new() };
    for (value, sharding) in splits {
        if let (Some(dims), Some(sharding)) = (dims(body, *value), sharding) {
            known.hints.insert(*value, Layout::of(Some(sharding), dims.len()));
        }
    }
    let mut ops = vec![];
    if let Some(entry) = body.entry() {
        in_order(body, &body.block(entry).ops, &mut ops);
    }
    for _ in 0..PASSES {
        let mut changed = false;
        for id in ops.iter().rev() {
            changed |= known.spread(*id, body.op(*id));
        }
        if !changed {
            break;
        }
    }
    known.hints
}

/// The operations, each with those of its regions before it. What is in manual computations is on parts already.
fn in_order(body: &Body, ops: &[OpId], all: &mut Vec<OpId>) {
    for id in ops {
        let op = body.op(*id);
        if matches!(op.kind, Op::While(_) | Op::Case(_) | Op::If(_)) {
            for block in op.regions.iter().flat_map(|region| &body.region(*region).blocks) {
                in_order(body, &body.block(*block).ops, all);
            }
        }
        all.push(*id);
    }
}

/// The sizes of a tensor, where they are known.
pub(super) fn dims(body: &Body, value: ValueId) -> Option<Vec<usize>> {
    let dims = body.ty(value).as_tensor()?.static_dims()?;
    dims.iter().map(|dim| usize::try_from(*dim).ok()).collect()
}

/// The sizes of values, none of what is no tensor; `None` where there is one of unknown sizes.
pub(super) fn shapes(body: &Body, values: impl Iterator<Item = ValueId>) -> Option<Vec<Vec<usize>>> {
    values
        .map(|value| match body.ty(value) {
            Type::Tensor(_) => dims(body, value),
            _ => Some(vec![]),
        })
        .collect()
}

struct Known<'f> {
    body: &'f Body,
    devices: &'f Devices,
    hints: Hints,
}

impl Known<'_> {
    fn spread(&mut self, id: OpId, op: &Operation) -> bool {
        let region_ends = |index: usize| -> Vec<ValueId> {
            let last = self.body.region_block(id, index).and_then(|block| block.ops.last());
            last.map_or(vec![], |end| self.body.op(*end).operands.to_vec())
        };
        match &op.kind {
            Op::While(_) => {
                let arguments = |index| self.body.region_block(id, index).map(|block| &block.arguments[..]);
                let (condition, body) = (arguments(0).unwrap_or_default(), arguments(1).unwrap_or_default());
                let next = region_ends(1);
                let mut changed = false;
                for (j, (before, after)) in op.operands.iter().zip(op.results).enumerate() {
                    let inside = [condition.get(j), body.get(j), next.get(j)].into_iter().flatten().copied();
                    changed |= self.alike(&[*before, after].into_iter().chain(inside).collect::<Vec<_>>());
                }
                changed
            }
            Op::Case(_) | Op::If(_) => {
                let ends: Vec<Vec<ValueId>> = (0..op.regions.len()).map(region_ends).collect();
                let mut changed = false;
                for (j, result) in op.results.enumerate() {
                    let inside = ends.iter().filter_map(|end| end.get(j).copied());
                    changed |= self.alike(&[result].into_iter().chain(inside).collect::<Vec<_>>());
                }
                changed
            }
            _ => self.by_rule(op).unwrap_or(false),
        }
    }

    /// Has operands be cut as results are; `None` if there is no rule for it.
    fn by_rule(&mut self, op: &Operation) -> Option<bool> {
        let operands = shapes(self.body, op.operands.iter().copied())?;
        let results = shapes(self.body, op.results)?;
        let ranks = |shapes: &[Vec<usize>]| shapes.iter().map(Vec::len).collect::<Vec<_>>();
        let (of_operands, of_results, count) = match ShardingRule::of(op, &ranks(&operands), &ranks(&results))
        {
            Some(rule) => (rule.operands, rule.results, rule.factors),
            None => {
                let rule = rule(op, &operands, &results, reducer(self.body, op))?;
                (rule.operands, rule.results, rule.factors)
            }
        };
        let mut cuts: Vec<Option<Cut>> = vec![None; count];
        for (result, factors) in op.results.zip(&of_results) {
            let Some(hint) = self.hints.get(&result) else { continue };
            for (factor, cut) in factors.iter().zip(&hint.dims) {
                if let (Some(factor), Some(cut)) = (factor, cut) {
                    cuts[*factor].get_or_insert_with(|| cut.clone());
                }
            }
        }
        let mut changed = false;
        for (operand, factors) in op.operands.iter().zip(&of_operands) {
            for (dim, factor) in factors.iter().enumerate() {
                if let Some(cut) = factor.and_then(|factor| cuts[factor].as_ref()) {
                    changed |= self.take(*operand, dim, cut);
                }
            }
        }
        Some(changed)
    }

    /// Has values of one shape be cut alike.
    fn alike(&mut self, values: &[ValueId]) -> bool {
        let rank = values.iter().filter_map(|value| dims(self.body, *value)).map(|dims| dims.len()).min();
        let mut changed = false;
        for dim in 0..rank.unwrap_or(0) {
            let cut = values.iter().find_map(|value| self.hints.get(value)?.dims.get(dim)?.clone());
            for value in cut.iter().flat_map(|_| values) {
                changed |= self.take(*value, dim, cut.as_ref().expect("there is one"));
            }
        }
        changed
    }

    /// Cuts a dimension that is not cut, if it can be.
    fn take(&mut self, value: ValueId, dim: usize, cut: &Cut) -> bool {
        let Some(dims) = dims(self.body, value) else { return false };
        let now = self.hints.get(&value).cloned().unwrap_or_else(|| Layout::whole(dims.len()));
        if now.dims[dim].is_some() {
            return false;
        }
        let mut then = now;
        then.dims[dim] = Some(cut.clone());
        let fits = then.local_dims(&dims).is_some();
        if !fits || !self.devices.spread_evenly(&then.cuts().collect::<Vec<_>>()) {
            return false;
        }
        self.hints.insert(value, then);
        true
    }
}
