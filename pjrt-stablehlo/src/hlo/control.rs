//! Calls, loops, conditionals, and operations that apply a computation to elements.

use std::rc::Rc;

use super::attributes::ints;
use super::instruction::{Instruction, Value};
use super::reader::Reader;
use super::shape::Shape;
use crate::ir::{DictionaryAttribute, ElementType, Op, Str, ValueId, ops};
use crate::{Error, ErrorKind, text};

/// The frontend attributes in which XLA stores the attributes of a composite.
const COMPOSITE_NAME: &str = "composite.name";
const COMPOSITE_ATTRIBUTES: &str = "composite.attributes";
const COMPOSITE_VERSION: &str = "composite.version";

impl Reader {
    pub(super) fn call(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let computation = self.called(at, 0)?;
        let callee = self.function(computation);
        // The result of an asynchronous call is the second element of its shape, between its operands and its context.
        let shape = match &*at.proto.opcode {
            "async-start" => at.shape.elements().get(1).unwrap_or(&at.shape),
            _ => &at.shape,
        };
        Ok(self.code.call(callee, &at.leaves(), shape.leaves()))
    }

    /// Converts a call of a composite's decomposition, whose name and attributes are frontend attributes.
    pub(super) fn composite_call(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let attribute = |name: &str| {
            at.proto.frontend_attributes.as_ref().and_then(|attributes| attributes.map.get(name))
        };
        let malformed = |what: &str| {
            at.error(ErrorKind::Malformed, format!("the composite's '{what}' is missing or damaged"))
        };
        let name: Str = attribute(COMPOSITE_NAME).ok_or_else(|| malformed(COMPOSITE_NAME))?.as_str().into();
        let composite_attributes = match attribute(COMPOSITE_ATTRIBUTES) {
            Some(text) => text::parse_dictionary(text).map_err(|_| malformed(COMPOSITE_ATTRIBUTES))?,
            None => DictionaryAttribute::default(),
        };
        let version = match attribute(COMPOSITE_VERSION) {
            Some(text) => text.parse().map_err(|_| malformed(COMPOSITE_VERSION))?,
            None => 0,
        };
        let computation = self.called(at, 0)?;
        let decomposition = self.function(computation);
        let op = ops::Composite { name, composite_attributes, decomposition, version };
        Ok(self.code.op_of_types(op, &at.leaves(), at.shape.leaves()))
    }

    pub(super) fn while_loop(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = self.code.add_op(ops::While {}, &at.leaves(), at.shape.leaves());
        // XLA lists the body before the condition.
        self.region(at, op, 1)?;
        self.region(at, op, 0)?;
        Ok(self.code.body.op(op).results.collect())
    }

    pub(super) fn conditional(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let index = at.array(0)?;
        let is_predicate = at.tensor(&self.code, 0)?.element_type() == ElementType::I1;
        let branches = at.proto.called_computation_ids.len();
        if is_predicate && branches != 2 {
            return Err(at.invalid(format!(
                "expected two branches, because the index is a predicate, found {branches}"
            )));
        }
        let kind = if is_predicate { Op::If(ops::If {}) } else { Op::Case(ops::Case {}) };
        let op = self.code.add_op(kind, &[index], at.shape.leaves());
        for branch in 0..branches {
            let parameter: Rc<Value> = at.operand(1 + branch)?.clone();
            self.capturing_region(at, op, branch, vec![parameter])?;
        }
        Ok(self.code.body.op(op).results.collect())
    }

    pub(super) fn map(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let rank = at.tensor(&self.code, 0)?.rank() as i64;
        let op = ops::Map { dimensions: (0..rank).collect() };
        self.applied(at, op, &at.leaves())
    }

    pub(super) fn reduce(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Reduce { dimensions: ints(&at.proto.dimensions) };
        self.applied(at, op, &at.leaves())
    }

    pub(super) fn sort(&mut self, at: &Instruction) -> Result<Vec<ValueId>, Error> {
        let op = ops::Sort { dimension: at.dimension(0)?, is_stable: at.proto.is_stable };
        self.applied(at, op, &at.arrays()?)
    }

    /// Adds an operation whose regions are the called computations, in order, and whose results have the shape of the
    /// instruction.
    pub(super) fn applied(
        &mut self,
        at: &Instruction,
        op: impl Into<Op>,
        operands: &[ValueId],
    ) -> Result<Vec<ValueId>, Error> {
        let op = self.code.add_op(op, operands, at.shape.leaves());
        let regions = self.code.body.op(op).info().regions.len();
        (0..regions).try_for_each(|index| self.region(at, op, index))?;
        Ok(self.code.body.op(op).results.collect())
    }

    /// Returns a value as a single value of StableHLO, with its tuples.
    pub(super) fn packed(&mut self, value: &Value) -> ValueId {
        match &value.shape {
            Shape::Leaf(_) => value.leaves[0],
            Shape::Tuple { elements, .. } => {
                let elements: Vec<ValueId> = (0..elements.len())
                    .filter_map(|index| value.element(index))
                    .map(|element| self.packed(&element))
                    .collect();
                self.code.op(ops::Tuple {}, &elements)
            }
        }
    }

    /// Appends the arrays and tokens of a value of this shape.
    pub(super) fn unpacked(&mut self, value: ValueId, shape: &Shape, leaves: &mut Vec<ValueId>) {
        let Shape::Tuple { elements, .. } = shape else {
            leaves.push(value);
            return;
        };
        for (index, element) in elements.iter().enumerate() {
            let op = ops::GetTupleElement { index: index as i64 };
            let part = self.code.op_of_type(op, &[value], element.ty());
            self.unpacked(part, element, leaves);
        }
    }
}
