//! The builder's position and error state, and the inference of result types.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::infer::{self, Context, Inferred};
use crate::ir::ops::FuncReturn;
use crate::ir::{
    BlockId, Body, DictionaryAttribute, ElementType, Function, FunctionType, Location, Module, Op, OpCode,
    OpId, Operation, OtherOp, Str, TensorType, Type, ValueId, ValueRange, Variadicity,
};
use crate::{Error, ErrorKind};

/// A builder that adds operations to a function. It has a body, a current block, and the location of new operations.
///
/// See the [module's documentation](super) for examples and for the handling of errors.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) body: Body,
    pub(crate) block: BlockId,
    pub(crate) location: Location,
    error: OnceCell<Error>,
    /// The constants with a single number in `constants_block`, because formulas use the same numbers repeatedly.
    pub(super) constants: HashMap<(TensorType, Box<[u8]>), ValueId>,
    pub(super) constants_block: BlockId,
}

impl Default for Builder {
    /// Creates a builder for a function without arguments.
    fn default() -> Self {
        Builder::new([])
    }
}

impl Builder {
    /// Creates a builder for a function with arguments of these types. The entry block is the current block.
    pub fn new(arguments: impl IntoIterator<Item = Type>) -> Self {
        let mut body = Body::new();
        let block = body.add_block(Body::ROOT);
        for ty in arguments {
            body.add_argument(block, ty);
        }
        Builder {
            body,
            block,
            location: Location::UNKNOWN,
            error: OnceCell::new(),
            constants: HashMap::new(),
            constants_block: block,
        }
    }

    /// Terminates the function with the values that it returns, and names it. The function is public.
    ///
    /// # Errors
    /// Returns the first error since the builder was created; see the [module's documentation](super).
    pub fn finish(mut self, name: impl Into<Str>, returned: &[ValueId]) -> Result<Function, Error> {
        self.block = self.body.entry().unwrap_or(self.block);
        self.add_op(FuncReturn {}, returned, []);
        let types = |values: &[ValueId]| values.iter().map(|&value| self.ty(value).clone()).collect();
        let ty =
            FunctionType { inputs: types(&self.body.block(self.block).arguments), results: types(returned) };
        Ok(Function { name: name.into(), ty, body: self.into_body()?, ..Function::default() })
    }

    /// Returns the body, without a terminator.
    ///
    /// # Errors
    /// Returns the first error since the builder was created.
    pub fn into_body(self) -> Result<Body, Error> {
        match self.error.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.body),
        }
    }

    /// Reports an error of a previous method.
    ///
    /// # Errors
    /// Returns the first error since the builder was created.
    pub fn check(&self) -> Result<(), Error> {
        self.error.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Returns the body.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// Returns the body, for modification such as adding attributes to operations.
    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }

    /// Returns the current block, to which operations are added.
    pub fn block(&self) -> BlockId {
        self.block
    }

    /// Sets the current block, which must be a block of the body.
    pub fn set_block(&mut self, block: BlockId) {
        self.block = block;
    }

    /// Returns the location of new operations.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Sets the location of new operations.
    pub fn set_location(&mut self, location: Location) {
        self.location = location;
    }

    /// Returns the arguments of the current block.
    pub fn arguments(&self) -> Vec<ValueId> {
        self.body.block(self.block).arguments.clone()
    }

    /// Returns argument `index` of the current block. If there is no such argument, the builder records an error.
    pub fn argument(&self, index: usize) -> ValueId {
        let arguments = &self.body.block(self.block).arguments;
        arguments.get(index).copied().unwrap_or_else(|| {
            let message = format!("the block has no argument {index}; it has {} arguments", arguments.len());
            self.fail(Error::new(ErrorKind::Invalid, message));
            NO_VALUE
        })
    }

    /// Returns the type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        if self.has(value) { self.body.ty(value) } else { &Type::None }
    }

    /// Returns the type of a tensor. If the value has a different type, the builder records an error.
    pub fn tensor(&self, value: ValueId) -> TensorType {
        self.ty(value).as_tensor().cloned().unwrap_or_else(|| {
            let message = format!("expected a tensor, found {}", self.ty(value));
            self.fail(Error::new(ErrorKind::Invalid, message).in_op("builder", &self.location));
            TensorType::new(ElementType::F32, [])
        })
    }

    /// Returns the size of each dimension of a tensor. If the value has a different type, the builder records an error.
    pub fn dims(&self, value: ValueId) -> Vec<i64> {
        self.tensor(value).dims().to_vec()
    }

    /// Returns the type of a tensor's elements. If the value has a different type, the builder records an error.
    pub fn element(&self, value: ValueId) -> ElementType {
        self.tensor(value).element_type()
    }

    /// Adds an operation with one result, and infers the type of the result.
    pub fn op(&mut self, kind: impl Into<Op>, operands: &[ValueId]) -> ValueId {
        let op = self.inferred_op(kind, operands);
        self.result(op)
    }

    /// Adds an operation with one result of the given type, which [`verify`](crate::verify) checks.
    pub fn op_of_type(
        &mut self,
        kind: impl Into<Op>,
        operands: &[ValueId],
        result: impl Into<Type>,
    ) -> ValueId {
        let op = self.add_op(kind, operands, [result.into()]);
        self.result(op)
    }

    /// Adds an operation with results of the given types, which [`verify`](crate::verify) checks, and returns the
    /// results.
    pub fn op_of_types(
        &mut self,
        kind: impl Into<Op>,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> Vec<ValueId> {
        let op = self.add_op(kind, operands, results);
        self.all_results(op)
    }

    /// Adds an operation with one result and default attributes, and infers the type of the result. If an attribute has
    /// no default, or if `code` is [`OpCode::Other`], the builder records an error.
    pub fn apply(&mut self, code: OpCode, operands: &[ValueId]) -> ValueId {
        let kind = self.without_attributes(code);
        self.op(kind, operands)
    }

    /// Returns an operation of the op table with default attributes.
    pub(super) fn without_attributes(&self, code: OpCode) -> Op {
        let kind = match code {
            OpCode::Other => Err("expected an operation of the op table".to_owned()),
            code => Op::from_attributes(code, &mut |_| None).map_err(|error| error.message()),
        };
        kind.unwrap_or_else(|message| {
            self.fail(Error::new(ErrorKind::Invalid, message).in_op(code.info().name, &self.location));
            no_op()
        })
    }

    /// Adds an operation, and infers the types of its results.
    pub fn inferred_op(&mut self, kind: impl Into<Op>, operands: &[ValueId]) -> OpId {
        let op = Operation {
            kind: kind.into(),
            operands: operands.into(),
            results: ValueRange::default(),
            regions: Vec::new(),
            attributes: DictionaryAttribute::default(),
            block: self.block,
            location: self.location.clone(),
        };
        let types = self.inferred(&op);
        self.add_op(op.kind, operands, types)
    }

    /// Adds an operation with results of the given types, which [`verify`](crate::verify) checks.
    ///
    /// [`Builder::region`] adds regions to it.
    pub fn add_op(
        &mut self,
        kind: impl Into<Op>,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> OpId {
        let kind = kind.into();
        if let Some(stranger) = operands.iter().find(|&&value| !self.has(value)) {
            let message = format!("the operand {stranger:?} is not a value of this function");
            self.fail(Error::new(ErrorKind::Invalid, message).in_op(kind.name(), &self.location));
            return self.body.add_op(self.block, no_op(), [], results, Location::UNKNOWN);
        }
        self.body.add_op(self.block, kind, operands, results, self.location.clone())
    }

    /// Returns the result of an operation with a single result. For other operations, the builder records an error.
    pub fn result(&mut self, op: OpId) -> ValueId {
        let [result] = self.results(op);
        result
    }

    /// Returns the results of an operation with `N` results. For other operations, the builder records an error.
    pub fn results<const N: usize>(&mut self, op: OpId) -> [ValueId; N] {
        let results = self.all_results(op);
        <[ValueId; N]>::try_from(results).unwrap_or_else(|results| {
            let op = self.body.op(op);
            let message = format!("expected {N} results, found {}", results.len());
            self.fail(Error::new(ErrorKind::Invalid, message).in_op(op.kind.name(), &op.location));
            [NO_VALUE; N]
        })
    }

    /// Returns the results of an operation. The list may be empty if the builder has an error.
    pub fn all_results(&self, op: OpId) -> Vec<ValueId> {
        self.body.op(op).results.collect()
    }

    /// Returns the inferred types of an operation's results. After an error, returns a type for each result that the op
    /// table lists.
    pub(super) fn inferred(&self, op: &Operation) -> Vec<Type> {
        self.infer(op).unwrap_or_else(|error| {
            self.fail(error.in_op(op.kind.name(), &op.location));
            let groups = op.info().results.iter();
            groups.filter(|group| group.variadicity == Variadicity::One).map(|_| Type::None).collect()
        })
    }

    fn infer(&self, op: &Operation) -> Result<Vec<Type>, Error> {
        if op.operands.iter().any(|&value| !self.has(value)) {
            return Err(Error::new(ErrorKind::Invalid, "an operand is not a value of this function"));
        }
        let module = Module::new();
        let cx = Context { module: &module, body: &self.body, op };
        infer::counts(op, "operands", op.info().operands, op.operands.len())?;
        infer::counts(op, "regions", op.info().regions, op.regions.len())?;
        let rules = infer::results(&cx)?;
        let types = rules.into_iter().enumerate().map(|(index, rule)| match rule.inferred {
            Inferred::Type(ty) => Ok(ty),
            _ => {
                let message = format!(
                    "the type of result {index} cannot be inferred from the operands; use op_of_type"
                );
                Err(Error::new(ErrorKind::Invalid, message))
            }
        });
        types.collect()
    }

    /// Returns `true` if the value belongs to the function.
    fn has(&self, value: ValueId) -> bool {
        value.index() < self.body.num_values()
    }

    /// Records an error, unless there is one.
    pub(super) fn fail(&self, error: Error) {
        // Errors that follow from the first one are less informative.
        let _ = self.error.set(error);
    }
}

/// A placeholder for values after an error. No function has a value with this id.
pub(super) const NO_VALUE: ValueId = ValueId(u32::MAX);

/// Returns a placeholder for operations after an error.
fn no_op() -> Op {
    Op::Other(OtherOp { name: "builder.error".into(), properties: DictionaryAttribute::default() }.into())
}
