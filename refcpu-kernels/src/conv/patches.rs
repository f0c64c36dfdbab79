//! The input of a convolution as a matrix with one row per output position, and one column per kernel element
//! and input feature. The matrix is never stored as a whole; blocks of it are copied when the matrix product
//! needs them.

use super::spec::{Sizes, stride};
use crate::dot::{Left, Right, pad, panels};
use crate::number::{Accumulator, Load};
use crate::window::Axis;
use std::ops::Range;

/// The offset of positions in padding or holes.
const NOWHERE: usize = usize::MAX;
/// The maximum number of spatial dimensions.
pub(super) const MAX_SPATIAL: usize = 16;

/// A spatial dimension.
#[derive(Clone, Debug)]
struct Spatial {
    /// The offset in the input for each kernel element and output position: `[kernel][output]`.
    offsets: Vec<usize>,
    outputs: usize,
    /// For each kernel element, the output positions with the offsets `first + o * step`, if all other
    /// positions are nowhere.
    lines: Option<Vec<Line>>,
    step: usize,
    /// For each kernel element, the difference of its offset from that of the first one (modulo the address
    /// space) ...
    relative: Vec<usize>,
    /// ... at these output positions.
    regular: Vec<bool>,
}

/// The output positions at which a kernel element is over an element of the input.
#[derive(Clone, Copy, Debug)]
struct Line {
    from: usize,
    to: usize,
    /// The offset of output position `from`.
    offset: usize,
}

impl Spatial {
    fn new(axis: &Axis, reversed: bool, stride: usize) -> Self {
        let mut offsets = Vec::with_capacity(axis.size * axis.outputs);
        for k in 0..axis.size {
            let k = if reversed { axis.size - 1 - k } else { k };
            offsets.extend((0..axis.outputs).map(|o| axis.position(o, k).map_or(NOWHERE, |i| i * stride)));
        }
        let step = axis.stride * stride;
        let lines = offsets
            .chunks(axis.outputs.max(1))
            .map(|row| {
                let from = row.iter().position(|o| *o != NOWHERE).unwrap_or(0);
                let to = row.iter().rposition(|o| *o != NOWHERE).map_or(0, |last| last + 1);
                let straight = (from..to).all(|o| row[o] == row[from] + (o - from) * step);
                straight.then(|| Line { from, to, offset: if from < to { row[from] } else { 0 } })
            })
            .collect();
        let row = |o: usize| offsets.iter().skip(o).step_by(axis.outputs.max(1)).copied();
        let whole = |o: usize| row(o).all(|at| at != NOWHERE);
        let distances = |o: usize| row(o).map(|at| at.wrapping_sub(offsets[o])).collect::<Vec<_>>();
        let relative = (0..axis.outputs).find(|o| whole(*o)).map(distances).unwrap_or_default();
        let regular = (0..axis.outputs).map(|o| whole(o) && distances(o) == relative).collect();
        Self { offsets, outputs: axis.outputs, lines, step, relative, regular }
    }

    #[inline(always)]
    fn offset(&self, kernel: usize, output: usize) -> usize {
        self.offsets[kernel * self.outputs + output]
    }
}

/// The meaning of an index dimension of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    /// The batch (rows) or the input features (columns).
    Channel,
    /// The output positions (rows) or kernel elements (columns) of this spatial dimension.
    Spatial(usize),
}

/// The dimensions and offsets of the matrix.
#[derive(Clone, Debug)]
pub(super) struct PatchLayout {
    spatial: Vec<Spatial>,
    /// Stride of the input's batch dimension.
    batch_stride: usize,
    /// Stride of the input's feature dimension.
    feature_stride: usize,
    /// The dimensions of the rows with their sizes, outermost first. Those before `fixed` belong to the batch
    /// of products.
    rows: Vec<(Over, usize)>,
    /// The number of row dimensions that are fixed for each member of the batch of products.
    fixed: usize,
    /// The dimensions of the columns with their sizes, outermost first.
    cols: Vec<(Over, usize)>,
    /// The distance between the inputs of groups, in elements.
    group_stride: usize,
    /// The number of products per group.
    per_group: usize,
    /// For each column, the distance of its element from that of the first column, in rows at regular
    /// positions. Empty if there are none, or if there are too many columns.
    columns: Vec<usize>,
}

/// The maximum number of columns whose offsets are stored.
const KEPT_COLUMNS: usize = 1 << 16;

impl PatchLayout {
    /// Creates the layout. `rows` and `cols` are in the order of the matrix; the first `fixed` row dimensions
    /// belong to the batch.
    pub(super) fn new(
        sizes: &Sizes<'_>,
        rows: Vec<(Over, usize)>,
        fixed: usize,
        cols: Vec<(Over, usize)>,
        group_stride: usize,
    ) -> Self {
        let Sizes { spec, input, ref axes, .. } = *sizes;
        assert!(
            axes.len() <= MAX_SPATIAL,
            "a convolution has at most 16 spatial dimensions, but this one has {}",
            axes.len()
        );
        let spatial = axes
            .iter()
            .zip(&spec.input_spatial)
            .zip(&spec.reversal)
            .map(|((axis, d), reversed)| Spatial::new(axis, *reversed, stride(input, *d)))
            .collect::<Vec<_>>();
        let feature_stride = stride(input, spec.input_feature);
        Self {
            columns: columns(&cols, &spatial, feature_stride),
            spatial,
            batch_stride: stride(input, spec.input_batch),
            feature_stride,
            per_group: rows[..fixed].iter().map(|r| r.1).product(),
            rows,
            fixed,
            cols,
            group_stride,
        }
    }

    /// Returns `true` if neighboring rows of the matrix, instead of neighboring columns, are adjacent in
    /// memory.
    fn rows_adjacent(&self) -> bool {
        let Some((over, _)) = self.rows[self.fixed..].iter().rfind(|r| r.1 > 1) else { return false };
        if self.feature_stride == 1 && self.cols.iter().any(|c| *c == (Over::Channel, c.1) && c.1 > 1) {
            return false;
        }
        match over {
            Over::Channel => self.batch_stride == 1,
            Over::Spatial(d) => self.spatial[*d].step == 1,
        }
    }

    /// Splits a flat index into the indices of the channel and of the spatial dimensions.
    #[inline(always)]
    fn split(dims: &[(Over, usize)], mut i: usize, at: &mut At) {
        for (over, size) in dims.iter().rev() {
            let here = i % size;
            i /= size;
            match over {
                Over::Channel => at.channel = here,
                Over::Spatial(d) => at.spatial[*d] = here,
            }
        }
    }

    /// Returns the offset of the elements for kernel element `k` and output position `o`, beginning with
    /// `offset`, without the dimension `inner`. Returns [`NOWHERE`] if they are in padding or holes.
    #[inline(always)]
    fn offset_outside(&self, mut offset: usize, inner: Over, k: &At, o: &At) -> usize {
        for (d, spatial) in self.spatial.iter().enumerate() {
            if inner != Over::Spatial(d) {
                match spatial.offset(k.spatial[d], o.spatial[d]) {
                    NOWHERE => return NOWHERE,
                    here => offset += here,
                }
            }
        }
        offset
    }

    /// Divides rows into segments that differ only in the innermost row dimension.
    fn segments(&self, rows: Range<usize>, fixed: At) -> Vec<Segment> {
        let dims = &self.rows[self.fixed..];
        let inner_size = dims.last().map_or(1, |d| d.1);
        let mut segments = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let mut at = fixed;
            Self::split(dims, row, &mut at);
            let len = (inner_size - row % inner_size).min(rows.end - row);
            segments.push(Segment { start: row - rows.start, len, at });
            row += len;
        }
        segments
    }

    /// Returns the runs of adjacent elements in rows at regular positions. There are none if the distances of
    /// the columns are not known.
    fn regular_runs(&self, cols: Range<usize>) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for (place, distance) in self.columns.get(cols).unwrap_or_default().iter().enumerate() {
            match runs.last_mut() {
                Some(r) if r.distance.wrapping_add(r.len) == *distance => r.len += 1,
                _ => runs.push(Run { place, len: 1, distance: *distance }),
            }
        }
        runs
    }

    /// Returns the row indices that member `batch` of the products fixes, and the offset of its group.
    fn member(&self, batch: usize) -> (At, usize) {
        let mut at = At::default();
        Self::split(&self.rows[..self.fixed], batch % self.per_group, &mut at);
        (at, batch / self.per_group * self.group_stride)
    }
}

/// Returns the distance of each column's element from that of the first column; see [`PatchLayout::columns`].
fn columns(dims: &[(Over, usize)], spatial: &[Spatial], feature_stride: usize) -> Vec<usize> {
    let count = dims.iter().try_fold(1usize, |n, (_, size)| n.checked_mul(*size));
    let irregular = |s: &Spatial| s.relative.is_empty();
    if count.is_none_or(|n| n > KEPT_COLUMNS) || spatial.iter().any(irregular) {
        return Vec::new();
    }
    let mut columns = vec![0usize];
    for (over, size) in dims {
        let step = |k: usize| match over {
            Over::Channel => k * feature_stride,
            Over::Spatial(d) => spatial[*d].relative[k],
        };
        columns = columns
            .iter()
            .flat_map(|c| (0..*size).map(move |k| (*c, k)))
            .map(|(c, k)| c.wrapping_add(step(k)))
            .collect();
    }
    columns
}

/// Columns of a block whose elements are also adjacent in memory.
struct Run {
    /// The first column within the block.
    place: usize,
    len: usize,
    /// The distance from the element of the first of all columns.
    distance: usize,
}

/// An index of rows or columns, split by dimension.
#[derive(Clone, Copy, Debug, Default)]
struct At {
    channel: usize,
    spatial: [usize; MAX_SPATIAL],
}

/// Neighboring rows of a block that differ only in the innermost row dimension.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The first row within the block.
    start: usize,
    len: usize,
    at: At,
}

/// The matrix of a convolution's input.
pub(super) struct Patches<'a, T> {
    /// The first element of the input.
    pub ptr: *const T,
    pub layout: &'a PatchLayout,
}

// SAFETY: the array behind the pointer is only read, and the creator of a `Patches` keeps it readable while
// it is used.
unsafe impl<T: Send + Sync> Sync for Patches<'_, T> {}

impl<T: Copy> Patches<'_, T> {
    /// Copies a block with the elements of a column adjacent: column `j` of the block goes to `dst + j *
    /// width`.
    ///
    /// # Safety
    /// The ranges must be within the matrix, and `dst` writable.
    unsafe fn by_columns<U: Accumulator>(
        &self,
        batch: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        width: usize,
        dst: *mut U,
    ) where
        T: Load<U>,
    {
        let l = self.layout;
        let (fixed, group) = l.member(batch);
        let inner = l.rows[l.fixed..].last().map_or(Over::Channel, |d| d.0);
        let segments = l.segments(rows, fixed);
        let mut k = At::default();
        for (j, col) in cols.enumerate() {
            PatchLayout::split(&l.cols, col, &mut k);
            let to = dst.wrapping_add(j * width);
            for s in &segments {
                let base = group + k.channel * l.feature_stride + s.at.channel * l.batch_stride;
                let offset = l.offset_outside(base, inner, &k, &s.at);
                // SAFETY: offsets other than `NOWHERE` are those of elements of the input, and the segment
                // lies within the block.
                unsafe {
                    let to = to.add(s.start);
                    match inner {
                        _ if offset == NOWHERE => zero(to, s.len),
                        Over::Channel => copy(self.ptr.add(offset), l.batch_stride, s.len, to),
                        Over::Spatial(d) => {
                            let first = s.at.spatial[d];
                            self.copy_positions(
                                &l.spatial[d],
                                offset,
                                k.spatial[d],
                                first..first + s.len,
                                to,
                            );
                        }
                    }
                }
            }
        }
    }

    /// Copies the elements for kernel element `k` and adjacent output positions of a spatial dimension.
    /// `offset` is that of the other dimensions.
    ///
    /// # Safety
    /// The elements must be within the matrix, and `to` writable for them.
    #[inline(always)]
    unsafe fn copy_positions<U: Accumulator>(
        &self,
        spatial: &Spatial,
        offset: usize,
        k: usize,
        positions: Range<usize>,
        to: *mut U,
    ) where
        T: Load<U>,
    {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if let Some(lines) = &spatial.lines {
                let line = lines[k];
                let from = line.from.clamp(positions.start, positions.end);
                let end = line.to.clamp(from, positions.end);
                let (before, len) = (from - positions.start, end - from);
                let first = line.offset + from.saturating_sub(line.from) * spatial.step;
                zero(to, before);
                copy(self.ptr.wrapping_add(offset + first), spatial.step, len, to.add(before));
                zero(to.add(before + len), positions.end - end);
            } else {
                for (i, o) in positions.enumerate() {
                    *to.add(i) = match spatial.offset(k, o) {
                        NOWHERE => U::ZERO,
                        at => (*self.ptr.add(offset + at)).load(),
                    };
                }
            }
        }
    }

    /// Copies a block so that the elements of a row are adjacent.
    ///
    /// # Safety
    /// The ranges must be within the matrix, and `dst` writable for the product of their lengths.
    unsafe fn by_rows<U: Accumulator>(
        &self,
        batch: usize,
        rows: Range<usize>,
        cols: Range<usize>,
        dst: *mut U,
    ) where
        T: Load<U>,
    {
        let l = self.layout;
        let (mut at, group) = l.member(batch);
        let regular = l.regular_runs(cols.clone());
        for (i, row) in rows.enumerate() {
            PatchLayout::split(&l.rows[l.fixed..], row, &mut at);
            let base = group + at.channel * l.batch_stride;
            let to = dst.wrapping_add(i * cols.len());
            let positions = || l.spatial.iter().zip(at.spatial);
            if regular.is_empty() || !positions().all(|(s, o)| s.regular[o]) {
                // SAFETY: guaranteed by the caller.
                unsafe { self.copy_row(base, &at, cols.clone(), to) };
                continue;
            }
            let first = positions().fold(base, |at, (s, o)| at + s.offset(0, o));
            for r in &regular {
                // SAFETY: at regular positions, all kernel elements are over elements of the input, at these
                // distances from that of the first column. The run lies within the block.
                unsafe {
                    let from = self.ptr.wrapping_add(first.wrapping_add(r.distance));
                    copy(from, 1, r.len, to.add(r.place));
                }
            }
        }
    }

    /// Copies columns of the row for output position `o`. `base` is the offset of its member of the batch.
    ///
    /// # Safety
    /// The columns must be within the matrix, and `to` writable for them.
    #[inline(always)]
    unsafe fn copy_row<U: Accumulator>(&self, base: usize, o: &At, cols: Range<usize>, to: *mut U)
    where
        T: Load<U>,
    {
        let l = self.layout;
        let (inner, inner_size) = l.cols.last().copied().unwrap_or((Over::Channel, 1));
        let mut k = At::default();
        let mut col = cols.start;
        // A run of columns that are also adjacent in memory and have not been copied yet: first column,
        // length, offset.
        let (mut run, mut run_at, mut run_from) = (0, 0, 0);
        let flush = |run: usize, run_at: usize, run_from: usize| {
            // SAFETY: a run consists of columns of this row whose elements are consecutive in the input.
            unsafe { copy(self.ptr.wrapping_add(run_from), 1, run, to.add(run_at)) };
        };
        while col < cols.end {
            PatchLayout::split(&l.cols, col, &mut k);
            let len = (inner_size - col % inner_size).min(cols.end - col);
            let offset = l.offset_outside(base + k.channel * l.feature_stride, inner, &k, o);
            let place = col - cols.start;
            // SAFETY: offsets other than `NOWHERE` are those of elements of the input; the columns lie within
            // the block.
            unsafe {
                match inner {
                    _ if offset == NOWHERE => zero(to.add(place), len),
                    Over::Channel if l.feature_stride == 1 => {
                        if run_at + run == place && run_from + run == offset && run > 0 {
                            run += len;
                        } else {
                            flush(run, run_at, run_from);
                            (run, run_at, run_from) = (len, place, offset);
                        }
                    }
                    Over::Channel => copy(self.ptr.add(offset), l.feature_stride, len, to.add(place)),
                    Over::Spatial(d) => {
                        let spatial = &l.spatial[d];
                        for j in 0..len {
                            *to.add(place + j) = match spatial.offset(k.spatial[d] + j, o.spatial[d]) {
                                NOWHERE => U::ZERO,
                                o => (*self.ptr.add(offset + o)).load(),
                            };
                        }
                    }
                }
            }
            col += len;
        }
        flush(run, run_at, run_from);
    }
}

/// Writes `n` zeros.
///
/// # Safety
/// `n` elements at `to` must be writable.
#[inline(always)]
unsafe fn zero<U: Accumulator>(to: *mut U, n: usize) {
    // SAFETY: guaranteed by the caller.
    (0..n).for_each(|i| unsafe { *to.add(i) = U::ZERO });
}

/// Copies `n` elements that are `stride` apart.
///
/// # Safety
/// These elements must be readable, and `n` elements at `to` writable.
#[inline(always)]
unsafe fn copy<U, T: Load<U>>(from: *const T, stride: usize, n: usize, to: *mut U) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        if stride == 1 {
            for i in 0..n {
                *to.add(i) = (*from.add(i)).load();
            }
        } else {
            for i in 0..n {
                *to.add(i) = (*from.add(i * stride)).load();
            }
        }
    }
}

impl<U: Accumulator, T: Load<U>> Left<U> for Patches<'_, T> {
    fn direct(&self, _batch: usize) -> Option<(*const U, usize, usize)> {
        None
    }

    fn batch_stride(&self) -> Option<usize> {
        None
    }

    unsafe fn pack(
        &self,
        batch: usize,
        rows: Range<usize>,
        depth: Range<usize>,
        dst: *mut U,
    ) -> (usize, usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.layout.rows_adjacent() {
                let width = rows.len();
                self.by_columns(batch, rows, depth, width, dst);
                (1, width)
            } else {
                let width = depth.len();
                self.by_rows(batch, rows, depth, dst);
                (width, 1)
            }
        }
    }
}

impl<U: Accumulator, T: Load<U>> Right<U> for Patches<'_, T> {
    fn direct(&self, _batch: usize) -> Option<(*const U, usize)> {
        None
    }

    fn batch_stride(&self) -> Option<usize> {
        None
    }

    unsafe fn pack(&self, batch: usize, depth: Range<usize>, cols: Range<usize>, lanes: usize, dst: *mut U) {
        for (first, count) in panels(cols.len().div_ceil(lanes)) {
            let from = cols.start + first * lanes;
            let some = from..cols.end.min(from + count * lanes);
            let to = dst.wrapping_add(first * lanes * depth.len());
            // SAFETY: guaranteed by the caller: panels are consecutive, each with its width per depth.
            unsafe { self.by_columns(batch, some, depth.clone(), count * lanes, to) };
        }
        // SAFETY: as above.
        unsafe { pad(cols.len(), depth.len(), lanes, dst) };
    }
}
