//! Operations: the parts that all forms share, and the generic form.

use super::lexer::Kind;
use super::module::without;
use super::parser::{Parser, shortened};
use super::pending::{Frame, Pending, ResultName, Tail, Types};
use crate::ir::ops::Return;
use crate::ir::{
    Attribute, BlockId, Body, DictionaryAttribute, Location, Op, OpCode, OpId, OtherOp, Str, ValueId,
    is_unknown, own_attributes, similar_operation,
};
use crate::{Error, ErrorKind};

/// Attributes with the sizes of operand and result groups, which follow from the op table.
const SEGMENT_SIZES: &[&str] =
    &["operandSegmentSizes", "operand_segment_sizes", "resultSegmentSizes", "result_segment_sizes"];

impl<'a> Parser<'a> {
    /// Reads an operation, or the part before its first region.
    pub(super) fn operation(&mut self, block: BlockId) -> Result<Option<Frame<'a>>, Error> {
        let start = self.token.start;
        let names = self.result_names()?;
        let mut pending = Pending {
            start,
            op: OpId(0),
            names,
            name: "",
            code: None,
            properties: Vec::new(),
            dictionary: DictionaryAttribute::default(),
            types: None,
            tail: Tail::Generic,
            loop_arguments: Vec::new(),
        };
        match self.token.kind {
            Kind::String => {
                let quoted = self.advance();
                pending.name = &quoted[1..quoted.len() - 1];
                pending.code = OpCode::from_name(pending.name);
                self.known(&pending)?;
                self.generic(pending, block)
            }
            Kind::Bare => {
                let name = self.advance();
                pending.name = match name {
                    "return" => "func.return",
                    "call" => "func.call",
                    name => name,
                };
                pending.code = OpCode::from_name(pending.name);
                self.known(&pending)?;
                self.custom(pending, block)
            }
            _ => Err(self.expected("an operation or '}'")),
        }
    }

    /// Returns an error if the operation's dialect has no operation with its name.
    fn known(&self, pending: &Pending<'a>) -> Result<(), Error> {
        if pending.code.is_some() || !is_unknown(pending.name) {
            return Ok(());
        }
        let mut message = format!("unknown operation '{}'", shortened(pending.name));
        if let Some(similar) = similar_operation(pending.name) {
            message.push_str(&format!("; did you mean '{similar}'?"));
        }
        Err(self.unsupported_at(pending.start, message))
    }

    /// Reads `%0, %1:2 =`, which is optional.
    fn result_names(&mut self) -> Result<Vec<ResultName<'a>>, Error> {
        let mut names = Vec::new();
        if self.token.kind != Kind::Value {
            return Ok(names);
        }
        loop {
            let at = self.token.start;
            let name = self.expect_kind(Kind::Value, "the name of a result")?;
            let mut count = 1;
            if self.eat(":") {
                let number = self.integer()?;
                count = u32::try_from(number).ok().filter(|&count| count > 0).ok_or_else(|| {
                    self.error_at(at, format!("expected a number of results, found {number}"))
                })?;
            }
            names.push(ResultName { name, at, count });
            if !self.eat(",") {
                break;
            }
        }
        self.expect("=")?;
        Ok(names)
    }

    /// Reads `(%a, %b) <{a = 1}> ({region}, {region}) {b = 1} : (tensor<f32>, tensor<f32>) -> tensor<f32>`.
    fn generic(&mut self, mut pending: Pending<'a>, block: BlockId) -> Result<Option<Frame<'a>>, Error> {
        let operands = self.list("(", ")", Self::value)?;
        if self.at("[") {
            return Err(
                self.unsupported_at(self.token.start, "operations with successor blocks are not supported")
            );
        }
        pending.properties = self.optional_properties()?.entries().to_vec();
        self.begin(&mut pending, operands, block);
        if self.eat("(") {
            return self.generic_region(pending).map(Some);
        }
        self.attributes_and_types(pending)
    }

    /// Adds the operation to the function, without its kind and results. [`Parser::finish`] adds them.
    pub(super) fn begin(&mut self, pending: &mut Pending<'a>, operands: Vec<ValueId>, block: BlockId) {
        pending.op = self.function.body.add_op(block, Op::Return(Return {}), operands, [], Location::UNKNOWN);
    }

    /// Continues after a region of an operation.
    pub(super) fn after_region(&mut self, mut pending: Pending<'a>) -> Result<Option<Frame<'a>>, Error> {
        match pending.tail {
            Tail::Generic => {
                if self.eat(",") {
                    return self.generic_region(pending).map(Some);
                }
                if !self.at(")") {
                    return Err(self.expected("',' or ')' after a region"));
                }
                self.advance();
                self.attributes_and_types(pending)
            }
            Tail::Do => self.while_body(pending).map(Some),
            Tail::Types => self.attributes_and_types(pending),
            Tail::ScanTypes { carries } => {
                self.scan_types(&mut pending, carries)?;
                self.finish(pending).map(|()| None)
            }
            Tail::Nothing => self.finish(pending).map(|()| None),
        }
    }

    /// Reads `{a = 1} : (tensor<f32>) -> tensor<f32>`, the end of most operations.
    pub(super) fn attributes_and_types(
        &mut self,
        mut pending: Pending<'a>,
    ) -> Result<Option<Frame<'a>>, Error> {
        self.dictionary_and_types(&mut pending)?;
        self.finish(pending).map(|()| None)
    }

    /// Reads the attributes and types without completing the operation.
    pub(super) fn dictionary_and_types(&mut self, pending: &mut Pending<'a>) -> Result<(), Error> {
        if self.at("{") {
            let before = std::mem::take(&mut pending.dictionary);
            let further = self.dictionary()?;
            pending.dictionary = self.sorted([before.entries(), further.entries()].concat())?;
        }
        self.expect(":")?;
        let ty = self.function_type()?;
        pending.types = Some(Types { operands: Some(ty.inputs), results: ty.results });
        Ok(())
    }

    /// Completes an operation. Only its location follows.
    pub(super) fn finish(&mut self, mut pending: Pending<'a>) -> Result<(), Error> {
        let start = pending.start;
        let location = self.location_or_place(start)?;
        let types = pending.types.take().unwrap_or_default();
        if let Some(operand_types) = &types.operands {
            self.check_types(&self.function.body.op(pending.op).operands, operand_types, start)?;
        }
        let names = std::mem::take(&mut pending.names);
        let named: u64 = names.iter().map(|name| u64::from(name.count)).sum();
        if !names.is_empty() && named != types.results.len() as u64 {
            let message = format!("expected names for {} results, found {named}", types.results.len());
            return Err(self.error_at(start, message));
        }
        let (kind, attributes) = self.kind(&pending).map_err(|error| {
            let error = if error.offset.is_some() {
                error
            } else {
                self.other_error_at(error.kind, start, error.message)
            };
            error.in_op(pending.name, &location)
        })?;
        let body = &mut self.function.body;
        body.add_results(pending.op, types.results);
        let op = body.op_mut(pending.op);
        op.kind = kind;
        op.attributes = attributes;
        op.location = location;
        let results = op.results;
        let mut place = 0;
        for ResultName { name, at, count } in names {
            if let Some(first) = results.get(place) {
                self.define(name, first, count, at)?;
            }
            place += count as usize;
        }
        Ok(())
    }

    /// Returns the kind of the operation, and its discardable attributes.
    fn kind(&mut self, pending: &Pending<'a>) -> Result<(Op, DictionaryAttribute), Error> {
        let is_root = {
            let body = &self.function.body;
            body.block(body.op(pending.op).block).region == Body::ROOT
        };
        match pending.code {
            // Some hosts terminate functions with `stablehlo.return`.
            Some(OpCode::Return) if is_root => self.table_op(OpCode::FuncReturn, pending),
            Some(code) => self.table_op(code, pending),
            None => self.other_op(pending),
        }
    }

    /// Returns an operation that is not in the op table, and its discardable attributes.
    fn other_op(&self, pending: &Pending<'a>) -> Result<(Op, DictionaryAttribute), Error> {
        let Pending { name, properties, dictionary, .. } = pending;
        if matches!(*name, "func.func" | "builtin.module") {
            let message = format!("operation '{name}' is not supported inside a function");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        // The dictionary of a text may also contain inherent attributes.
        let known = own_attributes(name);
        let own: Vec<&str> = known.unwrap_or_default().iter().map(|(own, _)| *own).collect();
        if known.is_some()
            && let Some((unknown, _)) =
                properties.iter().find(|(key, _)| !own.contains(&&**key) && !SEGMENT_SIZES.contains(&&**key))
        {
            return Err(no_attribute(unknown));
        }
        let is_own = |(key, _): &&(Str, Attribute)| own.contains(&&**key);
        let further = dictionary.entries().iter().filter(is_own);
        let properties = self.sorted(properties.iter().chain(further).cloned().collect())?;
        let op = Op::Other(Box::new(OtherOp { name: (*name).into(), properties }));
        Ok((op, without(dictionary, &own)))
    }

    /// Returns an operation of the op table, and its discardable attributes.
    fn table_op(&mut self, code: OpCode, pending: &Pending<'a>) -> Result<(Op, DictionaryAttribute), Error> {
        let Pending { properties, dictionary, .. } = pending;
        let own = code.info().attributes;
        let is_own = |key: &str| own.iter().any(|spec| spec.name == key) || SEGMENT_SIZES.contains(&key);
        if let Some((unknown, _)) = properties.iter().find(|(key, _)| !is_own(key)) {
            return Err(no_attribute(unknown));
        }
        for (index, (name, _)) in properties.iter().enumerate() {
            let is_again = properties[..index].iter().any(|(before, _)| before == name);
            if is_again || dictionary.get(name).is_some() {
                let message = format!("attribute '{}' is given twice", shortened(name));
                return Err(Error::new(ErrorKind::Invalid, message));
            }
        }
        let get = |wanted: &str| {
            let own = properties.iter().find(|(key, _)| *key == wanted).map(|(_, attribute)| attribute);
            own.or_else(|| dictionary.get(wanted))
        };
        // The value of a constant is shared rather than copied.
        if code != OpCode::Constant {
            for spec in own {
                if let Some(attribute) = get(spec.name) {
                    self.charge(attribute)?;
                }
            }
        }
        let mut op = Op::from_attributes(code, &mut |wanted| get(wanted).cloned())
            .map_err(|error| Error::new(ErrorKind::Invalid, error.message()))?;
        let body = &self.function.body;
        let first = body.op(pending.op).operands.first().and_then(|&operand| body.ty(operand).as_tensor());
        op.fill_defaults(first.map_or(0, |tensor| tensor.rank()));
        if dictionary.is_empty() {
            return Ok((op, DictionaryAttribute::default()));
        }
        let names: Vec<&str> =
            own.iter().map(|spec| spec.name).chain(SEGMENT_SIZES.iter().copied()).collect();
        Ok((op, without(dictionary, &names)))
    }

    /// Counts the elements of an attribute that becomes a field of an operation.
    pub(super) fn charge(&mut self, attribute: &Attribute) -> Result<(), Error> {
        self.attribute_numbers =
            self.attribute_numbers.checked_sub(attribute.numbers()).ok_or_else(|| {
                let message = "the attributes of the program's operations have too many elements in total";
                self.other_error_at(ErrorKind::TooLarge, self.token.start, message)
            })?;
        Ok(())
    }
}

/// Returns the error for an unknown attribute.
fn no_attribute(name: &str) -> Error {
    Error::new(ErrorKind::Invalid, format!("unknown attribute '{}'", shortened(name)))
}
