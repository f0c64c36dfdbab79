//! Copies the body of a function, with manual computations for its manual regions.

use super::Border;
use super::computation::{annotates_part, computation};
use super::region::{ManualRegion, Step, steps};
use crate::error::{Error, Result};
use pjrt_stablehlo::ir::{BlockId, Body, Function, Op, OpId, Type, ValueId, ops};
use std::collections::HashMap;

/// A copy of a function's body.
pub(super) struct Copy<'b> {
    function: &'b Function,
    from: &'b Body,
    into: Body,
    partitions: usize,
    /// The copies of the values that can be used at this place.
    values: HashMap<ValueId, ValueId>,
    /// True in manual regions.
    is_in_region: bool,
}

impl<'b> Copy<'b> {
    /// Returns a copy of the body of a function in which manual computations replace the manual regions.
    pub(super) fn of(function: &'b Function, partitions: usize) -> Result<Body> {
        let (from, into, values) = (&function.body, Body::new(), HashMap::new());
        let mut copy = Self { function, from, into, partitions, values, is_in_region: false };
        for block in &from.region(Body::ROOT).blocks {
            let to = copy.into.add_block(Body::ROOT);
            copy.block(*block, to)?;
        }
        Ok(copy.into)
    }

    fn block(&mut self, block: BlockId, to: BlockId) -> Result<()> {
        let from = self.from.block(block);
        for (i, argument) in from.arguments.iter().enumerate() {
            let new = self.into.add_argument(to, self.from.ty(*argument).clone());
            if let Some(location) = from.argument_locations.get(i) {
                self.into.set_argument_location(new, location.clone());
            }
            self.values.insert(*argument, new);
        }
        if self.is_in_region {
            return from.ops.iter().try_for_each(|op| self.operation(*op, to));
        }
        for step in steps(self.from, block)? {
            match step {
                Step::Op(op) => self.operation(op, to)?,
                Step::Region(region) => self.region(&region, to)?,
            }
        }
        Ok(())
    }

    fn operation(&mut self, id: OpId, to: BlockId) -> Result<()> {
        let op = self.from.op(id);
        if self.is_in_region && Border::of(op).is_some() {
            let why = "the custom call is in an operation of a manual region: manual regions in manual regions are not supported";
            return Err(Error::unsupported(why).in_op(op.kind.name(), &op.location));
        }
        let operands = self.copies(op.operands.iter().copied())?;
        if self.is_in_region && annotates_part(op, self.partitions)? {
            self.values.insert(op.result(), operands[0]);
            return Ok(());
        }
        let types = self.types(op.results.iter());
        let new = self.into.add_op(to, op.kind.clone(), operands, types, op.location.clone());
        self.into.op_mut(new).attributes = op.attributes.clone();
        self.values.extend(op.results.iter().zip(self.into.op(new).results));
        for region in &op.regions {
            let into = self.into.add_region(Some(new));
            for block in &self.from.region(*region).blocks {
                let to = self.into.add_block(into);
                self.block(*block, to)?;
            }
        }
        Ok(())
    }

    /// Adds a manual computation for a region.
    fn region(&mut self, region: &ManualRegion, to: BlockId) -> Result<()> {
        let from = self.from;
        let computation = computation(self.function, region, self.partitions)?;
        let inputs = region.inputs.iter().map(|op| from.op(*op).operand(0));
        let operands = self.copies(inputs.chain(region.wholes.iter().copied()))?;
        let types = self.types(region.outputs.iter().map(|op| from.op(*op).result()));
        let first = region.inputs.first().or(region.outputs.first());
        let location = first.map(|op| from.op(*op).location.clone()).unwrap_or_default();
        let new = self.into.add_op(to, Op::ManualComputation(computation), operands, types, location.clone());
        let into = self.into.add_region(Some(new));
        let block = self.into.add_block(into);
        // The region of a manual computation uses no values from outside.
        let outer = std::mem::take(&mut self.values);
        self.is_in_region = true;
        let parts = region.inputs.iter().map(|op| from.op(*op).result());
        for value in parts.chain(region.wholes.iter().copied()) {
            let argument = self.into.add_argument(block, from.ty(value).clone());
            self.values.insert(value, argument);
        }
        region.ops.iter().try_for_each(|op| self.operation(*op, block))?;
        let returned = self.copies(region.outputs.iter().map(|op| from.op(*op).operand(0)))?;
        self.into.add_op(block, Op::SdyReturn(ops::SdyReturn {}), returned, [], location);
        self.is_in_region = false;
        self.values = outer;
        let results = region.outputs.iter().map(|op| from.op(*op).result());
        self.values.extend(results.zip(self.into.op(new).results));
        Ok(())
    }

    fn copies(&self, values: impl Iterator<Item = ValueId>) -> Result<Vec<ValueId>> {
        let copy = |value| {
            let found = self.values.get(&value).copied();
            found.ok_or_else(|| Error::internal("a value is used before its definition"))
        };
        values.map(copy).collect()
    }

    fn types(&self, values: impl Iterator<Item = ValueId>) -> Vec<Type> {
        values.map(|value| self.from.ty(value).clone()).collect()
    }
}
