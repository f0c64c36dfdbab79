//! Lowers elementwise operations.

use super::{CompileError, Result, Scope};
use crate::graph::{Op as Core, ValueId, ops as core_ops};
use pjrt_stablehlo::ir::{ComparisonDirection, ComparisonType, Op, OpCode, Operation};
use refcpu_kernels::DType;
use refcpu_kernels::region::{Direction, Order};
use refcpu_kernels::tile::TileOp;

/// The elementwise kernel of each operation that has one.
const TILE_OPS: &[(OpCode, TileOp)] = &[
    (OpCode::Abs, TileOp::Abs),
    (OpCode::Add, TileOp::Add),
    (OpCode::And, TileOp::And),
    (OpCode::Atan2, TileOp::Atan2),
    (OpCode::Cbrt, TileOp::Cbrt),
    (OpCode::Ceil, TileOp::Ceil),
    (OpCode::Complex, TileOp::Complex),
    (OpCode::Cosine, TileOp::Cosine),
    (OpCode::CountLeadingZeros, TileOp::CountLeadingZeros),
    (OpCode::Divide, TileOp::Divide),
    (OpCode::Exponential, TileOp::Exponential),
    (OpCode::ExponentialMinusOne, TileOp::ExponentialMinusOne),
    (OpCode::Floor, TileOp::Floor),
    (OpCode::Imag, TileOp::Imag),
    (OpCode::IsFinite, TileOp::IsFinite),
    (OpCode::Log, TileOp::Log),
    (OpCode::LogPlusOne, TileOp::LogPlusOne),
    (OpCode::Logistic, TileOp::Logistic),
    (OpCode::Maximum, TileOp::Maximum),
    (OpCode::Minimum, TileOp::Minimum),
    (OpCode::Multiply, TileOp::Multiply),
    (OpCode::Negate, TileOp::Negate),
    (OpCode::Not, TileOp::Not),
    (OpCode::Or, TileOp::Or),
    (OpCode::PopulationCount, TileOp::Popcnt),
    (OpCode::Power, TileOp::Power),
    (OpCode::Real, TileOp::Real),
    (OpCode::Remainder, TileOp::Remainder),
    (OpCode::RoundNearestAfz, TileOp::RoundNearestAfz),
    (OpCode::RoundNearestEven, TileOp::RoundNearestEven),
    (OpCode::Rsqrt, TileOp::Rsqrt),
    (OpCode::ShiftLeft, TileOp::ShiftLeft),
    (OpCode::ShiftRightArithmetic, TileOp::ShiftRightArithmetic),
    (OpCode::ShiftRightLogical, TileOp::ShiftRightLogical),
    (OpCode::Sign, TileOp::Sign),
    (OpCode::Sine, TileOp::Sine),
    (OpCode::Sqrt, TileOp::Sqrt),
    (OpCode::Subtract, TileOp::Subtract),
    (OpCode::Tan, TileOp::Tan),
    (OpCode::Tanh, TileOp::Tanh),
    (OpCode::Xor, TileOp::Xor),
];

impl Scope<'_> {
    /// Lowers an elementwise operation; returns `None` for other operations.
    pub(super) fn elementwise(&mut self, op: &Operation) -> Result<Option<Vec<ValueId>>> {
        let code = op.kind.code();
        let core = match (&op.kind, TILE_OPS.binary_search_by_key(&code, |(c, _)| *c)) {
            (_, Ok(found)) => Core::Tile(TILE_OPS[found].1),
            (Op::Compare(c), _) => {
                let total = c.compare_type == ComparisonType::TotalOrder;
                let order = if total { Order::Total } else { Order::Partial };
                Core::Compare(core_ops::Compare(direction(c.comparison_direction)?, order))
            }
            (Op::Select(_), _) => Core::Select,
            (Op::Clamp(_), _) => Core::Clamp,
            (Op::Convert(_), _) => Core::Convert,
            (Op::BitcastConvert(_), _) => Core::Bitcast,
            (Op::ReducePrecision(r), _) => {
                let bits = |n: i64| {
                    u32::try_from(n).map_err(|_| {
                        CompileError::invalid(format!("reduce_precision cannot round to {n} bits"))
                    })
                };
                Core::ReducePrecision(core_ops::ReducePrecision {
                    exponent: bits(r.exponent_bits)?,
                    mantissa: bits(r.mantissa_bits)?,
                })
            }
            _ => return Ok(None),
        };
        let mut operands = self.flat(&op.operands)?;
        let shape = self.result_shape(op)?;
        // Select and clamp accept scalars for some operands.
        if matches!(core, Core::Select | Core::Clamp) {
            for v in &mut operands {
                *v = self.b.spread(*v, &shape.dims);
            }
        }
        if let Some(operand) = operands.last()
            && self.b.shape(*operand).dtype.is_complex()
            && let Some(value) = self.complex_order(&core, &operands)
        {
            return Ok(Some(vec![value]));
        }
        Ok(Some(vec![self.b.add(core, &operands, shape)]))
    }

    /// Combines two arrays by an elementwise operation.
    pub(super) fn binary(&mut self, op: TileOp, x: ValueId, y: ValueId) -> ValueId {
        let is_complex = self.b.shape(x).dtype.is_complex();
        let ordered = if is_complex { self.complex_order(&Core::Tile(op), &[x, y]) } else { None };
        ordered.unwrap_or_else(|| self.b.tile(op, &[x, y]))
    }

    /// Lowers operations that order complex numbers, for which there are no kernels; returns `None` for other operations.
    fn complex_order(&mut self, op: &Core, operands: &[ValueId]) -> Option<ValueId> {
        match (op, operands) {
            (Core::Tile(TileOp::Minimum), &[x, y]) => Some(self.lexicographic(x, y, Direction::Lt)),
            (Core::Tile(TileOp::Maximum), &[x, y]) => Some(self.lexicographic(x, y, Direction::Gt)),
            (Core::Clamp, &[min, x, max]) => {
                let raised = self.lexicographic(x, min, Direction::Gt);
                Some(self.lexicographic(raised, max, Direction::Lt))
            }
            (Core::Compare(core_ops::Compare(direction, _)), &[x, y])
                if !matches!(direction, Direction::Eq | Direction::Ne) =>
            {
                Some(self.are_ordered(x, y, *direction))
            }
            _ => None,
        }
    }

    /// Selects the first of two complex numbers where it is less than the second, or greater for the relation `Gt`; otherwise
    /// the second.
    fn lexicographic(&mut self, x: ValueId, y: ValueId, relation: Direction) -> ValueId {
        let is_first = self.are_ordered(x, y, relation);
        self.b.select(is_first, x, y)
    }

    /// Compares complex numbers lexicographically: by the real parts, and by the imaginary parts if the real parts are equal.
    fn are_ordered(&mut self, x: ValueId, y: ValueId, relation: Direction) -> ValueId {
        let strictly = match relation {
            Direction::Le => Direction::Lt,
            Direction::Ge => Direction::Gt,
            other => other,
        };
        let shape = self.b.shape(x);
        let part = shape.with_dtype(if shape.dtype == DType::C128 { DType::F64 } else { DType::F32 });
        let [x_real, y_real] = [x, y].map(|v| self.b.add(Core::Tile(TileOp::Real), &[v], part.clone()));
        let [x_imag, y_imag] = [x, y].map(|v| self.b.add(Core::Tile(TileOp::Imag), &[v], part.clone()));
        let by_real = self.b.compare(strictly, x_real, y_real);
        let by_imag = self.b.compare(relation, x_imag, y_imag);
        let are_equal = self.b.compare(Direction::Eq, x_real, y_real);
        let by_imag = self.b.tile(TileOp::And, &[are_equal, by_imag]);
        self.b.tile(TileOp::Or, &[by_real, by_imag])
    }
}

/// Converts the direction of a comparison.
pub(super) fn direction(d: ComparisonDirection) -> Result<Direction> {
    Ok(match d {
        ComparisonDirection::Eq => Direction::Eq,
        ComparisonDirection::Ne => Direction::Ne,
        ComparisonDirection::Ge => Direction::Ge,
        ComparisonDirection::Gt => Direction::Gt,
        ComparisonDirection::Le => Direction::Le,
        ComparisonDirection::Lt => Direction::Lt,
        other => return Err(CompileError::unimplemented(format!("the comparison {other} is not supported"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_operation() {
        assert!(TILE_OPS.is_sorted_by(|a, b| a.0 < b.0));
    }
}
