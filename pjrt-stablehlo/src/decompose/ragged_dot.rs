//! `chlo.ragged_dot`: products of matrices some dimension of which is divided into groups of given sizes.

use super::rewriter::{Rewriter, definite};
use super::rules::mismatch;
use super::{attributes, unsupported};
use crate::Error;
use crate::build::Builder;
use crate::ir::ops::DotGeneral;
use crate::ir::{
    Attribute, ComparisonDirection, DotDimensionNumbers, ElementType, Op, OpCode, Operation, TensorType,
    ValueId,
};

/// What `#chlo.ragged_dot` says.
pub(crate) struct RaggedDimensions {
    pub(crate) dot: DotDimensionNumbers,
    /// The dimension of the left operand that is divided into groups.
    pub(crate) ragged: i64,
    /// The dimension of the right operand that has a slice for each group.
    pub(crate) group: Option<i64>,
}

/// `chlo.ragged_dot`, by the role of the ragged dimension of the left operand:
///
/// * not contracted: each group of rows is multiplied with its own slice of the right operand. All rows are multiplied
///   with all slices, and those products that belong together are kept.
/// * contracted: the result has one product for each group. The operands are masked for each group.
/// * batched: groups make no difference.
pub(super) fn ragged_dot(r: &mut Rewriter<'_>, op: &Operation) -> Result<ValueId, Error> {
    let ([lhs, rhs, sizes], result) = (r.operands(op)?, r.result(op)?);
    let dimensions = dimensions(op)?;
    let (lhs_ty, sizes_ty) = (r.b.tensor(lhs), r.b.tensor(sizes));
    let numbers = &dimensions.dot;
    if numbers.lhs_batching_dimensions.contains(&dimensions.ragged) {
        return product(r, lhs, rhs, numbers.clone(), &result);
    }
    if sizes_ty.rank() != 1 {
        return Err(unsupported(format!(
            "operand 2: expected one list of sizes for all batches, found {sizes_ty}"
        )));
    }
    let (groups, rows) = (sizes_ty.dims()[0], lhs_ty.dims()[dimensions.ragged as usize]);
    let mask = membership(&mut r.b, sizes, groups, rows);
    match dimensions.group {
        Some(group) => ragged_rows(r, op, [lhs, rhs], &dimensions, group, mask, &result),
        None => ragged_contraction(r, op, [lhs, rhs], &dimensions, mask, &result),
    }
}

/// Which rows are in which group: `i1` of groups by rows.
fn membership(b: &mut Builder, sizes: ValueId, groups: i64, rows: i64) -> ValueId {
    let wide = b.convert(sizes, ElementType::I64);
    // The end of each group: the sum of its size and those before.
    let square = [groups, groups];
    let (row, column) = (b.iota(ElementType::I64, &square, 0), b.iota(ElementType::I64, &square, 1));
    let is_before = b.compare(ComparisonDirection::Le, column, row);
    let all = b.broadcast(wide, &[1], &square);
    let zero = b.number(0.0, all);
    let counted = b.select(is_before, all, zero);
    let ends = b.reduce(counted, &[1], OpCode::Add, 0.0);
    let starts = b.subtract(ends, wide);
    let dims = [groups, rows];
    let (starts, ends) = (b.broadcast(starts, &[0], &dims), b.broadcast(ends, &[0], &dims));
    let position = b.iota(ElementType::I64, &dims, 1);
    let is_after = b.compare(ComparisonDirection::Ge, position, starts);
    let is_before = b.compare(ComparisonDirection::Lt, position, ends);
    b.and(is_after, is_before)
}

fn product(
    r: &mut Rewriter<'_>,
    lhs: ValueId,
    rhs: ValueId,
    numbers: DotDimensionNumbers,
    result: &TensorType,
) -> Result<ValueId, Error> {
    let kind =
        DotGeneral { dot_dimension_numbers: numbers, precision_config: Box::default(), algorithm: None };
    definite(result)?;
    Ok(r.b.op_of_type(Op::DotGeneral(Box::new(kind)), &[lhs, rhs], result.clone()))
}

/// The dimensions below `rank` that are in none of the lists.
fn free(rank: usize, lists: &[&[i64]]) -> Vec<i64> {
    (0..rank as i64).filter(|dimension| !lists.iter().any(|list| list.contains(dimension))).collect()
}

/// Products of all rows with the slices of all groups, of which each row's own is kept.
fn ragged_rows(
    r: &mut Rewriter<'_>,
    op: &Operation,
    [lhs, rhs]: [ValueId; 2],
    dimensions: &RaggedDimensions,
    group: i64,
    mask: ValueId,
    result: &TensorType,
) -> Result<ValueId, Error> {
    let numbers = &dimensions.dot;
    let (lhs_dims, rhs_dims) = (r.b.dims(lhs), r.b.dims(rhs));
    let lhs_free =
        free(lhs_dims.len(), &[&numbers.lhs_batching_dimensions, &numbers.lhs_contracting_dimensions]);
    let rhs_free =
        free(rhs_dims.len(), &[&numbers.rhs_batching_dimensions, &numbers.rhs_contracting_dimensions]);
    let batch = numbers.lhs_batching_dimensions.len();
    let row_place =
        lhs_free.iter().position(|&d| d == dimensions.ragged).ok_or_else(|| mismatch(op))? + batch;
    let group_place =
        rhs_free.iter().position(|&d| d == group).ok_or_else(|| mismatch(op))? + batch + lhs_free.len();
    let mut all: Vec<i64> = numbers.lhs_batching_dimensions.iter().map(|&d| lhs_dims[d as usize]).collect();
    all.extend(lhs_free.iter().map(|&d| lhs_dims[d as usize]));
    all.extend(rhs_free.iter().map(|&d| rhs_dims[d as usize]));
    let products = product(r, lhs, rhs, numbers.clone(), &result.with_dims(all.clone()))?;
    let mask_dims = r.b.dims(mask);
    if [mask_dims[0], mask_dims[1]] != [all[group_place], all[row_place]] {
        return Err(unsupported(format!(
            "expected as many groups as the right operand has slices, {}, found {}",
            all[group_place], mask_dims[0]
        )));
    }
    // `broadcast_in_dim` wants no order of dimensions.
    let mask = r.b.broadcast(mask, &[group_place as i64, row_place as i64], &all);
    let zero = r.b.number(0.0, products);
    let kept = r.b.select(mask, products, zero);
    Ok(r.b.reduce(kept, &[group_place as i64], OpCode::Add, 0.0))
}

/// One product for each group, of the operands with zeros in place of the other groups.
fn ragged_contraction(
    r: &mut Rewriter<'_>,
    op: &Operation,
    [lhs, rhs]: [ValueId; 2],
    dimensions: &RaggedDimensions,
    mask: ValueId,
    result: &TensorType,
) -> Result<ValueId, Error> {
    let numbers = &dimensions.dot;
    let place = numbers.lhs_contracting_dimensions.iter().position(|&d| d == dimensions.ragged);
    let rhs_ragged = numbers.rhs_contracting_dimensions.get(place.ok_or_else(|| mismatch(op))?).copied();
    let rhs_ragged = rhs_ragged.ok_or_else(|| mismatch(op))?;
    let masked = |b: &mut Builder, x: ValueId, ragged: i64| {
        let (groups, own) = (b.dims(mask)[0], b.dims(x));
        let dims = [&[groups][..], &own].concat();
        let places: Vec<i64> = (1..=own.len() as i64).collect();
        let repeated = b.broadcast(x, &places, &dims);
        let mask = b.broadcast(mask, &[0, ragged + 1], &dims);
        let zero = b.number(0.0, repeated);
        b.select(mask, repeated, zero)
    };
    let lhs = masked(&mut r.b, lhs, dimensions.ragged);
    let rhs = masked(&mut r.b, rhs, rhs_ragged);
    let moved = |list: &[i64]| list.iter().map(|dimension| dimension + 1).collect::<Vec<_>>();
    let grouped = |list: &[i64]| [vec![0], moved(list)].concat();
    let numbers = DotDimensionNumbers {
        lhs_batching_dimensions: grouped(&numbers.lhs_batching_dimensions).into(),
        rhs_batching_dimensions: grouped(&numbers.rhs_batching_dimensions).into(),
        lhs_contracting_dimensions: moved(&numbers.lhs_contracting_dimensions).into(),
        rhs_contracting_dimensions: moved(&numbers.rhs_contracting_dimensions).into(),
    };
    product(r, lhs, rhs, numbers, result)
}

/// Reads `#chlo.ragged_dot<lhs_batching_dimensions = [0], ...>`, which is known by its text only.
pub(crate) fn dimensions(op: &Operation) -> Result<RaggedDimensions, Error> {
    const NAME: &str = "ragged_dot_dimension_numbers";
    let malformed = || unsupported(format!("attribute '{NAME}': expected lists of dimensions"));
    let text = match attributes::require(op, NAME)? {
        Attribute::Opaque(text) => text,
        _ => return Err(malformed()),
    };
    let list = |name: &str| -> Result<Box<[i64]>, Error> {
        let Some((_, rest)) = text.split_once(name) else { return Ok(Box::default()) };
        let (_, rest) = rest.split_once('[').ok_or_else(malformed)?;
        let (inner, _) = rest.split_once(']').ok_or_else(malformed)?;
        let numbers = inner.split(',').map(str::trim).filter(|number| !number.is_empty());
        numbers.map(|number| number.parse().map_err(|_| malformed())).collect()
    };
    let ragged = list("lhs_ragged_dimensions")?;
    let groups = list("rhs_group_dimensions")?;
    let ([ragged], [] | [_]) = (&*ragged, &*groups) else {
        return Err(unsupported(format!(
            "attribute '{NAME}': expected one ragged and at most one group dimension"
        )));
    };
    Ok(RaggedDimensions {
        dot: DotDimensionNumbers {
            lhs_batching_dimensions: list("lhs_batching_dimensions")?,
            rhs_batching_dimensions: list("rhs_batching_dimensions")?,
            lhs_contracting_dimensions: list("lhs_contracting_dimensions")?,
            rhs_contracting_dimensions: list("rhs_contracting_dimensions")?,
        },
        ragged: *ragged,
        group: groups.first().copied(),
    })
}
