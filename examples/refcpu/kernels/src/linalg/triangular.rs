//! StableHLO `triangular_solve`.

use super::matrix::{BatchIn, BatchOut, Field, Storage, by_storage, for_each_matrix, matrix_dims};
use crate::copy::check_same_type;
use crate::{Dst, Pool, Src};

/// What is done to the matrix before solving, named as in StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransposeA {
    /// Nothing.
    NoTranspose,
    /// It is transposed.
    Transpose,
    /// It is transposed and conjugated.
    Adjoint,
}

/// Which equation is solved, named as in StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TriangularSolve {
    /// `op(a) * x = b` if true, `x * op(a) = b` if false.
    pub left_side: bool,
    /// Which triangle of `a` is read.
    pub lower: bool,
    /// The diagonal counts as ones and is not read.
    pub unit_diagonal: bool,
    /// What `op` is.
    pub transpose_a: TransposeA,
}

/// Solves for `x`, written to `out`, for each matrix `a` and right side `b` of the batch. Takes memory for one system
/// per thread.
///
/// # Panics
/// If shapes or types do not fit, or the type has no linear algebra.
pub fn triangular_solve(pool: &Pool, a: Src<'_>, b: Src<'_>, out: Dst<'_>, spec: TriangularSolve) {
    check_same_type("triangular_solve", &a, &out);
    check_same_type("triangular_solve", &b, &out);
    let (batch, rows, columns) = matrix_dims("triangular_solve", a.dtype(), a.dims());
    let (b_batch, m, k) = matrix_dims("triangular_solve", b.dtype(), b.dims());
    let fits = rows == columns
        && batch == b_batch
        && b.dims() == out.dims()
        && rows == if spec.left_side { m } else { k };
    assert!(fits, "triangular_solve: {:?} and {:?} to {:?} by {spec:?}", a.dims(), b.dims(), out.dims());
    by_storage!("triangular_solve", a.dtype(), run(pool, a, b, out, spec));
}

fn run<S: Storage>(pool: &Pool, a: Src<'_>, b: Src<'_>, mut out: Dst<'_>, spec: TriangularSolve) {
    if out.is_empty() {
        return;
    }
    let (_, m, k) = matrix_dims("triangular_solve", b.dtype(), b.dims());
    let (n, sides) = if spec.left_side { (m, k) } else { (k, m) };
    let count = out.len() / (m * k);
    let (matrices, right) = (BatchIn::<S>::new(&a, n * n), BatchIn::<S>::new(&b, m * k));
    let to = BatchOut::<S>::new(&mut out, m * k);
    for_each_matrix(pool, count, n * n * sides, &|range| {
        let (mut a, mut t) = (vec![S::Number::ZERO; n * n], vec![S::Number::ZERO; n * n]);
        let (mut x, mut y) = (vec![S::Number::ZERO; m * k], vec![S::Number::ZERO; m * k]);
        // `x * op(a) = b` is `op(a)^T * x^T = b^T`.
        let transposed = (spec.transpose_a != TransposeA::NoTranspose) == spec.left_side;
        let conjugated = spec.transpose_a == TransposeA::Adjoint;
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe {
                matrices.load(index, &mut a);
                right.load(index, &mut x);
            }
            if transposed {
                transpose(&a, &mut t, n, n);
                std::mem::swap(&mut a, &mut t);
            }
            if conjugated {
                a.iter_mut().for_each(|v| *v = v.conj());
            }
            if !spec.left_side {
                transpose(&x, &mut y, m, k);
                std::mem::swap(&mut x, &mut y);
            }
            solve(&a, &mut x, n, sides, spec.lower != transposed, spec.unit_diagonal);
            if !spec.left_side {
                transpose(&x, &mut y, k, m);
                std::mem::swap(&mut x, &mut y);
            }
            // SAFETY: as above; each index belongs to one chunk.
            unsafe { to.store(index, &x) };
        }
    });
}

/// Transposes a matrix of `rows` by `columns`.
fn transpose<T: Copy>(from: &[T], to: &mut [T], rows: usize, columns: usize) {
    for i in 0..rows {
        for j in 0..columns {
            to[j * rows + i] = from[i * columns + j];
        }
    }
}

/// Solves `a * x = x` in place for `sides` columns, substituting row by row.
fn solve<T: Field>(a: &[T], x: &mut [T], n: usize, sides: usize, lower: bool, unit: bool) {
    for step in 0..n {
        let i = if lower { step } else { n - 1 - step };
        let row = &a[i * n..(i + 1) * n];
        let known = if lower { 0..i } else { i + 1..n };
        for j in known {
            let (target, source) = if j < i {
                let (before, rest) = x.split_at_mut(i * sides);
                (&mut rest[..sides], &before[j * sides..(j + 1) * sides])
            } else {
                let (before, rest) = x.split_at_mut(j * sides);
                (&mut before[i * sides..(i + 1) * sides], &rest[..sides])
            };
            for (t, s) in target.iter_mut().zip(source) {
                *t -= row[j] * *s;
            }
        }
        if !unit {
            for v in &mut x[i * sides..(i + 1) * sides] {
                *v = *v / row[i];
            }
        }
    }
}
