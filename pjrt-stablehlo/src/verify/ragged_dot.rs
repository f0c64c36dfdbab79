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
    let dimensions = match &cx.op.kind {
        Op::Other(op) => op.properties.get(RaggedDotDimensionNumbers::NAME),
        _ => None,
    };
    let dimensions = dimensions.or_else(|| cx.op.attributes.get(RaggedDotDimensionNumbers::NAME));
    let dimensions = dimensions.ok_or_else(|| {
        let name = RaggedDotDimensionNumbers::NAME;
        cx.error(None, format!("the attribute '{name}' is missing"))
    })?;
    let dimensions = RaggedDotDimensionNumbers::from_attribute(dimensions)
        .map_err(|expected| cx.error(None, format!("{NUMBERS}: expected {expected}")))?;
    let (dot, ragged) = (&dimensions.dot, dimensions.ragged);
    let batching = (&*dot.lhs_batching_dimensions, &*dot.rhs_batching_dimensions);
    let contracting = (&*dot.lhs_contracting_dimensions, &*dot.rhs_contracting_dimensions);
    let group = dimensions.group.as_slice();
    distinct(cx, "left", lhs, &[batching.0, contracting.0])?;
    distinct(cx, "left", lhs, &[&[ragged]])?;
    distinct(cx, "right", rhs, &[batching.1, contracting.1, group])?;
    for (what, (left, right)) in [("batching", batching), ("contracting", contracting)] {
        cx.length(
            None,
            &format!("{NUMBERS}, {what} dimensions of the right operand"),
            right.len(),
            left.len(),
        )?;
        for (&left, &right) in left.iter().zip(right) {
            let (left, right) = (lhs.dims()[left as usize], rhs.dims()[right as usize]);
            cx.require(None, sizes_agree(left, right), || {
                format!("operands: expected {what} dimensions of equal sizes, found {left} and {right}")
            })?;
        }
    }
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
    let free = |ty: &TensorType, lists: [&[i64]; 3]| -> Vec<i64> {
        let is_free = |dimension: &usize| !lists.iter().any(|list| list.contains(&(*dimension as i64)));
        (0..ty.rank()).filter(is_free).map(|dimension| ty.dims()[dimension]).collect()
    };
    let mut dims = Vec::new();
    if contracting.0.contains(&ragged) {
        dims.push(groups);
    }
    dims.extend(batching.0.iter().map(|&dimension| lhs.dims()[dimension as usize]));
    dims.extend(free(lhs, [batching.0, contracting.0, &[]]));
    dims.extend(free(rhs, [batching.1, contracting.1, group]));
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
