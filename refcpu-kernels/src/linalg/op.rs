//! The operations of linear algebra that StableHLO does not have, in one table: their operands, results and
//! functions.

use super::matrix::by_storage;
use super::svd::SvdVectors;
use super::{
    cholesky_update, eig, eigh, hessenberg, lu, ormqr, pivoted_qr, schur, svd, tridiagonal, tridiagonal_solve,
};
use crate::{DType, Dst, Pool, Src};
use half::{bf16, f16};

/// An operation on batches of matrices, in the last two dimensions. The names are those of JAX's primitives; the conventions
/// are those of LAPACK.
///
/// If a matrix is not finite, or an iteration does not converge, all results of the matrix are NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinalgOp {
    /// The upper triangular factor of `R^T * R + w * w^T`. The operands are `R` and `w`, which are real.
    CholeskyUpdate,
    /// Eigenvalues and eigenvectors. The results are the eigenvalues, then the requested left and right eigenvectors, in
    /// columns; all are complex.
    Eig {
        /// `true` to compute left eigenvectors.
        left: bool,
        /// `true` to compute right eigenvectors.
        right: bool,
    },
    /// Eigenvectors of Hermitian matrices, in columns, and eigenvalues, in ascending order.
    Eigh {
        /// `true` to read the lower triangle of the operand, `false` to read the upper one.
        lower: bool,
    },
    /// QR with column pivoting (`geqp3`). The operands are the matrix and the columns that come first; the results are the
    /// matrix, the permutation of the columns, counted from 1, and the reflectors' factors.
    Geqp3,
    /// Hessenberg form (`gehrd`). The results are the matrix and the reflectors' factors.
    Hessenberg,
    /// LU factors with partial pivoting (`getrf`). The results are the matrix, the swapped rows, counted from 0, and the
    /// permutation of the rows.
    Lu,
    /// The permutations of `size` numbers that swaps amount to.
    LuPivotsToPermutation {
        /// The size of the permutation.
        size: usize,
    },
    /// Products with the unitary factor of a QR factorization. The operands are the reflectors, their factors and the
    /// matrix.
    Ormqr {
        /// `true` if the factor is the left operand of the product.
        left: bool,
        /// `true` to use the factor's adjoint.
        transpose: bool,
    },
    /// Schur form, then the unitary factor if `vectors` is `true`.
    Schur {
        /// `true` to compute the unitary factor.
        vectors: bool,
    },
    /// Singular values in descending order, then, if requested, left vectors in columns and conjugated right vectors in
    /// rows.
    Svd(SvdVectors),
    /// Tridiagonal form of Hermitian matrices (`sytrd`). The results are the matrix, the diagonal, the diagonal next to it,
    /// and the reflectors' factors.
    Tridiagonal {
        /// `true` to read the lower triangle of the operand, `false` to read the upper one.
        lower: bool,
    },
    /// Solutions of tridiagonal systems. The operands are the diagonal below the main one, the main diagonal, the diagonal
    /// above it, and the right-hand sides.
    TridiagonalSolve {
        /// `true` to replace pivots that are too small; otherwise, the results of singular matrices are NaN.
        perturb_singular: bool,
    },
}

/// The type and sizes of an array.
pub type ArrayType<'a> = (DType, &'a [usize]);

impl LinalgOp {
    /// Returns the types and sizes of the results.
    ///
    /// # Errors
    /// Returns an error that explains why the operation does not support operands of these types and sizes.
    pub fn results(&self, operands: &[ArrayType<'_>]) -> Result<Vec<(DType, Vec<usize>)>, String> {
        // The sizes of the results follow from this operand.
        let (count, main) = match self {
            Self::CholeskyUpdate | Self::Geqp3 => (2, 0),
            Self::Ormqr { .. } => (3, 2),
            Self::TridiagonalSolve { .. } => (4, 3),
            _ => (1, 0),
        };
        if operands.len() != count {
            return Err(format!("expected {count} operands, found {}", operands.len()));
        }
        if let Self::LuPivotsToPermutation { size } = self {
            return permutation(operands[main], *size);
        }
        let matrices = Matrices::new(operands[main])?;
        let is_square = matches!(
            self,
            Self::CholeskyUpdate
                | Self::Eig { .. }
                | Self::Eigh { .. }
                | Self::Hessenberg
                | Self::Schur { .. }
                | Self::Tridiagonal { .. }
        );
        let (m, n) = (matrices.m, matrices.n);
        if is_square && m != n {
            return Err(format!("expected square matrices, found {m} by {n}"));
        }
        if i32::try_from(m.max(n)).is_err() {
            return Err(format!("matrices of {m} by {n} are too large"));
        }
        self.check_other_operands(operands, &matrices)?;
        Ok(self.results_of(&matrices))
    }

    /// Checks the operands other than the one that is described by `matrices`.
    fn check_other_operands(
        &self,
        operands: &[ArrayType<'_>],
        matrices: &Matrices<'_>,
    ) -> Result<(), String> {
        let Matrices { dtype, m, n, .. } = *matrices;
        let expect = |at: usize, dtype: DType, tail: &[usize]| {
            let (found, sizes) = operands[at];
            let dims = matrices.with(tail);
            if found == dtype && sizes == dims {
                Ok(())
            } else {
                Err(format!("expected {dtype:?}{dims:?} as operand {at}, found {found:?}{sizes:?}"))
            }
        };
        match self {
            Self::CholeskyUpdate if dtype != matrices.real => {
                Err(format!("updates of factors over {dtype:?} are not supported"))
            }
            Self::CholeskyUpdate => expect(1, dtype, &[n]),
            Self::Geqp3 => expect(1, DType::S32, &[n]),
            Self::Ormqr { left, .. } => {
                let &[.., width] = operands[0].1 else {
                    return Err("expected matrices as operand 0".to_string());
                };
                let &[.., factors] = operands[1].1 else {
                    return Err("expected vectors as operand 1".to_string());
                };
                let height = if *left { m } else { n };
                expect(0, dtype, &[height, width])?;
                expect(1, dtype, &[factors])?;
                if factors > height.min(width) {
                    return Err(format!(
                        "expected at most {} reflectors for matrices of {height} by {width}, found {factors}",
                        height.min(width)
                    ));
                }
                Ok(())
            }
            Self::TridiagonalSolve { .. } => (0..3).try_for_each(|at| expect(at, dtype, &[m])),
            _ => Ok(()),
        }
    }

    /// Returns the types and sizes of the results for operands that were checked.
    fn results_of(&self, matrices: &Matrices<'_>) -> Vec<(DType, Vec<usize>)> {
        let Matrices { dtype, real, complex, m, n, .. } = *matrices;
        let (k, less) = (m.min(n), n.saturating_sub(1));
        let same = || (dtype, matrices.with(&[m, n]));
        let with = |dtype: DType, tail: &[usize]| (dtype, matrices.with(tail));
        match self {
            Self::CholeskyUpdate | Self::Ormqr { .. } | Self::TridiagonalSolve { .. } => vec![same()],
            Self::Eig { left, right } => {
                let vectors = usize::from(*left) + usize::from(*right);
                let mut results = vec![with(complex, &[n])];
                results.extend(std::iter::repeat_n(with(complex, &[m, n]), vectors));
                results
            }
            Self::Eigh { .. } => vec![same(), with(real, &[n])],
            Self::Geqp3 => vec![same(), with(DType::S32, &[n]), with(dtype, &[k])],
            Self::Hessenberg => vec![same(), with(dtype, &[less])],
            Self::Lu => vec![same(), with(DType::S32, &[k]), with(DType::S32, &[m])],
            Self::LuPivotsToPermutation { .. } => vec![],
            Self::Schur { vectors } => vec![same(); 1 + usize::from(*vectors)],
            Self::Svd(vectors) => {
                let mut results = vec![with(real, &[k])];
                match vectors {
                    SvdVectors::Nothing => {}
                    SvdVectors::Thin => results.extend([with(dtype, &[m, k]), with(dtype, &[k, n])]),
                    SvdVectors::Full => results.extend([with(dtype, &[m, m]), with(dtype, &[n, n])]),
                }
                results
            }
            Self::Tridiagonal { .. } => {
                vec![same(), with(real, &[n]), with(real, &[less]), with(dtype, &[less])]
            }
        }
    }
}

/// A batch of matrices of `m` by `n` elements.
struct Matrices<'a> {
    dtype: DType,
    /// The real and the complex type with the precision of `dtype`.
    real: DType,
    complex: DType,
    /// The dimensions of the batch.
    batch: &'a [usize],
    m: usize,
    n: usize,
}

impl<'a> Matrices<'a> {
    fn new((dtype, dims): ArrayType<'a>) -> Result<Self, String> {
        let [batch @ .., m, n] = dims else {
            return Err(format!("expected operands with at least 2 dimensions, found {}", dims.len()));
        };
        let Some((real, complex)) = parts_of(dtype) else {
            return Err(format!("linear algebra over {dtype:?} is not supported"));
        };
        Ok(Self { dtype, real, complex, batch, m: *m, n: *n })
    }

    /// Returns the dimensions of a batch of arrays with the dimensions `tail`.
    fn with(&self, tail: &[usize]) -> Vec<usize> {
        [self.batch, tail].concat()
    }
}

/// Returns the type and sizes of the permutations of `size` numbers, for an operand of swaps.
fn permutation((dtype, dims): ArrayType<'_>, size: usize) -> Result<Vec<(DType, Vec<usize>)>, String> {
    let [batch @ .., swaps] = dims else {
        return Err("expected an operand with at least 1 dimension, found 0".to_string());
    };
    if dtype == DType::S32 && *swaps <= size && i32::try_from(size).is_ok() {
        Ok(vec![(dtype, [batch, &[size]].concat())])
    } else {
        Err(format!("expected at most {size} swaps of type S32, found {swaps} of type {dtype:?}"))
    }
}

/// Returns the real and the complex type that correspond to a type.
fn parts_of(dtype: DType) -> Option<(DType, DType)> {
    Some(match dtype {
        DType::F16 | DType::BF16 | DType::F32 => (dtype, DType::C64),
        DType::F64 => (dtype, DType::C128),
        DType::C64 => (DType::F32, DType::C64),
        DType::C128 => (DType::F64, DType::C128),
        _ => return None,
    })
}

/// Runs an operation. Allocates memory for a few matrices per thread.
///
/// # Panics
/// Panics if the operation does not support these operands or results.
pub fn linalg(pool: &Pool, op: LinalgOp, r: &[Src<'_>], w: &mut [Dst<'_>]) {
    let operands: Vec<ArrayType<'_>> = r.iter().map(|s| (s.dtype(), s.dims())).collect();
    let results = op.results(&operands).unwrap_or_else(|why| panic!("{op:?} of {operands:?}: {why}"));
    let fits = results.len() == w.len()
        && results.iter().zip(&*w).all(|((dtype, dims), d)| *dtype == d.dtype() && dims == d.dims());
    assert!(fits, "{op:?} of {operands:?}: the results must be {results:?}");
    let dtype = r[r.len() - 1].dtype();
    match op {
        LinalgOp::CholeskyUpdate => match dtype {
            DType::F16 => cholesky_update::run::<f16>(pool, r[0], r[1], w),
            DType::BF16 => cholesky_update::run::<bf16>(pool, r[0], r[1], w),
            DType::F32 => cholesky_update::run::<f32>(pool, r[0], r[1], w),
            _ => cholesky_update::run::<f64>(pool, r[0], r[1], w),
        },
        LinalgOp::Eig { left, right } => by_storage!("eig", dtype, eig::run(pool, r[0], w, left, right)),
        LinalgOp::Eigh { lower } => by_storage!("eigh", dtype, eigh::run(pool, r[0], w, lower)),
        LinalgOp::Geqp3 => by_storage!("geqp3", r[0].dtype(), pivoted_qr::run(pool, r[0], r[1], w)),
        LinalgOp::Hessenberg => by_storage!("hessenberg", dtype, hessenberg::run(pool, r[0], w)),
        LinalgOp::Lu => by_storage!("lu", dtype, lu::run(pool, r[0], w)),
        LinalgOp::LuPivotsToPermutation { .. } => lu::run_permutation(pool, r[0], w),
        LinalgOp::Ormqr { left, transpose } => {
            by_storage!("ormqr", dtype, ormqr::run(pool, r, w, left, transpose));
        }
        LinalgOp::Schur { .. } => by_storage!("schur", dtype, schur::run(pool, r[0], w)),
        LinalgOp::Svd(vectors) => by_storage!("svd", dtype, svd::run(pool, r[0], w, vectors)),
        LinalgOp::Tridiagonal { lower } => {
            by_storage!("tridiagonal", dtype, tridiagonal::run(pool, r[0], w, lower));
        }
        LinalgOp::TridiagonalSolve { perturb_singular } => {
            by_storage!("tridiagonal_solve", dtype, tridiagonal_solve::run(pool, r, w, perturb_singular));
        }
    }
}
