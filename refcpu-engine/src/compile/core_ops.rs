//! The operations that refcpu compiles, and the rewriting of all others into them.

use super::api::CompileError;
use super::lower::composites_with_kernels;
use pjrt_stablehlo::ir::{self, ElementType, OpCode};
use pjrt_stablehlo::passes::{CoreOps, decompose, is_core};
use pjrt_stablehlo::{ErrorKind, Module};
use std::borrow::Cow;
use std::sync::LazyLock;

/// All operations but those that are formulas of others. Composites with a kernel are kept; other functions of CHLO become
/// formulas, which are more accurate than the decompositions in the program; the remaining composites become calls.
static CORE_OPS: LazyLock<CoreOps> = LazyLock::new(|| {
    let disguised = [
        OpCode::BatchNormGrad,
        OpCode::BatchNormInference,
        OpCode::BatchNormTraining,
        OpCode::Composite,
        OpCode::Dot,
        OpCode::Einsum,
        OpCode::TorchIndexSelect,
        OpCode::UnaryEinsum,
        OpCode::UniformDequantize,
        OpCode::UniformQuantize,
    ];
    let core = disguised.into_iter().fold(CoreOps::from_ops(OpCode::ALL.iter().copied()), CoreOps::without);
    // The custom calls of QR factorizations, which are decomposed otherwise, have kernels.
    let core = ["Qr", "ProductOfElementaryHouseholderReflectors"].into_iter().fold(core, CoreOps::with_other);
    composites_with_kernels().fold(core, CoreOps::with_composite).without_bounded_sizes()
});

/// The set of core operations without `func.call`, for inlined calls.
static WITHOUT_CALLS: LazyLock<CoreOps> = LazyLock::new(|| CORE_OPS.clone().without(OpCode::FuncCall));

/// Returns whether a body contains a `select_and_scatter` that no kernel supports: the elements are complex or quantized, the
/// results have a different type than the operand, the selection is not a comparison of the two elements, or the scatter is not a
/// single operation.
fn selects_in_general(body: &ir::Body) -> bool {
    let element = |value: ir::ValueId| body.ty(value).as_tensor().map(|ty| ty.element_type());
    body.all_ops().any(|(_, op)| {
        let is = |region: usize, expected: &dyn Fn(&ir::Op) -> bool| {
            let Some(block) = body.region_block(op, region) else { return false };
            let ([a, b], [first, end]) = (&*block.arguments, &*block.ops) else { return false };
            let (first, end) = (body.op(*first), body.op(*end));
            (*first.operands == [*a, *b] || *first.operands == [*b, *a])
                && end.operands.iter().copied().eq(first.results)
                && expected(&first.kind)
        };
        let are_real = || {
            let of_result = op.results.get(0).and_then(element);
            of_result.is_some_and(|ty| ty.complex_part().is_none() && ty != ElementType::Quantized)
                && op.operands.iter().all(|operand| element(*operand) == of_result)
        };
        matches!(op.kind, ir::Op::SelectAndScatter(_))
            && !(is(0, &is_selection) && is(1, &is_sum) && are_real())
    })
}

fn is_selection(op: &ir::Op) -> bool {
    use ir::ComparisonDirection::{Ge, Gt, Le, Lt};
    matches!(op, ir::Op::Compare(o) if matches!(o.comparison_direction, Ge | Gt | Le | Lt))
}

fn is_sum(op: &ir::Op) -> bool {
    use OpCode::{Add, And, Maximum, Minimum, Multiply, Or, Xor};
    matches!(op.code(), Add | And | Maximum | Minimum | Multiply | Or | Xor)
}

/// Rewrites a program into the operations and types that refcpu compiles. Quantized types become their storage types and
/// arithmetic; bounded sizes become their bounds.
///
/// # Errors
/// Returns an error if an operation cannot be expressed in these operations.
pub(super) fn to_core_ops(module: &Module) -> Result<Cow<'_, Module>, CompileError> {
    in_ops(module, &CORE_OPS)
}

/// Rewrites the module to core operations, and inlines its calls.
///
/// # Errors
/// Returns an error if an operation cannot be expressed in these operations.
pub(super) fn to_core_ops_without_calls(module: &Module) -> Result<Cow<'_, Module>, CompileError> {
    in_ops(module, &WITHOUT_CALLS)
}

fn in_ops<'m>(module: &'m Module, core: &CoreOps) -> Result<Cow<'m, Module>, CompileError> {
    let general;
    let core = if module.functions().iter().any(|function| selects_in_general(&function.body)) {
        general = core.clone().without(OpCode::SelectAndScatter);
        &general
    } else {
        core
    };
    if is_core(module, core) {
        return Ok(Cow::Borrowed(module));
    }
    decompose(module, core).map(Cow::Owned).map_err(|error| {
        let mut wrong = match error.kind {
            ErrorKind::Unsupported | ErrorKind::TooLarge => CompileError::unimplemented(error.message),
            _ => CompileError::invalid(error.message),
        };
        wrong.op = error.op.map_or_else(String::new, |op| op.to_string());
        wrong.location = error.location.brief().to_string();
        wrong
    })
}
