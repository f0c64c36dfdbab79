//! Operations that correspond directly to operations of StableHLO.

use super::attributes;
use super::instruction::Instruction;
use super::reader::Reader;
use crate::ir::{Attribute, ComparisonDirection, ComparisonType, ElementType, Op, OpCode, Trait, ValueId};
use crate::{Error, ErrorKind};

/// Operations with a direct correspondence that are not elementwise.
const OTHERS: &[OpCode] = &[OpCode::ReplicaId, OpCode::PartitionId];

/// Returns the operation of StableHLO with the name of an opcode, if the two correspond directly.
pub(super) fn counterpart(opcode: &str) -> Option<OpCode> {
    let code = OpCode::from_name(&format!("stablehlo.{}", opcode.replace('-', "_")))?;
    let is_quantization = matches!(code, OpCode::UniformQuantize | OpCode::UniformDequantize);
    let is_alike = code.info().has(Trait::Elementwise) && !is_quantization || OTHERS.contains(&code);
    (is_alike && !opcode.contains('_')).then_some(code)
}

impl Reader {
    /// Adds an operation with the same operands, and the attributes with the same names.
    pub(super) fn elementwise(&mut self, at: &Instruction, code: OpCode) -> Result<Vec<ValueId>, Error> {
        let bits = |value: i32| Attribute::Integer { value: i64::from(value), ty: ElementType::I32 };
        let accuracy = at.proto.result_accuracy.as_ref().map(|accuracy| attributes::accuracy(at, accuracy));
        let accuracy = accuracy.transpose()?;
        let ty = &at.proto.comparison_type;
        if !ty.is_empty() && ComparisonType::from_name(ty).is_none() {
            return Err(at.unsupported(format!("the comparison type '{ty}' is not supported")));
        }
        let mut find = |name: &'static str| match name {
            "result_accuracy" => accuracy.map(|accuracy| Attribute::ResultAccuracy(accuracy.into())),
            "comparison_direction" => ComparisonDirection::from_name(&at.proto.comparison_direction)
                .map(|direction| Attribute::Enum(direction.into())),
            "compare_type" => ComparisonType::from_name(ty).map(|ty| Attribute::Enum(ty.into())),
            "exponent_bits" => Some(bits(at.proto.exponent_bits)),
            "mantissa_bits" => Some(bits(at.proto.mantissa_bits)),
            _ => None,
        };
        let op = Op::from_attributes(code, &mut find);
        let op = op.map_err(|error| at.error(ErrorKind::Malformed, error.to_string()))?;
        Ok(vec![self.code.op_of_type(op, &at.arrays()?, at.result()?)])
    }
}
