//! How the elements of an array follow each other in memory.

use std::fmt;

use crate::error::{Error, Result};

/// The order of an array's dimensions in memory, from the fastest changing to the slowest, and how they are tiled.
///
/// Buffers are dense and row-major unless something says otherwise; a `Layout` is what a host asks for when it wants
/// something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    minor_to_major: Vec<usize>,
    tiles: Vec<Vec<i64>>,
}

impl Layout {
    /// A layout without tiles.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if `minor_to_major` is not a permutation of the dimensions' numbers.
    pub fn new(minor_to_major: Vec<usize>) -> Result<Self> {
        let mut seen = vec![false; minor_to_major.len()];
        for dimension in &minor_to_major {
            match seen.get_mut(*dimension) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    return Err(Error::invalid_argument(format!(
                        "minor_to_major {minor_to_major:?} is not a permutation of the dimensions"
                    )));
                }
            }
        }
        Ok(Self { minor_to_major, tiles: Vec::new() })
    }

    /// The row-major layout of an array of this rank.
    #[must_use]
    pub fn row_major(rank: usize) -> Self {
        Self { minor_to_major: (0..rank).rev().collect(), tiles: Vec::new() }
    }

    /// The same order with tiles, from the outermost to the innermost.
    #[must_use]
    pub fn with_tiles(mut self, tiles: Vec<Vec<i64>>) -> Self {
        self.tiles = tiles;
        self
    }

    /// The dimensions, from the fastest changing to the slowest.
    #[must_use]
    pub fn minor_to_major(&self) -> &[usize] {
        &self.minor_to_major
    }

    /// The tiles, from the outermost to the innermost; none as a rule.
    #[must_use]
    pub fn tiles(&self) -> &[Vec<i64>] {
        &self.tiles
    }

    /// Whether it is row-major without tiles.
    #[must_use]
    pub fn is_row_major(&self) -> bool {
        self.tiles.is_empty() && self.minor_to_major.iter().rev().copied().eq(0..self.minor_to_major.len())
    }

    /// The byte strides of a dense array of these dimensions in this order, tiles aside.
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
    /// XLA's text: `{1,0}`, or `{1,0:T(8,128)(2,1)}` with tiles.
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

/// The byte strides of a dense row-major array.
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

/// How many bytes a dense array takes.
///
/// # Errors
///
/// INVALID_ARGUMENT if a dimension is negative or the size does not fit into memory.
#[inline]
pub fn dense_size(dims: &[i64], element_size: usize) -> Result<usize> {
    let size = dims.iter().try_fold(1_usize, |size, dim| size.checked_mul(usize::try_from(*dim).ok()?));
    match size.and_then(|size| size.checked_mul(element_size)) {
        Some(size) if isize::try_from(size).is_ok() => Ok(size),
        // A dimension of zero makes an array of nothing, however large the others are.
        _ if dims.contains(&0) && dims.iter().all(|dim| *dim >= 0) => Ok(0),
        _ => Err(no_size(dims)),
    }
}

#[cold]
fn no_size(dims: &[i64]) -> Error {
    Error::invalid_argument(format!("an array of dimensions {dims:?} has no size in memory"))
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
