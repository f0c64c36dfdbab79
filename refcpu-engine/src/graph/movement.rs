//! Operations that make arrays of coordinates, and that show elements in other places.

use super::Shape;
use super::check::{Check, counts, need, need_dims, same, same_type};
use super::operation::{Cost, Device, Execution, Operation};
use refcpu_kernels::{Dst, Src, copy};

/// Each element's coordinate along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iota {
    /// The dimension.
    pub dim: usize,
}

impl Operation for Iota {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 0, 1)?;
        need(self.dim < y[0].rank(), "iota along a dimension that is not there")
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// Dimension `i` of the operand becomes `dims[i]` of the result; others repeat.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// Where the operand's dimensions go.
    pub dims: Vec<usize>,
}

impl Operation for Broadcast {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        need_dims(&self.dims, y[0].rank(), "broadcast to dimensions that are not there")?;
        need(self.dims.len() == x[0].rank(), "a broadcast of some dimensions only")?;
        let kept = self.dims.iter().map(|d| y[0].dims[*d]).eq(x[0].dims.iter().copied());
        need(kept, "a broadcast that changes sizes")
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::broadcast_in_dim(device.pool, r[0], w[0].reborrow(), &self.dims);
    }
}

/// The same elements in the same order.
#[derive(Debug)]
pub struct Reshape;

impl Operation for Reshape {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        need(
            x[0].bytes() == y[0].bytes() && x[0].is_empty() == y[0].is_empty(),
            "a reshape that changes the number of elements",
        )
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// Dimension `i` of the result is `permutation[i]` of the operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transpose {
    /// The permutation.
    pub permutation: Vec<usize>,
}

impl Operation for Transpose {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        let rank = x[0].rank();
        need_dims(&self.permutation, rank, "no permutation")?;
        need(self.permutation.len() == rank && y[0].rank() == rank, "no permutation of all dimensions")?;
        let moved = self.permutation.iter().map(|p| x[0].dims[*p]).eq(y[0].dims.iter().copied());
        need(moved, "sizes do not fit the permutation")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::transpose(device.pool, r[0], w[0].reborrow(), &self.permutation);
    }
}

/// Every `stride`-th element from `start` on, as many as the result has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// First index.
    pub start: Vec<usize>,
    /// Step.
    pub stride: Vec<usize>,
}

impl Operation for Slice {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        let (start, stride, rank) = (&self.start, &self.stride, x[0].rank());
        need(start.len() == rank && stride.len() == rank && y[0].rank() == rank, "ranks differ")?;
        let inside = |d: usize| {
            let last = y[0].dims[d].checked_sub(1);
            let last = last.map(|n| n.checked_mul(stride[d]).and_then(|o| o.checked_add(start[d])));
            stride[d] > 0
                && start[d] <= x[0].dims[d]
                && last.is_none_or(|l| l.is_some_and(|l| l < x[0].dims[d]))
        };
        need((0..rank).all(inside), "a slice that leaves the array")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::slice(device.pool, r[0], w[0].reborrow(), &self.start, &self.stride);
    }
}

/// The order along some dimensions reversed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reverse {
    /// The dimensions.
    pub dims: Vec<usize>,
}

impl Operation for Reverse {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same(x[0], y[0])?;
        need_dims(&self.dims, x[0].rank(), "dimensions that are not there")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::reverse(device.pool, r[0], w[0].reborrow(), &self.dims);
    }
}

/// Operand, padding value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pad {
    /// Elements added before each dimension (negative: removed).
    pub low: Vec<i64>,
    /// Elements added after each dimension.
    pub high: Vec<i64>,
    /// Elements added between neighbours.
    pub interior: Vec<i64>,
}

impl Operation for Pad {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        same_type(x[0], y[0])?;
        need(x[1].rank() == 0 && x[1].dtype == y[0].dtype, "the padding is no element")?;
        let (low, high, interior, rank) = (&self.low, &self.high, &self.interior, x[0].rank());
        let ranks = [low.len(), high.len(), interior.len(), y[0].rank()];
        need(ranks.iter().all(|n| *n == rank), "ranks differ")?;
        let fits = |d: usize| {
            let n = x[0].dims[d] as i128;
            let size =
                i128::from(low[d]) + n + (n - 1).max(0) * i128::from(interior[d]) + i128::from(high[d]);
            interior[d] >= 0 && size.max(0) == y[0].dims[d] as i128
        };
        need((0..rank).all(fits), "the result is not as large as the padding makes it")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::pad(device.pool, r[0], r[1], w[0].reborrow(), &self.low, &self.high, &self.interior);
    }
}

/// The operands one after the other along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concatenate {
    /// The dimension.
    pub dim: usize,
}

impl Operation for Concatenate {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(!x.is_empty() && y.len() == 1, "nothing to concatenate")?;
        need(self.dim < y[0].rank(), "no such dimension")?;
        let alike = |s: &&Shape| {
            s.dtype == y[0].dtype
                && s.rank() == y[0].rank()
                && (0..s.rank()).all(|d| d == self.dim || s.dims[d] == y[0].dims[d])
        };
        need(x.iter().all(alike), "arrays that do not fit together")?;
        let total = x.iter().try_fold(0usize, |n, s| n.checked_add(s.dims[self.dim]));
        need(total == Some(y[0].dims[self.dim]), "the result is not as long as its parts")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::concatenate(device.pool, r, w[0].reborrow(), self.dim);
    }
}
