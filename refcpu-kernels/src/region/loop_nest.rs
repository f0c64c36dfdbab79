//! The loops over an iteration space: rows, which are divided into tiles.

use super::Access;

/// The number of elements that pass through all operations at a time.
const TILE: usize = 512;
/// The number of elements of a tile of code whose values need no memory.
const ROW_TILE: usize = 4096;
/// The minimum length of rows for which kernels are called per row. If rows are shorter, tiles span several
/// rows.
const SHORT_ROW: usize = 64;
/// The minimum number of elements of a reduction for which rows are reduced one at a time. If there are
/// fewer, several rows are reduced together.
const SHORT_REDUCTION: usize = 64;

/// The loops: rows of `row_len` elements, each of which is divided into tiles.
#[derive(Clone, Debug)]
pub(super) struct LoopNest {
    /// The sizes of the loops that count rows.
    pub(super) outer: Vec<usize>,
    /// The sizes of the loops within a row.
    pub(super) inner: Vec<usize>,
    /// The innermost dimension that each loop traverses, of the outer and then of the inner loops.
    dims: Vec<usize>,
    pub(super) rows: usize,
    pub(super) row_len: usize,
    /// The number of elements of each row of a full tile.
    pub(super) tile: usize,
    /// The number of rows of a full tile. If there are several, a tile contains whole rows.
    pub(super) tile_rows: usize,
    pub(super) tiles_per_row: usize,
    /// The capacity of a register tile in elements: a multiple of 64, so that all registers are aligned.
    pub(super) capacity: usize,
    /// The length of the runs if reductions are over short runs, of which a tile contains many; otherwise
    /// zero.
    pub(super) segment: usize,
}

/// A loop over adjacent dimensions.
struct Loop {
    size: usize,
    /// The innermost of the dimensions, whose strides are those of the loop.
    dim: usize,
}

/// A loop of a [`LoopNest`], by its number among the outer or the inner loops.
pub(super) enum LoopIndex {
    Outer(usize),
    Inner(usize),
}

impl LoopNest {
    /// Divides the iteration space `dims` into rows and tiles. `trailing` is the number of trailing dimensions
    /// that reductions remove, `accesses` are the accesses to the inputs, and `iotas` are the dimensions whose
    /// coordinates the region uses.
    pub(super) fn new(
        dims: &[usize],
        trailing: Option<usize>,
        accesses: &[&Access],
        iotas: &[usize],
    ) -> LoopNest {
        let boundary = dims.len() - trailing.unwrap_or(0);
        let reduced: usize = dims[boundary..].iter().product();
        let segment = if trailing.is_some() && reduced <= SHORT_REDUCTION { reduced } else { 0 };
        let by_rows = trailing.is_some() && segment == 0;
        let loops = merged(dims, by_rows.then_some(boundary), accesses, iotas);
        let split = if by_rows {
            loops.iter().filter(|l| l.dim < boundary).count()
        } else if segment == 0 && loops.len() > 1 && loops[loops.len() - 1].size >= SHORT_ROW {
            loops.len() - 1
        } else {
            0
        };
        let sizes = |loops: &[Loop]| loops.iter().map(|l| l.size).collect::<Vec<_>>();
        let (outer, inner) = (sizes(&loops[..split]), sizes(&loops[split..]));
        let row_len: usize = inner.iter().product();
        let tile = match TILE.checked_div(segment) {
            Some(segments) => (segments * segment).min(row_len),
            None => {
                // The tiles of a row have equal sizes, in whole cache lines.
                let tiles = row_len.div_ceil(TILE).max(1);
                row_len.div_ceil(tiles).next_multiple_of(64).min(TILE)
            }
        };
        let tile = tile.max(1);
        LoopNest {
            rows: outer.iter().product(),
            outer,
            inner,
            dims: loops.iter().map(|l| l.dim).collect(),
            row_len,
            tile,
            tile_rows: 1,
            tiles_per_row: row_len.div_ceil(tile),
            capacity: tile.next_multiple_of(64),
            segment,
        }
    }

    /// Divides the iteration space `dims` into rows along the innermost dimension, and into tiles of several rows, for code whose
    /// values need no memory.
    pub(super) fn of_rows(dims: &[usize], accesses: &[&Access]) -> LoopNest {
        let loops = merged(dims, None, accesses, &[]);
        let split = loops.len().saturating_sub(1);
        let sizes = |loops: &[Loop]| loops.iter().map(|l| l.size).collect::<Vec<_>>();
        let (outer, inner) = (sizes(&loops[..split]), sizes(&loops[split..]));
        let rows = outer.iter().product();
        let row_len: usize = inner.iter().product();
        let tile = row_len.div_ceil(row_len.div_ceil(ROW_TILE).max(1)).next_multiple_of(64);
        let fitting = (ROW_TILE / row_len.max(1)).clamp(1, outer.last().copied().unwrap_or(1));
        let tile_rows = match outer[..] {
            [] | [_] => fitting,
            // The rows of a tile are at equal distances.
            [.., last] => (1..=fitting).rev().find(|n| last % n == 0).unwrap_or(1),
        };
        let tile = tile.min(row_len).max(1);
        let tiles_per_row = row_len.div_ceil(tile);
        let dims = loops.iter().map(|l| l.dim).collect();
        LoopNest {
            outer,
            inner,
            dims,
            rows,
            row_len,
            tile,
            tile_rows,
            tiles_per_row,
            capacity: 0,
            segment: 0,
        }
    }

    /// Returns the numbers of rows and the lengths of tiles: those of full ones, and those of the last ones.
    pub(super) fn tile_sizes(&self) -> Vec<(usize, usize)> {
        let lengths = [self.tile.min(self.row_len), self.row_len % self.tile];
        let rows = [self.tile_rows, self.rows % self.tile_rows];
        let sizes = rows.into_iter().flat_map(|r| lengths.map(|n| (r, n)));
        sizes.filter(|(rows, n)| *rows > 0 && *n > 0).collect()
    }

    /// Returns the number of tiles of all rows.
    pub(super) fn tiles(&self) -> usize {
        self.rows.div_ceil(self.tile_rows) * self.tiles_per_row
    }

    /// Returns the strides of an access along the outer and along the inner loops.
    pub(super) fn strides(&self, access: &Access) -> (Vec<isize>, Vec<isize>) {
        let strides = |dims: &[usize]| dims.iter().map(|d| access.strides[*d]).collect();
        let (outer, inner) = self.dims.split_at(self.outer.len());
        (strides(outer), strides(inner))
    }

    /// Returns the loop over a dimension that is not merged with others, or `None` if its size is 1.
    pub(super) fn loop_over(&self, dim: usize) -> Option<LoopIndex> {
        let index = self.dims.iter().position(|d| *d == dim)?;
        Some(match index.checked_sub(self.outer.len()) {
            None => LoopIndex::Outer(index),
            Some(inner) => LoopIndex::Inner(inner),
        })
    }
}

/// Returns the loops over the dimensions whose size is not 1. Adjacent dimensions are merged if every access
/// traverses them as one, no iota is along one of them, and `boundary` does not separate them.
fn merged(dims: &[usize], boundary: Option<usize>, accesses: &[&Access], iotas: &[usize]) -> Vec<Loop> {
    let mut loops: Vec<Loop> = vec![];
    for (dim, &size) in dims.iter().enumerate().filter(|(_, size)| **size != 1) {
        let merges = |outer: &Loop| {
            boundary.is_none_or(|b| (outer.dim < b) == (dim < b))
                && !iotas.contains(&outer.dim)
                && !iotas.contains(&dim)
                && accesses
                    .iter()
                    .all(|a| a.strides[dim].checked_mul(size as isize) == Some(a.strides[outer.dim]))
        };
        match loops.last_mut() {
            Some(outer) if merges(outer) => *outer = Loop { size: outer.size * size, dim },
            _ => loops.push(Loop { size, dim }),
        }
    }
    loops
}
