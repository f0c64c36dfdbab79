//! Where shards are in the whole arrays of a partitioned program.
//!
//! A partitioned program runs once, on whole arrays: all devices share the machine's memory. What a host hands over
//! and gets back are shards, one on each device.

use crate::plan::{Plan, Sharding};
use pjrt_plugin::ext;

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

impl ext::Shardings for super::client::RefcpuClient {
    fn parameter_shardings(executable: &Self::Executable) -> Option<Vec<ext::Sharding>> {
        let plan = &executable.plan;
        of_all(plan, plan.parameters.iter().map(|parameter| parameter.sharding.as_ref()))
    }

    fn output_shardings(executable: &Self::Executable) -> Option<Vec<ext::Sharding>> {
        let plan = &executable.plan;
        of_all(plan, plan.results.iter().map(|result| result.sharding.as_ref()))
    }
}

/// How the arrays of a program in the global view are split; of others, and where nothing is split, there is nothing to say.
fn of_all<'p>(
    plan: &Plan,
    shardings: impl Iterator<Item = Option<&'p Sharding>>,
) -> Option<Vec<ext::Sharding>> {
    (plan.global_view && plan.num_partitions > 1).then(|| shardings.map(of_array).collect())
}

/// A sharding as XLA describes it: for each tile, the partitions that have it.
fn of_array(sharding: Option<&Sharding>) -> ext::Sharding {
    let Some(Sharding { parts, position }) = sharding else { return ext::Sharding::Replicated };
    let tiles: usize = parts.iter().product();
    let copies = position.len() / tiles;
    let tile = |position: &Vec<usize>| {
        position.iter().zip(parts).fold(0, |tile, (index, parts)| tile * parts + index)
    };
    let mut devices: Vec<i64> = (0..position.len() as i64).collect();
    devices.sort_by_key(|partition| tile(&position[*partition as usize]));
    let mut dimensions: Vec<i64> = parts.iter().map(|parts| *parts as i64).collect();
    if copies > 1 {
        dimensions.push(copies as i64);
    }
    ext::Sharding::Tiled {
        tile_assignment_dimensions: dimensions,
        tile_assignment_devices: devices,
        replicate_on_last_tile_dim: copies > 1,
    }
}

/// A sharding as HLO's text has it.
pub(super) fn hlo_text(sharding: Option<&Sharding>) -> String {
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
        let sharding = Sharding { parts: vec![2, 1], position };
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
    fn shards_begin_where_their_position_says() {
        let sharding = Sharding { parts: vec![2, 1], position: vec![vec![1, 0], vec![0, 0]] };
        let cut = Cut::new(Some(&sharding), &[8, 3], 2);
        assert_eq!((cut.shard, cut.starts), (vec![4, 3], vec![vec![4, 0], vec![0, 0]]));
    }
}
