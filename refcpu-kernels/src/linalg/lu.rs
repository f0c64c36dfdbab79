//! LU factorizations with partial pivoting.

use super::matrix::{BatchIn, BatchOut, Field, Storage, View, for_each_matrix, subtract_product};
use super::triangular::solve;
use crate::view::SyncPtr;
use crate::{Dst, Pool, Src};

/// The number of columns that are factored one at a time.
const BASE: usize = 16;
/// The number of columns that are updated at a time.
const STRIP: usize = 64;

/// Factors each matrix as LAPACK's `getrf`: both factors in one matrix, the rows that were swapped (from 0),
/// and the resulting permutation of rows.
pub(super) fn run<S: Storage>(pool: &Pool, input: Src<'_>, w: &mut [Dst<'_>]) {
    let &[.., m, n] = input.dims() else { panic!("lu: {:?} is not a matrix", input.dims()) };
    let k = m.min(n);
    let [out, pivots, permutation] = w else { panic!("lu: three results, not {}", w.len()) };
    let count = out.dims().iter().rev().skip(2).product();
    let (from, to) = (BatchIn::<S>::new(&input, m * n), BatchOut::<S>::new(out, m * n));
    let (pivots, permutation) = (IndexRows::new(pivots, k, count), IndexRows::new(permutation, m, count));
    for_each_matrix(pool, count, m * n * k, &|range, pool| {
        let (mut a, mut swaps) = (vec![S::Number::ZERO; m * n], vec![0; k]);
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`; each index belongs
            // to one chunk.
            unsafe {
                from.load(index, &mut a);
                factor(pool, View::dense(a.as_mut_ptr(), n), (m, n), &mut swaps);
                to.store(index, &a);
                pivots.row(index).copy_from_slice(&swaps);
                permute(&swaps, permutation.row(index));
            }
        }
    });
}

/// Computes the permutations that result from rows of swaps.
pub(super) fn run_permutation(pool: &Pool, pivots: Src<'_>, w: &mut [Dst<'_>]) {
    let [out] = w else { panic!("pivots_to_permutation: one result, not {}", w.len()) };
    let (k, m) = (pivots.dims()[pivots.dims().len() - 1], out.dims()[out.dims().len() - 1]);
    let count = out.dims().iter().rev().skip(1).product();
    let out = IndexRows::new(out, m, count);
    let pivots = pivots.as_slice::<i32>();
    for_each_matrix(pool, count, 4 * m, &|range, _| {
        for index in range {
            // SAFETY: the result lives in the calling frame; each index belongs to one chunk.
            permute(&pivots[index * k..(index + 1) * k], unsafe { out.row(index) });
        }
    });
}

/// Applies the swaps of rows to the numbers from 0. Swaps with rows that do not exist are ignored.
fn permute(swaps: &[i32], out: &mut [i32]) {
    for (i, v) in out.iter_mut().enumerate() {
        *v = i as i32;
    }
    for (i, with) in swaps.iter().enumerate() {
        if let Ok(with) = usize::try_from(*with)
            && with < out.len()
        {
            out.swap(i, with);
        }
    }
}

/// Rows of 32-bit integers that several threads write.
pub(super) struct IndexRows {
    ptr: SyncPtr,
    len: usize,
    count: usize,
}

impl IndexRows {
    /// Divides `dst`, which must outlive the value, into `count` rows of `len`.
    pub(super) fn new(dst: &mut Dst<'_>, len: usize, count: usize) -> Self {
        assert_eq!(dst.as_mut_slice::<i32>().len(), len * count);
        Self { ptr: SyncPtr::new(dst), len, count }
    }

    /// Returns a row.
    ///
    /// # Safety
    /// The destination must still exist, and there must be no other reference to the same row.
    #[allow(clippy::mut_from_ref, reason = "each row is an exclusive borrow, which the caller guarantees")]
    pub(super) unsafe fn row(&self, index: usize) -> &mut [i32] {
        assert!(index < self.count);
        // SAFETY: the rows are in the destination (checked in `new`); the rest is guaranteed by the caller.
        unsafe {
            std::slice::from_raw_parts_mut(self.ptr.get().cast::<i32>().add(index * self.len), self.len)
        }
    }
}

/// Factors a matrix in place. The algorithm is recursive: it factors the left half of the columns, subtracts
/// its product with the upper right part from the lower right part, and factors the rest.
///
/// # Safety
/// `a` must be `m` by `n` with contiguous rows, which nothing else may access.
unsafe fn factor<T: Field>(pool: &Pool, a: View<T>, (m, n): (usize, usize), swaps: &mut [i32]) {
    let k = swaps.len();
    if k <= BASE && n <= 2 * BASE {
        // SAFETY: guaranteed by the caller.
        return unsafe { factor_columns(a, (m, n), swaps) };
    }
    let left = if n > m { m } else { k / 2 };
    let (first, second) = swaps.split_at_mut(left);
    let right = n - left;
    // SAFETY: the parts are in the matrix; strips consist of different columns.
    unsafe {
        factor(pool, a, (m, left), first);
        let strip = |strip: usize| {
            let (at, width) = (left + strip * STRIP, STRIP.min(right - strip * STRIP));
            swap_rows(a.at(0, at), width, first);
            solve(a, a.at(0, at), left, width, true, true);
            subtract_product(a.at(left, at), a.at(left, 0), a.at(0, at), (m - left, left, width));
        };
        pool.run_costed(right.div_ceil(STRIP), (m * left * STRIP.min(right)) as f64 / 16.0, &strip);
        if !second.is_empty() {
            factor(pool, a.at(left, left), (m - left, right), second);
            swap_rows(a.at(left, 0), left, second);
            second.iter_mut().for_each(|row| *row += left as i32);
        }
    }
}

/// Swaps row `i` with row `swaps[i]`, for each `i` in order.
///
/// # Safety
/// `a` must have the rows with `width` contiguous elements each, which nothing else may access.
unsafe fn swap_rows<T: Field>(a: View<T>, width: usize, swaps: &[i32]) {
    for (i, with) in swaps.iter().enumerate() {
        if *with as usize != i {
            // SAFETY: guaranteed by the caller; the rows are different.
            unsafe { std::ptr::swap_nonoverlapping(a.at(i, 0).ptr, a.at(*with as usize, 0).ptr, width) };
        }
    }
}

/// Performs [`factor`] column by column.
///
/// # Safety
/// See `factor`.
unsafe fn factor_columns<T: Field>(a: View<T>, (m, n): (usize, usize), swaps: &mut [i32]) {
    for (j, swap) in swaps.iter_mut().enumerate() {
        // SAFETY: guaranteed by the caller; all elements are in the matrix, and rows below `j` differ from
        // row `j`.
        unsafe {
            let mut pivot = j;
            for i in j + 1..m {
                if a.read(i, j).abs1() > a.read(pivot, j).abs1() {
                    pivot = i;
                }
            }
            *swap = pivot as i32;
            if pivot != j {
                std::ptr::swap_nonoverlapping(a.at(j, 0).ptr, a.at(pivot, 0).ptr, n);
            }
            let value = a.read(j, j);
            if value == T::ZERO {
                continue;
            }
            let row = std::slice::from_raw_parts(a.at(j, j + 1).ptr.cast_const(), n - j - 1);
            for i in j + 1..m {
                let factor = a.read(i, j).over(value);
                *a.at(i, j).ptr = factor;
                let below = std::slice::from_raw_parts_mut(a.at(i, j + 1).ptr, n - j - 1);
                for (b, r) in below.iter_mut().zip(row) {
                    *b -= factor * *r;
                }
            }
        }
    }
}
