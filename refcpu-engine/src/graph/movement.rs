//! Iotas, and operations that move elements.

use super::Shape;
use super::check::{Check, counts, need, need_dims, same, same_type};
use super::operation::{Cost, Device, Execution, Operation};
use refcpu_kernels::{Dst, Src, copy};
use std::ops::Range;

/// The coordinates of each element along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iota {
    /// The dimension.
    pub dim: usize,
}

impl Operation for Iota {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 0, 1)?;
        need(self.dim < y[0].rank(), "the dimension is not less than the rank")
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// A broadcast. Dimension `i` of the operand becomes dimension `dims[i]` of the result; elements repeat along the others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// For each dimension of the operand, the dimension of the result.
    pub dims: Vec<usize>,
}

impl Operation for Broadcast {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        need_dims(&self.dims, y[0].rank(), "dims is not a list of distinct dimensions of the result")?;
        need(self.dims.len() == x[0].rank(), "the number of entries of dims is not the rank of the operand")?;
        let kept = self.dims.iter().map(|d| y[0].dims[*d]).eq(x[0].dims.iter().copied());
        need(kept, "a dimension of the operand and its dimension of the result differ in size")
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::broadcast_in_dim(device.pool, r[0], w[0].reborrow(), &self.dims);
    }
}

/// A reshape: the same elements in the same order.
#[derive(Debug)]
pub struct Reshape;

impl Operation for Reshape {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        need(
            x[0].bytes() == y[0].bytes() && x[0].is_empty() == y[0].is_empty(),
            "the operand and the result have different numbers of elements",
        )
    }

    fn cost(&self, _x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        None
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// A transpose. Dimension `i` of the result is dimension `permutation[i]` of the operand.
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
        need_dims(&self.permutation, rank, "the list is not a permutation of the dimensions")?;
        need(
            self.permutation.len() == rank && y[0].rank() == rank,
            "the list is not a permutation of all dimensions",
        )?;
        let moved = self.permutation.iter().map(|p| x[0].dims[*p]).eq(y[0].dims.iter().copied());
        need(moved, "the dimensions of the result are not the permuted dimensions of the operand")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::transpose(device.pool, r[0], w[0].reborrow(), &self.permutation);
    }
}

/// A slice: every `stride`-th element from `start`. The dimensions of the result determine the number of elements.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The first index in each dimension.
    pub start: Vec<usize>,
    /// The distance between elements in each dimension.
    pub stride: Vec<usize>,
}

impl Operation for Slice {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same_type(x[0], y[0])?;
        let (start, stride, rank) = (&self.start, &self.stride, x[0].rank());
        need(
            start.len() == rank && stride.len() == rank && y[0].rank() == rank,
            "start, stride and the result do not have the rank of the operand",
        )?;
        let inside = |d: usize| {
            let last = y[0].dims[d].checked_sub(1);
            let last = last.map(|n| n.checked_mul(stride[d]).and_then(|o| o.checked_add(start[d])));
            stride[d] > 0
                && start[d] <= x[0].dims[d]
                && last.is_none_or(|l| l.is_some_and(|l| l < x[0].dims[d]))
        };
        need((0..rank).all(inside), "the slice exceeds the bounds of the array")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::slice(device.pool, r[0], w[0].reborrow(), &self.start, &self.stride);
    }
}

/// Reverses the order of elements along some dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reverse {
    /// The dimensions.
    pub dims: Vec<usize>,
}

impl Operation for Reverse {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 1)?;
        same(x[0], y[0])?;
        need_dims(&self.dims, x[0].rank(), "dims is not a list of distinct dimensions")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::reverse(device.pool, r[0], w[0].reborrow(), &self.dims);
    }
}

/// A pad. The operands are the array and the padding value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pad {
    /// The number of elements added before each dimension. A negative number removes elements.
    pub low: Vec<i64>,
    /// The number of elements added after each dimension. A negative number removes elements.
    pub high: Vec<i64>,
    /// The number of elements added between adjacent elements.
    pub interior: Vec<i64>,
}

impl Operation for Pad {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 2, 1)?;
        same_type(x[0], y[0])?;
        need(
            x[1].rank() == 0 && x[1].dtype == y[0].dtype,
            "the padding value is not a scalar of the array's element type",
        )?;
        let (low, high, interior, rank) = (&self.low, &self.high, &self.interior, x[0].rank());
        let ranks = [low.len(), high.len(), interior.len(), y[0].rank()];
        need(
            ranks.iter().all(|n| *n == rank),
            "low, high, interior and the result do not have the rank of the operand",
        )?;
        let fits = |d: usize| {
            let n = x[0].dims[d] as i128;
            let size =
                i128::from(low[d]) + n + (n - 1).max(0) * i128::from(interior[d]) + i128::from(high[d]);
            interior[d] >= 0 && size.max(0) == y[0].dims[d] as i128
        };
        need((0..rank).all(fits), "the dimensions of the result are not those of the padded operand")
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::pad(device.pool, r[0], r[1], w[0].reborrow(), &self.low, &self.high, &self.interior);
    }
}

/// Concatenates parts of the operands along a dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Concatenate {
    /// The dimension.
    pub dim: usize,
    /// For each operand, the indices along the dimension that the result contains.
    pub parts: Vec<Range<usize>>,
}

impl Operation for Concatenate {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        need(!x.is_empty() && y.len() == 1, "there are no operands, or more than one result")?;
        need(self.dim < y[0].rank(), "the dimension is not less than the rank")?;
        need(self.parts.len() == x.len(), "the number of parts is not that of the operands")?;
        let alike = |s: &&Shape| {
            s.dtype == y[0].dtype
                && s.rank() == y[0].rank()
                && (0..s.rank()).all(|d| d == self.dim || s.dims[d] == y[0].dims[d])
        };
        need(
            x.iter().all(alike),
            "the operands differ in element type, rank, or a dimension other than the concatenated one",
        )?;
        let inside =
            |(part, s): (&Range<usize>, &&Shape)| part.start <= part.end && part.end <= s.dims[self.dim];
        need(self.parts.iter().zip(x).all(inside), "a part exceeds its operand")?;
        let total = self.parts.iter().try_fold(0usize, |n, part| n.checked_add(part.len()));
        need(
            total == Some(y[0].dims[self.dim]),
            "the concatenated dimension of the result is not the sum of the sizes of the parts",
        )
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        copy::concatenate_parts(device.pool, r, &self.parts, w[0].reborrow(), self.dim);
    }
}
