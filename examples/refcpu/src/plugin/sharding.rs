//! Where shards are in the whole arrays of a partitioned program.
//!
//! A partitioned program runs once, on whole arrays: all devices share the machine's memory. What a host hands over
//! and gets back are shards, one on each device.

use crate::plan::Sharding;

/// The boxes of one array: equally large, one for each partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The shape of a shard.
    pub(super) shard: Vec<usize>,
    /// Where each partition's shard begins in the whole array.
    pub(super) starts: Vec<Vec<usize>>,
}

impl Cut {
    /// How an array of this shape is split; without a sharding, everyone has it whole.
    pub(super) fn new(sharding: Option<&Sharding>, dims: &[usize], partitions: usize) -> Self {
        let Some(sharding) = sharding else {
            return Self { shard: dims.to_vec(), starts: vec![vec![0; dims.len()]; partitions] };
        };
        let shard: Vec<usize> = dims.iter().zip(&sharding.parts).map(|(size, parts)| size / parts).collect();
        let start =
            |position: &Vec<usize>| position.iter().zip(&shard).map(|(index, part)| index * part).collect();
        Self { starts: sharding.position.iter().map(start).collect(), shard }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_begin_where_their_position_says() {
        let sharding = Sharding { parts: vec![2, 1], position: vec![vec![1, 0], vec![0, 0]] };
        let cut = Cut::new(Some(&sharding), &[8, 3], 2);
        assert_eq!((cut.shard, cut.starts), (vec![4, 3], vec![vec![4, 0], vec![0, 0]]));
    }
}
