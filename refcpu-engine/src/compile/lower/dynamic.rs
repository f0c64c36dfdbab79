//! Lowers dynamic operations, whose attributes are operands, if these are constants.

use super::array::conv_spec;
use super::indexing::gather_dims;
use super::{CompileError, Result, Scope, to_usize, usizes};
use crate::graph::{Constant, Op as Core, ValueId, ops as core_ops};
use pjrt_stablehlo::ir::{Op, OpId, Operation};
use refcpu_kernels::DType;

impl<'m> Scope<'m> {
    /// Lowers an operation of this file; returns `None` for other operations.
    pub(super) fn dynamic_op(&mut self, _: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        let one = |v: ValueId| Ok(Some(vec![v]));
        match &op.kind {
            Op::GetDimensionSize(o) => {
                let x = self.operand(op, 0)?;
                let dim = to_usize(o.dimension)?;
                let size =
                    *self.b.shape(x).dims.get(dim).ok_or_else(|| {
                        CompileError::invalid(format!("the operand has no dimension {dim}"))
                    })?;
                one(self.b.constant(Constant::integer(DType::S32, size as i64)))
            }
            Op::SetDimensionSize(o) => {
                let (x, size) = (self.operand(op, 0)?, self.operand(op, 1)?);
                let dim = to_usize(o.dimension)?;
                let size = self.constant_integers(size, "the size")?;
                let full = self.b.shape(x).dims[dim];
                if size[..] == [full as i64] {
                    return one(x);
                }
                Err(CompileError::unimplemented(format!(
                    "dimension {dim} of size {full} cannot be set to size {size:?}: only static sizes are supported"
                )))
            }
            Op::DynamicReshape(_) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                one(self.b.add(Core::Reshape, &[x], shape))
            }
            Op::DynamicBroadcastInDim(o) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                one(self.broadcast_in_dim(x, &usizes(&o.broadcast_dimensions)?, shape))
            }
            Op::DynamicIota(o) => {
                let shape = self.result_shape(op)?;
                one(self.b.iota(shape, to_usize(o.iota_dimension)?))
            }
            Op::DynamicPad(_) => {
                let (x, value, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let list = |s: &Self, i: usize| s.constant_integers(s.operand(op, i)?, "the padding");
                let pad = Core::Pad(core_ops::Pad {
                    low: list(self, 2)?,
                    high: list(self, 3)?,
                    interior: list(self, 4)?,
                });
                one(self.b.add(pad, &[x, value], shape))
            }
            Op::RealDynamicSlice(_) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                let stride = usizes(&self.constant_integers(self.operand(op, 3)?, "the strides")?)?;
                let start = self.operand(op, 1)?;
                if self.b.graph().constant(start).is_some() {
                    let start = usizes(&self.constant_integers(start, "the start")?)?;
                    return one(self.b.add(Core::Slice(core_ops::Slice { start, stride }), &[x], shape));
                }
                if stride.iter().any(|s| *s != 1) {
                    return Err(CompileError::unimplemented("strides other than 1 require a constant start"));
                }
                let mut operands = vec![x];
                for d in 0..shape.rank() {
                    let s = self.b.slice(start, &[d], &[d + 1]);
                    operands.push(self.b.reshape(s, &[]));
                }
                one(self.b.add(Core::DynamicSlice, &operands, shape))
            }
            Op::DynamicGather(o) => {
                let (x, indices, shape) =
                    (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let sizes = usizes(&self.constant_integers(self.operand(op, 2)?, "the slice sizes")?)?;
                let dims = gather_dims(&o.dimension_numbers, sizes)?;
                one(self.b.add(Core::Gather(Box::new(dims)), &[x, indices], shape))
            }
            Op::DynamicConv(o) => {
                let (l, r, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let flat = self.constant_integers(self.operand(op, 2)?, "the padding")?;
                let spec = conv_spec(
                    &o.dimension_numbers,
                    [&o.window_strides, &o.lhs_dilation, &o.rhs_dilation],
                    flat.chunks_exact(2).map(|p| (p[0], p[1])).collect(),
                    &o.window_reversal,
                    [o.feature_group_count, o.batch_group_count],
                )?;
                one(self.convolution(l, r, spec, shape)?)
            }
            _ => Ok(None),
        }
    }
}
