//! Reading `PJRT_Buffer_MemoryLayout`.
//!
//! Hosts leave the size and the extensions of these nested structs uninitialised, so neither is looked at: the structs
//! never grew, and the type says which one it is.

use pjrt_sys::{
    PJRT_Buffer_MemoryLayout, PJRT_Buffer_MemoryLayout_Type_Strides, PJRT_Buffer_MemoryLayout_Type_Tiled,
};

use crate::abi::args::borrowed_slice;
use crate::error::{Error, Result};
use crate::layout::{Layout, dense_size, row_major_strides};
use crate::strided::{Strided, extent};

/// A layout as the host describes it.
pub(crate) enum HostLayout {
    Tiled(Layout),
    /// Byte strides.
    Strides(Vec<i64>),
}

/// Reads a layout of an array of some rank; null is none.
///
/// # Safety
///
/// `layout` is null or points to a layout as the C API describes it, readable during the call, except that sizes and
/// extensions may be anything.
pub(crate) unsafe fn read_layout(
    layout: *const PJRT_Buffer_MemoryLayout,
    rank: usize,
) -> Result<Option<HostLayout>> {
    if layout.is_null() {
        return Ok(None);
    }
    // SAFETY: this function's contract; only the type is read before the type is known.
    let type_ = unsafe { (*layout).type_ };
    match type_ {
        PJRT_Buffer_MemoryLayout_Type_Tiled => {
            // SAFETY: the type says which member of the union is there.
            let tiled = unsafe { (*layout).u.tiled };
            // SAFETY: pointer and length describe an array.
            let order =
                unsafe { borrowed_slice(tiled.minor_to_major, tiled.minor_to_major_size, "minor_to_major") }?;
            if order.len() != rank {
                return Err(Error::invalid_argument(format!(
                    "a layout of {} dimensions is not one of an array of {rank}",
                    order.len()
                )));
            }
            // A number that is no dimension becomes one that is refused below.
            let order =
                order.iter().map(|dimension| usize::try_from(*dimension).unwrap_or(usize::MAX)).collect();
            let layout = Layout::new(order)?;
            // SAFETY: pointer and length describe an array.
            let sizes = unsafe { borrowed_slice(tiled.tile_dim_sizes, tiled.num_tiles, "tile_dim_sizes") }?;
            let total = sizes.iter().try_fold(0_usize, |sum, size| sum.checked_add(*size));
            let total = total.ok_or_else(|| Error::invalid_argument("the tiles of a layout are too many"))?;
            // SAFETY: the tiles' dimensions lie one after the other in this array.
            let mut dims: &[i64] = unsafe { borrowed_slice(tiled.tile_dims, total, "tile_dims") }?;
            let mut tiles = Vec::with_capacity(sizes.len());
            for size in sizes {
                let (tile, rest) = dims.split_at(*size);
                tiles.push(tile.to_vec());
                dims = rest;
            }
            Ok(Some(HostLayout::Tiled(layout.with_tiles(tiles))))
        }
        PJRT_Buffer_MemoryLayout_Type_Strides => {
            // SAFETY: the type says which member of the union is there.
            let strides = unsafe { (*layout).u.strides };
            // SAFETY: pointer and length describe an array.
            let strides =
                unsafe { borrowed_slice(strides.byte_strides, strides.num_byte_strides, "byte_strides") }?;
            check_strides(strides, rank)?;
            Ok(Some(HostLayout::Strides(strides.to_vec())))
        }
        other => Err(Error::invalid_argument(format!("a layout has the unknown type {}", other.0))),
    }
}

/// Refuses strides that are not one per dimension.
pub(crate) fn check_strides(strides: &[i64], rank: usize) -> Result<()> {
    if strides.len() == rank {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "{} strides do not fit an array of {rank} dimensions",
        strides.len()
    )))
}

/// An array in host memory: how it lies there, and how many bytes before and after its first element it takes.
pub(crate) struct Placed {
    /// `None` if it is dense and row-major.
    pub(crate) strided: Option<Strided>,
    pub(crate) below: usize,
    pub(crate) above: usize,
}

impl Placed {
    /// A dense and row-major array of so many bytes.
    pub(crate) fn dense(size: usize) -> Self {
        Self { strided: None, below: 0, above: size }
    }
}

/// Works out where the elements of an array with these strides are. `dims` has a size in memory.
pub(crate) fn place(dims: &[i64], strides: Option<&[i64]>, element_size: usize) -> Result<Placed> {
    let Some(strides) = strides else { return Ok(Placed::dense(dense_size(dims, element_size)?)) };
    let dense = row_major_strides(dims, element_size);
    let (below, above) = extent(dims, strides, element_size)
        .ok_or_else(|| Error::invalid_argument(format!("the strides {strides:?} reach outside of memory")))?;
    let matters = |index: &usize| dims[*index] != 1;
    let is_dense =
        dims.contains(&0) || (0..dims.len()).filter(matters).all(|index| strides[index] == dense[index]);
    let strided = (!is_dense).then(|| Strided {
        dims: dims.iter().map(|dim| *dim as usize).collect(),
        strides: strides.to_vec(),
        base: below,
        element_size,
    });
    Ok(Placed { strided, below, above })
}
