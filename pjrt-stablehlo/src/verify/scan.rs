//! The rules of `chlo.scan`, and of the composite with which XLA's clients represent it.

use crate::Error;
use crate::infer::{Context, types_compatible};
use crate::ir::chlo_attributes::{get as own_attribute, integers};
use crate::ir::{Attribute, Type};

/// Checks the attributes and types of a scan. Each argument and result of its region has the type of an input or output
/// without the scanned dimension, or the type of a carry.
pub(crate) fn check(cx: &Context<'_>) -> Result<(), Error> {
    cx.length(None, "regions", cx.op.regions.len(), 1)?;
    for name in ["is_reverse", "is_associative"] {
        expect(cx, name, "a boolean", |value| matches!(value, Attribute::Bool(_)))?;
    }
    expect(cx, "scan_dim_size", "a size", |value| value.as_i64().is_some_and(|size| size >= 0))?;
    let dimension = own_attribute(cx.op, "dimension").and_then(Attribute::as_i64);
    let dimension = dimension.and_then(|dimension| usize::try_from(dimension).ok());
    let dimension = dimension.ok_or_else(|| cx.error(None, "attribute 'dimension': expected a dimension"))?;

    let operands = cx.operand_types();
    let results: Vec<Type> = cx.op.results.map(|value| cx.body.ty(value).clone()).collect();
    let [inputs, carries] = segments(cx, "operand", operands.len())?;
    let [outputs, given] = segments(cx, "result", results.len())?;
    cx.length(None, "carries in the results", given, carries)?;
    for (index, (initial, last)) in operands[inputs..].iter().zip(&results[outputs..]).enumerate() {
        cx.require(None, types_compatible(initial, last), || {
            format!(
                "carry {index}: expected the type {initial} of its initial value in the results, found {last}"
            )
        })?;
    }

    let slices = |what: &str, types: &[Type]| {
        let slice = |(index, ty): (usize, &Type)| slice(cx, &format!("{what} {index}"), ty, dimension);
        types.iter().enumerate().map(slice).collect::<Result<Vec<Type>, Error>>()
    };
    let mut takes = slices("input", &operands[..inputs])?;
    takes.extend_from_slice(&operands[inputs..]);
    let mut gives = slices("output", &results[..outputs])?;
    gives.extend_from_slice(&results[outputs..]);
    let block = cx.block(0)?;
    let returned = block.ops.last().map(|&end| &*cx.body.op(end).operands).unwrap_or_default();
    for (what, expected, found) in
        [("argument", &takes, &*block.arguments), ("returned value", &gives, returned)]
    {
        cx.length(None, &format!("{what}s of the region"), found.len(), expected.len())?;
        for (index, (expected, &value)) in expected.iter().zip(found).enumerate() {
            let found = cx.body.ty(value);
            cx.require(None, types_compatible(expected, found), || {
                format!("{what} {index} of the region: expected {expected}, found {found}")
            })?;
        }
    }
    Ok(())
}

/// Returns an error if an attribute is present and has a different kind than expected.
fn expect(
    cx: &Context<'_>,
    name: &str,
    expected: &str,
    is_expected: impl Fn(&Attribute) -> bool,
) -> Result<(), Error> {
    let Some(found) = own_attribute(cx.op, name) else { return Ok(()) };
    cx.require(None, is_expected(found), || {
        format!("attribute '{name}': expected {expected}, found {}", found.description())
    })
}

/// Returns the numbers of inputs and carries among the operands, or of outputs and carries among the results.
fn segments(cx: &Context<'_>, what: &str, count: usize) -> Result<[usize; 2], Error> {
    let [now, before] = [format!("{what}SegmentSizes"), format!("{what}_segment_sizes")];
    let sizes = [now.as_str(), &before].iter().find_map(|name| integers(cx.op, name).ok().flatten());
    if let Some(&[scanned, carried]) = sizes.as_deref()
        && let (Ok(scanned), Ok(carried)) = (usize::try_from(scanned), usize::try_from(carried))
        && scanned.checked_add(carried) == Some(count)
    {
        return Ok([scanned, carried]);
    }
    Err(cx.error(None, format!("attribute '{now}': expected two numbers with sum {count}")))
}

/// Returns the type of a slice of an input or output.
fn slice(cx: &Context<'_>, what: &str, ty: &Type, dimension: usize) -> Result<Type, Error> {
    let Some(tensor) = ty.as_tensor().filter(|tensor| dimension < tensor.rank()) else {
        return Err(
            cx.error(None, format!("{what}: expected a tensor with a dimension {dimension}, found {ty}"))
        );
    };
    let mut dims = tensor.dims().to_vec();
    let size = dims.remove(dimension);
    let expected = own_attribute(cx.op, "scan_dim_size").and_then(Attribute::as_i64);
    cx.require(None, size < 0 || expected.is_none_or(|expected| expected == size), || {
        format!("{what}: expected the size of 'scan_dim_size' in dimension {dimension}, found {ty}")
    })?;
    Ok(tensor.with_dims(dims).into())
}
