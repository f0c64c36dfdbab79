//! Methods of [`Builder`] that move elements.

use super::Builder;
use crate::ir::ops::{BroadcastInDim, Iota, Reshape, Slice, Transpose};
use crate::ir::{ElementType, TensorType, ValueId};

impl Builder {
    /// Adds a `stablehlo.broadcast_in_dim` from the operand's dimensions to `dimensions` of a result with sizes `dims`.
    /// Returns the operand if it has these sizes.
    pub fn broadcast(&mut self, operand: ValueId, dimensions: &[i64], dims: &[i64]) -> ValueId {
        let ty = self.tensor(operand);
        if ty.dims() == dims && dimensions.iter().copied().eq(0..dims.len() as i64) {
            return operand;
        }
        let kind = BroadcastInDim { broadcast_dimensions: dimensions.into() };
        self.op_of_type(kind, &[operand], ty.with_dims(dims))
    }

    /// Broadcasts a scalar to sizes `dims`. Returns the operand if it has these sizes.
    pub fn broadcast_scalar(&mut self, operand: ValueId, dims: &[i64]) -> ValueId {
        if self.tensor(operand).rank() == dims.len() { operand } else { self.broadcast(operand, &[], dims) }
    }

    /// Adds a `stablehlo.reshape`. Returns the operand if it has these sizes.
    pub fn reshape(&mut self, operand: ValueId, dims: &[i64]) -> ValueId {
        let ty = self.tensor(operand);
        if ty.dims() == dims { operand } else { self.op_of_type(Reshape {}, &[operand], ty.with_dims(dims)) }
    }

    /// Adds a `stablehlo.transpose`. Returns the operand if the permutation is the identity.
    pub fn transpose(&mut self, operand: ValueId, permutation: &[i64]) -> ValueId {
        if permutation.iter().copied().eq(0..self.tensor(operand).rank() as i64) {
            return operand;
        }
        self.op(Transpose { permutation: permutation.into() }, &[operand])
    }

    /// Adds a `stablehlo.slice` with strides of 1.
    pub fn slice(&mut self, operand: ValueId, start: &[i64], limit: &[i64]) -> ValueId {
        let strides = vec![1; start.len()].into();
        self.op(Slice { start_indices: start.into(), limit_indices: limit.into(), strides }, &[operand])
    }

    /// Adds a `stablehlo.slice` of the elements `start..limit` along one dimension.
    pub fn slice_in_dim(&mut self, operand: ValueId, dimension: usize, start: i64, limit: i64) -> ValueId {
        let mut limits = self.dims(operand);
        let mut starts = vec![0; limits.len()];
        if let (Some(first), Some(end)) = (starts.get_mut(dimension), limits.get_mut(dimension)) {
            (*first, *end) = (start, limit);
        }
        self.slice(operand, &starts, &limits)
    }

    /// Adds a `stablehlo.iota`: integers from 0 along a dimension.
    pub fn iota(&mut self, element: ElementType, dims: &[i64], dimension: i64) -> ValueId {
        self.op_of_type(Iota { iota_dimension: dimension }, &[], TensorType::new(element, dims))
    }
}
