//! Comparisons that tell all elements of a sort apart.

use crate::Error;
use crate::ir::{ComparisonDirection as Cmp, ElementType, Op, Operation, ValueId};
use crate::passes::rewrite::Rewriter;

/// Adds the positions along a dimension to the operands of a sort, unless one of them has them. Returns their index.
pub(crate) fn with_positions(r: &mut Rewriter<'_>, operands: &mut Vec<ValueId>, dimension: usize) -> usize {
    let dims = r.b.dims(operands[0]);
    let element = if i32::try_from(dims[dimension]).is_ok() { ElementType::I32 } else { ElementType::I64 };
    let are_positions = |operand: &ValueId| {
        let ty = r.b.tensor(*operand).element_type();
        let op = r.b.body().defining_op(*operand).map(|id| &r.b.body().op(id).kind);
        let is_iota = matches!(op, Some(Op::Iota(iota)) if iota.iota_dimension == dimension as i64);
        // Narrower numbers may wrap around.
        is_iota && ty.is_integer() && ty.bits() >= element.bits()
    };
    operands.iter().position(are_positions).unwrap_or_else(|| {
        operands.push(r.b.iota(element, &dims, dimension as i64));
        operands.len() - 1
    })
}

/// Returns where the first of two elements comes first in a sort. `arguments` has a pair for each operand; they are scalars, or
/// tensors that are compared element by element. The pair `positions` decides for equal elements.
pub(crate) fn is_before<'m>(
    r: &mut Rewriter<'m>,
    op: &'m Operation,
    arguments: &[ValueId],
    positions: Option<usize>,
) -> Result<ValueId, Error> {
    let count = 2 * op.results.len();
    // This comes first: IREE takes a sort with positions that begins with another comparison for a `chlo.top_k`, which is not
    // stable.
    let first = positions.map(|at| r.b.compare(Cmp::Lt, arguments[2 * at], arguments[2 * at + 1]));
    let less = r.apply_region(op, 0, &arguments[..count])?[0];
    let Some(first) = first else { return Ok(less) };
    let exchanged: Vec<ValueId> = (0..count).map(|index| arguments[index ^ 1]).collect();
    let greater = r.apply_region(op, 0, &exchanged)?[0];
    let b = &mut r.b;
    let not_greater = b.not(greater);
    let equal_and_first = b.and(not_greater, first);
    Ok(b.or(less, equal_and_first))
}
