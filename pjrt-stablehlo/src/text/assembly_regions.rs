//! The custom assembly of operations with regions.

use super::lexer::Kind;
use super::parser::{Parser, shortened};
use super::pending::{BlockArgument, Frame, Pending, Tail, Types};
use crate::Error;
use crate::ir::ops::Return;
use crate::ir::{Attribute, BlockId, ElementType, Location, Op, OpCode, Trait, ValueId};

impl<'a> Parser<'a> {
    /// Reads `(%a = %0, %b = %1) : A, B attributes {x.y = 1} cond {` of `stablehlo.while`.
    pub(super) fn while_loop(
        &mut self,
        mut pending: Pending<'a>,
        block: BlockId,
    ) -> Result<Frame<'a>, Error> {
        let pairs = self.list("(", ")", |parser| {
            let at = parser.token.start;
            let name = parser.expect_kind(Kind::Value, "an argument such as %iterArg")?;
            parser.expect("=")?;
            Ok((name, at, parser.value()?))
        })?;
        let operands: Vec<ValueId> = pairs.iter().map(|&(_, _, operand)| operand).collect();
        let types = if self.eat(":") { self.types()? } else { Vec::new() };
        self.check_types(&operands, &types, pending.start)?;
        if self.eat("attributes") {
            pending.dictionary = self.dictionary()?;
        }
        self.begin(&mut pending, operands, block);
        let arguments: Vec<BlockArgument<'a>> = pairs
            .iter()
            .zip(&types)
            .map(|(&(name, at, _), ty)| BlockArgument {
                name,
                at,
                ty: ty.clone(),
                location: Location::UNKNOWN,
            })
            .collect();
        pending.loop_arguments = arguments.clone();
        pending.types = Some(Types { operands: None, results: types });
        pending.tail = Tail::Do;
        self.expect("cond")?;
        self.block_region(pending, arguments)
    }

    /// Reads `do {` of `stablehlo.while`.
    pub(super) fn while_body(&mut self, mut pending: Pending<'a>) -> Result<Frame<'a>, Error> {
        self.expect("do")?;
        pending.tail = Tail::Nothing;
        let arguments = std::mem::take(&mut pending.loop_arguments);
        self.block_region(pending, arguments)
    }

    /// Reads `(%a init: %0), (%b init: %1) across dimensions = [1] {x.y = 1} : types`, with `applies stablehlo.add`
    /// before `across` or a `reducer` at the end.
    pub(super) fn reduce(
        &mut self,
        mut pending: Pending<'a>,
        block: BlockId,
    ) -> Result<Option<Frame<'a>>, Error> {
        let (mut operands, inits) = self.reduced_values()?;
        let inputs = inits.len();
        operands.extend(inits);
        let applied = if self.eat("applies") { Some(self.applied(operands.len())?) } else { None };
        self.expect("across")?;
        self.expect("dimensions")?;
        self.expect("=")?;
        let values = self.integers()?.into();
        pending.set("dimensions", Attribute::IntegerArray { ty: ElementType::I64, values });
        pending.dictionary = self.optional_dictionary()?;
        self.expect(":")?;
        let ty = self.function_type()?;
        self.check_types(&operands, &ty.inputs, pending.start)?;
        self.begin(&mut pending, operands, block);
        pending.types = Some(Types { operands: None, results: ty.results });
        match applied {
            Some(applied) => self.reduce_with(pending, applied).map(|()| None),
            None => {
                self.expect("reducer")?;
                self.reducer(pending, inputs).map(Some)
            }
        }
    }

    /// `(%a init: %0), (%b init: %1)`: inputs and initial values.
    fn reduced_values(&mut self) -> Result<(Vec<ValueId>, Vec<ValueId>), Error> {
        let (mut inputs, mut inits) = (Vec::new(), Vec::new());
        loop {
            self.expect("(")?;
            inputs.push(self.value()?);
            self.expect("init")?;
            self.expect(":")?;
            inits.push(self.value()?);
            self.expect(")")?;
            if !self.eat(",") {
                return Ok((inputs, inits));
            }
        }
    }

    /// `stablehlo.add` after `applies`: the only operation of the region of a reduction with `operands` operands.
    fn applied(&mut self, operands: usize) -> Result<Op, Error> {
        let at = self.token.start;
        let name = self.bare("the name of an operation")?;
        let code = OpCode::from_name(name).filter(|code| {
            let info = code.info();
            info.operands.len() == 2 && info.has(Trait::Commutative)
        });
        let Some(code) = code else {
            let message =
                format!("expected a commutative operation with two operands, found '{}'", shortened(name));
            return Err(self.error_at(at, message));
        };
        if operands != 2 {
            return Err(
                self.error_at(at, "expected one operand and one initial value, because 'applies' is given")
            );
        }
        Op::from_attributes(code, &mut |_| None).map_err(|error| self.error_at(at, error.to_string()))
    }

    /// Ends a reduction of one input, whose region is an operation and a return.
    fn reduce_with(&mut self, pending: Pending<'a>, applied: Op) -> Result<(), Error> {
        let op = pending.op;
        let (_, inner) = self.add_region(op);
        self.finish(pending)?;
        // MLIR prints this form only if all parts of the reduction have one location.
        let body = &mut self.function.body;
        let location = body.op(op).location.clone();
        let element = body.ty(body.op(op).operands[1]).clone();
        let arguments = [(); 2].map(|()| body.add_argument(inner, element.clone()));
        arguments.into_iter().for_each(|argument| body.set_argument_location(argument, location.clone()));
        let applied = body.add_op(inner, applied, arguments, [element], location.clone());
        let result = body.op(applied).result();
        body.add_op(inner, Op::Return(Return {}), [result], [], location);
        Ok(())
    }

    /// Reads `(%a: A, %b: A) (%c: C, %d: C) {`: a pair of arguments for each input.
    fn reducer(&mut self, mut pending: Pending<'a>, inputs: usize) -> Result<Frame<'a>, Error> {
        let (mut lefts, mut rights) = (Vec::new(), Vec::new());
        let at = self.token.start;
        while self.at("(") {
            let mut pair = self.list("(", ")", Self::block_argument)?;
            let (Some(right), Some(left), None) = (pair.pop(), pair.pop(), pair.pop()) else {
                return Err(self.error_at(at, "expected two arguments in each pair of the reducer"));
            };
            lefts.push(left);
            rights.push(right);
        }
        if lefts.len() != inputs {
            let message =
                format!("expected {inputs} pairs of arguments in the reducer, found {}", lefts.len());
            return Err(self.error_at(at, message));
        }
        lefts.extend(rights);
        pending.tail = Tail::Nothing;
        self.block_region(pending, lefts)
    }

    /// Reads `"name" %a, %b ({region}) {decomposition = @f} : types`.
    pub(super) fn composite(
        &mut self,
        mut pending: Pending<'a>,
        block: BlockId,
    ) -> Result<Option<Frame<'a>>, Error> {
        let name = self.string()?;
        pending.set("name", Attribute::String(name));
        let operands = self.values()?;
        self.begin(&mut pending, operands, block);
        if self.eat("(") {
            return self.generic_region(pending).map(Some);
        }
        self.attributes_and_types(pending)
    }

    /// Reads `(%a) inits (%b) dimension = 0 attributes {is_reverse = true} {region} : types` of `chlo.scan`.
    pub(super) fn scan(&mut self, mut pending: Pending<'a>, block: BlockId) -> Result<Frame<'a>, Error> {
        let mut operands = self.list("(", ")", Self::value)?;
        let inputs = operands.len() as i64;
        self.expect("inits")?;
        let inits = self.list("(", ")", Self::value)?;
        let carries = inits.len() as i64;
        operands.extend(inits);
        self.expect("dimension")?;
        self.expect("=")?;
        let dimension = self.integer()?;
        if self.eat("attributes") {
            pending.dictionary = self.dictionary()?;
        }
        pending.set("dimension", Attribute::from(dimension));
        pending.set("operandSegmentSizes", segments(inputs, carries));
        self.begin(&mut pending, operands, block);
        pending.tail = Tail::ScanTypes { carries };
        self.generic_region(pending)
    }

    /// Reads the types of a scan, which determine the number of outputs.
    pub(super) fn scan_types(&mut self, pending: &mut Pending<'a>, carries: i64) -> Result<(), Error> {
        let at = self.token.start;
        self.dictionary_and_types(pending)?;
        let results = pending.types.as_ref().map_or(0, |types| types.results.len() as i64);
        if results < carries {
            let message = format!("expected at least {carries} results, one for each carry, found {results}");
            return Err(self.error_at(at, message));
        }
        pending.set("resultSegmentSizes", segments(results - carries, carries));
        Ok(())
    }

    /// Reads `(%a) in_shardings=[...] out_shardings=[...] manual_axes={...} (%b: B) {region} : types`.
    pub(super) fn manual_computation(
        &mut self,
        mut pending: Pending<'a>,
        block: BlockId,
    ) -> Result<Frame<'a>, Error> {
        let operands = self.list("(", ")", Self::value)?;
        self.begin(&mut pending, operands, block);
        for keyword in ["in_shardings", "out_shardings"] {
            self.expect(keyword)?;
            self.expect("=")?;
            let shardings = self.shardings()?;
            pending.set(keyword, shardings);
        }
        if pending.code == Some(OpCode::ManualComputation) {
            self.expect("manual_axes")?;
            self.expect("=")?;
            let axes = self.manual_axes()?;
            pending.set("manual_axes", axes);
        }
        self.region_with_arguments(pending)
    }

    /// Reads `<"name">(%a) in_shardings=[...] out_shardings=[...] (%b: B) {region} : types`.
    pub(super) fn named_computation(
        &mut self,
        mut pending: Pending<'a>,
        block: BlockId,
    ) -> Result<Frame<'a>, Error> {
        self.expect("<")?;
        let name = self.string()?;
        pending.set("name", Attribute::String(name));
        self.expect(">")?;
        self.manual_computation(pending, block)
    }

    /// Reads `(%a: A, %b: B) {region} : types`.
    fn region_with_arguments(&mut self, mut pending: Pending<'a>) -> Result<Frame<'a>, Error> {
        let arguments = self.list("(", ")", Self::block_argument)?;
        pending.tail = Tail::Types;
        self.block_region(pending, arguments)
    }
}

/// Returns the segment sizes of scanned and carried values.
fn segments(scanned: i64, carried: i64) -> Attribute {
    Attribute::IntegerArray { ty: ElementType::I32, values: [scanned, carried].into() }
}
