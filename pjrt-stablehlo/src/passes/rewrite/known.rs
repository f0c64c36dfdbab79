//! Values that are known during rewriting: small constants of integers, and arithmetic on them as shapes need it.

use std::sync::Arc;

use crate::ir::ops::Concatenate;
use crate::ir::{
    Body, ComparisonDirection, ElementKind, ElementType, Literal, LiteralData, Op, OpId, Operation,
    TensorType, ValueId, integer_value,
};

/// The maximum number of elements of a known value. Shapes have fewer.
const MAX_ELEMENTS: usize = 1024;

/// The known values of a body.
#[derive(Default)]
pub(crate) struct Known {
    /// The elements, by the index of the value.
    elements: Vec<Option<Arc<[i64]>>>,
    /// The number of operations that have been evaluated.
    ops: usize,
}

impl Known {
    /// Returns the elements of a small tensor of integers, if they are known.
    pub(crate) fn get(&mut self, body: &Body, value: ValueId) -> Option<Arc<[i64]>> {
        while self.ops < body.num_ops() {
            self.ops += 1;
            self.note(body, OpId(self.ops as u32 - 1));
        }
        self.elements.get(value.index()).cloned().flatten()
    }

    /// Evaluates an operation again after its types have changed.
    pub(crate) fn note(&mut self, body: &Body, id: OpId) {
        let Some(elements) = self.evaluate(body, id) else { return };
        let result = body.op(id).result().index();
        if self.elements.len() <= result {
            self.elements.resize(result + 1, None);
        }
        self.elements[result] = Some(elements.into());
    }

    fn evaluate(&self, body: &Body, id: OpId) -> Option<Vec<i64>> {
        let op = body.op(id);
        if op.results.len() != 1 {
            return None;
        }
        let ty = body.ty(op.result()).as_tensor()?;
        let count = usize::try_from(ty.num_elements()?).ok().filter(|&count| count <= MAX_ELEMENTS)?;
        let cx = Evaluation { known: self, body, op, ty, count };
        match ty.element_type() {
            ElementType::I1 => cx.moved().or_else(|| cx.logical()),
            element if element.is_integer() => cx.moved().or_else(|| cx.arithmetic()),
            _ => None,
        }
    }
}

/// Returns the element that all elements of a value equal, as a scalar literal, if it is a constant or the broadcast of one.
pub(crate) fn constant_splat(body: &Body, mut value: ValueId) -> Option<Literal> {
    loop {
        let op = body.op(body.defining_op(value)?);
        match &op.kind {
            Op::Constant(constant) => {
                let element = constant.value.splat()?.into_owned();
                let ty = constant.value.ty().with_dims([]);
                return Literal::new(ty, LiteralData::Splat(element.into())).ok();
            }
            Op::BroadcastInDim(_) | Op::Reshape(_) => value = *op.operands.first()?,
            _ => return None,
        }
    }
}

/// An operation with a single, small result of integers or booleans.
struct Evaluation<'a> {
    known: &'a Known,
    body: &'a Body,
    op: &'a Operation,
    ty: &'a TensorType,
    count: usize,
}

impl Evaluation<'_> {
    fn operand(&self, index: usize) -> Option<Arc<[i64]>> {
        let value = self.op.operands.get(index)?;
        self.known.elements.get(value.index())?.clone()
    }

    fn operand_type(&self, index: usize) -> Option<&TensorType> {
        self.op.operands.get(index).and_then(|&value| self.body.ty(value).as_tensor())
    }

    fn unary(&self, f: impl Fn(i64) -> i64) -> Option<Vec<i64>> {
        let element = self.ty.element_type();
        Some(self.operand(0)?.iter().map(|&value| wrapped(element, f(value))).collect())
    }

    fn binary(&self, f: impl Fn(i64, i64) -> Option<i64>) -> Option<Vec<i64>> {
        let (x, y) = (self.operand(0)?, self.operand(1)?);
        let element = self.ty.element_type();
        x.iter().zip(y.iter()).map(|(&x, &y)| f(x, y).map(|value| wrapped(element, value))).collect()
    }

    /// Evaluates a constant, or an operation that moves elements.
    fn moved(&self) -> Option<Vec<i64>> {
        match &self.op.kind {
            Op::Constant(constant) => constant.value.to_i64s(MAX_ELEMENTS),
            Op::GetDimensionSize(get) => {
                let dimension = usize::try_from(get.dimension).ok()?;
                Some(vec![*self.operand_type(0)?.static_dims()?.get(dimension)?])
            }
            Op::Iota(_) if self.ty.rank() == 1 => Some((0..self.count as i64).collect()),
            Op::Reshape(_) | Op::OptimizationBarrier(_) => Some(self.operand(0)?.to_vec()),
            Op::BroadcastInDim(_) => match *self.operand(0)? {
                [single] => Some(vec![single; self.count]),
                _ => None,
            },
            Op::Concatenate(concatenate) => self.concatenated(concatenate),
            Op::Slice(slice) if self.ty.rank() == 1 => {
                let bound = |bounds: &[i64]| usize::try_from(*bounds.first()?).ok();
                let (start, limit) = (bound(&slice.start_indices)?, bound(&slice.limit_indices)?);
                let stride = bound(&slice.strides).filter(|&stride| stride > 0)?;
                Some(self.operand(0)?.get(start..limit)?.iter().copied().step_by(stride).collect())
            }
            Op::Select(_) => {
                let (predicate, on_true, on_false) = (self.operand(0)?, self.operand(1)?, self.operand(2)?);
                let chosen = |index: usize| {
                    let holds = *predicate.get(index).or(predicate.first())? != 0;
                    if holds { on_true.get(index) } else { on_false.get(index) }.copied()
                };
                (0..self.count).map(chosen).collect()
            }
            _ => None,
        }
    }

    fn concatenated(&self, concatenate: &Concatenate) -> Option<Vec<i64>> {
        let dimension = usize::try_from(concatenate.dimension).ok()?;
        // Rows of the operands alternate. Their number is the product of the sizes before the dimension.
        let rows: i64 = self.ty.static_dims()?.get(..dimension)?.iter().product();
        let parts: Option<Vec<_>> = (0..self.op.operands.len()).map(|index| self.operand(index)).collect();
        let mut parts: Vec<_> = parts?;
        parts.retain(|part| !part.is_empty());
        let mut all = Vec::with_capacity(self.count);
        for row in 0..usize::try_from(rows).ok()? {
            for part in &parts {
                let width = part.len() / rows as usize;
                all.extend_from_slice(part.get(row * width..(row + 1) * width)?);
            }
        }
        Some(all)
    }

    /// Evaluates an operation on booleans, except addition and multiplication, which computations of shapes do not use.
    fn logical(&self) -> Option<Vec<i64>> {
        match &self.op.kind {
            Op::Compare(compare) => {
                let is_signed = self.operand_type(0)?.element_type().kind() == ElementKind::SignedInteger;
                self.binary(|x, y| Some(i64::from(holds(compare.comparison_direction, x, y, is_signed))))
            }
            Op::And(_) => self.binary(|x, y| Some(x & y)),
            Op::Or(_) => self.binary(|x, y| Some(x | y)),
            Op::Not(_) => Some(self.operand(0)?.iter().map(|&value| 1 - value).collect()),
            _ => None,
        }
    }

    /// Evaluates an operation on integers.
    fn arithmetic(&self) -> Option<Vec<i64>> {
        let is_signed = self.ty.element_type().kind() == ElementKind::SignedInteger;
        match &self.op.kind {
            Op::Convert(_) => self.unary(|value| value),
            Op::Add(_) => self.binary(|x, y| Some(x.wrapping_add(y))),
            Op::Subtract(_) => self.binary(|x, y| Some(x.wrapping_sub(y))),
            Op::Multiply(_) => self.binary(|x, y| Some(x.wrapping_mul(y))),
            Op::Negate(_) => self.unary(i64::wrapping_neg),
            _ if !is_signed => None,
            Op::Divide(_) => self.binary(i64::checked_div),
            Op::Remainder(_) => self.binary(i64::checked_rem),
            Op::Maximum(_) => self.binary(|x, y| Some(x.max(y))),
            Op::Minimum(_) => self.binary(|x, y| Some(x.min(y))),
            Op::Sign(_) => self.unary(i64::signum),
            Op::Abs(_) => self.unary(i64::wrapping_abs),
            Op::Clamp(_) => {
                let (min, x, max) = (self.operand(0)?, self.operand(1)?, self.operand(2)?);
                let bound = |bounds: &[i64], index: usize| bounds.get(index).or(bounds.first()).copied();
                let clamped = |(index, &value): (usize, &i64)| {
                    Some(value.max(bound(&min, index)?).min(bound(&max, index)?))
                };
                x.iter().enumerate().map(clamped).collect()
            }
            _ => None,
        }
    }
}

/// Returns a value truncated to the width of an element type.
fn wrapped(element: ElementType, value: i64) -> i64 {
    integer_value(element, &value.to_le_bytes()[..element.byte_width()])
}

fn holds(direction: ComparisonDirection, x: i64, y: i64, is_signed: bool) -> bool {
    let order = if is_signed { x.cmp(&y) } else { (x as u64).cmp(&(y as u64)) };
    match direction {
        ComparisonDirection::Eq => order.is_eq(),
        ComparisonDirection::Ne => order.is_ne(),
        ComparisonDirection::Ge => order.is_ge(),
        ComparisonDirection::Gt => order.is_gt(),
        ComparisonDirection::Le => order.is_le(),
        ComparisonDirection::Lt => order.is_lt(),
    }
}
