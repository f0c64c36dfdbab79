//! What is known about how a tensor is split.

use crate::cut::Cut;
use crate::layout::Layout;
use crate::sharding::Sharding;

/// What is known about how a tensor is split.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) dims: Vec<Option<Cut>>,
    /// Dimensions whose split may not change.
    pub(crate) closed: Vec<bool>,
}

impl Split {
    /// A tensor of this rank, of which nothing is known.
    pub(crate) fn open(rank: usize) -> Self {
        Self { dims: vec![None; rank], closed: vec![false; rank] }
    }

    /// A tensor that every partition has whole.
    pub(crate) fn whole(rank: usize) -> Self {
        Self { dims: vec![None; rank], closed: vec![true; rank] }
    }

    /// A tensor that is split so, where `closed` says so for good. Addends are not part of that.
    pub(crate) fn new(sharding: Option<&Sharding>, closed: Vec<bool>) -> Self {
        Self { dims: Layout::of(sharding, closed.len()).dims, closed }
    }

    /// Splits a dimension of this size if it may be, and if the parts of all dimensions together are spread evenly over
    /// the partitions: no axis of a mesh can split two of them.
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

/// Whether every tile of an array that is cut so is on equally many partitions.
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
