//! Copies the body of a function, with manual computations for its manual regions.

use super::Border;
use super::computation::{annotates_part, axes, computation};
use super::level::Level;
use super::region::{ManualRegion, Step, steps};
use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::partition::{ints, not_built, padded, trimmed};
use pjrt_stablehlo::build::Builder;
use pjrt_stablehlo::ir::{BlockId, Body, Function, Op, OpId, Type, ValueId, ops};
use std::collections::HashMap;
use std::rc::Rc;

/// A copy of a function's body.
pub(super) struct Copy<'b> {
    function: &'b Function,
    from: &'b Body,
    into: Builder,
    /// The copies of the values that can be used at this place.
    values: HashMap<ValueId, ValueId>,
    /// The parts that regions give to later ones, each with one more dimension, the first, for the positions along the manual
    /// axes. Tokens have no dimensions, and are also given to the operations outside.
    given: HashMap<ValueId, ValueId>,
    /// The level of the operations at this place.
    level: Level,
    /// In manual regions, the axes of the outermost region.
    axes: Option<Rc<Axes>>,
}

impl<'b> Copy<'b> {
    /// Returns a copy of the body of a function in which manual computations replace the manual regions.
    pub(super) fn of(function: &'b Function, partitions: usize) -> Result<Body> {
        let from = &function.body;
        let mut copy = Self {
            function,
            from,
            into: Builder::default(),
            values: HashMap::new(),
            given: HashMap::new(),
            level: Level::whole(partitions),
            axes: None,
        };
        for (i, block) in from.region(Body::ROOT).blocks.iter().enumerate() {
            if i > 0 {
                let to = copy.into.body_mut().add_block(Body::ROOT);
                copy.into.set_block(to);
            }
            copy.block(*block)?;
        }
        copy.into.into_body().map_err(not_built)
    }

    /// Copies the arguments and operations of a block into the current block.
    fn block(&mut self, block: BlockId) -> Result<()> {
        let from = self.from.block(block);
        let to = self.into.block();
        for (i, argument) in from.arguments.iter().enumerate() {
            let body = self.into.body_mut();
            let new = body.add_argument(to, self.from.ty(*argument).clone());
            if let Some(location) = from.argument_locations.get(i) {
                body.set_argument_location(new, location.clone());
            }
            self.values.insert(*argument, new);
        }
        self.operations(&from.ops, &[])
    }

    /// Copies operations of a block. The operations in `users` use their results.
    fn operations(&mut self, ops: &[OpId], users: &[OpId]) -> Result<()> {
        for step in steps(self.function, ops, users, &self.level)? {
            match step {
                Step::Op(op) => self.operation(op)?,
                Step::Region(region) => self.region(&region)?,
            }
        }
        Ok(())
    }

    fn operation(&mut self, id: OpId) -> Result<()> {
        let op = self.from.op(id);
        if Border::of(op).is_some() {
            let why = "the custom call converts between parts of an array and an array that is not of the manual region around it";
            return Err(Error::unsupported(why).in_op(op.kind.name(), &op.location));
        }
        let operands = self.copies(op.operands.iter().copied())?;
        if self.axes.is_some() && annotates_part(op, &self.level)? {
            self.values.insert(op.result(), operands[0]);
            return Ok(());
        }
        let types = self.types(op.results.iter());
        self.into.set_location(op.location.clone());
        let new = self.into.add_op(op.kind.clone(), &operands, types);
        self.into.body_mut().op_mut(new).attributes = op.attributes.clone();
        self.values.extend(op.results.iter().zip(self.into.all_results(new)));
        let block = self.into.block();
        for region in &op.regions {
            let into = self.into.body_mut().add_region(Some(new));
            for block in &self.from.region(*region).blocks {
                let to = self.into.body_mut().add_block(into);
                self.into.set_block(to);
                self.block(*block)?;
            }
        }
        self.into.set_block(block);
        Ok(())
    }

    /// Adds a manual computation for a region.
    fn region(&mut self, region: &ManualRegion) -> Result<()> {
        let from = self.from;
        let axes = match &self.axes {
            Some(axes) => Rc::clone(axes),
            None => Rc::new(axes(self.function, region, &self.level)?),
        };
        let computation = computation(self.function, region, &self.level, &axes)?;
        let first = region.inputs.iter().chain(&region.outputs).chain(&region.ops).next();
        self.into.set_location(first.map(|op| from.op(*op).location.clone()).unwrap_or_default());
        let mut operands = self.copies(region.inputs.iter().map(|op| from.op(*op).operand(0)))?;
        for (operand, dims) in operands.iter_mut().zip(&computation.inputs) {
            *operand = padded(&mut self.into, *operand, dims)?;
        }
        operands.extend(self.copies(region.wholes.iter().copied())?);
        operands.extend(region.taken.iter().filter_map(|value| self.given.get(value)));
        let positions = computation.level.groups().parts / self.level.groups().parts;
        let mut types = vec![];
        for (op, dims) in region.outputs.iter().zip(&computation.outputs) {
            types.push(with_dims(from.ty(from.op(*op).result()), dims)?);
        }
        for value in &region.given {
            types.push(self.stacked(*value, positions)?);
        }
        let new = self.into.add_op(computation.op, &operands, types);
        let block = self.into.begin_region(new, []);
        let outer = (
            std::mem::take(&mut self.values),
            std::mem::take(&mut self.given),
            std::mem::replace(&mut self.level, computation.level),
            self.axes.replace(axes),
        );
        let returned = self.region_body(region)?;
        self.into.end_region(block, &returned);
        (self.values, self.given, self.level, self.axes) = outer;
        self.results(region, new, &computation.outputs)
    }

    /// Copies the operations of a region into the block of its manual computation, which uses no values from outside. Returns the
    /// values that the block returns.
    fn region_body(&mut self, region: &ManualRegion) -> Result<Vec<ValueId>> {
        let from = self.from;
        let block = self.into.block();
        let parts = region.inputs.iter().map(|op| from.op(*op).result());
        for value in parts.chain(region.wholes.iter().copied()) {
            let argument = self.into.body_mut().add_argument(block, from.ty(value).clone());
            self.values.insert(value, argument);
        }
        for value in &region.taken {
            let ty = self.stacked(*value, 1)?;
            let argument = self.into.body_mut().add_argument(block, ty);
            let part = match from.ty(*value).is_token() {
                true => argument,
                false => {
                    let dims = self.into.dims(argument)[1..].to_vec();
                    self.into.reshape(argument, &dims)
                }
            };
            self.values.insert(*value, part);
        }
        self.operations(&region.ops, &region.outputs)?;
        let mut returned = self.copies(region.outputs.iter().map(|op| from.op(*op).operand(0)))?;
        for part in self.copies(region.given.iter().copied())? {
            let dims = self.into.ty(part).as_tensor().map(|part| [&[1], part.dims()].concat());
            returned.push(dims.map_or(part, |dims| self.into.reshape(part, &dims)));
        }
        Ok(returned)
    }

    /// Binds the results of a region's manual computation.
    fn results(&mut self, region: &ManualRegion, computation: OpId, outputs: &[Vec<usize>]) -> Result<()> {
        let results = self.into.all_results(computation);
        for ((id, value), padded) in region.outputs.iter().zip(&results).zip(outputs) {
            let op = self.from.op(*id);
            let dims = crate::partition::dims(self.from, op.result());
            let mut whole = *value;
            if let Some(dims) = dims.filter(|dims| dims != padded) {
                whole = trimmed(&mut self.into, whole, &dims);
                if let Op::CustomCall(call) = &op.kind {
                    // The manual computation states the sharding of the array with padding only.
                    let call = ops::CustomCall { call_target_name: "Sharding".into(), ..(**call).clone() };
                    let new = self.into.add_op(call, &[whole], [self.from.ty(op.result()).clone()]);
                    self.into.body_mut().op_mut(new).attributes = op.attributes.clone();
                    whole = self.into.result(new);
                }
            }
            self.values.insert(op.result(), whole);
        }
        for (part, value) in region.given.iter().copied().zip(results.into_iter().skip(region.outputs.len()))
        {
            self.given.insert(part, value);
            if self.from.ty(part).is_token() {
                self.values.insert(part, value);
            }
        }
        Ok(())
    }

    /// Returns the type of a part with one more dimension of this size, the first; that of a token, unchanged.
    fn stacked(&self, value: ValueId, positions: usize) -> Result<Type> {
        let ty = self.from.ty(value);
        if ty.is_token() {
            return Ok(ty.clone());
        }
        let dims = crate::partition::dims(self.from, value).unwrap_or_default();
        with_dims(ty, &[&[positions], &*dims].concat())
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

/// Returns the type of a tensor with other dimensions.
fn with_dims(ty: &Type, dims: &[usize]) -> Result<Type> {
    let tensor = ty.as_tensor().ok_or_else(|| Error::internal(format!("{ty} has no dimensions")))?;
    Ok(tensor.with_dims(ints(dims)).into())
}
