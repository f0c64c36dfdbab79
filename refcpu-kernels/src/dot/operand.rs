//! The operands of a matrix product as the driver sees them: matrices whose elements are addressed by
//! offsets. They are converted and packed block by block if the inner kernel cannot read them in place.

use super::kernel::panels;
use crate::few::Few;
use crate::number::{Accumulator, Load};
use std::ops::Range;

/// The offsets of the indices of one side of a matrix, in elements.
#[derive(Clone, Debug)]
pub(crate) enum Index {
    /// The offset is the index times the stride.
    Uniform(usize),
    /// There is one offset per index. Aligned groups of `run` indices are adjacent in memory.
    Table {
        /// The offsets.
        offsets: Vec<usize>,
        /// The length of the groups.
        run: usize,
    },
}

impl Index {
    /// Creates an index over dimensions with these sizes and strides, outermost first.
    pub(crate) fn new(dims: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let mut merged: Few<(usize, usize)> = Few::new();
        for (size, stride) in dims {
            match merged.last_mut() {
                _ if size == 1 => {}
                Some(last) if last.1 == size * stride => *last = (last.0 * size, stride),
                _ => merged.push((size, stride)),
            }
        }
        match merged[..] {
            [] => Self::Uniform(1),
            [(_, stride)] => Self::Uniform(stride),
            [.., (size, stride)] => {
                let mut offsets = vec![0];
                for (size, stride) in &merged {
                    offsets = offsets.iter().flat_map(|o| (0..*size).map(move |i| o + i * stride)).collect();
                }
                Self::Table { offsets, run: if stride == 1 { size } else { 1 } }
            }
        }
    }

    /// Returns the offset of index `i`.
    #[inline(always)]
    pub(crate) fn at(&self, i: usize) -> usize {
        match self {
            Self::Uniform(stride) => i * stride,
            Self::Table { offsets, .. } => offsets[i],
        }
    }

    /// Returns the stride, if there is one.
    pub(crate) fn stride(&self) -> Option<usize> {
        match self {
            Self::Uniform(stride) => Some(*stride),
            Self::Table { .. } => None,
        }
    }

    /// Returns the number of indices from `i` that are adjacent in memory.
    #[inline(always)]
    fn run_from(&self, i: usize) -> usize {
        match self {
            Self::Uniform(1) => usize::MAX,
            Self::Uniform(_) => 1,
            Self::Table { run, .. } => run - i % run,
        }
    }

    fn has_runs(&self) -> bool {
        self.run_from(0) > 1
    }
}

/// The left operand of a batch of matrix products: a matrix of rows by depth.
pub(crate) trait Left<U>: Sync {
    /// Returns the matrix of one member of the batch in place, with the strides of rows and depth, if its
    /// elements are units at uniform strides.
    fn direct(&self, batch: usize) -> Option<(*const U, usize, usize)>;

    /// Returns the distance between members of the batch, if it is uniform.
    fn batch_stride(&self) -> Option<usize>;

    /// Copies a block and returns its strides of rows and depth.
    ///
    /// # Safety
    /// The indices must be in range, and `dst` writable for the product of the ranges' lengths.
    unsafe fn pack(
        &self,
        batch: usize,
        rows: Range<usize>,
        depth: Range<usize>,
        dst: *mut U,
    ) -> (usize, usize);
}

/// The right operand of a batch of matrix products: a matrix of depth by columns.
pub(crate) trait Right<U>: Sync {
    /// Returns the matrix of one member of the batch in place, with the stride of depth, if its rows are
    /// contiguous units.
    fn direct(&self, batch: usize) -> Option<(*const U, usize)>;

    /// Returns the distance between members of the batch, if it is uniform.
    fn batch_stride(&self) -> Option<usize>;

    /// Copies columns to the panels into which [`panels`] divides them, in vectors of `lanes`: for each panel
    /// and each depth, its columns. The last panel is padded with zeros.
    ///
    /// # Safety
    /// The indices must be in range, and `dst` writable for the columns rounded up to whole vectors, per
    /// depth.
    unsafe fn pack(&self, batch: usize, depth: Range<usize>, cols: Range<usize>, lanes: usize, dst: *mut U);
}

/// A batch of matrices in an array.
pub(crate) struct Matrices<'a, T> {
    /// The first element of the array.
    pub ptr: *const T,
    /// The offsets of the members of the batch.
    pub batch: &'a Index,
    /// The offsets of the outer side: rows of a left operand, depth of a right one.
    pub outer: &'a Index,
    /// The offsets of the other side.
    pub inner: &'a Index,
}

// SAFETY: the array behind the pointer is only read, and the creator of a `Matrices` keeps it readable while
// it is used.
unsafe impl<T: Send + Sync> Sync for Matrices<'_, T> {}

/// Copies `outer` by `inner` elements to rows of `row` units.
///
/// # Safety
/// See the two `pack` functions.
unsafe fn copy_rows<U, T: Load<U>>(
    base: *const T,
    outer: (&Index, Range<usize>),
    inner: (&Index, Range<usize>),
    row: usize,
    dst: *mut U,
) {
    for (r, o) in outer.1.enumerate() {
        let from = base.wrapping_add(outer.0.at(o));
        let to = dst.wrapping_add(r * row);
        let mut i = inner.1.start;
        while i < inner.1.end {
            let run = inner.0.run_from(i).min(inner.1.end - i);
            let (from, to) = (from.wrapping_add(inner.0.at(i)), to.wrapping_add(i - inner.1.start));
            for j in 0..run {
                // SAFETY: the caller guarantees every index of the two ranges, and a run is adjacent in
                // memory.
                unsafe { *to.add(j) = (*from.add(j)).load() };
            }
            i += run;
        }
    }
}

/// Copies `outer` by `inner` elements, transposed, to rows of `row` units: one row per index of `inner`.
///
/// # Safety
/// See the two `pack` functions.
unsafe fn copy_columns<U, T: Load<U>>(
    base: *const T,
    outer: (&Index, Range<usize>),
    inner: (&Index, Range<usize>),
    row: usize,
    dst: *mut U,
) {
    // The size of blocks that stay in the first-level cache on both sides.
    const BLOCK: usize = 32;
    let mut start = inner.1.start;
    while start < inner.1.end {
        let mut run = inner.0.run_from(start).min(inner.1.end - start).min(BLOCK);
        if run < BLOCK {
            run = inner.0.run_from(start).min(inner.1.end - start);
        }
        let at = inner.0.at(start);
        for (c, o) in outer.1.clone().enumerate() {
            let from = base.wrapping_add(outer.0.at(o) + at);
            let to = dst.wrapping_add((start - inner.1.start) * row + c);
            for j in 0..run {
                // SAFETY: the caller guarantees every index of the two ranges, and a run is adjacent in
                // memory.
                unsafe { *to.add(j * row) = (*from.add(j)).load() };
            }
        }
        start += run;
    }
}

impl<U, T: Load<U>> Left<U> for Matrices<'_, T> {
    fn direct(&self, batch: usize) -> Option<(*const U, usize, usize)> {
        let strides = T::SAME.then(|| Some((self.outer.stride()?, self.inner.stride()?)))??;
        Some((self.ptr.wrapping_add(self.batch.at(batch)).cast(), strides.0, strides.1))
    }

    fn batch_stride(&self) -> Option<usize> {
        self.batch.stride()
    }

    unsafe fn pack(
        &self,
        batch: usize,
        rows: Range<usize>,
        depth: Range<usize>,
        dst: *mut U,
    ) -> (usize, usize) {
        let base = self.ptr.wrapping_add(self.batch.at(batch));
        let (m, k) = (rows.len(), depth.len());
        // SAFETY: guaranteed by the caller.
        unsafe {
            if self.outer.has_runs() && !self.inner.has_runs() {
                copy_rows(base, (self.inner, depth), (self.outer, rows), m, dst);
                (1, m)
            } else {
                copy_rows(base, (self.outer, rows), (self.inner, depth), k, dst);
                (k, 1)
            }
        }
    }
}

impl<U: Accumulator, T: Load<U>> Right<U> for Matrices<'_, T> {
    fn direct(&self, batch: usize) -> Option<(*const U, usize)> {
        let stride = T::SAME.then(|| self.outer.stride().filter(|_| self.inner.stride() == Some(1)))??;
        Some((self.ptr.wrapping_add(self.batch.at(batch)).cast(), stride))
    }

    fn batch_stride(&self) -> Option<usize> {
        self.batch.stride()
    }

    unsafe fn pack(&self, batch: usize, depth: Range<usize>, cols: Range<usize>, lanes: usize, dst: *mut U) {
        let base = self.ptr.wrapping_add(self.batch.at(batch));
        let by_columns = self.outer.has_runs() && !self.inner.has_runs();
        let all = || {
            panels(cols.len().div_ceil(lanes)).map(|(first, count)| {
                let from = cols.start + first * lanes;
                (
                    from..cols.end.min(from + count * lanes),
                    count * lanes,
                    dst.wrapping_add(first * lanes * depth.len()),
                )
            })
        };
        // SAFETY: guaranteed by the caller: panels are consecutive in `dst`, each with its width per depth.
        unsafe {
            if by_columns {
                for (cols, width, dst) in all() {
                    copy_columns(base, (self.inner, cols), (self.outer, depth.clone()), width, dst);
                }
            } else {
                // Whole rows are read instead of panels, because sequential reads are faster.
                for (i, k) in depth.clone().enumerate() {
                    for (cols, width, dst) in all() {
                        copy_rows(
                            base,
                            (self.outer, k..k + 1),
                            (self.inner, cols),
                            width,
                            dst.wrapping_add(i * width),
                        );
                    }
                }
            }
            pad(cols.len(), depth.len(), lanes, dst);
        }
    }
}

/// Writes the zeros after the columns of the last panel.
///
/// # Safety
/// See [`Right::pack`].
pub(crate) unsafe fn pad<U: Accumulator>(cols: usize, depth: usize, lanes: usize, dst: *mut U) {
    if cols.is_multiple_of(lanes) {
        return;
    }
    let Some((first, count)) = panels(cols.div_ceil(lanes)).last() else { return };
    let (width, used) = (count * lanes, cols - first * lanes);
    for k in 0..depth {
        for col in used..width {
            // SAFETY: the caller guarantees whole vectors per depth.
            unsafe { *dst.add(first * lanes * depth + k * width + col) = U::ZERO };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_dimensions_become_one_stride() {
        assert!(matches!(Index::new([(2, 12), (1, 99), (3, 4), (4, 1)]), Index::Uniform(1)));
        assert!(matches!(Index::new([(2, 12), (3, 4)]), Index::Uniform(4)));
        assert!(matches!(Index::new([]), Index::Uniform(1)));
        let Index::Table { offsets, run } = Index::new([(2, 100), (3, 1)]) else { panic!() };
        assert_eq!((offsets, run), (vec![0, 1, 2, 100, 101, 102], 3));
    }
}
