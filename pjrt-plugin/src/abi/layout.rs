//! Layouts of the host, `PJRT_Buffer_MemoryLayout`, and layouts as handles.
//!
//! Hosts leave the size and the extensions of these nested structs uninitialised, so neither is looked at: the structs
//! never grew, and the type says which one it is.

use pjrt_sys::{
    PJRT_Buffer_MemoryLayout, PJRT_Buffer_MemoryLayout_Type_Strides, PJRT_Buffer_MemoryLayout_Type_Tiled,
    PJRT_Layouts_MemoryLayout,
};

use crate::abi::args::borrowed_slice;
use crate::abi::handle::{self, Handle};
use crate::core::strided::{Strided, extent};
use crate::error::{Error, Result};
use crate::layout::{Layout, dense_size, row_major_strides};

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
pub(crate) struct HostArray {
    /// `None` if it is dense and row-major.
    pub(crate) strided: Option<Strided>,
    pub(crate) below: usize,
    pub(crate) above: usize,
}

impl HostArray {
    /// A dense and row-major array of so many bytes.
    pub(crate) fn dense(size: usize) -> Self {
        Self { strided: None, below: 0, above: size }
    }
}

/// Works out where the elements of an array with these strides are. `dims` has a size in memory.
pub(crate) fn host_array(dims: &[i64], strides: Option<&[i64]>, element_size: usize) -> Result<HostArray> {
    let Some(strides) = strides else { return Ok(HostArray::dense(dense_size(dims, element_size)?)) };
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
    Ok(HostArray { strided, below, above })
}

impl Handle for Layout {
    type Opaque = PJRT_Layouts_MemoryLayout;
    const KIND: &'static str = "PJRT_Layouts_MemoryLayout";
}

/// Layouts that live in an object of ours, as an array of handles.
pub(crate) struct Layouts {
    pointers: Vec<*mut PJRT_Layouts_MemoryLayout>,
}

// SAFETY: the pointers are to boxes that this object owns and nobody changes.
unsafe impl Send for Layouts {}
// SAFETY: as above.
unsafe impl Sync for Layouts {}

impl Layouts {
    /// Row-major layouts of arrays of these ranks.
    pub(crate) fn row_major(ranks: impl IntoIterator<Item = usize>) -> Self {
        Self { pointers: ranks.into_iter().map(|rank| handle::into_raw(Layout::row_major(rank))).collect() }
    }

    pub(crate) fn pointers(&self) -> &[*mut PJRT_Layouts_MemoryLayout] {
        &self.pointers
    }
}

impl Drop for Layouts {
    fn drop(&mut self) {
        for pointer in &self.pointers {
            // SAFETY: the pointer came from `into_raw` in `row_major`, and is freed only here, except that a host which
            // destroyed it against the rules has removed it from the registry, where there is one.
            drop(unsafe { handle::from_raw::<Layout>(*pointer, "layout") });
        }
    }
}
