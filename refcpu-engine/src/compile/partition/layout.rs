//! How a value of the whole program lies on the devices: what each of them has of it.

use crate::compile::propagate::Cut;
use crate::plan::Sharding;
use std::collections::BTreeMap;

/// What each partition has of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Layout {
    /// How each dimension is cut; `None`: it is not.
    pub(super) dims: Vec<Option<Cut>>,
    /// Where partitions have addends of the array instead of its elements: which of them. Partitions with the same one have
    /// equal arrays.
    pub(super) addends: Option<Cut>,
}

impl Layout {
    /// An array that every partition has whole.
    pub(super) fn whole(rank: usize) -> Self {
        Self { dims: vec![None; rank], addends: None }
    }

    /// What a sharding says of an array of this rank; of one that is to be summed, without the dimension that counts addends.
    pub(super) fn of(sharding: Option<&Sharding>, rank: usize) -> Self {
        let Some(sharding) = sharding else { return Self::whole(rank) };
        let cut = |dim: usize| {
            let of_partition = sharding.position.iter().map(|position| position[dim]).collect();
            (sharding.parts[dim] > 1).then_some(Cut { parts: sharding.parts[dim], of_partition })
        };
        let first = usize::from(sharding.summed);
        let addends = if sharding.summed { cut(0) } else { None };
        Self { dims: (first..sharding.parts.len()).map(cut).collect(), addends }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.addends.is_none() && self.dims.iter().all(Option::is_none)
    }

    /// The sizes of a partition's part of an array of these sizes; `None` where a dimension cannot be cut so.
    pub(super) fn local_dims(&self, dims: &[usize]) -> Option<Vec<usize>> {
        let one = |(size, cut): (&usize, &Option<Cut>)| match cut {
            Some(cut) => (size.is_multiple_of(cut.parts) && *size > 0).then(|| size / cut.parts),
            None => Some(*size),
        };
        dims.iter().zip(&self.dims).map(one).collect()
    }

    /// The cuts that there are, that into addends last.
    pub(super) fn cuts(&self) -> impl Iterator<Item = &Cut> {
        self.dims.iter().flatten().chain(&self.addends)
    }
}

/// True if `fine` cuts every part of `coarse` further.
pub(super) fn refines(fine: &Cut, coarse: &Cut) -> bool {
    fine.parts.is_multiple_of(coarse.parts) && {
        let factor = fine.parts / coarse.parts;
        fine.of_partition.iter().zip(&*coarse.of_partition).all(|(fine, coarse)| fine / factor == *coarse)
    }
}

/// The partitions of a program, and which of them act together.
#[derive(Clone, Debug)]
pub(super) struct Devices {
    /// Which partitions work on the same array: those with equal numbers. In a manual computation these are the ones at one
    /// position of it.
    pub(super) array: Vec<usize>,
    /// Copies of the program.
    pub(super) replicas: usize,
}

impl Devices {
    /// Number of partitions.
    pub(super) fn count(&self) -> usize {
        self.array.len()
    }

    /// Whether arrays can be cut along all of these at once: every tile is on equally many of the partitions that work on the
    /// array, so no axis of a mesh cuts twice.
    pub(super) fn spread_evenly(&self, cuts: &[&Cut]) -> bool {
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

    /// The groups in which there is one partition for each part of `along`, in the order of the parts; the members of a group
    /// have the same parts of all of `equal`. The cuts are spread evenly.
    pub(super) fn groups(&self, along: &Cut, equal: &[&Cut]) -> Vec<Vec<usize>> {
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

    /// Who sends to whom so that partitions that have tiles as `from` says have them as `to` says; `None` if that is no
    /// exchange of whole parts. Pairs of a partition with itself are among them.
    pub(super) fn exchange(&self, from: &Layout, to: &Layout) -> Option<Vec<(usize, usize)>> {
        let tile = |layout: &Layout, p: usize| -> (usize, Vec<usize>) {
            (self.array[p], layout.cuts().map(|cut| cut.of_partition[p]).collect())
        };
        let parts =
            |layout: &Layout| layout.dims.iter().map(|cut| cut.as_ref().map(|cut| cut.parts)).collect();
        let (from_parts, to_parts): (Vec<_>, Vec<_>) = (parts(from), parts(to));
        if from_parts != to_parts || from.addends != to.addends {
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

    /// Groups of partitions as those of devices, over all replicas.
    pub(super) fn of_devices(&self, groups: &[Vec<usize>]) -> Vec<Vec<usize>> {
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
        let along = |cut| Layout { dims: vec![Some(cut)], addends: None };
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
