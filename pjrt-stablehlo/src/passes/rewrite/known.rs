//! Values that are known while rewriting: small integer constants and the arithmetic of shapes on them.

use std::sync::Arc;

use crate::ir::{Body, ComparisonDirection, ElementKind, ElementType, Op, OpId, ValueId, integer_value};

/// Values with more elements are not looked into: shapes have fewer.
const MAX_ELEMENTS: usize = 1024;

/// The elements of values of a body.
#[derive(Default)]
pub(crate) struct Known {
    /// By the index of the value.
    elements: Vec<Option<Arc<[i64]>>>,
    /// How many operations have been looked at.
    ops: usize,
}

impl Known {
    /// The elements of a value, when it is small, of integers, and known.
    pub(crate) fn get(&mut self, body: &Body, value: ValueId) -> Option<Arc<[i64]>> {
        while self.ops < body.num_ops() {
            self.ops += 1;
            self.note(body, OpId(self.ops as u32 - 1));
        }
        self.elements.get(value.index()).cloned().flatten()
    }

    /// Looks at an operation again, whose types have changed.
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
        let element = ty.element_type();
        let count = usize::try_from(ty.num_elements()?).ok().filter(|&count| count <= MAX_ELEMENTS)?;
        if !element.is_integer() && element != ElementType::I1 {
            return None;
        }
        let operand = |index: usize| {
            op.operands.get(index).and_then(|&value| self.elements.get(value.index())?.clone())
        };
        let operand_type =
            |index: usize| op.operands.get(index).and_then(|&value| body.ty(value).as_tensor());
        let binary = |f: &dyn Fn(i64, i64) -> Option<i64>| -> Option<Vec<i64>> {
            let (x, y) = (operand(0)?, operand(1)?);
            let results: Option<Vec<i64>> = x.iter().zip(y.iter()).map(|(&x, &y)| f(x, y)).collect();
            Some(results?.into_iter().map(|value| wrapped(element, value)).collect())
        };
        let is_signed = element.kind() == ElementKind::SignedInteger;
        match &op.kind {
            Op::Constant(constant) => constant.value.to_i64s(MAX_ELEMENTS),
            Op::GetDimensionSize(get) => {
                let size = operand_type(0)?.static_dims()?.get(usize::try_from(get.dimension).ok()?)?;
                Some(vec![*size])
            }
            Op::Iota(_) if ty.rank() == 1 => Some((0..count as i64).collect()),
            Op::Reshape(_) | Op::OptimizationBarrier(_) => Some(operand(0)?.to_vec()),
            Op::Convert(_) if element.is_integer() => {
                Some(operand(0)?.iter().map(|&value| wrapped(element, value)).collect())
            }
            Op::BroadcastInDim(_) => match *operand(0)? {
                [single] => Some(vec![single; count]),
                _ => None,
            },
            Op::Concatenate(concatenate) => {
                let dimension = usize::try_from(concatenate.dimension).ok()?;
                // Rows of the operands take turns, as many as there are along the dimensions before.
                let rows: i64 = ty.static_dims()?.get(..dimension)?.iter().product();
                let parts: Option<Vec<_>> = (0..op.operands.len()).map(operand).collect();
                let mut parts: Vec<_> = parts?;
                parts.retain(|part| !part.is_empty());
                let mut all = Vec::with_capacity(count);
                for row in 0..usize::try_from(rows).ok()? {
                    for part in &parts {
                        let width = part.len() / rows as usize;
                        all.extend_from_slice(part.get(row * width..(row + 1) * width)?);
                    }
                }
                Some(all)
            }
            Op::Slice(slice) if ty.rank() == 1 => {
                let from = operand(0)?;
                let bound = |bounds: &[i64]| usize::try_from(*bounds.first()?).ok();
                let (start, limit) = (bound(&slice.start_indices)?, bound(&slice.limit_indices)?);
                let stride = bound(&slice.strides).filter(|&stride| stride > 0)?;
                Some(from.get(start..limit)?.iter().copied().step_by(stride).collect())
            }
            // Booleans add and multiply as or and and, which nothing about shapes does.
            _ if element == ElementType::I1 => match &op.kind {
                Op::Compare(compare) => {
                    let is_signed = operand_type(0)?.element_type().kind() == ElementKind::SignedInteger;
                    binary(&|x, y| Some(i64::from(holds(compare.comparison_direction, x, y, is_signed))))
                }
                Op::And(_) => binary(&|x, y| Some(x & y)),
                Op::Or(_) => binary(&|x, y| Some(x | y)),
                Op::Not(_) => Some(operand(0)?.iter().map(|&value| 1 - value).collect()),
                _ => None,
            },
            Op::Add(_) => binary(&|x, y| Some(x.wrapping_add(y))),
            Op::Subtract(_) => binary(&|x, y| Some(x.wrapping_sub(y))),
            Op::Multiply(_) => binary(&|x, y| Some(x.wrapping_mul(y))),
            Op::Divide(_) if is_signed => binary(&|x, y| x.checked_div(y)),
            Op::Remainder(_) if is_signed => binary(&|x, y| x.checked_rem(y)),
            Op::Maximum(_) if is_signed => binary(&|x, y| Some(x.max(y))),
            Op::Minimum(_) if is_signed => binary(&|x, y| Some(x.min(y))),
            Op::Sign(_) if is_signed => Some(operand(0)?.iter().map(|value| value.signum()).collect()),
            Op::Abs(_) if is_signed => {
                Some(operand(0)?.iter().map(|&value| wrapped(element, value.wrapping_abs())).collect())
            }
            Op::Negate(_) => {
                Some(operand(0)?.iter().map(|&value| wrapped(element, value.wrapping_neg())).collect())
            }
            Op::Clamp(_) if is_signed => {
                let (min, x, max) = (operand(0)?, operand(1)?, operand(2)?);
                let bound = |bounds: &[i64], index: usize| bounds.get(index).or(bounds.first()).copied();
                let clamped = |(index, &value): (usize, &i64)| {
                    Some(value.max(bound(&min, index)?).min(bound(&max, index)?))
                };
                x.iter().enumerate().map(clamped).collect()
            }
            Op::Select(_) => {
                let (predicate, on_true, on_false) = (operand(0)?, operand(1)?, operand(2)?);
                let chosen = |index: usize| {
                    let holds = *predicate.get(index).or(predicate.first())? != 0;
                    if holds { on_true.get(index) } else { on_false.get(index) }.copied()
                };
                (0..count).map(chosen).collect()
            }
            _ => None,
        }
    }
}

/// A value as an element of a type, without the bits that do not fit.
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
