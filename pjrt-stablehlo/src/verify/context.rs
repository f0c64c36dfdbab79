//! What checks of operations have in common.

use std::sync::Arc;

use crate::ir::{Block, DYNAMIC, ElementType, Function, Module, Operation, TensorType, Type, Variadicity};
use crate::{Error, ErrorKind};

/// An operation that is being checked.
#[derive(Clone, Copy)]
pub(super) struct Check<'a> {
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    pub(super) op: &'a Operation,
}

/// Whether two sizes can be the same at run time.
pub(super) fn sizes_agree(a: i64, b: i64) -> bool {
    a == b || a == DYNAMIC || b == DYNAMIC
}

/// Whether two shapes can be the same at run time.
pub(super) fn shapes_agree(a: &[i64], b: &[i64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| sizes_agree(a, b))
}

/// Whether two types can be the same at run time: quantized and expressed types mix in StableHLO.
pub(super) fn types_agree(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) => shapes_agree(a.dims(), b.dims()) && elements_agree(a, b),
        (Type::Tuple(a), Type::Tuple(b)) | (Type::Future(a), Type::Future(b)) => {
            Arc::ptr_eq(a, b) || a.len() == b.len() && a.iter().zip(&**b).all(|(a, b)| types_agree(a, b))
        }
        (a, b) => a == b,
    }
}

/// Whether two tensors have elements of the same type, or either is quantized.
pub(super) fn elements_agree(a: &TensorType, b: &TensorType) -> bool {
    a.element_type() == b.element_type() || a.quantization().is_some() || b.quantization().is_some()
}

/// A type with brackets or without.
pub(super) fn shape_text(dims: &[i64]) -> String {
    let sizes = dims.iter().map(|&size| if size == DYNAMIC { "?".to_owned() } else { size.to_string() });
    format!("[{}]", sizes.collect::<Vec<_>>().join(", "))
}

impl<'a> Check<'a> {
    pub(super) fn new(module: &'a Module, function: &'a Function, op: &'a Operation) -> Self {
        Check { module, function, op }
    }

    /// An error about the operation.
    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Invalid, message).in_op(self.op.kind.name(), &self.op.location)
    }

    /// Fails with a message unless the condition holds.
    pub(super) fn require(&self, condition: bool, message: impl FnOnce() -> String) -> Result<(), Error> {
        if condition { Ok(()) } else { Err(self.error(message())) }
    }

    /// The type of an operand.
    pub(super) fn operand_type(&self, index: usize) -> &'a Type {
        self.function.body.ty(self.op.operand(index))
    }

    /// The type of a result.
    pub(super) fn result_type(&self, index: usize) -> &'a Type {
        match self.op.results.get(index) {
            Some(result) => self.function.body.ty(result),
            None => &Type::None,
        }
    }

    /// An operand's name for messages: `operand 'lhs'`.
    pub(super) fn operand_name(&self, index: usize) -> String {
        let groups = self.op.info().operands;
        match groups.get(index) {
            Some(group) if groups[..=index].iter().all(|group| group.variadicity == Variadicity::One) => {
                format!("operand '{}'", group.name)
            }
            _ => format!("operand {index}"),
        }
    }

    /// An operand that has to be a tensor.
    pub(super) fn tensor(&self, index: usize) -> Result<&'a TensorType, Error> {
        self.as_tensor(self.operand_type(index), || self.operand_name(index))
    }

    /// A result that has to be a tensor.
    pub(super) fn result_tensor(&self, index: usize) -> Result<&'a TensorType, Error> {
        self.as_tensor(self.result_type(index), || format!("result {index}"))
    }

    fn as_tensor(&self, ty: &'a Type, what: impl FnOnce() -> String) -> Result<&'a TensorType, Error> {
        match ty {
            Type::Tensor(tensor) => Ok(tensor),
            other => Err(self.error(format!("{}: expected a tensor, found {other}", what()))),
        }
    }

    /// An operand that has to be a tensor without dimensions.
    pub(super) fn scalar(&self, index: usize) -> Result<&'a TensorType, Error> {
        let tensor = self.tensor(index)?;
        self.require(tensor.rank() == 0, || {
            format!("{}: expected a scalar, found {tensor}", self.operand_name(index))
        })?;
        Ok(tensor)
    }

    /// Fails unless the first result has this shape, as far as it is known.
    pub(super) fn result_shape(&self, index: usize, expected: &[i64]) -> Result<(), Error> {
        let result = self.result_tensor(index)?;
        self.require(shapes_agree(result.dims(), expected), || {
            format!("result {index}: expected shape {}, found {result}", shape_text(expected))
        })
    }

    /// Fails unless two tensors have elements of the same type.
    pub(super) fn same_elements(
        &self,
        what: &str,
        expected: &TensorType,
        found: &TensorType,
    ) -> Result<(), Error> {
        self.require(elements_agree(expected, found), || {
            format!("{what}: expected elements of {}, found {found}", expected.element_type())
        })
    }

    /// Fails unless a dimension is one of `rank`.
    pub(super) fn dimension(&self, what: &str, dimension: i64, rank: usize) -> Result<usize, Error> {
        let index = usize::try_from(dimension).ok().filter(|&index| index < rank);
        index.ok_or_else(|| {
            self.error(format!("{what}: expected a dimension below {rank}, found {dimension}"))
        })
    }

    /// Fails unless all are dimensions below `rank` and none occurs twice.
    pub(super) fn unique_dimensions(&self, what: &str, dimensions: &[i64], rank: usize) -> Result<(), Error> {
        self.require(dimensions.len() <= rank, || {
            format!("{what}: expected at most {rank} dimensions, found {}", dimensions.len())
        })?;
        let mut seen = vec![false; rank];
        for &dimension in dimensions {
            let index = self.dimension(what, dimension, rank)?;
            self.require(!std::mem::replace(&mut seen[index], true), || {
                format!("{what}: expected each dimension at most once, found {dimension} twice")
            })?;
        }
        Ok(())
    }

    /// Fails unless a list has one element for each of `count`.
    pub(super) fn length(&self, what: &str, len: usize, count: usize) -> Result<(), Error> {
        self.require(len == count, || format!("{what}: expected {count} elements, found {len}"))
    }

    /// Fails unless result 0 has the type of an operand.
    pub(super) fn result_is_operand(&self, index: usize) -> Result<(), Error> {
        let (expected, found) = (self.operand_type(index), self.result_type(0));
        self.require(types_agree(expected, found), || format!("result 0: expected {expected}, found {found}"))
    }

    /// Fails unless there are as many results as operands, each of the operand's type.
    pub(super) fn results_are_operands(&self) -> Result<(), Error> {
        self.length("results", self.op.results.len(), self.op.operands.len())?;
        for index in 0..self.op.operands.len() {
            let (expected, found) = (self.operand_type(index), self.result_type(index));
            self.require(types_agree(expected, found), || {
                format!("result {index}: expected {expected}, found {found}")
            })?;
        }
        Ok(())
    }

    /// Fails unless all operands and results are tokens.
    pub(super) fn all_tokens(&self) -> Result<(), Error> {
        let operands = self.op.operands.iter().copied();
        for value in operands.chain(self.op.results) {
            let ty = self.function.body.ty(value);
            self.require(ty.is_token(), || format!("expected a token, found {ty}"))?;
        }
        Ok(())
    }

    /// The block of a region; the structure has been checked.
    pub(super) fn block(&self, index: usize) -> Result<&'a Block, Error> {
        let body = &self.function.body;
        let region = self.op.regions.get(index);
        let block = region.and_then(|&region| body.region(region).blocks.first());
        let block =
            block.ok_or_else(|| self.error(format!("region {index}: expected a block, found none")))?;
        Ok(body.block(*block))
    }

    /// Types of a region's arguments and of what it returns.
    pub(super) fn region(&self, index: usize) -> Result<(Vec<&'a Type>, Vec<&'a Type>), Error> {
        let body = &self.function.body;
        let block = self.block(index)?;
        let arguments = block.arguments.iter().map(|&value| body.ty(value)).collect();
        let last = block.ops.last().map(|&op| body.op(op));
        let returned = last.map_or(&[][..], |op| &op.operands).iter().map(|&value| body.ty(value)).collect();
        Ok((arguments, returned))
    }

    /// Fails unless a region takes and returns these types.
    pub(super) fn region_signature(
        &self,
        index: usize,
        arguments: &[Type],
        returned: &[Type],
    ) -> Result<(), Error> {
        let (found_arguments, found_returned) = self.region(index)?;
        let name = self.op.info().regions.get(index).map_or("branch", |group| group.name);
        for (what, expected, found) in
            [("arguments", arguments, found_arguments), ("returned values", returned, found_returned)]
        {
            self.require(expected.len() == found.len(), || {
                format!("region '{name}': expected {} {what}, found {}", expected.len(), found.len())
            })?;
            for (place, (expected, found)) in expected.iter().zip(found).enumerate() {
                self.require(types_agree(expected, found), || {
                    format!("region '{name}', {what} {place}: expected {expected}, found {found}")
                })?;
            }
        }
        Ok(())
    }
}

/// The type of one element of a tensor, as a tensor.
pub(super) fn element_of(tensor: &TensorType) -> Type {
    match tensor.quantization() {
        Some(quantization) => Type::Tensor(TensorType::quantized(quantization.clone(), [])),
        None => Type::Tensor(TensorType::new(tensor.element_type(), [])),
    }
}

/// `tensor<i1>`.
pub(super) fn predicate() -> Type {
    Type::Tensor(TensorType::new(ElementType::I1, []))
}
