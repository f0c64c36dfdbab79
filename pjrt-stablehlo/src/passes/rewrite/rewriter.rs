//! The rewriter, which rebuilds the functions of a module operation by operation.
//!
//! It copies a body into a new one. Each value of the old body corresponds to one value of the new body, or to several
//! for tuples, and a rule can replace an operation by others. Regions and inlined calls are kept on a stack, so the
//! depth of recursion does not depend on the program.

use std::cell::RefCell;
use std::rc::Rc;

use super::errors::part_of;
use super::known::Known;
use super::live::live_ops;
use super::origins::Origins;
use crate::build::Builder;
use crate::ir::{
    BlockId, Body, Function, FunctionType, Location, LocationKind, Module, OpId, Operation, Str, Trait, Type,
    ValueId,
};
use crate::limits::{MAX_DECOMPOSED_OPS, MAX_INLINED_OPS};
use crate::{Error, ErrorKind};

/// A rewriting of a module. The pass determines the replacements of operations and types, and [`Rewriter`] copies the
/// rest.
pub(crate) trait Pass {
    /// Returns the types of the values that replace a value of this type: none, one, or several. `None` if the type
    /// does not change.
    fn converted(&self, _ty: &Type) -> Option<Vec<Type>> {
        None
    }

    /// Returns the replacement of an operation that is not a terminator.
    ///
    /// # Errors
    /// Returns an error if the operation cannot be rewritten.
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error>;

    /// Returns the results of an operation without regions that has been copied.
    ///
    /// # Errors
    /// Returns an error if the operation does not accept its operands.
    fn copied(&self, r: &mut Rewriter<'_>, copy: OpId) -> Result<Vec<ValueId>, Error> {
        Ok(r.b.all_results(copy))
    }

    /// Called after the arguments of a copied operation's region have been added.
    fn begin_region(&self, _b: &mut Builder, _op: OpId, _block: BlockId) {}

    /// Called at the end of a block that is copied.
    ///
    /// # Errors
    /// Returns an error if the operation does not accept the values that the block returns.
    fn end_region(&self, _r: &mut Rewriter<'_>, _block: BlockId) -> Result<(), Error> {
        Ok(())
    }

    /// Called with each function after it has been rebuilt.
    fn end_function(&self, _function: &mut Function) {}

    /// Returns `true` if the replacement of an operation is a decomposition, which messages mention.
    fn decomposes(&self, _body: &Body, _op: &Operation) -> bool {
        false
    }

    /// Returns `true` if calls of functions are inlined.
    fn inlines_calls(&self) -> bool {
        false
    }
}

/// The replacement of an operation.
pub(crate) enum Replacement<'m> {
    /// A copy of the operation.
    Copy,
    /// These values, as its results.
    Values(Vec<ValueId>),
    /// The operations of a function, which are inlined.
    Inline(&'m Str),
    /// The results of a new operation, which receives a region with the operations of a function.
    Region(OpId, &'m Str),
    /// The results of a block whose copy the rule has requested from the [`Rewriter`].
    Blocks,
}

/// Rewrites the kept functions of a module. `origins` are those of the module, and become those of the result.
pub(crate) fn rewrite(
    module: &Module,
    pass: &dyn Pass,
    kept: impl Fn(usize) -> bool,
    origins: &mut Origins,
) -> Result<Module, Error> {
    let mut result = module.without_functions();
    let mut live = vec![None; module.functions().len()];
    let mut functions = Vec::new();
    for (index, function) in module.functions().iter().enumerate() {
        if kept(index) {
            let mut rewriter = Rewriter::new(module, pass);
            (rewriter.live, rewriter.origins) = (live, std::mem::take(origins));
            let mut function = rewriter.function(index, function)?;
            pass.end_function(&mut function);
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
pub(crate) struct Rewriter<'m> {
    pub(crate) module: &'m Module,
    pub(super) pass: &'m dyn Pass,
    /// The builder of the new body.
    pub(crate) b: Builder,
    /// The known values of the new body.
    pub(crate) known: RefCell<Known>,
    /// The functions that are being copied: the rebuilt one, and those that are inlined into it.
    pub(super) activations: Vec<Activation<'m>>,
    /// The blocks that are being copied.
    pub(super) frames: Vec<Frame<'m>>,
    /// The liveness of operations, for each function of the module when it is first needed.
    live: Vec<Option<Rc<[bool]>>>,
    /// The origins of the module's operations.
    origins: Origins,
    /// The origins of the new body's operations.
    new_origins: Vec<u32>,
}

/// A function that is being copied, with the values of the new body that replace its values.
pub(super) struct Activation<'m> {
    pub(super) index: usize,
    pub(super) function: &'m Function,
    pub(super) live: Rc<[bool]>,
    pub(super) values: Vec<Option<Values>>,
    /// The location of the inlined call, with its own callers.
    pub(super) caller: Location,
}

/// The values of the new body that replace a value of the old body. Usually there is one.
#[derive(Clone)]
pub(super) enum Values {
    One(ValueId),
    Many(Rc<[ValueId]>),
}

impl From<Vec<ValueId>> for Values {
    fn from(values: Vec<ValueId>) -> Self {
        match *values {
            [one] => Values::One(one),
            _ => Values::Many(values.into()),
        }
    }
}

impl Values {
    pub(super) fn as_slice(&self) -> &[ValueId] {
        match self {
            Values::One(value) => std::slice::from_ref(value),
            Values::Many(values) => values,
        }
    }
}

/// A block that is being copied.
pub(super) struct Frame<'m> {
    pub(super) activation: usize,
    pub(super) block: BlockId,
    pub(super) next: usize,
    pub(super) target: BlockId,
    pub(super) end: End<'m>,
}

/// The action at the end of a block.
pub(super) enum End<'m> {
    /// Copies the terminator.
    Copy,
    /// Uses the returned values as the results of an operation of the outer frame, and ends the activation.
    Inlined(&'m Operation),
    /// Uses the returned values as the results of an operation of the outer frame.
    Results(&'m Operation),
    /// Terminates the new region with the returned values, and ends the activation.
    Region,
    /// Calls a continuation with the returned values.
    Then(Box<Continuation>),
}

/// The continuation after a block has been copied. It receives the builder at the end of the block, and the values that
/// the block returns.
pub(crate) type Continuation = dyn FnOnce(&mut Builder, Vec<ValueId>);

impl<'m> Rewriter<'m> {
    pub(crate) fn new(module: &'m Module, pass: &'m dyn Pass) -> Self {
        Rewriter {
            module,
            pass,
            b: Builder::default(),
            known: RefCell::default(),
            activations: Vec::new(),
            frames: Vec::new(),
            live: vec![None; module.functions().len()],
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
            body: std::mem::take(&mut self.b).into_body()?,
            location: function.location.clone(),
        })
    }

    /// Copies a function from its entry block, whose arguments have been bound.
    pub(crate) fn run_from(&mut self, entry: BlockId) -> Result<(), Error> {
        let target = self.b.block;
        self.frames.push(Frame { activation: 0, block: entry, next: 0, target, end: End::Copy });
        self.run()
    }

    pub(crate) fn activate(&mut self, index: usize, function: &'m Function, caller: Location) {
        let live = self.live[index].get_or_insert_with(|| live_ops(&function.body).into()).clone();
        let values = vec![None; function.body.num_values()];
        self.activations.push(Activation { index, function, live, values, caller });
    }

    /// Copies blocks until the stack is empty.
    fn run(&mut self) -> Result<(), Error> {
        while let Some(frame) = self.frames.last_mut() {
            let activation = &self.activations[frame.activation];
            let function: &'m Function = activation.function;
            self.b.block = frame.target;
            let Some(&id) = function.body.block(frame.block).ops.get(frame.next) else {
                // Only a region that returns nothing may lack a terminator.
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
                self.operation(op).and_then(|()| self.b.check()).map_err(|error| {
                    let origin = self.origins.name(function_index, id);
                    part_of(error, origin).in_op(op.kind.name(), &op.location)
                })?;
                self.note_origin(function_index, id, op, first_new);
                if self.b.body.num_ops() > self.max_ops() {
                    let message = format!(
                        "decomposing the function produces more than {MAX_DECOMPOSED_OPS} operations; add this operation \
                         to the core operations, or use it less often in the program"
                    );
                    return Err(Error::new(ErrorKind::TooLarge, message).in_op(op.kind.name(), &op.location));
                }
                if self.b.body.num_ops() > MAX_INLINED_OPS && self.pass.inlines_calls() {
                    let message =
                        format!("inlining calls would create more than {MAX_INLINED_OPS} operations");
                    return Err(Error::new(ErrorKind::TooLarge, message).in_op(op.kind.name(), &op.location));
                }
            }
        }
        Ok(())
    }

    /// Returns the maximum number of operations of the new body.
    fn max_ops(&self) -> usize {
        let own = self.activations.first().map_or(0, |activation| activation.function.body.num_ops());
        MAX_DECOMPOSED_OPS.max(2 * own)
    }

    /// Records the origin of the operations from `first_new` on.
    fn note_origin(&mut self, function: usize, id: OpId, op: &Operation, first_new: usize) {
        let old = self.origins.functions.get(function).and_then(|ops| ops.get(id.index())).copied();
        let origin = match old {
            Some(origin) if origin != 0 => origin,
            _ if !self.pass.decomposes(&self.module.functions()[function].body, op) => return,
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
                self.pass.end_region(self, frame.target)?;
            }
            End::Results(outer) => self.bind(outer, values),
            End::Inlined(outer) => {
                self.activations.pop();
                self.bind(outer, values);
            }
            End::Region => {
                self.activations.pop();
                self.b.return_values(&values);
                self.pass.end_region(self, frame.target)?;
            }
            End::Then(next) => next(&mut self.b, values),
        }
        Ok(())
    }

    fn operation(&mut self, op: &'m Operation) -> Result<(), Error> {
        let first_new = self.b.body.num_ops();
        let values = match self.pass.replacement(self, op)? {
            Replacement::Copy => return self.copy(op),
            Replacement::Values(values) => values,
            Replacement::Inline(callee) => return self.inline_call(op, callee),
            Replacement::Region(id, callee) => {
                self.bind(op, self.b.all_results(id));
                return self.function_as_region(id, callee);
            }
            Replacement::Blocks => return Ok(()),
        };
        self.keep_attributes(op, &values, first_new);
        self.bind(op, values);
        Ok(())
    }

    /// Copies an operation that is not replaced.
    pub(super) fn copy(&mut self, op: &'m Operation) -> Result<(), Error> {
        let operands = self.flat(&op.operands);
        let results = self.result_types(op);
        let id = self.b.add_op(op.kind.clone(), &operands, results);
        self.b.body.op_mut(id).attributes = op.attributes.clone();
        let values = match op.regions.is_empty() {
            true => self.pass.copied(self, id)?,
            false => self.b.all_results(id),
        };
        self.bind(op, values);
        self.copy_regions(op, id);
        Ok(())
    }
}

/// Returns the location of an operation that is inlined at a call.
fn inlined_location(location: &Location, caller: &Location) -> Location {
    if caller.is_unknown() {
        return location.clone();
    }
    LocationKind::CallSite { callee: location.clone(), caller: caller.clone() }.into()
}
