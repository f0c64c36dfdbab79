//! Lowers operations that read and write at computed indices.

use super::reducer::{Binary, binary};
use super::{CompileError, Result, Scope, to_usize, usizes};
use crate::graph::{Body, GatherDims, Op as Core, Reducer, ScatterDims, Shape, ValueId, ops as core_ops};
use pjrt_stablehlo::ir::{GatherDimensionNumbers, Op, OpId, Operation};

impl<'m> Scope<'m> {
    /// Lowers an operation of this file; returns `None` for other operations.
    pub(super) fn indexing_op(&mut self, id: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        match &op.kind {
            Op::DynamicSlice(_) => {
                let (operands, shape) = (self.flat(&op.operands)?, self.result_shape(op)?);
                Ok(Some(vec![self.b.add(Core::DynamicSlice, &operands, shape)]))
            }
            Op::DynamicUpdateSlice(_) => {
                let (operands, shape) = (self.flat(&op.operands)?, self.result_shape(op)?);
                Ok(Some(vec![self.b.add(Core::DynamicUpdateSlice, &operands, shape)]))
            }
            Op::Gather(o) => {
                let (operands, shape) = (self.flat(&op.operands)?, self.result_shape(op)?);
                let dims = gather_dims(&o.dimension_numbers, usizes(&o.slice_sizes)?)?;
                Ok(Some(vec![self.b.add(Core::Gather(Box::new(dims)), &operands, shape)]))
            }
            Op::Scatter(o) => {
                let (mut operands, shapes) = (self.flat(&op.operands)?, self.result_shapes(op)?);
                let updates = operands.split_off(shapes.len() + 1);
                let indices =
                    operands.pop().ok_or_else(|| CompileError::invalid("a scatter must have indices"))?;
                operands = self.promoted(operands, &shapes);
                operands.push(indices);
                operands.extend(self.promoted(updates, &shapes));
                let n = &o.scatter_dimension_numbers;
                let dims = ScatterDims {
                    update_window_dims: usizes(&n.update_window_dims)?,
                    inserted_window_dims: usizes(&n.inserted_window_dims)?,
                    input_batching_dims: usizes(&n.input_batching_dims)?,
                    scatter_indices_batching_dims: usizes(&n.scatter_indices_batching_dims)?,
                    scatter_dims_to_operand_dims: usizes(&n.scatter_dims_to_operand_dims)?,
                    index_vector_dim: to_usize(n.index_vector_dim)?,
                    indices_are_sorted: o.indices_are_sorted,
                    unique_indices: o.unique_indices,
                };
                let scalars: Vec<Shape> =
                    shapes.iter().chain(&shapes).map(|s| Shape::scalar(s.dtype)).collect();
                let body = self.scalar_body(self.region(id, 0)?, &scalars)?;
                let combiner = match binary(&body) {
                    Some(Binary::Second) => None,
                    Some(Binary::Op(op)) => Some(Reducer::Op(op)),
                    None => Some(Reducer::Body(Body::new(body))),
                };
                Ok(Some(self.b.node(
                    Core::Scatter(core_ops::Scatter { dims: Box::new(dims), combiner }),
                    operands,
                    shapes,
                )))
            }
            _ => Ok(None),
        }
    }
}

/// Converts the dimension numbers of a gather.
pub(super) fn gather_dims(
    n: &GatherDimensionNumbers,
    slice_sizes: Vec<usize>,
) -> Result<GatherDims, CompileError> {
    Ok(GatherDims {
        offset_dims: usizes(&n.offset_dims)?,
        collapsed_slice_dims: usizes(&n.collapsed_slice_dims)?,
        operand_batching_dims: usizes(&n.operand_batching_dims)?,
        start_indices_batching_dims: usizes(&n.start_indices_batching_dims)?,
        start_index_map: usizes(&n.start_index_map)?,
        index_vector_dim: to_usize(n.index_vector_dim)?,
        slice_sizes,
    })
}
