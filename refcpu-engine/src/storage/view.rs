//! The arrays that steps read and write.

use super::array::byte_len;
use refcpu_kernels::DType;

/// An array inside a slot: the operand or result of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct View {
    /// The index of the slot.
    pub slot: u32,
    /// The offset in bytes of the array within the slot.
    pub offset: usize,
    /// The element type.
    pub dtype: DType,
    /// The sizes of the dimensions, outermost first.
    pub dims: Box<[usize]>,
    bytes: usize,
}

impl View {
    /// Creates a view of an array of this type and shape at `offset` bytes into a slot.
    ///
    /// # Panics
    /// Panics if the array is too large to address. The compiler checks shapes before it creates plans.
    pub fn new(slot: u32, offset: usize, dtype: DType, dims: &[usize]) -> Self {
        let bytes = byte_len(dtype, dims).expect("the compiler checks shapes");
        Self { slot, offset, dtype, dims: dims.into(), bytes }
    }

    /// Returns the size of the array in bytes.
    pub fn byte_len(&self) -> usize {
        self.bytes
    }
}
