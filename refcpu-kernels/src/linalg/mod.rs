//! Factorizations and triangular solves of batches of matrices.
//!
//! All functions support F32, F64, C64 and C128, and also F16 and BF16, which are computed in F32 and rounded
//! at the end. Operations that StableHLO does not have are [`LinalgOp`]s.

mod bidiagonal;
mod cholesky;
mod cholesky_update;
mod eig;
mod eigh;
mod hessenberg;
mod lu;
mod matrix;
mod op;
mod ormqr;
mod panel;
mod pivoted_qr;
mod qr;
mod reflector;
mod rotation;
mod schur;
mod svd;
mod triangular;
mod tridiagonal;
mod tridiagonal_solve;

pub use cholesky::cholesky;
pub use op::{ArrayType, LinalgOp, linalg};
pub use qr::{householder_product, qr};
pub use svd::SvdVectors;
pub use triangular::{TransposeA, TriangularSolve, triangular_solve};

#[cfg(test)]
mod tests;
