//! The dimension numbers and shapes of `chlo.ragged_dot`, according to StableHLO's `ChloOps.cpp`.

use std::collections::HashSet;

use crate::Error;
use crate::infer::{Context, sizes_agree};
use crate::ir::{ElementType, Op, RaggedDotDimensionNumbers, TensorType, Type};

const NUMBERS: &str = "attribute 'ragged_dot_dimension_numbers'";

/// Checks an operation with three operands and one result.
pub(super) fn check(cx: &Context<'_>) -> Result<(), Error> {
    let (lhs, rhs, group_sizes) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let sizes = group_sizes.element_type();
    cx.require(None, sizes.is_integer() && sizes != ElementType::I1, || {
        format!("operand 2: expected integer group sizes, found {group_sizes}")
    })?;
    let dimensions = dimension_numbers(cx)?;
    let (dot, ragged) = (&dimensions.dot, dimensions.ragged);
    let batching = (&*dot.lhs_batching_dimensions, &*dot.rhs_batching_dimensions);
    let contracting = (&*dot.lhs_contracting_dimensions, &*dot.rhs_contracting_dimensions);
    let group = dimensions.group.as_slice();
    distinct(cx, "left", lhs, &[batching.0, contracting.0])?;
    distinct(cx, "left", lhs, &[&[ragged]])?;
    distinct(cx, "right", rhs, &[batching.1, contracting.1, group])?;
    same_sizes(cx, "batching", (lhs, batching.0), (rhs, batching.1))?;
    same_sizes(cx, "contracting", (lhs, contracting.0), (rhs, contracting.1))?;
    let is_of_result = !batching.0.contains(&ragged) && !contracting.0.contains(&ragged);
    cx.length(None, &format!("{NUMBERS}, group dimensions"), group.len(), usize::from(is_of_result))?;
    let Some(&groups) = group_sizes.dims().last() else {
        return Err(
            cx.error(None, format!("operand 2: expected a vector of group sizes, found {group_sizes}"))
        );
    };
    if let [group] = *group {
        let found = rhs.dims()[group as usize];
        cx.require(None, sizes_agree(found, groups), || {
            format!(
                "operand 1: expected size {groups}, the number of groups, in dimension {group}, found {found}"
            )
        })?;
    }
    let mut dims = Vec::new();
    if contracting.0.contains(&ragged) {
        dims.push(groups);
    }
    dims.extend(batching.0.iter().map(|&dimension| lhs.dims()[dimension as usize]));
    dims.extend(free_sizes(lhs, &[batching.0, contracting.0]));
    dims.extend(free_sizes(rhs, &[batching.1, contracting.1, group]));
    result_shape(cx, &dims)
}

/// Returns the operation's dimension numbers.
fn dimension_numbers(cx: &Context<'_>) -> Result<RaggedDotDimensionNumbers, Error> {
    let name = RaggedDotDimensionNumbers::NAME;
    let property = match &cx.op.kind {
        Op::Other(op) => op.properties.get(name),
        _ => None,
    };
    let attribute = property.or_else(|| cx.op.attributes.get(name));
    let attribute =
        attribute.ok_or_else(|| cx.error(None, format!("expected an attribute '{name}', found none")))?;
    RaggedDotDimensionNumbers::from_attribute(attribute)
        .map_err(|expected| cx.error(None, format!("{NUMBERS}: expected {expected}")))
}

/// Fails unless dimensions of the left and of the right operand have the same sizes.
fn same_sizes(
    cx: &Context<'_>,
    what: &str,
    (lhs, left): (&TensorType, &[i64]),
    (rhs, right): (&TensorType, &[i64]),
) -> Result<(), Error> {
    let name = format!("{NUMBERS}, {what} dimensions of the right operand");
    cx.length(None, &name, right.len(), left.len())?;
    for (&left, &right) in left.iter().zip(right) {
        let (left, right) = (lhs.dims()[left as usize], rhs.dims()[right as usize]);
        cx.require(None, sizes_agree(left, right), || {
            format!("operands: expected {what} dimensions of equal sizes, found {left} and {right}")
        })?;
    }
    Ok(())
}

/// Returns the sizes of the dimensions of an operand that are in none of the lists.
fn free_sizes(ty: &TensorType, lists: &[&[i64]]) -> impl Iterator<Item = i64> {
    let is_free = |dimension: i64| !lists.iter().any(|list| list.contains(&dimension));
    ty.dims().iter().zip(0..).filter(move |&(_, dimension)| is_free(dimension)).map(|(&size, _)| size)
}

/// Fails unless the result is a tensor of these sizes.
fn result_shape(cx: &Context<'_>, dims: &[i64]) -> Result<(), Error> {
    let found = cx.op.results.get(0).map_or(&Type::None, |value| cx.body.ty(value));
    let fits = |found: &TensorType| {
        let mut sizes = dims.iter().zip(found.dims());
        found.rank() == dims.len() && sizes.all(|(&expected, &found)| sizes_agree(expected, found))
    };
    cx.require(None, found.as_tensor().is_some_and(fits), || {
        format!("result 0: expected a tensor of shape {dims:?}, found {found}")
    })
}

/// Returns an error unless the lists contain distinct dimensions of an operand.
fn distinct(cx: &Context<'_>, side: &str, ty: &TensorType, lists: &[&[i64]]) -> Result<(), Error> {
    let mut seen = HashSet::new();
    let mut all = lists.iter().copied().flatten();
    let fits = all.all(|dimension| (0..ty.rank() as i64).contains(dimension) && seen.insert(*dimension));
    cx.require(None, fits, || {
        format!("{NUMBERS}: expected distinct dimensions of the {side} operand {ty}, found {lists:?}")
    })
}
