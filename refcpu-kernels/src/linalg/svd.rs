//! Singular values and vectors.

use super::bidiagonal::{Bidiagonal, Vectors, bidiagonalise, diagonalise};
use super::matrix::{BatchIn, BatchOut, Field, Storage, View, for_each_matrix};
use super::qr::{Block, apply_reflectors, factor, multiply_out};
use super::reflector::range_scale;
use super::rotation::Rows;
use crate::{Dst, Pool, Src};

/// The singular vectors to compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SvdVectors {
    /// None.
    Nothing,
    /// As many vectors as there are singular values.
    Thin,
    /// All of both spaces.
    Full,
}

/// Computes the singular values, descending, then left vectors in columns and conjugated right vectors in
/// rows; NaN for matrices that are not finite.
pub(super) fn run<S: Storage>(pool: &Pool, input: Src<'_>, w: &mut [Dst<'_>], wanted: SvdVectors) {
    let &[.., m, n] = input.dims() else { panic!("svd: {:?} is not a matrix", input.dims()) };
    let k = m.min(n);
    let (rows, columns) = match wanted {
        SvdVectors::Nothing => (0, 0),
        SvdVectors::Thin => (m * k, k * n),
        SvdVectors::Full => (m * m, n * n),
    };
    let (values, vectors) = w.split_first_mut().expect("svd: results");
    let count: usize = values.dims().iter().rev().skip(1).product();
    let from = BatchIn::<S>::new(&input, m * n);
    let values = BatchOut::<S::Real>::new(values, k);
    let vectors = match vectors {
        [] => None,
        [u, v] => Some((BatchOut::<S>::new(u, rows), BatchOut::<S>::new(v, columns))),
        more => panic!("svd: expected one or three results, found {}", more.len() + 1),
    };
    assert_eq!(vectors.is_none(), wanted == SvdVectors::Nothing, "svd: results");
    for_each_matrix(pool, count, 6 * m * n * k, &|range, pool| {
        let mut a = vec![S::Number::ZERO; m * n];
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe { from.load(index, &mut a) };
            let found = svd(pool, &a, (m, n), wanted).unwrap_or_else(|| Svd {
                values: vec![<S::Number as Field>::Real::NAN; k],
                u: vec![S::Number::NAN; rows],
                v: vec![S::Number::NAN; columns],
            });
            // SAFETY: as above; each index belongs to one chunk.
            unsafe {
                values.store(index, &found.values);
                if let Some((u, v)) = &vectors {
                    u.store(index, &found.u);
                    v.store(index, &found.v);
                }
            }
        }
    });
}

struct Svd<T: Field> {
    values: Vec<T::Real>,
    u: Vec<T>,
    v: Vec<T>,
}

/// Returns `None` if the matrix is not finite, or if the iteration does not converge.
fn svd<T: Field>(pool: &Pool, a: &[T], (m, n): (usize, usize), wanted: SvdVectors) -> Option<Svd<T>> {
    let scale = range_scale(a).ok()?;
    let factor = scale.unwrap_or(T::Real::ONE);
    // A^H = V * S * U^H.
    let wide = m < n;
    let (m, n) = if wide { (n, m) } else { (m, n) };
    let mut tall = vec![T::ZERO; m * n];
    for i in 0..m {
        for j in 0..n {
            tall[i * n + j] = if wide { a[j * m + i].conj() } else { a[i * n + j] }.scale(factor);
        }
    }
    let mut found = tall_svd(pool, tall, (m, n), wanted)?;
    if scale.is_some() {
        found.values.iter_mut().for_each(|v| *v = *v / factor);
    }
    if wide && wanted != SvdVectors::Nothing {
        let columns = if wanted == SvdVectors::Full { m } else { n };
        (found.u, found.v) = (adjoint(&found.v, n, n), adjoint(&found.u, m, columns));
    }
    Some(found)
}

fn adjoint<T: Field>(a: &[T], rows: usize, columns: usize) -> Vec<T> {
    (0..rows * columns).map(|at| a[at % rows * columns + at / rows].conj()).collect()
}

/// Returns the decomposition of an `m` by `n` matrix, `m >= n`.
fn tall_svd<T: Field>(
    pool: &Pool,
    mut a: Vec<T>,
    (m, n): (usize, usize),
    wanted: SvdVectors,
) -> Option<Svd<T>> {
    // If there are many more rows than columns, a QR factorization first is cheaper.
    if n > 0 && 5 * m >= 8 * n && m > n {
        return svd_after_qr(pool, a, (m, n), wanted);
    }
    let Bidiagonal { mut d, mut e, tau_q, tau_p, right } = bidiagonalise(&mut a, m, n);
    if wanted == SvdVectors::Nothing {
        diagonalise(pool, &mut d, &mut e, None)?;
        d.iter_mut().for_each(|v| *v = v.abs());
        d.sort_by(|x, y| y.partial_cmp(x).unwrap_or(std::cmp::Ordering::Equal));
        return Some(Svd { values: d, u: vec![], v: vec![] });
    }
    let columns = if wanted == SvdVectors::Full { m } else { n };
    let mut q = vec![T::ZERO; m * columns];
    multiply_out(pool, (&a, n), &tau_q, (&mut q, columns), &mut Block::new(m, columns));
    let inner = n.saturating_sub(1);
    let mut p = vec![T::ZERO; inner * inner];
    multiply_out(pool, (&right, inner), &tau_p, (&mut p, inner), &mut Block::new(inner, inner));
    let mut left = Rows::from_fn(columns, m, |i, j| q[j * columns + i]);
    let mut right = Rows::from_fn(n, n, |i, j| match (i, j) {
        (0, 0) => T::ONE,
        (0, _) | (_, 0) => T::ZERO,
        _ => p[(j - 1) * inner + i - 1].conj(),
    });
    diagonalise(pool, &mut d, &mut e, Some(Vectors { left: &mut left, right: &mut right }))?;
    for (i, value) in d.iter_mut().enumerate() {
        if *value < T::Real::ZERO {
            *value = -*value;
            right.negate(i);
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| d[*y].partial_cmp(&d[*x]).unwrap_or(std::cmp::Ordering::Equal));
    let row = |j: usize| order.get(j).copied().unwrap_or(j);
    Some(Svd {
        values: order.iter().map(|i| d[*i]).collect(),
        u: (0..m * columns).map(|at| left.get(row(at % columns), at / columns)).collect(),
        v: (0..n * n).map(|at| right.get(order[at / n], at % n)).collect(),
    })
}

/// Returns the decomposition of an `m` by `n` matrix, `m > n`, from that of the triangular factor of its QR
/// factorization.
fn svd_after_qr<T: Field>(
    pool: &Pool,
    mut a: Vec<T>,
    (m, n): (usize, usize),
    wanted: SvdVectors,
) -> Option<Svd<T>> {
    let mut tau = vec![T::ZERO; n];
    let mut block = Block::new(m, n);
    factor(pool, &mut a, n, &mut tau, &mut block);
    let triangle = (0..n * n).map(|at| if at % n >= at / n { a[at] } else { T::ZERO }).collect();
    let thin = if wanted == SvdVectors::Nothing { wanted } else { SvdVectors::Thin };
    let mut found = tall_svd(pool, triangle, (n, n), thin)?;
    if wanted != SvdVectors::Nothing {
        let columns = if wanted == SvdVectors::Full { m } else { n };
        let mut u = vec![T::ZERO; m * columns];
        for i in 0..m {
            if i < n {
                u[i * columns..i * columns + n].copy_from_slice(&found.u[i * n..(i + 1) * n]);
            } else if wanted == SvdVectors::Full {
                u[i * columns + i] = T::ONE;
            }
        }
        let mut block = Block::new(m, columns);
        let view = View::dense(u.as_mut_ptr(), columns);
        // SAFETY: nothing else accesses the matrix, which has `m` rows of `columns`.
        unsafe { apply_reflectors(pool, &a, n, &tau, &mut block, (view, columns), false) };
        found.u = u;
    }
    Some(found)
}
