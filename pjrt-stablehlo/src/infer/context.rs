//! The common parts of operations' rules: access to operands, attributes and regions, and errors.

use crate::Constraint;
use crate::ir::{Block, Body, DYNAMIC, GroupSpec, Module, Op, Operation, TensorType, Type, Variadicity};
use crate::{Error, ErrorKind};

use super::shape::{Shape, elements_compatible, shapes_agree, sizes_agree};

/// An operation and the program around it. Rules use everything except the declared types of results.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) module: &'a Module,
    pub(crate) body: &'a Body,
    pub(crate) op: &'a Operation,
}

/// Formats a list of integers for messages.
pub(crate) fn integers(values: &[i64]) -> String {
    format!("{values:?}")
}

/// Formats a list of sizes for messages. `?` means dynamic sizes.
pub(crate) fn list(values: &[i64]) -> String {
    let values =
        values.iter().map(|&value| if value == DYNAMIC { "?".to_owned() } else { value.to_string() });
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

/// Returns an error unless an operation has the number of operands, results or regions (`what`) of its entry in the op
/// table.
pub(crate) fn counts(op: &Operation, what: &str, specs: &[GroupSpec], found: usize) -> Result<(), Error> {
    let fixed = specs.iter().filter(|spec| spec.variadicity == Variadicity::One).count();
    let variadic = specs.len() - fixed;
    let fits = match variadic {
        0 => found == fixed,
        groups => found >= fixed && (found - fixed).is_multiple_of(groups),
    };
    if fits {
        return Ok(());
    }
    let names = specs.iter().map(|spec| match spec.variadicity {
        Variadicity::One => spec.name.to_owned(),
        Variadicity::Variadic => format!("{}...", spec.name),
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let message = format!("expected the {what} ({names}), found {found}");
    Err(Error::new(ErrorKind::Invalid, message).in_op(op.kind.name(), &op.location))
}

impl<'a> Context<'a> {
    /// Returns an error about the operation.
    pub(crate) fn error(
        &self,
        constraint: impl Into<Option<Constraint>>,
        message: impl Into<String>,
    ) -> Error {
        let error = Error::new(ErrorKind::Invalid, message);
        Error { constraint: constraint.into(), ..error }.in_op(self.op.kind.name(), &self.op.location)
    }

    /// Returns an error with the message unless the condition holds.
    pub(crate) fn require(
        &self,
        constraint: impl Into<Option<Constraint>>,
        condition: bool,
        message: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        if condition { Ok(()) } else { Err(self.error(constraint, message())) }
    }

    /// Returns the type of an operand.
    pub(crate) fn operand_type(&self, index: usize) -> &'a Type {
        self.op.operands.get(index).map_or(&Type::None, |&value| self.body.ty(value))
    }

    /// Returns the types of all operands.
    pub(crate) fn operand_types(&self) -> Vec<Type> {
        self.op.operands.iter().map(|&value| self.body.ty(value).clone()).collect()
    }

    /// Returns an operand's name for messages: `operand 'lhs'`.
    pub(crate) fn operand_name(&self, index: usize) -> String {
        let groups = self.op.info().operands;
        match groups.get(index) {
            Some(group) if groups[..=index].iter().all(|group| group.variadicity == Variadicity::One) => {
                format!("operand '{}'", group.name)
            }
            _ => format!("operand {index}"),
        }
    }

    /// Returns the type of an operand, which must be a tensor.
    pub(crate) fn tensor(&self, index: usize) -> Result<&'a TensorType, Error> {
        match self.operand_type(index) {
            Type::Tensor(tensor) => Ok(tensor),
            other => {
                Err(self
                    .error(None, format!("{}: expected a tensor, found {other}", self.operand_name(index))))
            }
        }
    }

    /// Returns the elements of an operand, if it is a constant of integers that is small enough to be a shape or
    /// padding.
    pub(crate) fn constant(&self, index: usize) -> Option<Vec<i64>> {
        let definition = self.body.defining_op(*self.op.operands.get(index)?)?;
        match &self.body.op(definition).kind {
            Op::Constant(constant) => constant.value.to_i64s(2 * crate::limits::MAX_RANK),
            _ => None,
        }
    }

    /// Returns an error unless the element type of an operand is that of another tensor.
    pub(crate) fn same_elements(
        &self,
        constraint: impl Into<Option<Constraint>>,
        index: usize,
        expected: &TensorType,
    ) -> Result<(), Error> {
        let found = self.tensor(index)?;
        self.require(constraint, elements_compatible(expected, found), || {
            format!(
                "{}: expected the element type of {}, found {found}",
                self.operand_name(index),
                Type::Tensor(expected.with_dims([]))
            )
        })
    }

    /// Returns an error unless an operand has a shape, as far as sizes are static.
    pub(crate) fn same_shape(
        &self,
        constraint: impl Into<Option<Constraint>>,
        index: usize,
        expected: &[i64],
    ) -> Result<(), Error> {
        let found = self.tensor(index)?;
        self.require(constraint, shapes_agree(expected, found.dims()), || {
            format!("{}: expected shape {}, found {found}", self.operand_name(index), list(expected))
        })
    }

    /// Merges the sizes and bounds of an operand into a shape. Returns an error if they contradict it.
    pub(crate) fn merge_shape(
        &self,
        constraint: impl Into<Option<Constraint>>,
        index: usize,
        shape: &mut Shape,
    ) -> Result<(), Error> {
        let tensor = self.tensor(index)?;
        let merged = shape.intersect(tensor);
        self.require(constraint, merged, || {
            format!("{}: expected shape {}, found {tensor}", self.operand_name(index), list(shape.dims()))
        })
    }

    /// Returns an error unless a dimension is less than `rank`, otherwise the dimension.
    pub(crate) fn dimension(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        dimension: i64,
        rank: usize,
    ) -> Result<usize, Error> {
        let index = usize::try_from(dimension).ok().filter(|&index| index < rank);
        index.ok_or_else(|| {
            let expected = match rank {
                0 => "no dimension, because the rank is 0".to_owned(),
                rank => format!("a dimension from 0 to {}", rank - 1),
            };
            self.error(constraint, format!("{what}: expected {expected}, found {dimension}"))
        })
    }

    /// Returns an error unless all dimensions are less than `rank`.
    pub(crate) fn dimensions(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        dimensions: &[i64],
        rank: usize,
    ) -> Result<(), Error> {
        let constraint = constraint.into();
        dimensions
            .iter()
            .try_for_each(|&dimension| self.dimension(constraint, what, dimension, rank).map(|_| ()))
    }

    /// Returns an error if a number occurs twice.
    pub(crate) fn unique(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        values: impl IntoIterator<Item = i64, IntoIter: Clone>,
    ) -> Result<(), Error> {
        let values = values.into_iter();
        // Most lists are sorted.
        if values.clone().is_sorted_by(|one, other| one < other) {
            return Ok(());
        }
        let mut sorted: Vec<i64> = values.collect();
        sorted.sort_unstable();
        let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
        self.require(constraint, twice.is_none(), || {
            format!(
                "{what}: expected each number at most once, found {} twice",
                twice.map_or(0, |pair| pair[0])
            )
        })
    }

    /// Returns an error unless the numbers are sorted.
    pub(crate) fn sorted(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        values: &[i64],
    ) -> Result<(), Error> {
        self.require(constraint, values.is_sorted(), || {
            format!("{what}: expected sorted dimensions, found {}", integers(values))
        })
    }

    /// Returns an error unless a list has `count` elements.
    pub(crate) fn length(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        len: usize,
        count: usize,
    ) -> Result<(), Error> {
        self.require(constraint, len == count, || format!("{what}: expected {count} elements, found {len}"))
    }

    /// Returns an error unless all numbers are positive.
    pub(crate) fn positive(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        values: &[i64],
    ) -> Result<(), Error> {
        self.require(constraint, values.iter().all(|&value| value > 0), || {
            format!("{what}: expected positive numbers, found {}", integers(values))
        })
    }

    /// Returns an error unless an operand is a vector of `count` elements.
    pub(crate) fn one_for_each(
        &self,
        constraint: impl Into<Option<Constraint>>,
        index: usize,
        count: usize,
    ) -> Result<(), Error> {
        let operand = self.tensor(index)?;
        let fits = matches!(operand.dims(), [size] if sizes_agree(*size, count as i64));
        self.require(constraint, fits, || {
            format!("{}: expected {count} integers, found {operand}", self.operand_name(index))
        })
    }

    /// Returns the block of a region.
    pub(crate) fn block(&self, index: usize) -> Result<&'a Block, Error> {
        let region = self.op.regions.get(index);
        let block = region.and_then(|&region| self.body.region(region).blocks.first());
        let block =
            block.ok_or_else(|| self.error(None, format!("region {index} is missing or has no block")))?;
        Ok(self.body.block(*block))
    }

    /// Returns the types of a region's arguments, and of the values that it returns.
    pub(crate) fn region(&self, index: usize) -> Result<(Vec<&'a Type>, Vec<&'a Type>), Error> {
        let block = self.block(index)?;
        let arguments = block.arguments.iter().map(|&value| self.body.ty(value)).collect();
        let last = block.ops.last().map(|&op| self.body.op(op));
        let returned = last.map_or(&[][..], |op| &op.operands);
        Ok((arguments, returned.iter().map(|&value| self.body.ty(value)).collect()))
    }

    /// Returns a region's name for messages.
    pub(crate) fn region_name(&self, index: usize) -> String {
        match self.op.info().regions.get(index) {
            Some(group) if group.variadicity == Variadicity::One => format!("region '{}'", group.name),
            _ => format!("region {index}"),
        }
    }
}
