//! `batch_norm_inference`, `batch_norm_training` and `batch_norm_grad`, by the formulas of the StableHLO specification.

use crate::Error;
use crate::build::Builder;
use crate::ir::{ElementType, Op, OpCode, Operation, ValueId};
use crate::passes::rewrite::{Rewriter, mismatch};

/// The parameters that the three operations share.
#[derive(Clone, Copy)]
struct Normalization {
    feature: i64,
    epsilon: f32,
}

/// Decomposes `batch_norm_inference`.
pub(super) fn inference(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let Op::BatchNormInference(o) = &op.kind else { return Err(mismatch(op)) };
    let given: [ValueId; 5] = r.operands(op)?;
    let n = Normalization { feature: o.feature_index, epsilon: o.epsilon };
    let b = &mut r.b;
    let element = b.element(given[0]);
    let [x, scale, offset, mean, variance] = given.map(|v| widened(b, v));
    let centered = n.centered(b, x, mean);
    let normal = n.normalized(b, centered, variance, scale, offset);
    Ok(b.convert(normal, element))
}

/// Decomposes `batch_norm_training`, and returns the result, the mean and the variance.
pub(super) fn training(r: &mut Rewriter<'_>, op: &Operation) -> Result<Vec<ValueId>, Error> {
    let Op::BatchNormTraining(o) = &op.kind else { return Err(mismatch(op)) };
    let given: [ValueId; 3] = r.operands(op)?;
    let n = Normalization { feature: o.feature_index, epsilon: o.epsilon };
    let b = &mut r.b;
    let element = b.element(given[0]);
    let [x, scale, offset] = given.map(|v| widened(b, v));
    let mean = n.mean(b, x);
    let centered = n.centered(b, x, mean);
    let squares = b.multiply(centered, centered);
    let variance = n.mean(b, squares);
    let results = [n.normalized(b, centered, variance, scale, offset), mean, variance];
    Ok(results.map(|v| b.convert(v, element)).to_vec())
}

/// Decomposes `batch_norm_grad`, and returns the gradients of the operand, the scale and the offset.
pub(super) fn grad(r: &mut Rewriter<'_>, op: &Operation) -> Result<Vec<ValueId>, Error> {
    let Op::BatchNormGrad(o) = &op.kind else { return Err(mismatch(op)) };
    let given: [ValueId; 5] = r.operands(op)?;
    let n = Normalization { feature: o.feature_index, epsilon: o.epsilon };
    let b = &mut r.b;
    let element = b.element(given[0]);
    let [x, scale, mean, variance, grad] = given.map(|v| widened(b, v));
    let centered = n.centered(b, x, mean);
    let padded = n.padded(b, variance);
    let deviation = b.sqrt(padded);
    let products = b.multiply(grad, centered);
    let correlation = n.sum(b, products);
    let grad_scale = b.divide(correlation, deviation);
    let grad_offset = n.sum(b, grad);
    // scale / deviation / count * (count * grad - grad_offset - centered * correlation / (variance + epsilon))
    let count = n.count(b, x);
    let count = b.number(count, x);
    let scaled_grad = b.multiply(grad, count);
    let offsets = n.per_feature(b, grad_offset, x);
    let correlations = n.per_feature(b, correlation, x);
    let projected = b.multiply(correlations, centered);
    let padded = n.per_feature(b, padded, x);
    let projected = b.divide(projected, padded);
    let rest = b.subtract(scaled_grad, offsets);
    let rest = b.subtract(rest, projected);
    let factor = b.divide(scale, deviation);
    let factor = n.per_feature(b, factor, x);
    let factor = b.divide(factor, count);
    let results = [b.multiply(factor, rest), grad_scale, grad_offset];
    Ok(results.map(|v| b.convert(v, element)).to_vec())
}

/// Converts a value to f32 if its elements are narrower. Sums over a batch can overflow f16 and smaller types although
/// the statistics do not, and compilers that fuse the formula do not round between its steps either.
fn widened(b: &mut Builder, x: ValueId) -> ValueId {
    let element = b.element(x);
    if element.bits() < 32 { b.convert(x, ElementType::F32) } else { x }
}

impl Normalization {
    /// Broadcasts a statistic of each feature to the shape of `like`.
    fn per_feature(self, b: &mut Builder, statistic: ValueId, like: ValueId) -> ValueId {
        let dims = b.dims(like);
        b.broadcast(statistic, &[self.feature], &dims)
    }

    fn centered(self, b: &mut Builder, x: ValueId, mean: ValueId) -> ValueId {
        let mean = self.per_feature(b, mean, x);
        b.subtract(x, mean)
    }

    /// Returns the number of elements of each feature.
    fn count(self, b: &Builder, x: ValueId) -> f64 {
        let dims = b.dims(x);
        let others = dims.iter().enumerate().filter(|&(dimension, _)| dimension as i64 != self.feature);
        others.map(|(_, &size)| size as f64).product()
    }

    fn sum(self, b: &mut Builder, x: ValueId) -> ValueId {
        let rank = b.tensor(x).rank() as i64;
        let dimensions: Vec<i64> = (0..rank).filter(|&dimension| dimension != self.feature).collect();
        b.reduce(x, &dimensions, OpCode::Add, 0.0)
    }

    fn mean(self, b: &mut Builder, x: ValueId) -> ValueId {
        let count = self.count(b, x);
        let sum = self.sum(b, x);
        let count = b.number(count, sum);
        b.divide(sum, count)
    }

    fn padded(self, b: &mut Builder, variance: ValueId) -> ValueId {
        let epsilon = b.number(f64::from(self.epsilon), variance);
        b.add(variance, epsilon)
    }

    /// Returns `centered / sqrt(variance + epsilon) * scale + offset`.
    fn normalized(
        self,
        b: &mut Builder,
        centered: ValueId,
        variance: ValueId,
        scale: ValueId,
        offset: ValueId,
    ) -> ValueId {
        let padded = self.padded(b, variance);
        let deviation = b.sqrt(padded);
        let deviation = self.per_feature(b, deviation, centered);
        let normal = b.divide(centered, deviation);
        let scale = self.per_feature(b, scale, centered);
        let scaled = b.multiply(normal, scale);
        let offset = self.per_feature(b, offset, centered);
        b.add(scaled, offset)
    }
}
