//! Derives a mesh from splits of arrays.

use crate::cut::Cut;
use pjrt_stablehlo::ir::{
    AxisRef, DimensionSharding, Mesh, MeshAxis, MeshReference, Reduction, Str, TensorSharding,
};
use std::collections::BTreeSet;

/// The axes of a mesh of partitions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Axes {
    /// The axes, the major one first.
    axes: Vec<Axis>,
    /// The partition at each position of the mesh.
    order: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    size: usize,
    /// The distance in positions from one coordinate to the next.
    stride: usize,
}

impl Axes {
    /// Returns the coarsest axes such that each split is along whole axes, and that the partitions in each part of `groups` are
    /// those with the same coordinates along some axes; `None` if no such axes exist. The numbers of the parts of `groups` have
    /// no meaning. The partitions are in order if possible.
    pub(crate) fn of(cuts: &[&Cut], groups: &[&Cut], partitions: usize) -> Option<Self> {
        let in_order = Self::of_order(cuts, groups, (0..partitions).collect());
        in_order.or_else(|| {
            // If the splits are along axes of a mesh, their parts ascend in the order of its positions, except for the order of
            // its axes.
            let mut order: Vec<usize> = (0..partitions).collect();
            let parts =
                |p: &usize| cuts.iter().chain(groups).map(|cut| cut.of_partition[*p]).collect::<Vec<_>>();
            order.sort_by_cached_key(parts);
            Self::of_order(cuts, groups, order)
        })
    }

    /// Returns the axes of a mesh with the partitions in this order.
    fn of_order(cuts: &[&Cut], groups: &[&Cut], order: Vec<usize>) -> Option<Self> {
        let mut axes = Self { axes: vec![], order };
        let partitions = axes.order.len();
        let cuts: Vec<Cut> = cuts.iter().map(|cut| axes.by_position(cut)).collect();
        let groups = groups.iter().map(|groups| axes.by_position(groups).renumbered());
        let cuts: Vec<Cut> = cuts.into_iter().chain(groups).collect();
        let mut strides = BTreeSet::from([1, partitions]);
        for cut in &cuts {
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
        axes.axes = strides.windows(2).rev().map(axis).collect();
        let nested = strides.windows(2).all(|pair| pair[1].is_multiple_of(pair[0]));
        (nested && cuts.iter().all(|cut| axes.along(cut).is_some())).then_some(axes)
    }

    /// Returns a split by the position of the partitions in the mesh.
    fn by_position(&self, cut: &Cut) -> Cut {
        Cut { parts: cut.parts, of_partition: self.order.iter().map(|p| cut.of_partition[*p]).collect() }
    }

    /// Returns the axes that a split of positions is along, the major one first; `None` if it is along no whole axes.
    fn along(&self, cut: &Cut) -> Option<Vec<usize>> {
        let weight = |axis: &Axis| cut.of_partition[axis.stride].checked_sub(cut.of_partition[0]);
        let mut along = vec![];
        for (i, axis) in self.axes.iter().enumerate() {
            let weight = weight(axis)?;
            if weight > 0 {
                along.push((weight, i));
            }
        }
        along.sort_unstable();
        along.reverse();
        let along: Vec<usize> = along.into_iter().map(|(_, i)| i).collect();
        let coordinate = |p: usize, i: usize| p / self.axes[i].stride % self.axes[i].size;
        let part = |p: usize| along.iter().fold(0, |part, i| part * self.axes[*i].size + coordinate(p, *i));
        let parts: usize = along.iter().map(|i| self.axes[*i].size).product();
        let fits = (0..cut.of_partition.len()).all(|p| cut.of_partition[p] == part(p));
        (fits && parts == cut.parts).then_some(along)
    }

    fn name(axis: usize) -> Str {
        format!("axis_{axis}").as_str().into()
    }

    /// Returns the names of all axes.
    pub(crate) fn names(&self) -> Box<[Str]> {
        (0..self.axes.len()).map(Self::name).collect()
    }

    /// Returns the names of the axes along which the partitions in different parts differ; `None` if there are no such axes. The
    /// numbers of the parts have no meaning.
    pub(crate) fn names_of_groups(&self, groups: &Cut) -> Option<Box<[Str]>> {
        let along = self.along(&self.by_position(groups).renumbered())?;
        Some(along.into_iter().map(Self::name).collect())
    }

    /// Returns the sharding of an array with these splits; `None` if one of them is not along whole axes.
    pub(crate) fn sharding(&self, cuts: &[Option<Cut>]) -> Option<TensorSharding> {
        let dim = |cut: &Option<Cut>| {
            let along = cut.as_ref().map_or(Some(vec![]), |cut| self.along(&self.by_position(cut)))?;
            let axis = |axis| AxisRef { name: Self::name(axis), sub_axis: None };
            Some(DimensionSharding {
                axes: along.into_iter().map(axis).collect(),
                is_closed: true,
                priority: None,
            })
        };
        let axis = |(i, axis): (usize, &Axis)| MeshAxis { name: Self::name(i), size: axis.size as i64 };
        let is_in_order = self.order.iter().copied().eq(0..self.order.len());
        let device_ids = self.order.iter().map(|id| *id as i64).filter(|_| !is_in_order).collect();
        Some(TensorSharding {
            mesh: MeshReference::Mesh(Mesh {
                axes: self.axes.iter().enumerate().map(axis).collect(),
                device_ids,
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

    fn mesh(cuts: &[Cut], groups: &[Cut], partitions: usize) -> Option<Axes> {
        Axes::of(&cuts.iter().collect::<Vec<_>>(), &groups.iter().collect::<Vec<_>>(), partitions)
    }

    /// Returns the sizes of the axes, and the axes of each split.
    fn axes(cuts: &[Cut], partitions: usize) -> Option<(Vec<usize>, Vec<Vec<usize>>)> {
        let axes = mesh(cuts, &[], partitions)?;
        let along = cuts.iter().map(|cut| axes.along(&axes.by_position(cut)).unwrap()).collect();
        Some((axes.axes.iter().map(|axis| axis.size).collect(), along))
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
    fn partitions_can_be_in_another_order() {
        assert_eq!(mesh(&[cut(&[1, 0])], &[], 2).unwrap().order, [1, 0]);
        // A mesh of 2 by 3 by 2, in a random order.
        let order = [7, 2, 9, 4, 0, 11, 5, 1, 10, 3, 8, 6];
        let along = |part: fn(usize) -> usize| {
            let position = |p: usize| order.iter().position(|other| *other == p).unwrap();
            cut(&(0..12).map(|p| part(position(p))).collect::<Vec<_>>())
        };
        let (x, yx, z) = (along(|i| i / 6), along(|i| i / 2 % 3 * 2 + i / 6), along(|i| i % 2));
        let found = axes(&[x.clone(), yx.clone()], 12);
        assert_eq!(found, Some((vec![2, 3, 2], vec![vec![0], vec![1, 0]])));
        assert_eq!(axes(&[yx, z.clone()], 12), Some((vec![6, 2], vec![vec![0], vec![1]])));
        // The groups along the second axis.
        let groups = along(|i| [1, 2, 0][i / 2 % 3]);
        let axes = mesh(&[x, z], std::slice::from_ref(&groups), 12).unwrap();
        let names = axes.names_of_groups(&groups).unwrap();
        assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["axis_2"]);
    }

    #[test]
    fn cuts_that_are_along_no_mesh_are_refused() {
        assert_eq!(axes(&[cut(&[0, 1, 2, 3]), cut(&[3, 2, 1, 0])], 4), None);
        assert_eq!(axes(&[cut(&[0, 1, 1, 1])], 4), None);
        assert_eq!(axes(&[cut(&[0, 0, 1, 1, 2, 2]), cut(&[0, 0, 0, 1, 1, 1])], 6), None);
        assert_eq!(axes(&[cut(&[0, 1, 0])], 3), None);
    }
}
