//! Algebraic simplification of operations, which preserves every bit of the results.

use super::RegionError;
use super::builder::Builder;
use super::node::Node;
use crate::ComputeType;
use crate::tile::{Direction, Opcode, TileOp};

impl Builder {
    /// Returns an existing node with the same value, if a simplification rule finds one.
    pub(super) fn simplified(&self, opcode: Opcode, ty: ComputeType, args: &[u32]) -> Option<u32> {
        match opcode {
            Opcode::Convert | Opcode::Reinterpret => {
                (self.nodes[args[0] as usize].ty() == ty).then_some(args[0])
            }
            Opcode::Round(_) | Opcode::Wrap(_) | Opcode::ToBits(_) | Opcode::FromBits(_) => {
                self.simplified_narrowing(opcode, args[0])
            }
            Opcode::Compare(direction, _) => self.simplified_comparison(direction, args),
            Opcode::Tile(op) => self.simplified_elementwise(op, ty, args),
            Opcode::Select if args[1] == args[2] => Some(args[1]),
            Opcode::Select => self.constant_of(args[0]).map(|p| if p != 0 { args[1] } else { args[2] }),
            _ => None,
        }
    }

    /// Returns a node with the value of a conversion to or from a narrow type, if its operand is already of
    /// this type or the result of the inverse conversion.
    fn simplified_narrowing(&self, opcode: Opcode, arg: u32) -> Option<u32> {
        let (inner, [first, ..]) = self.op_of(arg)?;
        match (opcode, inner) {
            (Opcode::Round(d), Opcode::Round(e) | Opcode::FromBits(e)) if d == e => Some(arg),
            (Opcode::Wrap(d), Opcode::Wrap(e)) if d == e => Some(arg),
            (Opcode::ToBits(d), Opcode::FromBits(e)) if d == e => Some(first),
            // This applies only to rounded values, because ToBits rounds.
            (Opcode::FromBits(d), Opcode::ToBits(e)) if d == e => {
                self.op_of(first).is_some_and(|(op, _)| op == Opcode::Round(d)).then_some(first)
            }
            _ => None,
        }
    }

    /// Returns the boolean operand of a comparison with the constant for which the result is the operand.
    fn simplified_comparison(&self, direction: Direction, args: &[u32]) -> Option<u32> {
        let neutral = match direction {
            Direction::Eq => 1,
            Direction::Ne => 0,
            _ => return None,
        };
        if self.nodes[args[0] as usize].ty() != ComputeType::Pred {
            return None;
        }
        if self.constant_of(args[1]) == Some(neutral) {
            Some(args[0])
        } else {
            (self.constant_of(args[0]) == Some(neutral)).then_some(args[1])
        }
    }

    fn simplified_elementwise(&self, op: TileOp, ty: ComputeType, args: &[u32]) -> Option<u32> {
        match op {
            TileOp::And | TileOp::Or if args[0] == args[1] => Some(args[0]),
            // A negative number is not zero.
            TileOp::And if self.is_negative_and_not_zero(args[0], args[1]) => Some(args[0]),
            TileOp::And if self.is_negative_and_not_zero(args[1], args[0]) => Some(args[1]),
            TileOp::Multiply | TileOp::Divide => {
                if ty.is_complex() || ty == ComputeType::Pred {
                    return None;
                }
                let one = one(ty);
                if self.constant_of(args[1]) == Some(one) {
                    Some(args[0])
                } else {
                    (op == TileOp::Multiply && self.constant_of(args[0]) == Some(one)).then_some(args[1])
                }
            }
            _ => None,
        }
    }

    /// Returns the operation and the operands of a node, if it is an operation.
    fn op_of(&self, id: u32) -> Option<(Opcode, [u32; 3])> {
        match self.nodes[id as usize] {
            Node::Op { opcode, args, .. } => Some((opcode, args)),
            _ => None,
        }
    }

    /// Returns `true` if `less` is `v < 0` and `other` is `v != 0` for an integer `v`.
    fn is_negative_and_not_zero(&self, less: u32, other: u32) -> bool {
        let (
            Some((Opcode::Compare(Direction::Lt, _), [a, zero, _])),
            Some((Opcode::Compare(Direction::Ne, _), ne)),
        ) = (self.op_of(less), self.op_of(other))
        else {
            return false;
        };
        self.nodes[a as usize].ty().is_signed_integer()
            && self.constant_of(zero) == Some(0)
            && (ne[..2] == [a, zero] || ne[..2] == [zero, a])
    }

    /// Returns `v` and the exponent if a node is the quotient or the remainder of the signed integer `v` by a
    /// positive power of two.
    fn by_power_of_two(&self, id: u32, op: TileOp) -> Option<(u32, u32)> {
        let (opcode, [v, by, _]) = self.op_of(id)?;
        let ty = self.nodes[v as usize].ty();
        let by = self.constant_of(by).filter(|_| opcode == Opcode::Tile(op) && ty.is_signed_integer())?;
        let positive = by.is_power_of_two() && by.trailing_zeros() < 8 * ty.size() as u32 - 1;
        positive.then(|| (v, by.trailing_zeros()))
    }

    /// Replaces a selection that expresses the remainder or the quotient of a floor division by a power of
    /// two, as JAX writes it, with one bitwise operation.
    fn floored(
        &mut self,
        ty: ComputeType,
        [p, a, b]: [u32; 3],
    ) -> Result<Option<(Opcode, Vec<u32>)>, RegionError> {
        let is = |id: u32, want: u128| self.constant_of(id) == Some(want);
        // r < 0 ? r + c : r, where r is the remainder of v by c.
        if let Some((v, exponent)) = self.by_power_of_two(b, TileOp::Remainder)
            && let Some((Opcode::Compare(Direction::Lt, _), [r, zero, _])) = self.op_of(p)
            && let Some((Opcode::Tile(TileOp::Add), [x, y, _])) = self.op_of(a)
            && r == b
            && is(zero, 0)
            && (x == b && is(y, 1 << exponent) || y == b && is(x, 1 << exponent))
        {
            let mask = self.const_node(ty, (1 << exponent) - 1)?;
            return Ok(Some((Opcode::Tile(TileOp::And), vec![v, mask])));
        }
        // sign(v) != 1 && r != 0 ? q - 1 : q, where r and q are the remainder and the quotient of v by c.
        if let Some((v, exponent)) = self.by_power_of_two(b, TileOp::Divide)
            && let Some((Opcode::Tile(TileOp::And), [x, y, _])) = self.op_of(p)
            && let Some((Opcode::Tile(TileOp::Subtract), [q, one, _])) = self.op_of(a)
            && q == b
            && is(one, 1)
        {
            let not_positive = |id: u32| {
                matches!(self.op_of(id), Some((Opcode::Compare(Direction::Ne, _), [s, one, _]))
                    if is(one, 1) && matches!(self.op_of(s), Some((Opcode::Tile(TileOp::Sign), [w, ..])) if w == v))
            };
            let not_whole = |id: u32| {
                matches!(self.op_of(id), Some((Opcode::Compare(Direction::Ne, _), [r, zero, _]))
                    if is(zero, 0) && self.by_power_of_two(r, TileOp::Remainder) == Some((v, exponent)))
            };
            if not_positive(x) && not_whole(y) || not_positive(y) && not_whole(x) {
                let amount = self.const_node(ty, u128::from(exponent))?;
                return Ok(Some((Opcode::Tile(TileOp::ShiftRightArithmetic), vec![v, amount])));
            }
        }
        Ok(None)
    }

    /// Returns a cheaper operation with the same value and type.
    pub(super) fn rewritten(
        &mut self,
        opcode: Opcode,
        ty: ComputeType,
        args: &[u32],
    ) -> Result<Option<(Opcode, Vec<u32>)>, RegionError> {
        match opcode {
            Opcode::ToBits(d) => Ok(match self.op_of(args[0]) {
                Some((Opcode::Round(e), [inner, ..])) if e == d => Some((opcode, vec![inner])),
                _ => None,
            }),
            Opcode::Select => self.floored(ty, [args[0], args[1], args[2]]),
            Opcode::Tile(TileOp::Power) => self.rewritten_power(ty, args),
            Opcode::Tile(TileOp::Divide) => self.rewritten_quotient(ty, args),
            _ => Ok(None),
        }
    }

    /// Replaces a power for which a multiplication or division has the same single rounding.
    fn rewritten_power(
        &mut self,
        ty: ComputeType,
        args: &[u32],
    ) -> Result<Option<(Opcode, Vec<u32>)>, RegionError> {
        let exponent = match (self.constant_of(args[1]), ty) {
            (Some(bits), ComputeType::F32) => f64::from(f32::from_bits(bits as u32)),
            (Some(bits), ComputeType::F64) => f64::from_bits(bits as u64),
            _ => return Ok(None),
        };
        Ok(if exponent == 2.0 {
            Some((Opcode::Tile(TileOp::Multiply), vec![args[0], args[0]]))
        } else if exponent == -1.0 {
            let one = self.const_node(ty, one(ty))?;
            Some((Opcode::Tile(TileOp::Divide), vec![one, args[0]]))
        } else {
            None
        })
    }

    /// Replaces a division by a power of two by the multiplication with the exact reciprocal.
    fn rewritten_quotient(
        &mut self,
        ty: ComputeType,
        args: &[u32],
    ) -> Result<Option<(Opcode, Vec<u32>)>, RegionError> {
        let reciprocal = match (self.constant_of(args[1]), ty) {
            (Some(bits), ComputeType::F32) => {
                let c = f32::from_bits(bits as u32);
                let exact = c.is_normal() && c.to_bits() & 0x7f_ffff == 0 && (1.0 / c).is_normal();
                exact.then(|| u128::from((1.0 / c).to_bits()))
            }
            (Some(bits), ComputeType::F64) => {
                let c = f64::from_bits(bits as u64);
                let exact = c.is_normal() && c.to_bits() & 0xf_ffff_ffff_ffff == 0 && (1.0 / c).is_normal();
                exact.then(|| u128::from((1.0 / c).to_bits()))
            }
            _ => None,
        };
        let Some(bits) = reciprocal else { return Ok(None) };
        let factor = self.const_node(ty, bits)?;
        Ok(Some((Opcode::Tile(TileOp::Multiply), vec![args[0], factor])))
    }
}

/// Returns the bits of the number 1 of a real type.
fn one(ty: ComputeType) -> u128 {
    match ty {
        ComputeType::F32 => u128::from(1f32.to_bits()),
        ComputeType::F64 => u128::from(1f64.to_bits()),
        _ => 1,
    }
}
