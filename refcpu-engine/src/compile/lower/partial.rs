//! Lowers unreduced arrays: their partial results are along a new first dimension.

use super::Scope;
use crate::graph::{Constant, Op as Core, Reducer, Shape, ValueId, ops as core_ops};
use pjrt_stablehlo::ir::Reduction;
use refcpu_kernels::tile::TileOp;
use refcpu_kernels::{DType, ReduceOp};

/// The partial results of an unreduced array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) count: usize,
    pub(crate) reduction: Reduction,
}

/// The partial results of each parameter and result of `main` that is unreduced.
#[derive(Default)]
pub(crate) struct Unreduced {
    pub(crate) parameters: Vec<Option<Terms>>,
    pub(crate) results: Vec<Option<Terms>>,
}

impl Scope<'_> {
    /// Reduces partial results along the first dimension.
    pub(super) fn reduce_terms(&mut self, terms: ValueId, reduction: Reduction) -> ValueId {
        match reduction {
            Reduction::Sum => self.sum_terms(terms),
            Reduction::Max => self.fold_terms(terms, TileOp::Maximum),
            Reduction::Min => self.fold_terms(terms, TileOp::Minimum),
        }
    }

    fn sum_terms(&mut self, terms: ValueId) -> ValueId {
        let shape = self.shape(terms);
        let op = if shape.dtype == DType::Pred { ReduceOp::Or } else { ReduceOp::Add };
        let nothing = self.b.constant(Constant::zero(Shape::scalar(shape.dtype)));
        let sum = Core::Reduce(core_ops::Reduce { dims: vec![0], reducer: Reducer::Op(op) });
        self.b.add(sum, &[terms, nothing], shape.with_dims(&shape.dims[1..]))
    }

    /// Combines partial results one after another, which needs no neutral element.
    fn fold_terms(&mut self, terms: ValueId, op: TileOp) -> ValueId {
        let shape = self.shape(terms);
        let mut term = |index: usize| {
            let (mut start, mut limit) = (vec![0; shape.rank()], shape.dims.to_vec());
            (start[0], limit[0]) = (index, index + 1);
            let term = self.b.slice(terms, &start, &limit);
            self.b.reshape(term, &shape.dims[1..])
        };
        let all: Vec<ValueId> = (0..shape.dims[0]).map(&mut term).collect();
        let combined = all.into_iter().reduce(|x, y| self.binary(op, x, y));
        combined.expect("an unreduced array has several partial results")
    }

    /// Adds a new first dimension of partial results whose reduction is the value. Of a sum, the first is the value and the others
    /// are zero; of a maximum or minimum, each is the value.
    pub(super) fn as_terms(&mut self, value: ValueId, terms: Terms) -> ValueId {
        let shape = self.shape(value);
        let dims = [&[terms.count], &*shape.dims].concat();
        if terms.reduction != Reduction::Sum {
            let map: Vec<usize> = (1..dims.len()).collect();
            return self.b.broadcast(value, &map, &dims);
        }
        let first = self.b.reshape(value, &[&[1], &*shape.dims].concat());
        let nothing = self.b.constant(Constant::zero(Shape::scalar(shape.dtype)));
        let mut high = vec![0; shape.rank() + 1];
        high[0] = terms.count as i64 - 1;
        let unchanged = vec![0; shape.rank() + 1];
        let pad = Core::Pad(core_ops::Pad { low: unchanged.clone(), high, interior: unchanged });
        self.b.add(pad, &[first, nothing], shape.with_dims(&dims))
    }
}
