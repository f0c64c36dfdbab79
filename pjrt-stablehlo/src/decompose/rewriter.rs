//! Rebuilds the functions of a module, operation by operation.
//!
//! A body is copied into a new one: every value of the old stands for values of the new (one, or as many as a tuple has
//! parts), and a rule can put other operations in the place of one. Regions and inlined calls are kept on a stack, so
//! nothing recurses with the program.

use std::rc::Rc;
use std::sync::Arc;

use super::builder::Builder;
use super::rules::Rewrite;
use super::{CoreOps, bounded, chlo, fold, inlines_calls, liveness, quantized, refine, rules, unsupported};
use crate::infer::Context;
use crate::ir::ops::{Constant, FuncCall, Return};
use crate::ir::{
    BlockId, DictionaryAttribute, Function, FunctionType, Literal, Location, LocationKind, Module, Op, OpId,
    Operation, RegionId, Str, TensorType, Trait, Type, ValueId,
};
use crate::limits::{MAX_DECOMPOSED_OPS, MAX_INLINED_OPS};
use crate::{Error, ErrorKind};

/// What a pass over a module does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Replaces quantized types, tuples and futures; keeps all other operations.
    Types,
    /// Replaces sizes that have bounds by the bounds, with the sizes beside them: see [`bounded`].
    Sizes,
    /// Replaces operations that are not in the set.
    Ops,
    /// Replaces sizes that are not known by those that follow from the arguments: see [`refine`].
    Refine,
}

/// The operations of the program that those of a rewritten one are parts of: those that were decomposed.
#[derive(Default)]
pub(super) struct Origins {
    /// Names of decomposed operations; what an operation has is one more than an index into them.
    names: Vec<Str>,
    /// For each function, by the index of an operation; where there is nothing, the operation is the program's own.
    functions: Vec<Vec<u32>>,
}

impl Origins {
    /// The name of the operation that was decomposed into this one.
    pub(super) fn name(&self, function: usize, op: OpId) -> Option<&Str> {
        let origin = *self.functions.get(function)?.get(op.index())?;
        self.names.get((origin as usize).checked_sub(1)?)
    }

    fn number(&mut self, name: &str) -> u32 {
        let known = self.names.iter().position(|known| **known == *name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name.into());
            self.names.len() - 1
        });
        index as u32 + 1
    }
}

/// Goes over a module once. `origins` are those of the module, and become those of the result.
pub(super) fn rewrite(
    module: &Module,
    core: &CoreOps,
    mode: Mode,
    origins: &mut Origins,
) -> Result<Module, Error> {
    let mut result = module.without_functions();
    let kept = match mode {
        Mode::Types | Mode::Sizes | Mode::Refine => vec![true; module.functions().len()],
        Mode::Ops => liveness::kept_functions(module, core),
    };
    let called = liveness::called_functions(module);
    let mut live = vec![None; module.functions().len()];
    let mut functions = Vec::new();
    for (index, function) in module.functions().iter().enumerate() {
        if kept[index] {
            let mut rewriter = Rewriter::new(module, core, mode, live);
            rewriter.origins = std::mem::take(origins);
            let mut function = rewriter.function(index, function)?;
            if mode == Mode::Ops && !called.contains(&function.name) {
                give_what_is_returned(&mut function);
            }
            (live, *origins) = (rewriter.live, rewriter.origins);
            functions.push(rewriter.new_origins);
            result.add_function(function).map_err(|function| {
                Error::new(ErrorKind::Invalid, format!("there are two functions '{}'", function.name))
            })?;
        }
    }
    origins.functions = functions;
    Ok(result)
}

/// A function that is being rebuilt.
pub(super) struct Rewriter<'m> {
    pub(super) module: &'m Module,
    pub(super) core: &'m CoreOps,
    mode: Mode,
    /// The new body.
    pub(super) b: Builder,
    /// Functions that are being copied: the one that is rebuilt, and those that are inlined into it.
    activations: Vec<Activation<'m>>,
    /// Blocks that are being copied.
    frames: Vec<Frame<'m>>,
    /// Which operations matter, for each function of the module once it is needed.
    live: Vec<Option<Rc<[bool]>>>,
    /// The functions whose calls [`Mode::Refine`] inlines, by their index.
    pub(super) inlined: Vec<bool>,
    /// Where the operations of the module come from.
    origins: Origins,
    /// Where those of the new body come from.
    new_origins: Vec<u32>,
}

/// A function that is being copied: what its values are in the new body.
struct Activation<'m> {
    index: usize,
    function: &'m Function,
    live: Rc<[bool]>,
    values: Vec<Option<Values>>,
    /// Where calls that lead here are.
    caller: Location,
}

/// What a value of the old body is in the new: mostly one value.
#[derive(Clone)]
enum Values {
    One(ValueId),
    Many(Rc<[ValueId]>),
}

impl Values {
    fn as_slice(&self) -> &[ValueId] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Many(values) => values,
        }
    }
}

/// A block that is being copied.
struct Frame<'m> {
    activation: usize,
    block: BlockId,
    next: usize,
    target: BlockId,
    end: End<'m>,
    /// Sizes that scalars become, in the computation of a `map`.
    lift: Option<Box<[i64]>>,
}

/// What is done at the end of a block.
enum End<'m> {
    /// The terminator is copied.
    Copy,
    /// What the block returns becomes the results of an operation of the outer frame; the activation ends.
    Inlined(&'m Operation),
    /// What the block returns becomes the results of an operation of the outer frame.
    Results(&'m Operation),
    /// What the block returns is what the region that it becomes returns; the activation ends.
    Region,
    /// Goes on with what the block returns.
    Then(Box<Continuation>),
}

/// What follows a block that has been copied: takes the builder at the block's end, and what the block returns.
pub(super) type Continuation = dyn FnOnce(&mut Builder, Vec<ValueId>);

impl<'m> Rewriter<'m> {
    pub(super) fn new(
        module: &'m Module,
        core: &'m CoreOps,
        mode: Mode,
        live: Vec<Option<Rc<[bool]>>>,
    ) -> Self {
        Rewriter {
            module,
            core,
            mode,
            b: Builder::new(),
            activations: Vec::new(),
            frames: Vec::new(),
            live,
            inlined: Vec::new(),
            origins: Origins::default(),
            new_origins: Vec::new(),
        }
    }

    fn function(&mut self, index: usize, function: &'m Function) -> Result<Function, Error> {
        let argument_attributes = self.spread(&function.argument_attributes, &function.ty.inputs);
        let result_attributes = self.spread(&function.result_attributes, &function.ty.results);
        let ty = FunctionType {
            inputs: self.convert_all(&function.ty.inputs),
            results: self.convert_all(&function.ty.results),
        };
        let Some(entry) = function.body.entry() else {
            return Ok(Function { ty, argument_attributes, result_attributes, ..function.clone() });
        };
        self.activate(index, function, Location::UNKNOWN);
        self.block_arguments(0, entry, self.b.block);
        self.run_from(entry)?;
        Ok(Function {
            name: function.name.clone(),
            visibility: function.visibility,
            ty,
            argument_attributes,
            result_attributes,
            attributes: function.attributes.clone(),
            body: std::mem::take(&mut self.b.body),
            location: function.location.clone(),
        })
    }

    /// Copies a function from its entry, whose arguments are known.
    pub(super) fn run_from(&mut self, entry: BlockId) -> Result<(), Error> {
        let target = self.b.block;
        self.frames.push(Frame { activation: 0, block: entry, next: 0, target, end: End::Copy, lift: None });
        self.run()
    }

    pub(super) fn activate(&mut self, index: usize, function: &'m Function, caller: Location) {
        let live = self.live[index].get_or_insert_with(|| liveness::live_ops(&function.body).into()).clone();
        let values = vec![None; function.body.num_values()];
        self.activations.push(Activation { index, function, live, values, caller });
    }

    /// Copies blocks until none is left.
    fn run(&mut self) -> Result<(), Error> {
        while let Some(frame) = self.frames.last_mut() {
            let activation = &self.activations[frame.activation];
            let function: &'m Function = activation.function;
            self.b.block = frame.target;
            let Some(&id) = function.body.block(frame.block).ops.get(frame.next) else {
                // Only regions that return nothing end without a terminator.
                self.frames.pop();
                continue;
            };
            frame.next += 1;
            let op = function.body.op(id);
            self.b.location = inlined_location(&op.location, &activation.caller);
            if op.info().has(Trait::Terminator) {
                self.terminator(op)?;
            } else if activation.live[id.index()] {
                let function_index = activation.index;
                let first_new = self.b.body.num_ops();
                self.operation(op).map_err(|error| {
                    let origin = self.origins.name(function_index, id);
                    part_of(error, origin).in_op(op.kind.name(), &op.location)
                })?;
                self.note_origin(function_index, id, op, first_new);
                if self.b.body.num_ops() > self.max_ops() {
                    let message = format!(
                        "decomposing the operations of the function makes more than {MAX_DECOMPOSED_OPS}; have this one \
                         in the set, or less of it in the program"
                    );
                    return Err(Error::new(ErrorKind::TooLarge, message).in_op(op.kind.name(), &op.location));
                }
                if self.b.body.num_ops() > MAX_INLINED_OPS && inlines_calls(self.core) {
                    let message = format!("inlining calls makes more than {MAX_INLINED_OPS} operations");
                    return Err(Error::new(ErrorKind::TooLarge, message).in_op(op.kind.name(), &op.location));
                }
            }
        }
        Ok(())
    }

    /// How many operations the new body may have.
    fn max_ops(&self) -> usize {
        let own = self.activations.first().map_or(0, |activation| activation.function.body.num_ops());
        MAX_DECOMPOSED_OPS.max(2 * own)
    }

    /// Remembers of what the operations from `first_new` on are parts.
    fn note_origin(&mut self, function: usize, id: OpId, op: &Operation, first_new: usize) {
        let old = self.origins.functions.get(function).and_then(|ops| ops.get(id.index())).copied();
        let origin = match old {
            Some(origin) if origin != 0 => origin,
            _ if self.mode != Mode::Ops || self.core.contains_op(&op.kind) => return,
            _ => self.origins.number(op.kind.name()),
        };
        self.new_origins.resize(first_new, 0);
        self.new_origins.resize(self.b.body.num_ops(), origin);
    }

    fn terminator(&mut self, op: &'m Operation) -> Result<(), Error> {
        let values = self.flat(&op.operands);
        let frame = self.frames.pop().expect("a terminator is in a block that is being copied");
        match frame.end {
            End::Copy => {
                self.b.add_op(op.kind.clone(), &values, Vec::new());
                if self.mode == Mode::Refine {
                    refine::end_region(self, frame.target)?;
                }
            }
            End::Results(outer) => self.bind(outer, values),
            End::Inlined(outer) => {
                self.activations.pop();
                self.bind(outer, values);
            }
            End::Region => {
                self.activations.pop();
                self.b.add_op(Op::Return(Return {}), &values, Vec::new());
                refine::end_region(self, frame.target)?;
            }
            End::Then(next) => next(&mut self.b, values),
        }
        Ok(())
    }

    fn operation(&mut self, op: &'m Operation) -> Result<(), Error> {
        let lift = self.frames.last().and_then(|frame| frame.lift.clone());
        if let Some(dims) = lift {
            return self.lifted(op, &dims);
        }
        let first_new = self.b.body.num_ops();
        let values = match self.mode {
            Mode::Types => match quantized::replaces(self, op) {
                true => quantized::replacement(self, op)?,
                false => match rules::parts(self, op)? {
                    Some(parts) => parts,
                    None if self.replaces_futures() && matches!(op.kind, Op::AsyncStart(_)) => {
                        return self.start(op);
                    }
                    None => {
                        quantized::check_move(self, op)?;
                        return self.copy(op);
                    }
                },
            },
            Mode::Sizes => match bounded::replacement(self, op)? {
                Some(values) => values,
                None => return self.copy(op),
            },
            Mode::Refine => match refine::replacement(self, op)? {
                refine::Replacement::Copy => return self.copy(op),
                refine::Replacement::Inline(callee) => return self.inline_call(op, callee),
                refine::Replacement::Values(values) => values,
                refine::Replacement::Region(id, callee) => {
                    self.bind(op, self.b.body.op(id).results.collect());
                    return self.function_as_region(id, callee);
                }
            },
            Mode::Ops if self.core.contains_op(&op.kind) => return self.copy(op),
            Mode::Ops => match rewrite_of(&op.kind)? {
                Rewrite::Value(rule) => vec![rule(self, op)?],
                Rewrite::Values(rule) => rule(self, op)?,
                Rewrite::Blocks(rule) => return rule(self, op),
            },
        };
        self.keep_attributes(op, &values, first_new);
        self.bind(op, values);
        Ok(())
    }

    /// Copies an operation that stays.
    fn copy(&mut self, op: &'m Operation) -> Result<(), Error> {
        let kind = match &op.kind {
            Op::Constant(constant) if self.converts(constant.value.ty()) => {
                let value = Literal::new(constant.value.storage_ty(), constant.value.data().clone());
                Op::Constant(Constant { value: value.map_err(|error| unsupported(error.to_string()))? })
            }
            kind => kind.clone(),
        };
        let operands = self.flat(&op.operands);
        let results = self.result_types(op);
        let id = self.b.add_op(kind, &operands, results);
        self.b.body.op_mut(id).attributes = op.attributes.clone();
        let mut values = self.b.body.op(id).results.collect();
        if self.mode == Mode::Refine && op.regions.is_empty() {
            refine::narrow(self, id)?;
            values = refine::constants(&mut self.b, values);
        }
        self.bind(op, values);
        self.copy_regions(op, id);
        Ok(())
    }

    /// Copies all regions of an operation into a new one.
    fn copy_regions(&mut self, op: &'m Operation, id: OpId) {
        let first_frame = self.frames.len();
        for &region in &op.regions {
            self.copy_region(region, id);
        }
        // The first region is copied first.
        self.frames[first_frame..].reverse();
    }

    /// Copies a region of the operation at hand into a new one, once the rule that asks for it is done.
    pub(super) fn copy_region(&mut self, region: RegionId, id: OpId) {
        let activation = self.frame().activation;
        let function: &'m Function = self.activations[activation].function;
        let target_region = self.b.body.add_region(Some(id));
        for &block in &function.body.region(region).blocks {
            let target = self.b.body.add_block(target_region);
            self.block_arguments(activation, block, target);
            if self.mode == Mode::Refine {
                refine::region_arguments(&mut self.b, id, target);
            }
            self.frames.push(Frame { activation, block, next: 0, target, end: End::Copy, lift: None });
        }
    }

    /// Copies the block of a region of the operation at hand to the end of a block of the new body, with these values as
    /// its arguments, and goes on with what it returns, once the rule that asks for it is done.
    pub(super) fn inline_region(
        &mut self,
        op: &'m Operation,
        index: usize,
        arguments: Vec<ValueId>,
        target: BlockId,
        then: Box<Continuation>,
    ) -> Result<(), Error> {
        let block = self.region_block(op, index)?;
        self.begin_block(block, arguments, target, End::Then(then), None)
    }

    /// Replaces a `map` by its computation on whole tensors.
    pub(super) fn lift_region(
        &mut self,
        op: &'m Operation,
        arguments: Vec<ValueId>,
        dims: &[i64],
    ) -> Result<(), Error> {
        let block = self.region_block(op, 0)?;
        let target = self.b.block;
        self.begin_block(block, arguments, target, End::Results(op), Some(dims.into()))
    }

    /// Replaces an `async_start` by the operation that it starts, which its region has.
    fn start(&mut self, op: &'m Operation) -> Result<(), Error> {
        let block = self.region_block(op, 0)?;
        let (arguments, target) = (self.flat(&op.operands), self.b.block);
        self.begin_block(block, arguments, target, End::Results(op), None)
    }

    /// The operation at hand, for rules of the verifier.
    pub(super) fn context(&self, op: &'m Operation) -> Context<'m> {
        let body = &self.activations[self.frame().activation].function.body;
        Context { module: self.module, body, op }
    }

    fn region_block(&self, op: &Operation, index: usize) -> Result<BlockId, Error> {
        let body = &self.activations[self.frame().activation].function.body;
        let block = op.regions.get(index).and_then(|&region| body.region(region).blocks.first().copied());
        block.ok_or_else(|| unsupported(format!("expected a block in region {index}, found none")))
    }

    fn begin_block(
        &mut self,
        block: BlockId,
        arguments: Vec<ValueId>,
        target: BlockId,
        end: End<'m>,
        lift: Option<Box<[i64]>>,
    ) -> Result<(), Error> {
        let activation = self.frame().activation;
        let old = &self.activations[activation].function.body.block(block).arguments;
        self.bind_arguments(activation, old, arguments)?;
        self.frames.push(Frame { activation, block, next: 0, target, end, lift });
        Ok(())
    }

    pub(super) fn bind_arguments(
        &mut self,
        activation: usize,
        old: &[ValueId],
        new: Vec<ValueId>,
    ) -> Result<(), Error> {
        if old.len() != new.len() {
            let message = format!("expected a region with {} arguments, found {}", new.len(), old.len());
            return Err(unsupported(message));
        }
        for (old, new) in old.iter().zip(new) {
            self.activations[activation].values[old.index()] = Some(Values::One(new));
        }
        Ok(())
    }

    /// Replaces an operation by a call of a function with its operands and results.
    pub(super) fn call(&mut self, op: &'m Operation, call: FuncCall) {
        let operands = self.flat(&op.operands);
        let results = self.result_types(op);
        let id = self.b.add_op(Op::FuncCall(call.into()), &operands, results);
        self.b.body.op_mut(id).attributes = op.attributes.clone();
        let values = self.b.body.op(id).results.collect();
        self.bind(op, values);
    }

    /// Runs a function in the place of an operation that calls it.
    pub(super) fn inline_call(&mut self, op: &'m Operation, callee: &Str) -> Result<(), Error> {
        let index = self.module.function_index(callee);
        let index = index.ok_or_else(|| unsupported(format!("there is no function '{callee}'")))?;
        let function = &self.module.functions()[index];
        let Some(block) = function.body.entry() else {
            return Err(unsupported(format!("the called function '{callee}' has no body")));
        };
        let arguments = self.flat(&op.operands);
        let caller = self.b.location.clone();
        self.activate(index, function, caller);
        let activation = self.activations.len() - 1;
        self.bind_arguments(activation, &function.body.block(block).arguments, arguments)?;
        let target = self.b.block;
        self.frames.push(Frame { activation, block, next: 0, target, end: End::Inlined(op), lift: None });
        Ok(())
    }

    /// Gives a new operation a region that does what a function does.
    fn function_as_region(&mut self, id: OpId, callee: &Str) -> Result<(), Error> {
        let index = self.module.function_index(callee);
        let index = index.ok_or_else(|| unsupported(format!("there is no function '{callee}'")))?;
        let function = &self.module.functions()[index];
        let Some(block) = function.body.entry() else {
            return Err(unsupported(format!("the called function '{callee}' has no body")));
        };
        let region = self.b.body.add_region(Some(id));
        let target = self.b.body.add_block(region);
        self.activate(index, function, self.b.location.clone());
        let activation = self.activations.len() - 1;
        self.block_arguments(activation, block, target);
        self.frames.push(Frame { activation, block, next: 0, target, end: End::Region, lift: None });
        Ok(())
    }

    /// Copies an operation of a `map`'s computation, whose scalars become tensors of these sizes.
    fn lifted(&mut self, op: &'m Operation, dims: &[i64]) -> Result<(), Error> {
        let is_constant = matches!(op.kind, Op::Constant(_));
        if !is_constant && !op.info().has(Trait::Elementwise) && !matches!(op.kind, Op::BitcastConvert(_)) {
            return Err(unsupported(
                "a computation of 'stablehlo.map' can be decomposed only where all its operations are elementwise; \
                 keep 'stablehlo.map' in the set of core operations",
            ));
        }
        if is_constant {
            self.copy(op)?;
            let scalars = self.flat(&op.results.collect::<Vec<_>>());
            let values = scalars.into_iter().map(|scalar| self.b.broadcast_scalar(scalar, dims)).collect();
            self.bind(op, values);
            return Ok(());
        }
        let operands = self.flat(&op.operands);
        let operands: Vec<ValueId> = operands.into_iter().map(|x| self.b.broadcast_scalar(x, dims)).collect();
        let results = self.result_types(op).into_iter().map(|ty| match ty {
            Type::Tensor(tensor) => tensor.with_dims(dims).into(),
            other => other,
        });
        let results = results.collect();
        let id = self.b.add_op(op.kind.clone(), &operands, results);
        let values = self.b.body.op(id).results.collect();
        self.bind(op, values);
        Ok(())
    }

    /// Puts the attributes of a replaced operation on the one that computes its results, where that is new.
    pub(super) fn keep_attributes(&mut self, op: &Operation, values: &[ValueId], first_new: usize) {
        let Some(&first) = values.first().filter(|_| !op.attributes.is_empty()) else { return };
        if let Some(id) = self.b.body.defining_op(first)
            && id.index() >= first_new
            && self.b.body.op(id).results.eq(values.iter().copied())
        {
            self.b.body.op_mut(id).attributes = op.attributes.clone();
        }
    }

    /// Says what the results of an operation are in the new body.
    pub(super) fn bind(&mut self, op: &Operation, values: Vec<ValueId>) {
        let activation = self.frame().activation;
        let mut rest = values.into_iter();
        for result in op.results {
            let ty = self.activations[activation].function.body.ty(result);
            let values = match self.leaf_count(ty) {
                1 => rest.next().map(Values::One),
                count => Some(Values::Many(rest.by_ref().take(count).collect())),
            };
            self.activations[activation].values[result.index()] = values;
        }
    }

    fn block_arguments(&mut self, activation: usize, block: BlockId, target: BlockId) {
        let function: &'m Function = self.activations[activation].function;
        let old = function.body.block(block);
        for (index, &argument) in old.arguments.iter().enumerate() {
            let types = self.convert(function.body.ty(argument));
            let location = old.argument_locations.get(index).cloned().unwrap_or_default();
            let values: Vec<ValueId> = types
                .into_iter()
                .map(|ty| {
                    let value = self.b.body.add_argument(target, ty);
                    self.b.body.set_argument_location(value, location.clone());
                    value
                })
                .collect();
            let values = match *values {
                [one] => Values::One(one),
                _ => Values::Many(values.into()),
            };
            self.activations[activation].values[argument.index()] = Some(values);
        }
    }

    fn frame(&self) -> &Frame<'m> {
        self.frames.last().expect("an operation is in a block that is being copied")
    }

    /// The type of a value of the program that is being rewritten.
    pub(super) fn old_type(&self, value: ValueId) -> &'m Type {
        let function: &'m Function = self.activations[self.frame().activation].function;
        function.body.ty(value)
    }

    /// The values of the new body that values of the old one are.
    pub(super) fn flat(&self, values: &[ValueId]) -> Vec<ValueId> {
        let map = &self.activations[self.frame().activation].values;
        let found = values
            .iter()
            .map(|value| map[value.index()].as_ref().expect("values are defined before they are used"));
        found.flat_map(Values::as_slice).copied().collect()
    }

    /// The operands of an operation, which have to be `N` tensors of definite size.
    pub(super) fn operands<const N: usize>(&self, op: &Operation) -> Result<[ValueId; N], Error> {
        let values = self.tensors(op)?;
        for &value in &values {
            definite(&self.b.ty(value))?;
        }
        <[ValueId; N]>::try_from(values)
            .map_err(|values| unsupported(format!("expected {N} operands, found {}", values.len())))
    }

    /// The operands of an operation, which have to be tensors.
    pub(super) fn tensors(&self, op: &Operation) -> Result<Vec<ValueId>, Error> {
        let values = self.flat(&op.operands);
        for (index, &value) in values.iter().enumerate() {
            let ty = self.b.body.ty(value);
            if ty.as_tensor().is_none() {
                return Err(unsupported(format!("operand {index}: expected a tensor, found {ty}")));
            }
        }
        Ok(values)
    }

    /// The type of the first result, which has to be a tensor.
    pub(super) fn any_result(&self, op: &Operation) -> Result<TensorType, Error> {
        self.nth_result(op, 0)
    }

    /// The type of a result, which has to be a tensor.
    pub(super) fn nth_result(&self, op: &Operation, index: usize) -> Result<TensorType, Error> {
        let ty = op.results.get(index).map(|result| self.old_type(result));
        match ty {
            Some(Type::Tensor(tensor)) => Ok(tensor.clone()),
            Some(other) => Err(unsupported(format!("result {index}: expected a tensor, found {other}"))),
            None => Err(unsupported(format!("expected result {index}, found {} results", op.results.len()))),
        }
    }

    /// The type of the first result, which has to be a tensor of definite size.
    pub(super) fn result(&self, op: &Operation) -> Result<TensorType, Error> {
        let ty = self.any_result(op)?;
        definite(&ty)?;
        Ok(ty)
    }

    /// The elements of a value of the new body, which has to be a small constant of integers.
    pub(super) fn constant_integers(&self, value: ValueId, what: &str) -> Result<Arc<[i64]>, Error> {
        fold::known(&self.b, value).ok_or_else(|| {
            unsupported(format!(
                "{what} is not a constant, so the shapes of the program depend on its data; give the program shapes \
                 that are known before it runs"
            ))
        })
    }

    /// The types of an operation's results in the new body.
    pub(super) fn result_types(&self, op: &Operation) -> Vec<Type> {
        op.results.flat_map(|result| self.convert(self.old_type(result))).collect()
    }

    fn converts(&self, ty: &TensorType) -> bool {
        self.mode == Mode::Types && ty.quantization().is_some() && !self.core.keeps_quantized_types()
    }

    /// The types that values of a type have in the new body: parts of tuples, storage types of quantized tensors.
    fn convert(&self, ty: &Type) -> Vec<Type> {
        let mut leaves = Vec::new();
        let mut work = vec![ty];
        while let Some(ty) = work.pop() {
            match ty {
                Type::Tuple(parts) if self.flattens() => work.extend(parts.iter().rev()),
                Type::Future(parts) if self.replaces_futures() => work.extend(parts.iter().rev()),
                Type::Tensor(tensor) if self.has_sizes(tensor) => leaves.extend(bounded::converted(tensor)),
                other => leaves.push(self.stored(other)),
            }
        }
        leaves
    }

    /// A type with the storage types of quantized ones that are not kept, in tuples too.
    fn stored(&self, ty: &Type) -> Type {
        match ty {
            Type::Tensor(tensor) if self.converts(tensor) => {
                TensorType::new(tensor.storage_type(), tensor.dims()).into()
            }
            Type::Tuple(parts) => Type::Tuple(parts.iter().map(|part| self.stored(part)).collect()),
            Type::Future(parts) => Type::Future(parts.iter().map(|part| self.stored(part)).collect()),
            other => other.clone(),
        }
    }

    fn convert_all(&self, types: &[Type]) -> Vec<Type> {
        types.iter().flat_map(|ty| self.convert(ty)).collect()
    }

    /// How many values a value of this type becomes.
    pub(super) fn leaf_count(&self, ty: &Type) -> usize {
        match ty {
            Type::Tuple(_) if self.flattens() => self.convert(ty).len(),
            Type::Future(_) if self.replaces_futures() => self.convert(ty).len(),
            Type::Tensor(tensor) if self.has_sizes(tensor) => self.convert(ty).len(),
            _ => 1,
        }
    }

    /// Whether a tensor has sizes beside it.
    fn has_sizes(&self, ty: &TensorType) -> bool {
        self.mode == Mode::Sizes && bounded::is_bounded(ty)
    }

    /// Whether tuples are replaced by their parts.
    pub(super) fn flattens(&self) -> bool {
        self.mode == Mode::Types && !self.core.keeps_tuples()
    }

    /// Whether futures are replaced by what they hold.
    pub(super) fn replaces_futures(&self) -> bool {
        self.mode == Mode::Types && !self.core.keeps_futures()
    }

    /// Attributes of arguments or results, repeated for each part of a tuple.
    fn spread(&self, attributes: &[DictionaryAttribute], types: &[Type]) -> Vec<DictionaryAttribute> {
        let each = attributes.iter().zip(types);
        each.flat_map(|(attributes, ty)| std::iter::repeat_n(attributes.clone(), self.leaf_count(ty)))
            .collect()
    }
}

/// Makes the types of a function's results those of the values that it returns, of which more sizes may be known.
fn give_what_is_returned(function: &mut Function) {
    let returned = function.returned().iter().map(|&value| function.body.ty(value).clone());
    let returned: Vec<Type> = returned.collect();
    if returned.len() == function.ty.results.len() {
        function.ty.results = returned;
    }
}

/// An error in a part of a decomposed operation, which has its location.
pub(super) fn part_of(mut error: Error, origin: Option<&Str>) -> Error {
    if let Some(origin) = origin {
        error.message.push_str(&format!("; '{origin}' is decomposed into it"));
    }
    error
}

/// What replaces an operation that is not in the set.
pub(super) fn rewrite_of(kind: &Op) -> Result<Rewrite, Error> {
    let rule = match kind {
        Op::Other(other) => {
            chlo::RULES.iter().find(|rule| rule.name == &*other.name).map(|rule| rule.rewrite)
        }
        Op::CustomCall(call) => chlo::rule_of_call(call).map(|_| Rewrite::Values(chlo::custom_call)),
        kind => rules::RULES.iter().find(|rule| rule.op == kind.code()).map(|rule| rule.rewrite),
    };
    rule.ok_or_else(|| unsupported("not one of the core operations, and not expressible in others"))
}

/// Fails unless all sizes are known.
pub(super) fn definite(ty: &TensorType) -> Result<(), Error> {
    if ty.num_elements().is_none() {
        return Err(unsupported(format!(
            "expected sizes that are known before the program runs, found {ty}"
        )));
    }
    Ok(())
}

/// The location of an operation that is inlined at a call.
fn inlined_location(location: &Location, caller: &Location) -> Location {
    if caller.is_unknown() {
        return location.clone();
    }
    LocationKind::CallSite { callee: location.clone(), caller: caller.clone() }.into()
}
