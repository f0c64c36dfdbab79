//! Operations that are others in disguise.

use super::{CompileError, Result, Scope, to_usize};
use crate::graph::{Constant, GatherDims, Op as Core, Reducer, Shape, ValueId};
use pjrt_stablehlo::ir::{Op, OpId, Operation};
use refcpu_kernels::dot::DotDims;
use refcpu_kernels::reduce::ReduceOp;
use refcpu_kernels::tile::TileOp;

impl<'m> Scope<'m> {
    /// Lowers what this file has; None for other operations.
    pub(super) fn legacy_op(&mut self, _: OpId, op: &'m Operation) -> Result<Option<Vec<ValueId>>> {
        match &op.kind {
            Op::Dot(_) => {
                let (l, r, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let last = self.b.shape(l).rank().saturating_sub(1);
                let dims = DotDims { lhs_contract: vec![last], rhs_contract: vec![0], ..DotDims::default() };
                Ok(Some(vec![self.dot(l, r, dims, shape)?]))
            }
            Op::BatchNormInference(o) => {
                let v = self.flat(&op.operands)?;
                let n = Normalization { feature: to_usize(o.feature_index)?, epsilon: o.epsilon };
                Ok(Some(vec![self.normalized(v[0], v[3], v[4], v[1], v[2], n)]))
            }
            Op::BatchNormTraining(o) => {
                let v = self.flat(&op.operands)?;
                let n = Normalization { feature: to_usize(o.feature_index)?, epsilon: o.epsilon };
                let mean = self.mean(v[0], n.feature);
                let centered = self.centered(v[0], mean, n.feature);
                let squares = self.b.tile(TileOp::Multiply, &[centered, centered]);
                let variance = self.mean(squares, n.feature);
                let output = self.normalized(v[0], mean, variance, v[1], v[2], n);
                Ok(Some(vec![output, mean, variance]))
            }
            Op::BatchNormGrad(o) => {
                let v = self.flat(&op.operands)?;
                let n = Normalization { feature: to_usize(o.feature_index)?, epsilon: o.epsilon };
                Ok(Some(self.batch_norm_grad(&v, n)))
            }
            Op::TorchIndexSelect(o) => {
                let (x, index, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                let (dim, batch) = (to_usize(o.dim)?, to_usize(o.batch_dims)?);
                let (from, indices) = (self.shape(x), self.shape(index));
                if dim < batch || dim >= from.rank() || batch > indices.rank() {
                    return Err(CompileError::invalid(format!(
                        "dimension {dim} with {batch} batch dimensions"
                    )));
                }
                let free = indices.rank() - batch;
                let mut slice_sizes = from.dims.to_vec();
                slice_sizes[dim] = 1;
                slice_sizes[..batch].fill(1);
                let dims = GatherDims {
                    offset_dims: (batch..dim).chain(dim + free..shape.rank()).collect(),
                    collapsed_slice_dims: vec![dim],
                    operand_batching_dims: (0..batch).collect(),
                    start_indices_batching_dims: (0..batch).collect(),
                    start_index_map: vec![dim],
                    index_vector_dim: indices.rank(),
                    slice_sizes,
                };
                Ok(Some(vec![self.b.add(Core::Gather(Box::new(dims)), &[x, index], shape)]))
            }
            Op::Einsum(o) => {
                let (l, r, shape) = (self.operand(op, 0)?, self.operand(op, 1)?, self.result_shape(op)?);
                self.einsum(&o.einsum_config, l, r, shape).map(|v| Some(vec![v]))
            }
            Op::UnaryEinsum(o) => {
                let (x, shape) = (self.operand(op, 0)?, self.result_shape(op)?);
                let one = self.b.number(Shape::scalar(shape.dtype), 1.0);
                let config = format!(",{}", o.einsum_config);
                self.einsum(&config, one, x, shape).map(|v| Some(vec![v]))
            }
            _ => Ok(None),
        }
    }

    /// A statistic of each feature, repeated to the shape of `like`.
    fn per_feature(&mut self, statistic: ValueId, like: ValueId, feature: usize) -> ValueId {
        let dims = self.shape(like).dims;
        self.b.broadcast(statistic, &[feature], &dims)
    }

    fn centered(&mut self, x: ValueId, mean: ValueId, feature: usize) -> ValueId {
        let mean = self.per_feature(mean, x, feature);
        self.b.tile(TileOp::Subtract, &[x, mean])
    }

    /// The sum over everything but the feature.
    fn sum(&mut self, x: ValueId, feature: usize) -> ValueId {
        let shape = self.shape(x);
        let dims: Vec<usize> = (0..shape.rank()).filter(|d| *d != feature).collect();
        let zero = self.b.constant(Constant::zero(Shape::scalar(shape.dtype)));
        let core = Core::Reduce { dims, reducer: Reducer::Op(ReduceOp::Add) };
        self.b.add(core, &[x, zero], shape.with_dims(&[shape.dims[feature]]))
    }

    fn mean(&mut self, x: ValueId, feature: usize) -> ValueId {
        let shape = self.shape(x);
        let count = shape.len() / shape.dims[feature].max(1);
        let sum = self.sum(x, feature);
        let count = self.b.number(self.shape(sum), count as f64);
        self.b.tile(TileOp::Divide, &[sum, count])
    }

    /// `(x - mean) / sqrt(variance + epsilon) * scale + offset`.
    fn normalized(
        &mut self,
        x: ValueId,
        mean: ValueId,
        variance: ValueId,
        scale: ValueId,
        offset: ValueId,
        n: Normalization,
    ) -> ValueId {
        let centered = self.centered(x, mean, n.feature);
        let deviation = self.deviation(variance, n.epsilon);
        let deviation = self.per_feature(deviation, x, n.feature);
        let normal = self.b.tile(TileOp::Divide, &[centered, deviation]);
        let scale = self.per_feature(scale, x, n.feature);
        let scaled = self.b.tile(TileOp::Multiply, &[normal, scale]);
        let offset = self.per_feature(offset, x, n.feature);
        self.b.tile(TileOp::Add, &[scaled, offset])
    }

    fn deviation(&mut self, variance: ValueId, epsilon: f32) -> ValueId {
        let epsilon = self.b.number(self.shape(variance), f64::from(epsilon));
        let sum = self.b.tile(TileOp::Add, &[variance, epsilon]);
        self.b.tile(TileOp::Sqrt, &[sum])
    }

    /// Operands: operand, scale, mean, variance, grad_output (StableHLO's batch_norm_grad).
    fn batch_norm_grad(&mut self, v: &[ValueId], n: Normalization) -> Vec<ValueId> {
        let [x, scale, mean, variance, grad] = *v else {
            unreachable!("the verifier has counted the operands")
        };
        let shape = self.shape(x);
        let count = shape.len() / shape.dims[n.feature].max(1);
        let centered = self.centered(x, mean, n.feature);
        let deviation = self.deviation(variance, n.epsilon);
        let product = self.b.tile(TileOp::Multiply, &[grad, centered]);
        let correlation = self.sum(product, n.feature);
        let grad_scale = self.b.tile(TileOp::Divide, &[correlation, deviation]);
        let grad_offset = self.sum(grad, n.feature);
        let count = self.b.number(shape.clone(), count as f64);
        let i1 = self.b.tile(TileOp::Multiply, &[grad, count]);
        let i2 = self.per_feature(grad_offset, x, n.feature);
        let i3 = self.per_feature(correlation, x, n.feature);
        let i4 = self.b.tile(TileOp::Multiply, &[i3, centered]);
        let epsilon = self.b.number(self.shape(variance), f64::from(n.epsilon));
        let padded = self.b.tile(TileOp::Add, &[variance, epsilon]);
        let padded = self.per_feature(padded, x, n.feature);
        let i5 = self.b.tile(TileOp::Divide, &[i4, padded]);
        let i6 = self.b.tile(TileOp::Subtract, &[i1, i2]);
        let i6 = self.b.tile(TileOp::Subtract, &[i6, i5]);
        let factor = self.b.tile(TileOp::Divide, &[scale, deviation]);
        let factor = self.per_feature(factor, x, n.feature);
        let factor = self.b.tile(TileOp::Divide, &[factor, count]);
        let grad_operand = self.b.tile(TileOp::Multiply, &[factor, i6]);
        vec![grad_operand, grad_scale, grad_offset]
    }

    /// A product by letters, one per dimension, as in `ab,bc->ac`. Letters that occur once and not in the result are summed.
    fn einsum(&mut self, config: &str, l: ValueId, r: ValueId, shape: Shape) -> Result<ValueId> {
        let unsupported = || CompileError::unimplemented(format!("einsum configuration {config:?}"));
        let (inputs, output) = config.split_once("->").ok_or_else(unsupported)?;
        let (left, right) = inputs.split_once(',').ok_or_else(unsupported)?;
        let letters = |text: &str| text.trim().chars().collect::<Vec<_>>();
        let (left, right, output) = (letters(left), letters(right), letters(output));
        let distinct =
            |l: &[char]| l.iter().enumerate().all(|(i, c)| c.is_alphabetic() && !l[..i].contains(c));
        if ![&left, &right, &output].iter().all(|l| distinct(l)) {
            return Err(unsupported());
        }
        let (l, left) = self.sum_unused(l, left, &right, &output)?;
        let (r, right) = self.sum_unused(r, right, &left, &output)?;
        let mut dims = DotDims::default();
        for (i, c) in left.iter().enumerate() {
            let Some(j) = right.iter().position(|d| d == c) else { continue };
            let (ls, rs) = if output.contains(c) {
                (&mut dims.lhs_batch, &mut dims.rhs_batch)
            } else {
                (&mut dims.lhs_contract, &mut dims.rhs_contract)
            };
            ls.push(i);
            rs.push(j);
        }
        let batch = dims.lhs_batch.iter().map(|i| left[*i]);
        let lefts = left.iter().filter(|c| !right.contains(c)).copied();
        let rights = right.iter().filter(|c| !left.contains(c)).copied();
        let made: Vec<char> = batch.chain(lefts).chain(rights).collect();
        let product =
            dims.output_dims(&self.b.shape(l).dims, &self.b.shape(r).dims).map_err(CompileError::invalid)?;
        let product = self.dot(l, r, dims, shape.with_dims(&product))?;
        let permutation: Option<Vec<usize>> =
            output.iter().map(|c| made.iter().position(|d| d == c)).collect();
        Ok(self.b.transpose(product, &permutation.ok_or_else(unsupported)?))
    }

    fn sum_unused(
        &mut self,
        x: ValueId,
        letters: Vec<char>,
        other: &[char],
        output: &[char],
    ) -> Result<(ValueId, Vec<char>)> {
        let shape = self.shape(x);
        if shape.rank() != letters.len() {
            return Err(CompileError::invalid(format!("{letters:?} for an array of rank {}", shape.rank())));
        }
        let unused = |c: &char| !other.contains(c) && !output.contains(c);
        let dims: Vec<usize> = (0..letters.len()).filter(|i| unused(&letters[*i])).collect();
        if dims.is_empty() {
            return Ok((x, letters));
        }
        let kept: Vec<usize> = (0..letters.len()).filter(|i| !dims.contains(i)).collect();
        let sizes: Vec<usize> = kept.iter().map(|d| shape.dims[*d]).collect();
        let zero = self.b.constant(Constant::zero(Shape::scalar(shape.dtype)));
        let core = Core::Reduce { dims, reducer: Reducer::Op(ReduceOp::Add) };
        let sum = self.b.add(core, &[x, zero], shape.with_dims(&sizes));
        Ok((sum, kept.iter().map(|d| letters[*d]).collect()))
    }
}

/// What the batch_norm operations have in common.
#[derive(Clone, Copy)]
struct Normalization {
    feature: usize,
    epsilon: f32,
}
