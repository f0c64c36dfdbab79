//! Products with the unitary factor of a QR factorization, which is not computed explicitly.

use super::matrix::{BatchIn, BatchOut, Field, Storage, View, for_each_matrix};
use super::qr::{Block, apply_reflectors};
use crate::{Dst, Pool, Src};

/// Multiplies each matrix `c`, the third operand, by the product of the reflectors in the first (factors in
/// the second), or by its adjoint, from the left or from the right (LAPACK's `ormqr` and `unmqr`).
pub(super) fn run<S: Storage>(pool: &Pool, r: &[Src<'_>], w: &mut [Dst<'_>], left: bool, adjoint: bool) {
    let ([vectors, tau, c], [out]) = (r, w) else { panic!("ormqr: three operands and a result") };
    let (&[.., m, n], &[.., rows, columns]) = (vectors.dims(), c.dims()) else {
        panic!("ormqr: {:?} and {:?} are not matrices", vectors.dims(), c.dims())
    };
    let k = tau.dims()[tau.dims().len() - 1];
    let count = out.dims().iter().rev().skip(2).product();
    let (vectors, tau) = (BatchIn::<S>::new(vectors, m * n), BatchIn::<S>::new(tau, k));
    let (c, out) = (BatchIn::<S>::new(c, rows * columns), BatchOut::<S>::new(out, rows * columns));
    let others = if left { columns } else { rows };
    for_each_matrix(pool, count, 4 * m * k * others, &|range, pool| {
        let (mut v, mut factors) = (vec![S::Number::ZERO; m * n], vec![S::Number::ZERO; k]);
        let (mut x, mut turned) = (vec![S::Number::ZERO; rows * columns], vec![]);
        let mut block = Block::new(m, others);
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe {
                vectors.load(index, &mut v);
                tau.load(index, &mut factors);
                c.load(index, &mut x);
            }
            if left {
                let view = View::dense(x.as_mut_ptr(), columns);
                // SAFETY: nothing else accesses the matrix, which has as many rows as the reflectors (checked
                // with the operands' shapes).
                unsafe { apply_reflectors(pool, &v, n, &factors, &mut block, (view, columns), adjoint) };
            } else {
                // (C * Q)^H = Q^H * C^H.
                turned.clear();
                turned.extend((0..x.len()).map(|at| x[at % rows * columns + at / rows].conj()));
                let view = View::dense(turned.as_mut_ptr(), rows);
                // SAFETY: as above.
                unsafe { apply_reflectors(pool, &v, n, &factors, &mut block, (view, rows), !adjoint) };
                for (at, x) in x.iter_mut().enumerate() {
                    *x = turned[at % columns * rows + at / columns].conj();
                }
            }
            // SAFETY: as above; each index belongs to one chunk.
            unsafe { out.store(index, &x) };
        }
    });
}
