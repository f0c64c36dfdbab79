//! The division of arrays into blocks of rows.

use super::view::View;

/// Arrays of which each block of rows uses a part.
#[derive(Debug)]
pub struct Rows {
    /// The number of rows.
    pub count: usize,
    /// The number of rows of a block. The last one may have fewer.
    pub block: usize,
    /// The arrays. They are the first slots of a block.
    pub parts: Vec<Part>,
    /// The sizes in bytes of a row of the arrays that exist only within a block. They are the next slots of a block.
    pub local: Vec<usize>,
}

/// An array of which each block uses a part.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The whole array.
    pub view: View,
    /// The distance between two rows in bytes; 0 if all blocks read the same elements.
    pub row: usize,
    /// `true` if a block uses only the bytes of its rows, and `false` if it may read all bytes that follow.
    pub is_contained: bool,
    /// `true` if a block reads values from before.
    pub is_read: bool,
    /// `true` if a block writes its rows.
    pub is_written: bool,
}

impl Rows {
    /// Returns the number of blocks.
    pub fn blocks(&self) -> usize {
        self.count.div_ceil(self.block)
    }

    /// Returns the number of rows of a block.
    pub fn rows_of(&self, block: usize) -> usize {
        self.block.min(self.count - block * self.block)
    }
}
