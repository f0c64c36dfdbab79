//! Reductions of matrices to Hessenberg form.

use super::matrix::{BatchIn, BatchOut, Field, Storage, for_each_matrix};
use super::panel::{Panel, Update, row_products, update_and_sum};
use super::qr::{Block, multiply_out};
use super::reflector::make_reflector;
use crate::{Dst, Pool, Src};

/// Brings the `n` by `n` matrix `a` to the form `Q^H * A * Q` that is zero below the first diagonal below the
/// main one (LAPACK's `gehrd`). The reflectors' vectors without their first element, 1, are left in the place
/// of the zeros; their `n - 1` factors are returned.
pub(super) fn reduce<T: Field>(a: &mut [T], n: usize) -> Vec<T> {
    let mut tau = vec![T::ZERO; n.saturating_sub(1)];
    // The update `y * v^H + x * w` of the step before, x = conj(tau) * v.
    let (mut y, mut x) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    let (mut v_adjoint, mut w) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    let (mut v, mut weights, mut sums) = (vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]);
    for i in 0..n.saturating_sub(1) {
        let next = i + 1;
        for r in 0..n {
            v[r] = a[r * n + i] - y[r] * v_adjoint[i] - x[r] * w[i];
            a[r * n + i] = v[r];
        }
        let (beta, factor) = make_reflector(&mut v[next..]);
        tau[i] = factor;
        for r in next..n {
            a[r * n + i] = v[r];
        }
        a[next * n + i] = T::from_real(beta);
        v[..next].fill(T::ZERO);
        for (weight, v) in weights.iter_mut().zip(&v) {
            *weight = v.conj();
        }
        sums[next..].fill(T::ZERO);
        let update = Update { columns: [&y, &x], rows: [&v_adjoint[next..], &w[next..]] };
        update_and_sum(Panel::new(a, n, 0, next), update, &weights, &mut sums[next..]);
        row_products(Panel::new(a, n, 0, next), &v[next..], &mut y);
        let mut product = T::ZERO;
        for r in 0..n {
            y[r] *= factor;
            product += weights[r] * y[r];
            x[r] = factor.conj() * v[r];
        }
        for j in next..n {
            v_adjoint[j] = weights[j];
            w[j] = sums[j] - product * weights[j];
        }
    }
    if n > 1 {
        for r in 0..n {
            let at = r * n + n - 1;
            a[at] = a[at] - y[r] * v_adjoint[n - 1] - x[r] * w[n - 1];
        }
    }
    tau
}

/// Returns the product of the `n - 1` reflectors whose vectors are in the columns of `a` from below the
/// diagonal down, where [`reduce`] and [`super::tridiagonal::tridiagonalise`] store them.
pub(super) fn unitary_factor<T: Field>(pool: &Pool, a: &[T], n: usize, tau: &[T]) -> Vec<T> {
    let inner = n.saturating_sub(1);
    let mut vectors = vec![T::ZERO; inner * inner];
    for (to, row) in vectors.chunks_exact_mut(inner.max(1)).zip(a.chunks_exact(n.max(1)).skip(1)) {
        to.copy_from_slice(&row[..inner]);
    }
    let mut q = vec![T::ZERO; inner * inner];
    multiply_out(pool, (&vectors, inner), tau, (&mut q, inner), &mut Block::new(inner, inner));
    let mut whole = vec![T::ZERO; n * n];
    for i in 0..n {
        for j in 0..n {
            whole[i * n + j] = match (i, j) {
                (0, 0) => T::ONE,
                (0, _) | (_, 0) => T::ZERO,
                _ => q[(i - 1) * inner + j - 1],
            };
        }
    }
    whole
}

/// Reduces each matrix as LAPACK's `gehrd`. The results are the matrix and the factors.
pub(super) fn run<S: Storage>(pool: &Pool, input: Src<'_>, w: &mut [Dst<'_>]) {
    let n = input.dims()[input.dims().len() - 1];
    let [out, tau] = w else { panic!("hessenberg: two results, not {}", w.len()) };
    let count = input.len() / (n * n).max(1);
    let (from, to) = (BatchIn::<S>::new(&input, n * n), BatchOut::<S>::new(out, n * n));
    let tau = BatchOut::<S>::new(tau, n.saturating_sub(1));
    for_each_matrix(pool, count, 4 * n * n * n, &|range, _| {
        let mut a = vec![S::Number::ZERO; n * n];
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`; each index belongs
            // to one chunk.
            unsafe {
                from.load(index, &mut a);
                let factors = reduce(&mut a, n);
                to.store(index, &a);
                tau.store(index, &factors);
            }
        }
    });
}
