//! Matrix factorizations, linear systems and Fourier transforms.

use super::Shape;
use super::check::{Check, counts, need, same, same_type};
use super::operation::{Cost, Device, Operation, elements, two};
use refcpu_kernels::fft::{FftKind, fft};
use refcpu_kernels::linalg::{self, LinalgOp};
use refcpu_kernels::{Dst, Src};

/// A Fourier transform along the last dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fft {
    /// The kind of transform.
    pub kind: FftKind,
    /// The sizes of the transformed dimensions.
    pub lengths: Vec<usize>,
}

impl Operation for Fft {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        let (x, y, lengths) = (x[0], y[0], &self.lengths);
        let first = x.rank().checked_sub(lengths.len()).ok_or("the number of lengths exceeds the rank")?;
        need(
            x.rank() == y.rank() && x.dims[..first] == y.dims[..first],
            "the batch dimensions of the operand and the result differ",
        )?;
        let half = |s: &Shape| {
            let mut expected = lengths.clone();
            if let Some(last) = expected.last_mut() {
                *last = *last / 2 + usize::from(*last > 0);
            }
            s.dims[first..] == expected[..]
        };
        let whole = |s: &Shape| s.dims[first..] == lengths[..];
        let fits = match self.kind {
            FftKind::Fft | FftKind::Ifft => whole(x) && x == y,
            FftKind::Rfft => whole(x) && half(y),
            FftKind::Irfft => half(x) && whole(y),
        };
        need(fits, "the transformed dimensions do not fit the lengths")
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(5.0 * elements(x, 0) * elements(x, 0).max(2.0).log2())
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        fft(device.pool, r[0], w[0].reborrow(), self.kind, &self.lengths);
    }
}

/// Computes the triangular factor of positive definite matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cholesky {
    /// `true` for the lower factor, `false` for the upper one.
    pub lower: bool,
}

impl Operation for Cholesky {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same(x[0], y[0])?;
        need(is_square(x[0]), "the matrices are not square")
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(cubic(x, 0) / 3.0)
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        linalg::cholesky(device.pool, r[0], w[0].reborrow(), self.lower);
    }
}

impl Operation for linalg::TriangularSolve {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        same(x[1], y[0])?;
        same_type(x[0], y[0])?;
        let rank = x[0].rank();
        need(
            is_square(x[0]) && x[1].rank() == rank,
            "the matrices of the system are not square, or the operands differ in rank",
        )?;
        let side = x[1].dims[if self.left_side { rank - 2 } else { rank - 1 }];
        let batch = x[0].dims[..rank - 2] == x[1].dims[..rank - 2];
        need(
            batch && side == x[0].dims[rank - 1],
            "the dimensions of the right-hand side do not fit those of the system",
        )
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(cubic(x, 1))
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        linalg::triangular_solve(device.pool, r[0], r[1], w[0].reborrow(), *self);
    }
}

/// Factors matrices into reflectors and their scales (LAPACK `geqrf`), which are two results.
#[derive(Debug)]
pub struct QrFactor;

impl Operation for QrFactor {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 2)?;
        same(x[0], y[0])?;
        let (a, scales, rank) = (x[0], y[1], x[0].rank());
        need(
            rank >= 2 && scales.rank() == rank - 1 && scales.dtype == a.dtype,
            "the operand has no matrices, or the rank or type of the scales does not fit",
        )?;
        let least = a.dims[rank - 2].min(a.dims[rank - 1]);
        need(
            scales.dims[rank - 2] == least && scales.dims[..rank - 2] == a.dims[..rank - 2],
            "the dimensions of the scales do not fit the matrices",
        )
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(2.0 * cubic(x, 0))
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let (out, scales) = two(w);
        linalg::qr(device.pool, r[0], out, scales);
    }
}

/// Multiplies reflectors (LAPACK `orgqr`). The operands are the reflectors and their scales.
#[derive(Debug)]
pub struct QrProduct;

impl Operation for QrProduct {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        same(x[0], y[0])?;
        let (a, scales, rank) = (x[0], x[1], x[0].rank());
        need(
            rank >= 2 && scales.rank() == rank - 1 && scales.dtype == a.dtype,
            "the operand has no matrices, or the rank or type of the scales does not fit",
        )?;
        let fits = a.dims[rank - 2] >= a.dims[rank - 1] && scales.dims[rank - 2] <= a.dims[rank - 1];
        need(
            fits && scales.dims[..rank - 2] == a.dims[..rank - 2],
            "the dimensions of the scales do not fit the matrices",
        )
    }

    fn cost(&self, x: &[&Shape], y: &[&Shape]) -> Option<Cost> {
        QrFactor.cost(x, y)
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        linalg::householder_product(device.pool, r[0], r[1], w[0].reborrow());
    }
}

impl Operation for LinalgOp {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        let operands: Vec<_> = x.iter().map(|s| (s.dtype, &*s.dims)).collect();
        let results = self.results(&operands)?;
        let found = y.iter().map(|s| (s.dtype, &*s.dims));
        need(
            results.iter().map(|(dtype, dims)| (*dtype, &dims[..])).eq(found),
            "the types of the results do not follow from those of the operands",
        )
    }

    /// Returns the cost. Most operations have cubic cost, and iterative ones count as a few such operations.
    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        Cost::flops(4.0 * cubic(x, 0))
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        linalg::linalg(device.pool, *self, r, w);
    }
}

fn is_square(s: &Shape) -> bool {
    let rank = s.rank();
    rank >= 2 && s.dims[rank - 1] == s.dims[rank - 2]
}

/// Returns the number of elements of an operand, multiplied by the last dimension of the first operand.
fn cubic(x: &[&Shape], operand: usize) -> f64 {
    let rows = x.first().and_then(|s| s.dims.last()).map_or(0.0, |d| *d as f64);
    elements(x, operand) * rows
}
