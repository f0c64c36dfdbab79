//! The place where operations are added, and the types of their results.

use std::cell::OnceCell;
use std::collections::HashMap;

use crate::infer::{self, Context, Inferred};
use crate::ir::ops::FuncReturn;
use crate::ir::{
    BlockId, Body, DictionaryAttribute, ElementType, Function, FunctionType, Location, Module, Op, OpCode,
    OpId, Operation, OtherOp, Str, TensorType, Type, ValueId, ValueRange, Variadicity,
};
use crate::{Error, ErrorKind};

/// Adds operations to a function: a body, the block that operations are added to, and the location that they get.
///
/// See the [module's documentation](super) for examples, and for how errors are reported.
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) body: Body,
    pub(crate) block: BlockId,
    pub(crate) location: Location,
    error: OnceCell<Error>,
    /// The constants of one number in `constants_block`: formulas use the same numbers again and again.
    pub(super) constants: HashMap<(TensorType, Box<[u8]>), ValueId>,
    pub(super) constants_block: BlockId,
}

impl Default for Builder {
    /// A builder of a function without arguments.
    fn default() -> Self {
        Builder::new([])
    }
}

impl Builder {
    /// A builder at the start of a function that takes arguments of these types.
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

    /// Ends the function with what it returns, and gives it this name. It is public.
    ///
    /// # Errors
    /// The first error since the function was begun: see the [module's documentation](super).
    pub fn finish(mut self, name: impl Into<Str>, returned: &[ValueId]) -> Result<Function, Error> {
        self.block = self.body.entry().unwrap_or(self.block);
        self.add_op(FuncReturn {}, returned, []);
        let types = |values: &[ValueId]| values.iter().map(|&value| self.ty(value).clone()).collect();
        let ty =
            FunctionType { inputs: types(&self.body.block(self.block).arguments), results: types(returned) };
        Ok(Function { name: name.into(), ty, body: self.into_body()?, ..Function::default() })
    }

    /// The body as it is.
    ///
    /// # Errors
    /// The first error since the function was begun.
    pub fn into_body(self) -> Result<Body, Error> {
        match self.error.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.body),
        }
    }

    /// Fails after an error.
    ///
    /// # Errors
    /// The first error since the function was begun.
    pub fn check(&self) -> Result<(), Error> {
        self.error.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// What has been built.
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// What has been built, to change it: attributes of operations, for example.
    pub fn body_mut(&mut self) -> &mut Body {
        &mut self.body
    }

    /// The block that operations are added to.
    pub fn block(&self) -> BlockId {
        self.block
    }

    /// Goes on at the end of another block of the body.
    pub fn set_block(&mut self, block: BlockId) {
        self.block = block;
    }

    /// The location that operations get.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Sets the location that operations get.
    pub fn set_location(&mut self, location: Location) {
        self.location = location;
    }

    /// The arguments of the block that operations are added to.
    pub fn arguments(&self) -> Vec<ValueId> {
        self.body.block(self.block).arguments.clone()
    }

    /// Argument `index` of the block that operations are added to. There being none is an error of the builder.
    pub fn argument(&self, index: usize) -> ValueId {
        let arguments = &self.body.block(self.block).arguments;
        arguments.get(index).copied().unwrap_or_else(|| {
            let message = format!("expected an argument {index}, found {} arguments", arguments.len());
            self.fail(Error::new(ErrorKind::Invalid, message));
            NO_VALUE
        })
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &Type {
        if self.has(value) { self.body.ty(value) } else { &Type::None }
    }

    /// The type of a value that is a tensor. Another type is an error of the builder.
    pub fn tensor(&self, value: ValueId) -> TensorType {
        self.ty(value).as_tensor().cloned().unwrap_or_else(|| {
            let message = format!("expected a tensor, found {}", self.ty(value));
            self.fail(Error::new(ErrorKind::Invalid, message).in_op("builder", &self.location));
            TensorType::new(ElementType::F32, [])
        })
    }

    /// The sizes of a tensor.
    pub fn dims(&self, value: ValueId) -> Vec<i64> {
        self.tensor(value).dims().to_vec()
    }

    /// The type of a tensor's elements.
    pub fn element(&self, value: ValueId) -> ElementType {
        self.tensor(value).element_type()
    }

    /// Adds an operation with one result, whose type follows from the operands.
    pub fn op(&mut self, kind: impl Into<Op>, operands: &[ValueId]) -> ValueId {
        let op = self.inferred_op(kind, operands);
        self.result(op)
    }

    /// Adds an operation with one result of this type, which [`verify`](crate::verify) checks.
    pub fn op_of_type(
        &mut self,
        kind: impl Into<Op>,
        operands: &[ValueId],
        result: impl Into<Type>,
    ) -> ValueId {
        let op = self.add_op(kind, operands, [result.into()]);
        self.result(op)
    }

    /// Adds an operation with results of these types, which [`verify`](crate::verify) checks, and gives the results.
    pub fn op_of_types(
        &mut self,
        kind: impl Into<Op>,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> Vec<ValueId> {
        let op = self.add_op(kind, operands, results);
        self.all_results(op)
    }

    /// Adds an operation all of whose attributes have defaults, with one result, whose type follows from the operands.
    /// Attributes without default are an error of the builder.
    pub fn apply(&mut self, code: OpCode, operands: &[ValueId]) -> ValueId {
        let kind = self.without_attributes(code);
        self.op(kind, operands)
    }

    /// An operation of the table all of whose attributes have defaults.
    pub(super) fn without_attributes(&self, code: OpCode) -> Op {
        let kind = match code {
            OpCode::Other => Err("expected an operation of the table".to_owned()),
            code => Op::from_attributes(code, &mut |_| None).map_err(|error| error.message()),
        };
        kind.unwrap_or_else(|message| {
            self.fail(Error::new(ErrorKind::Invalid, message).in_op(code.info().name, &self.location));
            no_op()
        })
    }

    /// Adds an operation, the types of whose results follow from the operands.
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

    /// Adds an operation with results of these types, which [`verify`](crate::verify) checks.
    ///
    /// Regions can be added to it by [`Builder::region`].
    pub fn add_op(
        &mut self,
        kind: impl Into<Op>,
        operands: &[ValueId],
        results: impl IntoIterator<Item = Type>,
    ) -> OpId {
        let kind = kind.into();
        if let Some(stranger) = operands.iter().find(|&&value| !self.has(value)) {
            let message =
                format!("expected a value of the function, found {stranger:?}, which it does not have");
            self.fail(Error::new(ErrorKind::Invalid, message).in_op(kind.name(), &self.location));
            return self.body.add_op(self.block, no_op(), [], results, Location::UNKNOWN);
        }
        self.body.add_op(self.block, kind, operands, results, self.location.clone())
    }

    /// The result of an operation that has one. Another number of results is an error of the builder.
    pub fn result(&mut self, op: OpId) -> ValueId {
        let [result] = self.results(op);
        result
    }

    /// The results of an operation that has `N`. Another number of results is an error of the builder.
    pub fn results<const N: usize>(&mut self, op: OpId) -> [ValueId; N] {
        let results = self.all_results(op);
        <[ValueId; N]>::try_from(results).unwrap_or_else(|results| {
            let op = self.body.op(op);
            let message = format!("expected {N} results, found {}", results.len());
            self.fail(Error::new(ErrorKind::Invalid, message).in_op(op.kind.name(), &op.location));
            [NO_VALUE; N]
        })
    }

    /// The results of an operation. After an error there may be none.
    pub fn all_results(&self, op: OpId) -> Vec<ValueId> {
        self.body.op(op).results.collect()
    }

    /// The types of an operation's results, as far as the table says how many there are after an error.
    pub(super) fn inferred(&self, op: &Operation) -> Vec<Type> {
        self.infer(op).unwrap_or_else(|error| {
            self.fail(error.in_op(op.kind.name(), &op.location));
            let groups = op.info().results.iter();
            groups.filter(|group| group.variadicity == Variadicity::One).map(|_| Type::None).collect()
        })
    }

    fn infer(&self, op: &Operation) -> Result<Vec<Type>, Error> {
        if op.operands.iter().any(|&value| !self.has(value)) {
            return Err(Error::new(ErrorKind::Invalid, "an operand is no value of the function"));
        }
        let module = Module::new();
        let cx = Context { module: &module, body: &self.body, op };
        infer::counts(op, "operands", op.info().operands, op.operands.len())?;
        infer::counts(op, "regions", op.info().regions, op.regions.len())?;
        let rules = infer::results(&cx)?;
        let types = rules.into_iter().enumerate().map(|(index, rule)| match rule.inferred {
            Inferred::Type(ty) => Ok(ty),
            _ => {
                let message =
                    format!("the type of result {index} does not follow from the operands; give it");
                Err(Error::new(ErrorKind::Invalid, message))
            }
        });
        types.collect()
    }

    /// Whether a value is one of the function's.
    fn has(&self, value: ValueId) -> bool {
        value.index() < self.body.num_values()
    }

    /// Keeps an error, unless there is one.
    pub(super) fn fail(&self, error: Error) {
        // What follows from the first error says less than it.
        let _ = self.error.set(error);
    }
}

/// What stands for a value after an error: no function has it.
pub(super) const NO_VALUE: ValueId = ValueId(u32::MAX);

/// What stands for an operation after an error.
fn no_op() -> Op {
    Op::Other(OtherOp { name: "builder.error".into(), properties: DictionaryAttribute::default() }.into())
}
