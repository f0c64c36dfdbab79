//! Simplifies nodes: operations on constants, identities, and sequences of movements.

use super::builder::Builder;
use super::fold::fold;
use crate::graph::{Constant, Op, Shape, ValueId, ops};
use refcpu_kernels::DType;
use refcpu_kernels::tile::TileOp;

impl Builder {
    fn constant_of(&self, value: ValueId) -> Option<&Constant> {
        self.graph().constant(value)
    }

    /// Returns a value that equals the operation's result, adding only simpler nodes; `None` if the operation cannot be
    /// simplified.
    pub(super) fn simplified(&mut self, op: &Op, operands: &[ValueId], shape: &Shape) -> Option<ValueId> {
        let constants: Option<Vec<&Constant>> = operands.iter().map(|v| self.constant_of(*v)).collect();
        if let Some(constants) = constants.filter(|c| !c.is_empty()) {
            let shapes: Vec<&Shape> = operands.iter().map(|v| self.shape(*v)).collect();
            if op.is_elementwise(&shapes, shape)
                && let Some(value) = fold(op, &constants, shape)
            {
                return Some(self.constant(value));
            }
        }
        let first = operands.first().copied();
        match op {
            Op::Constant(_) | Op::Iota(_) => self.simplified_iota(op, shape),
            Op::Reshape | Op::Broadcast(_) | Op::Transpose(_) | Op::Slice(_) | Op::Reverse(_) => {
                self.simplified_movement(op, first?, shape)
            }
            Op::Convert | Op::Bitcast => (self.shape(first?) == shape).then_some(first?),
            Op::Concatenate(ops::Concatenate { .. }) => {
                if let [only] = operands
                    && self.shape(*only) == shape
                {
                    return Some(*only);
                }
                let element = self.constant_of(first?).filter(|c| c.splat)?.with_dims(&[]);
                let same = operands.iter().all(|v| {
                    self.constant_of(*v).is_some_and(|c| c.with_dims_if_splat() == Some(element.clone()))
                });
                same.then(|| self.constant(element.with_dims(&shape.dims)))
            }
            Op::Pad(ops::Pad { low, high, interior }) => {
                let none = low.iter().chain(high).chain(interior).all(|n| *n == 0);
                none.then_some(first?)
            }
            Op::Select => {
                let (p, a, b) = (operands[0], operands[1], operands[2]);
                if a == b {
                    return Some(a);
                }
                let choice = self.constant_of(p)?.as_integer()?;
                Some(if choice != 0 { a } else { b })
            }
            Op::Tile(op) => self.simplified_arithmetic(*op, operands),
            Op::DynamicSlice if self.shape(first?) == shape => Some(first?),
            Op::DynamicSlice => {
                let from = self.shape(first?).clone();
                let starts: Option<Vec<i64>> =
                    operands[1..].iter().map(|v| self.constant_of(*v)?.as_integer()).collect();
                let start: Vec<usize> = starts?
                    .iter()
                    .zip(from.dims.iter().zip(&*shape.dims))
                    .map(|(s, (d, n))| (*s).clamp(0, (d - n) as i64) as usize)
                    .collect();
                let stride = vec![1; start.len()];
                Some(self.add(Op::Slice(ops::Slice { start, stride }), &operands[..1], shape.clone()))
            }
            Op::DynamicUpdateSlice if self.shape(operands[1]) == shape => Some(operands[1]),
            Op::DynamicUpdateSlice if self.shape(operands[1]).is_empty() => Some(first?),
            _ => None,
        }
    }

    fn simplified_iota(&mut self, op: &Op, shape: &Shape) -> Option<ValueId> {
        let Op::Iota(ops::Iota { dim }) = op else { return None };
        (shape.dims[*dim] <= 1).then(|| self.constant(Constant::zero(shape.clone())))
    }

    fn simplified_arithmetic(&mut self, op: TileOp, operands: &[ValueId]) -> Option<ValueId> {
        let [a, b] = *operands else { return None };
        let float = self.shape(a).dtype.is_float() || self.shape(a).dtype.is_complex();
        let is = |v: ValueId, test: fn(&Constant) -> bool| self.constant_of(v).is_some_and(test);
        match op {
            // Floats are excluded because -0 + 0 is 0.
            TileOp::Add | TileOp::Or | TileOp::Xor if !float => {
                if is(b, Constant::is_zero) {
                    Some(a)
                } else if is(a, Constant::is_zero) {
                    Some(b)
                } else {
                    None
                }
            }
            TileOp::Subtract if is(b, Constant::is_zero) => Some(a),
            TileOp::Multiply if is(b, Constant::is_one) => Some(a),
            TileOp::Multiply if is(a, Constant::is_one) => Some(b),
            TileOp::Divide if is(b, Constant::is_one) => Some(a),
            // The product is the same number, and takes less time.
            TileOp::Divide => {
                let reciprocal = self.constant_of(b)?.exact_reciprocal()?;
                let reciprocal = self.constant(reciprocal);
                Some(self.tile(TileOp::Multiply, &[a, reciprocal]))
            }
            // JAX lowers the arc tangent to this form. The kernel of the arc tangent is more accurate.
            TileOp::Atan2 if is(b, Constant::is_one) => Some(self.tile(TileOp::Atan, &[a])),
            TileOp::And | TileOp::Or if a == b => Some(a),
            TileOp::And if self.shape(a).dtype == DType::Pred && is(b, Constant::is_one) => Some(a),
            TileOp::And if self.shape(a).dtype == DType::Pred && is(a, Constant::is_one) => Some(b),
            _ => None,
        }
    }

    /// Simplifies movements: identities, movements of constants, and two movements in sequence.
    fn simplified_movement(&mut self, op: &Op, value: ValueId, shape: &Shape) -> Option<ValueId> {
        if let Some(element) = self.constant_of(value).filter(|c| c.splat) {
            let moved = element.with_dims(&shape.dims);
            return Some(self.constant(moved));
        }
        match op {
            Op::Reshape => self.simplified_reshape(value, shape),
            Op::Broadcast(ops::Broadcast { dims }) => self.simplified_broadcast(dims, value, shape),
            Op::Transpose(ops::Transpose { permutation }) => {
                self.simplified_transpose(permutation, value, shape)
            }
            Op::Slice(slice) => self.simplified_slice(slice, value, shape),
            Op::Reverse(ops::Reverse { dims }) => {
                let from = self.shape(value);
                dims.iter().all(|d| from.dims[*d] <= 1).then_some(value)
            }
            _ => None,
        }
    }

    /// Returns the operation that computes a value, and its first operand.
    fn made_by(&self, value: ValueId) -> Option<(&Op, ValueId)> {
        let node = self.graph().node_of(value)?;
        Some((&node.op, *node.operands.first()?))
    }

    fn simplified_reshape(&mut self, value: ValueId, shape: &Shape) -> Option<ValueId> {
        if self.shape(value) == shape {
            return Some(value);
        }
        if let Some(c) = self.constant_of(value) {
            let c = c.with_dims(&shape.dims);
            return Some(self.constant(c));
        }
        match self.made_by(value)? {
            (Op::Reshape, v) => Some(self.reshape(v, &shape.dims)),
            _ => None,
        }
    }

    fn simplified_broadcast(&mut self, dims: &[usize], value: ValueId, shape: &Shape) -> Option<ValueId> {
        let from = self.shape(value);
        let ascending = dims.windows(2).all(|w| w[0] < w[1]);
        if ascending && from.len() == shape.len() {
            return Some(self.reshape(value, &shape.dims));
        }
        match self.made_by(value)? {
            (Op::Broadcast(ops::Broadcast { dims: before }), v) => {
                let map: Vec<usize> = before.iter().map(|d| dims[*d]).collect();
                Some(self.broadcast(v, &map, &shape.dims))
            }
            // A reshape that only adds or removes unit dimensions can be merged into the broadcast.
            (Op::Reshape, v) => {
                let kept = unit_dims_mapped(&self.shape(v).dims, &from.dims)?;
                let map: Vec<usize> = kept.iter().map(|d| dims[*d]).collect();
                let stripped: Vec<usize> = kept.iter().map(|d| from.dims[*d]).collect();
                if stripped.len() >= from.dims.len() {
                    return None;
                }
                let v = self.reshape(v, &stripped);
                Some(self.broadcast(v, &map, &shape.dims))
            }
            _ => None,
        }
    }

    fn simplified_transpose(
        &mut self,
        permutation: &[usize],
        value: ValueId,
        shape: &Shape,
    ) -> Option<ValueId> {
        let from = self.shape(value);
        let moved: Vec<usize> = permutation.iter().copied().filter(|p| from.dims[*p] != 1).collect();
        if moved.windows(2).all(|w| w[0] < w[1]) || from.is_empty() {
            return Some(self.reshape(value, &shape.dims));
        }
        match self.made_by(value)? {
            (Op::Transpose(ops::Transpose { permutation: before }), v) => {
                let both: Vec<usize> = permutation.iter().map(|p| before[*p]).collect();
                Some(self.transpose(v, &both))
            }
            (Op::Broadcast(ops::Broadcast { dims }), v) => {
                let position =
                    |d: usize| permutation.iter().position(|p| *p == d).expect("the list is a permutation");
                let map: Vec<usize> = dims.iter().map(|d| position(*d)).collect();
                Some(self.broadcast(v, &map, &shape.dims))
            }
            _ => None,
        }
    }

    fn simplified_slice(&mut self, slice: &ops::Slice, value: ValueId, shape: &Shape) -> Option<ValueId> {
        if self.shape(value) == shape {
            return Some(value);
        }
        let (Op::Slice(inner), v) = self.made_by(value)? else { return None };
        // The start of an empty dimension may lie outside the operand of the inner slice.
        let start = |d: usize| inner.start[d] + slice.start[d] * inner.stride[d];
        let along = |d: usize| match shape.dims[d] {
            0 => (0, 1),
            1 => (start(d), 1),
            _ => (start(d), inner.stride[d] * slice.stride[d]),
        };
        let (start, stride) = (0..slice.start.len()).map(along).unzip();
        Some(self.add(Op::Slice(ops::Slice { start, stride }), &[v], shape.clone()))
    }
}

impl Constant {
    /// Returns a splat as a scalar; `None` for other constants.
    fn with_dims_if_splat(&self) -> Option<Constant> {
        self.splat.then(|| self.with_dims(&[]))
    }
}

/// Returns the dimensions of `to` whose size is not one, if the two shapes differ only in dimensions of size one.
fn unit_dims_mapped(from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let kept: Vec<usize> = (0..to.len()).filter(|d| to[*d] != 1).collect();
    let same = from.iter().filter(|d| **d != 1).eq(kept.iter().map(|d| &to[*d]));
    same.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(dims: &[usize]) -> Shape {
        Shape::new(DType::F32, dims)
    }

    #[test]
    fn movements_in_a_row_become_one() {
        let mut b = Builder::new();
        let x = b.parameter(f32s(&[2, 3]));
        let t = b.transpose(x, &[1, 0]);
        assert_eq!(b.transpose(t, &[1, 0]), x);
        let r = b.reshape(x, &[6]);
        assert_eq!(b.reshape(r, &[2, 3]), x);
        let s = b.slice(x, &[0, 1], &[2, 3]);
        let s = b.slice(s, &[1, 1], &[2, 2]);
        let node = b.graph().node_of(s).unwrap();
        assert_eq!(node.op, Op::Slice(ops::Slice { start: vec![1, 2], stride: vec![1, 1] }));
        assert_eq!(node.operands, [x]);
    }

    #[test]
    fn an_empty_slice_of_a_slice_stays_inside() {
        let mut b = Builder::new();
        let x = b.parameter(f32s(&[5, 33]));
        let steps = Op::Slice(ops::Slice { start: vec![4, 2], stride: vec![4, 1] });
        let s = b.add(steps, &[x], f32s(&[1, 31]));
        let wide = Op::Slice(ops::Slice { start: vec![1, 6], stride: vec![usize::MAX, usize::MAX] });
        let e = b.add(wide, &[s], f32s(&[0, 1]));
        assert_eq!(
            b.graph().node_of(e).unwrap().op,
            Op::Slice(ops::Slice { start: vec![0, 8], stride: vec![1, 1] })
        );
        assert_eq!(crate::graph::verify(&b.finish(vec![e])), Ok(()));
    }

    #[test]
    fn a_broadcast_that_repeats_nothing_is_a_reshape() {
        let mut b = Builder::new();
        let x = b.parameter(f32s(&[3]));
        let y = b.broadcast(x, &[1], &[1, 3]);
        assert_eq!(b.graph().node_of(y).unwrap().op, Op::Reshape);
        let z = b.broadcast(y, &[0, 1], &[5, 3]);
        assert_eq!(b.graph().node_of(z).unwrap().op, Op::Broadcast(ops::Broadcast { dims: vec![1] }));
    }

    #[test]
    fn arithmetic_on_constants_is_done_at_once() {
        let mut b = Builder::new();
        let two = b.number(f32s(&[4]), 2.0);
        let four = b.tile(TileOp::Multiply, &[two, two]);
        assert_eq!(b.graph().constant(four).unwrap().element(), Some(&4f32.to_le_bytes()[..]));
        let x = b.parameter(f32s(&[4]));
        let one = b.number(f32s(&[4]), 1.0);
        assert_eq!(b.tile(TileOp::Multiply, &[one, x]), x);
        let zero = b.number(f32s(&[4]), 0.0);
        assert_ne!(b.tile(TileOp::Add, &[x, zero]), x, "-0 + 0 is 0");
    }
}
