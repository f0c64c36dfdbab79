//! How a value of the whole program lies on the devices: what each of them has of it.

use crate::cut::Cut;
use crate::sharding::Sharding;

/// What each partition has of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    /// How each dimension is cut; `None`: it is not.
    pub(crate) dims: Vec<Option<Cut>>,
    /// Where partitions have addends of the array instead of its elements: which of them. Partitions with the same one have
    /// equal arrays.
    pub(crate) addends: Option<Cut>,
}

impl Layout {
    /// An array that every partition has whole.
    pub(crate) fn whole(rank: usize) -> Self {
        Self { dims: vec![None; rank], addends: None }
    }

    /// What a sharding says of an array of this rank; of one that is to be summed, without the dimension that counts addends.
    pub(crate) fn of(sharding: Option<&Sharding>, rank: usize) -> Self {
        let Some(sharding) = sharding else { return Self::whole(rank) };
        let cut = |dim: usize| {
            let of_partition = sharding.position.iter().map(|position| position[dim]).collect();
            (sharding.parts[dim] > 1).then_some(Cut { parts: sharding.parts[dim], of_partition })
        };
        let first = usize::from(sharding.summed);
        let addends = if sharding.summed { cut(0) } else { None };
        Self { dims: (first..sharding.parts.len()).map(cut).collect(), addends }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.addends.is_none() && self.dims.iter().all(Option::is_none)
    }

    /// The sizes of a partition's part of an array of these sizes; `None` where a dimension cannot be cut so.
    pub(crate) fn local_dims(&self, dims: &[usize]) -> Option<Vec<usize>> {
        let one = |(size, cut): (&usize, &Option<Cut>)| match cut {
            Some(cut) => (size.is_multiple_of(cut.parts) && *size > 0).then(|| size / cut.parts),
            None => Some(*size),
        };
        dims.iter().zip(&self.dims).map(one).collect()
    }

    /// Returns the layout without the cuts along which an array of these sizes has no equal parts.
    pub(crate) fn evenly(&self, sizes: &[usize]) -> Self {
        let even = |(size, cut): (&usize, &Option<Cut>)| {
            cut.clone().filter(|cut| *size > 0 && size.is_multiple_of(cut.parts))
        };
        Self { dims: sizes.iter().zip(&self.dims).map(even).collect(), addends: self.addends.clone() }
    }

    /// Returns the sizes of an array of these sizes with the padding that gives it equal parts.
    pub(crate) fn padded(&self, sizes: &[usize]) -> Vec<usize> {
        let padded = |(size, cut): (&usize, &Option<Cut>)| match cut {
            Some(cut) => size.div_ceil(cut.parts) * cut.parts,
            None => *size,
        };
        sizes.iter().zip(&self.dims).map(padded).collect()
    }

    /// Returns the sizes of a part of an array of these sizes, which have such parts.
    pub(crate) fn parts_of(&self, sizes: &[usize]) -> Vec<usize> {
        sizes
            .iter()
            .zip(&self.dims)
            .map(|(size, cut)| size / cut.as_ref().map_or(1, |cut| cut.parts))
            .collect()
    }

    /// The cuts that there are, that into addends last.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = &Cut> {
        self.dims.iter().flatten().chain(&self.addends)
    }

    /// The same as a sharding of the array; `None` where nothing is cut.
    pub(crate) fn sharding(&self, partitions: usize) -> Option<Sharding> {
        let cuts = || self.addends.iter().map(Some).chain(self.dims.iter().map(Option::as_ref));
        let position = |p| cuts().map(|cut| cut.map_or(0, |cut| cut.of_partition[p])).collect();
        (!self.is_whole()).then(|| Sharding {
            parts: cuts().map(|cut| cut.map_or(1, |cut| cut.parts)).collect(),
            position: (0..partitions).map(position).collect(),
            summed: self.addends.is_some(),
        })
    }
}
