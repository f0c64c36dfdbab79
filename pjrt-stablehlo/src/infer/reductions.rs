//! Operations whose regions combine elements.

use super::context::{Context, integers};
use super::result::{ResultRule, Results};
use super::shape::{Shape, is_promotable, scalar_of, shapes_agree, types_compatible};
use crate::Constraint::{self, C};
use crate::Error;
use crate::ir::ops::{Reduce, Sort};
use crate::ir::{ElementType, Op, TensorType, Type};

/// Returns the results of reductions and sorts; `None` for other operations.
pub(super) fn results(cx: &Context<'_>) -> Option<Results> {
    Some(match &cx.op.kind {
        Op::Reduce(op) => reduce(cx, &op.dimensions),
        Op::Sort(op) => sort(cx, op),
        _ => return None,
    })
}

/// Returns the type `tensor<i1>`.
pub(super) fn predicate() -> Type {
    Type::Tensor(TensorType::new(ElementType::I1, []))
}

/// Returns an error unless a region has arguments and returned values of these types.
pub(super) fn signature(
    cx: &Context<'_>,
    region: usize,
    arguments: &[Type],
    returned: &[Type],
    constraint: Constraint,
) -> Result<(), Error> {
    let (found_arguments, found_returned) = cx.region(region)?;
    for (what, expected, found) in
        [("argument", arguments, found_arguments), ("returned value", returned, found_returned)]
    {
        cx.require(constraint, expected.len() == found.len(), || {
            format!("{}: expected {} {what}s, found {}", cx.region_name(region), expected.len(), found.len())
        })?;
        for (place, (expected, found)) in expected.iter().zip(found).enumerate() {
            cx.require(constraint, types_compatible(expected, found), || {
                format!("{}, {what} {place}: expected {expected}, found {found}", cx.region_name(region))
            })?;
        }
    }
    Ok(())
}

/// Checks a region that combines two elements of each input, and returns the types in which it does so: those of the
/// inputs, or wider ones.
pub(super) fn reducer<'a>(
    cx: &Context<'a>,
    region: usize,
    inputs: &[&TensorType],
    constraint: Constraint,
) -> Result<Vec<&'a TensorType>, Error> {
    let (arguments, returned) = cx.region(region)?;
    let name = || cx.region_name(region);
    for (what, expected, found) in
        [("arguments", 2 * inputs.len(), arguments.len()), ("returned values", inputs.len(), returned.len())]
    {
        cx.require(constraint, expected == found, || {
            format!("{}: expected {expected} {what}, found {found}", name())
        })?;
    }
    let mut sums = Vec::with_capacity(inputs.len());
    for (index, (&input, &sum)) in inputs.iter().zip(&returned).enumerate() {
        let Type::Tensor(tensor) = sum else {
            let message = format!("{}: expected to return tensors, found {sum}", name());
            return Err(cx.error(constraint, message));
        };
        // MLIR's verifier accepts a right operand with a different float width than that of the sum.
        let (left, right) = (arguments[index], arguments[inputs.len() + index]);
        cx.require(constraint, types_compatible(left, sum), || {
            format!("{}, argument {index}: expected {sum}, found {left}", name())
        })?;
        let fits = matches!(right, Type::Tensor(right) if shapes_agree(right.dims(), tensor.dims())
            && (super::shape::elements_compatible(right, tensor)
                || right.element_type().is_float() && tensor.element_type().is_float())
            && is_promotable(input, right));
        cx.require(constraint, fits, || {
            format!("{}, argument {}: expected {sum}, found {right}", name(), inputs.len() + index)
        })?;
        cx.require(constraint, is_promotable(input, tensor), || {
            format!("{}: expected a type that can accumulate elements of {input}, found {sum}", name())
        })?;
        sums.push(tensor);
    }
    Ok(sums)
}

/// Checks an initial value against the arguments of the region.
pub(super) fn init_value(
    cx: &Context<'_>,
    index: usize,
    sum: &TensorType,
    elements: Constraint,
    shape: Constraint,
) -> Result<(), Error> {
    let init = cx.tensor(index)?;
    cx.require(elements, is_promotable(init, sum), || {
        format!("{}: expected elements of {}, found {init}", cx.operand_name(index), scalar_of(sum))
    })?;
    cx.require(shape, shapes_agree(init.dims(), sum.dims()), || {
        format!("{}: expected {sum} as in the region, found {init}", cx.operand_name(index))
    })
}

/// `reduce`: the reduced dimensions of the inputs are removed.
fn reduce(cx: &Context<'_>, dimensions: &[i64]) -> Results {
    let count = Reduce::inputs(cx.op).len();
    cx.require(C(3), count > 0, || "expected at least one input".to_owned())?;
    let inputs: Vec<&TensorType> = (0..count).map(|index| cx.tensor(index)).collect::<Result<_, _>>()?;
    (1..count).try_for_each(|index| cx.same_shape(C(1), index, inputs[0].dims()))?;
    cx.dimensions(C(4), "dimensions", dimensions, inputs[0].rank())?;
    cx.unique(C(5), "dimensions", dimensions.iter().copied())?;
    let sums = reducer(cx, 0, &inputs, C(6))?;
    let mut results = Vec::with_capacity(count);
    for (index, (input, sum)) in inputs.into_iter().zip(sums).enumerate() {
        init_value(cx, count + index, sum, C(2), C(6))?;
        let sizes = Shape::of(input);
        let kept = sizes.sizes().enumerate().filter(|(place, _)| !dimensions.contains(&(*place as i64)));
        let shape: Shape = kept.map(|(_, size)| size).collect();
        results.push(ResultRule::of(shape.like(sum), C(7)).with_elements(C(8)));
    }
    Ok(results)
}

/// `sort`: the inputs have equal shapes, and the region compares two elements of each.
fn sort(cx: &Context<'_>, op: &Sort) -> Results {
    cx.require(C(1), !cx.op.operands.is_empty(), || "expected at least one input".to_owned())?;
    let first = cx.tensor(0)?;
    let rank = first.rank() as i64;
    // A scalar is returned unchanged, and has no dimension.
    let in_range = (-rank..rank).contains(&op.dimension) || rank == 0 && (-1..=0).contains(&op.dimension);
    cx.require(C(4), in_range, || {
        format!("dimension: expected a dimension from {} to {}, found {}", -rank, rank - 1, op.dimension)
    })?;
    let mut arguments = Vec::new();
    for index in 0..cx.op.operands.len() {
        cx.same_shape(C(3), index, first.dims())?;
        let element = scalar_of(cx.tensor(index)?);
        arguments.extend([element.clone(), element]);
    }
    signature(cx, 0, &arguments, &[predicate()], C(5))?;
    super::shapes::same_types(cx, C(2))
}

/// The movement of a window along one dimension.
pub(super) struct Window {
    pub(super) size: i64,
    pub(super) stride: i64,
    pub(super) padding: [i64; 2],
    pub(super) base_dilation: i64,
    pub(super) window_dilation: i64,
}

impl Window {
    /// Returns the number of positions along a dimension of static size; `None` if it does not fit. The factors are
    /// positive, and the window's size is nonnegative.
    pub(super) fn positions(&self, base: i64) -> Option<i64> {
        let dilated = |size: i64, dilation: i64| {
            if size == 0 { 0 } else { (i128::from(size) - 1) * i128::from(dilation) + 1 }
        };
        let [low, high] = self.padding.map(i128::from);
        let padded = low + dilated(base, self.base_dilation) + high;
        let width = dilated(self.size, self.window_dilation);
        if padded < width || padded <= 0 {
            return Some(0);
        }
        i64::try_from((padded - width) / i128::from(self.stride) + 1).ok()
    }
}

/// An attribute of windows: its name, its values, and the constraints on its length and values.
pub(super) type WindowAttribute<'a> = (&'static str, &'a [i64], Constraint, Constraint);

/// Checks that each list is empty or contains a positive number for each dimension.
pub(super) fn window_attributes(
    cx: &Context<'_>,
    rank: usize,
    attributes: &[WindowAttribute<'_>],
) -> Result<(), Error> {
    for &(what, values, length, range) in attributes {
        cx.require(length, values.is_empty() || values.len() == rank, || {
            format!("{what}: expected {rank} elements, found {}", integers(values))
        })?;
        cx.positive(range, what, values)?;
    }
    Ok(())
}

/// Returns element `index` of a list, or 1 if the list is empty.
pub(super) fn at(list: &[i64], index: usize) -> i64 {
    list.get(index).copied().unwrap_or(1)
}
