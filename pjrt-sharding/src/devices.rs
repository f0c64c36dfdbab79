//! The partitions of a program.

use crate::cut::Cut;
use crate::layout::Layout;
use std::collections::BTreeMap;

/// The partitions of a program, and the groups in which they communicate.
#[derive(Clone, Debug)]
pub(crate) struct Devices {
    /// For each partition, the number of the array that it works on. Partitions with equal numbers share an array. In a manual
    /// computation, these are the partitions at the same position along its manual axes.
    pub(crate) array: Vec<usize>,
    /// The number of replicas of the program.
    pub(crate) replicas: usize,
}

impl Devices {
    /// Returns the number of partitions.
    pub(crate) fn count(&self) -> usize {
        self.array.len()
    }

    /// Returns the partitions that share an array, for each array.
    pub(crate) fn sharing(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = vec![];
        for (partition, array) in self.array.iter().enumerate() {
            match groups.iter_mut().find(|group| self.array[group[0]] == *array) {
                Some(group) => group.push(partition),
                None => groups.push(vec![partition]),
            }
        }
        groups
    }

    /// Returns whether arrays can be split along all of these at once: every tile must be on the same number of the partitions
    /// that share the array. This excludes splitting twice along one axis of a mesh.
    pub(crate) fn spread_evenly(&self, cuts: &[&Cut]) -> bool {
        let tiles = cuts.iter().try_fold(1usize, |tiles, cut| tiles.checked_mul(cut.parts));
        let Some(tiles) = tiles else { return false };
        let mut arrays: BTreeMap<usize, usize> = BTreeMap::new();
        let mut holders: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        for (partition, array) in self.array.iter().enumerate() {
            let tile = cuts.iter().fold(0, |tile, cut| tile * cut.parts + cut.of_partition[partition]);
            *arrays.entry(*array).or_default() += 1;
            *holders.entry((*array, tile)).or_default() += 1;
        }
        arrays.values().all(|partitions| partitions.is_multiple_of(tiles))
            && holders.iter().all(|((array, _), holders)| *holders == arrays[array] / tiles)
    }

    /// Returns groups that contain one partition for each part of `along`, in the order of the parts. The members of a group
    /// hold the same part of each of `equal`. The splits must be distributed evenly.
    pub(crate) fn groups(&self, along: &Cut, equal: &[&Cut]) -> Vec<Vec<usize>> {
        let mut classes: BTreeMap<(usize, Vec<usize>), Vec<Vec<usize>>> = BTreeMap::new();
        for (partition, array) in self.array.iter().enumerate() {
            let key = equal.iter().map(|cut| cut.of_partition[partition]).collect();
            let parts = classes.entry((*array, key)).or_insert_with(|| vec![vec![]; along.parts]);
            parts[along.of_partition[partition]].push(partition);
        }
        let of_class = |parts: &Vec<Vec<usize>>| {
            let copies = parts.iter().map(Vec::len).min().unwrap_or(0);
            (0..copies).map(|copy| parts.iter().map(|part| part[copy]).collect()).collect::<Vec<_>>()
        };
        classes.values().flat_map(of_class).collect()
    }

    /// Returns the pairs of source and target by which tiles in the layout `from` become tiles in the layout `to`; `None` if
    /// that is not an exchange of whole tiles. The pairs include those of a partition with itself.
    pub(crate) fn exchange(&self, from: &Layout, to: &Layout) -> Option<Vec<(usize, usize)>> {
        let tile = |layout: &Layout, p: usize| -> (usize, Vec<usize>) {
            (self.array[p], layout.cuts().map(|cut| cut.of_partition[p]).collect())
        };
        let parts =
            |layout: &Layout| layout.dims.iter().map(|cut| cut.as_ref().map(|cut| cut.parts)).collect();
        let (from_parts, to_parts): (Vec<_>, Vec<_>) = (parts(from), parts(to));
        if from_parts != to_parts || from.partial != to.partial {
            return None;
        }
        let mut holders: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        let mut wanted = Vec::new();
        for p in 0..self.count() {
            if tile(from, p) == tile(to, p) {
                wanted.push((p, p));
            } else {
                holders.entry(tile(from, p)).or_default().push(p);
            }
        }
        for p in 0..self.count() {
            if tile(from, p) != tile(to, p) {
                wanted.push((holders.get_mut(&tile(to, p))?.pop()?, p));
            }
        }
        wanted.sort_unstable();
        Some(wanted)
    }

    /// Converts groups of partitions to groups of global device ids, over all replicas.
    pub(crate) fn of_devices(&self, groups: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let of_replica = |replica: usize| {
            let device = move |partition: &usize| replica * self.count() + partition;
            groups.iter().map(move |group| group.iter().map(device).collect())
        };
        (0..self.replicas).flat_map(of_replica).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(of_partition: &[usize]) -> Cut {
        Cut { parts: of_partition.iter().max().unwrap() + 1, of_partition: of_partition.into() }
    }

    fn devices() -> Devices {
        Devices { array: vec![0; 4], replicas: 1 }
    }

    #[test]
    fn groups_have_one_partition_of_each_part_in_order() {
        let (x, y) = (cut(&[0, 0, 1, 1]), cut(&[0, 1, 0, 1]));
        assert_eq!(devices().groups(&y, &[&x]), [[0, 1], [2, 3]]);
        assert_eq!(devices().groups(&x, &[]), [[0, 2], [1, 3]]);
        assert_eq!(devices().groups(&cut(&[3, 2, 1, 0]), &[]), [[3, 2, 1, 0]]);
        let apart = Devices { array: vec![0, 1, 0, 1], replicas: 1 };
        assert_eq!(apart.groups(&x, &[]), [[0, 2], [1, 3]]);
    }

    #[test]
    fn an_axis_cuts_once() {
        let (x, y) = (cut(&[0, 0, 1, 1]), cut(&[0, 1, 0, 1]));
        assert!(devices().spread_evenly(&[&x, &y]));
        assert!(!devices().spread_evenly(&[&x, &x]));
        let apart = Devices { array: vec![0, 0, 1, 1], replicas: 1 };
        assert!(apart.spread_evenly(&[&y]) && !apart.spread_evenly(&[&x]));
    }

    #[test]
    fn an_exchange_sends_every_part_to_who_wants_it_once() {
        let along = |cut| Layout { dims: vec![Some(cut)], partial: None };
        let pairs = devices().exchange(&along(cut(&[0, 1, 2, 3])), &along(cut(&[3, 1, 0, 2]))).unwrap();
        assert_eq!(pairs, [(0, 2), (1, 1), (2, 3), (3, 0)]);
        let pairs = devices().exchange(&along(cut(&[0, 0, 1, 1])), &along(cut(&[0, 1, 0, 1]))).unwrap();
        assert_eq!(pairs.iter().map(|(_, to)| *to).collect::<std::collections::BTreeSet<_>>().len(), 4);
    }

    #[test]
    fn groups_of_devices_are_those_of_every_replica() {
        let two = Devices { array: vec![0; 2], replicas: 2 };
        assert_eq!(two.of_devices(&[vec![1, 0]]), [[1, 0], [3, 2]]);
    }
}
