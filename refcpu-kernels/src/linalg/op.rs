//! The operations of linear algebra that StableHLO does not have, in one table: their operands, results and
//! functions.

use super::matrix::by_storage;
use super::svd::SvdVectors;
use super::{
    cholesky_update, eig, eigh, hessenberg, lu, ormqr, pivoted_qr, schur, svd, tridiagonal, tridiagonal_solve,
};
use crate::{DType, Dst, Pool, Src};
use half::{bf16, f16};

/// An operation on batches of matrices, in the last two dimensions. Named as JAX's primitives are;
/// conventions are LAPACK's.
///
/// If a matrix is not finite, or an iteration does not converge, all results of the matrix are NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinalgOp {
    /// The upper triangular factor of `R^T * R + w * w^T`; operands `R` and `w`, real.
    CholeskyUpdate,
    /// Eigenvalues, then left eigenvectors if wanted, then right ones if wanted; all complex, vectors in
    /// columns.
    Eig {
        /// Left eigenvectors are wanted.
        left: bool,
        /// Right eigenvectors are wanted.
        right: bool,
    },
    /// Eigenvectors of Hermitian matrices, in columns, and eigenvalues, ascending.
    Eigh {
        /// The triangle of the operand that is read.
        lower: bool,
    },
    /// QR with column pivoting (`geqp3`). The operands are the matrix and the columns that come first; the
    /// results are the matrix, the permutation of columns from 1, and the reflectors' factors.
    Geqp3,
    /// Hessenberg form (`gehrd`): matrix and reflectors' factors.
    Hessenberg,
    /// LU factors with partial pivoting (`getrf`): matrix, swapped rows from 0, permutation of rows.
    Lu,
    /// The permutations of `size` numbers that swaps amount to.
    LuPivotsToPermutation {
        /// The size of the permutation.
        size: usize,
    },
    /// Products with the unitary factor of a QR factorization: operands reflectors, their factors, matrix.
    Ormqr {
        /// `true` if the factor is the left operand of the product.
        left: bool,
        /// `true` to use the factor's adjoint.
        transpose: bool,
    },
    /// Schur form, then the unitary factor if wanted.
    Schur {
        /// The unitary factor is wanted.
        vectors: bool,
    },
    /// Singular values, descending, then, if wanted, left vectors in columns and right ones, conjugated, in
    /// rows.
    Svd(SvdVectors),
    /// Tridiagonal form of Hermitian matrices (`sytrd`): matrix, diagonal, diagonal next to it, reflectors'
    /// factors.
    Tridiagonal {
        /// The triangle of the operand that is read.
        lower: bool,
    },
    /// Tridiagonal systems: operands diagonal below, main diagonal, diagonal above, right sides.
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
        let count = match self {
            LinalgOp::CholeskyUpdate | LinalgOp::Geqp3 => 2,
            LinalgOp::Ormqr { .. } => 3,
            LinalgOp::TridiagonalSolve { .. } => 4,
            _ => 1,
        };
        if operands.len() != count {
            return Err(format!("it takes {count} operands, not {}", operands.len()));
        }
        let rank = if matches!(self, LinalgOp::LuPivotsToPermutation { .. }) { 1 } else { 2 };
        let (dtype, dims) = *operands.last().ok_or("no operands")?;
        let (dtype, dims) = if count == 2 { operands[0] } else { (dtype, dims) };
        let Some(batch) = dims.len().checked_sub(rank).map(|at| &dims[..at]) else {
            return Err(format!("operands have at least {rank} dimensions, not {}", dims.len()));
        };
        let with = |tail: &[usize]| [batch, tail].concat();
        if let LinalgOp::LuPivotsToPermutation { size } = self {
            let fits = dtype == DType::S32 && dims[dims.len() - 1] <= *size && i32::try_from(*size).is_ok();
            return if fits {
                Ok(vec![(dtype, with(&[*size]))])
            } else {
                Err(format!("swaps are at most {size} numbers of type s32"))
            };
        }
        let Some((real, complex)) = parts_of(dtype) else {
            return Err(format!("there is no linear algebra over {dtype:?}"));
        };
        let (m, n) = (dims[dims.len() - 2], dims[dims.len() - 1]);
        let (k, less) = (m.min(n), n.saturating_sub(1));
        let is_square = matches!(
            self,
            LinalgOp::CholeskyUpdate
                | LinalgOp::Eig { .. }
                | LinalgOp::Eigh { .. }
                | LinalgOp::Hessenberg
                | LinalgOp::Schur { .. }
                | LinalgOp::Tridiagonal { .. }
        );
        if is_square && m != n {
            return Err(format!("the matrices are {m} by {n}, not square"));
        }
        if i32::try_from(m.max(n)).is_err() {
            return Err(format!("matrices of {m} by {n} are too large"));
        }
        let need = |at: usize, dtype: DType, dims: Vec<usize>| {
            let (found, sizes) = operands[at];
            if found == dtype && sizes == dims {
                Ok(())
            } else {
                Err(format!("operand {at} is {found:?}{sizes:?}, not {dtype:?}{dims:?}"))
            }
        };
        Ok(match self {
            LinalgOp::CholeskyUpdate => {
                if dtype != real {
                    return Err(format!("there is no update of factors over {dtype:?}"));
                }
                need(1, dtype, with(&[n]))?;
                vec![(dtype, dims.to_vec())]
            }
            LinalgOp::Eig { left, right } => {
                let vectors = usize::from(*left) + usize::from(*right);
                let mut results = vec![(complex, with(&[n]))];
                results.extend(std::iter::repeat_n((complex, dims.to_vec()), vectors));
                results
            }
            LinalgOp::Eigh { .. } => vec![(dtype, dims.to_vec()), (real, with(&[n]))],
            LinalgOp::Geqp3 => {
                need(1, DType::S32, with(&[n]))?;
                vec![(dtype, dims.to_vec()), (DType::S32, with(&[n])), (dtype, with(&[k]))]
            }
            LinalgOp::Hessenberg => vec![(dtype, dims.to_vec()), (dtype, with(&[less]))],
            LinalgOp::Lu => {
                vec![(dtype, dims.to_vec()), (DType::S32, with(&[k])), (DType::S32, with(&[m]))]
            }
            LinalgOp::LuPivotsToPermutation { .. } => vec![],
            LinalgOp::Ormqr { left, .. } => {
                let &[.., width] = operands[0].1 else { return Err("operand 0 is no matrix".to_string()) };
                let &[.., factors] = operands[1].1 else { return Err("operand 1 is no vector".to_string()) };
                let height = if *left { m } else { n };
                need(0, dtype, with(&[height, width]))?;
                need(1, dtype, with(&[factors]))?;
                if factors > height.min(width) {
                    return Err(format!("{factors} reflectors in {height} by {width}"));
                }
                vec![(dtype, dims.to_vec())]
            }
            LinalgOp::Schur { vectors } => vec![(dtype, dims.to_vec()); 1 + usize::from(*vectors)],
            LinalgOp::Svd(vectors) => {
                let mut results = vec![(real, with(&[k]))];
                match vectors {
                    SvdVectors::Nothing => {}
                    SvdVectors::Thin => results.extend([(dtype, with(&[m, k])), (dtype, with(&[k, n]))]),
                    SvdVectors::Full => results.extend([(dtype, with(&[m, m])), (dtype, with(&[n, n]))]),
                }
                results
            }
            LinalgOp::Tridiagonal { .. } => vec![
                (dtype, dims.to_vec()),
                (real, with(&[n])),
                (real, with(&[less])),
                (dtype, with(&[less])),
            ],
            LinalgOp::TridiagonalSolve { .. } => {
                for at in 0..3 {
                    need(at, dtype, with(&[m]))?;
                }
                vec![(dtype, dims.to_vec())]
            }
        })
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
