//! The custom assembly of the operations of `arith`, `builtin`, `shape` and `tensor` that occur in StableHLO programs
//! with dynamic shapes.

use super::assembly_types::TypeForm;
use super::parser::{Parser, shortened};
use super::pending::{Pending, Types};
use crate::Error;
use crate::ir::{Attribute, BlockId, ElementType, Literal, LiteralData, TensorType, Type};

const INDEX: Type = Type::Scalar(ElementType::Index);

impl<'a> Parser<'a> {
    /// Reads an operation of a dialect outside the op table.
    pub(super) fn other_dialect(
        &mut self,
        mut pending: Pending<'a>,
        block: BlockId,
    ) -> Result<Pending<'a>, Error> {
        match pending.name {
            "arith.muli"
            | "arith.index_cast"
            | "builtin.unrealized_conversion_cast"
            | "shape.broadcast"
            | "shape.num_elements"
            | "shape.shape_of" => {
                let operands = self.values()?;
                self.begin(&mut pending, operands, block);
                self.rest(&mut pending, TypeForm::Any)?;
            }
            "shape.const_shape" => {
                self.begin(&mut pending, Vec::new(), block);
                let at = self.token.start;
                let sizes = self.integers()?;
                let bytes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
                let ty = TensorType::new(ElementType::Index, [sizes.len() as i64]);
                let shape = Literal::new(ty, LiteralData::Dense(bytes.into()))
                    .map_err(|error| self.error_at(at, error.to_string()))?;
                pending.set("shape", Attribute::Elements(shape));
                self.rest(&mut pending, TypeForm::Any)?;
            }
            "tensor.dim" => {
                let operands = self.values()?;
                self.begin(&mut pending, operands, block);
                let source = self.source_type(&mut pending)?;
                pending.types = Some(Types { operands: Some(vec![source, INDEX]), results: vec![INDEX] });
            }
            "tensor.extract" => {
                let mut operands = vec![self.value()?];
                operands.extend(self.list("[", "]", Self::value)?);
                let indices = operands.len() - 1;
                self.begin(&mut pending, operands, block);
                let at = self.token.start;
                let source = self.source_type(&mut pending)?;
                let element = match &source {
                    Type::Tensor(tensor) => Type::Scalar(tensor.element_type()),
                    other => return Err(self.error_at(at, format!("expected a tensor, found {other}"))),
                };
                let mut operands = vec![source];
                operands.resize(indices + 1, INDEX);
                pending.types = Some(Types { operands: Some(operands), results: vec![element] });
            }
            "tensor.from_elements" => {
                let operands = self.values()?;
                self.begin(&mut pending, operands, block);
                let ty = self.source_type(&mut pending)?;
                pending.types = Some(Types { operands: None, results: vec![ty] });
            }
            other => {
                let message = format!(
                    "the custom assembly of '{}' is not supported; use its generic form",
                    shortened(other)
                );
                return Err(self.unsupported_at(pending.start, message));
            }
        }
        Ok(pending)
    }

    /// Reads `{x.y = 1} : tensor<f32>`.
    fn source_type(&mut self, pending: &mut Pending<'a>) -> Result<Type, Error> {
        pending.dictionary = self.optional_dictionary()?;
        self.expect(":")?;
        self.ty()
    }
}
