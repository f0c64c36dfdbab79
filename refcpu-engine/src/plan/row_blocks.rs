//! Steps that run block by block over the rows of arrays, so that intermediate values stay in the cache.

use super::Call;
use crate::storage::Rows;

/// Kernels that work on rows independently of each other, and run one after the other on a block of rows.
#[derive(Debug)]
pub struct RowBlocks {
    /// The arrays.
    pub rows: Rows,
    /// The kernels for a full block.
    pub full: Vec<Call>,
    /// The kernels for the last block, if it has fewer rows.
    pub last: Vec<Call>,
    /// The estimated time of a full block in nanoseconds.
    pub ns: f64,
}

impl RowBlocks {
    /// Returns the kernels of a block.
    pub(crate) fn calls(&self, block: usize) -> &[Call] {
        if self.rows.rows_of(block) == self.rows.block { &self.full } else { &self.last }
    }
}
