//! StableHLO `triangular_solve`.

use super::matrix::{
    BatchIn, BatchOut, Field, Storage, View, by_storage, for_each_matrix, matrix_dims, subtract_product,
};
use crate::copy::check_same_type;
use crate::{Dst, Pool, Src};

/// The transformation of the matrix before solving, named as in StableHLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransposeA {
    /// Nothing.
    NoTranspose,
    /// The matrix is transposed.
    Transpose,
    /// The matrix is transposed and conjugated.
    Adjoint,
}

/// The equation to solve. The fields have the names of StableHLO's attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TriangularSolve {
    /// `op(a) * x = b` if true, `x * op(a) = b` if false.
    pub left_side: bool,
    /// `true` to read the lower triangle of `a`, `false` to read the upper one.
    pub lower: bool,
    /// `true` if the diagonal consists of ones and is not read.
    pub unit_diagonal: bool,
    /// The definition of `op`.
    pub transpose_a: TransposeA,
}

/// Solves for `x`, written to `out`, for each matrix `a` and right-hand side `b` of the batch. Allocates
/// memory for one system per thread.
///
/// # Panics
/// Panics if shapes or types do not match, or if the type is not supported by linear algebra.
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

/// Systems up to this size are solved by substitution.
const BASE: usize = 16;
/// The number of columns of right-hand sides that are solved for at a time.
const STRIP: usize = 32;

fn run<S: Storage>(pool: &Pool, a: Src<'_>, b: Src<'_>, mut out: Dst<'_>, spec: TriangularSolve) {
    if out.is_empty() {
        return;
    }
    let (_, m, k) = matrix_dims("triangular_solve", b.dtype(), b.dims());
    let (n, sides) = if spec.left_side { (m, k) } else { (k, m) };
    let count = out.len() / (m * k);
    let (matrices, right) = (BatchIn::<S>::new(&a, n * n), BatchIn::<S>::new(&b, m * k));
    let to = BatchOut::<S>::new(&mut out, m * k);
    for_each_matrix(pool, count, n * n * sides, &|range, pool| {
        let (mut a, mut x) = (vec![S::Number::ZERO; n * n], vec![S::Number::ZERO; m * k]);
        let mut y = vec![S::Number::ZERO; if spec.left_side { 0 } else { m * k }];
        // `x * op(a) = b` is `op(a)^T * x^T = b^T`.
        let transposed = (spec.transpose_a != TransposeA::NoTranspose) == spec.left_side;
        for index in range {
            // SAFETY: the operands live in the calling frame and are of the type of `S`.
            unsafe {
                matrices.load(index, &mut a);
                right.load(index, &mut x);
            }
            let mut matrix = View::dense(a.as_mut_ptr(), n);
            if transposed {
                matrix = matrix.transposed();
            }
            if spec.transpose_a == TransposeA::Adjoint {
                matrix = matrix.conj();
            }
            if !spec.left_side {
                transpose(&x, &mut y, m, k);
            }
            let values = View::dense(if spec.left_side { x.as_mut_ptr() } else { y.as_mut_ptr() }, sides);
            pool.run(sides.div_ceil(STRIP), &|strip| {
                let count = STRIP.min(sides - strip * STRIP);
                let values = values.at(0, strip * STRIP);
                // SAFETY: the views are of local vectors; strips consist of different columns.
                unsafe { solve(matrix, values, n, count, spec.lower != transposed, spec.unit_diagonal) };
            });
            if !spec.left_side {
                transpose(&y, &mut x, k, m);
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

/// Solves `a * y = x` and stores `y` in `x`, `n` rows of `sides` contiguous columns. The algorithm is
/// recursive: it solves one half of the system, and subtracts the product with the result from the other
/// half.
///
/// # Safety
/// All elements of both must be accessible, and nothing else may access those of `x`; they must not overlap.
pub(super) unsafe fn solve<T: Field>(
    a: View<T>,
    x: View<T>,
    n: usize,
    sides: usize,
    lower: bool,
    unit: bool,
) {
    // SAFETY: guaranteed by the caller; parts are in their matrices, and rows of `x` are distinct.
    unsafe {
        if n > BASE {
            let (first, rest) = (n / 2, n - n / 2);
            let (corner, tail) = (a.at(first, first), x.at(first, 0));
            if lower {
                solve(a, x, first, sides, lower, unit);
                subtract_product(tail, a.at(first, 0), x, (rest, first, sides));
                solve(corner, tail, rest, sides, lower, unit);
            } else {
                solve(corner, tail, rest, sides, lower, unit);
                subtract_product(x, a.at(0, first), tail, (first, rest, sides));
                solve(a, x, first, sides, lower, unit);
            }
            return;
        }
        for step in 0..n {
            let i = if lower { step } else { n - 1 - step };
            let row = std::slice::from_raw_parts_mut(x.at(i, 0).ptr, sides);
            for j in if lower { 0..i } else { i + 1..n } {
                let factor = a.read(i, j);
                let known = std::slice::from_raw_parts(x.at(j, 0).ptr, sides);
                for (r, k) in row.iter_mut().zip(known) {
                    *r -= factor * *k;
                }
            }
            if !unit {
                let diagonal = a.read(i, i);
                for r in row {
                    *r = r.over(diagonal);
                }
            }
        }
    }
}
