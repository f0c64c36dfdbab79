//! Shardy: meshes and shardings.

use std::collections::HashSet;

use super::{Ints, Str};
use crate::limits::MAX_MESH_AXES;

/// A mesh of devices with named axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mesh {
    /// The axes, from major to minor.
    pub axes: Box<[MeshAxis]>,
    /// Devices in the order of the mesh's positions; empty for 0, 1, 2, ...
    pub device_ids: Ints,
}

/// A mesh by its name, or itself.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MeshReference {
    /// Symbol of a mesh in the module.
    Symbol(Str),
    /// The mesh itself.
    Mesh(Mesh),
}

/// An axis of a [`Mesh`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshAxis {
    /// Name.
    pub name: Str,
    /// Number of positions.
    pub size: i64,
}

/// An axis of a mesh, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisRef {
    /// Name of the axis.
    pub name: Str,
    /// The part of it, where it is split.
    pub sub_axis: Option<SubAxis>,
}

/// A part of an axis: the axis is seen as `pre_size * size * rest` positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubAxis {
    /// Product of the sizes of the parts before this one.
    pub pre_size: i64,
    /// Size of this part.
    pub size: i64,
}

/// How one dimension of a tensor is sharded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DimensionSharding {
    /// Axes over which the dimension is cut, from major to minor.
    pub axes: Box<[AxisRef]>,
    /// Whether the dimension can be cut no further.
    pub is_closed: bool,
    /// Priority in propagation.
    pub priority: Option<i64>,
}

/// `#sdy.sharding`: how a tensor is sharded.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSharding {
    /// The mesh.
    pub mesh: MeshReference,
    /// One for each dimension.
    pub dim_shardings: Box<[DimensionSharding]>,
    /// Axes along which the tensor must be replicated.
    pub replicated_axes: Box<[AxisRef]>,
    /// Axes along which partial values still have to be reduced.
    pub unreduced_axes: Box<[AxisRef]>,
    /// How they have to be reduced: `sum`, `max` or `min`.
    pub reduction: Str,
}

/// `#stablehlo.replica_group_mesh_axes`: groups of the devices that differ only in their position along some axes.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaGroupMeshAxes {
    /// The mesh.
    pub mesh: MeshReference,
    /// The axes, from major to minor: they say in which order a group has its devices.
    pub axes: Box<[AxisRef]>,
}

// Sizes in numbers of 64 bits, for the limits of readers.

impl Mesh {
    /// What is wrong with a mesh, if anything: its devices, where it lists them, are all positions of its axes in some order. A mesh
    /// without axes may have any one device.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.axes.len() > MAX_MESH_AXES {
            return Some(format!("expected up to {MAX_MESH_AXES} axes, found {}", self.axes.len()));
        }
        let mut names = HashSet::new();
        let mut positions = Some(1i64);
        for MeshAxis { name, size } in &self.axes {
            if *size < 1 || !names.insert(name) {
                return Some(format!(
                    "expected axes of different names and positive sizes, found \"{name}\"={size}"
                ));
            }
            positions = positions.and_then(|positions| positions.checked_mul(*size));
        }
        let ids = &self.device_ids;
        if let Some(id) = ids.iter().find(|id| **id < 0) {
            return Some(format!("expected no device ids below 0, found {id}"));
        }
        if ids.is_empty() || self.axes.is_empty() && ids.len() == 1 {
            return None;
        }
        if positions != Some(ids.len() as i64) {
            let expected = positions.map_or_else(|| "more".to_owned(), |positions| positions.to_string());
            return Some(format!(
                "expected {expected} device ids, as the axes have positions, found {}",
                ids.len()
            ));
        }
        let mut seen = vec![false; ids.len()];
        let other = ids
            .iter()
            .find(|&&id| seen.get_mut(id as usize).is_none_or(|seen| std::mem::replace(seen, true)));
        other.map(|id| format!("expected each device id from 0 to {} once, found {id}", ids.len() - 1))
    }

    pub(crate) fn numbers(&self) -> usize {
        3 * self.axes.len() + self.device_ids.len()
    }
}

impl MeshReference {
    pub(crate) fn numbers(&self) -> usize {
        match self {
            MeshReference::Symbol(_) => 1,
            MeshReference::Mesh(mesh) => mesh.numbers(),
        }
    }
}

impl AxisRef {
    pub(crate) const NUMBERS: usize = 5;
}

impl TensorSharding {
    pub(crate) fn numbers(&self) -> usize {
        let of_dimensions = self.dim_shardings.iter().map(|dim| 5 + AxisRef::NUMBERS * dim.axes.len());
        let of_others = AxisRef::NUMBERS * (self.replicated_axes.len() + self.unreduced_axes.len());
        of_dimensions.sum::<usize>() + of_others + self.mesh.numbers()
    }
}
