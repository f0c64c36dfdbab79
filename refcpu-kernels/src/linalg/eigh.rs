//! Eigenvalues and eigenvectors of Hermitian matrices: a reduction to tridiagonal form, and QR iterations
//! with Wilkinson's shift.

use super::hessenberg::unitary_factor;
use super::matrix::{BatchIn, BatchOut, Field, Real, Storage, for_each_matrix};
use super::reflector::range_scale;
use super::rotation::{Rotations, Rows, rotation};
use super::tridiagonal::{complete, tridiagonalise};
use crate::{Dst, Pool, Src};

/// The maximum number of sweeps per eigenvalue. Two are usual.
const MAX_SWEEPS: usize = 30;
/// Rotations that are collected before they are applied.
const ROTATIONS: usize = 1 << 15;

/// Computes the eigenvectors, in columns, and the eigenvalues, in ascending order, of each matrix; NaN for
/// matrices that are not finite.
pub(super) fn run<S: Storage>(pool: &Pool, input: Src<'_>, w: &mut [Dst<'_>], lower: bool) {
    let n = input.dims()[input.dims().len() - 1];
    let count = input.len() / (n * n).max(1);
    let from = BatchIn::<S>::new(&input, n * n);
    let [vectors, values] = w else { panic!("eigh: two results, not {}", w.len()) };
    let (vectors, values) = (BatchOut::<S>::new(vectors, n * n), BatchOut::<S::Real>::new(values, n));
    for_each_matrix(pool, count, 6 * n * n * n, &|range, pool| {
        let mut a = vec![S::Number::ZERO; n * n];
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe { from.load(index, &mut a) };
            complete(&mut a, n, lower);
            let d = eigh(pool, &mut a, n).unwrap_or_else(|| {
                a.fill(S::Number::NAN);
                vec![<S::Number as Field>::Real::NAN; n]
            });
            // SAFETY: as above; each index belongs to one chunk.
            unsafe {
                vectors.store(index, &a);
                values.store(index, &d);
            }
        }
    });
}

/// Replaces the Hermitian `n` by `n` matrix with its eigenvectors, and returns its eigenvalues, or `None` if
/// the matrix is not finite or the iteration does not converge.
fn eigh<T: Field>(pool: &Pool, a: &mut [T], n: usize) -> Option<Vec<T::Real>> {
    let scale = range_scale(a).ok()?;
    if let Some(scale) = scale {
        a.iter_mut().for_each(|v| *v = v.scale(scale));
    }
    let mut t = tridiagonalise(a, n);
    let q = unitary_factor(pool, a, n, &t.tau);
    let mut rows = Rows::from_fn(n, n, |i, j| q[j * n + i]);
    diagonalise(pool, &mut t.d, &mut t.e, &mut rows)?;
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| t.d[*x].partial_cmp(&t.d[*y]).unwrap_or(std::cmp::Ordering::Equal));
    for (i, row) in a.chunks_exact_mut(n.max(1)).enumerate() {
        for (v, from) in row.iter_mut().zip(&order) {
            *v = rows.get(*from, i);
        }
    }
    let undo = scale.map_or(T::Real::ONE, |s| T::Real::ONE / s);
    Some(order.iter().map(|i| t.d[*i] * undo).collect())
}

/// Brings a tridiagonal matrix to diagonal form by rotations, which are applied to `rows`. None if that does
/// not end.
fn diagonalise<R: Real>(pool: &Pool, d: &mut [R], e: &mut [R], rows: &mut Rows<R>) -> Option<()> {
    let mut rotations = Rotations::new();
    let mut sweeps = 0;
    let mut hi = d.len().saturating_sub(1);
    while hi > 0 {
        let negligible = |k: usize, d: &[R], e: &[R]| {
            e[k].magnitude() <= R::EPSILON * d[k].magnitude().root() * d[k + 1].magnitude().root() + R::TINY
        };
        if negligible(hi - 1, d, e) {
            e[hi - 1] = R::ZERO;
            hi -= 1;
            continue;
        }
        let mut lo = hi - 1;
        while lo > 0 && !negligible(lo - 1, d, e) {
            lo -= 1;
        }
        if lo > 0 {
            e[lo - 1] = R::ZERO;
        }
        sweeps += 1;
        if sweeps > MAX_SWEEPS * d.len() {
            return None;
        }
        // Eigenvalues are found at the end where they are small.
        let turned = d[lo].magnitude() < d[hi].magnitude();
        sweep(&mut d[lo..=hi], &mut e[lo..hi], turned, lo, &mut rotations);
        if rotations.len() >= ROTATIONS {
            rows.apply(pool, &mut rotations);
        }
    }
    rows.apply(pool, &mut rotations);
    Some(())
}

/// Performs an implicit QR step on an unreduced tridiagonal matrix whose first row is `lo`. If `turned`, the
/// matrix is read from its end.
fn sweep<R: Real>(d: &mut [R], e: &mut [R], turned: bool, lo: usize, rotations: &mut Rotations<R>) {
    let last = d.len() - 1;
    let row = |k: usize| if turned { last - k } else { k };
    let next = |k: usize| if turned { last - 1 - k } else { k };
    let two = R::ONE + R::ONE;
    let (b, c) = (e[next(last - 1)], d[row(last)]);
    let delta = (d[row(last - 1)] - c) / two;
    // The shift is `c` minus this difference. If all diagonal elements are similar, the difference would be
    // lost in the sum.
    let less = b * (b / (delta + delta.hypot(b).with_sign(delta)));
    let (mut x, mut z) = (d[row(0)] - c + less, e[next(0)]);
    rotations.sweep(lo + row(0), turned);
    for k in 0..last {
        let (cos, sin, r) = rotation(x, z);
        if k > 0 {
            e[next(k - 1)] = r;
        }
        let (p, q, off) = (d[row(k)], d[row(k + 1)], e[next(k)]);
        // The amount by which the rotation changes the two diagonal elements.
        let moved = sin * (sin * (q - p) + two * cos * off);
        d[row(k)] = p + moved;
        d[row(k + 1)] = q - moved;
        e[next(k)] = cos * sin * (q - p) + (cos - sin) * (cos + sin) * off;
        if k + 1 < last {
            x = e[next(k)];
            z = sin * e[next(k + 1)];
            e[next(k + 1)] = cos * e[next(k + 1)];
        }
        rotations.push(cos, sin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvalues_that_rounding_errors_tell_apart_are_found() {
        let mut d: [f64; 10] = [
            0.9999999999999996,
            1.0000000000000002,
            0.9999999999999993,
            0.9999999999999996,
            1.0000000000000002,
            1.0000000000000002,
            0.9999999999999994,
            1.000000000000001,
            1.0,
            1.0000000000000002,
        ];
        let mut e = [
            4.25960834495299e-16,
            5.557491707257875e-16,
            -7.535427804181584e-16,
            5.723252408534577e-16,
            -3.449892252056097e-16,
            -3.5838061578680864e-16,
            -3.615713796622682e-16,
            -4.0293836151704972e-16,
            1.0520856261878642e-16,
        ];
        let mut rows = Rows::from_fn(10, 10, |i, j| if i == j { 1.0_f64 } else { 0.0 });
        diagonalise(&Pool::new(1), &mut d, &mut e, &mut rows).expect("it ends");
        assert!(d.iter().all(|value| (value - 1.0).abs() < 1e-14), "{d:?}");
    }
}
