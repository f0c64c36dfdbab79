//! Shardy: meshes and shardings.

use super::{Ints, Str};

/// A mesh of devices with named axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mesh {
    /// The axes, from major to minor.
    pub axes: Box<[MeshAxis]>,
    /// Devices in the order of the mesh's positions; empty for 0, 1, 2, ...
    pub device_ids: Ints,
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
    pub mesh: super::MeshReference,
    /// One for each dimension.
    pub dim_shardings: Box<[DimensionSharding]>,
    /// Axes along which the tensor must be replicated.
    pub replicated_axes: Box<[AxisRef]>,
    /// Axes along which partial values still have to be reduced.
    pub unreduced_axes: Box<[AxisRef]>,
    /// How they have to be reduced: `sum`, `max` or `min`.
    pub reduction: Str,
}

// Sizes in numbers of 64 bits, for the limits of readers.

impl Mesh {
    pub(crate) fn numbers(&self) -> usize {
        3 * self.axes.len() + self.device_ids.len()
    }
}

impl super::MeshReference {
    pub(crate) fn numbers(&self) -> usize {
        match self {
            super::MeshReference::Symbol(_) => 1,
            super::MeshReference::Mesh(mesh) => mesh.numbers(),
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
