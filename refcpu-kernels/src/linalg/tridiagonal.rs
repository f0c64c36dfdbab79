//! Reductions of Hermitian matrices to tridiagonal form.

use super::matrix::{BatchIn, BatchOut, Field, Storage, for_each_matrix};
use super::panel::{Panel, Update, update_and_sum};
use super::reflector::make_reflector;
use crate::{Dst, Pool, Src};

/// A Hermitian matrix as `Q * T * Q^H` with a real tridiagonal matrix.
pub(super) struct Tridiagonal<T: Field> {
    /// The diagonal, `n`.
    pub(super) d: Vec<T::Real>,
    /// The diagonal next to it, `n - 1`.
    pub(super) e: Vec<T::Real>,
    /// Factors of the `n - 1` reflectors whose product is `Q`.
    pub(super) tau: Vec<T>,
}

/// Reduces the `n` by `n` matrix `a`, which has both triangles. Stores the reflectors' vectors in the columns
/// of the lower triangle, from below the diagonal down; their first element, 1, takes the place of that of
/// `e`.
pub(super) fn tridiagonalise<T: Field>(a: &mut [T], n: usize) -> Tridiagonal<T> {
    let (mut d, mut e) = (vec![T::Real::ZERO; n], vec![T::Real::ZERO; n.saturating_sub(1)]);
    let mut tau = vec![T::ZERO; n.saturating_sub(1)];
    // The update `v * w^H + w * v^H` of the step before, and conjugates of both.
    let mut old = [vec![T::ZERO; n], vec![T::ZERO; n]];
    let mut conjugates = [vec![T::ZERO; n], vec![T::ZERO; n]];
    let (mut v, mut sums, mut weights) = (vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]);
    let half = T::Real::ONE / (T::Real::ONE + T::Real::ONE);
    for i in 0..n {
        for r in i..n {
            v[r] = a[r * n + i] - old[0][r] * conjugates[1][i] - old[1][r] * conjugates[0][i];
        }
        d[i] = v[i].re();
        if i + 1 == n {
            break;
        }
        let next = i + 1;
        (e[i], tau[i]) = make_reflector(&mut v[next..]);
        for r in next..n {
            a[r * n + i] = v[r];
            weights[r] = v[r].conj();
        }
        sums[next..].fill(T::ZERO);
        let update = Update {
            columns: [&old[0][next..], &old[1][next..]],
            rows: [&conjugates[1][next..], &conjugates[0][next..]],
        };
        update_and_sum(Panel::new(a, n, next, next), update, &weights[next..], &mut sums[next..]);
        // p = tau * A * v and w = p - tau / 2 * (p^H * v) * v.
        let mut product = T::ZERO;
        for r in next..n {
            sums[r] = tau[i] * sums[r].conj();
            product += sums[r].conj() * v[r];
        }
        let shift = -(tau[i] * product).scale(half);
        for r in next..n {
            let w = sums[r] + shift * v[r];
            (old[0][r], old[1][r]) = (v[r], w);
            (conjugates[0][r], conjugates[1][r]) = (v[r].conj(), w.conj());
        }
    }
    Tridiagonal { d, e, tau }
}

/// Completes the Hermitian matrix from one triangle in `a`. The imaginary parts of the diagonal are ignored.
pub(super) fn complete<T: Field>(a: &mut [T], n: usize, lower: bool) {
    for i in 0..n {
        a[i * n + i] = T::from_real(a[i * n + i].re());
        for j in 0..i {
            let (below, above) = (i * n + j, j * n + i);
            if lower {
                a[above] = a[below].conj();
            } else {
                a[below] = a[above].conj();
            }
        }
    }
}

/// Reduces one triangle of each matrix to the diagonals and the reflectors, as LAPACK's `sytrd` and `hetrd`.
/// The reflectors are stored in that triangle as by LAPACK. The results are the matrix, the diagonal, the
/// adjacent diagonal and the factors.
pub(super) fn run<S: Storage>(pool: &Pool, input: Src<'_>, w: &mut [Dst<'_>], lower: bool) {
    let n = input.dims()[input.dims().len() - 1];
    let count = input.len() / (n * n).max(1);
    let from = BatchIn::<S>::new(&input, n * n);
    let [out, d, e, tau] = w else { panic!("tridiagonal: four results, not {}", w.len()) };
    let (out, tau) = (BatchOut::<S>::new(out, n * n), BatchOut::<S>::new(tau, n.saturating_sub(1)));
    let (d, e) = (BatchOut::<S::Real>::new(d, n), BatchOut::<S::Real>::new(e, n.saturating_sub(1)));
    for_each_matrix(pool, count, 2 * n * n * n, &|range, _| {
        let (mut a, mut given) = (vec![S::Number::ZERO; n * n], vec![S::Number::ZERO; n * n]);
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe { from.load(index, &mut given) };
            a.copy_from_slice(&given);
            complete(&mut a, n, lower);
            // In reverse order of rows and columns, the upper triangle is a lower one.
            if !lower {
                a.reverse();
            }
            let mut t = tridiagonalise(&mut a, n);
            for i in 0..n {
                a[i * n + i] = S::Number::from_real(t.d[i]);
                if i + 1 < n {
                    a[(i + 1) * n + i] = S::Number::from_real(t.e[i]);
                }
            }
            if !lower {
                a.reverse();
                t.d.reverse();
                t.e.reverse();
                t.tau.reverse();
            }
            for i in 0..n {
                let kept = if lower { i + 1..n } else { 0..i };
                a[i * n..][kept.clone()].copy_from_slice(&given[i * n..][kept]);
            }
            // SAFETY: as above; each index belongs to one chunk.
            unsafe {
                out.store(index, &a);
                d.store(index, &t.d);
                e.store(index, &t.e);
                tau.store(index, &t.tau);
            }
        }
    });
}
