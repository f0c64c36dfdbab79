//! The writer of function bodies. It does not recurse.

use super::correspondence::{
    first_form_lacks, first_form_padding, introduced_later, to_vhlo, vhlo_attributes,
};
use super::encoder::Home;
use super::file_writer::{OpHead, Writer};
use super::output::Output;
use super::sections::{FORMAT_ELIDED_LOCATIONS, FORMAT_USE_LIST_ORDERS};
use crate::ir::{Attribute, BlockId, Body, Op, OpCode, OpId, RegionId, Str, Trait, Type, ValueId};
use crate::versions::Version;
use crate::{Error, ErrorKind};

/// The operation that converts a type of VHLO to the corresponding type of another dialect, and back.
const CAST: &str = "builtin.unrealized_conversion_cast";

/// A region whose operations are being written.
struct Open {
    region: RegionId,
    /// The position among the regions of its operation.
    index: usize,
    isolated: bool,
    block: usize,
    /// The number of operations of the block that have been written; `None` before the start of the block.
    op: Option<usize>,
    /// The number of the next value.
    next_value: u64,
    /// The number of the first value of nested regions.
    nested_values: u64,
}

/// The state of a body that is being written.
struct BodyWriter<'w, 'b> {
    writer: &'w mut Writer,
    body: &'b Body,
    /// The encoding of each value's type.
    homes: Vec<Home>,
    /// The number of each value in scope.
    numbers: Vec<Option<u64>>,
    open: Vec<Open>,
    /// The outputs of the open regions that are isolated, from the outermost.
    outputs: Vec<Output>,
}

/// Returns the encoded region of a function.
pub(super) fn write_body(writer: &mut Writer, body: &Body) -> Result<Output, Error> {
    let homes =
        if writer.version.is_some() { value_homes(body) } else { vec![Home::Native; body.num_values()] };
    let numbers = vec![None; body.num_values()];
    let outputs = vec![Output::default()];
    let mut body = BodyWriter { writer, body, homes, numbers, open: Vec::new(), outputs };
    body.open_region(Body::ROOT, 0, true);
    while body.step()? {}
    Ok(body.outputs.pop().unwrap_or_default())
}

/// Returns the encodings of an operation's attributes and types in a file with VHLO.
fn op_home(op: &Op) -> Home {
    match op {
        Op::FuncReturn(_) => Home::Vhlo,
        op if op.info().vhlo.is_some() => Home::Vhlo,
        _ => Home::Native,
    }
}

/// Returns the encodings of the types of all values in a file with VHLO.
fn value_homes(body: &Body) -> Vec<Home> {
    // The arguments of the function's blocks.
    let mut homes = vec![Home::Vhlo; body.num_values()];
    for (_, op) in body.all_ops() {
        let home = op_home(&op.kind);
        op.results.into_iter().for_each(|result| homes[result.index()] = home);
        for block in op.regions.iter().flat_map(|&region| &body.region(region).blocks) {
            body.block(*block).arguments.iter().for_each(|argument| homes[argument.index()] = home);
        }
    }
    homes
}

impl BodyWriter<'_, '_> {
    fn out(&mut self) -> &mut Output {
        self.outputs.last_mut().expect("the output of the function is open")
    }

    /// Returns `true` if a value has to be converted before an operation with this encoding uses it.
    fn needs_cast(&self, operand: ValueId, home: Home) -> bool {
        self.homes[operand.index()] != home && !matches!(self.body.ty(operand), Type::Opaque(_))
    }

    fn home(&self, op: &Op) -> Home {
        if self.writer.version.is_some() { op_home(op) } else { Home::Native }
    }

    /// Returns the number of conversions before an operation.
    fn casts(&self, op: OpId) -> u64 {
        let op = self.body.op(op);
        let home = self.home(&op.kind);
        op.operands.iter().filter(|&&operand| self.needs_cast(operand, home)).count() as u64
    }

    /// Begins a region.
    fn open_region(&mut self, region: RegionId, index: usize, isolated: bool) {
        let body = self.body;
        let blocks = &body.region(region).blocks;
        let mut values = 0;
        for &block in blocks {
            let block = body.block(block);
            values += block.arguments.len() as u64;
            values +=
                block.ops.iter().map(|&op| body.op(op).results.len() as u64 + self.casts(op)).sum::<u64>();
        }
        let first = if isolated { 0 } else { self.open.last().map_or(0, |open| open.nested_values) };
        if isolated && !self.open.is_empty() {
            self.outputs.push(Output::default());
        }
        let (count, nested_values) = (blocks.len(), first + values);
        self.out().count(count);
        if count > 0 {
            self.out().varint(values);
        }
        self.open.push(Open {
            region,
            index,
            isolated,
            block: 0,
            op: None,
            next_value: first,
            nested_values,
        });
    }

    /// Writes the next part of the innermost open region. Returns `false` at the end of the body.
    fn step(&mut self) -> Result<bool, Error> {
        let body = self.body;
        let Some(top) = self.open.last_mut() else { return Ok(false) };
        let Some(&block) = body.region(top.region).blocks.get(top.block) else {
            self.close_region();
            return Ok(true);
        };
        let Some(op) = top.op else {
            top.op = Some(0);
            self.start_block(block)?;
            return Ok(true);
        };
        match body.block(block).ops.get(op) {
            None => (top.block, top.op) = (top.block + 1, None),
            Some(&id) => {
                top.op = Some(op + 1);
                let op = body.op(id);
                self.write_op(id).map_err(|error| error.in_op(op.kind.name(), &op.location))?;
                if let Some(&region) = op.regions.first() {
                    self.open_region(region, 0, is_isolated(body, id));
                }
            }
        }
        Ok(true)
    }

    /// Ends the innermost region, and begins the next one of its operation.
    fn close_region(&mut self) {
        let Some(closed) = self.open.pop() else { return };
        if closed.isolated && !self.open.is_empty() {
            let region = self.outputs.pop().unwrap_or_default();
            let out = self.outputs.last_mut().expect("the output of the function is open");
            self.writer.isolated_region(out, &region);
        }
        if self.open.is_empty() {
            return;
        }
        let parent = self.body.region(closed.region).parent;
        let next = parent.and_then(|op| self.body.op(op).regions.get(closed.index + 1));
        if let Some(&region) = next {
            self.open_region(region, closed.index + 1, false);
        }
    }

    fn start_block(&mut self, id: BlockId) -> Result<(), Error> {
        let body = self.body;
        let block = body.block(id);
        let casts: u64 = block.ops.iter().map(|&op| self.casts(op)).sum();
        let mut out = Output::default();
        out.varint_with_flag(block.ops.len() as u64 + casts, !block.arguments.is_empty());
        if !block.arguments.is_empty() {
            out.count(block.arguments.len());
        }
        for (index, &argument) in block.arguments.iter().enumerate() {
            let ty = self.writer.encoder.ty(self.homes[argument.index()], body.ty(argument))?;
            let location = block.argument_locations.get(index).cloned().unwrap_or_default();
            let has_location = !location.is_unknown();
            let elided = self.writer.format >= FORMAT_ELIDED_LOCATIONS;
            if elided {
                out.varint_with_flag(ty, has_location)
            } else {
                out.varint(ty)
            }
            if has_location || !elided {
                out.varint(self.writer.encoder.location(&location)?);
            }
            self.define(argument);
        }
        if !block.arguments.is_empty() && self.writer.format >= FORMAT_USE_LIST_ORDERS {
            // There are no orders of uses.
            out.byte(0);
        }
        self.out().append(&out);
        Ok(())
    }

    /// Returns the next number of a value in the innermost region.
    fn next_value(&mut self) -> u64 {
        let open = self.open.last_mut().expect("a region is open");
        open.next_value += 1;
        open.next_value - 1
    }

    fn define(&mut self, value: ValueId) {
        self.numbers[value.index()] = Some(self.next_value());
    }

    /// Writes an operation without its regions, after the conversions of its operands.
    fn write_op(&mut self, id: OpId) -> Result<(), Error> {
        let body = self.body;
        let op = body.op(id);
        let home = self.home(&op.kind);
        let mut operands = Vec::with_capacity(op.operands.len());
        let mut out = Output::default();
        for &operand in &op.operands {
            let Some(number) = self.numbers[operand.index()] else {
                let message = "an operand is used before its definition, which is not supported";
                return Err(Error::new(ErrorKind::Invalid, message));
            };
            operands.push(if self.needs_cast(operand, home) {
                self.cast(&mut out, operand, number, home, id)?
            } else {
                number
            });
        }
        let (form, own) = match self.writer.version {
            Some(version) if home == Home::Vhlo => self.vhlo_op(id, version)?,
            _ => {
                self.writer.encoder.require_mixed_dialects(|| "operations of other dialects".to_owned())?;
                (self.writer.native_form(op.kind.name())?, op.kind.attributes())
            }
        };
        let head = OpHead {
            form,
            location: &op.location,
            own,
            discardable: &op.attributes,
            result_types: op.results.into_iter().map(|result| body.ty(result)).collect(),
            operands,
            regions: (op.regions.len(), is_isolated(body, id)),
        };
        self.writer.op_head(&mut out, head)?;
        op.results.into_iter().for_each(|result| self.define(result));
        self.out().append(&out);
        Ok(())
    }

    /// Writes the conversion of an operand's type to another encoding, and returns the number of the result.
    fn cast(
        &mut self,
        out: &mut Output,
        operand: ValueId,
        number: u64,
        home: Home,
        op: OpId,
    ) -> Result<u64, Error> {
        let ty = self.writer.encoder.ty(home, self.body.ty(operand))?;
        let form = self.writer.native_form(CAST)?;
        self.writer.cast_head(out, &form, &self.body.op(op).location, ty, number)?;
        Ok(self.next_value())
    }

    /// Returns the name of an operation in a version of VHLO, and its attributes there.
    #[expect(clippy::type_complexity, reason = "a name and named attributes")]
    fn vhlo_op(
        &mut self,
        id: OpId,
        version: Version,
    ) -> Result<(std::rc::Rc<super::file_writer::Form>, Vec<(Str, Attribute)>), Error> {
        let op = self.body.op(id);
        let code = op.kind.code();
        let encoder = &self.writer.encoder;
        let Some(forms) = code.info().vhlo else {
            // The return of a function is the only such operation.
            return Ok((self.writer.form("vhlo.return_v1", || Some(Vec::new()))?, Vec::new()));
        };
        let introduction = |(major, minor): (u32, u32)| Version::new(major, minor, 0);
        encoder.require(introduction(forms.since), || "this operation".to_owned())?;
        for (since, what) in introduced_later(self.body, id) {
            encoder.require(introduction(since), || what.to_owned())?;
        }
        let mut own: Vec<(Str, Attribute)> = Vec::new();
        for (name, attribute) in op.kind.encode_attributes(code != OpCode::FuncCall) {
            // Only the callee of a call has a form in VHLO.
            let is_converted = code != OpCode::FuncCall;
            own.extend(if is_converted { to_vhlo(code, &name, attribute) } else { vec![(name, attribute)] });
        }
        let form = match forms.second_since {
            Some(second) if (version.major, version.minor) < second => {
                if let Some(what) = first_form_lacks(self.body, id, &own) {
                    encoder.require(introduction(second), || what)?;
                }
                1
            }
            _ => forms.newest(),
        };
        let attributes = vhlo_attributes(code, form);
        if code == OpCode::DynamicConv && form == 1 {
            own.push(("padding".into(), first_form_padding(self.body, id)?));
        }
        // The other attributes of a call remain in its dictionary.
        if code != OpCode::FuncCall {
            own.retain(|(name, _)| attributes.iter().any(|(known, _)| known == name));
        }
        let name = Writer::vhlo_form_name(code.info().name, form);
        Ok((self.writer.form(&name, || Some(attributes))?, own))
    }
}

/// Returns `true` if an operation's region uses no values of enclosing regions.
fn is_isolated(body: &Body, op: OpId) -> bool {
    let op = body.op(op);
    op.regions.len() == 1 && op.info().has(Trait::IsolatedFromAbove)
}
