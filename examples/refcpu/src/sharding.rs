//! The positions of shards in the whole arrays of a partitioned program.
//!
//! A partitioned program runs once, on whole arrays, because all devices share the machine's memory. Hosts pass and receive
//! shards, one on each device.

use pjrt_plugin::ext;
use pjrt_sharding::{Reduction, Sharding, Subgroup};
use refcpu_engine::compile::{ArrayInfo, Compiled};

/// The shards of an array, which have the same shape, one for each partition. The last shards of an uneven split reach beyond
/// the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The shape of a shard.
    pub(crate) shard: Vec<usize>,
    /// The start of each partition's shard in the whole array.
    pub(crate) starts: Vec<Vec<usize>>,
    /// `true` if the first dimension is that of the partial results of an unreduced array, which hosts do not see.
    pub(crate) is_unreduced: bool,
}

impl Cut {
    /// Returns the shards of an array with a shape. Without a sharding, every partition has the whole array.
    pub(crate) fn new(sharding: Option<&Sharding>, dims: &[usize], partitions: usize) -> Self {
        let Some(sharding) = sharding else {
            let starts = vec![vec![0; dims.len()]; partitions];
            return Self { shard: dims.to_vec(), starts, is_unreduced: false };
        };
        let starts = (0..partitions).map(|partition| sharding.shard_starts(partition, dims)).collect();
        Self { starts, shard: sharding.shard_dims(dims), is_unreduced: sharding.reduction.is_some() }
    }

    /// Returns the dimensions of a shard for hosts.
    pub(crate) fn dims(&self) -> &[usize] {
        &self.shard[usize::from(self.is_unreduced)..]
    }
}

/// Returns the shardings of the parameters and the outputs of a program in the global view. Returns `None` for other
/// programs, and if nothing is sharded.
pub(crate) fn shardings(compiled: &Compiled) -> Option<[Vec<ext::Sharding>; 2]> {
    let of_arrays =
        |arrays: &[ArrayInfo]| arrays.iter().map(|array| of_array(array.sharding.as_ref())).collect();
    let is_shared = compiled.plan.num_partitions > 1 && (compiled.in_parts || compiled.plan.global_view);
    is_shared.then(|| [of_arrays(&compiled.parameters), of_arrays(&compiled.results)])
}

/// Converts a sharding to XLA's form, which lists the partitions of each tile.
pub(crate) fn of_array(sharding: Option<&Sharding>) -> ext::Sharding {
    let Some(sharding) = sharding else { return ext::Sharding::Replicated };
    let tiles = sharding.tiles();
    let numbers = |numbers: &[usize]| numbers.iter().map(|number| *number as i64).collect();
    let tile_assignment_dimensions = numbers(&tiles.dimensions);
    let tile_assignment_devices = numbers(&tiles.devices);
    if sharding.reduction.is_some() {
        let kind = |subgroup: &Subgroup| match subgroup {
            Subgroup::Replicated => ext::Subgroup::Replicated,
            Subgroup::Unreduced(Reduction::Sum) => ext::Subgroup::Unreduced(ext::Reduction::Sum),
            Subgroup::Unreduced(Reduction::Max) => ext::Subgroup::Unreduced(ext::Reduction::Max),
            Subgroup::Unreduced(Reduction::Min) => ext::Subgroup::Unreduced(ext::Reduction::Min),
        };
        return ext::Sharding::Subgroups {
            tile_assignment_dimensions,
            tile_assignment_devices,
            last_tile_dims: tiles.subgroups.iter().map(kind).collect(),
        };
    }
    ext::Sharding::Tiled {
        tile_assignment_dimensions,
        tile_assignment_devices,
        replicate_on_last_tile_dim: !tiles.subgroups.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_see_which_partitions_have_a_tile() {
        // Two rows of tiles, each on two of four partitions.
        let position = vec![vec![0, 0], vec![1, 0], vec![0, 0], vec![1, 0]];
        let sharding = Sharding { parts: vec![2, 1], position, reduction: None };
        let expected = ext::Sharding::Tiled {
            tile_assignment_dimensions: vec![2, 1, 2],
            tile_assignment_devices: vec![0, 2, 1, 3],
            replicate_on_last_tile_dim: true,
        };
        assert_eq!(of_array(Some(&sharding)), expected);
        assert_eq!(of_array(None), ext::Sharding::Replicated);
    }

    #[test]
    fn shards_begin_where_their_position_says() {
        let sharding =
            Sharding { parts: vec![2, 1], position: vec![vec![1, 0], vec![0, 0]], reduction: None };
        let cut = Cut::new(Some(&sharding), &[8, 3], 2);
        assert_eq!((cut.shard, cut.starts), (vec![4, 3], vec![vec![4, 0], vec![0, 0]]));
        let uneven = Cut::new(Some(&sharding), &[7, 3], 2);
        assert_eq!((uneven.shard, uneven.starts), (vec![4, 3], vec![vec![4, 0], vec![0, 0]]));
    }
}
