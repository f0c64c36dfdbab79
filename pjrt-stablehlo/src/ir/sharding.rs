//! Meshes and shardings of Shardy.

use std::collections::HashSet;
use std::fmt;

use super::{Ints, Str};
use crate::limits::MAX_MESH_AXES;

/// A mesh of devices with named axes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mesh {
    /// The axes, from major to minor.
    pub axes: Box<[MeshAxis]>,
    /// The devices in the order of the mesh's positions. An empty list means 0, 1, 2 and so on.
    pub device_ids: Ints,
}

/// A mesh, given by name or by value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MeshReference {
    /// The symbol name of a mesh in the module.
    Symbol(Str),
    /// The mesh itself.
    Mesh(Mesh),
}

/// An axis of a [`Mesh`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshAxis {
    /// The name.
    pub name: Str,
    /// The number of positions.
    pub size: i64,
}

/// A reference to an axis of a mesh, or to a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisRef {
    /// The name of the axis.
    pub name: Str,
    /// The part of the axis; `None` for the whole axis.
    pub sub_axis: Option<SubAxis>,
}

/// A part of an axis, which is viewed as a grid of `pre_size * size * rest` positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubAxis {
    /// The product of the sizes of the preceding parts.
    pub pre_size: i64,
    /// The size of this part.
    pub size: i64,
}

/// The sharding of one dimension of a tensor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DimensionSharding {
    /// The axes over which the dimension is divided, from major to minor.
    pub axes: Box<[AxisRef]>,
    /// `true` if propagation may not divide the dimension further.
    pub is_closed: bool,
    /// The priority in propagation. Lower numbers come first.
    pub priority: Option<i64>,
}

/// The sharding of a tensor (`#sdy.sharding`).
#[derive(Clone, Debug, PartialEq)]
pub struct TensorSharding {
    /// The mesh whose axes the sharding uses.
    pub mesh: MeshReference,
    /// The sharding of each dimension.
    pub dim_shardings: Box<[DimensionSharding]>,
    /// The axes along which the tensor must be replicated.
    pub replicated_axes: Box<[AxisRef]>,
    /// The axes along which the tensor consists of partial values that are not yet reduced.
    pub unreduced_axes: Box<[AxisRef]>,
    /// The reduction of the partial values; [`Reduction::Sum`] if there are none.
    pub reduction: Reduction,
}

/// The reduction of the partial values of an unreduced tensor.
///
/// ```
/// use pjrt_stablehlo::ir::Reduction;
///
/// assert_eq!(Reduction::from_name("max"), Some(Reduction::Max));
/// assert_eq!(Reduction::Max.to_string(), "max");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The maximum.
    Max,
    /// The minimum.
    Min,
}

impl Reduction {
    /// All reductions, in the order of their numbers in bytecode.
    pub const ALL: &'static [Self] = &[Self::Sum, Self::Max, Self::Min];

    /// Returns the spelling of the reduction in Shardy's attributes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Max => "max",
            Self::Min => "min",
        }
    }

    /// Returns the reduction with this spelling; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reduction| reduction.name() == name)
    }
}

impl fmt::Display for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Groups along axes of a mesh (`#stablehlo.replica_group_mesh_axes`): the devices of a group differ only in their
/// positions along these axes.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaGroupMeshAxes {
    /// The mesh.
    pub mesh: MeshReference,
    /// The axes, from major to minor. They determine the order of the devices in a group.
    pub axes: Box<[AxisRef]>,
}

// The `numbers` methods return sizes in 64-bit numbers, for the limits of readers.

impl Mesh {
    /// Returns the problem of an invalid mesh. The device ids, if listed, must be a permutation of the positions. A
    /// mesh without axes may have any single device.
    pub(crate) fn problem(&self) -> Option<String> {
        if self.axes.len() > MAX_MESH_AXES {
            return Some(format!("expected at most {MAX_MESH_AXES} axes, found {}", self.axes.len()));
        }
        let mut names = HashSet::new();
        let mut positions = Some(1i64);
        for MeshAxis { name, size } in &self.axes {
            if *size < 1 || !names.insert(name) {
                return Some(format!(
                    "expected axes with distinct names and positive sizes, found \"{name}\"={size}"
                ));
            }
            positions = positions.and_then(|positions| positions.checked_mul(*size));
        }
        let ids = &self.device_ids;
        if let Some(id) = ids.iter().find(|id| **id < 0) {
            return Some(format!("expected nonnegative device ids, found {id}"));
        }
        if ids.is_empty() || self.axes.is_empty() && ids.len() == 1 {
            return None;
        }
        if positions != Some(ids.len() as i64) {
            let expected =
                positions.map_or_else(|| "more than 2^63".to_owned(), |positions| positions.to_string());
            return Some(format!(
                "expected {expected} device ids, one for each position of the axes, found {}",
                ids.len()
            ));
        }
        let mut seen = vec![false; ids.len()];
        let other = ids
            .iter()
            .find(|&&id| seen.get_mut(id as usize).is_none_or(|seen| std::mem::replace(seen, true)));
        other
            .map(|id| format!("expected each device id from 0 to {} exactly once, found {id}", ids.len() - 1))
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
