//! Replacement of 64-bit integers that a device lacks by narrower ones, where their numbers are known to be small.
//!
//! JAX counts random numbers in `ui64`, even on devices with 32-bit integers only: an `iota`, multiplied by strides, whose halves
//! become `ui32`. All of these numbers are less than the number of elements.

use std::collections::HashMap;

use super::CoreOps;
use super::integer_ranges::{Range, integer_ranges};
use super::rewrite::{Origins, Pass, Replacement, Rewriter, rewrite};
use crate::Error;
use crate::ir::{Body, ElementType, Module, Op, OpCode, OpId, Operation, TensorType, ValueId};

/// The wide types, and the narrow ones that replace them: the first that the device has.
const NARROWER: [(ElementType, [ElementType; 2]); 2] = [
    (ElementType::Ui64, [ElementType::Ui32, ElementType::I32]),
    (ElementType::I64, [ElementType::I32, ElementType::Ui32]),
];

/// The operations that compute in narrow types what they compute in wide ones, if all numbers are in the narrow range.
#[rustfmt::skip]
const OPS: &[OpCode] = &[
    OpCode::Add, OpCode::And, OpCode::BroadcastInDim, OpCode::Concatenate, OpCode::Constant, OpCode::Convert, OpCode::Divide,
    OpCode::Iota, OpCode::Maximum, OpCode::Minimum, OpCode::Multiply, OpCode::Remainder, OpCode::Reshape, OpCode::Reverse,
    OpCode::Select, OpCode::ShiftRightLogical, OpCode::Slice, OpCode::Subtract, OpCode::Transpose,
];

/// Returns the program with narrower integers in place of wide ones that the device lacks; `None` if there are none.
///
/// # Errors
/// Returns an error if the program cannot be rebuilt.
pub(super) fn narrow_integers(
    module: &Module,
    core: &CoreOps,
    origins: &mut Origins,
) -> Result<Option<Module>, Error> {
    let narrower: HashMap<ElementType, ElementType> = NARROWER
        .into_iter()
        .filter(|(wide, _)| core.lacks(*wide))
        .filter_map(|(wide, narrow)| Some((wide, narrow.into_iter().find(|narrow| !core.lacks(*narrow))?)))
        .collect();
    if narrower.is_empty() {
        return Ok(None);
    }
    let narrowed: Vec<Narrowed> =
        module.functions().iter().map(|function| Narrowed::new(&function.body, &narrower)).collect();
    if narrowed.iter().all(|narrowed| narrowed.values.iter().all(Option::is_none)) {
        return Ok(None);
    }
    rewrite(module, &NarrowIntegers { narrowed }, |_| true, origins).map(Some)
}

/// The values of a body that become narrower, by index: their new type, and their range.
struct Narrowed {
    values: Vec<Option<(ElementType, Range)>>,
}

impl Narrowed {
    fn new(body: &Body, narrower: &HashMap<ElementType, ElementType>) -> Self {
        let ranges = integer_ranges(body);
        let candidate = |value: ValueId| {
            let narrow = *narrower.get(&body.ty(value).as_tensor()?.element_type())?;
            let range = ranges[value.index()]?;
            let op = body.op(body.defining_op(value)?);
            let is_possible =
                range.single().is_some() || OPS.contains(&op.kind.code()) && shifts(op, &ranges, narrow);
            (is_possible && Range::of_type(narrow)?.contains(range)).then_some((narrow, range))
        };
        let mut narrowed = Narrowed { values: body.values().map(|(value, _)| candidate(value)).collect() };
        narrowed.settle(body, narrower);
        narrowed
    }

    fn get(&self, value: ValueId) -> Option<(ElementType, Range)> {
        self.values[value.index()]
    }

    /// Returns the only number of a value, which becomes a constant without operands.
    fn number(&self, op: &Operation) -> Option<i128> {
        let [result] = op.results.collect::<Vec<_>>()[..] else { return None };
        self.get(result)?.1.single()
    }

    /// Removes the values that an operation needs wide, or computes from a wide one. A value that stays wide keeps those wide from
    /// which it is computed, and those that are computed from it.
    fn settle(&mut self, body: &Body, narrower: &HashMap<ElementType, ElementType>) {
        let mut users = vec![Vec::new(); body.num_values()];
        for (id, op) in body.all_ops() {
            op.operands.iter().for_each(|operand| users[operand.index()].push(id));
        }
        let mut work: Vec<OpId> = body.all_ops().map(|(id, _)| id).collect();
        while let Some(id) = work.pop() {
            let op = body.op(id);
            if self.is_narrowed(body, op, narrower) {
                continue;
            }
            for value in op.operands.iter().copied().chain(op.results) {
                if self.values[value.index()].take().is_some() {
                    work.extend(body.defining_op(value));
                    work.extend(&users[value.index()]);
                }
            }
        }
    }

    /// Returns `true` if an operation can compute with the narrow types of its values, or has none of them.
    fn is_narrowed(&self, body: &Body, op: &Operation, narrower: &HashMap<ElementType, ElementType>) -> bool {
        if self.number(op).is_some() {
            return true;
        }
        let is_wide = |value: ValueId| {
            let element = body.ty(value).as_tensor().map(TensorType::element_type);
            element.is_some_and(|element| narrower.contains_key(&element)) && self.get(value).is_none()
        };
        let is_any_wide = match op.kind {
            // A narrow operand may become a wide result.
            Op::Convert(_) => self.get(op.result()).is_some() && is_wide(op.operand(0)),
            _ => op.operands.iter().copied().chain(op.results).any(is_wide),
        };
        !is_any_wide && (op.kind.code() == OpCode::Compare || OPS.contains(&op.kind.code()))
    }
}

/// Returns `true` unless an operation may shift by all bits of the narrow type or more, which devices do differently.
fn shifts(op: &Operation, ranges: &[Option<Range>], narrow: ElementType) -> bool {
    let is_short = |by: Range| by.greatest < i128::from(narrow.bits());
    !matches!(op.kind, Op::ShiftRightLogical(_)) || ranges[op.operand(1).index()].is_some_and(is_short)
}

/// The pass that replaces wide integers.
struct NarrowIntegers {
    /// For each function by index.
    narrowed: Vec<Narrowed>,
}

impl Pass for NarrowIntegers {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        let narrowed = &self.narrowed[r.function_index()];
        let is_narrowed = |value: ValueId| narrowed.get(value).is_some();
        if !op.operands.iter().copied().chain(op.results).any(is_narrowed) {
            return Ok(Replacement::Copy);
        }
        let Some(ty) = r.old_type(op.result()).as_tensor() else { return Ok(Replacement::Copy) };
        let element = narrowed.get(op.result()).map_or(ty.element_type(), |(narrow, _)| narrow);
        let ty = TensorType::new(element, ty.dims());
        if let Some(number) = narrowed.number(op) {
            return Ok(Replacement::Values(vec![r.b.integer(number as i64, ty)]));
        }
        let operands = r.flat(&op.operands);
        let value = match &op.kind {
            Op::Constant(constant) => {
                let numbers = constant.value.to_i64s(usize::MAX).unwrap_or_default();
                let vector = r.b.integers(&numbers, element);
                r.b.reshape(vector, ty.static_dims().unwrap_or_default())
            }
            Op::Convert(_) => r.b.convert(operands[0], element),
            Op::Compare(compare) => r.b.compare(compare.comparison_direction, operands[0], operands[1]),
            kind => r.b.op_of_type(kind.clone(), &operands, ty),
        };
        Ok(Replacement::Values(vec![value]))
    }
}
