//! The state of one tensor during propagation.

use crate::cut::Cut;
use crate::layout::Layout;
use crate::sharding::Sharding;

/// The state of one tensor during propagation: how each dimension is split, as far as is known.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) dims: Vec<Option<Cut>>,
    /// For each dimension, whether its split is final.
    pub(crate) closed: Vec<bool>,
}

impl Split {
    /// Creates the state of a tensor of which nothing is known.
    pub(crate) fn open(rank: usize) -> Self {
        Self { dims: vec![None; rank], closed: vec![false; rank] }
    }

    /// Creates the state of a tensor that every partition must hold whole.
    pub(crate) fn whole(rank: usize) -> Self {
        Self { dims: vec![None; rank], closed: vec![true; rank] }
    }

    /// Creates the state of a tensor with this sharding, which is final in the dimensions in `closed`. Partial sums are ignored.
    pub(crate) fn new(sharding: Option<&Sharding>, closed: Vec<bool>) -> Self {
        Self { dims: Layout::of(sharding, closed.len()).dims, closed }
    }

    /// Splits a dimension of this size, unless its split is known or final, the size is not divisible, or the tiles of the
    /// tensor would not be distributed evenly over the partitions, as when an axis of a mesh splits two dimensions. Returns
    /// whether it did.
    pub(crate) fn take(&mut self, dim: usize, size: usize, cut: &Cut) -> bool {
        if self.closed[dim] || self.dims[dim].is_some() || size == 0 || !size.is_multiple_of(cut.parts) {
            return false;
        }
        let cuts: Vec<&Cut> = self.dims.iter().flatten().chain([cut]).collect();
        let is_even = are_spread_evenly(&cuts);
        if is_even {
            self.dims[dim] = Some(cut.clone());
        }
        is_even
    }
}

/// Returns whether every tile of an array that is split in this way is on the same number of partitions.
pub(crate) fn are_spread_evenly(cuts: &[&Cut]) -> bool {
    let Some(first) = cuts.first() else { return true };
    let partitions = first.of_partition.len();
    let tiles = cuts.iter().try_fold(1usize, |tiles, cut| tiles.checked_mul(cut.parts));
    let Some(tiles) = tiles.filter(|tiles| partitions.is_multiple_of(*tiles)) else { return false };
    let mut holders = vec![0; tiles];
    for p in 0..partitions {
        holders[cuts.iter().fold(0, |tile, cut| tile * cut.parts + cut.of_partition[p])] += 1;
    }
    holders.iter().all(|n| *n == partitions / tiles)
}
