//! The distribution of a value over the partitions.

use crate::cut::{Cut, coarse};
use crate::rule::common_divisor;
use crate::sharding::Sharding;

/// The distribution of an array over the partitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    /// The split of each dimension; `None` if the dimension is not split.
    pub(crate) dims: Vec<Option<Cut>>,
    /// The split into partial sums, if each partition holds a term of the array's sum instead of its elements: the index of the
    /// term. Partitions with the same index hold equal arrays.
    pub(crate) addends: Option<Cut>,
}

impl Layout {
    /// Returns the layout of an array that every partition holds whole.
    pub(crate) fn whole(rank: usize) -> Self {
        Self { dims: vec![None; rank], addends: None }
    }

    /// Returns the layout that a sharding describes for an array of this rank, which does not count the dimension of partial
    /// sums.
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

    /// Returns the dimensions of one partition's part of an array of these dimensions; `None` if a dimension cannot be split
    /// evenly.
    pub(crate) fn local_dims(&self, dims: &[usize]) -> Option<Vec<usize>> {
        let one = |(size, cut): (&usize, &Option<Cut>)| match cut {
            Some(cut) => (size.is_multiple_of(cut.parts) && *size > 0).then(|| size / cut.parts),
            None => Some(*size),
        };
        dims.iter().zip(&self.dims).map(one).collect()
    }

    /// Returns the layout without the splits along which an array of these dimensions has no equal parts.
    pub(crate) fn evenly(&self, dims: &[usize]) -> Self {
        let even = |(size, cut): (&usize, &Option<Cut>)| {
            cut.clone().filter(|cut| *size > 0 && size.is_multiple_of(cut.parts))
        };
        Self { dims: dims.iter().zip(&self.dims).map(even).collect(), addends: self.addends.clone() }
    }

    /// Returns the finest layout with equal parts whose parts consist of whole parts of this one.
    pub(crate) fn equal_parts(&self, dims: &[usize]) -> Self {
        let equal = |(size, cut): (&usize, &Option<Cut>)| {
            let cut = cut.as_ref().filter(|_| *size > 0)?;
            coarse(cut, common_divisor(*size, cut.parts))
        };
        Self { dims: dims.iter().zip(&self.dims).map(equal).collect(), addends: self.addends.clone() }
    }

    /// Returns the dimensions of an array with the padding that makes its parts equal.
    pub(crate) fn padded(&self, dims: &[usize]) -> Vec<usize> {
        let padded = |(size, cut): (&usize, &Option<Cut>)| match cut {
            Some(cut) => size.div_ceil(cut.parts) * cut.parts,
            None => *size,
        };
        dims.iter().zip(&self.dims).map(padded).collect()
    }

    /// Returns the dimensions of a part of an array of these dimensions, which has equal parts.
    pub(crate) fn parts_of(&self, dims: &[usize]) -> Vec<usize> {
        let part = |(size, cut): (&usize, &Option<Cut>)| size / cut.as_ref().map_or(1, |cut| cut.parts);
        dims.iter().zip(&self.dims).map(part).collect()
    }

    /// Returns the splits of the dimensions, then that into partial sums.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = &Cut> {
        self.dims.iter().flatten().chain(&self.addends)
    }

    /// Converts this layout to a sharding; `None` if every partition holds the whole array.
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
