//! Where shards are in the whole arrays of a partitioned program.
//!
//! A partitioned program runs once, on whole arrays: all devices share the machine's memory. What a host hands over
//! and gets back are shards, one on each device.

use pjrt_plugin::ext;
use refcpu_engine::plan::{Plan, Sharding};

/// The boxes of one array: equally large, one for each partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The shape of a shard.
    pub(crate) shard: Vec<usize>,
    /// Where each partition's shard begins in the whole array.
    pub(crate) starts: Vec<Vec<usize>>,
    /// The first dimension counts addends; hosts do not see it.
    pub(crate) summed: bool,
}

impl Cut {
    /// How an array of this shape is split; without a sharding, everyone has it whole.
    pub(crate) fn new(sharding: Option<&Sharding>, dims: &[usize], partitions: usize) -> Self {
        let Some(sharding) = sharding else {
            let starts = vec![vec![0; dims.len()]; partitions];
            return Self { shard: dims.to_vec(), starts, summed: false };
        };
        let shard: Vec<usize> = dims.iter().zip(&sharding.parts).map(|(size, parts)| size / parts).collect();
        let start =
            |position: &Vec<usize>| position.iter().zip(&shard).map(|(index, part)| index * part).collect();
        Self { starts: sharding.position.iter().map(start).collect(), shard, summed: sharding.summed }
    }

    /// The sizes that hosts see a shard to have.
    pub(crate) fn dims(&self) -> &[usize] {
        &self.shard[usize::from(self.summed)..]
    }
}

impl ext::Shardings for crate::client::RefcpuClient {
    fn parameter_shardings(executable: &Self::Executable) -> Option<Vec<ext::Sharding>> {
        shardings(&executable.plan).map(|[parameters, _]| parameters)
    }

    fn output_shardings(executable: &Self::Executable) -> Option<Vec<ext::Sharding>> {
        shardings(&executable.plan).map(|[_, outputs]| outputs)
    }
}

/// How the parameters and the outputs of a program in the global view are split; of others, and where nothing is split, there is
/// nothing to say.
pub(crate) fn shardings(plan: &Plan) -> Option<[Vec<ext::Sharding>; 2]> {
    (plan.global_view && plan.num_partitions > 1).then(|| {
        [
            plan.parameters.iter().map(|parameter| of_array(parameter.sharding.as_ref())).collect(),
            plan.results.iter().map(|result| of_array(result.sharding.as_ref())).collect(),
        ]
    })
}

/// A sharding as XLA describes it: for each tile, the partitions that have it.
pub(crate) fn of_array(sharding: Option<&Sharding>) -> ext::Sharding {
    let Some(Sharding { parts, position, summed }) = sharding else { return ext::Sharding::Replicated };
    let (addends, parts) = if *summed { (parts[0], &parts[1..]) } else { (1, &parts[..]) };
    let tiles: usize = parts.iter().product();
    let copies = position.len() / (tiles * addends);
    let tile = |position: &Vec<usize>| {
        let of_part = &position[usize::from(*summed)..];
        of_part.iter().zip(parts).fold(0, |tile, (index, parts)| tile * parts + index)
    };
    let mut devices: Vec<i64> = (0..position.len() as i64).collect();
    devices.sort_by_key(|partition| tile(&position[*partition as usize]));
    let mut dimensions: Vec<i64> = parts.iter().map(|parts| *parts as i64).collect();
    if copies > 1 {
        dimensions.push(copies as i64);
    }
    if *summed {
        // Those of a tile: copy by copy, of each one all addends.
        let addend = |partition: i64| position[partition as usize][0];
        for of_tile in devices.chunks_mut(copies * addends) {
            of_tile.sort_by_key(|partition| addend(*partition));
            let sorted = of_tile.to_vec();
            for (i, partition) in of_tile.iter_mut().enumerate() {
                *partition = sorted[i % addends * copies + i / addends];
            }
        }
        dimensions.push(addends as i64);
        let replicated = (copies > 1).then_some(ext::Subgroup::Replicated);
        return ext::Sharding::Subgroups {
            tile_assignment_dimensions: dimensions,
            tile_assignment_devices: devices,
            last_tile_dims: replicated.into_iter().chain([ext::Subgroup::Unreduced]).collect(),
        };
    }
    ext::Sharding::Tiled {
        tile_assignment_dimensions: dimensions,
        tile_assignment_devices: devices,
        replicate_on_last_tile_dim: copies > 1,
    }
}

/// A sharding as HLO's text has it.
pub(crate) fn hlo_text(sharding: Option<&Sharding>) -> String {
    let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    match of_array(sharding) {
        ext::Sharding::Tiled {
            tile_assignment_dimensions,
            tile_assignment_devices,
            replicate_on_last_tile_dim,
        } => {
            let copies = if replicate_on_last_tile_dim { " last_tile_dim_replicate" } else { "" };
            format!(
                "{{devices=[{}]{}{copies}}}",
                list(&tile_assignment_dimensions),
                list(&tile_assignment_devices)
            )
        }
        ext::Sharding::Subgroups { tile_assignment_dimensions, tile_assignment_devices, last_tile_dims } => {
            let kinds = if last_tile_dims.len() > 1 { "replicated, unreduced" } else { "unreduced" };
            format!(
                "{{devices=[{}]{} last_tile_dims={{{kinds}}}}}",
                list(&tile_assignment_dimensions),
                list(&tile_assignment_devices)
            )
        }
        _ => "{replicated}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_see_which_partitions_have_a_tile() {
        // Two rows of tiles, each on two of four partitions.
        let position = vec![vec![0, 0], vec![1, 0], vec![0, 0], vec![1, 0]];
        let sharding = Sharding { parts: vec![2, 1], position, summed: false };
        let expected = ext::Sharding::Tiled {
            tile_assignment_dimensions: vec![2, 1, 2],
            tile_assignment_devices: vec![0, 2, 1, 3],
            replicate_on_last_tile_dim: true,
        };
        assert_eq!(of_array(Some(&sharding)), expected);
        assert_eq!(of_array(None), ext::Sharding::Replicated);
        assert_eq!(hlo_text(Some(&sharding)), "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}");
        assert_eq!(hlo_text(None), "{replicated}");
    }

    #[test]
    fn hosts_see_which_partitions_have_addends_of_a_tile() {
        // A mesh of 2 by 2 by 2: the first axis splits, the last has addends, or the second.
        let along = |axis: usize| (0..8).map(|p| vec![p >> (2 - axis) & 1, p >> 2]).collect::<Vec<_>>();
        let text =
            |axis| hlo_text(Some(&Sharding { parts: vec![2, 2], position: along(axis), summed: true }));
        assert_eq!(text(2), "{devices=[2,2,2]0,1,2,3,4,5,6,7 last_tile_dims={replicated, unreduced}}");
        assert_eq!(text(1), "{devices=[2,2,2]0,2,1,3,4,6,5,7 last_tile_dims={replicated, unreduced}}");
    }

    #[test]
    fn shards_begin_where_their_position_says() {
        let sharding = Sharding { parts: vec![2, 1], position: vec![vec![1, 0], vec![0, 0]], summed: false };
        let cut = Cut::new(Some(&sharding), &[8, 3], 2);
        assert_eq!((cut.shard, cut.starts), (vec![4, 3], vec![vec![4, 0], vec![0, 0]]));
    }
}
