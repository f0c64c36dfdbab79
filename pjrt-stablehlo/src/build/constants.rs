//! Methods of [`Builder`] that add constants.

use super::Builder;
use super::builder::NO_VALUE;
use crate::ir::ops::Constant;
use crate::ir::{
    ElementKind, ElementType, Literal, LiteralData, LiteralError, TensorType, ValueId, float_bits,
};
use crate::{Bytes, Error, ErrorKind};

impl Builder {
    /// Adds a constant, and returns it.
    pub fn constant(&mut self, value: Literal) -> ValueId {
        let ty = value.ty().clone();
        self.op_of_type(Constant { value }, &[], ty)
    }

    /// Adds a constant whose elements all equal `number`, of the same type as `like`.
    ///
    /// The number is rounded to the nearest element, ties to even, or truncated if the elements are integers.
    pub fn number(&mut self, number: f64, like: ValueId) -> ValueId {
        let ty = self.tensor(like);
        self.number_of_type(number, ty)
    }

    /// Adds a constant of type `ty` whose elements all equal `number`, which is converted as by [`Builder::number`].
    pub fn number_of_type(&mut self, number: f64, ty: TensorType) -> ValueId {
        let element = number_bytes(ty.storage_type(), number);
        self.splat(&element, ty)
    }

    /// Adds a constant of type `ty` whose elements all equal `value`, truncated to the width of the elements.
    pub fn integer(&mut self, value: i64, ty: TensorType) -> ValueId {
        let bytes = i128::from(value).to_le_bytes();
        let width = ty.storage_type().byte_width().min(bytes.len());
        self.splat(&bytes[..width], ty)
    }

    /// Adds a constant of zeros, or of `false`.
    pub fn zeros(&mut self, ty: TensorType) -> ValueId {
        self.splat(&vec![0; ty.storage_type().byte_width()], ty)
    }

    /// Adds a constant of type `ty` whose elements all equal `element`, given in its stored form (see [`LiteralData`]).
    ///
    /// Consecutive calls that add equal constants to a block return the same constant.
    pub fn splat(&mut self, element: &[u8], ty: TensorType) -> ValueId {
        if self.constants_block != self.block {
            self.constants.clear();
            self.constants_block = self.block;
        }
        let key = (ty, element.into());
        if let Some(&value) = self.constants.get(&key) {
            return value;
        }
        let literal = Literal::new(key.0.clone(), LiteralData::Splat(element.into()));
        let value = self.literal(literal);
        self.constants.insert(key, value);
        value
    }

    /// Adds a vector of these numbers, which are converted as by [`Builder::number`].
    pub fn numbers(&mut self, numbers: &[f64], element: ElementType) -> ValueId {
        let bytes: Vec<u8> = numbers.iter().flat_map(|&number| number_bytes(element, number)).collect();
        self.vector(bytes, element, numbers.len())
    }

    /// Adds a vector of these integers, truncated to the width of the elements.
    pub fn integers(&mut self, integers: &[i64], element: ElementType) -> ValueId {
        let width = element.byte_width();
        let bytes =
            integers.iter().flat_map(|value| i128::from(*value).to_le_bytes().into_iter().take(width));
        self.vector(bytes.collect(), element, integers.len())
    }

    fn vector(&mut self, bytes: Vec<u8>, element: ElementType, len: usize) -> ValueId {
        let ty = TensorType::new(element, [len as i64]);
        let literal = Literal::new(ty, LiteralData::Dense(Bytes::from(bytes)));
        self.literal(literal)
    }

    fn literal(&mut self, literal: Result<Literal, LiteralError>) -> ValueId {
        match literal {
            Ok(literal) => self.constant(literal),
            Err(error) => {
                let error = Error::new(ErrorKind::Invalid, error.to_string());
                self.fail(error.in_op("stablehlo.constant", &self.location));
                NO_VALUE
            }
        }
    }
}

/// Returns the stored bytes of the element that `number` is converted to.
fn number_bytes(element: ElementType, number: f64) -> Vec<u8> {
    let width = element.byte_width();
    match (element.kind(), element.complex_part()) {
        (_, Some(part)) => [number_bytes(part, number), number_bytes(part, 0.0)].concat(),
        (ElementKind::Float, _) => float_bits(element, number).to_le_bytes()[..width].to_vec(),
        (ElementKind::Boolean, _) => vec![u8::from(number != 0.0)],
        _ => (number as i128).to_le_bytes()[..width].to_vec(),
    }
}
