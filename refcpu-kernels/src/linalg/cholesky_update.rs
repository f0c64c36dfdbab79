//! Rank-one updates of Cholesky factors.

use super::matrix::{BatchIn, BatchOut, Field, Real, Storage, for_each_matrix};
use super::rotation::rotation;
use crate::{Dst, Pool, Src};

/// Computes the upper triangular factor of `R^T * R + w * w^T` from the factor `R` and the vector `w`, both
/// real.
pub(super) fn run<S: Storage<Number: Real>>(
    pool: &Pool,
    factor: Src<'_>,
    vector: Src<'_>,
    w: &mut [Dst<'_>],
) {
    let n = factor.dims()[factor.dims().len() - 1];
    let [out] = w else { panic!("cholesky_update: one result, not {}", w.len()) };
    let count = factor.len() / (n * n).max(1);
    let (from, vector) = (BatchIn::<S>::new(&factor, n * n), BatchIn::<S>::new(&vector, n));
    let out = BatchOut::<S>::new(out, n * n);
    for_each_matrix(pool, count, 3 * n * n, &|range, _| {
        let (mut r, mut z) = (vec![S::Number::ZERO; n * n], vec![S::Number::ZERO; n]);
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`; each index belongs
            // to one chunk.
            unsafe {
                from.load(index, &mut r);
                vector.load(index, &mut z);
            }
            for (k, row) in r.chunks_exact_mut(n.max(1)).enumerate() {
                let (c, s, _) = rotation(row[k], z[k]);
                // The modified factor gets a positive diagonal.
                let turn = if s != S::Number::ZERO && row[k] < S::Number::ZERO {
                    -S::Number::ONE
                } else {
                    S::Number::ONE
                };
                let (c, s) = (c * turn, s * turn);
                for (x, y) in row[k..].iter_mut().zip(&mut z[k..]) {
                    (*x, *y) = (c * *x + s * *y, c * *y - s * *x);
                }
            }
            // SAFETY: as above.
            unsafe { out.store(index, &r) };
        }
    });
}
