//! Partitions loops, branches and asynchronous operations.

use super::{Part, Partitioner, rank};
use crate::error::{Error, Result};
use crate::layout::Layout;
use pjrt_stablehlo::ir::{Block, BlockId, OpId, Operation, Type, ValueId};
use std::collections::HashMap;

impl<'m> Partitioner<'m> {
    /// Partitions a loop. Carried arrays have their derived layouts if these are known, otherwise those of the body's results.
    pub(super) fn while_loop(&mut self, id: OpId, op: &'m Operation) -> Result<()> {
        let mut carried = Vec::with_capacity(op.operands.len());
        for (value, result) in op.operands.iter().zip(op.results) {
            let now = self.part(*value)?.layout;
            let hint = self.hint(result).filter(|hint| !hint.is_whole());
            carried.push(match hint {
                Some(hint) => Layout { partial: now.partial, ..hint },
                None => now,
            });
        }
        for layout in &mut carried {
            if !self.emit.devices.spread_evenly(&layout.cuts().collect::<Vec<_>>()) {
                layout.partial = None;
            }
        }
        let found: Vec<Layout> = self.trial(|this| {
            this.region(id, 1, &carried)?.iter().map(|value| Ok(this.part(*value)?.layout)).collect()
        })?;
        self.adopt(op, &mut carried, found);
        let inputs = op.operands.iter().zip(&carried).map(|(value, to)| self.moved(*value, to));
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let types: Vec<Type> = inputs.iter().map(|value| self.emit.builder.ty(*value).clone()).collect();
        let new = self.add_like(op, op.kind.clone(), &inputs, types);
        self.within_region(new, |this| {
            let condition = this.region(id, 0, &carried)?;
            let whole: Vec<Layout> = condition.iter().map(|_| Layout::whole(0)).collect();
            this.moved_all(&condition, &whole)
        })?;
        self.within_region(new, |this| {
            let next = this.region(id, 1, &carried)?;
            this.moved_all(&next, &carried)
        })?;
        self.bind_new(op, new, carried);
        Ok(())
    }

    /// Replaces the layouts of whole arrays with those in `found` where the arrays can be split in this way.
    fn adopt(&self, op: &Operation, layouts: &mut [Layout], found: Vec<Layout>) {
        for ((layout, found), result) in layouts.iter_mut().zip(found).zip(op.results) {
            let Some(dims) = self.dims(result) else { continue };
            let cut = Layout { partial: layout.partial.clone(), ..found };
            let is_free = layout.dims.iter().all(Option::is_none) && cut.local_dims(&dims).is_some();
            if is_free && self.emit.devices.spread_evenly(&cut.cuts().collect::<Vec<_>>()) {
                *layout = cut;
            }
        }
    }

    /// Partitions branches. Their results have their derived layouts if these are known, otherwise those of the first branch's
    /// results.
    pub(super) fn branches(&mut self, id: OpId, op: &'m Operation) -> Result<()> {
        let index = self.whole(op.operand(0))?;
        let rank_of = |this: &Self, value: ValueId| rank(this.function.body.ty(value));
        let mut layouts: Vec<Layout> =
            op.results.map(|result| Layout::whole(rank_of(self, result))).collect();
        let found: Vec<Layout> = self.trial(|this| {
            this.region(id, 0, &[])?.iter().map(|value| Ok(this.part(*value)?.layout)).collect()
        })?;
        let hints = op.results.map(|result| self.hint(result));
        let found: Vec<Layout> =
            found.into_iter().zip(hints).map(|(found, hint)| hint.unwrap_or(found)).collect();
        self.adopt(op, &mut layouts, found);
        let types = (op.results.zip(&layouts))
            .map(|(result, layout)| self.local_type(result, layout))
            .collect::<Result<Vec<_>>>()?;
        let new = self.add_like(op, op.kind.clone(), &[index], types);
        for branch in 0..op.regions.len() {
            self.within_region(new, |this| {
                let results = this.region(id, branch, &[])?;
                this.moved_all(&results, &layouts)
            })?;
        }
        self.bind_new(op, new, layouts);
        Ok(())
    }

    /// Treats an asynchronous operation as if it ran at its start: the future is bound to the results.
    pub(super) fn async_start(&mut self, id: OpId, op: &'m Operation) -> Result<()> {
        let block = self.region_block(id, 0)?;
        for (argument, operand) in block.1.arguments.iter().zip(&op.operands) {
            let part = self.part(*operand)?;
            self.parts.insert(*argument, part);
        }
        let results = self.block(block.0)?;
        let parts = results.iter().map(|value| self.part(*value)).collect::<Result<Vec<_>>>()?;
        self.futures.insert(op.result(), parts);
        Ok(())
    }

    pub(super) fn async_done(&mut self, op: &'m Operation) -> Result<()> {
        let parts = self.futures.get(&op.operand(0)).cloned();
        let parts = parts.ok_or_else(|| Error::internal("a value is used before its definition"))?;
        self.bind(op, parts);
        Ok(())
    }

    pub(super) fn region_block(&self, id: OpId, index: usize) -> Result<(BlockId, &'m Block)> {
        let body = &self.function.body;
        let region = body.op(id).regions.get(index).and_then(|region| body.region(*region).blocks.first());
        let block = region.ok_or_else(|| Error::invalid(format!("region {index} has no block")))?;
        Ok((*block, body.block(*block)))
    }

    /// Partitions a region into the current block, with arguments of these layouts. Returns the operands of its terminator.
    fn region(&mut self, id: OpId, index: usize, arguments: &[Layout]) -> Result<Vec<ValueId>> {
        let (id, block) = self.region_block(id, index)?;
        self.arguments(&block.arguments, arguments)?;
        self.block(id)
    }

    /// Runs a function in a new region of an operation. The region returns the values that the function returns.
    pub(super) fn within_region(
        &mut self,
        op: OpId,
        inside: impl FnOnce(&mut Self) -> Result<Vec<ValueId>>,
    ) -> Result<()> {
        let outer = self.emit.builder.begin_region(op, []);
        self.moved.push(HashMap::new());
        let returned = inside(self);
        self.moved.pop();
        self.emit.builder.end_region(outer, &returned?);
        Ok(())
    }

    /// Runs a function in a new block, and discards the block and all functions that were added.
    fn trial<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = (self.emit.clone(), self.functions.clone());
        let body = self.emit.builder.body_mut();
        let region = body.add_region(None);
        let block = body.add_block(region);
        self.emit.builder.set_block(block);
        self.moved.push(HashMap::new());
        let result = inside(self);
        self.moved.pop();
        (self.emit, self.functions) = before;
        result
    }

    fn bind_new(&mut self, op: &Operation, new: OpId, layouts: Vec<Layout>) {
        let values = self.emit.builder.all_results(new);
        let parts = values.into_iter().zip(layouts).map(|(value, layout)| Part { value, layout });
        self.bind(op, parts.collect::<Vec<_>>());
    }
}
