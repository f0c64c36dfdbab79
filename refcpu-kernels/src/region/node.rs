//! The nodes of a region: elementwise operations on register types, in single-assignment form.

use crate::ComputeType;
use crate::tile::Opcode;

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
    Op { opcode: Opcode, ty: ComputeType, args: [u32; 3], arity: u8 },
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
