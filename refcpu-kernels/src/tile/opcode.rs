//! The operations that have compiled loops.

use super::TileOp;
use crate::DType;

/// The order of floats in `compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// NaN is unordered: every comparison with it is false, except `Ne`.
    Partial,
    /// IEEE totalOrder: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
    Total,
}

/// The relation that `compare` tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater or equal.
    Ge,
    /// Greater.
    Gt,
    /// Less or equal.
    Le,
    /// Less.
    Lt,
}

#[cfg(test)]
impl Direction {
    pub(super) const ALL: [Direction; 6] = [Self::Eq, Self::Ne, Self::Ge, Self::Gt, Self::Le, Self::Lt];
}

/// The operation of a compiled loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Opcode {
    /// An operation on operands of one type.
    Tile(TileOp),
    /// A comparison, whose result is a boolean.
    Compare(Direction, Order),
    /// The second operand where the first is true, and the third elsewhere.
    Select,
    /// The second operand, limited to the range from the first to the third.
    Clamp,
    /// A conversion of the value to the result's type.
    Convert,
    /// The same bits as a value of the result's type, which has the same size.
    Reinterpret,
    /// F32 rounded to a value that a narrow float type represents.
    Round(DType),
    /// The bits of a narrow float (as U8 or U16) whose value is the F32 operand, rounded.
    ToBits(DType),
    /// The F32 value of a narrow float's bits (U8 or U16).
    FromBits(DType),
    /// An S8 or U8, wrapped to the range of a sub-byte integer.
    Wrap(DType),
    /// The first operand rounded to a float format. The second one is U32: exponent bits + 2^8 * mantissa
    /// bits + 2^16 * the biased exponent below which all numbers have the same unit in the last place (0 if
    /// there is none).
    ReducePrecision,
    /// a * b + c, where the product is rounded.
    MulAdd,
    /// c - a * b, where the product is rounded.
    NegMulAdd,
    /// a * b - c, where the product is rounded.
    MulSub,
}
