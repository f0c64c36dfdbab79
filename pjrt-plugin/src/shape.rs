//! The shape of an array, in a form that C can read.

use std::fmt;

use crate::element_type::ElementType;
use crate::error::Result;
use crate::layout::dense_size;

/// The element type and the dimensions of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) element_type: ElementType,
    dims: Dims,
    size: usize,
}

/// The largest rank whose dimensions are stored inline.
const FEW: usize = 6;
/// The dimensions of small ranks in descending order.
static FEW_DESCENDING: [i64; FEW] = [5, 4, 3, 2, 1, 0];

#[derive(Debug, Clone)]
enum Dims {
    /// The elements of `dims` after `rank` are zero.
    Few {
        dims: [i64; FEW],
        rank: usize,
    },
    Many {
        dims: Box<[i64]>,
        minor_to_major: Box<[i64]>,
    },
}

impl PartialEq for Dims {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // Executions compare every argument, so this compares all elements without branches.
            (Self::Few { dims, rank }, Self::Few { dims: others, rank: other }) => {
                let differ = dims.iter().zip(others).fold(0, |differ, (dim, other)| differ | (dim ^ other));
                rank == other && differ == 0
            }
            (Self::Many { dims, .. }, Self::Many { dims: others, .. }) => dims == others,
            _ => false,
        }
    }
}

impl Eq for Dims {}

impl Shape {
    /// Creates a shape. Returns an error if a dimension is negative or the size overflows.
    #[inline(always)]
    pub(crate) fn new(element_type: ElementType, dims: &[i64]) -> Result<Self> {
        let size = dense_size(dims, element_type.byte_size())?;
        let dims = if dims.len() <= FEW {
            // The elements are copied one by one, so that they can stay in registers.
            let few = std::array::from_fn(|index| dims.get(index).copied().unwrap_or(0));
            Dims::Few { dims: few, rank: dims.len() }
        } else {
            Dims::Many { dims: dims.into(), minor_to_major: (0..dims.len() as i64).rev().collect() }
        };
        Ok(Self { element_type, dims, size })
    }

    /// Returns the dimensions, none of which is negative.
    pub(crate) fn dims(&self) -> &[i64] {
        match &self.dims {
            Dims::Few { dims, rank } => &dims[..*rank],
            Dims::Many { dims, .. } => dims,
        }
    }

    /// Returns the row-major `minor_to_major`: the dimensions in descending order.
    pub(crate) fn minor_to_major(&self) -> &[i64] {
        match &self.dims {
            Dims::Few { rank, .. } => &FEW_DESCENDING[FEW - rank..],
            Dims::Many { minor_to_major, .. } => minor_to_major,
        }
    }

    /// Returns the size of the array in host memory in bytes, where an element of less than a byte occupies one byte.
    pub(crate) fn host_size(&self) -> usize {
        self.size
    }

    /// Returns the size of the array in bytes if elements of less than a byte share bytes, as in the memory of devices.
    pub(crate) fn packed_size(&self) -> usize {
        match self.element_type.packed_bits() {
            bits @ 1..8 => self.size.div_ceil(8 / bits),
            _ => self.size,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.element_type, self.dims())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_and_their_order_are_there_for_every_rank() {
        for rank in 0..10 {
            let dims: Vec<i64> = (1..=rank).collect();
            let shape = Shape::new(ElementType::F32, &dims).unwrap();
            assert_eq!(shape.dims(), dims);
            assert_eq!(shape.minor_to_major(), (0..rank).rev().collect::<Vec<i64>>());
            assert_eq!(shape.host_size() as i64, 4 * dims.iter().product::<i64>());
        }
    }

    #[test]
    fn elements_of_half_a_byte_share_bytes() {
        let packed = |ty, dims: &[i64]| Shape::new(ty, dims).unwrap().packed_size();
        assert_eq!(packed(ElementType::S4, &[3]), 2);
        assert_eq!(packed(ElementType::U1, &[3, 8]), 3);
        assert_eq!(packed(ElementType::F6E2M3FN, &[4]), 4);
        assert_eq!(packed(ElementType::F32, &[2, 0]), 0);
        assert_eq!(packed(ElementType::F32, &[2]), 8);
    }

    #[test]
    fn shapes_differ_in_type_rank_or_a_dimension() {
        let shape = |dims: &[i64]| Shape::new(ElementType::F32, dims).unwrap();
        assert_eq!(shape(&[2, 3]), shape(&[2, 3]));
        assert_ne!(shape(&[2, 3]), shape(&[2, 3, 1]));
        assert_ne!(shape(&[2, 3]), shape(&[3, 2]));
        assert_ne!(shape(&[2, 3]), Shape::new(ElementType::S32, &[2, 3]).unwrap());
    }
}
