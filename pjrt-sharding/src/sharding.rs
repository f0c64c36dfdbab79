//! The sharding of an array.

use crate::error::{Error, Result};
use pjrt_stablehlo::ir::Reduction;
use std::fmt;

/// The sharding of an array: the split of each dimension into equal parts, and the parts that each partition holds.
///
/// ```
/// use pjrt_sharding::Sharding;
///
/// // Two tiles of rows, each on two of four partitions.
/// let position = vec![vec![0, 0], vec![1, 0], vec![0, 0], vec![1, 0]];
/// let sharding = Sharding { parts: vec![2, 1], position, reduction: None };
/// assert_eq!(sharding.tiles().to_string(), "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}");
/// assert_eq!(sharding.tiles().sharding(2), Ok(sharding));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// The number of parts along each dimension.
    pub parts: Vec<usize>,
    /// For each partition, the index along each dimension of the part that it holds.
    pub position: Vec<Vec<usize>>,
    /// The reduction of partial results, of which every partition holds one; `None` if the partitions hold elements of the array.
    /// The first dimension counts the partial results. Hosts do not see this dimension: to them the array is the reduction, which is
    /// still to be computed (`unreduced`).
    pub reduction: Option<Reduction>,
}

/// The content of the partitions that share a tile. The partitions of a [`TileAssignment`] form such subgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subgroup {
    /// Each partition holds the whole tile.
    Replicated,
    /// Each partition holds a partial result of the tile, which is their reduction.
    Unreduced(Reduction),
}

/// A sharding as XLA describes it (`HloSharding`): the partitions of each tile. The example of [`Sharding`] makes one.
///
/// `Display` prints the sharding in the text form of HLO, such as `{devices=[2,1]0,1}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileAssignment {
    /// The number of tiles along each dimension of the array, followed by the sizes of the subgroups.
    pub dimensions: Vec<usize>,
    /// The partitions, row-major over `dimensions`.
    pub devices: Vec<usize>,
    /// The kinds of the last dimensions, which are subgroups and not dimensions of the array.
    pub subgroups: Vec<Subgroup>,
}

impl Sharding {
    /// Returns the dimensions of a shard of an array: the quotients of its dimensions and the numbers of parts, rounded up, as
    /// in XLA. All shards have the same dimensions. Along a dimension that is split unevenly, the last shards reach beyond the
    /// array; their elements outside it are unspecified.
    ///
    /// ```
    /// use pjrt_sharding::Sharding;
    ///
    /// let sharding = Sharding { parts: vec![4], position: vec![vec![0], vec![1], vec![2], vec![3]], reduction: None };
    /// assert_eq!(sharding.shard_dims(&[10]), [3]);
    /// assert_eq!(sharding.shard_starts(3, &[10]), [9]);
    /// ```
    pub fn shard_dims(&self, dims: &[usize]) -> Vec<usize> {
        dims.iter().zip(&self.parts).map(|(size, parts)| size.div_ceil(*parts)).collect()
    }

    /// Returns `true` if all parts of an array of these dimensions are equally large.
    pub(crate) fn is_even(&self, dims: &[usize]) -> bool {
        let parts = &self.parts[usize::from(self.reduction.is_some())..];
        dims.iter().zip(parts).all(|(size, parts)| size.is_multiple_of(*parts))
    }

    /// Returns the index in an array of these dimensions at which the shard of a partition begins. A shard without elements of
    /// the array begins at its end.
    ///
    /// # Panics
    /// Panics if there is no such partition.
    pub fn shard_starts(&self, partition: usize, dims: &[usize]) -> Vec<usize> {
        let starts = self.position[partition].iter().zip(self.shard_dims(dims)).zip(dims);
        starts.map(|((index, shard), size)| (index * shard).min(*size)).collect()
    }

    /// Returns the tiles of the array and the partitions of each.
    pub fn tiles(&self) -> TileAssignment {
        let Self { parts, position, reduction } = self;
        let (terms, parts) = if reduction.is_some() { (parts[0], &parts[1..]) } else { (1, &parts[..]) };
        let tiles: usize = parts.iter().product();
        let copies = position.len() / (tiles * terms);
        let tile = |position: &Vec<usize>| {
            let of_part = &position[usize::from(reduction.is_some())..];
            of_part.iter().zip(parts).fold(0, |tile, (index, parts)| tile * parts + index)
        };
        let mut devices: Vec<usize> = (0..position.len()).collect();
        devices.sort_by_key(|partition| tile(&position[*partition]));
        let (mut dimensions, mut subgroups) = (parts.to_vec(), vec![]);
        if copies > 1 {
            dimensions.push(copies);
            subgroups.push(Subgroup::Replicated);
        }
        if let Some(reduction) = reduction {
            // Within a tile, order the partitions by replica, then by partial result.
            for of_tile in devices.chunks_mut(copies * terms) {
                of_tile.sort_by_key(|partition| position[*partition][0]);
                let sorted = of_tile.to_vec();
                for (i, partition) in of_tile.iter_mut().enumerate() {
                    *partition = sorted[i % terms * copies + i / terms];
                }
            }
            dimensions.push(terms);
            subgroups.push(Subgroup::Unreduced(*reduction));
        }
        TileAssignment { dimensions, devices, subgroups }
    }

    /// Returns the text form of a sharding in HLO; `None` means an array that every partition holds whole.
    pub fn to_hlo_text(sharding: Option<&Self>) -> String {
        sharding.map_or_else(|| "{replicated}".to_owned(), |sharding| sharding.tiles().to_string())
    }
}

impl TileAssignment {
    /// Converts the tiles of an array of this rank to a [`Sharding`].
    ///
    /// # Errors
    /// Returns [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) if the tiles have a different rank or do not contain every
    /// partition once, or [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if a subgroup is not replicated.
    pub fn sharding(&self, rank: usize) -> Result<Sharding> {
        if self.subgroups.iter().any(|subgroup| matches!(subgroup, Subgroup::Unreduced(_))) {
            return Err(Error::unsupported(format!(
                "the sharding {self} is unreduced, which is not supported here"
            )));
        }
        let wrong =
            |why: &str| Error::invalid(format!("invalid sharding {self} of an array of rank {rank}: {why}"));
        let partitions = self.devices.len();
        let count = self.dimensions.iter().try_fold(1usize, |count, n| count.checked_mul(*n));
        if self.dimensions.len() != rank + self.subgroups.len() || count != Some(partitions) {
            return Err(wrong(
                "the dimensions are not those of the array followed by the subgroups, or their product is not \
                 the number of devices",
            ));
        }
        let mut position = vec![vec![]; partitions];
        let mut seen = vec![false; partitions];
        for (tile, device) in self.devices.iter().enumerate() {
            if seen.get(*device) != Some(&false) {
                return Err(wrong(&format!(
                    "the device list {:?} is not a permutation of 0..{partitions}",
                    self.devices
                )));
            }
            let mut rest = tile;
            let mut at: Vec<usize> = self.dimensions.iter().rev().map(|n| (rest % n, rest /= n).0).collect();
            at.reverse();
            at.truncate(rank);
            (position[*device], seen[*device]) = (at, true);
        }
        Ok(Sharding { parts: self.dimensions[..rank].to_vec(), position, reduction: None })
    }
}

impl fmt::Display for TileAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let subgroups = match self.subgroups[..] {
            [] => "",
            [Subgroup::Replicated] => " last_tile_dim_replicate",
            [Subgroup::Unreduced(_)] => " last_tile_dims={unreduced}",
            _ => " last_tile_dims={replicated, unreduced}",
        };
        write!(f, "{{devices=[{}]{}{subgroups}}}", list(&self.dimensions), list(&self.devices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_which_partitions_have_partial_results_of_a_tile() {
        // A mesh of 2 by 2 by 2. The first axis splits the array; the partial results are along the last axis or along the second.
        let along = |axis: usize| (0..8).map(|p| vec![p >> (2 - axis) & 1, p >> 2]).collect::<Vec<_>>();
        let text = |axis| {
            let sharding =
                Sharding { parts: vec![2, 2], position: along(axis), reduction: Some(Reduction::Sum) };
            Sharding::to_hlo_text(Some(&sharding))
        };
        assert_eq!(text(2), "{devices=[2,2,2]0,1,2,3,4,5,6,7 last_tile_dims={replicated, unreduced}}");
        assert_eq!(text(1), "{devices=[2,2,2]0,2,1,3,4,6,5,7 last_tile_dims={replicated, unreduced}}");
        assert_eq!(Sharding::to_hlo_text(None), "{replicated}");
    }

    #[test]
    fn tiles_that_are_not_of_the_array_are_refused() {
        let tiles = |dimensions: &[usize], devices: &[usize]| TileAssignment {
            dimensions: dimensions.to_vec(),
            devices: devices.to_vec(),
            subgroups: vec![],
        };
        assert!(tiles(&[2, 1], &[0, 1]).sharding(2).is_ok());
        for (dimensions, devices) in
            [(&[2][..], &[0, 1][..]), (&[2, 2], &[0, 1]), (&[2, 1], &[0, 0]), (&[2, 1], &[0, 2])]
        {
            assert!(tiles(dimensions, devices).sharding(2).is_err(), "{dimensions:?} {devices:?}");
        }
    }
}
