//! StableHLO `cholesky`.

use super::matrix::{
    BatchIn, BatchOut, Field, Storage, View, by_storage, for_each_matrix, matrix_dims, subtract_product,
};
use super::triangular::solve;
use crate::copy::check_same_type;
use crate::{Dst, Pool, Src};
use std::cmp::Ordering;

/// Factors each Hermitian positive definite matrix of `input` into `L * L^H` (`lower`) or `U^H * U` and
/// writes the factor; the other triangle of the result is zero. Only the named triangle is read. If a matrix
/// is not positive definite, its result is NaN everywhere. Allocates memory for one matrix per thread.
///
/// # Panics
/// Panics if the matrices are not square, if shapes or types differ, or if the type is not supported by
/// linear algebra.
pub fn cholesky(pool: &Pool, input: Src<'_>, out: Dst<'_>, lower: bool) {
    check_same_type("cholesky", &input, &out);
    assert_eq!(input.dims(), out.dims(), "cholesky");
    let (_, rows, columns) = matrix_dims("cholesky", input.dtype(), input.dims());
    assert_eq!(rows, columns, "cholesky: {:?}", input.dims());
    by_storage!("cholesky", input.dtype(), run(pool, input, out, rows, lower));
}

/// Matrices up to this size are factored row by row.
const BASE: usize = 32;
/// The number of columns of a trailing matrix that are updated at a time.
const TILE: usize = 64;

fn run<S: Storage>(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, n: usize, lower: bool) {
    if out.is_empty() {
        return;
    }
    let count = out.len() / (n * n);
    let (from, to) = (BatchIn::<S>::new(&input, n * n), BatchOut::<S>::new(&mut out, n * n));
    for_each_matrix(pool, count, n * n * n / 3, &|range, pool| {
        let mut a = vec![S::Number::ZERO; n * n];
        let mut spare = vec![S::Number::ZERO; n / 2 * n.div_ceil(2)];
        for index in range {
            // SAFETY: `input` lives in the calling frame and is of the type of `S`.
            unsafe { from.load(index, &mut a) };
            if !lower {
                conjugate_transpose(&mut a, n);
            }
            // SAFETY: the view is of `a`, which nothing else accesses.
            if unsafe { factor(pool, View::dense(a.as_mut_ptr(), n), n, &mut spare) } {
                for i in 0..n {
                    a[i * n + i + 1..(i + 1) * n].fill(S::Number::ZERO);
                }
                if !lower {
                    conjugate_transpose(&mut a, n);
                }
            } else {
                a.fill(S::Number::NAN);
            }
            // SAFETY: as above; each index belongs to one chunk.
            unsafe { to.store(index, &a) };
        }
    });
}

fn conjugate_transpose<T: Field>(a: &mut [T], n: usize) {
    for i in 0..n {
        a[i * n + i] = a[i * n + i].conj();
        for j in 0..i {
            let (x, y) = (a[i * n + j], a[j * n + i]);
            a[i * n + j] = y.conj();
            a[j * n + i] = x.conj();
        }
    }
}

/// Replaces the lower triangle with the factor. Returns `false` if the matrix is not positive definite. The
/// algorithm is recursive: it factors the upper left part, solves for the part below, subtracts its product
/// from the lower right part, and factors that.
///
/// # Safety
/// `a` must be `n` by `n` with contiguous rows, and nothing else may access it. `spare` must have room for a
/// quarter of it.
unsafe fn factor<T: Field>(pool: &Pool, a: View<T>, n: usize, spare: &mut [T]) -> bool {
    if n <= BASE {
        // SAFETY: guaranteed by the caller.
        return unsafe { factor_rows(a, n) };
    }
    let (upper, rest) = (n / 2, n - n / 2);
    let (below, corner) = (a.at(upper, 0), a.at(upper, upper));
    // SAFETY: the parts are in the matrix and do not overlap; `spare` has `upper * rest` elements, and
    // nothing else accesses it.
    unsafe {
        if !factor(pool, a, upper, spare) {
            return false;
        }
        // X * L^H = A below, which is conj(L) * X^T = A^T.
        let turned = View::dense(spare.as_mut_ptr(), rest);
        let parts = rest.div_ceil(TILE);
        pool.run(parts, &|part| {
            let (first, count) = (part * TILE, TILE.min(rest - part * TILE));
            let (below, turned) = (below.at(first, 0), turned.at(0, first));
            for i in 0..count {
                for j in 0..upper {
                    *turned.at(j, i).ptr = below.read(i, j);
                }
            }
            solve(a.conj(), turned, upper, count, true, false);
            for i in 0..count {
                for j in 0..upper {
                    *below.at(i, j).ptr = turned.read(j, i);
                }
            }
        });
        pool.run(parts, &|part| {
            // A strip of columns from the diagonal down.
            let (first, count) = (part * TILE, TILE.min(rest - part * TILE));
            let (left, right) = (below.at(first, 0), below.at(first, 0).transposed().conj());
            subtract_product(corner.at(first, first), left, right, (rest - first, upper, count));
        });
        factor(pool, corner, rest, spare)
    }
}

/// Performs [`factor`] row by row.
///
/// # Safety
/// See `factor`.
unsafe fn factor_rows<T: Field>(a: View<T>, n: usize) -> bool {
    for i in 0..n {
        // SAFETY: rows are contiguous and are in the matrix; those before `i` are only read.
        let row = unsafe { std::slice::from_raw_parts_mut(a.at(i, 0).ptr, i + 1) };
        for j in 0..i {
            // SAFETY: as above; j < i, so the rows are different.
            let other = unsafe { std::slice::from_raw_parts(a.at(j, 0).ptr, j + 1) };
            let mut sum = row[j];
            for (x, y) in row[..j].iter().zip(other) {
                sum -= *x * y.conj();
            }
            row[j] = sum / other[j];
        }
        let mut pivot = row[i].re();
        for x in &row[..i] {
            pivot -= x.norm_sqr();
        }
        if pivot.partial_cmp(&T::Real::ZERO) != Some(Ordering::Greater) {
            return false;
        }
        row[i] = T::from_real(T::sqrt(pivot));
    }
    true
}
