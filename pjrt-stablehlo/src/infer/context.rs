//! What rules of operations have in common: access to operands, attributes and regions, and errors.

use crate::Constraint;
use crate::ir::{Block, Body, DYNAMIC, GroupSpec, Module, Op, Operation, TensorType, Type, Variadicity};
use crate::{Error, ErrorKind};

use super::shape::{Shape, elements_compatible, shapes_agree, sizes_agree};

/// An operation, as far as its result types follow from it: everything but the declared types of its results.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) module: &'a Module,
    pub(crate) body: &'a Body,
    pub(crate) op: &'a Operation,
}

/// A list of numbers for messages.
pub(crate) fn integers(values: &[i64]) -> String {
    format!("{values:?}")
}

/// A list of sizes for messages; unknown ones are `?`.
pub(crate) fn list(values: &[i64]) -> String {
    let values =
        values.iter().map(|&value| if value == DYNAMIC { "?".to_owned() } else { value.to_string() });
    format!("[{}]", values.collect::<Vec<_>>().join(", "))
}

/// Fails unless an operation has as many operands, results or regions (`what`) as its entry in the op table says.
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
    let message = format!("expected the {what} ({names}), found {found} {what}");
    Err(Error::new(ErrorKind::Invalid, message).in_op(op.kind.name(), &op.location))
}

impl<'a> Context<'a> {
    /// An error about the operation.
    pub(crate) fn error(
        &self,
        constraint: impl Into<Option<Constraint>>,
        message: impl Into<String>,
    ) -> Error {
        let error = Error::new(ErrorKind::Invalid, message);
        Error { constraint: constraint.into(), ..error }.in_op(self.op.kind.name(), &self.op.location)
    }

    /// Fails with a message unless the condition holds.
    pub(crate) fn require(
        &self,
        constraint: impl Into<Option<Constraint>>,
        condition: bool,
        message: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        if condition { Ok(()) } else { Err(self.error(constraint, message())) }
    }

    /// The type of an operand.
    pub(crate) fn operand_type(&self, index: usize) -> &'a Type {
        self.op.operands.get(index).map_or(&Type::None, |&value| self.body.ty(value))
    }

    /// The types of all operands.
    pub(crate) fn operand_types(&self) -> Vec<Type> {
        self.op.operands.iter().map(|&value| self.body.ty(value).clone()).collect()
    }

    /// An operand's name for messages: `operand 'lhs'`.
    pub(crate) fn operand_name(&self, index: usize) -> String {
        let groups = self.op.info().operands;
        match groups.get(index) {
            Some(group) if groups[..=index].iter().all(|group| group.variadicity == Variadicity::One) => {
                format!("operand '{}'", group.name)
            }
            _ => format!("operand {index}"),
        }
    }

    /// An operand that has to be a tensor.
    pub(crate) fn tensor(&self, index: usize) -> Result<&'a TensorType, Error> {
        match self.operand_type(index) {
            Type::Tensor(tensor) => Ok(tensor),
            other => {
                Err(self
                    .error(None, format!("{}: expected a tensor, found {other}", self.operand_name(index))))
            }
        }
    }

    /// The integers of an operand that is a constant no larger than shapes and paddings are.
    pub(crate) fn constant(&self, index: usize) -> Option<Vec<i64>> {
        let definition = self.body.defining_op(*self.op.operands.get(index)?)?;
        match &self.body.op(definition).kind {
            Op::Constant(constant) => constant.value.to_i64s(2 * crate::limits::MAX_RANK),
            _ => None,
        }
    }

    /// Fails unless an operand has elements like another tensor.
    pub(crate) fn same_elements(
        &self,
        constraint: impl Into<Option<Constraint>>,
        index: usize,
        expected: &TensorType,
    ) -> Result<(), Error> {
        let found = self.tensor(index)?;
        self.require(constraint, elements_compatible(expected, found), || {
            format!(
                "{}: expected elements of {}, found {found}",
                self.operand_name(index),
                Type::Tensor(expected.with_dims([]))
            )
        })
    }

    /// Fails unless an operand has a shape, as far as sizes are known.
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

    /// Takes what an operand's sizes and bounds say into a shape; fails where they contradict.
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

    /// Fails unless a dimension is one of `rank`.
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
                0 => "no dimension of a tensor without dimensions".to_owned(),
                rank => format!("a dimension from 0 to {}", rank - 1),
            };
            self.error(constraint, format!("{what}: expected {expected}, found {dimension}"))
        })
    }

    /// Fails unless all are dimensions below `rank`.
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

    /// Fails when a number occurs twice.
    pub(crate) fn unique(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        values: impl IntoIterator<Item = i64, IntoIter: Clone>,
    ) -> Result<(), Error> {
        let values = values.into_iter();
        // Most lists rise.
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

    /// Fails unless numbers rise.
    pub(crate) fn sorted(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        values: &[i64],
    ) -> Result<(), Error> {
        self.require(constraint, values.is_sorted(), || {
            format!("{what}: expected rising dimensions, found {}", integers(values))
        })
    }

    /// Fails unless a list has one element for each of `count`.
    pub(crate) fn length(
        &self,
        constraint: impl Into<Option<Constraint>>,
        what: &str,
        len: usize,
        count: usize,
    ) -> Result<(), Error> {
        self.require(constraint, len == count, || format!("{what}: expected {count} elements, found {len}"))
    }

    /// Fails unless all numbers are positive.
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

    /// Fails unless an operand is a vector of `count` elements.
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

    /// The block of a region.
    pub(crate) fn block(&self, index: usize) -> Result<&'a Block, Error> {
        let region = self.op.regions.get(index);
        let block = region.and_then(|&region| self.body.region(region).blocks.first());
        let block =
            block.ok_or_else(|| self.error(None, format!("region {index}: expected a block, found none")))?;
        Ok(self.body.block(*block))
    }

    /// Types of a region's arguments and of what it returns.
    pub(crate) fn region(&self, index: usize) -> Result<(Vec<&'a Type>, Vec<&'a Type>), Error> {
        let block = self.block(index)?;
        let arguments = block.arguments.iter().map(|&value| self.body.ty(value)).collect();
        let last = block.ops.last().map(|&op| self.body.op(op));
        let returned = last.map_or(&[][..], |op| &op.operands);
        Ok((arguments, returned.iter().map(|&value| self.body.ty(value)).collect()))
    }

    /// A region's name for messages.
    pub(crate) fn region_name(&self, index: usize) -> String {
        match self.op.info().regions.get(index) {
            Some(group) if group.variadicity == Variadicity::One => format!("region '{}'", group.name),
            _ => format!("region {index}"),
        }
    }
}
