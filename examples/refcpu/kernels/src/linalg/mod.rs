//! Factorisations and triangular solves of batches of matrices.
//!
//! All take F32, F64, C64 and C128, and F16 and BF16, which are computed in F32 and rounded at the end.

mod cholesky;
mod matrix;
mod qr;
mod triangular;

pub use cholesky::cholesky;
pub use qr::{householder_product, qr};
pub use triangular::{TransposeA, TriangularSolve, triangular_solve};

#[cfg(test)]
mod tests;
