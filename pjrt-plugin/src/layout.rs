//! Layouts: the order of an array's elements in memory.

use std::fmt;

use crate::error::{Error, Result};

/// The order of an array's dimensions in memory, from the fastest changing to the slowest, and how they are tiled.
///
/// The SDK reports each array as dense and row-major, whatever the device stores. A host requests another order with a `Layout`:
/// [`Placement::layout`](crate::Placement::layout),
/// [`CompileOptions::argument_layouts`](crate::CompileOptions::argument_layouts).
///
/// ```
/// use pjrt_plugin::Layout;
///
/// let column_major = Layout::new(vec![0, 1])?;
/// assert_eq!(column_major.byte_strides(&[2, 3], 4), [4, 8]);
/// assert_eq!(column_major.with_tiles(vec![vec![8, 128]]).to_string(), "{0,1:T(8,128)}");
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    minor_to_major: Vec<usize>,
    tiles: Vec<Vec<i64>>,
}

impl Layout {
    /// Creates a layout without tiles.
    ///
    /// # Errors
    ///
    /// Returns INVALID_ARGUMENT if `minor_to_major` is not a permutation of `0..minor_to_major.len()`.
    pub fn new(minor_to_major: Vec<usize>) -> Result<Self> {
        let mut seen = vec![false; minor_to_major.len()];
        for dimension in &minor_to_major {
            match seen.get_mut(*dimension) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return Err(Error::invalid_argument(format!(
                        "minor_to_major {minor_to_major:?} is not a permutation of 0..{}",
                        minor_to_major.len()
                    )));
                }
            }
        }
        Ok(Self { minor_to_major, tiles: Vec::new() })
    }

    /// Creates the row-major layout of an array with `rank` dimensions.
    #[must_use]
    pub fn row_major(rank: usize) -> Self {
        Self { minor_to_major: (0..rank).rev().collect(), tiles: Vec::new() }
    }

    /// Sets the tiles, from the outermost to the innermost. A plugin whose device stores tiles does not need it: hosts see the
    /// dense array.
    #[must_use]
    pub fn with_tiles(mut self, tiles: Vec<Vec<i64>>) -> Self {
        self.tiles = tiles;
        self
    }

    /// Returns the dimensions, from the fastest changing to the slowest.
    #[must_use]
    pub fn minor_to_major(&self) -> &[usize] {
        &self.minor_to_major
    }

    /// Returns the tiles, from the outermost to the innermost. Most layouts have none.
    #[must_use]
    pub fn tiles(&self) -> &[Vec<i64>] {
        &self.tiles
    }

    /// Returns whether the layout is row-major without tiles.
    #[must_use]
    pub fn is_row_major(&self) -> bool {
        self.tiles.is_empty() && self.minor_to_major.iter().rev().copied().eq(0..self.minor_to_major.len())
    }

    /// Returns the byte stride of each dimension of a dense array with this order of dimensions, whose elements have
    /// `element_size` bytes. Tiles are ignored.
    ///
    /// # Panics
    ///
    /// Panics if `dims` has fewer dimensions than the layout.
    #[must_use]
    pub fn byte_strides(&self, dims: &[i64], element_size: usize) -> Vec<i64> {
        let mut strides = vec![0; dims.len()];
        let mut stride = element_size as i64;
        for dimension in &self.minor_to_major {
            strides[*dimension] = stride;
            stride = stride.saturating_mul(dims[*dimension].max(1));
        }
        strides
    }
}

impl fmt::Display for Layout {
    /// Formats the layout in XLA's syntax: `{1,0}`, or `{1,0:T(8,128)(2,1)}` with tiles.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
            items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| write!(f, "{}{item}", if index == 0 { "" } else { "," }))
        }
        f.write_str("{")?;
        list(f, &self.minor_to_major)?;
        for (index, tile) in self.tiles.iter().enumerate() {
            f.write_str(if index == 0 { ":T(" } else { "(" })?;
            list(f, tile)?;
            f.write_str(")")?;
        }
        f.write_str("}")
    }
}

/// Returns the byte stride of each dimension of a dense, row-major array whose elements have `element_size` bytes.
///
/// ```
/// assert_eq!(pjrt_plugin::layout::row_major_strides(&[2, 3], 4), [12, 4]);
/// ```
#[must_use]
pub fn row_major_strides(dims: &[i64], element_size: usize) -> Vec<i64> {
    let mut strides = vec![0; dims.len()];
    let mut stride = element_size as i64;
    for (dimension, size) in dims.iter().enumerate().rev() {
        strides[dimension] = stride;
        stride = stride.saturating_mul((*size).max(1));
    }
    strides
}

/// Returns the size in bytes of a dense array whose elements have `element_size` bytes.
///
/// ```
/// assert_eq!(pjrt_plugin::layout::dense_size(&[2, 3], 4)?, 24);
/// # Ok::<(), pjrt_plugin::Error>(())
/// ```
///
/// # Errors
///
/// Returns INVALID_ARGUMENT if a dimension is negative or the size overflows the address space.
#[inline]
pub fn dense_size(dims: &[i64], element_size: usize) -> Result<usize> {
    let size = dims.iter().try_fold(1_usize, |size, dim| size.checked_mul(usize::try_from(*dim).ok()?));
    match size.and_then(|size| size.checked_mul(element_size)) {
        Some(size) if isize::try_from(size).is_ok() => Ok(size),
        // An array with a dimension of zero has no elements, even if the other dimensions overflow.
        _ if dims.contains(&0) && dims.iter().all(|dim| *dim >= 0) => Ok(0),
        _ => Err(no_size(dims)),
    }
}

#[cold]
fn no_size(dims: &[i64]) -> Error {
    Error::invalid_argument(format!(
        "the dimensions {dims:?} of an array are invalid: one is negative, or the size of the array overflows the address space"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_permutation_is_no_layout() {
        assert!(Layout::new(vec![1, 0]).is_ok());
        assert!(Layout::new(vec![0, 0]).is_err());
        assert!(Layout::new(vec![2, 0]).is_err());
    }

    #[test]
    fn strides_follow_the_order_of_the_dimensions() {
        assert_eq!(Layout::row_major(3).byte_strides(&[2, 3, 4], 4), row_major_strides(&[2, 3, 4], 4));
        assert_eq!(Layout::new(vec![0, 1]).unwrap().byte_strides(&[2, 3], 4), [4, 8]);
        assert!(Layout::row_major(2).is_row_major() && !Layout::new(vec![0, 1]).unwrap().is_row_major());
    }

    #[test]
    fn layouts_are_written_as_xla_writes_them() {
        assert_eq!(Layout::row_major(0).to_string(), "{}");
        assert_eq!(Layout::row_major(3).to_string(), "{2,1,0}");
        let tiled = Layout::row_major(2).with_tiles(vec![vec![8, 128], vec![2, 1]]);
        assert_eq!(tiled.to_string(), "{1,0:T(8,128)(2,1)}");
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        assert_eq!(dense_size(&[2, 3], 4).unwrap(), 24);
        assert_eq!(dense_size(&[], 4).unwrap(), 4);
        assert_eq!(dense_size(&[i64::MAX, 0, i64::MAX], 4).unwrap(), 0);
        assert!(dense_size(&[i64::MAX, 2], 4).is_err());
        assert!(dense_size(&[-1], 4).is_err());
    }
}
