//! Derives a mesh from splits of arrays.

use crate::cut::Cut;
use pjrt_stablehlo::ir::{
    AxisRef, DimensionSharding, Mesh, MeshAxis, MeshReference, Reduction, Str, TensorSharding,
};
use std::collections::BTreeSet;

/// The axes of a mesh of partitions, the major one first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Axes(Vec<Axis>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    /// The distance in partition numbers from one coordinate to the next.
    stride: usize,
}

impl Axes {
    /// Returns the coarsest axes such that each split is along whole axes; `None` if no such axes exist.
    pub(crate) fn of(cuts: &[&Cut], partitions: usize) -> Option<Self> {
        let mut strides = BTreeSet::from([1, partitions]);
        for cut in cuts {
            let part = |p: usize| cut.of_partition[p] as i64;
            let mut stride = 1;
            while stride < partitions {
                let step = part(stride) - part(0);
                let steady = |size: &usize| (0..*size).all(|i| part(i * stride) == part(0) + i as i64 * step);
                let all = partitions / stride;
                let size = (2..=all).rev().filter(|size| all.is_multiple_of(*size)).find(steady)?;
                stride *= size;
                strides.insert(stride);
            }
        }
        let strides: Vec<usize> = strides.into_iter().collect();
        let axis = |pair: &[usize]| Axis { size: pair[1] / pair[0], stride: pair[0] };
        let axes = Self(strides.windows(2).rev().map(axis).collect());
        let nested = strides.windows(2).all(|pair| pair[1].is_multiple_of(pair[0]));
        (nested && cuts.iter().all(|cut| axes.along(cut).is_some())).then_some(axes)
    }

    /// Returns the axes that a split is along, the major one first; `None` if it is along no whole axes.
    fn along(&self, cut: &Cut) -> Option<Vec<usize>> {
        let weight = |axis: &Axis| cut.of_partition[axis.stride].checked_sub(cut.of_partition[0]);
        let mut along = vec![];
        for (i, axis) in self.0.iter().enumerate() {
            let weight = weight(axis)?;
            if weight > 0 {
                along.push((weight, i));
            }
        }
        along.sort_unstable();
        along.reverse();
        let along: Vec<usize> = along.into_iter().map(|(_, i)| i).collect();
        let part = |p: usize| {
            along.iter().fold(0, |part, i| part * self.0[*i].size + p / self.0[*i].stride % self.0[*i].size)
        };
        let parts: usize = along.iter().map(|i| self.0[*i].size).product();
        let fits = (0..cut.of_partition.len()).all(|p| cut.of_partition[p] == part(p));
        (fits && parts == cut.parts).then_some(along)
    }

    fn name(axis: usize) -> Str {
        format!("axis_{axis}").as_str().into()
    }

    /// Returns the names of all axes.
    pub(crate) fn names(&self) -> Box<[Str]> {
        (0..self.0.len()).map(Self::name).collect()
    }

    /// Returns the names of the axes that a split is along; `None` if it is along no whole axes.
    pub(crate) fn names_along(&self, cut: &Cut) -> Option<Box<[Str]>> {
        Some(self.along(cut)?.into_iter().map(Self::name).collect())
    }

    /// Returns the sharding of an array with these splits; `None` if one of them is not along whole axes.
    pub(crate) fn sharding(&self, cuts: &[Option<Cut>]) -> Option<TensorSharding> {
        let dim = |cut: &Option<Cut>| {
            let along = cut.as_ref().map_or(Some(vec![]), |cut| self.along(cut))?;
            let axis = |axis| AxisRef { name: Self::name(axis), sub_axis: None };
            Some(DimensionSharding {
                axes: along.into_iter().map(axis).collect(),
                is_closed: true,
                priority: None,
            })
        };
        let axis = |(i, axis): (usize, &Axis)| MeshAxis { name: Self::name(i), size: axis.size as i64 };
        Some(TensorSharding {
            mesh: MeshReference::Mesh(Mesh {
                axes: self.0.iter().enumerate().map(axis).collect(),
                device_ids: Box::default(),
            }),
            dim_shardings: cuts.iter().map(dim).collect::<Option<_>>()?,
            replicated_axes: Box::default(),
            unreduced_axes: Box::default(),
            reduction: Reduction::Sum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(of_partition: &[usize]) -> Cut {
        let parts = of_partition.iter().max().map_or(1, |last| last + 1);
        Cut { parts, of_partition: of_partition.into() }
    }

    /// Returns the sizes of the axes, and the axes of each split.
    fn axes(cuts: &[Cut], partitions: usize) -> Option<(Vec<usize>, Vec<Vec<usize>>)> {
        let axes = Axes::of(&cuts.iter().collect::<Vec<_>>(), partitions)?;
        let along = cuts.iter().map(|cut| axes.along(cut).unwrap()).collect();
        Some((axes.0.iter().map(|axis| axis.size).collect(), along))
    }

    #[test]
    fn cuts_along_one_mesh_are_found_to_be_so() {
        assert_eq!(axes(&[], 8), Some((vec![8], vec![])));
        assert_eq!(axes(&[], 1), Some((vec![], vec![])));
        // A mesh of 4 by 2, with splits along the first axis, the second, and both in either order.
        let (x, y) = ([0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 0, 1, 0, 1]);
        let (xy, yx) = ([0, 1, 2, 3, 4, 5, 6, 7], [0, 4, 1, 5, 2, 6, 3, 7]);
        let found = axes(&[cut(&x), cut(&y), cut(&xy), cut(&yx)], 8);
        assert_eq!(found, Some((vec![4, 2], vec![vec![0], vec![1], vec![0, 1], vec![1, 0]])));
        // A split along the major half of the first axis divides that axis in two.
        let found = axes(&[cut(&x), cut(&[0, 0, 0, 0, 1, 1, 1, 1])], 8);
        assert_eq!(found, Some((vec![2, 2, 2], vec![vec![0, 1], vec![0]])));
        assert_eq!(axes(&[cut(&[0, 0, 1, 1, 2, 2])], 6), Some((vec![3, 2], vec![vec![0]])));
    }

    #[test]
    fn cuts_that_are_along_no_mesh_are_refused() {
        assert_eq!(axes(&[cut(&[1, 0])], 2), None);
        assert_eq!(axes(&[cut(&[0, 1, 1, 0])], 4), None);
        assert_eq!(axes(&[cut(&[0, 0, 1, 1, 2, 2]), cut(&[0, 0, 0, 1, 1, 1])], 6), None);
        assert_eq!(axes(&[cut(&[0, 1, 0])], 3), None);
    }
}
