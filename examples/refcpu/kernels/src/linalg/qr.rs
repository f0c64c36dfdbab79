//! Householder QR: what JAX asks unknown platforms for in the custom calls `Qr` and
//! `ProductOfElementaryHouseholderReflectors`.

use super::matrix::{BatchIn, BatchOut, Field, Storage, by_storage, for_each_matrix, matrix_dims};
use crate::copy::check_same_type;
use crate::{Dst, Pool, Src};

/// Factors each `m` by `n` matrix of `input` as LAPACK's `geqrf`: `R` in the upper triangle of `out`, below it the
/// reflectors' vectors (whose first element, 1, is left out), and their factors in `taus`, `min(m, n)` per matrix.
/// Takes memory for one matrix per thread.
///
/// # Panics
/// If shapes or types do not fit, or the type has no linear algebra.
pub fn qr(pool: &Pool, input: Src<'_>, out: Dst<'_>, taus: Dst<'_>) {
    check_same_type("qr", &input, &out);
    check_same_type("qr", &input, &taus);
    let (batch, m, n) = matrix_dims("qr", input.dtype(), input.dims());
    let fits = out.dims() == input.dims() && taus.dims().split_last() == Some((&m.min(n), batch));
    assert!(fits, "qr: {:?} to {:?} and {:?}", input.dims(), out.dims(), taus.dims());
    by_storage!("qr", input.dtype(), run_qr(pool, input, out, taus, m, n));
}

fn run_qr<S: Storage>(pool: &Pool, input: Src<'_>, mut out: Dst<'_>, mut taus: Dst<'_>, m: usize, n: usize) {
    if out.is_empty() {
        return;
    }
    let (count, k) = (out.len() / (m * n), m.min(n));
    let from = BatchIn::<S>::new(&input, m * n);
    let (to, factors) = (BatchOut::<S>::new(&mut out, m * n), BatchOut::<S>::new(&mut taus, k));
    for_each_matrix(pool, count, 2 * m * n * k, &|range| {
        let (mut a, mut tau) = (vec![S::Number::ZERO; m * n], vec![S::Number::ZERO; k]);
        let mut sums = vec![S::Number::ZERO; n];
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe { from.load(index, &mut a) };
            for j in 0..k {
                tau[j] = reflector(&mut a, m, n, j);
                let tau = tau[j].conj();
                apply(&mut a, n, j, j + 1, m, tau, &mut sums, |row, a| a[row * n + j]);
            }
            // SAFETY: as above; each index belongs to one chunk.
            unsafe {
                to.store(index, &a);
                factors.store(index, &tau);
            }
        }
    });
}

/// Makes the reflector that zeroes column `j` below the diagonal (LAPACK's `larfg`): leaves the result on the diagonal
/// and the vector below, and returns its factor.
fn reflector<T: Field>(a: &mut [T], m: usize, n: usize, j: usize) -> T {
    let alpha = a[j * n + j];
    let below = (j + 1..m).map(|i| a[i * n + j].norm_sqr()).fold(T::Real::ZERO, |s, v| s + v);
    let real = T::from_real(alpha.re()) == alpha;
    if below == T::Real::ZERO && real {
        return T::ZERO;
    }
    let norm = T::sqrt(alpha.norm_sqr() + below);
    let beta = if alpha.re() > T::Real::ZERO { -norm } else { norm };
    let beta = T::from_real(beta);
    let scale = T::ONE / (alpha - beta);
    for i in j + 1..m {
        a[i * n + j] *= scale;
    }
    a[j * n + j] = beta;
    (beta - alpha) / beta
}

/// Applies `1 - tau * v * v^H` to columns `first..` of rows `j..m`, where `v` is 1 at `j` and `vector` gives the rest.
#[allow(clippy::too_many_arguments)]
fn apply<T: Field>(
    a: &mut [T],
    n: usize,
    j: usize,
    first: usize,
    m: usize,
    tau: T,
    sums: &mut [T],
    vector: impl Fn(usize, &[T]) -> T,
) {
    if tau == T::ZERO || first >= n {
        return;
    }
    let sums = &mut sums[first..n];
    sums.copy_from_slice(&a[j * n + first..(j + 1) * n]);
    for i in j + 1..m {
        let v = vector(i, a).conj();
        for (s, x) in sums.iter_mut().zip(&a[i * n + first..(i + 1) * n]) {
            *s += v * *x;
        }
    }
    for s in sums.iter_mut() {
        *s *= tau;
    }
    for (x, s) in a[j * n + first..(j + 1) * n].iter_mut().zip(&*sums) {
        *x -= *s;
    }
    for i in j + 1..m {
        let v = vector(i, a);
        for (x, s) in a[i * n + first..(i + 1) * n].iter_mut().zip(&*sums) {
            *x -= v * *s;
        }
    }
}

/// Multiplies out the reflectors that [`qr`] leaves (LAPACK's `orgqr` and `ungqr`): for each `m` by `n` matrix of `a`,
/// `m >= n`, with `k <= n` factors, the first `n` columns of the unitary matrix. Takes memory for two matrices per
/// thread.
///
/// # Panics
/// If shapes or types do not fit, or the type has no linear algebra.
pub fn householder_product(pool: &Pool, a: Src<'_>, taus: Src<'_>, out: Dst<'_>) {
    check_same_type("householder_product", &a, &out);
    check_same_type("householder_product", &taus, &out);
    let (batch, m, n) = matrix_dims("householder_product", a.dtype(), a.dims());
    let fits = out.dims() == a.dims()
        && m >= n
        && taus.dims().split_last().is_some_and(|(k, outer)| *k <= n && outer == batch);
    assert!(fits, "householder_product: {:?} and {:?} to {:?}", a.dims(), taus.dims(), out.dims());
    by_storage!("householder_product", a.dtype(), run_product(pool, a, taus, out, m, n));
}

fn run_product<S: Storage>(pool: &Pool, a: Src<'_>, taus: Src<'_>, mut out: Dst<'_>, m: usize, n: usize) {
    if out.is_empty() {
        return;
    }
    let (count, k) = (out.len() / (m * n), taus.dims().last().copied().unwrap_or(0));
    let (vectors, factors) = (BatchIn::<S>::new(&a, m * n), BatchIn::<S>::new(&taus, k));
    let to = BatchOut::<S>::new(&mut out, m * n);
    for_each_matrix(pool, count, 2 * m * n * k, &|range| {
        let (mut v, mut tau) = (vec![S::Number::ZERO; m * n], vec![S::Number::ZERO; k]);
        let (mut q, mut sums) = (vec![S::Number::ZERO; m * n], vec![S::Number::ZERO; n]);
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe {
                vectors.load(index, &mut v);
                if k > 0 {
                    factors.load(index, &mut tau);
                }
            }
            q.fill(S::Number::ZERO);
            for i in 0..n {
                q[i * n + i] = S::Number::ONE;
            }
            for j in (0..k).rev() {
                // Columns before j are still those of the identity, and the reflector does not touch them.
                apply(&mut q, n, j, j, m, tau[j], &mut sums, |row, _| v[row * n + j]);
            }
            // SAFETY: as above; each index belongs to one chunk.
            unsafe { to.store(index, &q) };
        }
    });
}
