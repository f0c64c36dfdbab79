//! StableHLO `cholesky`.

use super::matrix::{BatchIn, BatchOut, Field, Storage, by_storage, for_each_matrix, matrix_dims};
use crate::copy::check_same_type;
use crate::{Dst, Pool, Src};

/// Factors each Hermitian positive definite matrix of `input` into `L * L^H` (`lower`) or `U^H * U` and writes the
/// factor; the other triangle of the result is zero. Only the triangle that is named is read. A matrix that is not
/// positive definite gives NaN everywhere. Takes memory for one matrix per thread.
///
/// # Panics
/// If the matrices are not square, shapes or types differ, or the type has no linear algebra.
pub fn cholesky(pool: &Pool, input: Src<'_>, out: Dst<'_>, lower: bool) {
    check_same_type("cholesky", &input, &out);
    assert_eq!(input.dims(), out.dims(), "cholesky");
    let (_, rows, columns) = matrix_dims("cholesky", input.dtype(), input.dims());
    assert_eq!(rows, columns, "cholesky: {:?}", input.dims());
    by_storage!("cholesky", input.dtype(), run(pool, input, out, rows, lower));
}

fn run<S: Storage>(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, n: usize, lower: bool) {
    if out.is_empty() {
        return;
    }
    let count = out.len() / (n * n);
    let (from, to) = (BatchIn::<S>::new(&input, n * n), BatchOut::<S>::new(&mut out, n * n));
    for_each_matrix(pool, count, n * n * n / 3, &|range| {
        let mut a = vec![S::Number::ZERO; n * n];
        for index in range {
            // SAFETY: `input` lives in the calling frame and is of the type of `S`.
            unsafe { from.load(index, &mut a) };
            if !lower {
                conjugate_transpose(&mut a, n);
            }
            if factor(&mut a, n) {
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

/// Replaces the lower triangle by the factor, row by row; false if the matrix is not positive definite.
fn factor<T: Field>(a: &mut [T], n: usize) -> bool {
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        for j in 0..i {
            let other = &above[j * n..j * n + j + 1];
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
        // Also false for NaN.
        if !(pivot > T::Real::ZERO) {
            return false;
        }
        row[i] = T::from_real(T::sqrt(pivot));
    }
    true
}
