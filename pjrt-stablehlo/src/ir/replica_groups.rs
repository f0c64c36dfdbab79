//! Replica groups of collectives: given as a list, or derived from the axes of a mesh.

use std::collections::HashMap;

use super::{AxisRef, Mesh, MeshReference, Module, Op, ReplicaGroupMeshAxes, ReplicaGroups};
use crate::limits::MAX_ATTRIBUTE_ELEMENTS;
use crate::{Error, ErrorKind};

impl ReplicaGroups {
    /// Returns the ids in each group, without padding, for either representation. An empty list of groups means
    /// one group of all processes.
    ///
    /// # Errors
    /// Returns an error if the mesh is not declared in the module or lacks one of the axes, which
    /// [`parse`](crate::parse) checks, or if the mesh has more than [`MAX_ATTRIBUTE_ELEMENTS`] positions.
    pub fn groups(&self, module: &Module) -> Result<Vec<Vec<i64>>, Error> {
        match self {
            ReplicaGroups::Dense { group_size, ids } => Ok(ids
                .chunks((*group_size).max(1))
                .map(|group| group.iter().copied().filter(|&id| id >= 0).collect())
                .collect()),
            ReplicaGroups::MeshAxes(groups) => {
                let (mesh, split) = groups.split(module)?;
                split.groups(mesh)
            }
        }
    }

    /// Returns the same groups as [`ReplicaGroups::Dense`].
    ///
    /// # Errors
    /// Returns the errors of [`groups`](Self::groups).
    pub fn listed(&self, module: &Module) -> Result<ReplicaGroups, Error> {
        match self {
            ReplicaGroups::Dense { .. } => Ok(self.clone()),
            ReplicaGroups::MeshAxes(_) => {
                let groups = self.groups(module)?;
                let group_size = groups.first().map_or(0, Vec::len);
                Ok(ReplicaGroups::Dense { group_size, ids: groups.concat().into() })
            }
        }
    }

    /// Returns the number of groups and the size of the largest group, which are the dimensions of the matrix of
    /// [`ReplicaGroups::Dense`]. Groups along mesh axes are not enumerated.
    ///
    /// # Errors
    /// Returns an error if the mesh is not declared in the module or lacks one of the axes, which
    /// [`parse`](crate::parse) checks.
    pub fn dims(&self, module: &Module) -> Result<[i64; 2], Error> {
        match self {
            ReplicaGroups::Dense { group_size, ids } => {
                let rows = ids.len().div_ceil((*group_size).max(1));
                Ok([rows as i64, *group_size as i64])
            }
            ReplicaGroups::MeshAxes(groups) => {
                let (_, split) = groups.split(module)?;
                Ok([count(&split.across), count(&split.along)])
            }
        }
    }
}

impl Op {
    /// Returns the replica groups of a collective operation; `None` for operations without replica groups.
    pub fn replica_groups(&self) -> Option<&ReplicaGroups> {
        Some(match self {
            Op::AllGather(op) => &op.replica_groups,
            Op::AllReduce(op) => &op.replica_groups,
            Op::AllToAll(op) => &op.replica_groups,
            Op::CollectiveBroadcast(op) => &op.replica_groups,
            Op::CollectiveReduce(op) => &op.replica_groups,
            Op::CrossReplicaSum(op) => &op.replica_groups,
            Op::ReduceScatter(op) => &op.replica_groups,
            _ => return None,
        })
    }

    /// Returns the replica groups of a collective operation, for modification; `None` for operations without replica
    /// groups.
    pub fn replica_groups_mut(&mut self) -> Option<&mut ReplicaGroups> {
        Some(match self {
            Op::AllGather(op) => &mut op.replica_groups,
            Op::AllReduce(op) => &mut op.replica_groups,
            Op::AllToAll(op) => &mut op.replica_groups,
            Op::CollectiveBroadcast(op) => &mut op.replica_groups,
            Op::CollectiveReduce(op) => &mut op.replica_groups,
            Op::CrossReplicaSum(op) => &mut op.replica_groups,
            Op::ReduceScatter(op) => &mut op.replica_groups,
            _ => return None,
        })
    }
}

impl ReplicaGroupMeshAxes {
    /// Returns the mesh, and its positions split into groups.
    fn split<'a>(&'a self, module: &'a Module) -> Result<(&'a Mesh, Split), Error> {
        let invalid = |problem: String| Error::new(ErrorKind::Invalid, format!("replica_groups: {problem}"));
        let mesh = self.mesh.mesh(module).ok_or_else(|| match &self.mesh {
            MeshReference::Symbol(name) => invalid(format!("the module declares no mesh '@{name}'")),
            MeshReference::Mesh(_) => invalid("the mesh is missing".to_owned()),
        })?;
        // Meshes that the module declares have been checked when they were declared.
        if let MeshReference::Mesh(mesh) = &self.mesh
            && let Some(problem) = mesh.problem()
        {
            return Err(invalid(problem));
        }
        Ok((mesh, Split::new(mesh, &self.axes).map_err(invalid)?))
    }
}

/// An axis or sub-axis of a mesh: its number of positions and their distance in the order of the mesh's devices.
struct Steps {
    size: i64,
    stride: i64,
}

/// The positions of a mesh, split into groups.
struct Split {
    /// The axes within a group, from major to minor.
    along: Vec<Steps>,
    /// The remaining axes, from major to minor in the mesh.
    across: Vec<Steps>,
}

/// Returns the product of the axes' sizes. It divides the mesh's number of positions, which fits in `i64`.
fn count(axes: &[Steps]) -> i64 {
    axes.iter().map(|axis| axis.size).product()
}

/// Returns the positions along axes. The last axis varies fastest.
fn positions(axes: &[Steps]) -> Vec<i64> {
    axes.iter().fold(vec![0], |positions, axis| {
        let steps = |position: i64| (0..axis.size).map(move |step| position + step * axis.stride);
        positions.into_iter().flat_map(steps).collect()
    })
}

impl Split {
    /// # Errors
    /// Returns the problem if the axes are not distinct parts of the mesh's axes.
    fn new(mesh: &Mesh, axes: &[AxisRef]) -> Result<Self, String> {
        let mut wholes: Vec<Steps> = Vec::with_capacity(mesh.axes.len());
        let mut stride = 1i64;
        for axis in mesh.axes.iter().rev() {
            wholes.push(Steps { size: axis.size, stride });
            stride = stride.checked_mul(axis.size).filter(|&stride| stride > 0).ok_or_else(|| {
                format!("the mesh has more than 2^63 positions, counted up to axis '{}'", axis.name)
            })?;
        }
        wholes.reverse();
        let names = mesh.axes.iter().enumerate().map(|(index, axis)| (&*axis.name, index));
        let names: HashMap<&str, usize> = names.collect();
        let mut along = Vec::with_capacity(axes.len());
        let mut taken: Vec<Vec<(i64, i64)>> = vec![Vec::new(); wholes.len()];
        for axis in axes {
            let &index =
                names.get(&*axis.name).ok_or_else(|| format!("the mesh has no axis '{}'", axis.name))?;
            let Steps { size: whole, stride } = wholes[index];
            let (pre_size, size) = axis.sub_axis.map_or((1, whole), |part| (part.pre_size, part.size));
            let end = pre_size.checked_mul(size).filter(|&end| pre_size > 0 && end > 0 && whole % end == 0);
            let end = end.ok_or_else(|| {
                format!(
                    "the sub-axis ({pre_size}){size} is not a proper part of the axis '{}' of size {whole}",
                    axis.name
                )
            })?;
            taken[index].push((pre_size, end));
            along.push(Steps { size, stride: stride * (whole / end) });
        }
        let mut across = Vec::new();
        for ((whole, mut taken), axis) in wholes.iter().zip(taken).zip(&mesh.axes) {
            taken.sort_unstable();
            let is_twice = taken.windows(2).any(|pair| pair[0] == pair[1]);
            let mut before = 1;
            for (pre_size, end) in taken.into_iter().chain([(whole.size, whole.size)]) {
                if is_twice || pre_size % before != 0 {
                    return Err(format!("the parts of the axis '{}' overlap", axis.name));
                }
                let free = Steps { size: pre_size / before, stride: whole.stride * (whole.size / pre_size) };
                across.extend((free.size > 1).then_some(free));
                before = end;
            }
        }
        Ok(Split { along, across })
    }

    /// Returns the devices of each group.
    fn groups(&self, mesh: &Mesh) -> Result<Vec<Vec<i64>>, Error> {
        let (along, across) = (count(&self.along), count(&self.across));
        let all = along.saturating_mul(across);
        if all > MAX_ATTRIBUTE_ELEMENTS as i64 {
            let message = format!(
                "replica_groups: the mesh has {all} positions, expected at most {MAX_ATTRIBUTE_ELEMENTS}"
            );
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let ids = &mesh.device_ids;
        if !ids.is_empty() && ids.len() as i64 != all {
            let message =
                format!("replica_groups: expected {all} device ids in the mesh, found {}", ids.len());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let members = positions(&self.along);
        let device = |position: i64| ids.get(position as usize).copied().unwrap_or(position);
        let group = |first: i64| members.iter().map(|member| device(first + member)).collect();
        Ok(positions(&self.across).into_iter().map(group).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{MeshAxis, MeshDeclaration, SubAxis};

    fn mesh(axes: &[(&str, i64)], device_ids: &[i64]) -> Mesh {
        let axes = axes.iter().map(|&(name, size)| MeshAxis { name: name.into(), size });
        Mesh { axes: axes.collect(), device_ids: device_ids.into() }
    }

    fn axis(name: &str) -> AxisRef {
        AxisRef { name: name.into(), sub_axis: None }
    }

    fn part(name: &str, pre_size: i64, size: i64) -> AxisRef {
        AxisRef { name: name.into(), sub_axis: Some(SubAxis { pre_size, size }) }
    }

    fn along(mesh: Mesh, axes: &[AxisRef]) -> ReplicaGroups {
        ReplicaGroups::MeshAxes(
            ReplicaGroupMeshAxes { mesh: MeshReference::Mesh(mesh), axes: axes.into() }.into(),
        )
    }

    /// Returns the groups, and checks that their number and size agree with `dims`.
    fn groups(mesh: Mesh, axes: &[AxisRef]) -> Result<Vec<Vec<i64>>, Error> {
        let groups = along(mesh, axes);
        let written = groups.groups(&Module::new())?;
        let dims = [written.len() as i64, written[0].len() as i64];
        assert_eq!(groups.dims(&Module::new()).unwrap(), dims);
        let listed = groups.listed(&Module::new()).unwrap();
        assert!(matches!(listed, ReplicaGroups::Dense { .. }));
        assert_eq!(listed.dims(&Module::new()).unwrap(), dims);
        assert_eq!(listed.groups(&Module::new()).unwrap(), written);
        Ok(written)
    }

    #[test]
    fn groups_are_the_devices_that_differ_along_the_axes() {
        let grid = || mesh(&[("x", 2), ("y", 3)], &[]);
        let along = |axes: &[AxisRef]| groups(grid(), axes).unwrap();
        assert_eq!(along(&[axis("x")]), [[0, 3], [1, 4], [2, 5]]);
        assert_eq!(along(&[axis("y")]), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(along(&[axis("x"), axis("y")]), [[0, 1, 2, 3, 4, 5]]);
        // The order of the axes determines the order of the devices in a group.
        assert_eq!(along(&[axis("y"), axis("x")]), [[0, 3, 1, 4, 2, 5]]);
        assert_eq!(along(&[]), [[0], [1], [2], [3], [4], [5]]);
        let cube = || mesh(&[("x", 2), ("y", 2), ("z", 2)], &[]);
        assert_eq!(groups(cube(), &[axis("z"), axis("x")]).unwrap(), [[0, 4, 1, 5], [2, 6, 3, 7]]);
        assert_eq!(groups(mesh(&[("x", 1)], &[]), &[axis("x")]).unwrap(), [[0]]);
    }

    #[test]
    fn parts_of_axes_split_them_from_major_to_minor() {
        let line = |axes: &[AxisRef]| groups(mesh(&[("x", 8)], &[]), axes).unwrap();
        assert_eq!(line(&[part("x", 1, 2)]), [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(line(&[part("x", 2, 2)]), [[0, 2], [1, 3], [4, 6], [5, 7]]);
        assert_eq!(line(&[part("x", 4, 2)]), [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(line(&[part("x", 1, 2), part("x", 4, 2)]), [[0, 1, 4, 5], [2, 3, 6, 7]]);
        assert_eq!(line(&[part("x", 4, 2), part("x", 1, 2)]), [[0, 4, 1, 5], [2, 6, 3, 7]]);
        assert_eq!(line(&[part("x", 1, 8)]), [[0, 1, 2, 3, 4, 5, 6, 7]]);
        let grid = groups(mesh(&[("x", 4), ("y", 2)], &[]), &[axis("y"), part("x", 2, 2)]).unwrap();
        assert_eq!(grid, [[0, 2, 1, 3], [4, 6, 5, 7]]);
    }

    #[test]
    fn groups_have_the_devices_at_the_positions_of_the_mesh() {
        let permuted = || mesh(&[("x", 2), ("y", 2)], &[3, 1, 2, 0]);
        assert_eq!(groups(permuted(), &[axis("x")]).unwrap(), [[3, 2], [1, 0]]);
        assert_eq!(groups(permuted(), &[axis("y")]).unwrap(), [[3, 1], [2, 0]]);
        // A mesh of one device, which need not be device 0.
        assert_eq!(groups(mesh(&[], &[5]), &[]).unwrap(), [[5]]);
    }

    #[test]
    fn a_mesh_is_found_by_its_name() {
        let mut module = Module::new();
        let declaration =
            |name: &str, mesh| MeshDeclaration { name: name.into(), mesh, ..MeshDeclaration::default() };
        module.add_mesh(declaration("a", mesh(&[("x", 2)], &[])));
        module.add_mesh(declaration("b", mesh(&[("x", 2)], &[1, 0])));
        let named = |name: &str| {
            let groups =
                ReplicaGroupMeshAxes { mesh: MeshReference::Symbol(name.into()), axes: [axis("x")].into() };
            ReplicaGroups::MeshAxes(groups.into()).groups(&module)
        };
        assert_eq!(named("a").unwrap(), [[0, 1]]);
        assert_eq!(named("b").unwrap(), [[1, 0]]);
        assert!(named("c").unwrap_err().to_string().contains("the module declares no mesh '@c'"));
    }

    #[test]
    fn axes_that_the_mesh_lacks_are_refused() {
        let of = |axes: &[(&str, i64)], ids: &[i64], along: &[AxisRef]| {
            groups(mesh(axes, ids), along).unwrap_err().to_string()
        };
        let x = &[("x", 12)];
        for (along, expected) in [
            (vec![axis("z")], "the mesh has no axis 'z'"),
            (vec![axis("x"), axis("x")], "the parts of the axis 'x' overlap"),
            (vec![axis("x"), part("x", 1, 2)], "the parts of the axis 'x' overlap"),
            (vec![part("x", 1, 4), part("x", 2, 2)], "the parts of the axis 'x' overlap"),
            // Neither part divides the space that the other leaves.
            (vec![part("x", 1, 2), part("x", 3, 2)], "the parts of the axis 'x' overlap"),
            (vec![part("x", 1, 5)], "the sub-axis (1)5 is not a proper part of the axis 'x' of size 12"),
            (vec![part("x", 0, 2)], "the sub-axis (0)2"),
            (vec![part("x", 2, -2)], "the sub-axis (2)-2"),
            (vec![part("x", -2, -2)], "the sub-axis (-2)-2"),
            (vec![part("x", i64::MAX, 4)], "the sub-axis (9223372036854775807)4"),
        ] {
            let error = of(x, &[], &along);
            assert!(error.contains(expected), "{error}");
        }
        assert!(of(&[("x", 1)], &[], &[axis("x"), axis("x")]).contains("overlap"));
        assert!(of(&[("x", 0)], &[], &[axis("x")]).contains("positive sizes"));
        assert!(of(&[("x", 2)], &[0], &[axis("x")]).contains("expected 2 device ids"));
    }

    #[test]
    fn a_huge_mesh_is_not_written_out() {
        let huge = along(mesh(&[("x", 1 << 40), ("y", 2)], &[]), &[axis("y")]);
        assert_eq!(huge.dims(&Module::new()).unwrap(), [1 << 40, 2]);
        assert_eq!(huge.groups(&Module::new()).unwrap_err().kind, ErrorKind::TooLarge);
        let beyond = along(mesh(&[("x", 1 << 40), ("y", 1 << 40)], &[]), &[]);
        assert_eq!(beyond.dims(&Module::new()).unwrap_err().kind, ErrorKind::Invalid);
    }
}
