//! Sorts.

use super::Shape;
use super::body::{Body, check_body};
use super::check::{Check, counts, need, same_type};
use super::operation::{Cost, Device, Execution, Operation, elements, two};
use refcpu_kernels::sort::{self, SortKey};
use refcpu_kernels::{DType, Dst, Src};

/// Sorts the operands together along a dimension by keys. There are as many results as operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The dimension.
    pub dim: usize,
    /// The keys, most significant first.
    pub keys: Vec<SortKey>,
}

impl Operation for Sort {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        sorted(x, y, self.dim)?;
        let there = !self.keys.is_empty() && self.keys.iter().all(|k| k.operand < x.len());
        need(there, "there are no keys, or a key refers to an operand that does not exist")
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        of_sorting(x)
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        sort::sort(device.pool, &self.keys, r, w, self.dim);
    }
}

/// Sorts the operands together along a dimension by a body. There are as many results as operands.
///
/// The parameters of the body are (a0, b0, a1, b1, ...); its result is whether a precedes b.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SortBy {
    /// The dimension.
    pub dim: usize,
    /// The body that compares elements.
    pub comparator: Body,
}

impl Operation for SortBy {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        sorted(x, y, self.dim)?;
        let pairs: Vec<Shape> = x.iter().flat_map(|s| [s, s]).map(|s| Shape::scalar(s.dtype)).collect();
        check_body(&self.comparator, &pairs, &[Shape::scalar(DType::Pred)])
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        of_sorting(x)
    }

    fn bodies(&self) -> Vec<&Body> {
        vec![&self.comparator]
    }

    fn execution(&self, _x: &[&Shape], _y: &[&Shape]) -> Execution {
        Execution::Compiled
    }
}

/// The greatest or smallest elements of each row, and their indices (i32), which are two results.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// `true` for the greatest elements, `false` for the smallest.
    pub largest: bool,
}

impl Operation for TopK {
    fn verify(&self, x: &[&Shape], y: &[&Shape]) -> Check {
        counts(x, y, 1, 2)?;
        same_type(x[0], y[0])?;
        let (Some((n, outer)), Some((k, kept))) = (x[0].dims.split_last(), y[0].dims.split_last()) else {
            return Err("the operand and the result must have at least one dimension".to_string());
        };
        let indices = y[1].dtype == DType::S32 && y[0].dims == y[1].dims;
        need(
            k <= n && outer == kept && indices,
            "the dimensions of the values and indices do not fit the operand, or the indices are not i32",
        )
    }

    fn cost(&self, x: &[&Shape], _y: &[&Shape]) -> Option<Cost> {
        of_sorting(x)
    }

    fn run(&self, device: &Device<'_>, r: &[Src<'_>], w: &mut [Dst<'_>]) {
        let count = w[0].dims().last().copied().unwrap_or(0);
        let (values, indices) = two(w);
        sort::top_k(device.pool, r[0], values, indices, count, self.largest);
    }
}

fn sorted(x: &[&Shape], y: &[&Shape], dim: usize) -> Check {
    need(
        !x.is_empty() && x.len() == y.len() && dim < x[0].rank(),
        "the numbers of operands and results differ or are zero, or the dimension is not less than the rank",
    )?;
    need(
        x.iter().zip(y).all(|(a, b)| a == b && a.dims == x[0].dims),
        "the operands differ in dimensions, or an operand and its result differ in type",
    )
}

fn of_sorting(x: &[&Shape]) -> Option<Cost> {
    Cost::flops(elements(x, 0) * elements(x, 0).max(2.0).log2())
}
