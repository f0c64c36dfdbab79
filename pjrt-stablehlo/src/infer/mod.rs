//! Inference of result types from operations and their operands.

mod collectives;
mod context;
mod control;
mod elementwise;
mod indexing;
mod products;
mod reductions;
mod result;
mod shape;
mod shapes;
mod windows;

pub(crate) use context::{Context, counts};
pub(crate) use control::{custom_call, manual_computation};
pub(crate) use elementwise::uniform_quantize;
pub use result::Inferred;
pub(crate) use result::{ResultRule, Results};
pub use shape::types_compatible;
pub(crate) use shape::{Shape, shapes_agree, sizes_agree};

use crate::Error;
use crate::ir::{Body, Module, OpId, Trait};

/// Infers the types of an operation's results from its operands, attributes and regions. The declared types are not
/// considered.
///
/// The function returns one element for each result, which states how much of the type is determined ([`Inferred`]).
/// Nothing is determined for results whose type the program chooses: those of `custom_call`, `infeed`, `recv`, `iota`,
/// `bitcast_convert`, `einsum`, `unary_einsum`, `sdy.manual_computation` and of operations outside the op table, and
/// the bits of `rng_bit_generator`. The element type is determined for `reshape` and `broadcast_in_dim`; the shape is
/// determined for `convert`, `uniform_quantize`, `dynamic_iota`, `dot`, `dot_general`, `convolution` and
/// `dynamic_conv`.
///
/// # Inferred and declared types
///
/// The declared type of a result must be compatible with the inferred type ([`types_compatible`]), but need not equal
/// it, because each may have static sizes where the other has dynamic ones. For example, the result of a
/// `dynamic_reshape` by an argument may be declared as `tensor<4xf32>` although only its rank can be inferred, and a
/// program may declare `tensor<?xf32>` where the size 4 can be inferred. Code that changes a program should keep the
/// static sizes of both, as [`refine_shapes`](crate::passes::refine_shapes) does.
///
/// StableHLO specification: the constraints of each operation; section "Type inference" for dynamic sizes.
///
/// # Errors
/// Returns an error for the first violated constraint on operands, attributes and regions. The numbers of operands and
/// regions must be those of the op table, which [`verify`](crate::verify) checks.
///
/// ```
/// use pjrt_stablehlo::ir::Op;
/// use pjrt_stablehlo::{Inferred, infer_result_types};
///
/// let module = pjrt_stablehlo::parse(
///     r#"func.func @main(%a: tensor<?x3xf32>) -> tensor<3x?xf32> {
///       %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<?x3xf32>) -> tensor<3x?xf32>
///       return %0 : tensor<3x?xf32>
///     }"#
///     .as_bytes()
///     .to_vec(),
/// )?;
/// let body = &module.main().unwrap().body;
/// let (id, op) = body.all_ops().find(|(_, op)| matches!(op.kind, Op::Transpose(_))).unwrap();
/// let inferred = infer_result_types(&module, body, id)?;
/// assert_eq!(inferred, [Inferred::Type(body.ty(op.result()).clone())]);
/// # Ok::<(), pjrt_stablehlo::Error>(())
/// ```
pub fn infer_result_types(module: &Module, body: &Body, op: OpId) -> Result<Vec<Inferred>, Error> {
    let rules = results(&Context { module, body, op: body.op(op) })?;
    Ok(rules.into_iter().map(|rule| rule.inferred).collect())
}

/// The families of operations with their own rules: `None` if an operation is not in the family.
const FAMILIES: &[fn(&Context<'_>) -> Option<Results>] = &[
    elementwise::results,
    shapes::results,
    products::results,
    windows::results,
    indexing::results,
    reductions::results,
    control::results,
    collectives::results,
];

/// Checks an operation's operands, attributes and regions, and infers the types of its results.
pub(crate) fn results(cx: &Context<'_>) -> Results {
    let found = FAMILIES.iter().find_map(|results| results(cx));
    found.unwrap_or_else(|| {
        if cx.op.info().has(Trait::SameType) {
            return elementwise::same_type(cx);
        }
        Ok(cx.op.results.map(|_| ResultRule::declared()).collect())
    })
}
