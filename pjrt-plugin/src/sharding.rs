//! The shardings of arrays.

use prost::Message;

use crate::error::{Error, Result};
use crate::proto;

/// The sharding of an array: its division among the partitions of a program (`xla.OpSharding`). See the
/// [example](crate::ext#example) of the extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sharding {
    /// Every partition has the whole array.
    Replicated,
    /// The partition with this number has the whole array; the others have no part of it.
    Maximal(i64),
    /// Each partition has a tile of the array.
    Tiled {
        /// The number of tiles along each dimension, and, if `replicate_on_last_tile_dim`, the number of partitions that
        /// have the same tile.
        tile_assignment_dimensions: Vec<i64>,
        /// The partition of each tile, in row-major order of the tiles.
        tile_assignment_devices: Vec<i64>,
        /// `true` if `tile_assignment_dimensions` has one element more than the array has dimensions, which is the number of
        /// copies of each tile.
        replicate_on_last_tile_dim: bool,
    },
    /// Each partition has a tile of the array, or a part of one that it shares with other partitions.
    Subgroups {
        /// The number of tiles along each dimension, followed by the number of partitions in the subgroups of each kind of
        /// `last_tile_dims`.
        tile_assignment_dimensions: Vec<i64>,
        /// The partition of each tile, in row-major order of the tiles.
        tile_assignment_devices: Vec<i64>,
        /// The kinds of the subgroups, one for each element of `tile_assignment_dimensions` after those of the dimensions.
        last_tile_dims: Vec<Subgroup>,
    },
    /// The program of each partition handles its part of the array explicitly.
    Manual,
}

/// The kind of a subgroup of partitions that share a tile (`xla.OpSharding.last_tile_dims`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subgroup {
    /// Each partition has the whole tile.
    Replicated,
    /// Each partition has a partial result of the tile, which is their reduction. All subgroups of this kind must have the same
    /// reduction.
    Unreduced(Reduction),
}

/// The reduction of partial results of an unreduced array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reduction {
    /// The sum.
    Sum,
    /// The maximum.
    Max,
    /// The minimum.
    Min,
}

/// The reductions, and XLA's names for them.
const REDUCTIONS: [(Reduction, &str); 3] =
    [(Reduction::Sum, "SUM"), (Reduction::Max, "MAX"), (Reduction::Min, "MIN")];

/// The kind of metadata that states the reduction of an unreduced sharding.
const REDUCTION_METADATA: &str = "sdy::reduction_op";

/// Returns the metadata that states the reduction of an unreduced sharding. Metadata of sums are left out, because hosts before
/// JAX 0.12 support only sums.
fn metadata(subgroups: &[Subgroup]) -> Vec<proto::OpMetadata> {
    let stated = |subgroup: &Subgroup| match subgroup {
        Subgroup::Replicated | Subgroup::Unreduced(Reduction::Sum) => None,
        Subgroup::Unreduced(reduction) => REDUCTIONS.iter().find(|(other, _)| other == reduction),
    };
    let named = |(_, name): &(Reduction, &str)| proto::OpMetadata {
        op_type: REDUCTION_METADATA.to_owned(),
        op_name: (*name).to_owned(),
    };
    subgroups.iter().find_map(stated).map(named).into_iter().collect()
}

/// Returns the reduction that metadata of an unreduced sharding state, which is a sum by default.
fn reduction(metadata: &[proto::OpMetadata]) -> Result<Reduction> {
    let Some(stated) = metadata.iter().find(|metadata| metadata.op_type == REDUCTION_METADATA) else {
        return Ok(Reduction::Sum);
    };
    let found = REDUCTIONS.iter().find(|(_, name)| *name == stated.op_name);
    found.map(|(reduction, _)| *reduction).ok_or_else(|| {
        let names = REDUCTIONS.map(|(_, name)| name).join(", ");
        Error::unimplemented(format!(
            "an unreduced sharding with the reduction {:?} is not supported; expected one of {names}",
            stated.op_name
        ))
    })
}

impl Sharding {
    pub(crate) fn to_proto(&self) -> proto::OpSharding {
        let of_type = |type_| proto::OpSharding { r#type: type_, ..proto::OpSharding::default() };
        match self {
            Self::Replicated => of_type(0),
            Self::Maximal(partition) => proto::OpSharding {
                tile_assignment_dimensions: vec![1],
                tile_assignment_devices: vec![*partition],
                ..of_type(1)
            },
            Self::Tiled {
                tile_assignment_dimensions,
                tile_assignment_devices,
                replicate_on_last_tile_dim,
            } => proto::OpSharding {
                tile_assignment_dimensions: tile_assignment_dimensions.clone(),
                tile_assignment_devices: tile_assignment_devices.clone(),
                replicate_on_last_tile_dim: *replicate_on_last_tile_dim,
                ..of_type(3)
            },
            Self::Subgroups { tile_assignment_dimensions, tile_assignment_devices, last_tile_dims } => {
                let code = |subgroup: &Subgroup| match subgroup {
                    Subgroup::Replicated => 0,
                    Subgroup::Unreduced(_) => 6,
                };
                proto::OpSharding {
                    tile_assignment_dimensions: tile_assignment_dimensions.clone(),
                    tile_assignment_devices: tile_assignment_devices.clone(),
                    last_tile_dims: last_tile_dims.iter().map(code).collect(),
                    metadata: metadata(last_tile_dims),
                    ..of_type(3)
                }
            }
            Self::Manual => of_type(4),
        }
    }

    /// Reads the sharding of an array that a host passes.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if the message is invalid, or UNIMPLEMENTED if its kind is not a variant of this enum.
    pub(crate) fn from_proto(message: &proto::OpSharding) -> Result<Self> {
        let wrong = || {
            Error::invalid_argument(format!(
                "the OpSharding of type {} with the tile dimensions {:?} and the devices {:?} is invalid: each tile needs one \
                 device of 0..tiles",
                message.r#type, message.tile_assignment_dimensions, message.tile_assignment_devices
            ))
        };
        match message.r#type {
            0 => Ok(Self::Replicated),
            1 => match message.tile_assignment_devices[..] {
                [partition] => Ok(Self::Maximal(partition)),
                _ => Err(wrong()),
            },
            3 => {
                let tile_assignment_dimensions = message.tile_assignment_dimensions.clone();
                let tile_assignment_devices = devices(message).ok_or_else(wrong)?;
                let subgroup = |code: &i32| match code {
                    0 => Ok(Subgroup::Replicated),
                    6 => Ok(Subgroup::Unreduced(reduction(&message.metadata)?)),
                    code => Err(Error::unimplemented(format!(
                        "a sharding with subgroups of type {code} (OpSharding.last_tile_dims) is not supported; expected 0 \
                         (replicated) or 6 (unreduced)"
                    ))),
                };
                let last_tile_dims: Vec<Subgroup> =
                    message.last_tile_dims.iter().map(subgroup).collect::<Result<_>>()?;
                Ok(match last_tile_dims[..] {
                    [] | [Subgroup::Replicated] => Self::Tiled {
                        tile_assignment_dimensions,
                        tile_assignment_devices,
                        replicate_on_last_tile_dim: message.replicate_on_last_tile_dim
                            || !last_tile_dims.is_empty(),
                    },
                    _ => Self::Subgroups {
                        tile_assignment_dimensions,
                        tile_assignment_devices,
                        last_tile_dims,
                    },
                })
            }
            4 => Ok(Self::Manual),
            kind => Err(Error::unimplemented(format!(
                "a sharding of type {kind} (OpSharding.type) is not supported; expected 0 (replicated), 1 (maximal), 3 (tiled) or 4 \
                 (manual)"
            ))),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.to_proto().encode_to_vec()
    }
}

/// Returns the partition of each tile, from either encoding of the message. Returns `None` if they are not a permutation of
/// the numbers of the tiles.
fn devices(message: &proto::OpSharding) -> Option<Vec<i64>> {
    let count = |sizes: &[i64]| sizes.iter().try_fold(1_i64, |count, size| count.checked_mul(*size));
    let dimensions = &message.tile_assignment_dimensions;
    let tiles = count(dimensions).filter(|tiles| (1..=MAX_TILES).contains(tiles))?;
    if dimensions.iter().any(|parts| *parts < 1) {
        return None;
    }
    let sizes = &message.iota_reshape_dims[..];
    let devices = if sizes.is_empty() {
        message.tile_assignment_devices.clone()
    } else {
        let order: Vec<usize> = message
            .iota_transpose_perm
            .iter()
            .map(|dim| usize::try_from(*dim).ok())
            .collect::<Option<_>>()?;
        let mut sorted = order.clone();
        sorted.sort_unstable();
        if count(sizes) != Some(tiles)
            || sizes.iter().any(|size| *size < 1)
            || !sorted.into_iter().eq(0..sizes.len())
        {
            return None;
        }
        let device = |mut tile: i64| {
            order.iter().rev().fold(0, |device, dim| {
                let index = tile % sizes[*dim];
                tile /= sizes[*dim];
                device + index * sizes[dim + 1..].iter().product::<i64>()
            })
        };
        (0..tiles).map(device).collect()
    };
    let mut sorted = devices.clone();
    sorted.sort_unstable();
    sorted.into_iter().eq(0..tiles).then_some(devices)
}

/// The most tiles of a sharding, which bounds the memory that an invalid message can request.
const MAX_TILES: i64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shardings_are_encoded_as_xla_decodes_them() {
        // An OpSharding by hand: type OTHER, tiles 2 x 1 of 2 copies, devices, the last dimension counts copies.
        let tiled = Sharding::Tiled {
            tile_assignment_dimensions: vec![2, 1, 2],
            tile_assignment_devices: vec![0, 2, 1, 3],
            replicate_on_last_tile_dim: true,
        };
        assert_eq!(tiled.encode(), [8, 3, 26, 3, 2, 1, 2, 34, 4, 0, 2, 1, 3, 48, 1]);
        let unreduced = |reduction| Sharding::Subgroups {
            tile_assignment_dimensions: vec![1, 1, 2],
            tile_assignment_devices: vec![0, 1],
            last_tile_dims: vec![Subgroup::Replicated, Subgroup::Unreduced(reduction)],
        };
        let subgroups = unreduced(Reduction::Sum);
        assert_eq!(subgroups.encode(), [8, 3, 26, 3, 1, 1, 2, 34, 2, 0, 1, 66, 2, 0, 6]);
        let maximum = unreduced(Reduction::Max);
        let metadata = b":\x18\n\x11sdy::reduction_op\x12\x03MAX";
        assert_eq!(
            maximum.encode(),
            [&[8, 3, 26, 3, 1, 1, 2, 34, 2, 0, 1], &metadata[..], &[66, 2, 0, 6]].concat()
        );
        let mut unknown = maximum.to_proto();
        unknown.metadata[0].op_name = "XOR".to_owned();
        assert!(Sharding::from_proto(&unknown).unwrap_err().to_string().contains("XOR"));
        assert_eq!(Sharding::Replicated.encode(), []);
        assert_eq!(Sharding::Maximal(5).encode(), [8, 1, 26, 1, 1, 34, 1, 5]);
        assert_eq!(Sharding::Manual.encode(), [8, 4]);
        for sharding in
            [tiled, subgroups, maximum, Sharding::Replicated, Sharding::Maximal(5), Sharding::Manual]
        {
            assert_eq!(Sharding::from_proto(&sharding.to_proto()).unwrap(), sharding);
        }
    }

    #[test]
    fn devices_may_be_said_as_a_transposition() {
        // As jaxlib encodes `devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate`.
        let bytes = b"\x08\x03\x1a\x03\x02\x01\x040\x01J\x02\x04\x02R\x02\x01\x00";
        let message = proto::OpSharding::decode(&bytes[..]).unwrap();
        let expected = Sharding::Tiled {
            tile_assignment_dimensions: vec![2, 1, 4],
            tile_assignment_devices: vec![0, 2, 4, 6, 1, 3, 5, 7],
            replicate_on_last_tile_dim: true,
        };
        assert_eq!(Sharding::from_proto(&message).unwrap(), expected);
    }

    #[test]
    fn messages_whose_devices_are_not_one_for_each_tile_are_refused() {
        let tiled = |dimensions: &[i64], devices: &[i64], sizes: &[i64], order: &[i32]| {
            Sharding::from_proto(&proto::OpSharding {
                r#type: 3,
                tile_assignment_dimensions: dimensions.to_vec(),
                tile_assignment_devices: devices.to_vec(),
                iota_reshape_dims: sizes.to_vec(),
                iota_transpose_perm: order.to_vec(),
                ..proto::OpSharding::default()
            })
        };
        tiled(&[2], &[1, 0], &[], &[]).unwrap();
        tiled(&[4], &[], &[2, 2], &[1, 0]).unwrap();
        for (dimensions, devices, sizes, order) in [
            (&[2][..], &[0][..], &[][..], &[][..]),
            (&[2], &[0, 0], &[], &[]),
            (&[2], &[0, 2], &[], &[]),
            (&[0], &[], &[], &[]),
            (&[i64::MAX, 4], &[], &[4], &[0]),
            (&[4], &[], &[2, 2], &[0, 0]),
            (&[4], &[], &[2, 2], &[0, -1]),
            (&[4], &[], &[2, 3], &[0, 1]),
            (&[-2, -2], &[], &[-2, -2], &[0, 1]),
        ] {
            assert!(tiled(dimensions, devices, sizes, order).is_err(), "{dimensions:?} {devices:?}");
        }
        let of_type = |r#type| proto::OpSharding { r#type, ..proto::OpSharding::default() };
        assert!(Sharding::from_proto(&of_type(1)).is_err());
        assert!(Sharding::from_proto(&of_type(2)).is_err());
    }
}
