//! Keeps conversions to wider element types out of reductions.

use std::cell::RefCell;
use std::collections::HashSet;

use super::rewrite::{Origins, Pass, Replacement, Rewriter, rewrite};
use super::split_elementwise::is_part;
use crate::Error;
use crate::ir::ops::OptimizationBarrier;
use crate::ir::{Body, ElementType, Function, Module, Op, OpId, Operation, Trait, ValueId};

/// Inserts `stablehlo.optimization_barrier` so that no reduction, product, convolution or reversal contains an elementwise
/// expression that reads a narrower element type than that of its result.
///
/// Some compilers compute such an expression together with the reduction, because it is cheaper to read the narrow elements again
/// than to store the wide ones. IREE's code for GPUs without subgroup operations then uses memory that the invocations of a
/// workgroup share, without waiting for one another. Its compiler refuses code that rounds products to `bf16`, so products are
/// stored before. The barriers are after the operations that widen, which are `convert` and `select`. The compiler must not move
/// operations across them:
///
/// ```
/// use pjrt_stablehlo::passes::separate_widening;
///
/// let text = "func.func @main(%x: tensor<4x8xf16>, %zero: tensor<f32>) -> tensor<4xf32> {
///     %0 = stablehlo.convert %x : (tensor<4x8xf16>) -> tensor<4x8xf32>
///     %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
///     return %1 : tensor<4xf32>
/// }";
/// let module = pjrt_stablehlo::parse(text.to_owned())?;
/// assert_eq!(separate_widening(&module)?.op_counts()["stablehlo.optimization_barrier"], 1);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
///
/// A call is no reduction: inline calls before.
///
/// Products and convolutions get operands of the element type in which their sums are computed: that of the result, or `f32` for
/// narrower floats, whose results are rounded once. Those of quantized types do not change.
///
/// # Errors
/// Returns the errors of [`verify`](crate::verify), which the result satisfies.
pub fn separate_widening(module: &Module) -> Result<Module, Error> {
    crate::verify(module)?;
    let separated = rewrite(module, &SeparateWidening::default(), |_| true, &mut Origins::default())?;
    crate::verify(&separated)?;
    Ok(separated)
}

#[derive(Default)]
struct SeparateWidening {
    /// The operations of the function that are before reductions; `None` before the first operation.
    before_reductions: RefCell<Option<HashSet<OpId>>>,
}

impl Pass for SeparateWidening {
    fn replacement<'m>(&self, r: &mut Rewriter<'m>, op: &'m Operation) -> Result<Replacement<'m>, Error> {
        if is_product(op) {
            return Ok(product(r, op).map_or(Replacement::Copy, |result| Replacement::Values(vec![result])));
        }
        let body = r.old_body();
        if rounds_product(body, op) {
            let (operands, element) = (r.operands::<1>(op)?, ElementType::BF16);
            let kept = stored(r, operands[0]);
            return Ok(Replacement::Values(vec![r.b.convert(kept, element)]));
        }
        let mut before = self.before_reductions.borrow_mut();
        let before = before.get_or_insert_with(|| before_reductions(body));
        let is_before = |value: ValueId| body.defining_op(value).is_some_and(|id| before.contains(&id));
        if !op.results.iter().any(is_before) || !widens(body, op) {
            return Ok(Replacement::Copy);
        }
        let (operands, types) = (r.flat(&op.operands), r.result_types(op));
        let id = r.b.add_op(op.kind.clone(), &operands, types);
        r.b.body.op_mut(id).attributes = op.attributes.clone();
        let results = r.b.all_results(id);
        Ok(Replacement::Values(results.into_iter().map(|result| stored(r, result)).collect()))
    }

    fn end_function(&self, _: &mut Function) {
        *self.before_reductions.borrow_mut() = None;
    }
}

/// Returns the value after a barrier.
fn stored(r: &mut Rewriter<'_>, value: ValueId) -> ValueId {
    r.b.op(OptimizationBarrier {}, &[value])
}

fn is_product(op: &Operation) -> bool {
    matches!(op.kind, Op::DotGeneral(_) | Op::Convolution(_))
}

/// Returns `true` if IREE computes an operation together with the conversions of its operands, and reads elements of these that
/// have other positions than those of its results.
fn is_reduction(op: &Operation) -> bool {
    let is_control = matches!(op.kind, Op::While(_) | Op::If(_) | Op::Case(_));
    is_product(op) || matches!(op.kind, Op::Reverse(_)) || !op.regions.is_empty() && !is_control
}

/// Returns the operations from whose results operands of reductions are computed, without storing an array.
fn before_reductions(body: &Body) -> HashSet<OpId> {
    let mut found = HashSet::new();
    let reductions = body.all_ops().filter(|(_, op)| is_reduction(op));
    let mut values: Vec<ValueId> = reductions.flat_map(|(_, op)| op.operands.iter().copied()).collect();
    while let Some(value) = values.pop() {
        let Some(id) = body.defining_op(value) else { continue };
        let op = body.op(id);
        let is_stored =
            !op.regions.is_empty() || is_product(op) || matches!(op.kind, Op::OptimizationBarrier(_));
        if !is_stored && found.insert(id) {
            values.extend(op.operands.iter().copied());
        }
    }
    found
}

/// Returns `true` if an elementwise operation has a wider element type than an operand, whose expression reads an array that is
/// narrower, too.
fn widens(body: &Body, op: &Operation) -> bool {
    let elements = body.element_types(op);
    let Some(width) = elements.last().map(|element| element.bits()) else { return false };
    let is_narrow =
        |value: ValueId| body.ty(value).as_tensor().is_some_and(|ty| ty.element_type().bits() < width);
    (op.info().has(Trait::Elementwise) || matches!(op.kind, Op::Select(_)))
        && elements.iter().any(|element| element.bits() < width)
        && arrays(body, op).into_iter().any(is_narrow)
}

/// Returns `true` if an operation rounds an expression with a product to `bf16`.
fn rounds_product(body: &Body, op: &Operation) -> bool {
    let is_product = |value: ValueId| body.defining_op(value).is_some_and(|id| is_product(body.op(id)));
    matches!(op.kind, Op::Convert(_))
        && body.element_types(op).last() == Some(&ElementType::BF16)
        && arrays(body, op).into_iter().any(is_product)
}

/// Returns the arrays that the expression of an operation reads.
fn arrays(body: &Body, op: &Operation) -> Vec<ValueId> {
    let (mut values, mut known, mut arrays) = (op.operands.to_vec(), HashSet::new(), Vec::new());
    while let Some(value) = values.pop() {
        match body.defining_op(value).map(|id| (id, body.op(id))) {
            Some((id, op)) if is_part(&op.kind) => {
                if known.insert(id) {
                    values.extend(op.operands.iter().copied());
                }
            }
            _ => arrays.push(value),
        }
    }
    arrays
}

/// Returns the result of a product or a convolution whose operands are narrower than its sums.
fn product(r: &mut Rewriter<'_>, op: &Operation) -> Option<ValueId> {
    let ([lhs, rhs], result) = (r.operands(op).ok()?, r.result(op).ok()?);
    let element = result.element_type();
    let types = [r.b.tensor(lhs), r.b.tensor(rhs), result.clone()];
    if types.iter().any(|ty| ty.quantization().is_some() || ty.static_dims().is_none()) {
        return None;
    }
    let is_narrow = element.is_float() && element.bits() < 32;
    let wide = if is_narrow { ElementType::F32 } else { element };
    if types.iter().all(|ty| ty.element_type() == wide) {
        return None;
    }
    let operands = [lhs, rhs].map(|operand| {
        let widened = r.b.convert(operand, wide);
        if widened == operand { operand } else { stored(r, widened) }
    });
    let id = r.b.add_op(op.kind.clone(), &operands, vec![result.with_element_type(wide).into()]);
    r.b.body.op_mut(id).attributes = op.attributes.clone();
    let product = r.b.all_results(id)[0];
    Some(if wide == element {
        product
    } else {
        let kept = stored(r, product);
        r.b.convert(kept, element)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of barriers of a program with these operations, of which the last one is a reduced array.
    fn barriers(ops: &str, ty: &str) -> usize {
        let text = format!(
            "func.func @main(%m: tensor<4x8xi1>, %h: tensor<4x8xf16>, %x: tensor<4x8xf32>, %c: tensor<4x8xf32>, %z: tensor<{ty}>)
                -> tensor<4x{ty}> {{
                {ops}
                %r = stablehlo.reduce(%0 init: %z) applies stablehlo.add across dimensions = [1]
                    : (tensor<4x8x{ty}>, tensor<{ty}>) -> tensor<4x{ty}>
                return %r : tensor<4x{ty}>
            }}"
        );
        let module = separate_widening(&crate::parse(text.into_bytes()).unwrap()).unwrap();
        module.op_counts().get("stablehlo.optimization_barrier").copied().unwrap_or(0)
    }

    #[test]
    fn only_what_reads_narrower_arrays_is_separated() {
        let select = "%0 = stablehlo.select %p, %x, %c : tensor<4x8xi1>, tensor<4x8xf32>";
        let compare =
            "%p = stablehlo.compare GT, %x, %c : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>";
        let not = "%p = stablehlo.not %m : tensor<4x8xi1>";
        assert_eq!(barriers(&format!("{compare}\n{select}"), "f32"), 0);
        assert_eq!(barriers(&format!("{not}\n{select}"), "f32"), 1);
        assert_eq!(barriers("%0 = stablehlo.add %x, %c : tensor<4x8xf32>", "f32"), 0);
        let wide = "%w = stablehlo.convert %h : (tensor<4x8xf16>) -> tensor<4x8xf32>
            %0 = stablehlo.add %w, %x : tensor<4x8xf32>";
        assert_eq!(barriers(wide, "f32"), 1);
        assert_eq!(barriers("%0 = stablehlo.convert %x : (tensor<4x8xf32>) -> tensor<4x8xf16>", "f16"), 0);
    }

    #[test]
    fn a_conversion_that_no_reduction_reads_is_not_separated() {
        let text = "func.func @main(%h: tensor<8xf16>) -> tensor<8xf32> {
            %0 = stablehlo.convert %h : (tensor<8xf16>) -> tensor<8xf32>
            return %0 : tensor<8xf32>
        }";
        let module = crate::parse(text.to_owned()).unwrap();
        assert_eq!(separate_widening(&module).unwrap().op_counts(), module.op_counts());
    }

    #[test]
    fn products_are_stored_before_they_are_rounded() {
        let text = "func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xbf16> {
            %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
                : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
            %1 = stablehlo.add %0, %x : tensor<2x2xf32>
            %2 = stablehlo.convert %1 : (tensor<2x2xf32>) -> tensor<2x2xbf16>
            return %2 : tensor<2x2xbf16>
        }";
        let module = separate_widening(&crate::parse(text.to_owned()).unwrap()).unwrap();
        assert_eq!(module.op_counts()["stablehlo.optimization_barrier"], 1);
    }

    #[test]
    fn operands_of_products_have_the_type_of_the_sums() {
        for (narrow, result, wide) in [("i8", "i32", "i32"), ("bf16", "bf16", "f32"), ("f16", "f32", "f32")] {
            let text = format!(
                "func.func @main(%x: tensor<2x3x{narrow}>, %y: tensor<3x2x{narrow}>) -> tensor<2x2x{result}> {{
                    %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
                        : (tensor<2x3x{narrow}>, tensor<3x2x{narrow}>) -> tensor<2x2x{result}>
                    return %0 : tensor<2x2x{result}>
                }}"
            );
            let module = separate_widening(&crate::parse(text.into_bytes()).unwrap()).unwrap();
            let types = format!("(tensor<2x3x{wide}>, tensor<3x2x{wide}>) -> tensor<2x2x{wide}>");
            assert!(module.to_string().contains(&types), "{module}");
            let barriers = if result == wide { 2 } else { 3 };
            assert_eq!(module.op_counts()["stablehlo.optimization_barrier"], barriers);
        }
    }
}
