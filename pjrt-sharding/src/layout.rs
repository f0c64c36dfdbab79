//! The distribution of a value over the partitions.

use crate::cut::{Cut, coarse, has_same_parts, remainder};
use crate::rule::common_divisor;
use crate::sharding::Sharding;
use pjrt_stablehlo::ir::Reduction;

/// The distribution of an array over the partitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    /// The split of each dimension; `None` if the dimension is not split.
    pub(crate) dims: Vec<Option<Cut>>,
    /// The partial results whose reduction is the array, if each partition holds one of them instead of the array's elements.
    pub(crate) partial: Option<Partial>,
}

/// Partial results, whose reduction is an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Partial {
    /// The number of partial results, and the index of the one that each partition holds. Partitions with the same index hold
    /// equal arrays. The order of the indices has no meaning.
    pub(crate) terms: Cut,
    pub(crate) reduction: Reduction,
}

impl Partial {
    /// Returns whether arrays in both forms can be combined without a reduction.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.reduction == other.reduction && has_same_parts(&self.terms, &other.terms)
    }
}

/// The reduction of partial results, or of some of them, that a move to another layout requires.
pub(crate) struct ReduceStep {
    /// The split along which partial results are combined. It has a single part if only the indices of the partial results change.
    pub(crate) along: Cut,
    pub(crate) reduction: Reduction,
    /// The partial results that are left.
    pub(crate) left: Option<Partial>,
    /// The dimension along which each partition needs only its part of the result, if that part is the one with its index in
    /// `along`.
    pub(crate) scatter: Option<usize>,
}

impl Layout {
    /// Returns the layout of an array that every partition holds whole.
    pub(crate) fn whole(rank: usize) -> Self {
        Self { dims: vec![None; rank], partial: None }
    }

    /// Returns the layout that a sharding describes for an array of this rank, which does not count the dimension of partial
    /// results.
    pub(crate) fn of(sharding: Option<&Sharding>, rank: usize) -> Self {
        let Some(sharding) = sharding else { return Self::whole(rank) };
        let cut = |dim: usize| {
            let of_partition = sharding.position.iter().map(|position| position[dim]).collect();
            (sharding.parts[dim] > 1).then_some(Cut { parts: sharding.parts[dim], of_partition })
        };
        let first = usize::from(sharding.reduction.is_some());
        let partial = sharding.reduction.and_then(|reduction| Some(Partial { terms: cut(0)?, reduction }));
        Self { dims: (first..sharding.parts.len()).map(cut).collect(), partial }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.partial.is_none() && self.dims.iter().all(Option::is_none)
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
        Self { dims: dims.iter().zip(&self.dims).map(even).collect(), partial: self.partial.clone() }
    }

    /// Returns the finest layout with equal parts whose parts consist of whole parts of this one.
    pub(crate) fn equal_parts(&self, dims: &[usize]) -> Self {
        let equal = |(size, cut): (&usize, &Option<Cut>)| {
            let cut = cut.as_ref().filter(|_| *size > 0)?;
            coarse(cut, common_divisor(*size, cut.parts))
        };
        Self { dims: dims.iter().zip(&self.dims).map(equal).collect(), partial: self.partial.clone() }
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

    /// Returns the splits of the dimensions, then that into partial results.
    pub(crate) fn cuts(&self) -> impl Iterator<Item = &Cut> {
        self.dims.iter().flatten().chain(self.terms())
    }

    fn terms(&self) -> Option<&Cut> {
        self.partial.as_ref().map(|partial| &partial.terms)
    }

    /// Returns the reduction that a move to the layout `to` requires; `None` if it requires none.
    pub(crate) fn reduce_step(&self, to: &Self) -> Option<ReduceStep> {
        let partial = self.partial.as_ref().filter(|partial| to.partial.as_ref() != Some(partial))?;
        let left = to.partial.as_ref().filter(|left| left.reduction == partial.reduction);
        let kept = left.and_then(|left| Some((remainder(&partial.terms, &left.terms)?, left.clone())));
        let (mut along, left) = match kept {
            Some((along, left)) => (along, Some(left)),
            None => (partial.terms.clone(), None),
        };
        let part_of = |dim: &usize| to.dims[*dim].as_ref().filter(|cut| has_same_parts(cut, &along));
        let scatter = (0..self.dims.len()).find(|dim| self.dims[*dim].is_none() && part_of(dim).is_some());
        if let Some(cut) = scatter.and_then(|dim| part_of(&dim)) {
            along = cut.clone();
        }
        Some(ReduceStep { along, reduction: partial.reduction, left, scatter })
    }

    /// Converts this layout to a sharding; `None` if every partition holds the whole array.
    pub(crate) fn sharding(&self, partitions: usize) -> Option<Sharding> {
        let cuts = || self.terms().into_iter().map(Some).chain(self.dims.iter().map(Option::as_ref));
        let position = |p| cuts().map(|cut| cut.map_or(0, |cut| cut.of_partition[p])).collect();
        (!self.is_whole()).then(|| Sharding {
            parts: cuts().map(|cut| cut.map_or(1, |cut| cut.parts)).collect(),
            position: (0..partitions).map(position).collect(),
            reduction: self.partial.as_ref().map(|partial| partial.reduction),
        })
    }
}
