//! An instruction that is being read: its message, its shape and its operands.

use std::rc::Rc;

use super::proto;
use super::shape::{self, Shape};
use crate::build::Builder;
use crate::ir::{Location, TensorType, Type, ValueId};
use crate::{Error, ErrorKind};

/// The value of an instruction, as the values of StableHLO for the leaves of its shape.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) shape: Shape,
    pub(super) leaves: Vec<ValueId>,
    /// The dimensions of an array from minor to major, unless it is row-major. Bitcasts depend on them.
    pub(super) order: Option<Box<[i64]>>,
}

impl Value {
    pub(super) fn new(shape: Shape, leaves: Vec<ValueId>) -> Self {
        Value { shape, leaves, order: None }
    }

    /// Returns an element of a tuple. A value that is not a tuple counts as its only element.
    pub(super) fn element(&self, index: usize) -> Option<Value> {
        match &self.shape {
            Shape::Leaf(_) => (index == 0).then(|| self.clone()),
            Shape::Tuple { elements, starts } => {
                let leaves = self.leaves.get(*starts.get(index)?..*starts.get(index + 1)?)?;
                Some(Value::new(elements.get(index)?.clone(), leaves.to_vec()))
            }
        }
    }
}

pub(super) struct Instruction {
    pub(super) proto: proto::Instruction,
    pub(super) shape: Shape,
    pub(super) operands: Vec<Rc<Value>>,
    pub(super) location: Location,
    /// The index of its computation in the module.
    pub(super) computation: usize,
}

/// Returns an error about an instruction.
pub(super) fn error_in(
    proto: &proto::Instruction,
    location: &Location,
    kind: ErrorKind,
    message: impl Into<String>,
) -> Error {
    Error::new(kind, message).in_op(format!("{} '{}'", proto.opcode, proto.name), location)
}

impl Instruction {
    pub(super) fn error(&self, kind: ErrorKind, message: impl Into<String>) -> Error {
        error_in(&self.proto, &self.location, kind, message)
    }

    pub(super) fn invalid(&self, message: impl Into<String>) -> Error {
        self.error(ErrorKind::Invalid, message)
    }

    pub(super) fn unsupported(&self, message: impl Into<String>) -> Error {
        self.error(ErrorKind::Unsupported, message)
    }

    /// Adds the instruction and its location to an error.
    pub(super) fn placed(&self, error: Error) -> Error {
        error.in_op(format!("{} '{}'", self.proto.opcode, self.proto.name), &self.location)
    }

    /// Returns operand `index`, which may be a tuple.
    pub(super) fn operand(&self, index: usize) -> Result<&Rc<Value>, Error> {
        self.operands.get(index).ok_or_else(|| {
            self.invalid(format!("expected at least {} operands, found {}", index + 1, self.operands.len()))
        })
    }

    /// Returns operand `index`, which must not be a tuple.
    pub(super) fn array(&self, index: usize) -> Result<ValueId, Error> {
        let operand = self.operand(index)?;
        match (&operand.shape, &*operand.leaves) {
            (Shape::Leaf(_), &[value]) => Ok(value),
            _ => Err(self.invalid(format!("operand {index}: expected an array, found a tuple"))),
        }
    }

    /// Returns all operands, none of which may be a tuple.
    pub(super) fn arrays(&self) -> Result<Vec<ValueId>, Error> {
        (0..self.operands.len()).map(|index| self.array(index)).collect()
    }

    /// Returns the arrays and tokens of all operands, including those in tuples.
    pub(super) fn leaves(&self) -> Vec<ValueId> {
        self.operands.iter().flat_map(|operand| operand.leaves.iter().copied()).collect()
    }

    /// Returns the type of operand `index`, which must be a tensor.
    pub(super) fn tensor(&self, builder: &Builder, index: usize) -> Result<TensorType, Error> {
        let ty = builder.body.ty(self.array(index)?);
        ty.as_tensor()
            .cloned()
            .ok_or_else(|| self.invalid(format!("operand {index}: expected an array, found {ty}")))
    }

    /// Returns the type of operand `index`, which must be a tensor of static shape.
    pub(super) fn static_tensor(&self, builder: &Builder, index: usize) -> Result<TensorType, Error> {
        let ty = self.tensor(builder, index)?;
        match ty.num_elements() {
            Some(_) => Ok(ty),
            None => {
                Err(self
                    .unsupported(format!("operand {index}: expected an array of static shape, found {ty}")))
            }
        }
    }

    /// Returns the type of the result, which must not be a tuple.
    pub(super) fn result(&self) -> Result<Type, Error> {
        match &self.shape {
            Shape::Leaf(ty) => Ok(ty.clone()),
            Shape::Tuple { .. } => Err(self.invalid("expected an array as result, found a tuple")),
        }
    }

    /// Returns the type of the result, which must be a tensor.
    pub(super) fn result_tensor(&self) -> Result<TensorType, Error> {
        match self.result()? {
            Type::Tensor(tensor) => Ok(tensor),
            other => Err(self.invalid(format!("expected an array as result, found {other}"))),
        }
    }

    /// Returns the dimensions of the result from minor to major; `None` if it is row-major or not an array.
    pub(super) fn order(&self) -> Result<Option<Box<[i64]>>, Error> {
        let order = self.proto.shape.as_ref().map(shape::minor_to_major).unwrap_or_default();
        let rank = order.len() as i64;
        if order.iter().rev().copied().eq(0..rank) {
            return Ok(None);
        }
        if (0..rank).all(|dimension| order.contains(&dimension)) {
            return Ok(Some(order.into()));
        }
        Err(self.error(
            ErrorKind::Malformed,
            format!("the layout {order:?} is not a permutation of the dimensions"),
        ))
    }

    /// Returns element `index` of the attribute `dimensions`.
    pub(super) fn dimension(&self, index: usize) -> Result<i64, Error> {
        self.proto.dimensions.get(index).copied().ok_or_else(|| {
            self.invalid(format!("expected at least {} dimensions, found {}", index + 1, index))
        })
    }

    /// Returns an attribute that must be present.
    pub(super) fn required<'a, T>(&self, what: &str, attribute: &'a Option<T>) -> Result<&'a T, Error> {
        attribute
            .as_ref()
            .ok_or_else(|| self.error(ErrorKind::Malformed, format!("the instruction has no {what}")))
    }
}
