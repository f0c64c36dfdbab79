//! Layouts of the host (`PJRT_Buffer_MemoryLayout`), and layouts as handles (`PJRT_Layouts_MemoryLayout`).
//!
//! Hosts leave the size and the extensions of these nested structs uninitialized, so neither is read. The structs have the
//! same size in all versions of the C API, and the type identifies the struct.

use pjrt_sys::{
    PJRT_Buffer_MemoryLayout, PJRT_Buffer_MemoryLayout_Type_Strides, PJRT_Buffer_MemoryLayout_Type_Tiled,
    PJRT_Layouts_MemoryLayout,
};

use crate::abi::args::borrowed_slice;
use crate::abi::handle::{self, Handle};
use crate::core::strided::{Strided, extent};
use crate::error::{Error, Result};
use crate::layout::{Layout, dense_size, row_major_strides};

/// A layout in the form in which a host describes it.
pub(crate) enum HostLayout {
    Tiled(Layout),
    /// Byte strides.
    Strides(Vec<i64>),
}

/// Reads the layout of an array with a rank. Returns `None` if the pointer is null.
///
/// # Safety
///
/// `layout` is null or points to a layout as the C API describes it, readable during the call. Its struct sizes and
/// extensions may be uninitialized.
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
                    "a layout with {} dimensions (minor_to_major) does not fit an array with {rank} dimensions",
                    order.len()
                )));
            }
            // A negative number becomes one that `Layout::new` rejects.
            let order =
                order.iter().map(|dimension| usize::try_from(*dimension).unwrap_or(usize::MAX)).collect();
            let layout = Layout::new(order)?;
            // SAFETY: pointer and length describe an array.
            let sizes = unsafe { borrowed_slice(tiled.tile_dim_sizes, tiled.num_tiles, "tile_dim_sizes") }?;
            let total = sizes.iter().try_fold(0_usize, |sum, size| sum.checked_add(*size));
            let total = total
                .ok_or_else(|| Error::invalid_argument("the sum of a layout's tile_dim_sizes overflows"))?;
            // SAFETY: this array contains the dimensions of all tiles in order.
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
        other => Err(Error::invalid_argument(format!(
            "a layout has the type {}, which is not a value of PJRT_Buffer_MemoryLayout_Type",
            other.0
        ))),
    }
}

/// Returns an error unless there is one stride per dimension.
pub(crate) fn check_strides(strides: &[i64], rank: usize) -> Result<()> {
    if strides.len() == rank {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "there are {} byte strides for an array with {rank} dimensions; each dimension needs one",
        strides.len()
    )))
}

/// The placement of an array in host memory: its strides, and the bytes that it occupies around its first element.
pub(crate) struct HostArray {
    /// The strides; `None` if the array is dense and row-major.
    pub(crate) strided: Option<Strided>,
    /// The bytes before the first element.
    pub(crate) below: usize,
    /// The bytes from the first element on.
    pub(crate) above: usize,
}

impl HostArray {
    /// Returns the placement of a dense, row-major array of `size` bytes.
    pub(crate) fn dense(size: usize) -> Self {
        Self { strided: None, below: 0, above: size }
    }
}

/// Computes the placement of an array with byte strides; `None` means row-major. `dims` must be a valid shape.
pub(crate) fn host_array(dims: &[i64], strides: Option<&[i64]>, element_size: usize) -> Result<HostArray> {
    let Some(strides) = strides else { return Ok(HostArray::dense(dense_size(dims, element_size)?)) };
    let dense = row_major_strides(dims, element_size);
    let (below, above) = extent(dims, strides, element_size).ok_or_else(|| {
        Error::invalid_argument(format!(
            "the byte strides {strides:?} of an array with the dimensions {dims:?} overflow the address space"
        ))
    })?;
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

/// An array of handles to layouts that an object of the plugin owns.
pub(crate) struct Layouts {
    pointers: Vec<*mut PJRT_Layouts_MemoryLayout>,
}

// SAFETY: the pointers refer to boxes that this object owns and that never change.
unsafe impl Send for Layouts {}
// SAFETY: as above.
unsafe impl Sync for Layouts {}

impl Layouts {
    /// Creates the row-major layouts of arrays with these ranks.
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
            // SAFETY: the pointer came from `into_raw` in `row_major`, and is freed only here. In debug builds, a host that
            // destroyed it against the rules has removed it from the registry, and `from_raw` fails.
            drop(unsafe { handle::from_raw::<Layout>(*pointer, "layout") });
        }
    }
}
