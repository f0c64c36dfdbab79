//! The layout of arrays in memory.

use std::ptr::{self, NonNull};

use pjrt_sys::*;

/// The layout of an array in memory (`PJRT_Buffer_MemoryLayout`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// A dense layout: the dimensions from minor to major.
    MinorToMajor(Vec<i64>),
    /// The same, with non-null pointers to empty lists of tiles, as ZML passes them.
    Untiled(Vec<i64>),
    /// The strides, in bytes.
    Strides(Vec<i64>),
    /// The dimensions from minor to major, and one tile of the most minor dimensions.
    Tiled(Vec<i64>, Tile),
}

/// The dimensions of a tile, and their number in a form that the C struct points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    dims: Vec<i64>,
    sizes: [usize; 1],
}

impl Tile {
    /// Creates a tile with these dimensions.
    #[must_use]
    pub fn new(dims: Vec<i64>) -> Self {
        Self { sizes: [dims.len()], dims }
    }
}

impl Layout {
    /// Returns the dense row-major layout of an array of this rank.
    #[must_use]
    pub fn dense(rank: usize) -> Self {
        Self::MinorToMajor((0..rank as i64).rev().collect())
    }

    /// Returns the C struct, which points into `self`. Its nested `struct_size` is garbage, as some hosts
    /// leave it.
    pub(super) fn raw(&self) -> PJRT_Buffer_MemoryLayout {
        let mut raw = PJRT_Buffer_MemoryLayout::zeroed();
        match self {
            Self::MinorToMajor(order) | Self::Untiled(order) => {
                let is_null = matches!(self, Self::MinorToMajor(_));
                raw.type_ = PJRT_Buffer_MemoryLayout_Type_Tiled;
                raw.u.tiled = PJRT_Buffer_MemoryLayout_Tiled {
                    minor_to_major: order.as_ptr(),
                    minor_to_major_size: order.len(),
                    tile_dims: if is_null { ptr::null() } else { NonNull::dangling().as_ptr() },
                    tile_dim_sizes: if is_null { ptr::null() } else { NonNull::dangling().as_ptr() },
                    ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
                };
            }
            Self::Tiled(order, tile) => {
                raw.type_ = PJRT_Buffer_MemoryLayout_Type_Tiled;
                raw.u.tiled = PJRT_Buffer_MemoryLayout_Tiled {
                    minor_to_major: order.as_ptr(),
                    minor_to_major_size: order.len(),
                    tile_dims: tile.dims.as_ptr(),
                    tile_dim_sizes: tile.sizes.as_ptr(),
                    num_tiles: tile.sizes.len(),
                    ..PJRT_Buffer_MemoryLayout_Tiled::zeroed()
                };
            }
            Self::Strides(strides) => {
                raw.type_ = PJRT_Buffer_MemoryLayout_Type_Strides;
                raw.u.strides = PJRT_Buffer_MemoryLayout_Strides {
                    byte_strides: strides.as_ptr(),
                    num_byte_strides: strides.len(),
                    ..PJRT_Buffer_MemoryLayout_Strides::zeroed()
                };
            }
        }
        raw
    }
}
