//! The passes over a matrix of which its reduction to a condensed form consists.
//!
//! Each step of a reduction subtracts a few outer products from the rest of the matrix, and needs the
//! products of the new rest with a vector from the left and from the right. A pass performs both for each row
//! while it is in the cache.

use super::matrix::Field;
use crate::isa::{Isa, multiversion};

/// The rows and columns of a matrix with contiguous rows that a pass works on.
#[derive(Clone, Copy)]
pub(super) struct Panel<T> {
    /// Its first element.
    pub(super) ptr: *mut T,
    /// The distance between rows, in elements.
    pub(super) stride: usize,
    /// The number of rows.
    pub(super) rows: usize,
    /// The number of columns.
    pub(super) columns: usize,
}

impl<T> Panel<T> {
    /// Returns the part of a matrix with rows of `stride` elements from row `i` and column `j` on.
    pub(super) fn new(matrix: &mut [T], stride: usize, i: usize, j: usize) -> Self {
        let rows = matrix.len() / stride.max(1);
        assert!(i <= rows && j <= stride);
        Self {
            ptr: matrix.as_mut_ptr().wrapping_add(i * stride + j),
            stride,
            rows: rows - i,
            columns: stride - j,
        }
    }
}

/// The matrix `columns[0] * rows[0] + columns[1] * rows[1]`, which a pass subtracts from the matrix.
#[derive(Clone, Copy)]
pub(super) struct Update<'a, T> {
    /// Two column vectors, as long as the matrix has rows.
    pub(super) columns: [&'a [T]; 2],
    /// Two row vectors, as long as the matrix has columns.
    pub(super) rows: [&'a [T]; 2],
}

/// Subtracts the update from each row, then adds `weights[row]` times the row to `sums`.
pub(super) fn update_and_sum<T: Field>(
    panel: Panel<T>,
    update: Update<'_, T>,
    weights: &[T],
    sums: &mut [T],
) {
    assert!(update.columns.iter().all(|c| c.len() == panel.rows) && weights.len() == panel.rows);
    assert!(update.rows.iter().all(|r| r.len() == panel.columns) && sums.len() == panel.columns);
    // SAFETY: `Panel::new` created the panel from a matrix that contains it; lengths are checked above.
    unsafe { update_and_sum_rows(panel, update, weights, sums) }
}

multiversion! {
    unsafe fn update_and_sum_rows<T: Field>(
        panel: Panel<T>,
        update: Update<'_, T>,
        weights: &[T],
        sums: &mut [T],
    ) = update_and_sum_body
}

#[inline(always)]
unsafe fn update_and_sum_body<I: Isa, T: Field>(
    panel: Panel<T>,
    update: Update<'_, T>,
    weights: &[T],
    sums: &mut [T],
) {
    let n = panel.columns;
    let (first, second, sums) = (&update.rows[0][..n], &update.rows[1][..n], &mut sums[..n]);
    for (i, w) in weights.iter().enumerate() {
        // SAFETY: guaranteed by the caller: row `i` has `n` elements.
        let row = unsafe { std::slice::from_raw_parts_mut(panel.ptr.add(i * panel.stride), n) };
        let (x, y) = (update.columns[0][i], update.columns[1][i]);
        for j in 0..n {
            let value = row[j] - x * first[j] - y * second[j];
            row[j] = value;
            sums[j] += *w * value;
        }
    }
}

/// Writes the products of the rows with `vector` to `out`.
pub(super) fn row_products<T: Field>(panel: Panel<T>, vector: &[T], out: &mut [T]) {
    assert!(vector.len() == panel.columns && out.len() == panel.rows);
    // SAFETY: `Panel::new` created the panel from a matrix that contains it; lengths are checked above.
    unsafe { row_products_of(panel, vector, out) }
}

multiversion! {
    unsafe fn row_products_of<T: Field>(panel: Panel<T>, vector: &[T], out: &mut [T]) = row_products_body
}

#[inline(always)]
unsafe fn row_products_body<I: Isa, T: Field>(panel: Panel<T>, vector: &[T], out: &mut [T]) {
    /// Partial sums, so that additions do not wait for each other.
    const LANES: usize = 16;
    let n = panel.columns;
    for (i, out) in out.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller: row `i` has `n` elements.
        let row = unsafe { std::slice::from_raw_parts(panel.ptr.add(i * panel.stride).cast_const(), n) };
        let mut lanes = [T::ZERO; LANES];
        let (rows, vectors) = (row.chunks_exact(LANES), vector.chunks_exact(LANES));
        let (row_tail, vector_tail) = (rows.remainder(), vectors.remainder());
        for (r, v) in rows.zip(vectors) {
            for l in 0..LANES {
                lanes[l] += r[l] * v[l];
            }
        }
        let tail = row_tail.iter().zip(vector_tail).fold(T::ZERO, |s, (r, v)| s + *r * *v);
        *out = lanes.into_iter().fold(tail, |s, v| s + v);
    }
}
