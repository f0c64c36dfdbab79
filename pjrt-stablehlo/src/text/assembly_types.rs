//! The forms of operand and result types in custom assembly.

use super::parser::Parser;
use super::pending::{Pending, Types};
use crate::Error;
use crate::ir::{OpCode, Type};

/// The form of the types after the colon of an operation in custom assembly.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeForm {
    /// `(A, B) -> C`
    Function,
    /// `A, B -> C`
    Arrow,
    /// `A`, the type of all operands and of the result.
    One,
    /// The same, or a function type if the types differ.
    Same,
    /// `A, B`, the types of the operands and of the results.
    Pairwise,
    /// `A, B`, the types of the operands of an operation without results.
    Operands,
    /// `A`, the type of the result of an operation without operands.
    Result,
    /// `P, A`: the type of the predicate, and the type of the branches and the result; or a function type.
    Select,
    /// `A`, the type of the result, from which those of the operands follow; or a function type.
    Complex,
    /// `tuple<A, B>`, the type of the result, from which those of the operands follow.
    Tuple,
    /// `A, B -> C`, `A to B`, `A` or a function type, for operations of other dialects.
    Any,
}

impl TypeForm {
    /// Returns the form of an operation's types; `None` if it has no custom assembly.
    pub(super) fn of(code: OpCode) -> Option<TypeForm> {
        use OpCode as O;
        Some(match code {
            O::BitcastConvert
            | O::Broadcast
            | O::BroadcastInDim
            | O::Compare
            | O::Concatenate
            | O::Dot
            | O::DotGeneral
            | O::DynamicBroadcastInDim
            | O::DynamicIota
            | O::DynamicPad
            | O::DynamicReshape
            | O::DynamicSlice
            | O::DynamicUpdateSlice
            | O::Einsum
            | O::Fft
            | O::GetDimensionSize
            | O::GetTupleElement
            | O::IsFinite
            | O::Pad
            | O::RealDynamicSlice
            | O::Reshape
            | O::Rng
            | O::RngBitGenerator
            | O::SetDimensionSize
            | O::Slice
            | O::Transpose
            | O::UnaryEinsum => TypeForm::Function,
            O::Complex => TypeForm::Complex,
            O::CreateToken | O::Iota | O::PartitionId | O::ReplicaId => TypeForm::Result,
            O::FuncReturn | O::Return | O::SdyReturn => TypeForm::Operands,
            O::OptimizationBarrier => TypeForm::Pairwise,
            O::Select => TypeForm::Select,
            O::Tuple => TypeForm::Tuple,
            O::AfterAll | O::Cholesky | O::Clamp | O::ReducePrecision | O::Reverse => TypeForm::Same,
            code if is_elementwise(code) => TypeForm::Same,
            _ => return None,
        })
    }
}

/// Returns `true` if an operation has one or two operands and a result of the same shape.
fn is_elementwise(code: OpCode) -> bool {
    use OpCode as O;
    matches!(
        code,
        O::Abs
            | O::Add
            | O::And
            | O::Atan2
            | O::Cbrt
            | O::Ceil
            | O::Convert
            | O::Cosine
            | O::CountLeadingZeros
            | O::Divide
            | O::Exponential
            | O::ExponentialMinusOne
            | O::Floor
            | O::Imag
            | O::Log
            | O::LogPlusOne
            | O::Logistic
            | O::Maximum
            | O::Minimum
            | O::Multiply
            | O::Negate
            | O::Not
            | O::Or
            | O::PopulationCount
            | O::Power
            | O::Real
            | O::Remainder
            | O::RoundNearestAfz
            | O::RoundNearestEven
            | O::Rsqrt
            | O::ShiftLeft
            | O::ShiftRightArithmetic
            | O::ShiftRightLogical
            | O::Sign
            | O::Sine
            | O::Sqrt
            | O::Subtract
            | O::Tan
            | O::Tanh
            | O::UniformDequantize
            | O::UniformQuantize
            | O::Xor
    )
}

impl<'a> Parser<'a> {
    /// Reads `: types`, the end of operations in custom assembly.
    pub(super) fn types_of(&mut self, pending: &mut Pending<'a>, form: TypeForm) -> Result<(), Error> {
        let count = self.function.body.op(pending.op).operands.len();
        let has_none = matches!(form, TypeForm::Operands | TypeForm::Pairwise) && count == 0;
        let types = if has_none && !self.at(":") {
            Types::default()
        } else {
            self.expect(":")?;
            self.types_after_colon(form, count)?
        };
        pending.types = Some(types);
        Ok(())
    }

    fn types_after_colon(&mut self, form: TypeForm, count: usize) -> Result<Types, Error> {
        let one = |ty: Type| Types { operands: Some(vec![ty.clone(); count]), results: vec![ty] };
        let has_function = match form {
            TypeForm::Function => true,
            TypeForm::Any | TypeForm::Complex | TypeForm::Same | TypeForm::Select => self.at("("),
            _ => false,
        };
        if has_function {
            let ty = self.function_type()?;
            return Ok(Types { operands: Some(ty.inputs), results: ty.results });
        }
        let at = self.token.start;
        match form {
            TypeForm::One | TypeForm::Same => return self.ty().map(one),
            TypeForm::Complex | TypeForm::Result => {
                return Ok(Types { operands: None, results: vec![self.ty()?] });
            }
            TypeForm::Tuple => {
                return match self.ty()? {
                    Type::Tuple(parts) => {
                        Ok(Types { operands: Some(parts.to_vec()), results: vec![Type::Tuple(parts)] })
                    }
                    other => Err(self.error_at(at, format!("expected the type of a tuple, found {other}"))),
                };
            }
            _ => {}
        }
        let types = self.types()?;
        match (form, &*types) {
            (TypeForm::Arrow, _) => {
                self.expect("->")?;
                Ok(Types { operands: Some(types), results: self.result_types()? })
            }
            (TypeForm::Any, _) if self.eat("->") || self.eat("to") => {
                Ok(Types { operands: Some(types), results: self.result_types()? })
            }
            (TypeForm::Operands, _) => Ok(Types { operands: Some(types), results: Vec::new() }),
            (TypeForm::Pairwise, _) => Ok(Types { operands: Some(types.clone()), results: types }),
            (TypeForm::Select, [pred, branch]) => Ok(Types {
                operands: Some(vec![pred.clone(), branch.clone(), branch.clone()]),
                results: vec![branch.clone()],
            }),
            (TypeForm::Select, _) => {
                Err(self
                    .error_at(at, "expected the types of the predicate and the branches, or a function type"))
            }
            (_, [ty]) => Ok(one(ty.clone())),
            _ => Err(self.error_at(at, "expected one type or a function type")),
        }
    }
}
