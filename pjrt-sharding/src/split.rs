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

    /// Creates the state of a tensor with this sharding, which is final in the dimensions in `closed`. Partial results are ignored.
    pub(crate) fn new(sharding: Option<&Sharding>, closed: Vec<bool>) -> Self {
        Self { dims: Layout::of(sharding, closed.len()).dims, closed }
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
