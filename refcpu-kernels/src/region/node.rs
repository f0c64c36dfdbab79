//! The nodes of a region: elementwise operations on register types, in single-assignment form.

use crate::tile::TileOp;
use crate::{ComputeType, DType};

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

impl Direction {
    pub(crate) const ALL: [Direction; 6] = [Self::Eq, Self::Ne, Self::Ge, Self::Gt, Self::Le, Self::Lt];
}

/// The operation of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Sum; for booleans, logical or.
    Sum,
    /// Product; for booleans, logical and.
    Product,
    /// Maximum, or NaN if any element is NaN.
    Max,
    /// Minimum, or NaN if any element is NaN.
    Min,
    /// Bitwise or logical and.
    And,
    /// Bitwise or logical or.
    Or,
    /// Bitwise or logical exclusive or.
    Xor,
}

impl ReduceOp {
    pub(crate) const ALL: [ReduceOp; 7] =
        [Self::Sum, Self::Product, Self::Max, Self::Min, Self::And, Self::Or, Self::Xor];

    /// Returns the elementwise operation that combines two elements.
    pub fn tile_op(self) -> TileOp {
        match self {
            Self::Sum => TileOp::Add,
            Self::Product => TileOp::Multiply,
            Self::Max => TileOp::Maximum,
            Self::Min => TileOp::Minimum,
            Self::And => TileOp::And,
            Self::Or => TileOp::Or,
            Self::Xor => TileOp::Xor,
        }
    }
}

/// The operation of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Code {
    /// An operation on operands of one type.
    Tile(TileOp),
    /// A comparison, whose result is a boolean.
    Compare(Direction, Order),
    /// The second operand where the first is true, and the third elsewhere.
    Select,
    /// The second operand, limited to the range from the first to the third.
    Clamp,
    /// A conversion of the value to the node's type.
    Convert,
    /// The same bits as a value of the node's type, which has the same size.
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

/// A value of a region.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// The elements of an input.
    Input { index: u32, ty: ComputeType },
    /// The coordinate along a dimension of the iteration space.
    Iota { dim: u32, ty: ComputeType },
    /// The same element everywhere, with its bytes in the low bits.
    Const { bits: u128, ty: ComputeType },
    /// An operation. Unused operands repeat the first one.
    Op { code: Code, ty: ComputeType, args: [u32; 3], arity: u8 },
}

impl Node {
    pub(crate) fn ty(&self) -> ComputeType {
        match *self {
            Self::Input { ty, .. } | Self::Iota { ty, .. } | Self::Const { ty, .. } | Self::Op { ty, .. } => {
                ty
            }
        }
    }

    pub(crate) fn args(&self) -> &[u32] {
        match self {
            Self::Op { args, arity, .. } => &args[..usize::from(*arity)],
            _ => &[],
        }
    }
}

/// Returns the register type that holds the bits of `dtype` in memory.
pub(crate) fn raw_type(dtype: DType) -> ComputeType {
    if dtype.is_computed_directly() || !dtype.is_float() {
        dtype.compute()
    } else if dtype.size() == 2 {
        ComputeType::U16
    } else {
        ComputeType::U8
    }
}
