//! The operations of reductions.

use crate::DType;

/// The operation of a reduction.
///
/// For booleans, `Add`, `Maximum` and `Or` are logical or, and `Multiply`, `Minimum` and `And` are logical
/// and.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum; integers wrap.
    Add,
    /// The product; integers wrap.
    Multiply,
    /// The smallest value, or NaN if there is one. Complex numbers are ordered by real part, then imaginary
    /// part.
    Minimum,
    /// The greatest value, or NaN if there is one. Complex numbers are ordered by real part, then imaginary
    /// part.
    Maximum,
    /// Bitwise and; only for integers and booleans.
    And,
    /// Bitwise or; only for integers and booleans.
    Or,
    /// Bitwise exclusive or; only for integers and booleans.
    Xor,
}

impl ReduceOp {
    /// Returns `true` if the operation is defined on elements of the type.
    pub const fn supports(self, dtype: DType) -> bool {
        match self {
            Self::And | Self::Or | Self::Xor => !dtype.is_float() && !dtype.is_complex(),
            _ => true,
        }
    }

    /// Returns the operation on bytes that is equivalent for booleans; for other types, the operation itself.
    pub(crate) fn for_storage(self, dtype: DType) -> Self {
        match (dtype, self) {
            (DType::Pred, Self::Add | Self::Maximum) => Self::Or,
            (DType::Pred, Self::Multiply | Self::Minimum) => Self::And,
            _ => self,
        }
    }
}
