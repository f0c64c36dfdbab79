//! How an array is split among partitions.

use crate::error::{Error, Result};
use std::fmt;

/// How an array is split among the partitions of a program.
///
/// ```
/// use pjrt_sharding::Sharding;
///
/// // Two rows of tiles, each on two of four partitions.
/// let position = vec![vec![0, 0], vec![1, 0], vec![0, 0], vec![1, 0]];
/// let sharding = Sharding { parts: vec![2, 1], position, summed: false };
/// assert_eq!(sharding.tiles().to_string(), "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}");
/// assert_eq!(sharding.tiles().sharding(2), Ok(sharding));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharding {
    /// Parts along each dimension.
    pub parts: Vec<usize>,
    /// For each partition, which part it has along each dimension.
    pub position: Vec<Vec<usize>>,
    /// The first dimension counts addends, of which every partition has one. Hosts do not see it: to them the array is the
    /// sum, still to be made.
    pub summed: bool,
}

/// What the partitions that share a tile have of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subgroup {
    /// Each has all of it.
    Replicated,
    /// Each has an addend of it.
    Unreduced,
}

/// A sharding as XLA describes it (`HloSharding`): for each tile, the partitions that have it. It prints as HLO's text has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileAssignment {
    /// Tiles along each dimension of the array, and then the sizes of the subgroups.
    pub dimensions: Vec<usize>,
    /// The partitions, row-major over `dimensions`.
    pub devices: Vec<usize>,
    /// What the dimensions are that the array does not have, which are the last.
    pub subgroups: Vec<Subgroup>,
}

impl Sharding {
    /// Returns the sizes of a shard of an array of these sizes: along each dimension the quotient of size and parts, rounded
    /// up, as XLA has it. All shards are equally large; where a dimension is split unevenly, the last ones reach beyond the
    /// array, and what they have there is unspecified.
    ///
    /// ```
    /// use pjrt_sharding::Sharding;
    ///
    /// let sharding = Sharding { parts: vec![4], position: vec![vec![0], vec![1], vec![2], vec![3]], summed: false };
    /// assert_eq!(sharding.shard_sizes(&[10]), [3]);
    /// assert_eq!(sharding.shard_starts(3, &[10]), [9]);
    /// ```
    pub fn shard_sizes(&self, sizes: &[usize]) -> Vec<usize> {
        sizes.iter().zip(&self.parts).map(|(size, parts)| size.div_ceil(*parts)).collect()
    }

    /// Returns where the shard of a partition begins in an array of these sizes: at its end for a shard that has no element
    /// of it.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn shard_starts(&self, partition: usize, sizes: &[usize]) -> Vec<usize> {
        let starts = self.position[partition].iter().zip(self.shard_sizes(sizes)).zip(sizes);
        starts.map(|((index, shard), size)| (index * shard).min(*size)).collect()
    }

    /// Returns the tiles of the array, and which partitions have them.
    pub fn tiles(&self) -> TileAssignment {
        let Self { parts, position, summed } = self;
        let (addends, parts) = if *summed { (parts[0], &parts[1..]) } else { (1, &parts[..]) };
        let tiles: usize = parts.iter().product();
        let copies = position.len() / (tiles * addends);
        let tile = |position: &Vec<usize>| {
            let of_part = &position[usize::from(*summed)..];
            of_part.iter().zip(parts).fold(0, |tile, (index, parts)| tile * parts + index)
        };
        let mut devices: Vec<usize> = (0..position.len()).collect();
        devices.sort_by_key(|partition| tile(&position[*partition]));
        let (mut dimensions, mut subgroups) = (parts.to_vec(), vec![]);
        if copies > 1 {
            dimensions.push(copies);
            subgroups.push(Subgroup::Replicated);
        }
        if *summed {
            // Those of a tile: copy by copy, of each one all addends.
            for of_tile in devices.chunks_mut(copies * addends) {
                of_tile.sort_by_key(|partition| position[*partition][0]);
                let sorted = of_tile.to_vec();
                for (i, partition) in of_tile.iter_mut().enumerate() {
                    *partition = sorted[i % addends * copies + i / addends];
                }
            }
            dimensions.push(addends);
            subgroups.push(Subgroup::Unreduced);
        }
        TileAssignment { dimensions, devices, subgroups }
    }

    /// Returns a sharding as HLO's text has it; `None` is an array that every partition has whole.
    pub fn to_hlo_text(sharding: Option<&Self>) -> String {
        sharding.map_or_else(|| "{replicated}".to_owned(), |sharding| sharding.tiles().to_string())
    }
}

impl TileAssignment {
    /// Returns where the partitions are in an array of this rank.
    ///
    /// # Errors
    /// If it is of another rank, has not every partition once, or has subgroups that are not replicated.
    pub fn sharding(&self, rank: usize) -> Result<Sharding> {
        if self.subgroups.contains(&Subgroup::Unreduced) {
            return Err(Error::unsupported(format!(
                "the sharding {self} of an array that is still to be summed"
            )));
        }
        let wrong = |why: &str| {
            Error::invalid(format!("the sharding {self} of an array of {rank} dimensions: {why}"))
        };
        let partitions = self.devices.len();
        let count = self.dimensions.iter().try_fold(1usize, |count, n| count.checked_mul(*n));
        if self.dimensions.len() != rank + self.subgroups.len() || count != Some(partitions) {
            return Err(wrong("the numbers of tiles are others"));
        }
        let mut position = vec![vec![]; partitions];
        let mut seen = vec![false; partitions];
        for (tile, device) in self.devices.iter().enumerate() {
            if seen.get(*device) != Some(&false) {
                return Err(wrong("the devices are others"));
            }
            let mut rest = tile;
            let mut at: Vec<usize> = self.dimensions.iter().rev().map(|n| (rest % n, rest /= n).0).collect();
            at.reverse();
            at.truncate(rank);
            (position[*device], seen[*device]) = (at, true);
        }
        Ok(Sharding { parts: self.dimensions[..rank].to_vec(), position, summed: false })
    }
}

impl fmt::Display for TileAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let subgroups = match self.subgroups[..] {
            [] => "",
            [Subgroup::Replicated] => " last_tile_dim_replicate",
            [Subgroup::Unreduced] => " last_tile_dims={unreduced}",
            _ => " last_tile_dims={replicated, unreduced}",
        };
        write!(f, "{{devices=[{}]{}{subgroups}}}", list(&self.dimensions), list(&self.devices))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_which_partitions_have_addends_of_a_tile() {
        // A mesh of 2 by 2 by 2: the first axis splits, the last has addends, or the second.
        let along = |axis: usize| (0..8).map(|p| vec![p >> (2 - axis) & 1, p >> 2]).collect::<Vec<_>>();
        let text = |axis| {
            let sharding = Sharding { parts: vec![2, 2], position: along(axis), summed: true };
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
